//! Where people and harnesses are told, how people want it, and what became of each try.

use crate::sql::{Connection, OptionalExtension, Result, Row};
use chips_core::notify::{Channel, Preferences};
use chips_core::{Refusal, Who};
use chips_protocol::api::Named;
use chips_protocol::{AskId, HarnessId, ParticipantId, ParticipantKind, PersonId, Timestamp, WorkspaceId};

use super::outbox::{self, kind_of};
use super::writer::{Command, Work};
use super::{rows, view};
use crate::notice::ENDPOINTS_MOST;
use crate::session::{IDLE_MS, LONGEST_MS};
use crate::{Attempt, Endpoint, Identity, NewEndpoint};

pub(super) fn channel_of(word: &str) -> Result<Channel> {
    word.parse().map_err(|()| rows::odd("endpoints.channel", word))
}

/// Preferences from their column; a person who never said anything has the defaults.
pub(super) fn preferences_of(body: Option<String>) -> Result<Preferences> {
    body.map_or_else(
        || Ok(Preferences::default()),
        |body| serde_json::from_str(&body).map_err(|error| rows::odd("preferences.body", error)),
    )
}

/// An endpoint's owner, as people know them.
fn owner(row: &Row<'_>, person: usize, harness: usize, name: usize) -> Result<Named> {
    let (kind, id) = match (row.get::<_, Option<[u8; 16]>>(person)?, row.get::<_, Option<[u8; 16]>>(harness)?) {
        (Some(id), _) => (ParticipantKind::Person, ParticipantId::Person(PersonId::from_bytes(id))),
        (None, Some(id)) => (ParticipantKind::Harness, ParticipantId::Harness(HarnessId::from_bytes(id))),
        (None, None) => return Err(rows::odd("endpoints", "one that is nobody's")),
    };
    Ok(Named { kind, id, name: row.get(name)? })
}

/// The columns of an endpoint, in the order that [`endpoint`] reads them in.
const ENDPOINT: &str =
    "e.no, e.channel, e.address, e.secret, e.name, e.session_no, e.created_at, e.disabled_at IS NOT NULL, e.trouble";

/// An endpoint from its columns.
fn endpoint(row: &Row<'_>) -> Result<Endpoint> {
    Ok(Endpoint {
        endpoint_id: row.get(0)?,
        channel: channel_of(&row.get::<_, String>(1)?)?,
        address: row.get(2)?,
        secret: row.get(3)?,
        name: row.get(4)?,
        session_id: row.get(5)?,
        created_at: Timestamp::from_ms(row.get(6)?),
        disabled: row.get(7)?,
        trouble: row.get(8)?,
    })
}

/// Whose endpoints: the condition on `e`, with the participant's id as `?1`.
fn of(who: Who) -> (&'static str, [u8; 16]) {
    match who {
        Who::Person(id) => ("e.person_no = (SELECT no FROM persons WHERE person_id = ?1)", id.to_bytes()),
        Who::Harness(id) => ("e.harness_no = (SELECT no FROM harnesses WHERE harness_id = ?1)", id.to_bytes()),
    }
}

/// The endpoints of a person or a harness, in the order in which they were added. One whose session has ended by itself
/// is not among them.
pub(crate) fn list(connection: &Connection, who: Who, now: Timestamp) -> Result<Vec<Endpoint>> {
    let (condition, id) = of(who);
    connection
        .prepare_cached(&format!(
            "SELECT {ENDPOINT} FROM endpoints e WHERE {condition} AND (e.session_no IS NULL OR EXISTS (
                 SELECT 1 FROM sessions x WHERE x.no = e.session_no AND x.last_used > ?2 AND x.began > ?3))
             ORDER BY e.no"
        ))?
        .query_map((id, now.ms() - IDLE_MS, now.ms() - LONGEST_MS), endpoint)?
        .collect()
}

/// An endpoint that may be sent to, and whose it is.
pub(super) fn live(connection: &Connection, no: i64, now: Timestamp) -> Result<Option<(Endpoint, Named)>> {
    connection
        .prepare_cached(&format!(
            "SELECT {ENDPOINT}, p.person_id, h.harness_id, coalesce(p.name, h.name) FROM endpoints e
             LEFT JOIN persons p ON p.no = e.person_no LEFT JOIN harnesses h ON h.no = e.harness_no
             WHERE e.no = ?1 AND e.disabled_at IS NULL AND p.disabled_at IS NULL AND h.disabled_at IS NULL
                 AND (e.session_no IS NULL OR EXISTS (
                     SELECT 1 FROM sessions x WHERE x.no = e.session_no AND x.last_used > ?2 AND x.began > ?3))"
        ))?
        .query_row((no, now.ms() - IDLE_MS, now.ms() - LONGEST_MS), |row| Ok((endpoint(row)?, owner(row, 9, 10, 11)?)))
        .optional()
}

/// An endpoint of a person's that may be sent to, and the person as a viewer.
pub(crate) fn personal(connection: &Connection, no: i64, now: Timestamp) -> Result<Option<(Endpoint, Identity)>> {
    let Some((endpoint, _)) = live(connection, no, now)? else { return Ok(None) };
    let person_no: Option<i64> = connection
        .prepare_cached("SELECT person_no FROM endpoints WHERE no = ?1")?
        .query_row([no], |row| row.get(0))?;
    let Some(person_no) = person_no else { return Ok(None) };
    Ok(rows::person_identity(connection, person_no)?.map(|identity| (endpoint, identity)))
}

/// A person as a viewer; nothing where there is no such person, or they may not sign in any more.
pub(crate) fn person(connection: &Connection, id: PersonId) -> Result<Option<Identity>> {
    let no: Option<i64> = connection
        .prepare_cached("SELECT no FROM persons WHERE person_id = ?1")?
        .query_row([id.to_bytes()], |row| row.get(0))
        .optional()?;
    Ok(no.map(|no| rows::person_identity(connection, no)).transpose()?.flatten())
}

/// The endpoint at an address that is one person's alone, and that person as a viewer.
pub(crate) fn personal_at(
    connection: &Connection,
    channel: Channel,
    address: &str,
    now: Timestamp,
) -> Result<Option<(Endpoint, Identity)>> {
    let no: Option<i64> = connection
        .prepare_cached("SELECT no FROM endpoints WHERE channel = ?1 AND address = ?2 ORDER BY no DESC LIMIT 1")?
        .query_row((channel.as_str(), address), |row| row.get(0))
        .optional()?;
    Ok(no.map(|no| personal(connection, no, now)).transpose()?.flatten())
}

/// The other side knows an endpoint no more: a browser subscribes anew, anything else waits for its owner.
pub(super) fn gone(work: &mut Work<'_>, no: i64, channel: Channel, now: Timestamp) -> Result<()> {
    work.write()?;
    if channel == Channel::WebPush {
        work.connection.prepare_cached("DELETE FROM endpoints WHERE no = ?1")?.execute([no]).map(drop)
    } else {
        work.connection
            .prepare_cached("UPDATE endpoints SET disabled_at = ?2 WHERE no = ?1 AND disabled_at IS NULL")?
            .execute((no, now.ms()))?;
        work.connection
            .prepare_cached("UPDATE outbox SET state = 2 WHERE endpoint_no = ?1 AND state = 0")?
            .execute([no])
            .map(drop)
    }
}

/// Adds an endpoint. The same address on the same channel is the same endpoint: it is renewed, and whoever had a browser's
/// subscription before has it no more.
pub(crate) struct Add {
    pub(crate) viewer: Identity,
    pub(crate) endpoint: NewEndpoint,
}

impl Command for Add {
    /// Nothing where there are too many, or where the session has ended that it is to end with.
    type Done = Option<i64>;

    fn workspace(&self) -> Option<WorkspaceId> {
        Some(self.viewer.sender.workspace_id)
    }

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<Option<i64>, Refusal>> {
        let scene = work.scene(self.viewer.sender.workspace_id)?;
        let connection = work.connection;
        let (person_no, harness_no): (Option<i64>, Option<i64>) = match self.viewer.sender.who {
            Who::Person(id) => {
                let mut find = connection.prepare_cached("SELECT no FROM persons WHERE person_id = ?1")?;
                (Some(find.query_row([id.to_bytes()], |row| row.get(0))?), None)
            }
            Who::Harness(id) => {
                let mut find = connection.prepare_cached("SELECT no FROM harnesses WHERE harness_id = ?1")?;
                (None, Some(find.query_row([id.to_bytes()], |row| row.get(0))?))
            }
        };
        if let Some(session) = self.endpoint.session_id
            && !connection
                .prepare_cached("SELECT 1 FROM sessions WHERE no = ?1 AND person_no IS NOT DISTINCT FROM ?2")?
                .exists((session, person_no))?
        {
            return Ok(Ok(None));
        }
        work.write()?;
        insert(connection, scene.ws_no, (person_no, harness_no), &self.endpoint, scene.now).map(Ok)
    }
}

/// Adds an endpoint of a person or a harness, and has the log gone through from here on: what was asked before is in the
/// inbox. Nothing where there are too many.
pub(crate) fn insert(
    connection: &Connection,
    ws_no: i64,
    (person_no, harness_no): (Option<i64>, Option<i64>),
    endpoint: &NewEndpoint,
    now: Timestamp,
) -> Result<Option<i64>> {
    let NewEndpoint { channel, address, secret, name, session_id } = endpoint;
    if channel.is_one_persons()
        && let Some(no) = renewed(connection, person_no, endpoint)?
    {
        return Ok(Some(no));
    }
    let others: i64 = connection
        .prepare_cached(
            "SELECT count(*) FROM endpoints WHERE person_no IS NOT DISTINCT FROM ?1 AND harness_no IS NOT DISTINCT FROM ?2
                 AND NOT (channel = ?3 AND address = ?4)",
        )?
        .query_row((person_no, harness_no, channel.as_str(), address), |row| row.get(0))?;
    if others >= ENDPOINTS_MOST {
        return Ok(None);
    }
    connection
        .prepare_cached("INSERT INTO outbox_cursors (ws_no, seq) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute((ws_no, rows::head(connection, ws_no)?.0 as i64))?;
    connection
        .prepare_cached(
            "INSERT INTO endpoints (ws_no, person_no, harness_no, session_no, channel, address, secret, name, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (channel, address, coalesce(person_no, 0), coalesce(harness_no, 0))
             DO UPDATE SET session_no = excluded.session_no, secret = excluded.secret,
                 name = excluded.name, disabled_at = NULL, trouble = NULL
             RETURNING no",
        )?
        .query_row(
            (ws_no, person_no, harness_no, session_id, channel.as_str(), address, secret, name, now.ms()),
            |row| row.get(0),
        )
        .map(Some)
}

/// Such an address is at one place: whoever had it before has it no more, and a session has one subscription alone. Gives the number
/// of the session's earlier one, which is this one now: what was told by it is taken back by it too.
fn renewed(connection: &Connection, person_no: Option<i64>, endpoint: &NewEndpoint) -> Result<Option<i64>> {
    let NewEndpoint { channel, address, secret, name, session_id } = endpoint;
    let channel = channel.as_str();
    connection
        .prepare_cached("DELETE FROM endpoints WHERE channel = ?1 AND address = ?2 AND person_no IS DISTINCT FROM ?3")?
        .execute((channel, address, person_no))?;
    let earlier: Option<i64> = connection
        .prepare_cached(
            "SELECT no FROM endpoints WHERE channel = ?1 AND session_no = ?2 AND person_no IS NOT DISTINCT FROM ?3 AND address <> ?4",
        )?
        .query_row((channel, session_id, person_no, address), |row| row.get(0))
        .optional()?;
    let Some(no) = earlier else { return Ok(None) };
    connection
        .prepare_cached("DELETE FROM endpoints WHERE channel = ?1 AND address = ?2")?
        .execute((channel, address))?;
    connection
        .prepare_cached(
            "UPDATE endpoints SET address = ?2, secret = ?3, name = ?4, disabled_at = NULL, trouble = NULL
             WHERE no = ?1",
        )?
        .execute((no, address, secret, name))?;
    Ok(Some(no))
}

/// Removes an endpoint of one's own. Twice is a no-op.
pub(crate) struct Remove {
    pub(crate) who: Who,
    pub(crate) endpoint_id: i64,
}

impl Command for Remove {
    type Done = ();

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<(), Refusal>> {
        let (condition, id) = of(self.who);
        work.write()?;
        work.connection
            .prepare_cached(&format!("DELETE FROM endpoints AS e WHERE {condition} AND e.no = ?2"))?
            .execute((id, self.endpoint_id))?;
        Ok(Ok(()))
    }
}

/// How a person wants to be told.
pub(crate) fn preferences(connection: &Connection, person: PersonId) -> Result<Preferences> {
    let body: Option<String> = connection
        .prepare_cached("SELECT f.body FROM preferences f JOIN persons p ON p.no = f.person_no WHERE p.person_id = ?1")?
        .query_row([person.to_bytes()], |row| row.get(0))
        .optional()?;
    preferences_of(body)
}

/// A person says how they want to be told.
pub(crate) struct Prefer {
    pub(crate) person: PersonId,
    pub(crate) preferences: Preferences,
}

impl Command for Prefer {
    type Done = ();

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<(), Refusal>> {
        let body = serde_json::to_string(&self.preferences).map_err(|error| rows::odd("preferences", error))?;
        let workspace: Option<[u8; 16]> = work
            .connection
            .prepare_cached(
                "SELECT w.workspace_id FROM persons p JOIN workspaces w ON w.no = p.ws_no WHERE p.person_id = ?1",
            )?
            .query_row([self.person.to_bytes()], |row| row.get(0))
            .optional()?;
        let Some(workspace) = workspace else { return Ok(Ok(())) };
        let now = work.scene(WorkspaceId::from_bytes(workspace))?.now;
        let before = preferences(work.connection, self.person)?;
        work.write()?;
        work.connection
            .prepare_cached(
                "INSERT INTO preferences (person_no, body) SELECT no, ?2 FROM persons WHERE person_id = ?1
                 ON CONFLICT (person_no) DO UPDATE SET body = excluded.body",
            )?
            .execute((self.person.to_bytes(), body))?;
        outbox::release(work, self.person, &before, &self.preferences, now)?;
        Ok(Ok(()))
    }
}

/// Every try to tell somebody of an ask that the viewer may see, in their order.
pub(crate) fn attempts(
    connection: &Connection,
    viewer: &Identity,
    ask_id: AskId,
    now: Timestamp,
) -> Result<Option<Vec<Attempt>>> {
    if view::ask(connection, viewer, ask_id, now)?.is_none() {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached(
        "SELECT t.channel, t.name, t.kind, t.at, t.outcome, t.detail, p.person_id, p.name
         FROM workspaces w JOIN asks a ON a.ws_no = w.no JOIN attempts t ON t.ws_no = a.ws_no AND t.ask_pos = a.pos
         LEFT JOIN persons p ON p.no = t.person_no
         WHERE w.workspace_id = ?1 AND a.ask_id = ?2 ORDER BY t.no",
    )?;
    let found = statement.query_map((viewer.sender.workspace_id.to_bytes(), ask_id.to_bytes()), |row| {
        let person = row.get::<_, Option<[u8; 16]>>(6)?.map(PersonId::from_bytes);
        let name: Option<String> = row.get(7)?;
        Ok(Attempt {
            channel: channel_of(&row.get::<_, String>(0)?)?,
            name: row.get(1)?,
            kind: kind_of(row.get(2)?)?,
            at: Timestamp::from_ms(row.get(3)?),
            outcome: row.get(4)?,
            detail: row.get(5)?,
            person: person.map(|id| Named {
                kind: ParticipantKind::Person,
                id: ParticipantId::Person(id),
                name: name.unwrap_or_default(),
            }),
        })
    })?;
    found.collect::<Result<_>>().map(Some)
}

/// The secret under a name, made from the candidate where there is none.
pub(crate) struct Keep {
    pub(crate) name: &'static str,
    pub(crate) candidate: Vec<u8>,
}

impl Command for Keep {
    type Done = Vec<u8>;

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<Vec<u8>, Refusal>> {
        work.write()?;
        work.connection
            .prepare_cached("INSERT INTO secrets (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute((self.name, &self.candidate))?;
        work.connection
            .prepare_cached("SELECT value FROM secrets WHERE name = ?1")?
            .query_row([self.name], |row| row.get(0))
            .map(Ok)
    }
}
