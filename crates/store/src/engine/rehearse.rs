//! Faults that can't be had at will: a test makes the writer meet them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::ffi;

use super::shared::lock;

/// Which faults the writer is to meet. Nothing of it is set outside tests.
#[derive(Debug, Default)]
pub struct Rehearsal {
    full: AtomicBool,
    read_only: AtomicBool,
    /// An error of SQLite, for the next commit of at least this many jobs.
    commit: Mutex<Option<(i32, usize)>>,
}

impl Rehearsal {
    /// The database may grow no further (as on a full disk), or may grow again.
    pub fn full(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    /// The database can't be written, as on a file system that was mounted anew for reading, or can be again.
    pub fn read_only(&self, read_only: bool) {
        self.read_only.store(read_only, Ordering::SeqCst);
    }

    /// The next commit of at least this many jobs finds the disk full.
    pub fn full_at_commit(&self, jobs: usize) {
        *lock(&self.commit) = Some((ffi::SQLITE_FULL, jobs));
    }

    /// The fsync of the next commit fails.
    pub fn fsync_fails(&self) {
        *lock(&self.commit) = Some((ffi::SQLITE_IOERR_FSYNC, 1));
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Relaxed)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// What a commit of this many jobs is to meet instead of happening.
    pub(crate) fn commit(&self, jobs: usize) -> crate::sql::Result<()> {
        match lock(&self.commit).take_if(|(_, least)| *least <= jobs) {
            None => Ok(()),
            Some((code, _)) => {
                Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("rehearsed".to_owned())).into())
            }
        }
    }
}
