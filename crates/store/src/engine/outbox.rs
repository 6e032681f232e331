//! What is to be said outside the inbox: planned from the log, claimed by whoever sends, and what became of it.

use std::collections::BTreeSet;

use crate::sql::{Connection, OptionalExtension, Result, Row};
use chips_core::Refusal;
use chips_core::notify::{Channel, Facts, Kind, Outcome, Preferences, retry_after};
use chips_protocol::api::{AskState, Named};
use chips_protocol::{
    HarnessId, OnNoAnswer, ParticipantId, ParticipantKind, PersonId, SpaceId, Timestamp, WorkspaceId,
};

use super::rows::{self, NO_DEADLINE};
use super::writer::{Command, Work};
use super::{endpoints, view};
use crate::notice::CLAIM_MS;
use crate::session::{IDLE_MS, LONGEST_MS};
use crate::sql::postgres::Lock;
use crate::{Endpoint, Notice};

/// Events that one job goes through at most.
const STEP: i64 = 256;

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
         FROM asks a JOIN events e ON e.pos = a.pos LEFT JOIN spaces s ON s.no = a.space_no WHERE a.pos = ?1",
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
    statement.query_row([pos], read).optional()
}

/// What decides whether somebody may be told of an ask: they may see it, and where a harness has an owner, what is asked
/// outside any space is told to them alone. `p` is the person, `?1` the space, `?2` the harness.
const MAY_BE_TOLD: &str = "p.disabled_at IS NULL
    AND (?1 IS NULL OR EXISTS (SELECT 1 FROM spaces s WHERE s.no = ?1 AND (s.closed = 0
            OR EXISTS (SELECT 1 FROM members m WHERE m.space_no = s.no AND m.person_no = p.no))))
    AND (?1 IS NOT NULL OR NOT EXISTS (SELECT 1 FROM harnesses h WHERE h.no = ?2 AND h.owner_no IS NOT NULL
            AND h.owner_no <> p.no))";

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

fn hearers(connection: &Connection, ask: &Asked, now: Timestamp) -> Result<Vec<Hearer>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT p.person_id, f.body, e.no, e.channel, p.no FROM persons p
         LEFT JOIN endpoints e ON e.person_no = p.no AND e.disabled_at IS NULL AND {SESSION_LIVES}
         LEFT JOIN preferences f ON f.person_no = p.no
         WHERE p.ws_no = ?5 AND {MAY_BE_TOLD} ORDER BY p.no, e.no"
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

/// Goes through the next part of a workspace's log and plans what is to be said. True where more is left.
pub(crate) struct Plan {
    pub(crate) workspace_id: WorkspaceId,
    /// Persons who have a page in sight.
    pub(crate) in_sight: BTreeSet<PersonId>,
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
        let events: Vec<(i64, i64, i64)> = work
            .connection
            .prepare_cached(
                "SELECT e.pos, e.type, coalesce(a.pos, 0) FROM events e LEFT JOIN asks a ON a.closed_pos = e.pos
                 WHERE e.pos > ?1 AND e.pos < ?2 ORDER BY e.pos LIMIT ?3",
            )?
            .query_map((rows::pos(scene.ws_no, seq.unsigned_abs()), rows::pos(scene.ws_no + 1, 0), STEP), |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?
            .collect::<Result<_>>()?;
        let Some(&(last, ..)) = events.last() else { return Ok(Ok(false)) };
        let closes = rows::type_code(chips_protocol::EventType::QuestionAnswered);
        for &(pos, event_type, ask_pos) in &events {
            match asked(work.connection, if event_type == closes { ask_pos } else { pos })? {
                Some(ask) if event_type == closes => closed(work, &ask, scene.now)?,
                Some(ask) if ask.state == AskState::Open => self.opened(work, &ask, scene.now)?,
                _ => {}
            }
        }
        work.write()?;
        work.connection
            .prepare_cached("UPDATE outbox_cursors SET seq = ?2 WHERE ws_no = ?1")?
            .execute((scene.ws_no, rows::seq(last) as i64))?;
        Ok(Ok(events.len() as i64 == STEP))
    }
}

impl Plan {
    fn opened(&self, work: &mut Work<'_>, ask: &Asked, now: Timestamp) -> Result<()> {
        let mut told = false;
        for hearer in hearers(work.connection, ask, now)? {
            let in_sight = self.in_sight.contains(&hearer.person_id);
            told |= in_sight;
            let Some(due) = hearer.preferences.first(&ask.facts, now, in_sight) else { continue };
            let last_call = hearer.preferences.last_call(&ask.facts).filter(|last_call| *last_call > due);
            for (endpoint_no, channel) in hearer.endpoints {
                if hearer.preferences.wants(channel, &ask.facts) {
                    told = true;
                    add(work, ask, endpoint_no, Kind::Asked, 0, due)?;
                    if let Some(last_call) = last_call {
                        add(work, ask, endpoint_no, Kind::LastCall, 0, last_call)?;
                    }
                }
            }
        }
        // Whether a message arrives is known later; that nobody is to get one is known now. Where nobody ever said how they
        // are to be told, the inbox is the way, and all is as it should be.
        if !told && set_up(work.connection, ask.ws_no)? {
            set_told(work, ask.pos, false)?;
        }
        Ok(())
    }
}

/// Whether anybody of the workspace has an endpoint.
fn set_up(connection: &Connection, ws_no: i64) -> Result<bool> {
    connection.prepare_cached("SELECT 1 FROM endpoints WHERE ws_no = ?1 AND person_no IS NOT NULL")?.exists([ws_no])
}

fn set_told(work: &mut Work<'_>, ask_pos: i64, told: bool) -> Result<()> {
    work.write()?;
    work.connection.prepare_cached("UPDATE asks SET told = ?2 WHERE pos = ?1")?.execute((ask_pos, told)).map(drop)
}

/// An ask was closed: what waits is not needed any more, what was shown is taken back, and its harness hears of it.
fn closed(work: &mut Work<'_>, ask: &Asked, now: Timestamp) -> Result<()> {
    work.write()?;
    work.connection
        .prepare_cached("UPDATE outbox SET state = ?2 WHERE ask_pos = ?1 AND state = 0 AND kind < 3")?
        .execute((ask.pos, state::NOT_NEEDED))?;
    // One that is under way is taken back when it is known what became of it.
    let shown: Vec<i64> = work
        .connection
        .prepare_cached("SELECT DISTINCT endpoint_no FROM outbox WHERE ask_pos = ?1 AND state = ?2 AND kind < 3")?
        .query_map((ask.pos, state::ACCEPTED), |row| row.get(0))?
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

/// Claims what is due, one message for each endpoint at a time: a slow one delays none but its own.
pub(crate) struct Claim {
    pub(crate) limit: usize,
}

/// A row of `outbox` that is due.
struct Due {
    no: i64,
    workspace_id: WorkspaceId,
    ask_pos: i64,
    endpoint_no: i64,
    kind: Kind,
    tries: u32,
}

impl Command for Claim {
    type Done = Vec<Notice>;

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<Vec<Notice>, Refusal>> {
        let now = work.shared.clock.now();
        // One server at a time claims; another one's turn is over soon.
        if let Some(session) = work.connection.postgres()
            && !session.try_lock(Lock::Claim)?
        {
            return Ok(Ok(Vec::new()));
        }
        let due: Vec<Due> = work
            .connection
            .prepare_cached(
                "SELECT o.no, w.workspace_id, o.ask_pos, o.endpoint_no, o.kind, o.tries
                 FROM (SELECT min(no) AS no FROM outbox WHERE state = 0 AND due_at <= ?1 AND NOT EXISTS (
                           SELECT 1 FROM outbox b WHERE b.endpoint_no = outbox.endpoint_no AND b.claimed_until > ?1)
                       GROUP BY endpoint_no) f
                 JOIN outbox o ON o.no = f.no JOIN workspaces w ON w.no = o.ws_no ORDER BY o.due_at LIMIT ?2",
            )?
            .query_map((now.ms(), self.limit as i64), |row| {
                Ok(Due {
                    no: row.get(0)?,
                    workspace_id: WorkspaceId::from_bytes(row.get(1)?),
                    ask_pos: row.get(2)?,
                    endpoint_no: row.get(3)?,
                    kind: kind_of(row.get(4)?)?,
                    tries: row.get(5)?,
                })
            })?
            .collect::<Result<_>>()?;
        let mut notices = Vec::new();
        for due in due {
            work.write()?;
            match notice(work.connection, &due, now)? {
                Some(notice) => {
                    work.connection
                        .prepare_cached("UPDATE outbox SET claimed_until = ?2 WHERE no = ?1")?
                        .execute((due.no, now.plus_ms(CLAIM_MS).ms()))?;
                    notices.push(notice);
                }
                None => {
                    work.connection
                        .prepare_cached("UPDATE outbox SET state = ?2 WHERE no = ?1")?
                        .execute((due.no, state::NOT_NEEDED))?;
                }
            }
        }
        Ok(Ok(notices))
    }
}

/// The message, unless nobody needs it any more: people may have changed their mind, or lost the right to see it.
fn notice(connection: &Connection, due: &Due, now: Timestamp) -> Result<Option<Notice>> {
    let Some(ask) = asked(connection, due.ask_pos)? else { return Ok(None) };
    let Some((endpoint, owner)) = endpoints::live(connection, due.endpoint_no, now)? else { return Ok(None) };
    let (run_title, lapsed, private): (Option<String>, bool, bool) = connection
        .prepare_cached(
            "SELECT r.title, r.ended_at IS NOT NULL OR r.lease_until <= ?2, coalesce(s.private, 0)
             FROM asks a JOIN runs r ON r.no = a.run_no LEFT JOIN spaces s ON s.no = a.space_no WHERE a.pos = ?1",
        )?
        .query_row((due.ask_pos, now.ms()), |row| {
            Ok((row.get(0)?, row.get::<_, Option<bool>>(1)?.unwrap_or_default(), row.get(2)?))
        })?;
    let told = may_be_told(connection, &ask, &owner)?;
    // What a person who may not see it any more was shown is taken back without a word of it.
    let private = private || (due.kind == Kind::Closed && told.is_none());
    if matches!(due.kind, Kind::Asked | Kind::Reminder | Kind::LastCall) {
        let open = ask.state == AskState::Open && ask.facts.deadline.is_none_or(|deadline| now < deadline);
        let wanted = told.is_some_and(|preferences| {
            preferences.wants(endpoint.channel, &ask.facts) && (due.kind == Kind::Asked || preferences.reminders)
        });
        if !open || !wanted || (lapsed && due.kind != Kind::Asked) {
            return Ok(None);
        }
    }
    Ok(Some(Notice {
        no: due.no,
        kind: due.kind,
        endpoint,
        owner,
        workspace_id: due.workspace_id,
        ask: view::ask_at(connection, due.ask_pos, now)?,
        run_title,
        private,
        tries: due.tries,
    }))
}

/// The preferences of a person who may be told of this ask.
fn may_be_told(connection: &Connection, ask: &Asked, owner: &Named) -> Result<Option<Preferences>> {
    let ParticipantId::Person(person) = owner.id else { return Ok(None) };
    let body: Option<Option<String>> = connection
        .prepare_cached(&format!(
            "SELECT f.body FROM persons p LEFT JOIN preferences f ON f.person_no = p.no
             WHERE p.person_id = ?3 AND {MAY_BE_TOLD}"
        ))?
        .query_row((ask.space_no, ask.harness_no, person.to_bytes()), |row| row.get::<_, Option<String>>(0))
        .optional()?;
    body.map(endpoints::preferences_of).transpose()
}

/// What the other side made of a message.
pub(crate) struct Record {
    pub(crate) no: i64,
    pub(crate) outcome: Outcome,
    /// From 0 to 1: spreads tries that failed together.
    pub(crate) jitter: f64,
}

/// A message that was sent, and its endpoint.
struct Sent {
    ask_pos: i64,
    endpoint_no: i64,
    kind: Kind,
    round: u32,
    tries: u32,
    state: i64,
    channel: Channel,
    name: String,
    person_no: Option<i64>,
    preferences: Preferences,
}

fn sent(connection: &Connection, no: i64) -> Result<Option<Sent>> {
    let mut statement = connection.prepare_cached(
        "SELECT o.ask_pos, o.endpoint_no, o.kind, o.round, o.tries, o.state, e.channel, e.name, e.person_no, f.body
         FROM outbox o JOIN endpoints e ON e.no = o.endpoint_no LEFT JOIN preferences f ON f.person_no = e.person_no
         WHERE o.no = ?1",
    )?;
    let read = |row: &Row<'_>| {
        Ok(Sent {
            ask_pos: row.get(0)?,
            endpoint_no: row.get(1)?,
            kind: kind_of(row.get(2)?)?,
            round: row.get(3)?,
            tries: row.get(4)?,
            state: row.get(5)?,
            channel: endpoints::channel_of(&row.get::<_, String>(6)?)?,
            name: row.get(7)?,
            person_no: row.get(8)?,
            preferences: endpoints::preferences_of(row.get(9)?)?,
        })
    };
    statement.query_row([no], read).optional()
}

fn workspace_of(connection: &Connection, no: i64) -> Result<Option<WorkspaceId>> {
    connection
        .prepare_cached("SELECT w.workspace_id FROM outbox o JOIN workspaces w ON w.no = o.ws_no WHERE o.no = ?1")?
        .query_row([no], |row| row.get(0).map(WorkspaceId::from_bytes))
        .optional()
}

impl Command for Record {
    type Done = ();

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<(), Refusal>> {
        let now = work.shared.clock.now();
        // Beside other servers: what closes the ask must not fall between what is read here and what is written.
        if work.shared.node.is_some()
            && let Some(workspace_id) = workspace_of(work.connection, self.no)?
        {
            work.scene(workspace_id)?;
        }
        // An endpoint that was removed meanwhile took its messages along.
        let Some(sent) = sent(work.connection, self.no)? else { return Ok(Ok(())) };
        let Some(ask) = asked(work.connection, sent.ask_pos)? else { return Ok(Ok(())) };
        // What was under way when the texts were erased must not come back as what the other side quotes of it.
        let detail = if ask.erased || rows::erased_since(work.connection, now.plus_ms(-CLAIM_MS))? {
            ""
        } else {
            self.outcome.detail()
        };
        work.write()?;
        work.connection
            .prepare_cached(
                "INSERT INTO attempts (ask_pos, endpoint_no, channel, name, person_no, kind, at, outcome, detail)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute((
                sent.ask_pos,
                sent.endpoint_no,
                sent.channel.as_str(),
                &sent.name,
                sent.person_no,
                kind_code(sent.kind),
                now.ms(),
                self.outcome.as_str(),
                detail,
            ))?;
        let trouble = match &self.outcome {
            Outcome::Accepted => None,
            Outcome::TimedOut => Some("it did not answer in time"),
            _ => Some(detail).filter(|detail| !detail.is_empty()),
        };
        work.connection
            .prepare_cached("UPDATE endpoints SET trouble = ?2 WHERE no = ?1")?
            .execute((sent.endpoint_no, trouble))?;
        self.settle(work, &sent, &ask, now)?;
        Ok(Ok(()))
    }
}

impl Record {
    fn settle(&self, work: &mut Work<'_>, sent: &Sent, ask: &Asked, now: Timestamp) -> Result<()> {
        let personal = matches!(sent.kind, Kind::Asked | Kind::Reminder | Kind::LastCall);
        let over = personal && (ask.state != AskState::Open || sent.state == state::NOT_NEEDED);
        let again = if self.outcome.passes() && !over {
            retry_after(sent.kind, sent.tries + 1, self.jitter)
                .map(|gap| now.plus_ms(gap.max(self.outcome.rest_ms())))
                .filter(|due| !personal || ask.facts.deadline.is_none_or(|deadline| *due < deadline))
        } else {
            None
        };
        let left = match (&self.outcome, again) {
            (Outcome::Accepted, _) => state::ACCEPTED,
            (_, Some(_)) => state::WAITS,
            _ if over => state::NOT_NEEDED,
            _ => state::GIVEN_UP,
        };
        work.connection
            .prepare_cached(
                "UPDATE outbox SET state = ?2, tries = tries + 1, claimed_until = 0, due_at = coalesce(?3, due_at)
                 WHERE no = ?1",
            )?
            .execute((self.no, left, again.map(Timestamp::ms)))?;
        if let Outcome::Gone(_) = self.outcome {
            endpoints::gone(work, sent.endpoint_no, sent.channel, now)?;
        }
        // One that did not answer in time may have taken the message all the same.
        if over && matches!(self.outcome, Outcome::Accepted | Outcome::TimedOut) {
            add(work, ask, sent.endpoint_no, Kind::Closed, 0, now)?;
        }
        if personal && self.outcome == Outcome::Accepted {
            set_told(work, ask.pos, true)?;
            let round = if sent.kind == Kind::Reminder { sent.round + 1 } else { 1 };
            if !over
                && sent.kind != Kind::LastCall
                && let Some(due) = sent.preferences.reminder(&ask.facts, now, round)
            {
                add(work, ask, sent.endpoint_no, Kind::Reminder, round, due)?;
            }
        }
        if sent.kind == Kind::Asked && self.outcome != Outcome::Accepted {
            // Every way was tried and nobody was reached so far; whoever is reached by a later try makes it good.
            let hope: bool = work
                .connection
                .prepare_cached(
                    "SELECT 1 FROM outbox WHERE ask_pos = ?1 AND kind = 0 AND (state = 1 OR (state = 0 AND tries = 0))",
                )?
                .exists([ask.pos])?;
            if !hope {
                work.connection
                    .prepare_cached("UPDATE asks SET told = 0 WHERE pos = ?1 AND told IS NULL")?
                    .execute([ask.pos])?;
            }
        }
        Ok(())
    }
}

/// An endpoint's owner, as people know them.
pub(super) fn owner(row: &Row<'_>, person: usize, harness: usize, name: usize) -> Result<Named> {
    let (kind, id) = match (row.get::<_, Option<[u8; 16]>>(person)?, row.get::<_, Option<[u8; 16]>>(harness)?) {
        (Some(id), _) => (ParticipantKind::Person, ParticipantId::Person(PersonId::from_bytes(id))),
        (None, Some(id)) => (ParticipantKind::Harness, ParticipantId::Harness(HarnessId::from_bytes(id))),
        (None, None) => return Err(rows::odd("endpoints", "one that is nobody's")),
    };
    Ok(Named { kind, id, name: row.get(name)? })
}

/// The columns of an endpoint, in the order that [`endpoint`] reads them in.
pub(super) const ENDPOINT: &str =
    "e.no, e.channel, e.address, e.secret, e.name, e.session_no, e.created_at, e.disabled_at IS NOT NULL, e.trouble";

/// An endpoint from its columns.
pub(super) fn endpoint(row: &Row<'_>) -> Result<Endpoint> {
    Ok(Endpoint {
        endpoint_id: row.get(0)?,
        channel: endpoints::channel_of(&row.get::<_, String>(1)?)?,
        address: row.get(2)?,
        secret: row.get(3)?,
        name: row.get(4)?,
        session_id: row.get(5)?,
        created_at: Timestamp::from_ms(row.get(6)?),
        disabled: row.get(7)?,
        trouble: row.get(8)?,
    })
}
