//! Who has seen a question, who asks, and what the people of a workspace are called.

use std::collections::HashMap;

use chips_protocol::api::Named;
use chips_protocol::{AskId, HarnessId, ParticipantId, ParticipantKind, PersonId, Timestamp, WorkspaceId};

use super::writer::Work;
use super::{events, rows, view};
use crate::sql::{Connection, Result};
use crate::{Identity, Sighting};

/// Notes that a person saw an ask while it was open. The first time stands.
pub(super) fn note(
    work: &mut Work<'_>,
    workspace_id: WorkspaceId,
    ask_id: AskId,
    person: PersonId,
    at: Timestamp,
) -> Result<()> {
    let unseen = work
        .connection
        .prepare_cached(
            "SELECT a.pos, p.no FROM workspaces w JOIN asks a ON a.ws_no = w.no JOIN persons p ON p.ws_no = w.no
             LEFT JOIN events c ON c.ws_no = a.ws_no AND c.pos = a.closed_pos
             WHERE w.workspace_id = ?1 AND a.ask_id = ?2 AND p.person_id = ?3 AND (c.pos IS NULL OR c.ts >= ?4)
               AND NOT EXISTS (SELECT 1 FROM seen s WHERE s.ws_no = a.ws_no AND s.ask_pos = a.pos AND s.person_no = p.no)",
        )?
        .query_map((workspace_id.to_bytes(), ask_id.to_bytes(), person.to_bytes(), at.ms()), |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })?
        .collect::<Result<Vec<_>>>()?;
    for (ask_pos, person_no) in unseen {
        work.write()?;
        let ws_no = rows::ws_no(ask_pos);
        work.connection
            .prepare_cached(
                "INSERT INTO seen (ws_no, ask_pos, person_no, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?
            .execute((ws_no, ask_pos, person_no, at.ms()))?;
        // Whoever sees it need not be told any more.
        work.connection
            .prepare_cached("UPDATE asks SET told = 1 WHERE ws_no = ?1 AND pos = ?2 AND told = 0")?
            .execute((ws_no, ask_pos))?;
    }
    Ok(())
}

/// Who has seen an ask and when first, in this order; nothing where the viewer may not see the ask.
pub(super) fn list(
    connection: &Connection,
    viewer: &Identity,
    ask_id: AskId,
    now: Timestamp,
) -> Result<Option<Vec<Sighting>>> {
    if view::ask(connection, viewer, ask_id, now)?.is_none() {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached(
        "SELECT p.person_id, p.name, s.at FROM workspaces w JOIN asks a ON a.ws_no = w.no
         JOIN seen s ON s.ws_no = a.ws_no AND s.ask_pos = a.pos JOIN persons p ON p.no = s.person_no
         WHERE w.workspace_id = ?1 AND a.ask_id = ?2 ORDER BY s.at, p.no",
    )?;
    let found = statement.query_map((viewer.sender.workspace_id.to_bytes(), ask_id.to_bytes()), |row| {
        let id = ParticipantId::Person(PersonId::from_bytes(row.get(0)?));
        let by = Named { kind: ParticipantKind::Person, id, name: row.get(1)? };
        Ok(Sighting { by, at: Timestamp::from_ms(row.get(2)?) })
    })?;
    found.collect::<Result<_>>().map(Some)
}

/// What everybody in a workspace is called, also who can't sign in any more.
pub(super) fn names(connection: &Connection, workspace_id: WorkspaceId) -> Result<HashMap<PersonId, String>> {
    connection
        .prepare_cached(
            "SELECT p.person_id, p.name FROM workspaces w JOIN persons p ON p.ws_no = w.no WHERE w.workspace_id = ?1",
        )?
        .query_map([workspace_id.to_bytes()], |row| Ok((PersonId::from_bytes(row.get(0)?), row.get(1)?)))?
        .collect()
}

/// The harnesses that have asked something that a person may see, open or closed, in the order of their names.
pub(super) fn askers(connection: &Connection, viewer: &Identity) -> Result<Vec<(HarnessId, String)>> {
    let Some(ws_no) = rows::workspace_no(connection, viewer.sender.workspace_id)? else { return Ok(Vec::new()) };
    let spaces = events::seen_spaces(connection, viewer, ws_no)?;
    let mut asked = connection
        .prepare_cached("SELECT space_no FROM asks INDEXED BY asks_by_harness WHERE harness_no = ?1 AND ws_no = ?2")?;
    let mut statement = connection
        .prepare_cached("SELECT no, harness_id, name FROM harnesses WHERE ws_no = ?1 ORDER BY lower(name), no")?;
    let mut harnesses = statement.query([ws_no])?;
    let mut found = Vec::new();
    while let Some(harness) = harnesses.next()? {
        let mut rows = asked.query((harness.get::<_, i64>(0)?, ws_no))?;
        // The first that is visible decides, so what a busy harness has asked is not counted through.
        while let Some(row) = rows.next()? {
            if row.get::<_, Option<i64>>(0)?.is_none_or(|space| spaces.contains(&space)) {
                found.push((HarnessId::from_bytes(harness.get(1)?), harness.get(2)?));
                break;
            }
        }
    }
    Ok(found)
}
