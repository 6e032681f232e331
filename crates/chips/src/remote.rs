//! The client that commands speak to a server with.

use std::time::Duration;

use chips_client::{Client, LinkChange};

use crate::config::Connection;
use crate::output;

/// How this program names itself to a server.
const AGENT: &str = concat!("chips/", env!("CARGO_PKG_VERSION"));

/// How long a call is tried where somebody is there to see it fail.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client that tells people on standard error when the server can't be reached, and when it can be again.
///
/// # Errors
/// When TLS can't be spoken.
pub fn client(connection: &Connection) -> anyhow::Result<Client> {
    let server = connection.address.clone();
    client_with(connection, move |change| match change {
        LinkChange::Lost { reason, replied_before: true } => {
            output::note(format_args!("chips: lost the connection ({}), trying again…", output::one_line(&reason)));
        }
        LinkChange::Lost { reason, .. } => {
            output::note(format_args!("chips: can't reach {server} ({}), trying again…", output::one_line(&reason)));
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
        .retry_for(Some(PATIENCE))
        .on_link(listener)
        .build()?)
}
