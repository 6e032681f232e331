//! The one thread that writes: drains what waits, one transaction, one fdatasync, then tells and wakes.

mod told;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use chips_protocol::{Timestamp, WorkspaceId};
use rusqlite::{ErrorCode, ffi};

use super::pool::Idle;
use super::shared::{Log, Shared, lock};
pub(crate) use super::task::{Call, Command, Task};
use crate::clock::Stopwatch;
use crate::error::OpenError;
use crate::postgres::ahead::{self, Ahead};
use crate::postgres::node;
use crate::sql::{Connection, Error, Kind, Result};
use crate::sqlite::checkpoint::Checkpoints;
use crate::sqlite::file::Purpose;
use crate::sqlite::folder::Hold;
use crate::{DeadlineChange, Location, Record, WriteError};

/// Jobs in one transaction at most.
const GROUP: usize = 8_192;
/// How long a note may wait for a group to be written with.
const LAZY: Duration = Duration::from_millis(200);
/// Groups that were rolled back for want of room are tried again job by job, until this many in a row found none.
const TRIES_WHEN_FULL: usize = 8;

/// What reaches the writer.
pub(crate) enum Message {
    /// Something to carry out.
    Task(Box<dyn Task>),
    /// Notes wait; there was none before.
    Notes,
    /// The end: what was queued before it is written.
    Close,
}

/// What the writer knows of a workspace.
pub(crate) struct Place {
    pub(crate) ws_no: i64,
    /// The last `seq` as it was found in the database.
    pub(crate) found: u64,
    pub(crate) head: u64,
    pub(crate) last_ts: Timestamp,
    pub(crate) log: Arc<Log>,
}

/// What the writer keeps in memory between groups, or beside other servers within one. All of it can be read again.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) places: HashMap<WorkspaceId, Place>,
    pub(crate) random: super::random::Random,
    /// The numbers of workspaces, which never change. Only beside other servers.
    pub(crate) numbers: HashMap<WorkspaceId, i64>,
    /// What was looked up beforehand, and what is yet to be written. Only beside other servers.
    pub(crate) ahead: Ahead,
}

/// What is to be told once the group is committed.
pub(crate) enum Effect {
    Appended(Arc<Log>, Arc<Record>),
    Deadline(DeadlineChange),
    Closed(WorkspaceId, chips_protocol::AskId),
    Access(u64),
    /// The log begins with this `seq`.
    KeptFrom(Arc<Log>, u64),
    /// The event at this place is gone, and with it its key's hash.
    Unkeyed(i64, i64),
}

/// How to take back what a job changed in memory.
pub(crate) enum Undo {
    Head(WorkspaceId, u64, Timestamp),
    Key(i64, i64),
    Asked(i64),
    Closed(i64),
}

/// What one transaction has changed so far.
#[derive(Default)]
pub(crate) struct Staged {
    pub(crate) effects: Vec<Effect>,
    pub(crate) undo: Vec<Undo>,
}

/// An open transaction, with what belongs to it.
pub(crate) struct Work<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) shared: &'a Shared,
    pub(crate) state: &'a mut State,
    pub(crate) staged: &'a mut Staged,
    savepoint: Savepoint,
}

/// Whether a job that fails is taken back alone. A savepoint costs a copy of every page that the job changes, so a
/// group is tried without any first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Savepoint {
    /// Everything is rolled back when a job fails.
    None,
    /// Made before the job's first write: most refusals and replays write nothing.
    Wanted,
    Made,
}

impl Work<'_> {
    /// To be called before each write.
    pub(crate) fn write(&mut self) -> Result<()> {
        if self.savepoint == Savepoint::Wanted {
            self.connection.prepare_cached("SAVEPOINT job")?.execute([])?;
            self.savepoint = Savepoint::Made;
        }
        Ok(())
    }

    /// Takes back what was changed in memory since there were this many things to undo.
    fn take_back(&mut self, effects: usize, undo: usize) {
        self.staged.effects.truncate(effects);
        for step in self.staged.undo.drain(undo..).rev() {
            match step {
                Undo::Head(workspace_id, head, last_ts) => {
                    if let Some(place) = self.state.places.get_mut(&workspace_id) {
                        (place.head, place.last_ts) = (head, last_ts);
                    }
                }
                Undo::Key(hash, pos) => {
                    self.shared.keys.write().unwrap_or_else(std::sync::PoisonError::into_inner).remove(hash, pos);
                }
                Undo::Asked(harness_no) => lock(&self.shared.usages).take_back_ask(harness_no),
                Undo::Closed(harness_no) => lock(&self.shared.usages).take_back_close(harness_no),
            }
        }
    }
}

/// What became of a transaction.
enum Attempt {
    /// It is in the log; for each job that failed and was left out, why.
    Committed(Vec<Option<Error>>),
    /// Nothing of it is, for certain.
    RolledBack(Error),
    /// Nobody can say.
    Unknown(Error),
}

/// The writer, with all that it owns.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: State,
    pub(crate) staged: Staged,
    pub(crate) location: Location,
    /// The readers' connections.
    pub(crate) idle: Arc<Idle>,
    /// What only a file has.
    pub(crate) checkpoints: Option<Checkpoints>,
    pub(crate) full: bool,
    pub(crate) read_only: bool,
    /// Given back after the connection is closed: whoever takes the folder next finds nothing of this process in it.
    pub(crate) hold: Option<Hold>,
}

impl Writer {
    /// Works until it is told to end or nobody can send any more.
    pub(crate) fn run(mut self, messages: &Receiver<Message>) {
        let mut tasks: Vec<Box<dyn Task>> = Vec::new();
        let mut noted = false;
        let mut open = true;
        while open {
            let first = if noted {
                match messages.recv_timeout(LAZY) {
                    Ok(message) => Some(message),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => Some(Message::Close),
                }
            } else {
                Some(messages.recv().unwrap_or(Message::Close))
            };
            let flush = first.is_none();
            let mut next = first;
            while let Some(message) = next {
                match message {
                    Message::Task(task) => {
                        self.shared.figures.queued.fetch_sub(1, Ordering::Relaxed);
                        tasks.push(task);
                    }
                    Message::Notes => noted = true,
                    Message::Close => open = false,
                }
                next = if open && tasks.len() < GROUP { messages.try_recv().ok() } else { None };
            }
            if flush || !open || !tasks.is_empty() {
                tasks.extend(self.shared.take_notes());
                noted = false;
            }
            self.group(&mut tasks);
        }
        self.shared.waiters.end();
        let Self { connection, checkpoints, hold, .. } = self;
        if let Some(checkpoints) = checkpoints {
            checkpoints.end();
        }
        if let (Some(node), Some(session), None) =
            (&self.shared.node, connection.postgres(), self.shared.outgrown.get())
        {
            node.leave(session);
        }
        if let Err(error) = connection.close() {
            tracing::warn!(%error, "closing the store");
        }
        drop(hold);
    }

    /// Writes these tasks, tells each what became of it, and leaves none.
    fn group(&mut self, tasks: &mut Vec<Box<dyn Task>>) {
        if tasks.is_empty() {
            return;
        }
        if self.shared.has_failed() {
            tasks.drain(..).for_each(|task| task.tell(Err(WriteError::Failed)));
            return;
        }
        let mut attempt = self.attempt(tasks, Savepoint::None);
        // Two servers met: whoever was taken back comes again.
        for _ in 0..node::MEETINGS {
            if !matches!(&attempt, Attempt::RolledBack(error) if self.shared.node.is_some() && error.kind() == Kind::Again)
            {
                break;
            }
            attempt = self.attempt(tasks, Savepoint::None);
        }
        if let Attempt::RolledBack(error) = &attempt
            && tasks.len() > 1
            && worth_splitting(error)
        {
            tracing::debug!(%error, jobs = tasks.len(), "a group was rolled back and is tried again with savepoints");
            attempt = self.attempt(tasks, Savepoint::Wanted);
        }
        match attempt {
            Attempt::Committed(errors) => {
                self.committed(tasks.len());
                self.tell_each(tasks, errors);
            }
            Attempt::RolledBack(error) if tasks.len() == 1 || !worth_splitting(&error) => {
                self.tell_all(tasks, &error);
            }
            Attempt::RolledBack(error) => {
                tracing::warn!(%error, jobs = tasks.len(), "a group found no room and is tried again job by job");
                self.one_by_one(tasks, error);
            }
            Attempt::Unknown(error) if self.shared.node.is_some() => self.find_out(tasks, &error),
            Attempt::Unknown(error) => self.fail(tasks, &error),
        }
    }

    /// The word on a commit was lost. What was written is looked up; where nobody can say, whoever waits is told to try again,
    /// which the key makes safe.
    fn find_out(&mut self, tasks: &mut Vec<Box<dyn Task>>, error: &Error) {
        tracing::warn!(%error, jobs = tasks.len(), "the outcome of a commit is not known; it is looked up");
        let appended = self.staged.effects.iter().find_map(|effect| match effect {
            Effect::Appended(_, record) => Some(Arc::clone(record)),
            _ => None,
        });
        let written = appended.and_then(|record| node::find_out(&self.location, &self.shared, &record));
        self.staged.undo.clear();
        if written == Some(true) {
            // What keeps it from one is told to those who come next.
            let _ = self.reconnect();
            self.committed(tasks.len());
            self.tell_each(tasks, Vec::new());
            return;
        }
        self.staged.effects.clear();
        self.tell_all(tasks, error);
    }

    /// A new session with the database. An error where its server can be reached and must not be written to; that it can't be
    /// reached shows with the session that has ended.
    fn reconnect(&mut self) -> Result<()> {
        match self.location.connect(Purpose::Serve) {
            Ok(connection) => {
                self.connection = connection;
                self.idle.set_scarce(false);
                Ok(())
            }
            Err(OpenError::Unfit { reason, .. }) => {
                tracing::warn!(reason, "PostgreSQL is not as Chips needs it");
                Err(Error::Unfit(reason))
            }
            Err(error) => {
                tracing::warn!(%error, "the database can't be reached");
                self.idle.set_scarce(true);
                Ok(())
            }
        }
    }

    /// After a group that found no room: what still fits is written.
    fn one_by_one(&mut self, tasks: &mut Vec<Box<dyn Task>>, mut error: Error) {
        let mut in_a_row = 0;
        let mut rest = std::mem::take(tasks).into_iter();
        for task in rest.by_ref() {
            let mut one = vec![task];
            match self.attempt(&mut one, Savepoint::None) {
                Attempt::Committed(errors) => {
                    in_a_row = if errors.iter().any(Option::is_some) { in_a_row + 1 } else { 0 };
                    self.committed(1);
                    self.tell_each(&mut one, errors);
                }
                Attempt::RolledBack(why) => {
                    in_a_row += 1;
                    self.tell_all(&mut one, &why);
                    error = why;
                }
                Attempt::Unknown(why) if self.shared.node.is_some() => {
                    self.find_out(&mut one, &why);
                    error = why;
                    break;
                }
                Attempt::Unknown(why) => {
                    one.extend(rest);
                    self.fail(&mut one, &why);
                    return;
                }
            }
            if in_a_row >= TRIES_WHEN_FULL {
                break;
            }
        }
        self.tell_all(&mut rest.collect(), &error);
    }

    /// One transaction with all of the tasks in it.
    fn attempt(&mut self, tasks: &mut [Box<dyn Task>], savepoint: Savepoint) -> Attempt {
        self.rehearse();
        let watch = Stopwatch::start();
        let mut begun = node::begin_work(&self.connection);
        if self.shared.node.is_some() {
            self.state.places.clear();
            self.state.ahead = Ahead::default();
            // The session may have ended long ago: that says nothing about the database as it is now.
            if begun.as_ref().is_err_and(|error| error.kind() == Kind::Gone) {
                begun = self.reconnect().and_then(|()| node::begin_work(&self.connection));
            }
        }
        let Self { connection, shared, state, staged, .. } = self;
        if let Err(error) = begun {
            return if is_fatal(&error) { Attempt::Unknown(error) } else { Attempt::RolledBack(error) };
        }
        let mut work = Work { connection, shared, state, staged, savepoint: Savepoint::None };
        if let Err(error) = node::begin(&mut work, tasks.iter().filter_map(|task| task.workspace())) {
            connection.rollback();
            return Attempt::RolledBack(error);
        }
        let mut errors = Vec::with_capacity(tasks.len());
        for at in 0..tasks.len() {
            work.savepoint = savepoint;
            let (effects, undo) = (work.staged.effects.len(), work.staged.undo.len());
            // A statement that fails ends the whole transaction on PostgreSQL, one that reads as well.
            let ready = match (&work.shared.node, savepoint) {
                (None, _) => Ok(()),
                (Some(_), Savepoint::None) => ahead::prepare(&mut work, tasks, at),
                (Some(_), _) => work.write(),
            };
            let ran = ready.and_then(|()| tasks[at].run(&mut work)).and_then(|()| match work.savepoint {
                Savepoint::Made => connection.prepare_cached("RELEASE job")?.execute([]).map(drop),
                _ => Ok(()),
            });
            let Err(error) = ran else {
                errors.push(None);
                continue;
            };
            // SQLite may have rolled the whole transaction back by itself.
            let gone = connection.is_autocommit();
            let rolled_back = !gone
                && match work.savepoint {
                    Savepoint::Made => connection.execute_batch("ROLLBACK TO job; RELEASE job").is_ok(),
                    Savepoint::Wanted => true,
                    Savepoint::None => false,
                };
            if is_fatal(&error) || !rolled_back {
                work.take_back(0, 0);
                let certain = connection.rollback();
                return if is_fatal(&error) || !certain { Attempt::Unknown(error) } else { Attempt::RolledBack(error) };
            }
            work.take_back(effects, undo);
            errors.push(Some(error));
        }
        let published = ahead::settle(&mut work).and_then(|()| node::publish(&work));
        let committed =
            published.and_then(|()| shared.rehearsal.commit(tasks.len())).and_then(|()| connection.commit());
        if let Err(error) = committed {
            if matches!(error, Error::Unknown(_)) {
                return Attempt::Unknown(error);
            }
            work.take_back(0, 0);
            if work.shared.node.is_some() {
                connection.rollback();
                return Attempt::RolledBack(error);
            }
            if !rolls_back(&error) {
                return Attempt::Unknown(error);
            }
            let certain = connection.rollback();
            return if certain { Attempt::RolledBack(error) } else { Attempt::Unknown(error) };
        }
        work.staged.undo.clear();
        shared.figures.commit_time.observe(watch.nanoseconds());
        Attempt::Committed(errors)
    }

    /// Acts on what left the transaction: readers see the records first, then everybody is woken.
    fn committed(&mut self, jobs: usize) {
        let shared = &self.shared;
        shared.figures.commits.fetch_add(1, Ordering::Relaxed);
        shared.figures.jobs.fetch_add(jobs as u64, Ordering::Relaxed);
        shared.figures.group_size.observe(jobs as u64);
        // A commit of nothing, or of what fitted into pages that are free already, says nothing about the next ask.
        if self.staged.effects.iter().any(|effect| matches!(effect, Effect::Appended(..))) {
            self.taken();
        }
        if shared.node.is_some() {
            let effects = std::mem::take(&mut self.staged.effects);
            node::committed(&self.connection, shared, &self.state, effects);
            return;
        }
        let mut logs: Vec<Arc<Log>> = Vec::new();
        let mut closed = Vec::new();
        for effect in self.staged.effects.drain(..) {
            match effect {
                Effect::Appended(log, record) => {
                    shared.figures.appended(&record.event);
                    log.push(record);
                    if !logs.iter().any(|known| Arc::ptr_eq(known, &log)) {
                        logs.push(log);
                    }
                }
                Effect::Deadline(change) => {
                    // Nobody takes them where nothing is to be closed in time.
                    let _ = shared.deadlines.send(change);
                }
                Effect::Closed(workspace_id, ask_id) => closed.push((workspace_id, ask_id)),
                Effect::Access(epoch) => {
                    shared.access.send_replace(epoch);
                }
                Effect::KeptFrom(log, seq) => log.keep_from(seq),
                Effect::Unkeyed(hash, pos) => {
                    shared.keys.write().unwrap_or_else(std::sync::PoisonError::into_inner).remove(hash, pos);
                }
            }
        }
        logs.iter().for_each(|log| log.wake());
        if !logs.is_empty() {
            shared.appended.send_modify(|commits| *commits += 1);
        }
        closed.into_iter().for_each(|(workspace_id, ask_id)| shared.waiters.closed(workspace_id, ask_id));
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.after_commit();
        }
    }

    /// Lets the database grow no further, or again, where a test wants that.
    fn rehearse(&mut self) {
        let Some(connection) = self.connection.sqlite() else { return };
        let read_only = self.shared.rehearsal.is_read_only();
        if read_only != self.read_only {
            self.read_only = read_only;
            if let Err(error) = connection.pragma_update(None, "query_only", read_only) {
                tracing::warn!(%error, "rehearsing a file that can't be written");
            }
        }
        let full = self.shared.rehearsal.is_full();
        if full != self.full {
            self.full = full;
            let pages: rusqlite::Result<i64> = connection.pragma_query_value(None, "page_count", |row| row.get(0));
            let limit = if full { pages.unwrap_or(1) } else { i64::from(u32::MAX - 1) };
            if let Err(error) = connection.pragma_update_and_check(None, "max_page_count", limit, |_| Ok(())) {
                tracing::warn!(%error, "rehearsing a full disk");
            }
        }
    }
}

/// Whether the process must end, wherever the error came up: what is on the disk is not known any more.
pub(crate) fn is_fatal(error: &Error) -> bool {
    matches!(
        error.sqlite(),
        Some((ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _))
            | Some((_, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
    )
}

/// Whether a commit that failed with this certainly did nothing.
fn rolls_back(error: &Error) -> bool {
    matches!(error.sqlite(), Some((ErrorCode::DiskFull | ErrorCode::DatabaseBusy, _)))
}

/// Whether some of a group may get through where the whole did not.
fn worth_splitting(error: &Error) -> bool {
    !matches!(error.kind(), Kind::Busy | Kind::Gone | Kind::Again | Kind::Outgrown)
}
