//! Connections for reading. None is held across an await: a read runs on a thread for blocking work from its first
//! statement to its last.

use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::file::{self, Purpose};
use super::shared::lock;
use crate::{OpenError, StoreError};

/// The readers of a store.
pub(crate) struct Pool {
    idle: Arc<Mutex<Vec<Connection>>>,
    free: Arc<Semaphore>,
}

impl Pool {
    /// Opens `readers` connections, at least one.
    pub(crate) fn open(dir: &Path, readers: usize) -> std::result::Result<Self, OpenError> {
        let readers = readers.max(1);
        let connections =
            (0..readers).map(|_| file::connect(dir, Purpose::Read)).collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Self { idle: Arc::new(Mutex::new(connections)), free: Arc::new(Semaphore::new(readers)) })
    }

    /// Runs one read on one view of the database.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, StoreError> {
        let closed = || StoreError("it is closed".to_owned());
        let permit = Arc::clone(&self.free).acquire_owned().await.map_err(|_| closed())?;
        let idle = Arc::clone(&self.idle);
        let task = tokio::task::spawn_blocking(move || {
            let connection = lock(&idle).pop().ok_or_else(closed)?;
            let loan = Loan { connection: Some(connection), idle, permit };
            let Some(connection) = &loan.connection else { return Err(closed()) };
            in_one_view(connection, read).map_err(|error| StoreError(error.to_string()))
        });
        task.await.map_err(|error| StoreError(error.to_string()))?
    }

    /// Closes every connection, those in use as soon as they are given back.
    pub(crate) fn close(&self) {
        let mut idle = lock(&self.idle);
        self.free.close();
        idle.clear();
    }
}

/// A connection in use. It goes back whatever happens, unless the pool was closed meanwhile.
struct Loan {
    connection: Option<Connection>,
    idle: Arc<Mutex<Vec<Connection>>>,
    permit: OwnedSemaphorePermit,
}

impl Drop for Loan {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if !connection.is_autocommit() && connection.execute_batch("ROLLBACK").is_err() {
            tracing::warn!("a read could not be ended");
        }
        let mut idle = lock(&self.idle);
        if !self.permit.semaphore().is_closed() {
            idle.push(connection);
        }
    }
}

/// Several statements of one read see the same state of the database.
fn in_one_view<T>(connection: &Connection, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let done = read(connection)?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(done)
}
