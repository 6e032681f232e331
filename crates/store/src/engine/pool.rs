//! Connections for reading. None is held across an await: a read runs on a thread for blocking work from its first
//! statement to its last.

use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shared::lock;
use crate::sql::postgres::may_wait;
use crate::sql::{Connection, Kind, Result};
use crate::sqlite::file::Purpose;
use crate::{Location, OpenError, StoreError};

/// The readers of a store.
pub(crate) struct Pool {
    location: Arc<Location>,
    idle: Arc<Mutex<Vec<Connection>>>,
    free: Arc<Semaphore>,
    /// Why nothing is read any more.
    outgrown: Arc<OnceLock<String>>,
}

impl Pool {
    /// Makes room for so many connections, at least one. Those to a file are opened at once, those to a server when they are
    /// wanted first.
    pub(crate) fn open(
        location: &Location,
        readers: usize,
        outgrown: Arc<OnceLock<String>>,
    ) -> std::result::Result<Self, OpenError> {
        let readers = readers.max(1);
        let at_once = if location.folder().is_some() { readers } else { 1 };
        let connections =
            (0..at_once).map(|_| location.connect(Purpose::Read)).collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Self {
            location: Arc::new(location.clone()),
            idle: Arc::new(Mutex::new(connections)),
            free: Arc::new(Semaphore::new(readers)),
            outgrown,
        })
    }

    /// Runs one read on one view of the database.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, StoreError> {
        let closed = || StoreError("it is closed".to_owned());
        if let Some(reason) = self.outgrown.get() {
            return Err(StoreError(reason.clone()));
        }
        let permit = Arc::clone(&self.free).acquire_owned().await.map_err(|_| closed())?;
        let (idle, location) = (Arc::clone(&self.idle), Arc::clone(&self.location));
        let task = tokio::task::spawn_blocking(move || {
            may_wait();
            let taken = lock(&idle).pop();
            if permit.semaphore().is_closed() {
                return Err(closed());
            }
            let told = |error: OpenError| StoreError(error.to_string());
            let connection = taken.map_or_else(|| location.connect(Purpose::Read).map_err(told), Ok)?;
            let mut loan = Loan { connection: Some(connection), idle, permit };
            let begun = loan.connection.as_ref().map(Connection::begin_read);
            // A session that ended while nobody used it says nothing about the server as it is now.
            if let Some(Err(error)) = &begun
                && error.kind() == Kind::Gone
            {
                loan.connection = Some(location.connect(Purpose::Read).map_err(told)?);
            }
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
        if !connection.is_autocommit() && !connection.rollback() {
            tracing::warn!("a read could not be ended");
        }
        let ended = connection.postgres().is_some_and(|session| session.is_closed());
        let mut idle = lock(&self.idle);
        if !self.permit.semaphore().is_closed() && !ended {
            idle.push(connection);
        }
    }
}

/// Several statements of one read see the same state of the database.
fn in_one_view<T>(connection: &Connection, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    if connection.is_autocommit() {
        connection.begin_read()?;
    }
    let done = read(connection)?;
    connection.commit()?;
    Ok(done)
}
