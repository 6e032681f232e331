//! The accept loop: one task a connection, a cap on connections, and an orderly end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::Peer;
use super::guard::Guarded;
use crate::config::{Config, Limits};
use crate::simulation::{self, Simulation};

/// Open files that the store, the listener and standard input and output need beside the connections.
const OTHER_FILES: usize = 128;
/// The largest header of a request, and the largest heap of a reply that waits to be written.
const BUFFER: usize = 64 * 1024;
/// How long the loop waits when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(100);

/// Raises the limit of open files as far as it goes, and returns how many connections fit.
pub fn room_for(wanted: usize) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it there is less room, which is counted below.
    let _ = setrlimit(Resource::Nofile, limit);
    let files =
        getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    wanted.min(files.saturating_sub(OTHER_FILES).max(1))
}

/// The connections of a server.
pub struct Connections {
    router: Router,
    limits: Limits,
    room: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Ends what is still there after the drain.
    abandon: CancellationToken,
    simulation: Option<Simulation>,
}

impl Connections {
    /// No connections yet; requests go to this router.
    pub fn new(router: Router, config: &Config) -> Self {
        let limits = config.limits.clone();
        let room = Arc::new(Semaphore::new(room_for(limits.connections)));
        let simulation = config.simulation.clone();
        Self { router, limits, room, tasks: TaskTracker::new(), abandon: CancellationToken::new(), simulation }
    }

    /// Accepts until `stopping`, then returns at once; [`Connections::drain`] waits for the rest.
    pub async fn accept(&self, listener: TcpListener, stopping: &CancellationToken) {
        loop {
            let accepted = async {
                // Waits here and not after: whoever comes when all places are taken waits in the system's queue.
                let place = Arc::clone(&self.room).acquire_owned().await;
                (place, listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                accepted = accepted => accepted,
                () = stopping.cancelled() => return,
            };
            match accepted {
                Ok(_) if self.simulation.as_ref().is_some_and(Simulation::turns_away) => {}
                Ok((stream, address)) => {
                    let connection = self.serve(stream, address, stopping.clone());
                    self.tasks.spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                // The peer was gone before it was accepted.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) => {}
                Err(error) => {
                    tracing::warn!(%error, "can't accept a connection");
                    tokio::select! {
                        () = tokio::time::sleep(NO_ROOM) => {}
                        () = stopping.cancelled() => return,
                    }
                }
            }
        }
    }

    /// Waits for the requests in flight for as long as this, then ends what is left.
    pub async fn drain(&self, patience: Duration) {
        self.tasks.close();
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::warn!(connections = self.tasks.len(), "cut off what did not end in time");
            self.abandon.cancel();
            self.tasks.wait().await;
        }
    }

    fn serve(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        stopping: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let router = self.router.clone();
        let Limits { header, stalled_write, .. } = self.limits;
        let abandon = self.abandon.clone();
        let cut = self.simulation.as_ref().map(Simulation::cut_off);
        async move {
            let Ok(local) = stream.local_addr() else { return };
            let stream = Arc::new(stream);
            let peer = Peer::new(address, local, Arc::downgrade(&stream));
            let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(peer.clone());
                router.clone().oneshot(request)
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(header)
                .half_close(true)
                .max_buf_size(BUFFER)
                .serve_connection(TokioIo::new(Guarded::new(stream, stalled_write)), service);
            let mut connection = std::pin::pin!(connection);
            let outcome = tokio::select! {
                outcome = connection.as_mut() => outcome,
                () = abandon.cancelled() => return,
                () = simulation::cut(cut) => return,
                () = stopping.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        outcome = connection.as_mut() => outcome,
                        () = abandon.cancelled() => return,
                    }
                }
            };
            if let Err(error) = outcome {
                tracing::debug!(%error, "a connection ended early");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_within_what_the_system_allows() {
        assert!(room_for(1) == 1);
        let files = getrlimit(Resource::Nofile).current;
        assert!(files.is_none_or(|files| room_for(usize::MAX) as u64 <= files));
        assert_eq!(files, getrlimit(Resource::Nofile).maximum);
    }
}
