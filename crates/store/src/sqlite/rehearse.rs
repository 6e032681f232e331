//! Faults that can't be had at will: a test makes the writer meet them.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rusqlite::ffi;

/// Which faults the writer is to meet. Nothing of it is set outside tests.
#[derive(Debug, Default)]
pub struct Rehearsal {
    full: AtomicBool,
    commit: AtomicI32,
}

impl Rehearsal {
    /// The database may grow no further (as on a full disk), or may grow again.
    pub fn full(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    /// The next commit finds the disk full.
    pub fn full_at_commit(&self) {
        self.commit.store(ffi::SQLITE_FULL, Ordering::SeqCst);
    }

    /// The fsync of the next commit fails.
    pub fn fsync_fails(&self) {
        self.commit.store(ffi::SQLITE_IOERR_FSYNC, Ordering::SeqCst);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// What this commit is to meet instead of happening.
    pub(crate) fn commit(&self) -> rusqlite::Result<()> {
        match self.commit.load(Ordering::Relaxed) {
            0 => Ok(()),
            code => {
                self.commit.store(0, Ordering::SeqCst);
                Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("rehearsed".to_owned())))
            }
        }
    }
}
