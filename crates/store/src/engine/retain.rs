//! Dropping what is older than is kept: a prefix of each log, and what is derived from it.
//!
//! The log begins later from one commit to the next: that is one number. What lies before is deleted after it in bounded
//! steps. An ask whose `question.answered` is still in the log stays whole beside it until that one goes too.

use chips_core::Refusal;
use chips_protocol::{Timestamp, WorkspaceId};

use super::rows;
use super::writer::{Command, Effect, Work};
use crate::DropPlace;
use crate::sql::{Connection, OptionalExtension, Result};

/// Asks that one step deletes at most.
const ASKS: usize = 256;
/// Bytes of JSON after which a step deletes no more.
const BYTES: i64 = 4 << 20;
/// Rows that one step looks through at most.
const ROWS: i64 = 4_000;

/// A workspace and the `seq` that its log may begin with.
pub(crate) struct Cut {
    ws_no: i64,
    workspace_id: WorkspaceId,
    kept_from: u64,
}

/// The next workspace after this number, and what of its log may go: everything up to the first event that is younger than
/// `before`, belongs to an ask that is open, or was not gone through for what is to be said.
///
/// Events are appended with a `ts` that never goes back, and a closed ask stays closed: what may go now may go later.
pub(crate) fn cut(connection: &Connection, after: i64, before: Timestamp) -> Result<Option<Cut>> {
    let next: Option<(i64, [u8; 16])> = connection
        .prepare_cached("SELECT no, workspace_id FROM workspaces WHERE no > ?1 ORDER BY no LIMIT 1")?
        .query_row([after], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((ws_no, workspace_id)) = next else { return Ok(None) };
    let (kept_from, _) = rows::kept_from(connection, ws_no)?;
    let (head, _) = rows::head(connection, ws_no)?;
    let mut young = first_after(connection, ws_no, (kept_from, head), before)?;
    let open: Option<i64> = connection
        .prepare_cached("SELECT min(pos) FROM asks INDEXED BY asks_open WHERE ws_no = ?1 AND state = 0")?
        .query_row([ws_no], |row| row.get(0))?;
    let untold: Option<i64> = connection
        .prepare_cached("SELECT seq + 1 FROM outbox_cursors WHERE ws_no = ?1")?
        .query_row([ws_no], |row| row.get(0))
        .optional()?;
    young = open.map(rows::seq).into_iter().chain(untold.map(i64::unsigned_abs)).fold(young, u64::min);
    Ok(Some(Cut { ws_no, workspace_id: WorkspaceId::from_bytes(workspace_id), kept_from: young.max(kept_from) }))
}

/// The first event of the log, between these two, whose `ts` is later than `before`; the one after the last where none is.
fn first_after(connection: &Connection, ws_no: i64, log: (u64, u64), before: Timestamp) -> Result<u64> {
    let mut ts = connection.prepare_cached("SELECT ts FROM events WHERE ws_no = ?1 AND pos = ?2")?;
    let (mut low, mut high) = (log.0, log.1 + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let at: i64 = ts.query_row((ws_no, rows::pos(ws_no, middle)), |row| row.get(0))?;
        if at > before.ms() {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

/// Lets a log begin later. Gives how many events it lost.
pub(crate) struct BeginLater(pub(crate) Cut);

impl Command for BeginLater {
    type Done = u64;

    fn workspace(&self) -> Option<WorkspaceId> {
        Some(self.0.workspace_id)
    }

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<u64, Refusal>> {
        let Cut { ws_no, workspace_id, kept_from } = self.0;
        let (begins, _) = rows::kept_from(work.connection, ws_no)?;
        if kept_from <= begins {
            return Ok(Ok(0));
        }
        work.write()?;
        work.connection
            .prepare_cached(
                "UPDATE workspaces SET kept_from = ?2,
                     dropped_ts = (SELECT ts FROM events WHERE ws_no = ?1 AND pos = ?3) WHERE no = ?1",
            )?
            .execute((ws_no, kept_from as i64, rows::pos(ws_no, kept_from - 1)))?;
        work.staged.effects.push(Effect::KeptFrom(work.shared.log(workspace_id), kept_from));
        Ok(Ok(kept_from - begins))
    }
}

/// Deletes some of what lies before the log, after this place. Gives where the next step begins; nothing at the end.
pub(crate) struct DeleteAsks {
    pub(crate) ws_no: i64,
    pub(crate) after: i64,
}

impl Command for DeleteAsks {
    type Done = Option<i64>;

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<Option<i64>, Refusal>> {
        work.write()?;
        // What is dropped is overwritten in the file, too; nothing else needs that, and it costs.
        set_secure_delete(work.connection, true)?;
        let deleted = self.delete(work);
        set_secure_delete(work.connection, false)?;
        deleted.map(Ok)
    }
}

fn set_secure_delete(connection: &Connection, on: bool) -> Result<()> {
    match connection.sqlite() {
        Some(file) => Ok(file.pragma_update_and_check(None, "secure_delete", on, |_| Ok(()))?),
        // PostgreSQL overwrites what was deleted in its own time.
        None => Ok(()),
    }
}

impl DeleteAsks {
    fn delete(&self, work: &mut Work<'_>) -> Result<Option<i64>> {
        let connection = work.connection;
        let (kept_from, _) = rows::kept_from(connection, self.ws_no)?;
        let end = rows::pos(self.ws_no, kept_from);
        let looked: Vec<(i64, Option<i64>, i64)> = connection
            .prepare_cached(
                "SELECT a.pos, a.closed_pos, octet_length(q.body) + coalesce(octet_length(c.body), 0) FROM asks a NOT INDEXED
                 JOIN events q ON q.ws_no = a.ws_no AND q.pos = a.pos
                 LEFT JOIN events c ON c.ws_no = a.ws_no AND c.pos = a.closed_pos
                 WHERE a.ws_no = ?4 AND a.pos > ?1 AND a.pos < ?2 ORDER BY a.pos LIMIT ?3",
            )?
            .query_map((self.after, end, ROWS, self.ws_no), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_>>()?;
        let (mut deleted, mut bytes, mut last) = (0, 0, None);
        for (pos, closed_pos, length) in looked {
            last = Some(pos);
            let Some(closed_pos) = closed_pos.filter(|closed_pos| *closed_pos < end) else { continue };
            self.delete_ask(work, pos, closed_pos)?;
            deleted += 1;
            bytes += length;
            if deleted == ASKS || bytes >= BYTES {
                break;
            }
        }
        Ok(last)
    }

    fn delete_ask(&self, work: &mut Work<'_>, pos: i64, closed_pos: i64) -> Result<()> {
        let connection = work.connection;
        // In a file they are narrower, and their place says whose they are.
        let keys = if connection.is_postgres() {
            "DELETE FROM keys WHERE pos IN (?1, ?2) AND ws_no = ?3 RETURNING hash, pos"
        } else {
            "DELETE FROM keys WHERE pos IN (?1, ?2) AND pos >> 40 = ?3 RETURNING hash, pos"
        };
        let mut keys = connection.prepare_cached(keys)?;
        let keys = keys.query_map((pos, closed_pos, self.ws_no), |row| Ok((row.get(0)?, row.get(1)?)))?;
        for key in keys.collect::<Result<Vec<(i64, i64)>>>()? {
            work.staged.effects.push(Effect::Unkeyed(key.0, key.1));
        }
        for sql in [
            "DELETE FROM outbox WHERE ws_no = ?1 AND ask_pos = ?2",
            "DELETE FROM attempts WHERE ws_no = ?1 AND ask_pos = ?2",
            "DELETE FROM seen WHERE ws_no = ?1 AND ask_pos = ?2",
        ] {
            connection.prepare_cached(sql)?.execute((self.ws_no, pos))?;
        }
        connection
            .prepare_cached("DELETE FROM events WHERE ws_no = ?1 AND pos IN (?2, ?3)")?
            .execute((self.ws_no, pos, closed_pos))?;
        connection
            .prepare_cached("DELETE FROM asks WHERE ws_no = ?1 AND pos = ?2")?
            .execute((self.ws_no, pos))
            .map(drop)
    }
}

/// Deletes runs that ended before a time and have no ask any more, after this number. Gives where the next step begins; nothing at
/// the end.
pub(crate) struct DeleteRuns {
    pub(crate) after: i64,
    pub(crate) before: Timestamp,
}

impl Command for DeleteRuns {
    type Done = Option<i64>;

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<Option<i64>, Refusal>> {
        let connection = work.connection;
        let looked: Vec<(i64, i64, bool)> = connection
            .prepare_cached(
                "SELECT no, ws_no, coalesce(ended_at <= ?2, 1 = 0) AND (
                     SELECT min(pos) FROM asks INDEXED BY asks_by_run WHERE ws_no = runs.ws_no AND run_no = runs.no) IS NULL
                 FROM runs WHERE no > ?1 ORDER BY no LIMIT ?3",
            )?
            .query_map((self.after, self.before.ms(), ROWS), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_>>()?;
        let last = looked.last().map(|(no, ..)| *no);
        let mut over = looked.into_iter().filter(|(.., over)| *over).map(|(no, ws_no, _)| (ws_no, no)).peekable();
        if over.peek().is_some() {
            work.write()?;
            set_secure_delete(connection, true)?;
            let deleted = over.try_for_each(|run| {
                connection.prepare_cached("DELETE FROM run_labels WHERE ws_no = ?1 AND run_no = ?2")?.execute(run)?;
                connection.prepare_cached("DELETE FROM runs WHERE ws_no = ?1 AND no = ?2")?.execute(run).map(drop)
            });
            set_secure_delete(connection, false)?;
            deleted?;
        }
        Ok(Ok(last))
    }
}

impl Cut {
    /// Where deleting begins once the log begins there.
    pub(crate) fn place(&self) -> DropPlace {
        DropPlace::Asks(self.ws_no, rows::pos(self.ws_no, 0))
    }
}
