//! Looks once a second whether administration has changed who may do or see what, and now and then has what has
//! ended long ago cleared away.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::sql::{Connection, Result};

use super::shared::Shared;
use super::writer::Message;

const LOOK: Duration = Duration::from_secs(1);
/// Looks between two times that the writer clears away.
pub(crate) const SWEEP: u32 = 3_600;

/// The thread that looks. Dropping it ends it.
pub(crate) struct Watcher {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watcher {
    pub(crate) fn start(connection: Connection, shared: Arc<Shared>, writer: Sender<Message>) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let watch = move || {
            let mut looks = 0_u32;
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let erasure = match look(&connection, &shared) {
                    Ok((erasure, held)) => held.then_some(erasure),
                    Err(error) => {
                        tracing::warn!(%error, "could not look for administrative changes");
                        None
                    }
                };
                looks = looks.wrapping_add(1);
                let noted = shared.note(|lazy| {
                    lazy.sweep |= looks % SWEEP == 1;
                    lazy.erasure = lazy.erasure.max(erasure.unwrap_or_default());
                });
                if noted {
                    // A writer that has ended has nothing to clear away.
                    let _ = writer.send(Message::Notes);
                }
            }
        };
        let thread = std::thread::Builder::new().name("chips-watch".to_owned()).spawn(watch)?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread and closes its connection.
    pub(crate) fn end(self) {
        let Self { stop, thread } = self;
        drop(stop);
        if thread.join().is_err() {
            tracing::warn!("the watching thread panicked");
        }
    }
}

/// How much was erased so far, and whether that is more than what this process has let go of.
pub(crate) fn look(connection: &Connection, shared: &Shared) -> Result<(i64, bool)> {
    let (epoch, seen, erasures): (i64, i64, i64) = connection
        .prepare_cached("SELECT admin_epoch, erasures_seen, erasures FROM meta")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let epoch = epoch.unsigned_abs();
    shared.access.send_if_modified(|seen| std::mem::replace(seen, epoch.max(*seen)) < epoch);
    let seen = match &shared.node {
        // Each server lets go by itself.
        Some(node) => node.erasures.swap(erasures, Ordering::Relaxed),
        None => seen,
    };
    Ok((erasures, erasures > seen))
}
