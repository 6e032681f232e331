//! Administration on a data folder, whether a server runs on it or not: a second, short writer that appends no events.

use std::path::Path;

use chips_protocol::{HarnessId, ParticipantId, PersonId, SpaceId, Timestamp, WorkspaceId};
use rusqlite::Connection;

use crate::error::OpenError;

/// A participant and its new token, shown once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued<Id> {
    /// The participant.
    pub id: Id,
    /// The token.
    pub token: String,
}

/// A way to sign in, shown once: the secret part of the link, and the short code beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// Goes into the link: `PUBLIC_URL/sign-in/SECRET`.
    pub secret: String,
    /// The short code.
    pub code: String,
}

/// What a new workspace comes with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initialised {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// An open space.
    pub space_id: SpaceId,
    /// A person who owns it.
    pub person: Issued<PersonId>,
    /// A harness.
    pub harness: Issued<HarnessId>,
    /// A way for the person to sign in.
    pub sign_in: SignIn,
}

/// Why an administrative act was refused. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// No such participant, space or workspace.
    #[error("{0}")]
    NotFound(String),
    /// There are several workspaces and none was named.
    #[error("there are several workspaces; name one with --workspace: {0}")]
    WhichWorkspace(String),
    /// A name, a limit or a member is not acceptable.
    #[error("{0}")]
    Refused(String),
    /// The store can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store can't be read or written.
    #[error("the data folder can't be written: {0}")]
    Io(String),
}

/// What there is to know of a workspace, a person, a harness or a space, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The identifier, as text.
    pub id: String,
    /// The workspace it belongs to.
    pub workspace_id: WorkspaceId,
    /// What people call it.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether it may still act (a space, a workspace: always).
    pub disabled: bool,
    /// What else is worth a column: `owner`, `closed, 3 members`, `open 100, hour 600`.
    pub note: String,
}

/// A data folder opened for administration.
pub struct Admin {
    connection: Connection,
}

/// Whether the folder holds a workspace.
///
/// # Errors
/// It can't be read, or is something else.
pub fn is_initialised(dir: &Path) -> Result<bool, OpenError> {
    let _ = dir;
    todo!()
}

/// Makes the data folder and in it a workspace, an open space, a person (owner) and a harness.
///
/// # Errors
/// The folder has a workspace already (nothing is changed), or can't be written.
pub fn init(dir: &Path) -> Result<Initialised, OpenError> {
    let _ = dir;
    todo!()
}

impl Admin {
    /// Opens a data folder that has a workspace.
    ///
    /// # Errors
    /// As [`crate::Store::open`], but it does not mind a server that holds the folder.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let _ = dir;
        todo!()
    }

    /// The only workspace, or the one named.
    ///
    /// # Errors
    /// There are several and none is named, or no such workspace.
    pub fn workspace(&mut self, named: Option<WorkspaceId>) -> Result<WorkspaceId, AdminError> {
        let _ = (&self.connection, named);
        todo!()
    }

    /// Adds a workspace, with what [`init`] makes.
    ///
    /// # Errors
    /// The name is blank or longer than 100 characters.
    pub fn add_workspace(&mut self, name: &str) -> Result<Initialised, AdminError> {
        let _ = name;
        todo!()
    }

    /// Adds a person, with a token and a way to sign in.
    ///
    /// # Errors
    /// The name is blank or longer than 100 characters.
    pub fn add_person(&mut self, workspace: WorkspaceId, name: &str) -> Result<(Issued<PersonId>, SignIn), AdminError> {
        let _ = (workspace, name);
        todo!()
    }

    /// Adds a harness, with a token.
    ///
    /// # Errors
    /// The name is blank or longer than 100 characters.
    pub fn add_harness(&mut self, workspace: WorkspaceId, name: &str) -> Result<Issued<HarnessId>, AdminError> {
        let _ = (workspace, name);
        todo!()
    }

    /// Adds a space: open without members, closed with.
    ///
    /// # Errors
    /// The name is blank or longer than 100 characters, or a member is no person of the workspace.
    pub fn add_space(
        &mut self,
        workspace: WorkspaceId,
        name: &str,
        members: &[PersonId],
    ) -> Result<SpaceId, AdminError> {
        let _ = (workspace, name, members);
        todo!()
    }

    /// Makes a new way to sign in for a person.
    ///
    /// # Errors
    /// No such person, or they are disabled.
    pub fn link_person(&mut self, person: PersonId) -> Result<SignIn, AdminError> {
        let _ = person;
        todo!()
    }

    /// Makes a new token. The old ones end now, or after `overlap_ms`. For a person also a new way to sign in.
    ///
    /// # Errors
    /// No such person or harness, or it is disabled.
    pub fn rotate(
        &mut self,
        id: ParticipantId,
        overlap_ms: Option<i64>,
    ) -> Result<(Issued<ParticipantId>, Option<SignIn>), AdminError> {
        let _ = (id, overlap_ms);
        todo!()
    }

    /// Ends every token and session of a person or harness, for good.
    ///
    /// # Errors
    /// No such person or harness.
    pub fn disable(&mut self, id: ParticipantId) -> Result<(), AdminError> {
        let _ = id;
        todo!()
    }

    /// Sets a harness's limits; `None` is no limit, and a limit that is not given stays.
    ///
    /// # Errors
    /// No such harness.
    pub fn set_budget(
        &mut self,
        harness: HarnessId,
        open: Option<Option<u64>>,
        hour: Option<Option<u64>>,
    ) -> Result<(), AdminError> {
        let _ = (harness, open, hour);
        todo!()
    }

    /// Adds a person to a closed space, or takes them out.
    ///
    /// # Errors
    /// No such space or person, or the space is open and has everybody in it.
    pub fn set_member(&mut self, space: SpaceId, person: PersonId, member: bool) -> Result<(), AdminError> {
        let _ = (space, person, member);
        todo!()
    }

    /// All workspaces.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn workspaces(&mut self) -> Result<Vec<Listed>, AdminError> {
        todo!()
    }

    /// The persons of one workspace, or of all.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn persons(&mut self, workspace: Option<WorkspaceId>) -> Result<Vec<Listed>, AdminError> {
        let _ = workspace;
        todo!()
    }

    /// The harnesses of one workspace, or of all.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn harnesses(&mut self, workspace: Option<WorkspaceId>) -> Result<Vec<Listed>, AdminError> {
        let _ = workspace;
        todo!()
    }

    /// The spaces of one workspace, or of all.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn spaces(&mut self, workspace: Option<WorkspaceId>) -> Result<Vec<Listed>, AdminError> {
        let _ = workspace;
        todo!()
    }
}
