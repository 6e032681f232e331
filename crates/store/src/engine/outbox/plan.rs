//! Planning: from the log to the messages that wait.

use std::collections::BTreeSet;

use chips_core::Refusal;
use chips_core::notify::{Channel, Kind, Preferences};
use chips_protocol::api::AskState;
use chips_protocol::{Event, EventType, PersonId, Timestamp, WorkspaceId};

use super::{Asked, MAY_BE_TOLD, add, asked, set_told, state};
use crate::engine::writer::{Command, Work};
use crate::engine::{endpoints, rows};
use crate::session::{IDLE_MS, LONGEST_MS};
use crate::sql::{Connection, OptionalExtension, Result};

/// Events that one job goes through at most.
const STEP: i64 = 256;

/// An endpoint without a session, or with one that has not ended. `?3` and `?4`: see [`session_bounds`].
const SESSION_LIVES: &str = "(e.session_no IS NULL OR EXISTS (
    SELECT 1 FROM sessions x WHERE x.no = e.session_no AND x.last_used > ?3 AND x.began > ?4))";

fn session_bounds(now: Timestamp) -> (i64, i64) {
    (now.ms() - IDLE_MS, now.ms() - LONGEST_MS)
}

/// Somebody who may be told, and where.
struct Hearer {
    person_id: PersonId,
    preferences: Preferences,
    /// Numbers and channels of their endpoints.
    endpoints: Vec<(i64, Channel)>,
}

/// Who may be told of an ask, and has ever said where. Whoever has not is not looked at: a workspace may have many who never will.
fn hearers(connection: &Connection, ask: &Asked, now: Timestamp) -> Result<Vec<Hearer>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT p.person_id, f.body, e.no, e.channel, p.no FROM persons p
         LEFT JOIN endpoints e ON e.person_no = p.no AND e.disabled_at IS NULL AND {SESSION_LIVES}
         LEFT JOIN preferences f ON f.person_no = p.no
         WHERE p.no IN (SELECT person_no FROM endpoints WHERE ws_no = ?5 AND person_no IS NOT NULL) AND {MAY_BE_TOLD}
         ORDER BY p.no, e.no"
    ))?;
    let (idle, began) = session_bounds(now);
    let mut rows = statement.query((ask.space_no, ask.harness_no, idle, began, ask.ws_no))?;
    let mut found: Vec<Hearer> = Vec::new();
    let mut last = None;
    while let Some(row) = rows.next()? {
        let person_no: i64 = row.get(4)?;
        if last != Some(person_no) {
            last = Some(person_no);
            found.push(Hearer {
                person_id: PersonId::from_bytes(row.get(0)?),
                preferences: endpoints::preferences_of(row.get(1)?)?,
                endpoints: Vec::new(),
            });
        }
        if let (Some(hearer), Some(no)) = (found.last_mut(), row.get::<_, Option<i64>>(2)?) {
            hearer.endpoints.push((no, endpoints::channel_of(&row.get::<_, String>(3)?)?));
        }
    }
    Ok(found)
}

/// Goes through the next part of a workspace's log and plans what is to be said. True where more is left.
pub(crate) struct Plan {
    pub(crate) workspace_id: WorkspaceId,
    /// The numbers of the sessions that have a page in sight.
    pub(crate) in_sight: BTreeSet<i64>,
}

impl Command for Plan {
    type Done = bool;

    fn workspace(&self) -> Option<WorkspaceId> {
        Some(self.workspace_id)
    }

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<bool, Refusal>> {
        let scene = work.scene(self.workspace_id)?;
        let seq: Option<i64> = work
            .connection
            .prepare_cached("SELECT seq FROM outbox_cursors WHERE ws_no = ?1")?
            .query_row([scene.ws_no], |row| row.get(0))
            .optional()?;
        let Some(seq) = seq else { return Ok(Ok(false)) };
        let (first, end) = (rows::pos(scene.ws_no, seq.unsigned_abs()), rows::pos(scene.ws_no + 1, 0));
        let events: Vec<(i64, Option<String>)> = work
            .connection
            .prepare_cached(
                "SELECT pos, CASE WHEN type = ?5 THEN body END FROM events NOT INDEXED
                 WHERE ws_no = ?4 AND pos > ?1 AND pos < ?2 ORDER BY pos LIMIT ?3",
            )?
            .query_map((first, end, STEP, scene.ws_no, rows::type_code(EventType::QuestionAnswered)), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<Result<_>>()?;
        let Some(&(last, _)) = events.last() else { return Ok(Ok(false)) };
        let in_sight = who_looks(work.connection, &self.in_sight, scene.now)?;
        for (pos, closes) in &events {
            match closes {
                Some(close) => {
                    if let Some(ask) = closed_by(work.connection, scene.ws_no, close)? {
                        closed(work, &ask, scene.now)?;
                    }
                }
                None => match asked(work.connection, *pos)? {
                    Some(ask) if ask.state == AskState::Open => opened(work, &ask, &in_sight, scene.now)?,
                    _ => {}
                },
            }
        }
        work.write()?;
        work.connection
            .prepare_cached("UPDATE outbox_cursors SET seq = ?2 WHERE ws_no = ?1")?
            .execute((scene.ws_no, rows::seq(last) as i64))?;
        Ok(Ok(events.len() as i64 == STEP))
    }
}

/// The people whose session has a page in sight and has not ended since: who signed out looks no more.
fn who_looks(connection: &Connection, sessions: &BTreeSet<i64>, now: Timestamp) -> Result<BTreeSet<PersonId>> {
    let (idle, began) = session_bounds(now);
    let mut found = BTreeSet::new();
    for session_no in sessions {
        let person: Option<[u8; 16]> = connection
            .prepare_cached(
                "SELECT p.person_id FROM sessions x JOIN persons p ON p.no = x.person_no
                 WHERE x.no = ?1 AND x.last_used > ?2 AND x.began > ?3",
            )?
            .query_row((session_no, idle, began), |row| row.get(0))
            .optional()?;
        found.extend(person.map(PersonId::from_bytes));
    }
    Ok(found)
}

fn opened(work: &mut Work<'_>, ask: &Asked, in_sight: &BTreeSet<PersonId>, now: Timestamp) -> Result<()> {
    let mut told = false;
    for hearer in hearers(work.connection, ask, now)? {
        let preferences = &hearer.preferences;
        let looks = in_sight.contains(&hearer.person_id);
        let Some(due) = preferences.first(&ask.facts, now, looks) else { continue };
        let in_time = ask.facts.before_deadline(preferences.after_quiet(ask.facts.tier, due)).is_some();
        let last_call = ask.facts.last_call().filter(|last_call| *last_call > due);
        for (endpoint_no, channel) in hearer.endpoints {
            if preferences.wants(channel, &ask.facts) {
                told |= in_time;
                add(work, ask, endpoint_no, Kind::Asked, 0, due)?;
                // Whether they are to be reminded, and at this hour, is looked at when it is due.
                if let Some(last_call) = last_call {
                    add(work, ask, endpoint_no, Kind::LastCall, 0, last_call)?;
                }
            }
        }
    }
    // A page in sight tells its person, with an endpoint or without.
    let mut looking = in_sight.iter();
    while !told && let Some(person) = looking.next() {
        told = may_see(work.connection, ask, *person)?;
    }
    // Whether a message arrives is known later; that nobody is to get one is known now. Where nobody ever said how they
    // are to be told, the inbox is the way, and all is as it should be.
    if !told && set_up(work.connection, ask.ws_no)? {
        set_told(work, ask.pos, false)?;
    }
    Ok(())
}

/// Whether a page in sight of this person shows the ask.
fn may_see(connection: &Connection, ask: &Asked, person: PersonId) -> Result<bool> {
    let sql = format!("SELECT 1 FROM persons p WHERE p.person_id = ?3 AND p.ws_no = ?4 AND {MAY_BE_TOLD}");
    connection.prepare_cached(&sql)?.exists((ask.space_no, ask.harness_no, person.to_bytes(), ask.ws_no))
}

/// Whether anybody of the workspace has an endpoint.
fn set_up(connection: &Connection, ws_no: i64) -> Result<bool> {
    connection.prepare_cached("SELECT 1 FROM endpoints WHERE ws_no = ?1 AND person_no IS NOT NULL")?.exists([ws_no])
}

/// The ask that an event closes.
fn closed_by(connection: &Connection, ws_no: i64, body: &str) -> Result<Option<Asked>> {
    let event: Event = serde_json::from_str(body).map_err(|error| rows::odd("events.body", error))?;
    let pos: Option<i64> = connection
        .prepare_cached("SELECT pos FROM asks WHERE ws_no = ?1 AND ask_id = ?2")?
        .query_row((ws_no, event.content.ask_id().to_bytes()), |row| row.get(0))
        .optional()?;
    Ok(pos.map(|pos| asked(connection, pos)).transpose()?.flatten())
}

/// An ask was closed: what waits is not needed any more, what was shown is taken back, and its harness hears of it.
fn closed(work: &mut Work<'_>, ask: &Asked, now: Timestamp) -> Result<()> {
    work.write()?;
    work.connection
        .prepare_cached("UPDATE outbox SET state = ?3 WHERE ws_no = ?1 AND ask_pos = ?2 AND state = 0 AND kind < 3")?
        .execute((ask.ws_no, ask.pos, state::NOT_NEEDED))?;
    // One that is under way is taken back when it is known what became of it.
    let shown: Vec<i64> = work
        .connection
        .prepare_cached(
            "SELECT DISTINCT endpoint_no FROM outbox WHERE ws_no = ?1 AND ask_pos = ?2 AND state = ?3 AND kind < 3",
        )?
        .query_map((ask.ws_no, ask.pos, state::ACCEPTED), |row| row.get(0))?
        .collect::<Result<_>>()?;
    for endpoint_no in shown {
        add(work, ask, endpoint_no, Kind::Closed, 0, now)?;
    }
    let listening: Vec<i64> = work
        .connection
        .prepare_cached("SELECT no FROM endpoints WHERE harness_no = ?1 AND disabled_at IS NULL")?
        .query_map([ask.harness_no], |row| row.get(0))?
        .collect::<Result<_>>()?;
    for endpoint_no in listening {
        add(work, ask, endpoint_no, Kind::Answered, 0, now)?;
    }
    Ok(())
}
