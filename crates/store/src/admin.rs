//! Administration on a data folder or a database, whether a server runs on it or not: a second, short writer that appends no events.

mod acts;
mod copy;
mod erase;
mod export;
mod lists;
mod migrate;
mod webhooks;

use std::path::Path;

use crate::location::Location;
use crate::postgres;
use crate::sql::{self, Connection, Transaction};
use chips_protocol::{HarnessId, ParticipantId, PersonId, SpaceId, Timestamp, WorkspaceId};

use crate::error::OpenError;
use crate::sqlite::file::{self, Layout, Purpose};
use crate::sqlite::folder::{self, Hold};

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
    /// What is in the store is not whole.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The store can't be read or written.
    #[error("the store can't be written: {0}")]
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
    /// Whether it can't act any more: it was disabled, or as a workspace erased.
    pub disabled: bool,
    /// What else is worth a column: `owner`, `closed, 3 members`, `open 100, hour 600`.
    pub note: String,
}

pub use copy::{Backup, Keep, back_up, give_up, is_within, restore};
pub use erase::{Copies, Erasing, Erasure, Target, copies};
pub use export::Export;
pub use lists::{Ownerless, Unheard};
pub use migrate::{Batch, How, Moved, MovedLog, MovedTable, Phase, Progress, Tell, migrate};
pub use webhooks::Webhook;

/// A folder or a database opened for administration.
pub struct Admin {
    location: Location,
    connection: Connection,
}

/// Whether there is a workspace.
///
/// # Errors
/// The folder or the database can't be read, or is something else.
pub fn is_initialised(location: impl Into<Location>) -> Result<bool, OpenError> {
    let location = location.into();
    let Some((connection, layout)) = found(&location)? else { return Ok(false) };
    Ok(layout != Layout::None && has_workspace(&location, &connection)?)
}

/// Why a workspace can't be made there, where that is known before, and what helps: the role may make no tables, or something else stands there.
///
/// # Errors
/// It can't be read.
pub fn may_not_init(location: impl Into<Location>) -> Result<Option<(String, String)>, OpenError> {
    let location = location.into();
    match found(&location)? {
        Some((connection, Layout::None)) if connection.is_postgres() => {
            postgres::may_not_make(&connection).map_err(|error| location.told(&error))
        }
        _ => Ok(None),
    }
}

/// A connection and the layout that is found; nothing where a folder has no file.
fn found(location: &Location) -> Result<Option<(Connection, Layout)>, OpenError> {
    match location {
        Location::Folder(dir) => {
            if !file::exists(dir)? {
                return Ok(None);
            }
            let connection = file::connect(dir, Purpose::Administer)?;
            let layout = file::layout(dir, &connection)?;
            Ok(Some((connection.into(), layout)))
        }
        Location::Database(database) => {
            let connection = postgres::open(database)?;
            let layout = postgres::layout(database, &connection)?;
            Ok(Some((connection, layout)))
        }
    }
}

/// Makes what is missing, to this version's layout.
fn made(location: &Location) -> Result<Connection, OpenError> {
    match location {
        Location::Folder(dir) => {
            file::create(dir)?;
            let mut connection = file::connect(dir, Purpose::Administer)?;
            file::migrate(dir, &mut connection)?;
            Ok(connection.into())
        }
        Location::Database(database) => {
            let mut connection = postgres::open(database)?;
            postgres::migrate(database, &mut connection)?;
            Ok(connection)
        }
    }
}

/// The process that serves the folder now, if one does.
///
/// # Errors
/// The folder can't be read.
pub fn holder(dir: &Path) -> Result<Option<String>, OpenError> {
    folder::holder(dir)
}

/// Makes the data folder, or what a database needs, and in it a workspace, an open space, a person (owner) and a harness.
///
/// # Errors
/// There is a workspace already (nothing is changed), or it can't be written.
pub fn init(location: impl Into<Location>) -> Result<Initialised, OpenError> {
    let location = location.into();
    if is_initialised(&location)? {
        return Err(OpenError::NotEmpty(location));
    }
    let mut connection = made(&location)?;
    let made = write(&mut connection, |transaction| {
        if transaction.query_row("SELECT count(*) FROM workspaces", [], |row| row.get::<_, i64>(0))? > 0 {
            return Ok(None);
        }
        // It may have begun since the look.
        if transaction.is_postgres() && postgres::is_moving(transaction)? {
            return Err(AdminError::Refused(postgres::MOVING.to_owned()));
        }
        acts::add_workspace(transaction, "Workspace").map(Some)
    });
    match made {
        Ok(Some(made)) => Ok(made),
        Ok(None) => Err(OpenError::NotEmpty(location)),
        Err(error) => Err(location.told(&sql::Error::Odd(error.to_string()))),
    }
}

fn has_workspace(location: &Location, connection: &Connection) -> Result<bool, OpenError> {
    connection
        .query_row("SELECT count(*) FROM workspaces", [], |row| row.get::<_, i64>(0))
        .map(|count| count > 0)
        .map_err(|error| location.told(&error))
}

/// One act: all of it or nothing, and the server is told by the epoch that it happened.
fn write<T>(
    connection: &mut Connection,
    act: impl FnOnce(&Transaction<'_>) -> Result<T, AdminError>,
) -> Result<T, AdminError> {
    let transaction = connection.transaction_to_write()?;
    if transaction.is_postgres() {
        crate::postgres::still_fits(&transaction)?;
    }
    let done = act(&transaction)?;
    transaction.execute("UPDATE meta SET admin_epoch = admin_epoch + 1", [])?;
    transaction.commit()?;
    Ok(done)
}

impl From<sql::Error> for AdminError {
    fn from(error: sql::Error) -> Self {
        match error.sqlite() {
            Some((rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase, _)) => {
                Self::Damaged(error.to_string())
            }
            _ => Self::Io(error.to_string()),
        }
    }
}

impl Admin {
    /// Opens a folder or a database that has a workspace.
    ///
    /// # Errors
    /// As [`crate::Store::open`], but it does not mind a server that holds the folder.
    pub fn open(location: impl Into<Location>) -> Result<Self, OpenError> {
        let location = location.into();
        let (mut connection, layout) = match found(&location)? {
            Some((connection, layout)) if layout != Layout::None => (connection, layout),
            _ => return Err(OpenError::Empty(location)),
        };
        if layout == Layout::Older {
            // A server of the older version must not have a file's tables changed under it.
            let _hold = location.folder().map(Hold::take).transpose()?;
            connection = made(&location)?;
        }
        if !has_workspace(&location, &connection)? {
            return Err(OpenError::Empty(location));
        }
        Ok(Self { location, connection })
    }

    /// The only workspace that was not erased, or the one named.
    ///
    /// # Errors
    /// There are several and none is named, or no such workspace.
    pub fn workspace(&mut self, named: Option<WorkspaceId>) -> Result<WorkspaceId, AdminError> {
        let mut all = self.workspaces()?;
        if named.is_none() && all.iter().any(|listed| !listed.disabled) {
            all.retain(|listed| !listed.disabled);
        }
        match (named, all.as_slice()) {
            (Some(id), all) if all.iter().any(|listed| listed.workspace_id == id) => Ok(id),
            (Some(id), _) => Err(AdminError::NotFound(format!("there is no workspace {id}"))),
            (None, [only]) => Ok(only.workspace_id),
            (None, all) => Err(AdminError::WhichWorkspace(
                all.iter().map(|listed| format!("{} ({})", listed.id, listed.name)).collect::<Vec<_>>().join(", "),
            )),
        }
    }

    /// Adds a workspace, with what [`init`] makes.
    ///
    /// # Errors
    /// The name is no line that can be read, or longer than 100 characters.
    pub fn add_workspace(&mut self, name: &str) -> Result<Initialised, AdminError> {
        write(&mut self.connection, |transaction| acts::add_workspace(transaction, name))
    }

    /// Adds a person, with a token and a way to sign in.
    ///
    /// # Errors
    /// The name is no line that can be read, or longer than 100 characters, or the workspace was erased.
    pub fn add_person(&mut self, workspace: WorkspaceId, name: &str) -> Result<(Issued<PersonId>, SignIn), AdminError> {
        write(&mut self.connection, |transaction| {
            let ws_no = acts::live_workspace(transaction, workspace)?;
            acts::add_person(transaction, ws_no, name, false)
        })
    }

    /// Adds a harness, with a token.
    ///
    /// # Errors
    /// The name is no line that can be read, or longer than 100 characters, or the workspace was erased.
    pub fn add_harness(&mut self, workspace: WorkspaceId, name: &str) -> Result<Issued<HarnessId>, AdminError> {
        write(&mut self.connection, |transaction| {
            let ws_no = acts::live_workspace(transaction, workspace)?;
            acts::add_harness(transaction, ws_no, name)
        })
    }

    /// Adds a space: open without members, closed with.
    ///
    /// # Errors
    /// The name is no line that can be read, or longer than 100 characters, a member is no person of the workspace, or that was erased.
    pub fn add_space(
        &mut self,
        workspace: WorkspaceId,
        name: &str,
        members: &[PersonId],
    ) -> Result<SpaceId, AdminError> {
        write(&mut self.connection, |transaction| {
            let ws_no = acts::live_workspace(transaction, workspace)?;
            acts::add_space(transaction, ws_no, name, members)
        })
    }

    /// Makes a new way to sign in for a person.
    ///
    /// # Errors
    /// No such person, or they are disabled.
    pub fn link_person(&mut self, person: PersonId) -> Result<SignIn, AdminError> {
        write(&mut self.connection, |transaction| {
            let person_no = acts::enabled_person(transaction, person)?;
            acts::grant(transaction, person_no)
        })
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
        write(&mut self.connection, |transaction| acts::rotate(transaction, id, overlap_ms))
    }

    /// Ends every token and session of a person or harness, for good.
    ///
    /// # Errors
    /// No such person or harness.
    pub fn disable(&mut self, id: ParticipantId) -> Result<(), AdminError> {
        write(&mut self.connection, |transaction| acts::disable(transaction, id))
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
        write(&mut self.connection, |transaction| acts::set_budget(transaction, harness, open, hour))
    }

    /// Says whether what is told outside the inbox of a space's questions carries no word of them.
    ///
    /// # Errors
    /// No such space.
    pub fn set_private(&mut self, space: SpaceId, private: bool) -> Result<(), AdminError> {
        write(&mut self.connection, |transaction| acts::set_private(transaction, space, private))
    }

    /// Gives a harness an owner, who alone is told of what it asks outside any space; or none.
    ///
    /// # Errors
    /// No such harness or person, the person is disabled or in another workspace.
    pub fn set_owner(&mut self, harness: HarnessId, owner: Option<PersonId>) -> Result<(), AdminError> {
        write(&mut self.connection, |transaction| acts::set_owner(transaction, harness, owner))
    }

    /// Adds a person to a closed space, or takes them out.
    ///
    /// # Errors
    /// No such space or person, or the space is open and has everybody in it.
    pub fn set_member(&mut self, space: SpaceId, person: PersonId, member: bool) -> Result<(), AdminError> {
        write(&mut self.connection, |transaction| acts::set_member(transaction, space, person, member))
    }
}
