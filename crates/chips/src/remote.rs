//! The client that commands speak to a server with.

use std::time::Duration;

use chips_client::{Client, LinkChange};

use crate::config::Connection;
use crate::output;

/// How this program names itself to a server.
const AGENT: &str = concat!("chips/", env!("CARGO_PKG_VERSION"));

/// How long the first call of a command is tried: a server that was just started answers within it.
const FIRST_CALLS: Duration = Duration::from_secs(30);

/// A client that tells people on standard error when the server can't be reached, and when it can be again.
///
/// # Errors
/// When TLS can't be spoken.
pub fn client(connection: &Connection) -> anyhow::Result<Client> {
    client_with(connection, |change| match change {
        LinkChange::Lost { reason } => {
            output::note(format_args!("chips: lost the connection ({}), trying again…", output::one_line(&reason)));
        }
        LinkChange::Back => output::note("chips: the connection is back"),
        _ => {}
    })
}

/// A client that tells `listener`.
///
/// # Errors
/// When TLS can't be spoken.
pub fn client_with(
    connection: &Connection,
    listener: impl Fn(LinkChange) + Send + Sync + 'static,
) -> anyhow::Result<Client> {
    Ok(Client::builder(&connection.address.to_string(), connection.token.secret())
        .user_agent(AGENT)
        .retry_for(Some(FIRST_CALLS))
        .on_link(listener)
        .build()?)
}
