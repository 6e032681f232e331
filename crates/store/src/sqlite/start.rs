//! Opens a folder for serving: takes it, brings the file to this version's layout, reads what is kept in memory, and
//! starts the threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex};

use chips_protocol::{AskId, Timestamp, WorkspaceId};
use rusqlite::Connection;
use tokio::sync::mpsc;

use super::Inner;
use super::checkpoint::{self, Checkpoints};
use super::file::{self, Layout, Purpose};
use super::folder::{self, Hold};
use super::keys::Keys;
use super::outbox;
use super::pool::Pool;
use super::rows::{self, NO_DEADLINE};
use super::scrub;
use super::shared::Shared;
use super::usage::Usages;
use super::watcher::Watcher;
use super::writer::{Message, Staged, State, Writer};
use crate::{Clock, DeadlineChange, OpenError, Options};

/// Opens a folder that has a workspace.
pub(super) fn open(dir: &Path, options: &Options) -> Result<Inner, OpenError> {
    if !file::exists(dir)? {
        return Err(OpenError::Empty(dir.to_owned()));
    }
    let hold = Hold::take(dir)?;
    let mut connection = file::connect(dir, Purpose::Serve)?;
    if file::layout(dir, &connection)? == Layout::None {
        return Err(OpenError::Empty(dir.to_owned()));
    }
    file::migrate(dir, &mut connection)?;
    let path = folder::database(dir);
    let told = |error: &rusqlite::Error| file::told(&path, error);
    if scrub::is_due(&connection).map_err(|error| told(&error))? {
        tracing::info!("an erasure was cut short; what it left in free pages is cleared");
        scrub::scrub(dir, &connection).map_err(|error| told(&error))?;
    }
    let workspaces = workspaces(&connection).map_err(|error| told(&error))?;
    if workspaces.is_empty() {
        return Err(OpenError::Empty(dir.to_owned()));
    }
    if let Err(error) = checkpoint::presize(dir) {
        tracing::warn!(%error, path = %folder::wal(dir).display(), "could not give the write-ahead log its size");
    }

    let last_ts = workspaces.iter().map(|found| found.last_ts).max().unwrap_or_default();
    let clock = Clock::start(&options.time, last_ts);
    let (deadlines, changes) = mpsc::unbounded_channel();
    let load = || -> rusqlite::Result<Arc<Shared>> {
        let (log_id, epoch): (String, i64) =
            connection.query_row("SELECT log_id, admin_epoch FROM meta", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let keys = Keys::load(&connection)?;
        let mut usages = Usages::load(&connection, clock.now())?;
        find_open(&connection, &mut usages, &deadlines)?;
        outbox::let_go(&connection)?;
        let shared =
            Arc::new(Shared::new(clock.clone(), log_id, keys, usages, epoch.unsigned_abs(), deadlines.clone()));
        for found in &workspaces {
            shared.log_from(found.id, found.head).keep_from(found.kept_from);
        }
        Ok(shared)
    };
    let shared = load().map_err(|error| told(&error))?;

    let pool = Pool::open(dir, options.readers)?;
    let beside = file::connect(dir, Purpose::Serve)?;
    let checkpoints = Checkpoints::start(&mut connection, beside, &shared).map_err(|error| told(&error))?;
    let (queue, messages) = std_mpsc::channel::<Message>();
    let writer = Writer {
        connection,
        shared: Arc::clone(&shared),
        state: State::default(),
        staged: Staged::default(),
        checkpoints,
        full: false,
        read_only: false,
        hold,
    };
    let guarded = Arc::clone(&shared);
    let write = move || {
        if catch_unwind(AssertUnwindSafe(|| writer.run(&messages))).is_err() {
            guarded.fail("the writer panicked".to_owned());
            guarded.waiters.end();
        }
    };
    let no_thread = |error: std::io::Error| OpenError::Io { path: path.clone(), reason: error.to_string() };
    let writer = std::thread::Builder::new().name("chips-writer".to_owned()).spawn(write).map_err(no_thread)?;
    let reader = file::connect(dir, Purpose::Read)?;
    let watcher = Watcher::start(reader, Arc::clone(&shared), queue.clone()).map_err(no_thread)?;
    Ok(Inner {
        dir: dir.to_owned(),
        shared,
        pool,
        queue,
        deadlines: Mutex::new(Some(changes)),
        threads: Mutex::new(Some((writer, watcher))),
    })
}

struct Found {
    id: WorkspaceId,
    head: u64,
    last_ts: Timestamp,
    kept_from: u64,
}

fn workspaces(connection: &Connection) -> rusqlite::Result<Vec<Found>> {
    let mut statement = connection.prepare("SELECT no, workspace_id FROM workspaces")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get(1).map(WorkspaceId::from_bytes)?)))?;
    rows.map(|row| {
        let (ws_no, id) = row?;
        let (head, last_ts) = rows::head(connection, ws_no)?;
        Ok(Found { id, head, last_ts, kept_from: rows::kept_from(connection, ws_no)?.0 })
    })
    .collect()
}

/// Counts every open ask, and tells of those that have a deadline.
fn find_open(
    connection: &Connection,
    usages: &mut Usages,
    deadlines: &mpsc::UnboundedSender<DeadlineChange>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "SELECT a.harness_no, a.deadline, w.workspace_id, a.ask_id FROM workspaces w JOIN asks a ON a.ws_no = w.no
         WHERE a.state = 0",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        usages.found_open(row.get(0)?);
        let deadline: i64 = row.get(1)?;
        if deadline != NO_DEADLINE {
            let workspace_id = WorkspaceId::from_bytes(row.get(2)?);
            let ask_id = AskId::from_bytes(row.get(3)?);
            // The receiver is held by whoever opens the store.
            let _ = deadlines.send(DeadlineChange::Opened(Timestamp::from_ms(deadline), workspace_id, ask_id));
        }
    }
    Ok(())
}
