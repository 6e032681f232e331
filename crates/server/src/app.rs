//! Wiring, and the order of the shutdown.

use std::net::SocketAddr;
use std::sync::Arc;

use chips_store::{Fatal, Store};
use tokio_util::sync::CancellationToken;

use crate::config::Config;

/// What every handler gets.
#[derive(Clone)]
pub struct AppState {
    /// The log and what is derived from it.
    pub store: Store,
    /// What the server was told at its start.
    pub config: Arc<Config>,
    /// Cancelled when the server stops: streams and waits end then.
    pub stopping: CancellationToken,
}

/// Why a server can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration would serve people's decisions in the clear, or contradicts itself.
    #[error("{0}")]
    Config(String),
    /// The address can't be listened on.
    #[error("can't listen on {address}: {source}; give another with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
}

/// How a server ended.
#[derive(Debug)]
pub enum Ended {
    /// As it was told: streams ended, writes in flight finished.
    Stopped,
    /// The store failed; the process must end with exit code 70.
    Failed(Fatal),
}

/// A server that is bound and can be run.
pub struct Server {
    state: AppState,
}

/// Checks the configuration and binds the address.
///
/// # Errors
/// See [`StartError`].
pub async fn bind(config: Config, store: Store) -> Result<Server, StartError> {
    let state = AppState { store, config: Arc::new(config), stopping: CancellationToken::new() };
    Ok(Server { state })
}

impl Server {
    /// The address that it is bound to.
    pub fn address(&self) -> SocketAddr {
        self.state.config.listen
    }

    /// The URL to reach it by: the public one where there is one, else `http://ADDRESS`. No slash at the end.
    pub fn url(&self) -> String {
        todo!()
    }

    /// Serves until `stop` is cancelled (then drains for at most 8 s) or the store fails.
    pub async fn run(self, stop: CancellationToken) -> Ended {
        let _ = stop;
        todo!()
    }
}
