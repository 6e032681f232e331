//! Where a server is, and how its first person comes in.

use std::net::SocketAddr;

use chips_protocol::{PersonId, WorkspaceId};
use chips_store::admin::Admin;

use crate::{output, qr};

/// Where the server is, for people and for the harness.
pub struct Place {
    /// The address that it listens on.
    pub address: SocketAddr,
    /// The URL that people use.
    pub url: String,
    /// Whether a phone can reach that.
    pub reachable: bool,
}

/// The oldest workspace that was not erased and who owns it; where no owner is left, its oldest person.
pub fn owner(admin: &mut Admin) -> anyhow::Result<Option<(WorkspaceId, PersonId)>> {
    let workspaces = admin.workspaces()?;
    let Some(workspace) = workspaces.iter().find(|one| !one.disabled).map(|one| one.workspace_id) else {
        return Ok(None);
    };
    let mut persons = admin.persons(Some(workspace))?;
    persons.retain(|person| !person.disabled);
    let person = persons.iter().find(|person| person.note.contains("owner")).or(persons.first());
    Ok(person.and_then(|person| person.id.parse().ok()).map(|person| (workspace, person)))
}

/// A link as a QR code, where standard output is a terminal that shows it whole.
pub fn phone(link: &str) -> Option<String> {
    if std::env::var_os("TERM").is_none_or(|term| term == "dumb") {
        return None;
    }
    qr::code(link, output::columns()?)
}
