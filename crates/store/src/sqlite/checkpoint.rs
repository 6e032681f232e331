//! Moves what the write-ahead log holds into the database, beside the writer.
//!
//! A checkpoint inside the writer makes every hundredth group wait for it. Here a thread does it (`PASSIVE`: it waits
//! for nobody and nobody for it), and the log begins anew at its start once all of it was moved. Under a steady load the
//! thread never quite catches up, so the writer itself moves the rest when the log has grown long.

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::folder;
use crate::engine::shared::{Shared, lock};
use crate::engine::writer::is_fatal;
use crate::sql::{Error, Result};

/// Pages in the log after which the thread is told (8 MiB).
const BEGIN: i32 = 2_048;
/// Pages in the log after which the writer moves the rest itself (64 MiB).
const FORCE: i32 = 16_384;
/// Bytes that the log's file has from the start: writing within a file needs no change of its length on the disk.
const PRESIZED: u64 = 8 << 20;

/// The writer's end of the checkpoints.
pub(crate) struct Checkpoints {
    pages: Arc<AtomicI32>,
    force_at: i32,
    tell: SyncSender<()>,
    worker: Arc<Worker>,
    thread: JoinHandle<()>,
}

struct Worker {
    connection: Mutex<Connection>,
    shared: Arc<Shared>,
}

impl Worker {
    fn checkpoint(&self) {
        let connection = lock(&self.connection);
        let done: rusqlite::Result<()> = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = done.map_err(Error::from) {
            if is_fatal(&error) {
                self.shared.fail(format!("checkpoint: {error}"));
            } else {
                // Nothing is lost: it all is in the log still, and the next checkpoint tries again.
                tracing::warn!(%error, "checkpoint");
            }
        }
    }

    fn work(&self, told: &Receiver<()>) {
        while told.recv().is_ok() {
            self.checkpoint();
        }
    }
}

impl Checkpoints {
    /// Begins to watch the writer's connection.
    pub(crate) fn start(writer: &mut Connection, connection: Connection, shared: &Arc<Shared>) -> Result<Self> {
        let pages = Arc::new(AtomicI32::new(0));
        let counted = Arc::clone(&pages);
        writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            counted.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        let (tell, told) = sync_channel(1);
        let worker = Arc::new(Worker { connection: Mutex::new(connection), shared: Arc::clone(shared) });
        let thread = {
            let worker = Arc::clone(&worker);
            std::thread::Builder::new()
                .name("chips-checkpoint".to_owned())
                .spawn(move || worker.work(&told))
                .map_err(|error| crate::engine::rows::odd("the system", error))?
        };
        Ok(Self { pages, force_at: FORCE, tell, worker, thread })
    }

    /// To be called after each commit.
    pub(crate) fn after_commit(&mut self) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages >= self.force_at {
            self.worker.checkpoint();
            // A reader with an old view keeps the log from beginning anew; trying each time would help nobody.
            self.force_at = pages.saturating_add(BEGIN);
        } else if pages >= BEGIN {
            match self.tell.try_send(()) {
                // Where the thread has been told already, or has ended with the process, there is nothing to add.
                Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
            }
        }
        if pages < FORCE {
            self.force_at = FORCE;
        }
    }

    /// Ends the thread and closes its connection.
    pub(crate) fn end(self) {
        let Self { tell, thread, .. } = self;
        drop(tell);
        if thread.join().is_err() {
            tracing::warn!("the checkpoint thread panicked");
        }
    }
}

/// Gives the log's file its size beforehand. What lies behind the frames is never read.
pub(crate) fn presize(dir: &Path) -> std::io::Result<()> {
    let mut wal = OpenOptions::new().write(true).open(folder::wal(dir))?;
    let mut at = wal.seek(SeekFrom::End(0))?;
    let zeros = vec![0; 1 << 20];
    while at < PRESIZED {
        let length = zeros.len().min(usize::try_from(PRESIZED - at).unwrap_or(zeros.len()));
        wal.write_all(&zeros[..length])?;
        at += length as u64;
    }
    wal.sync_all()
}
