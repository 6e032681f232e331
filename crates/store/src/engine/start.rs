//! Opens a store for serving: brings it to this version's layout, reads what is kept in memory, and starts the threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex};

use chips_protocol::{AskId, Timestamp, WorkspaceId};
use tokio::sync::mpsc;

use super::keys::Keys;
use super::pool::Pool;
use super::rows::{self, NO_DEADLINE};
use super::shared::Shared;
use super::usage::Usages;
use super::watcher::Watcher;
use super::writer::{Message, Staged, State, Writer};
use super::{Beside, Inner, outbox};
use crate::postgres::node::{self, Node};
use crate::postgres::tail::Tail;
use crate::sql::{self, Connection};
use crate::sqlite::checkpoint::{self, Checkpoints};
use crate::sqlite::file::{self, Layout, Purpose};
use crate::sqlite::folder::{self, Hold};
use crate::sqlite::scrub;
use crate::{Clock, Database, DeadlineChange, Location, OpenError, Options, postgres};

/// A connection that is ready for serving, and what belongs to it.
struct Opened {
    connection: Connection,
    hold: Option<Hold>,
    node: Option<Node>,
}

/// Opens a folder or a database that has a workspace.
pub(super) fn open(location: &Location, options: &Options) -> Result<Inner, OpenError> {
    let Opened { mut connection, hold, node } = match location {
        Location::Folder(dir) => open_folder(dir)?,
        Location::Database(database) => open_database(database)?,
    };
    let told = |error: &sql::Error| location.told(error);
    let (deadlines, changes) = mpsc::unbounded_channel();
    // Where others write meanwhile, all that is kept in memory is of one moment.
    let load = || -> sql::Result<Option<Arc<Shared>>> {
        connection.begin_read()?;
        let workspaces = workspaces(&connection)?;
        if workspaces.is_empty() {
            return Ok(None);
        }
        let last_ts = workspaces.iter().map(|found| found.last_ts).max().unwrap_or_default();
        let clock = match &node {
            Some(_) => Clock::follow(&options.time, node::read_clock(&connection)?, last_ts),
            None => Clock::start(&options.time, last_ts),
        };
        let (log_id, epoch): (String, i64) =
            connection.query_row("SELECT log_id, admin_epoch FROM meta", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let keys = Keys::load(&connection)?;
        let mut usages = match &node {
            Some(_) => Usages::default(),
            None => Usages::load(&connection, clock.now())?,
        };
        find_open(&connection, &mut usages, &deadlines)?;
        let shared = Shared::new(clock, log_id, keys, usages, epoch.unsigned_abs(), deadlines.clone(), node);
        for found in &workspaces {
            shared.log_from(found.id, found.head).keep_from(found.kept_from);
        }
        connection.commit()?;
        Ok(Some(Arc::new(shared)))
    };
    let shared = load().map_err(|error| told(&error))?.ok_or_else(|| OpenError::Empty(location.clone()))?;

    let no_thread = |error: std::io::Error| location.told(&sql::Error::Odd(error.to_string()));
    let pool = Pool::open(location, options.readers, Arc::clone(&shared.outgrown))?;
    let checkpoints = match (location.folder(), connection.sqlite_mut()) {
        (Some(dir), Some(writer)) => {
            // What a process that is gone had claimed. Beside other servers it may be one of theirs, and is free in a minute.
            outbox::let_go(writer).map_err(|error| told(&error.into()))?;
            let beside = file::connect(dir, Purpose::Serve)?;
            Some(Checkpoints::start(writer, beside, &shared).map_err(|error| told(&error))?)
        }
        _ => None,
    };
    let (queue, messages) = std_mpsc::channel::<Message>();
    let writer = Writer {
        connection,
        shared: Arc::clone(&shared),
        state: State::default(),
        staged: Staged::default(),
        location: location.clone(),
        idle: pool.idle(),
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
    let writer = std::thread::Builder::new().name("chips-writer".to_owned()).spawn(write).map_err(no_thread)?;
    let beside = match location {
        Location::Folder(_) => {
            let reader = location.connect(Purpose::Read)?;
            Beside::Watcher(Watcher::start(reader, Arc::clone(&shared), queue.clone()).map_err(no_thread)?)
        }
        Location::Database(_) => {
            let reader = location.connect(Purpose::Serve)?;
            let tail = Tail::start(location.clone(), reader, Arc::clone(&shared), pool.idle(), queue.clone());
            Beside::Tail(tail.map_err(no_thread)?)
        }
    };
    Ok(Inner {
        location: location.clone(),
        shared,
        pool,
        queue,
        deadlines: Mutex::new(Some(changes)),
        threads: Mutex::new(Some((writer, beside))),
    })
}

fn open_folder(dir: &Path) -> Result<Opened, OpenError> {
    if !file::exists(dir)? {
        return Err(OpenError::Empty(dir.into()));
    }
    let hold = Hold::take(dir)?;
    let mut connection = file::connect(dir, Purpose::Serve)?;
    if file::layout(dir, &connection)? == Layout::None {
        return Err(OpenError::Empty(dir.into()));
    }
    file::migrate(dir, &mut connection)?;
    let told = |error: &sql::Error| Location::from(dir).told(error);
    if scrub::is_due(&connection).map_err(|error| told(&error))? {
        tracing::info!("an erasure was cut short; what it left in free pages is cleared");
        scrub::scrub(dir, &connection).map_err(|error| told(&error))?;
    }
    // A folder that was just restored has none before its first write.
    if let Err(error) = checkpoint::presize(dir)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %folder::wal(dir).display(), "could not give the write-ahead log its size");
    }
    Ok(Opened { connection: connection.into(), hold: Some(hold), node: None })
}

fn open_database(database: &Database) -> Result<Opened, OpenError> {
    let mut connection = postgres::open(database)?;
    if postgres::layout(database, &connection)? == Layout::None {
        return Err(OpenError::Empty(database.clone().into()));
    }
    postgres::migrate(database, &mut connection)?;
    let node = connection.postgres().map(Node::new);
    Ok(Opened { connection, hold: None, node })
}

struct Found {
    id: WorkspaceId,
    head: u64,
    last_ts: Timestamp,
    kept_from: u64,
}

fn workspaces(connection: &Connection) -> sql::Result<Vec<Found>> {
    let mut statement = connection.prepare_cached("SELECT no, workspace_id FROM workspaces")?;
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
) -> sql::Result<()> {
    let mut statement = connection.prepare_cached(
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
