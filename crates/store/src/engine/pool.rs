//! Connections for reading. None is held across an await: a read runs on a thread for blocking work from its first
//! statement to its last.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shared::lock;
use crate::clock::Stopwatch;
use crate::sql::postgres::may_wait;
use crate::sql::{Connection, Kind, Result};
use crate::sqlite::file::Purpose;
use crate::{Location, OpenError, StoreError};

/// Connections that nobody reads on.
pub(crate) struct Idle {
    /// The one that was used last stands last, and is lent first.
    connections: Mutex<Vec<Unused>>,
    scarce: AtomicBool,
}

struct Unused {
    connection: Connection,
    since: Stopwatch,
}

impl From<Connection> for Unused {
    fn from(connection: Connection) -> Self {
        Self { connection, since: Stopwatch::start() }
    }
}

impl Idle {
    fn take(&self) -> Option<Connection> {
        lock(&self.connections).pop().map(|unused| unused.connection)
    }

    /// Closes what nobody has read on for a while, but for one: a server that gives no more may owe them to another Chips.
    pub(crate) fn rest(&self) {
        let mut connections = lock(&self.connections);
        let unused = connections.iter().take_while(|unused| unused.since.nanoseconds() >= UNUSED_NS).count();
        let but_one = connections.len().saturating_sub(1);
        let closed: Vec<_> = connections.drain(..unused.min(but_one)).collect();
        drop(connections);
        drop(closed);
    }

    /// Closes all of them.
    pub(crate) fn clear(&self) {
        let closed = std::mem::take(&mut *lock(&self.connections));
        drop(closed);
    }

    /// Says whether whoever writes is without a connection: then readers keep none that they do not need, for the server may
    /// have given all that it has.
    pub(crate) fn set_scarce(&self, scarce: bool) {
        self.scarce.store(scarce, Ordering::SeqCst);
        if scarce {
            self.clear();
        }
    }
}

/// How long a connection to a server stays open that nobody reads on, in nanoseconds.
const UNUSED_NS: u64 = 5_000_000_000;

/// How long a database server may take for a read, the wait for a connection included, until whoever reads is told that it does
/// not answer. A file answers, or its disk has an error.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// The readers of a store.
pub(crate) struct Pool {
    location: Arc<Location>,
    idle: Arc<Idle>,
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
        let connections = (0..at_once)
            .map(|_| location.connect(Purpose::Read).map(Unused::from))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Self {
            location: Arc::new(location.clone()),
            idle: Arc::new(Idle { connections: Mutex::new(connections), scarce: AtomicBool::new(false) }),
            free: Arc::new(Semaphore::new(readers)),
            outgrown,
        })
    }

    /// Runs one read on one view of the database.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, StoreError> {
        self.lend(|loan, location| {
            let begun = loan.connection.as_ref().map(Connection::begin_read);
            // A session that ended while nobody used it says nothing about the server as it is now.
            if let Some(Err(error)) = &begun
                && error.kind() == Kind::Gone
            {
                loan.connection = Some(location.connect(Purpose::Read).map_err(|error| StoreError(error.to_string()))?);
            }
            let connection = loan.connection.as_ref().ok_or_else(closed)?;
            in_one_view(connection, read).map_err(|error| StoreError(error.to_string()))
        })
        .await
    }

    /// Runs a read of one statement, which sees one state of the database by itself.
    pub(crate) async fn read_one<T: Send + 'static>(
        &self,
        read: impl Fn(&Connection) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, StoreError> {
        self.lend(move |loan, location| {
            let mut done = read(loan.connection.as_ref().ok_or_else(closed)?);
            if done.as_ref().is_err_and(|error| error.kind() == Kind::Gone) {
                loan.connection = Some(location.connect(Purpose::Read).map_err(|error| StoreError(error.to_string()))?);
                done = read(loan.connection.as_ref().ok_or_else(closed)?);
            }
            done.map_err(|error| StoreError(error.to_string()))
        })
        .await
    }

    async fn lend<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Loan, &Location) -> std::result::Result<T, StoreError> + Send + 'static,
    ) -> std::result::Result<T, StoreError> {
        within(&self.location, READ_WITHIN, self.lend_at_last(read))
            .await
            .unwrap_or_else(|| Err(StoreError(NO_ANSWER.to_owned())))
    }

    async fn lend_at_last<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Loan, &Location) -> std::result::Result<T, StoreError> + Send + 'static,
    ) -> std::result::Result<T, StoreError> {
        if let Some(reason) = self.outgrown.get() {
            return Err(StoreError(reason.clone()));
        }
        let permit = Arc::clone(&self.free).acquire_owned().await.map_err(|_| closed())?;
        let (idle, location) = (Arc::clone(&self.idle), Arc::clone(&self.location));
        let task = tokio::task::spawn_blocking(move || {
            may_wait();
            let taken = idle.take();
            if permit.semaphore().is_closed() {
                return Err(closed());
            }
            let told = |error: OpenError| StoreError(error.to_string());
            let connection = taken.map_or_else(|| location.connect(Purpose::Read).map_err(told), Ok)?;
            let mut loan = Loan { connection: Some(connection), idle, permit };
            read(&mut loan, &location)
        });
        task.await.map_err(|error| StoreError(error.to_string()))?
    }

    /// The connections that nobody reads on.
    pub(crate) fn idle(&self) -> Arc<Idle> {
        Arc::clone(&self.idle)
    }

    /// Closes every connection, those in use as soon as they are given back.
    pub(crate) fn close(&self) {
        let mut idle = lock(&self.idle.connections);
        self.free.close();
        idle.clear();
    }
}

fn closed() -> StoreError {
    StoreError("it is closed".to_owned())
}

/// What is said of a database server that is silent.
pub(crate) const NO_ANSWER: &str = "the database does not answer";

/// What comes of something, or nothing where a database server takes longer than this. It goes on all the same.
pub(crate) async fn within<T>(location: &Location, longest: Duration, done: impl Future<Output = T>) -> Option<T> {
    match location {
        Location::Folder(_) => Some(done.await),
        Location::Database(_) => tokio::time::timeout(longest, done).await.ok(),
    }
}

/// A connection in use. It goes back whatever happens, unless the pool was closed meanwhile.
struct Loan {
    connection: Option<Connection>,
    idle: Arc<Idle>,
    permit: OwnedSemaphorePermit,
}

impl Drop for Loan {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if !connection.is_autocommit() && !connection.rollback() {
            tracing::warn!("a read could not be ended");
        }
        let ended = connection.postgres().is_some_and(|session| session.is_closed());
        let mut idle = lock(&self.idle.connections);
        if !self.permit.semaphore().is_closed() && !ended && !self.idle.scarce.load(Ordering::SeqCst) {
            idle.push(connection.into());
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
