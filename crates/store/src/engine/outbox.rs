//! What is to be said outside the inbox: planned from the log, claimed by whoever sends, and what became of it.

mod claim;
mod plan;
mod record;

use chips_core::notify::{Facts, Kind, Preferences};
use chips_protocol::api::AskState;
use chips_protocol::{OnNoAnswer, PersonId, SpaceId, Timestamp, WorkspaceId};

use super::rows::{self, NO_DEADLINE};
use super::writer::Work;
use crate::sql::{Connection, OptionalExtension, Result, Row};

pub(crate) use claim::Claim;
pub(crate) use plan::Plan;
pub(crate) use record::Record;

/// The `state` of a message in the outbox.
mod state {
    pub(super) const WAITS: i64 = 0;
    pub(super) const ACCEPTED: i64 = 1;
    pub(super) const GIVEN_UP: i64 = 2;
    pub(super) const NOT_NEEDED: i64 = 3;
}

const fn kind_code(kind: Kind) -> i64 {
    match kind {
        Kind::Asked => 0,
        Kind::Reminder => 1,
        Kind::LastCall => 2,
        Kind::Closed => 3,
        Kind::Answered => 4,
    }
}

pub(super) fn kind_of(code: i64) -> Result<Kind> {
    Kind::ALL.into_iter().find(|kind| kind_code(*kind) == code).ok_or(rows::odd("outbox.kind", code))
}

/// The workspaces in whose log something was not gone through yet.
pub(crate) fn behind(connection: &Connection) -> Result<Vec<WorkspaceId>> {
    let mut statement = connection.prepare_cached(
        "SELECT w.workspace_id, c.ws_no, c.seq FROM outbox_cursors c JOIN workspaces w ON w.no = c.ws_no",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (ws_no, seq): (i64, i64) = (row.get(1)?, row.get(2)?);
        if rows::head(connection, ws_no)?.0 > seq.unsigned_abs() {
            found.push(WorkspaceId::from_bytes(row.get(0)?));
        }
    }
    Ok(found)
}

/// When the next message is due that nobody sends yet.
pub(crate) fn next_due(connection: &Connection) -> Result<Option<Timestamp>> {
    let due: Option<i64> = connection
        .prepare_cached("SELECT min(CASE WHEN due_at > claimed_until THEN due_at ELSE claimed_until END) FROM outbox WHERE state = 0")?
        .query_row([], |row| row.get(0))?;
    Ok(due.map(Timestamp::from_ms))
}

/// Messages that nobody sends any more, because the process that claimed them is gone.
pub(crate) fn let_go(connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE outbox SET claimed_until = 0 WHERE state = 0 AND claimed_until > 0", []).map(drop)
}

/// An ask as far as it decides who is told.
struct Asked {
    pos: i64,
    ws_no: i64,
    state: AskState,
    harness_no: i64,
    space_no: Option<i64>,
    /// Its texts were erased.
    erased: bool,
    facts: Facts,
}

fn asked(connection: &Connection, pos: i64) -> Result<Option<Asked>> {
    let mut statement = connection.prepare_cached(
        "SELECT a.ws_no, a.state, a.harness_no, a.space_no, a.tier, s.space_id, a.asked_at, a.deadline, e.body
         FROM asks a JOIN events e ON e.ws_no = a.ws_no AND e.pos = a.pos LEFT JOIN spaces s ON s.no = a.space_no
         WHERE a.ws_no = ?1 AND a.pos = ?2",
    )?;
    let read = |row: &Row<'_>| {
        let deadline: i64 = row.get(7)?;
        let event: chips_protocol::Event =
            serde_json::from_str(&row.get::<_, String>(8)?).map_err(|error| rows::odd("events.body", error))?;
        let takes_default = event.as_ask().is_some_and(|ask| {
            let any = ask.questions.iter().any(|question| question.default_value.is_some());
            any && ask.on_no_answer.is_none_or(|policy| policy == OnNoAnswer::UseDefault)
        });
        Ok(Asked {
            pos,
            ws_no: row.get(0)?,
            state: rows::state_of(row.get(1)?)?,
            harness_no: row.get(2)?,
            space_no: row.get(3)?,
            erased: rows::was_erased(connection, &event)?,
            facts: Facts {
                tier: rows::tier_of(row.get(4)?)?,
                space_id: row.get::<_, Option<[u8; 16]>>(5)?.map(SpaceId::from_bytes),
                asked_at: Timestamp::from_ms(row.get(6)?),
                deadline: (deadline != NO_DEADLINE).then(|| Timestamp::from_ms(deadline)),
                takes_default,
            },
        })
    };
    statement.query_row((rows::ws_no(pos), pos), read).optional()
}

/// What decides whether somebody may be told of an ask: they may see it, and where a harness has an owner, what is asked
/// outside any space is told to them alone. `p` is the person, `?1` the space, `?2` the harness.
const MAY_BE_TOLD: &str = "p.disabled_at IS NULL
    AND (?1 IS NULL OR EXISTS (SELECT 1 FROM spaces s WHERE s.no = ?1 AND (s.closed = 0
            OR EXISTS (SELECT 1 FROM members m WHERE m.space_no = s.no AND m.person_no = p.no))))
    AND (?1 IS NOT NULL OR NOT EXISTS (SELECT 1 FROM harnesses h WHERE h.no = ?2 AND h.owner_no IS NOT NULL
            AND h.owner_no <> p.no))";

/// Adds a message; one that is there already stays as it is.
fn add(work: &mut Work<'_>, ask: &Asked, endpoint_no: i64, kind: Kind, round: u32, due: Timestamp) -> Result<()> {
    work.write()?;
    work.connection
        .prepare_cached(
            "INSERT INTO outbox (ws_no, ask_pos, endpoint_no, kind, round, due_at, claimed_until, tries, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0) ON CONFLICT DO NOTHING",
        )?
        .execute((ask.ws_no, ask.pos, endpoint_no, kind_code(kind), round, due.ms()))
        .map(drop)
}

fn set_told(work: &mut Work<'_>, ask_pos: i64, told: bool) -> Result<()> {
    work.write()?;
    work.connection
        .prepare_cached("UPDATE asks SET told = ?3 WHERE ws_no = ?1 AND pos = ?2")?
        .execute((rows::ws_no(ask_pos), ask_pos, told))
        .map(drop)
}

/// Lets go what waits for the end of a person's quiet hours as they were, because they have others now: it is due at
/// once, unless the new ones hold it too.
pub(super) fn release(
    work: &mut Work<'_>,
    person: PersonId,
    before: &Preferences,
    after: &Preferences,
    now: Timestamp,
) -> Result<()> {
    if (before.quiet, &before.zone) == (after.quiet, &after.zone) || before.quiet.is_none() {
        return Ok(());
    }
    let held: Vec<(i64, i64)> = work
        .connection
        .prepare_cached(
            "SELECT o.no, o.due_at, a.tier, o.ws_no FROM persons p JOIN endpoints e ON e.person_no = p.no
             JOIN outbox o ON o.ws_no = e.ws_no AND o.endpoint_no = e.no
             JOIN asks a ON a.ws_no = o.ws_no AND a.pos = o.ask_pos
             WHERE p.person_id = ?1 AND o.state = 0 AND o.due_at > ?2 AND o.kind < 2",
        )?
        .query_map((person.to_bytes(), now.ms()), |row| {
            let (message, due): ((i64, i64), i64) = ((row.get(3)?, row.get(0)?), row.get(1)?);
            Ok((message, Timestamp::from_ms(due), rows::tier_of(row.get(2)?)?))
        })?
        .filter_map(|row| match row {
            Ok((message, due, tier)) => (before.after_quiet(tier, due.plus_ms(-1)) == due).then_some(Ok(message)),
            Err(error) => Some(Err(error)),
        })
        .collect::<Result<_>>()?;
    for (ws_no, no) in held {
        work.write()?;
        work.connection.prepare_cached("UPDATE outbox SET due_at = ?3 WHERE ws_no = ?1 AND no = ?2")?.execute((
            ws_no,
            no,
            now.ms(),
        ))?;
    }
    Ok(())
}
