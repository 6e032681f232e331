//! One server among those that share a database: how they take turns, what they tell each other, and what became of a
//! commit whose word was lost.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chips_core::ask;
use chips_protocol::{AskId, Content, Timestamp, WorkspaceId};

use crate::engine::rows::{self, NO_DEADLINE};
use crate::engine::shared::{Log, Shared};
use crate::engine::writer::{Effect, Place, State, Work};
use crate::sql::postgres::{Session, Wanted};
use crate::sql::{Connection, Error, OptionalExtension, Result};
use crate::{DeadlineChange, Location, Record, postgres, secret};

/// How often a group that met another server's is run again at once.
pub(crate) const MEETINGS: u32 = 5;
/// Events that one step of catching up reads.
const STEP: usize = 500;
/// How often, and how far apart, it is tried to find out what became of a commit.
const TRIES: u32 = 16;
const BETWEEN: Duration = Duration::from_millis(500);
/// How long a server that says nothing counts as one that runs.
pub(crate) const SILENT_MS: i64 = 20_000;
/// How long a server that says nothing is remembered.
const FORGOTTEN_MS: i64 = 24 * 3_600 * 1_000;

/// This process, to the others.
pub(crate) struct Node {
    /// Names it for as long as it runs.
    pub(crate) node_id: [u8; 16],
    /// Where writers say that there is something new.
    pub(crate) channel: String,
    /// How much was erased when this process let go of what it held in memory.
    pub(crate) erasures: AtomicI64,
}

impl Node {
    pub(crate) fn new(session: &Session) -> Self {
        Self { node_id: secret::random(), channel: session.channel(), erasures: AtomicI64::new(0) }
    }

    /// Says that this process runs, and up to which erasure it holds nothing in memory any more.
    pub(crate) fn beat(&self, connection: &Connection, erasures: i64) -> Result<()> {
        let now = read_clock(connection)?.ms();
        connection.execute(
            "INSERT INTO nodes (node_id, seen_at, erasures_seen) VALUES (?1, ?2, ?3)
             ON CONFLICT (node_id) DO UPDATE SET seen_at = excluded.seen_at, erasures_seen = excluded.erasures_seen",
            (self.node_id, now, erasures),
        )?;
        connection.execute("DELETE FROM nodes WHERE seen_at < ?1", [now - FORGOTTEN_MS]).map(drop)
    }

    /// Says that this process ends, which wakes its own reader of the log as well.
    pub(crate) fn leave(&self, session: &Session) {
        let told = session.batch(&format!("NOTIFY {}", self.channel)).and_then(|()| {
            session.execute("DELETE FROM nodes WHERE node_id = $1", &[crate::sql::Value::Blob(&self.node_id)])
        });
        if let Err(error) = told {
            tracing::debug!(%error, "could not say that this process ends");
        }
    }
}

/// Begins what a server writes: not on what a newer version has made its own.
pub(crate) fn begin_work(connection: &Connection) -> Result<()> {
    let Some(session) = connection.postgres() else { return connection.begin_write() };
    let fits = session.begin_beside().and_then(postgres::fits);
    if fits.is_err() {
        connection.rollback();
    }
    fits
}

/// Where a newer version has made the schema its own, says so and has this server stop: nothing is read or written any more, streams
/// and waits end, and whoever comes is told.
pub(crate) fn outgrown(connection: &Connection, shared: &Shared) -> Result<bool> {
    match postgres::still_fits(connection) {
        Err(error @ Error::Outgrown { .. }) => {
            let reason = error.to_string();
            tracing::error!(reason, "this server stops reading and writing, and has to be replaced");
            shared.figures.writable.store(false, Ordering::Relaxed);
            // One that stopped before stays stopped.
            let _ = shared.outgrown.set(reason);
            // Whoever follows or waits looks anew whether they may.
            shared.access.send_modify(|_| ());
            Ok(true)
        }
        other => other.map(|()| false),
    }
}

/// The database's clock, as it is at this moment and not when the transaction began.
pub(crate) fn read_clock(connection: &Connection) -> Result<Timestamp> {
    connection
        .query_row("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", [], |row| row.get(0))
        .map(Timestamp::from_ms)
}

/// Takes the turn of appending to a workspace's log until the end of the transaction, and tells where the log stands, and what the
/// database's clock says after the wait for the turn. Nothing where there is no such workspace.
pub(crate) fn take_turn(connection: &Connection, ws_no: i64) -> Result<Option<(u64, Timestamp, Timestamp)>> {
    connection
        .prepare_cached(
            "WITH turn AS MATERIALIZED (SELECT head, last_ts FROM workspaces WHERE no = ?1 FOR NO KEY UPDATE)
             SELECT head, last_ts, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM turn",
        )?
        .query_row([ws_no], |row| {
            let (last_ts, now) = (Timestamp::from_ms(row.get(1)?), Timestamp::from_ms(row.get(2)?));
            Ok((row.get::<_, i64>(0)?.unsigned_abs(), last_ts, now))
        })
        .optional()
}

/// The same for a job, which needs to know the workspace's number as well; it reads the clock by the way.
pub(crate) fn take_turn_in(work: &mut Work<'_>, workspace_id: WorkspaceId) -> Result<Option<(i64, u64, Timestamp)>> {
    let ws_no = match work.state.numbers.get(&workspace_id) {
        Some(ws_no) => *ws_no,
        None => match rows::workspace_no(work.connection, workspace_id)? {
            Some(ws_no) => *work.state.numbers.entry(workspace_id).or_insert(ws_no),
            None => return Ok(None),
        },
    };
    let Some((head, last_ts, now)) = take_turn(work.connection, ws_no)? else {
        work.state.numbers.remove(&workspace_id);
        return Ok(None);
    };
    if work.shared.clock.follows() {
        work.shared.clock.read(now);
    }
    Ok(Some((ws_no, head, last_ts)))
}

/// Takes the turns that a group needs, always in the same order, and reads the clock after the wait for them.
pub(crate) fn begin(work: &mut Work<'_>, workspaces: impl Iterator<Item = WorkspaceId>) -> Result<()> {
    if work.shared.node.is_none() {
        return Ok(());
    }
    for workspace_id in workspaces.collect::<BTreeSet<_>>() {
        // One that is unknown is its own job's failure.
        let Some((ws_no, head, last_ts)) = take_turn_in(work, workspace_id)? else { continue };
        let log = work.shared.log_from(workspace_id, head);
        // Whoever has the turn sees all that was ever committed.
        if head < log.last() {
            return Err(gone_back(work.shared, log.last(), head));
        }
        work.state.places.insert(workspace_id, Place { ws_no, found: head, head, last_ts, log });
    }
    if work.state.places.is_empty() && work.shared.clock.follows() {
        work.shared.clock.read(read_clock(work.connection)?);
    }
    Ok(())
}

/// Writes down how far the logs go now, and has the other servers told once that is committed.
pub(crate) fn publish(work: &Work<'_>) -> Result<()> {
    let Some(node) = &work.shared.node else { return Ok(()) };
    for place in work.state.places.values().filter(|place| place.head > place.found) {
        // The word carries no data: whoever hears it looks how far the logs go.
        work.connection
            .prepare_cached(
                "WITH grown AS (UPDATE workspaces SET head = ?2, last_ts = ?3 WHERE no = ?1 RETURNING no)
                 SELECT pg_notify(?4, '') FROM grown",
            )?
            .query_row((place.ws_no, place.head as i64, place.last_ts.ms(), &node.channel), |_| Ok(()))?;
    }
    Ok(())
}

/// Acts on what left the transaction: what it appended is told as every server tells it, in the order of the log, where others
/// may have come before.
pub(crate) fn committed(connection: &Connection, shared: &Shared, state: &State, effects: Vec<Effect>) {
    let mut told: HashMap<WorkspaceId, Told> = HashMap::new();
    for effect in effects {
        match effect {
            Effect::Appended(_, record) => {
                shared.figures.appended(&record.event);
                told.entry(record.event.envelope.workspace_id).or_default().records.push(record);
            }
            Effect::Deadline(change) => {
                let (DeadlineChange::Opened(_, workspace_id, _) | DeadlineChange::Closed(_, workspace_id, _)) = change;
                told.entry(workspace_id).or_default().deadlines.push(change);
            }
            Effect::Closed(workspace_id, ask_id) => told.entry(workspace_id).or_default().closed.push(ask_id),
            Effect::Access(epoch) => {
                shared.access.send_if_modified(|seen| std::mem::replace(seen, epoch.max(*seen)) < epoch);
            }
            Effect::KeptFrom(log, seq) => log.keep_from(seq),
            // It is in the database.
            Effect::Unkeyed(..) => {}
        }
    }
    for (workspace_id, place) in state.places.iter().filter(|(_, place)| place.head > place.found) {
        let told = told.remove(workspace_id).unwrap_or_default();
        if tell_next(shared, *workspace_id, place, told) {
            continue;
        }
        if let Err(error) = follow(connection, shared, *workspace_id, place.ws_no, &place.log) {
            // The reader of the log comes to it on its own way.
            tracing::debug!(%error, "what was just written could not be read");
        }
    }
}

/// What one transaction did to one log.
#[derive(Default)]
struct Told {
    records: Vec<Arc<Record>>,
    deadlines: Vec<DeadlineChange>,
    closed: Vec<AskId>,
}

/// Tells what this server itself has appended, where that is what comes next, or the reader of the log was quicker and has told it.
/// Otherwise the log has to be read.
fn tell_next(shared: &Shared, workspace_id: WorkspaceId, place: &Place, told: Told) -> bool {
    let _feed = place.log.feed();
    let last = place.log.last();
    if last != place.found {
        return last >= place.head;
    }
    told.records.into_iter().for_each(|record| place.log.push(record));
    for change in told.deadlines {
        // Nobody takes them where nothing is to be closed in time.
        let _ = shared.deadlines.send(change);
    }
    wake(shared, workspace_id, &place.log, told.closed);
    true
}

/// Wakes those who wait for more of a log, or for these asks.
fn wake(shared: &Shared, workspace_id: WorkspaceId, log: &Log, closed: Vec<AskId>) {
    log.wake();
    shared.appended.send_modify(|commits| *commits += 1);
    closed.into_iter().for_each(|ask_id| shared.waiters.closed(workspace_id, ask_id));
}

/// Reads what the log of a workspace has that was not told of yet, and tells it: readers see the records first, then
/// everybody is woken. In the order of the log, whoever wrote it.
pub(crate) fn follow(
    connection: &Connection,
    shared: &Shared,
    workspace_id: WorkspaceId,
    ws_no: i64,
    log: &Log,
) -> Result<()> {
    let _feed = log.feed();
    let mut closed = Vec::new();
    let before = log.last();
    loop {
        let step = step(connection, ws_no, log.last())?;
        let full = step.len() == STEP;
        for (record, deadline) in step {
            if record.seq != log.last() + 1 {
                // What lies between was dropped: it is too old to be kept.
                log.skip_to(record.seq - 1);
            }
            let ask_id = record.event.content.ask_id();
            let change = match &record.event.content {
                Content::QuestionAsk(_) => {
                    ask::deadline(&record.event).map(|deadline| DeadlineChange::Opened(deadline, workspace_id, ask_id))
                }
                Content::QuestionAnswered(_) => {
                    closed.push(ask_id);
                    deadline.map(|deadline| DeadlineChange::Closed(deadline, workspace_id, ask_id))
                }
            };
            log.push(Arc::new(record));
            if let Some(change) = change {
                // Nobody takes them where nothing is to be closed in time.
                let _ = shared.deadlines.send(change);
            }
        }
        if !full {
            break;
        }
    }
    if log.last() > before {
        wake(shared, workspace_id, log, closed);
    }
    Ok(())
}

/// The next records after a `seq`, each that closes an ask with the ask's deadline.
fn step(connection: &Connection, ws_no: i64, after: u64) -> Result<Vec<(Record, Option<Timestamp>)>> {
    connection
        .prepare_cached(
            "SELECT e.pos, h.harness_id, e.body, a.deadline FROM events e JOIN harnesses h ON h.no = e.harness_no
             LEFT JOIN asks a ON a.ws_no = e.ws_no AND a.closed_pos = e.pos
             WHERE e.ws_no = ?4 AND e.pos > ?1 AND e.pos < ?2 ORDER BY e.pos LIMIT ?3",
        )?
        .query_map((rows::pos(ws_no, after), rows::pos(ws_no + 1, 0), STEP as i64, ws_no), |row| {
            let record = rows::record(rows::seq(row.get(0)?), row.get(1)?, row.get(2)?)?;
            let deadline = row.get::<_, Option<i64>>(3)?.filter(|deadline| *deadline != NO_DEADLINE);
            let record = Arc::try_unwrap(record).unwrap_or_else(|shared| Record::clone(&shared));
            Ok((record, deadline.map(Timestamp::from_ms)))
        })?
        .collect()
}

/// Reads every log as far as it goes.
pub(crate) fn follow_all(connection: &Connection, shared: &Shared) -> Result<()> {
    let found: Vec<(i64, WorkspaceId, i64, i64)> = connection
        .prepare_cached("SELECT no, workspace_id, head, kept_from FROM workspaces")?
        .query_map([], |row| Ok((row.get(0)?, WorkspaceId::from_bytes(row.get(1)?), row.get(2)?, row.get(3)?)))?
        .collect::<Result<_>>()?;
    for (ws_no, workspace_id, head, kept_from) in found {
        let log = shared.log(workspace_id);
        if kept_from.unsigned_abs() > log.kept_from() {
            log.keep_from(kept_from.unsigned_abs());
        }
        let last = log.last();
        if head.unsigned_abs() > last {
            follow(connection, shared, workspace_id, ws_no, &log)?;
        } else if head.unsigned_abs() < last {
            // Another thread may have read further meanwhile; the database has that now, unless it is no longer what it was.
            let now: i64 = connection
                .prepare_cached("SELECT head FROM workspaces WHERE no = ?1")?
                .query_row([ws_no], |row| row.get(0))?;
            if now.unsigned_abs() < last {
                return Err(gone_back(shared, last, now.unsigned_abs()));
            }
        }
    }
    Ok(())
}

/// Ends this server: the database was put back to an earlier moment, and what is in memory is of a history that it does not have.
fn gone_back(shared: &Shared, seen: u64, found: u64) -> Error {
    shared.fail(format!(
        "the log ended at {seen} and now ends at {found}: the database was put back to an earlier moment. What it has is \
         served after a new start; give it a new name then, as docs/scaling.md says under Copies"
    ));
    Error::Odd("the database was put back to an earlier moment".to_owned())
}

/// Ends this server where the log has another name than at the start.
pub(crate) fn look_for_name(connection: &Connection, shared: &Shared) -> Result<()> {
    let name: String = connection.prepare_cached("SELECT log_id FROM meta")?.query_row([], |row| row.get(0))?;
    if name != shared.log_id {
        shared.fail(format!(
            "the log was {} and is now {name}: the database was put back, and is served after a new start",
            shared.log_id
        ));
        return Err(Error::Odd("the log has another name".to_owned()));
    }
    Ok(())
}

/// What became of a commit whose word was lost: true where it is written and lasts, false where it certainly is not, nothing
/// where nobody can say. It asks on a new session, waits there until the lost one has given its turn back, and commits a
/// change of its own: where that was waited for, all that came before it was.
pub(crate) fn find_out(location: &Location, shared: &Shared, record: &Record) -> Option<bool> {
    for round in 0..TRIES {
        if round > 0 {
            #[allow(clippy::disallowed_methods)]
            std::thread::park_timeout(BETWEEN);
        }
        match look_up(location, record) {
            Ok(written) => {
                tracing::info!(written, "the outcome of the commit is known");
                return Some(written);
            }
            Err(error) => tracing::warn!(%error, "the outcome of a commit could not be looked up"),
        }
        if shared.has_failed() {
            break;
        }
    }
    None
}

fn look_up(location: &Location, record: &Record) -> Result<bool> {
    let Location::Database(database) = location else {
        return Err(Error::Odd("a folder has no commit whose word could be lost".to_owned()));
    };
    let connection = Connection::from(Session::connect(database, Wanted::Writes)?);
    connection.begin_write()?;
    let found = || -> Result<bool> {
        let envelope = &record.event.envelope;
        let Some(ws_no) = rows::workspace_no(&connection, envelope.workspace_id)? else { return Ok(false) };
        take_turn(&connection, ws_no)?;
        let event_id: Option<[u8; 16]> = connection
            .prepare_cached("SELECT event_id FROM events WHERE ws_no = ?1 AND pos = ?2")?
            .query_row((ws_no, rows::pos(ws_no, record.seq)), |row| row.get(0))
            .optional()?;
        connection.execute("UPDATE workspaces SET head = head WHERE no = ?1", [ws_no])?;
        Ok(event_id == Some(envelope.id.to_bytes()))
    };
    match found() {
        Ok(written) => connection.commit().map(|()| written),
        Err(error) => {
            connection.rollback();
            Err(error)
        }
    }
}
