//! Wiring, and the order of the shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use chips_store::{Fatal, Store};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::http::accept::Connections;
use crate::http::layers;
use crate::metrics::Metrics;
use crate::state::{AppState, StartError};
use crate::{api, inbox, taps, workers};

/// How long requests may take to learn that the store has failed.
const DRAIN_FAILED: Duration = Duration::from_secs(1);

/// Every route, with the layers that all requests pass.
pub fn router(state: AppState) -> Router {
    let simulated = state.config.simulation.as_ref().map(|_| api::simulate::router()).unwrap_or_default();
    Router::new()
        .merge(api::router())
        .merge(simulated)
        .merge(taps::router())
        .merge(inbox::router(state.clone()))
        .fallback(not_found)
        .method_not_allowed_fallback(layers::method_not_allowed)
        .layer(axum::middleware::from_fn_with_state(state.clone(), layers::outer))
        .with_state(state)
}

/// A path that does not exist: a page for people, a problem for programs.
async fn not_found(State(state): State<AppState>, uri: Uri, headers: HeaderMap) -> Response {
    if layers::wants_page(&uri, &headers) {
        inbox::not_found(&state, &headers)
    } else {
        layers::not_found().into_response()
    }
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
    listener: TcpListener,
}

/// Checks the configuration and binds the address.
///
/// # Errors
/// See [`StartError`].
pub async fn bind(mut config: Config, store: Store) -> Result<Server, StartError> {
    config.check().map_err(StartError::Config)?;
    let address = config.listen;
    let failed = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    config.listen = listener.local_addr().map_err(failed)?;
    Ok(Server { state: AppState::new(config, store)?, listener })
}

impl Server {
    /// The address that it is bound to.
    pub fn address(&self) -> SocketAddr {
        self.state.config.listen
    }

    /// The URL to reach it by: the public one where there is one, else `http://ADDRESS`. No slash at the end.
    pub fn url(&self) -> String {
        self.state.config.base_url()
    }

    /// The figures that it counts.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.state.metrics)
    }

    /// Serves until `stop` is cancelled (then drains for at most 8 s) or the store fails.
    ///
    /// The order of the end: no more connections, streams and waits end, requests in flight are answered, the deadlines rest, the
    /// store is closed. Deadlines that pass meanwhile fire at the next start.
    pub async fn run(self, stop: CancellationToken) -> Ended {
        let Self { state, listener } = self;
        let AppState { store, stopping, config, .. } = state.clone();
        let connections = Connections::new(router(state.clone()), &config);
        let deadlines = tokio::spawn(workers::deadlines::run(state.clone()));
        let notices = tokio::spawn(workers::notify::run(state.clone()));
        let updates = tokio::spawn(workers::telegram::run(state.clone()));
        let retention = tokio::spawn(workers::retain::run(state));

        let failed = tokio::select! {
            () = stop.cancelled() => None,
            fatal = store.failed() => Some(fatal),
            () = connections.accept(listener, &stopping) => None,
        };
        stopping.cancel();
        // The listener is dropped with the accept loop above: whoever comes now is refused and not kept waiting.
        connections.drain(if failed.is_some() { DRAIN_FAILED } else { config.limits.drain }).await;
        if let Err(error) = deadlines.await {
            tracing::error!(%error, "the deadlines' worker panicked");
        }
        if let Err(error) = notices.await {
            tracing::error!(%error, "the worker that tells people panicked");
        }
        if let Err(error) = updates.await {
            tracing::error!(%error, "the worker that listens to Telegram panicked");
        }
        if let Err(error) = retention.await {
            tracing::error!(%error, "the worker that drops old events panicked");
        }
        // A store that failed while requests drained has failed all the same.
        let failed = match failed {
            None => {
                tokio::select! { biased; fatal = store.failed() => Some(fatal), () = std::future::ready(()) => None }
            }
            failed => failed,
        };
        store.close().await;
        failed.map_or(Ended::Stopped, Ended::Failed)
    }
}
