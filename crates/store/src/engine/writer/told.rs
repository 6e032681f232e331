//! Tells those who wait what became of their jobs, and the operator whether writes are taken.

use std::sync::atomic::Ordering;

use super::{Task, Writer};
use crate::WriteError;
use crate::engine::LEAST_ROOM;
use crate::sql::{Error, Kind};
use crate::sqlite::folder;

/// Whole seconds after which a write that could not be taken may be tried again.
const RETRY_AFTER_S: u64 = 5;

impl Writer {
    /// An event was written. After one that could not be, that counts where the next would find room too: a small answer still fits into
    /// a page that is there on a full disk.
    pub(super) fn taken(&self) {
        let writable = &self.shared.figures.writable;
        if !writable.load(Ordering::Relaxed) && self.has_room() {
            writable.store(true, Ordering::Relaxed);
        }
    }

    fn has_room(&self) -> bool {
        let free = self.location.folder().and_then(folder::free);
        !self.shared.rehearsal.is_full() && free.is_none_or(|free| free >= LEAST_ROOM)
    }

    /// After a commit: each job is told that it is in, or why it was left out.
    pub(super) fn tell_each(&self, tasks: &mut Vec<Box<dyn Task>>, errors: Vec<Option<Error>>) {
        for (task, error) in tasks.drain(..).zip(errors.into_iter().chain(std::iter::repeat_with(|| None))) {
            match error {
                None => task.tell(Ok(())),
                Some(error) => self.lost(task, &error),
            }
        }
    }

    /// Nothing of them was written.
    pub(super) fn tell_all(&self, tasks: &mut Vec<Box<dyn Task>>, error: &Error) {
        tasks.drain(..).for_each(|task| self.lost(task, error));
    }

    /// A job was not written, which is logged of whoever asked for it.
    fn lost(&self, task: Box<dyn Task>, error: &Error) {
        self.shared.figures.writable.store(false, Ordering::Relaxed);
        let warn = || tracing::warn!(%error, "a job could not be written");
        task.span().map_or_else(warn, |span| span.in_scope(warn));
        task.tell(Err(unavailable(error)));
    }

    /// Nobody can say what is on the disk: nothing is written any more.
    pub(super) fn fail(&mut self, tasks: &mut Vec<Box<dyn Task>>, error: &Error) {
        self.shared.fail(error.to_string());
        tasks.drain(..).for_each(|task| task.tell(Err(WriteError::Failed)));
    }
}

fn unavailable(error: &Error) -> WriteError {
    let folder = error.sqlite().is_some();
    let reason = match error.kind() {
        Kind::Full => "the disk is full".to_owned(),
        Kind::Busy if folder => "another process holds the database".to_owned(),
        Kind::ReadOnly if folder => "the data folder can't be written".to_owned(),
        Kind::Busy => "another process holds what this one needs of the database".to_owned(),
        Kind::ReadOnly => "the database can't be written: it is a standby now, or set to be read alone".to_owned(),
        Kind::Gone if matches!(error, Error::Unfit(_)) => format!("PostgreSQL is not as Chips needs it: {error}"),
        Kind::Gone => "the database can't be reached".to_owned(),
        Kind::Again | Kind::Duplicate | Kind::Outgrown | Kind::Other => error.to_string(),
    };
    WriteError::Unavailable { reason, retry_after_s: RETRY_AFTER_S }
}
