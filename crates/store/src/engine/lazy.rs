//! Notes that may be written a little later and all at once: that a harness was heard of, that an answer went out,
//! that a session was used.

use std::collections::HashMap;

use chips_core::{Sender, Who};
use chips_protocol::{AskId, HarnessId, PersonId, Timestamp, WorkspaceId};

use crate::sql::{OptionalExtension, Result};

use super::shared::{Shared, lock};
use super::writer::{Task, Work};
use super::{rows, seen};
use crate::{LeaseOf, WriteError};

/// Notes that wait. Many of the same kind become one.
#[derive(Debug, Default)]
pub(crate) struct Lazy {
    /// When a harness was last heard of.
    pub(crate) heard: HashMap<(Sender, LeaseOf), Timestamp>,
    /// When an answer first went out.
    pub(crate) delivered: HashMap<(WorkspaceId, AskId), Timestamp>,
    /// When a person first saw an ask.
    pub(crate) seen: HashMap<(WorkspaceId, AskId, PersonId), Timestamp>,
    /// When a session was last used, by its number.
    pub(crate) used: HashMap<i64, Timestamp>,
    /// Whether what has ended long ago is to be cleared away.
    pub(crate) sweep: bool,
    /// What was erased last, by its count: what was read before is let go.
    pub(crate) erasure: i64,
}

impl Lazy {
    pub(crate) fn is_empty(&self) -> bool {
        self.heard.is_empty()
            && self.delivered.is_empty()
            && self.seen.is_empty()
            && self.used.is_empty()
            && !self.sweep
            && self.erasure == 0
    }

    /// Takes notes back that could not be written.
    fn merge(&mut self, older: Self) {
        for (key, at) in older.heard {
            self.heard.entry(key).or_insert(at);
        }
        for (key, at) in older.delivered {
            // The first time stands.
            self.delivered.insert(key, at);
        }
        for (key, at) in older.seen {
            self.seen.insert(key, at);
        }
        for (key, at) in older.used {
            self.used.entry(key).or_insert(at);
        }
        self.sweep |= older.sweep;
        self.erasure = self.erasure.max(older.erasure);
    }
}

impl Shared {
    /// Adds a note. True where it is the first one that waits, so that the writer is to be told.
    pub(crate) fn note(&self, add: impl FnOnce(&mut Lazy)) -> bool {
        let mut lazy = lock(&self.lazy);
        let first = lazy.is_empty();
        add(&mut lazy);
        first && !lazy.is_empty()
    }

    /// Everything that waits, as one task.
    pub(crate) fn take_notes(self: &std::sync::Arc<Self>) -> Option<Box<dyn Task>> {
        let notes = std::mem::take(&mut *lock(&self.lazy));
        (!notes.is_empty()).then(|| Box::new(Flush { notes, shared: std::sync::Arc::clone(self) }) as Box<dyn Task>)
    }
}

struct Flush {
    notes: Lazy,
    shared: std::sync::Arc<Shared>,
}

impl Task for Flush {
    fn run(&mut self, work: &mut Work<'_>) -> Result<()> {
        for ((sender, of), at) in &self.notes.heard {
            renew(work, sender, *of, *at)?;
        }
        for ((workspace_id, ask_id), at) in &self.notes.delivered {
            deliver(work, *workspace_id, *ask_id, *at)?;
        }
        for ((workspace_id, ask_id, person), at) in &self.notes.seen {
            seen::note(work, *workspace_id, *ask_id, *person, *at)?;
        }
        for (session_no, at) in &self.notes.used {
            work.write()?;
            work.connection
                .prepare_cached(
                    "UPDATE sessions SET last_used = CASE WHEN last_used > ?2 THEN last_used ELSE ?2 END WHERE no = ?1",
                )?
                .execute((session_no, at.ms()))?;
        }
        if self.notes.sweep {
            sweep(work)?;
        }
        if self.notes.erasure > 0 {
            // By the thread that fills the memory: nothing that was read before the erasure can get into it any more.
            work.shared.let_go();
            work.write()?;
            work.connection.execute(
                "UPDATE meta SET erasures_seen = CASE WHEN erasures_seen > ?1 THEN erasures_seen ELSE ?1 END",
                [self.notes.erasure],
            )?;
        }
        Ok(())
    }

    fn tell(self: Box<Self>, outcome: Result<(), WriteError>) {
        if let Err(WriteError::Unavailable { .. }) = outcome {
            lock(&self.shared.lazy).merge(self.notes);
        }
    }
}

/// Renews a lease where that moves its end by more than a quarter of it.
fn renew(work: &mut Work<'_>, sender: &Sender, of: LeaseOf, at: Timestamp) -> Result<()> {
    let Who::Harness(harness) = sender.who else { return Ok(()) };
    let Some(ws_no) = rows::workspace_no(work.connection, sender.workspace_id)? else { return Ok(()) };
    let Some((run_no, lease_ms, until)) = leased(work, ws_no, harness, of)? else { return Ok(()) };
    let renewed = at.plus_ms(lease_ms).ms();
    if renewed.saturating_sub(until) <= lease_ms / 4 {
        return Ok(());
    }
    work.write()?;
    work.connection
        .prepare_cached("UPDATE runs SET lease_until = ?3 WHERE ws_no = ?1 AND no = ?2")?
        .execute((ws_no, run_no, renewed))?;
    Ok(())
}

/// The number, the lease and its end of a live run of the harness that has a lease.
fn leased(work: &Work<'_>, ws_no: i64, harness: HarnessId, of: LeaseOf) -> Result<Option<(i64, i64, i64)>> {
    let (sql, id) = match of {
        LeaseOf::Run(run_id) => (
            "SELECT r.no, r.lease_ms, r.lease_until FROM runs r JOIN harnesses h ON h.no = r.harness_no
             WHERE r.ws_no = ?1 AND r.run_id = ?2 AND h.harness_id = ?3 AND r.lease_ms IS NOT NULL AND r.ended_at IS NULL",
            run_id.to_bytes(),
        ),
        LeaseOf::Ask(ask_id) => (
            "SELECT r.no, r.lease_ms, r.lease_until FROM asks a JOIN runs r ON r.ws_no = a.ws_no AND r.no = a.run_no
             JOIN harnesses h ON h.no = r.harness_no
             WHERE a.ws_no = ?1 AND a.ask_id = ?2 AND h.harness_id = ?3 AND r.lease_ms IS NOT NULL AND r.ended_at IS NULL",
            ask_id.to_bytes(),
        ),
    };
    work.connection
        .prepare_cached(sql)?
        .query_row((ws_no, id, harness.to_bytes()), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()
}

fn deliver(work: &mut Work<'_>, workspace_id: WorkspaceId, ask_id: AskId, at: Timestamp) -> Result<()> {
    let Some(ws_no) = rows::workspace_no(work.connection, workspace_id)? else { return Ok(()) };
    let unmarked = work
        .connection
        .prepare_cached("SELECT 1 FROM asks WHERE ws_no = ?1 AND ask_id = ?2 AND state <> 0 AND delivered_at IS NULL")?
        .exists((ws_no, ask_id.to_bytes()))?;
    if unmarked {
        work.write()?;
        work.connection
            .prepare_cached(
                "UPDATE asks SET delivered_at = ?3 WHERE ws_no = ?1 AND ask_id = ?2 AND delivered_at IS NULL",
            )?
            .execute((ws_no, ask_id.to_bytes(), at.ms()))?;
    }
    Ok(())
}

/// How long ways to sign in that were used or are too old are told apart from ones that never were.
const GRANTS_KEPT_MS: i64 = 7 * 24 * 3600 * 1000;

/// How long messages are kept that nobody sends any more: as long as one may be sent again by hand.
const OUTBOX_KEPT_MS: i64 = 30 * 24 * 3600 * 1000;

/// Clears away messages, sessions, ways to sign in and tokens that have ended.
fn sweep(work: &mut Work<'_>) -> Result<()> {
    use crate::session::{IDLE_MS, LONGEST_MS};
    let now = work.shared.clock.now().ms();
    work.write()?;
    let connection = work.connection;
    connection
        .execute("DELETE FROM sessions WHERE last_used <= ?1 OR began <= ?2", (now - IDLE_MS, now - LONGEST_MS))?;
    connection.execute("DELETE FROM grants WHERE ends_at <= ?1", [now - GRANTS_KEPT_MS])?;
    connection.execute("DELETE FROM tokens WHERE ends_at <= ?1", [now])?;
    connection.execute("DELETE FROM outbox WHERE state <> 0 AND due_at <= ?1", [now - OUTBOX_KEPT_MS])?;
    Ok(())
}
