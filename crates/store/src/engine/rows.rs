//! How the words of Chips stand in columns, and the small look-ups that reading and writing share.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::sql::{Connection, OptionalExtension, Result};
use bytes::Bytes;
use chips_core::erase::event_says_erased;
use chips_core::{Access, Sender, Who};
use chips_protocol::api::{AskState, Named, Tier};
use chips_protocol::{
    AgentId, Envelope, Event, EventType, HarnessId, ParticipantId, ParticipantKind, PersonId, SpaceId, Timestamp,
    WorkspaceId,
};

use crate::{Identity, Record};

/// Bits of a `pos` that hold the `seq`.
pub(crate) const SEQ_BITS: u32 = 40;
/// The `deadline` of an ask that waits until it is answered.
pub(crate) const NO_DEADLINE: i64 = i64::MAX;

/// The place of an event in the log of a workspace.
pub(crate) const fn pos(ws_no: i64, seq: u64) -> i64 {
    (ws_no << SEQ_BITS) | seq as i64
}

/// The number of the workspace that a place is in.
pub(crate) const fn ws_no(pos: i64) -> i64 {
    pos >> SEQ_BITS
}

/// The `seq` of a place.
pub(crate) const fn seq(pos: i64) -> u64 {
    (pos & ((1 << SEQ_BITS) - 1)) as u64
}

pub(crate) const fn state_code(state: AskState) -> i64 {
    match state {
        AskState::Open => 0,
        AskState::Answered => 1,
        AskState::TimedOut => 2,
        AskState::Settled => 3,
        AskState::Withdrawn => 4,
    }
}

pub(crate) fn state_of(code: i64) -> Result<AskState> {
    AskState::ALL.into_iter().find(|state| state_code(*state) == code).ok_or(odd("asks.state", code))
}

pub(crate) const fn tier_code(tier: Tier) -> i64 {
    match tier {
        Tier::TimeSensitive => 0,
        Tier::Active => 1,
        Tier::Passive => 2,
    }
}

pub(crate) fn tier_of(code: i64) -> Result<Tier> {
    [Tier::TimeSensitive, Tier::Active, Tier::Passive]
        .into_iter()
        .find(|tier| tier_code(*tier) == code)
        .ok_or(odd("asks.tier", code))
}

pub(crate) const fn type_code(event_type: EventType) -> i64 {
    match event_type {
        EventType::QuestionAsk => 1,
        EventType::QuestionAnswered => 2,
    }
}

/// A value in the file that no version of Chips wrote.
pub(crate) fn odd(what: &str, found: impl std::fmt::Display) -> crate::sql::Error {
    crate::sql::Error::Odd(format!("{what} holds {found}, which nothing of Chips writes"))
}

/// An event from its row.
pub(crate) fn record(seq: u64, harness: [u8; 16], body: String) -> Result<Arc<Record>> {
    let event: Event = serde_json::from_str(&body)
        .map_err(|error| odd("events.body", format_args!("no event at seq {seq}: {error}")))?;
    Ok(Arc::new(Record {
        seq,
        harness_id: HarnessId::from_bytes(harness),
        event: Arc::new(event),
        json: Bytes::from(body),
    }))
}

/// The event at a place.
pub(crate) fn record_at(connection: &Connection, pos: i64) -> Result<Option<Arc<Record>>> {
    let mut statement = connection.prepare_cached(
        "SELECT h.harness_id, e.body FROM events e JOIN harnesses h ON h.no = e.harness_no WHERE e.ws_no = ?1 AND e.pos = ?2",
    )?;
    let row = statement.query_row((ws_no(pos), pos), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    row.map(|(harness, body)| record(seq(pos), harness, body)).transpose()
}

/// The number of a workspace.
pub(crate) fn workspace_no(connection: &Connection, workspace: WorkspaceId) -> Result<Option<i64>> {
    connection
        .prepare_cached("SELECT no FROM workspaces WHERE workspace_id = ?1")?
        .query_row([workspace.to_bytes()], |row| row.get(0))
        .optional()
}

/// The `seq` and `ts` of the last event that a workspace ever had, kept or dropped; zeros where there was none.
pub(crate) fn head(connection: &Connection, ws_no: i64) -> Result<(u64, Timestamp)> {
    let mut statement = connection.prepare_cached(
        "SELECT pos, ts FROM events NOT INDEXED WHERE ws_no = ?1 AND pos > ?2 AND pos < ?3 ORDER BY pos DESC LIMIT 1",
    )?;
    let last = statement
        .query_row((ws_no, pos(ws_no, 0), pos(ws_no + 1, 0)), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let last = last.map_or((0, Timestamp::default()), |(pos, ts)| (seq(pos), Timestamp::from_ms(ts)));
    let (kept_from, dropped_ts) = kept_from(connection, ws_no)?;
    Ok((last.0.max(kept_from - 1), last.1.max(dropped_ts)))
}

/// Whether anything was erased after a moment: what a message that was made by then held may be gone.
pub(crate) fn erased_since(connection: &Connection, at: Timestamp) -> Result<bool> {
    connection.prepare_cached("SELECT 1 FROM erasures WHERE at > ?1")?.exists([at.ms()])
}

/// Whether texts of an event were erased. That they say so is not enough: a client may have written `[erased]`.
pub(crate) fn was_erased(connection: &Connection, event: &Event) -> Result<bool> {
    if !event_says_erased(event) {
        return Ok(false);
    }
    let Envelope { workspace_id, run_id, ts, .. } = &event.envelope;
    let answered_by = event.as_answered().map(|answered| answered.answered_by.to_string()).unwrap_or_default();
    // A run goes on after it was erased: what came after that is whole.
    connection
        .prepare_cached(
            "SELECT 1 FROM erasures WHERE (done_at IS NULL OR done_at >= ?1) AND (
                 (what = 'ask' AND id = ?2) OR (what = 'run' AND id = ?3) OR (what = 'workspace' AND id = ?4)
                 OR (what = 'person' AND id = ?5))",
        )?
        .exists((
            ts.ms(),
            event.content.ask_id().to_string(),
            run_id.to_string(),
            workspace_id.to_string(),
            answered_by,
        ))
}

/// The workspaces that were erased, and take nobody and nothing new.
pub(crate) fn ended_workspaces(connection: &Connection) -> Result<BTreeSet<String>> {
    let mut statement = connection.prepare_cached("SELECT id FROM erasures WHERE what = 'workspace'")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// The `seq` that the log of a workspace begins with (1 where nothing was dropped), and the `ts` of the last event that was
/// dropped before it.
pub(crate) fn kept_from(connection: &Connection, ws_no: i64) -> Result<(u64, Timestamp)> {
    let found: Option<(i64, i64)> = connection
        .prepare_cached("SELECT kept_from, dropped_ts FROM workspaces WHERE no = ?1")?
        .query_row([ws_no], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.map_or((1, Timestamp::default()), |(seq, ts)| (seq.max(1).unsigned_abs(), Timestamp::from_ms(ts))))
}

/// The largest `ts` of all logs.
pub(crate) fn last_ts(connection: &Connection) -> Result<Timestamp> {
    let numbers: Vec<i64> = connection
        .prepare_cached("SELECT no FROM workspaces")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_>>()?;
    let mut last = Timestamp::default();
    for ws_no in numbers {
        last = last.max(head(connection, ws_no)?.1);
    }
    Ok(last)
}

/// Whose write an event is: keys and replays are bound to that. Chips' own events are nobody's.
pub(crate) fn sender_of(event: &Event) -> Option<Who> {
    let actor = &event.envelope.actor;
    match (actor.id, actor.harness_id) {
        (ParticipantId::Person(id), _) => Some(Who::Person(id)),
        (ParticipantId::Harness(id), _) | (ParticipantId::Agent(_), Some(id)) => Some(Who::Harness(id)),
        (ParticipantId::Agent(_), None) | (ParticipantId::System, _) => None,
    }
}

/// A person as a viewer: with the spaces they are in.
pub(crate) fn person_identity(connection: &Connection, person_no: i64) -> Result<Option<Identity>> {
    let mut statement = connection.prepare_cached(
        "SELECT p.person_id, p.name, p.owner, w.workspace_id, w.no
         FROM persons p JOIN workspaces w ON w.no = p.ws_no WHERE p.no = ?1 AND p.disabled_at IS NULL",
    )?;
    let found = statement
        .query_row([person_no], |row| {
            let ids: ([u8; 16], [u8; 16]) = (row.get(0)?, row.get(3)?);
            Ok((ids, row.get::<_, String>(1)?, row.get::<_, bool>(2)?, row.get::<_, i64>(4)?))
        })
        .optional()?;
    let Some(((person, workspace), name, owner, ws_no)) = found else { return Ok(None) };
    let person = PersonId::from_bytes(person);
    let sender = Sender { workspace_id: WorkspaceId::from_bytes(workspace), who: Who::Person(person) };
    let access = Access::Person(person, spaces_of(connection, ws_no, person_no)?);
    Ok(Some(Identity { sender, name, access, owner }))
}

/// The spaces that a person is in: the open ones, and those they are a member of.
fn spaces_of(connection: &Connection, ws_no: i64, person_no: i64) -> Result<BTreeSet<SpaceId>> {
    connection
        .prepare_cached(
            "SELECT space_id FROM spaces s WHERE ws_no = ?1 AND (closed = 0
                 OR EXISTS (SELECT 1 FROM members WHERE space_no = s.no AND person_no = ?2))",
        )?
        .query_map((ws_no, person_no), |row| row.get(0).map(SpaceId::from_bytes))?
        .collect()
}

/// A participant with the name that people know.
pub(crate) fn named(connection: &Connection, id: ParticipantId, harness_name: &str) -> Result<Named> {
    let (kind, name) = match id {
        ParticipantId::System => (ParticipantKind::System, "Chips".to_owned()),
        // An agent goes by its harness's name, and no other harness acts on an ask than the one that asked.
        ParticipantId::Harness(_) => (ParticipantKind::Harness, harness_name.to_owned()),
        ParticipantId::Agent(_) => (ParticipantKind::Agent, harness_name.to_owned()),
        ParticipantId::Person(person) => {
            let name = connection
                .prepare_cached("SELECT name FROM persons WHERE person_id = ?1")?
                .query_row([person.to_bytes()], |row| row.get(0))
                .optional()?;
            (ParticipantKind::Person, name.unwrap_or_default())
        }
    };
    Ok(Named { kind, id, name })
}

/// The harness that an agent is registered to.
pub(crate) fn agent_of(connection: &Connection, ws_no: i64, agent: AgentId) -> Result<Option<HarnessId>> {
    connection
        .prepare_cached(
            "SELECT h.harness_id FROM agents a JOIN harnesses h ON h.no = a.harness_no
             WHERE a.ws_no = ?1 AND a.agent_id = ?2",
        )?
        .query_row((ws_no, agent.to_bytes()), |row| row.get(0).map(HarnessId::from_bytes))
        .optional()
}
