//! Asks and runs as they are shown, from their rows.

use std::collections::BTreeMap;

use crate::sql::{Connection, OptionalExtension, Result};
use chips_core::{Access, Who};
use chips_protocol::api::{Ask, AskState, Me, Named, Run, RunState, SpaceName};
use chips_protocol::{AskId, Event, HarnessId, ParticipantId, ParticipantKind, RunId, SpaceId, Timestamp};

use super::rows::{self, NO_DEADLINE};
use super::shared::Shared;
use super::usage::{self, Limits};
use super::work::late_answers;
use crate::Identity;

/// An ask, if the viewer may see it.
pub(crate) fn ask(connection: &Connection, viewer: &Identity, ask_id: AskId, now: Timestamp) -> Result<Option<Ask>> {
    let found = connection
        .prepare_cached(
            "SELECT a.pos, h.harness_id, s.space_id FROM workspaces w JOIN asks a ON a.ws_no = w.no
             JOIN harnesses h ON h.no = a.harness_no LEFT JOIN spaces s ON s.no = a.space_no
             WHERE w.workspace_id = ?1 AND a.ask_id = ?2",
        )?
        .query_row((viewer.sender.workspace_id.to_bytes(), ask_id.to_bytes()), |row| {
            Ok((row.get(0)?, HarnessId::from_bytes(row.get(1)?), space(row.get(2)?)))
        })
        .optional()?;
    match found {
        Some((pos, harness, space)) if viewer.access.sees(harness, space) => ask_at(connection, pos, now).map(Some),
        _ => Ok(None),
    }
}

fn space(column: Option<[u8; 16]>) -> Option<SpaceId> {
    column.map(SpaceId::from_bytes)
}

fn time(column: Option<i64>) -> Option<Timestamp> {
    column.map(Timestamp::from_ms)
}

/// The ask that was opened at a place, as it stands now.
pub(crate) fn ask_at(connection: &Connection, pos: i64, now: Timestamp) -> Result<Ask> {
    let mut statement = connection.prepare_cached(
        "SELECT a.ask_id, a.state, a.tier, a.deadline, a.delivered_at, a.acknowledged_at, a.late,
                h.name, r.lease_until, q.body, c.body,
                CASE WHEN s.closed = 1
                    THEN EXISTS (SELECT 1 FROM members m JOIN persons p ON p.no = m.person_no
                                 WHERE m.space_no = a.space_no AND p.disabled_at IS NULL)
                    ELSE EXISTS (SELECT 1 FROM persons p WHERE p.ws_no = a.ws_no AND p.disabled_at IS NULL)
                END AND coalesce(a.told, 1) <> 0
         FROM asks a JOIN harnesses h ON h.no = a.harness_no JOIN runs r ON r.ws_no = a.ws_no AND r.no = a.run_no
         JOIN events q ON q.ws_no = a.ws_no AND q.pos = a.pos
         LEFT JOIN events c ON c.ws_no = a.ws_no AND c.pos = a.closed_pos LEFT JOIN spaces s ON s.no = a.space_no
         WHERE a.ws_no = ?1 AND a.pos = ?2",
    )?;
    statement.query_row((rows::ws_no(pos), pos), |row| {
        let state = rows::state_of(row.get(1)?)?;
        let harness_name: String = row.get(7)?;
        let ask = event(&row.get::<_, String>(9)?)?;
        let answer = row.get::<_, Option<String>>(10)?.map(|body| event(&body)).transpose()?;
        let answerer = match answer.as_ref().and_then(Event::as_answered) {
            Some(answered) => Some(rows::named(connection, answered.answered_by, &harness_name)?),
            None => None,
        };
        let lapsed = row.get::<_, Option<i64>>(8)?.is_some_and(|until| until <= now.ms());
        Ok(Ask {
            ask_id: AskId::from_bytes(row.get(0)?),
            state,
            tier: rows::tier_of(row.get(2)?)?,
            deadline: time(Some(row.get(3)?).filter(|deadline| *deadline != NO_DEADLINE)),
            asker: rows::named(connection, ask.envelope.actor.id, &harness_name)?,
            answerer,
            asker_gone: state == AskState::Open && lapsed,
            reachable: row.get(11)?,
            option_labels: option_labels(&ask),
            ask,
            answer,
            late_answers: late_answers(row.get::<_, Option<String>>(6)?.as_deref())?,
            delivered_at: time(row.get(4)?),
            acknowledged_at: time(row.get(5)?),
        })
    })
}

fn event(body: &str) -> Result<Event> {
    serde_json::from_str(body).map_err(|error| rows::odd("events.body", error))
}

/// For each question, the label of each value.
fn option_labels(ask: &Event) -> BTreeMap<String, BTreeMap<String, String>> {
    let questions = ask.as_ask().map(|ask| ask.questions.as_slice()).unwrap_or_default();
    questions
        .iter()
        .map(|question| {
            let labels = question.options.iter().map(|option| (option.value.clone(), option.label.clone()));
            (question.question_id.clone(), labels.collect())
        })
        .collect()
}

/// A run, if the viewer may see it.
pub(crate) fn run(connection: &Connection, viewer: &Identity, run_id: RunId) -> Result<Option<Run>> {
    let found: Option<(i64, i64)> = connection
        .prepare_cached(
            "SELECT r.ws_no, r.no FROM workspaces w JOIN runs r ON r.ws_no = w.no WHERE w.workspace_id = ?1 AND r.run_id = ?2",
        )?
        .query_row((viewer.sender.workspace_id.to_bytes(), run_id.to_bytes()), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((ws_no, run_no)) = found else { return Ok(None) };
    let run = run_at(connection, ws_no, run_no)?;
    Ok(Some(run).filter(|run| viewer.access.sees(run.harness_id, run.space_id)))
}

/// The run of a workspace with this number.
pub(crate) fn run_at(connection: &Connection, ws_no: i64, run_no: i64) -> Result<Run> {
    let labels = connection
        .prepare_cached("SELECT key, value FROM run_labels WHERE ws_no = ?1 AND run_no = ?2")?
        .query_map((ws_no, run_no), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<BTreeMap<String, String>>>()?;
    let mut statement = connection.prepare_cached(
        "SELECT r.run_id, h.harness_id, s.space_id, r.title, r.url, r.parent_run_id, r.started_at, r.ended_at,
                r.lease_seconds, r.lease_until
         FROM runs r JOIN harnesses h ON h.no = r.harness_no LEFT JOIN spaces s ON s.no = r.space_no
         WHERE r.ws_no = ?1 AND r.no = ?2",
    )?;
    statement.query_row((ws_no, run_no), |row| {
        let ended_at = time(row.get(7)?);
        let lease: Option<String> = row.get(8)?;
        let lease_seconds = lease
            .map(|text| serde_json::from_str(&text).map_err(|error| rows::odd("runs.lease_seconds", error)))
            .transpose()?;
        Ok(Run {
            run_id: RunId::from_bytes(row.get(0)?),
            harness_id: HarnessId::from_bytes(row.get(1)?),
            space_id: space(row.get(2)?),
            title: row.get(3)?,
            url: row.get(4)?,
            labels,
            parent_run_id: row.get::<_, Option<[u8; 16]>>(5)?.map(RunId::from_bytes),
            state: if ended_at.is_some() { RunState::Ended } else { RunState::Live },
            started_at: Timestamp::from_ms(row.get(6)?),
            ended_at,
            lease_seconds,
            lease_until: time(row.get(9)?),
        })
    })
}

/// Who the viewer is, what they see, and for a harness its budget.
pub(crate) fn me(connection: &Connection, viewer: &Identity, shared: &Shared) -> Result<Me> {
    let workspace_id = viewer.sender.workspace_id;
    let mut statement = connection.prepare_cached(
        "SELECT s.space_id, s.name FROM workspaces w JOIN spaces s ON s.ws_no = w.no
         WHERE w.workspace_id = ?1 ORDER BY s.no",
    )?;
    let spaces = statement
        .query_map([workspace_id.to_bytes()], |row| {
            Ok(SpaceName { id: SpaceId::from_bytes(row.get(0)?), name: row.get(1)? })
        })?
        .filter(|space| match (&viewer.access, space) {
            (Access::Person(_, seen), Ok(space)) => seen.contains(&space.id),
            _ => true,
        })
        .collect::<Result<_>>()?;
    let (kind, id, budget) = match viewer.sender.who {
        Who::Person(id) => (ParticipantKind::Person, ParticipantId::Person(id), None),
        Who::Harness(id) => {
            let (ws_no, harness_no, limits) = connection
                .prepare_cached("SELECT ws_no, no, open_limit, hour_limit FROM harnesses WHERE harness_id = ?1")?
                .query_row([id.to_bytes()], |row| {
                    Ok((row.get(0)?, row.get(1)?, Limits { open: row.get(2)?, hour: row.get(3)? }))
                })?;
            let usage = usage::used(connection, shared, (ws_no, harness_no), limits, shared.clock.now())?;
            (ParticipantKind::Harness, ParticipantId::Harness(id), Some(usage.budget))
        }
    };
    Ok(Me { workspace_id, participant: Named { kind, id, name: viewer.name.clone() }, spaces, budget })
}
