//! Who a credential speaks for, and how a person's session begins and ends.

use crate::sql::{Connection, OptionalExtension, Result};
use chips_core::{Access, Refusal, Sender, Who};
use chips_protocol::{HarnessId, PersonId, SpaceId, Timestamp, WorkspaceId};

use super::rows;
use super::writer::{Command, Effect, Work};
use crate::session::{IDLE_MS, LONGEST_MS};
use crate::{Device, Identity, Proof, Session, SignInState, SignedIn, secret};

/// How often, in milliseconds, it is written that a session is in use.
const USED_EVERY_MS: i64 = 5 * 60 * 1000;
/// Characters of a device's name that are kept.
const DEVICE_LIMIT: usize = 100;

/// Whom a token speaks for. One statement, for every request asks this first: a row for each space that a person is in.
pub(crate) fn by_token(connection: &Connection, sha256: [u8; 32], now: Timestamp) -> Result<Option<Identity>> {
    let mut statement = connection.prepare_cached(
        "SELECT w.workspace_id, h.harness_id, h.name, p.person_id, p.name, p.owner, s.space_id FROM tokens t
         LEFT JOIN harnesses h ON h.no = t.harness_no AND h.disabled_at IS NULL
         LEFT JOIN persons p ON p.no = t.person_no AND p.disabled_at IS NULL
         JOIN workspaces w ON w.no = COALESCE(h.ws_no, p.ws_no)
         LEFT JOIN spaces s ON s.ws_no = p.ws_no AND (s.closed = 0
             OR EXISTS (SELECT 1 FROM members m WHERE m.space_no = s.no AND m.person_no = p.no))
         WHERE t.sha256 = ?1 AND (t.ends_at IS NULL OR t.ends_at > ?2)",
    )?;
    let rows = statement.query_map((sha256, now.ms()), |row| {
        let workspace_id = WorkspaceId::from_bytes(row.get(0)?);
        if let Some(harness) = row.get::<_, Option<[u8; 16]>>(1)? {
            let harness = HarnessId::from_bytes(harness);
            let sender = Sender { workspace_id, who: Who::Harness(harness) };
            return Ok(Identity { sender, name: row.get(2)?, access: Access::Harness(harness), owner: false });
        }
        let person = PersonId::from_bytes(row.get(3)?);
        let space = row.get::<_, Option<[u8; 16]>>(6)?.map(SpaceId::from_bytes);
        let sender = Sender { workspace_id, who: Who::Person(person) };
        let access = Access::Person(person, space.into_iter().collect());
        Ok(Identity { sender, name: row.get(4)?, access, owner: row.get(5)? })
    })?;
    let mut found: Option<Identity> = None;
    for row in rows {
        let row = row?;
        match (&mut found, row.access) {
            (Some(Identity { access: Access::Person(_, spaces), .. }), Access::Person(_, more)) => spaces.extend(more),
            (_, access) => found = Some(Identity { access, ..row }),
        }
    }
    Ok(found)
}

/// A way to sign in, as found.
struct Grant {
    no: i64,
    person_no: i64,
    state: SignInState,
}

fn grant(connection: &Connection, proof: &Proof, now: Timestamp) -> Result<Option<Grant>> {
    let (column, sha256) = match proof {
        Proof::Link(sha256) => ("link_sha256", sha256),
        Proof::Code(sha256) => ("code_sha256", sha256),
    };
    let sql = format!(
        "SELECT g.no, g.person_no, g.used_at, g.ends_at, p.name FROM grants g JOIN persons p ON p.no = g.person_no
         WHERE g.{column} = ?1 AND p.disabled_at IS NULL"
    );
    connection
        .prepare_cached(&sql)?
        .query_row([sha256], |row| {
            let used = row.get::<_, Option<i64>>(2)?.is_some();
            let state = if used {
                SignInState::Used
            } else if row.get::<_, i64>(3)? <= now.ms() {
                SignInState::Expired
            } else {
                SignInState::Good { name: row.get(4)? }
            };
            Ok(Grant { no: row.get(0)?, person_no: row.get(1)?, state })
        })
        .optional()
}

/// What a link or a code stands for.
pub(crate) fn state(connection: &Connection, proof: &Proof, now: Timestamp) -> Result<SignInState> {
    Ok(grant(connection, proof, now)?.map_or(SignInState::Unknown, |grant| grant.state))
}

/// Signs a person in, and uses the link and the code up.
pub(crate) struct SignIn {
    pub(crate) proof: Proof,
    pub(crate) device: Device,
}

impl Command for SignIn {
    type Done = SignedIn;

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<SignedIn, Refusal>> {
        let now = work.shared.clock.now();
        let found = grant(work.connection, &self.proof, now)?;
        let Some(grant) = found else { return Ok(Ok(SignedIn::No(SignInState::Unknown))) };
        let SignInState::Good { .. } = grant.state else { return Ok(Ok(SignedIn::No(grant.state))) };
        let Some(identity) = rows::person_identity(work.connection, grant.person_no)? else {
            return Ok(Ok(SignedIn::No(SignInState::Unknown)));
        };
        let secret = secret::new_secret();
        let device = Device { name: self.device.name.chars().take(DEVICE_LIMIT).collect() };
        work.write()?;
        let used = work
            .connection
            .prepare_cached("UPDATE grants SET used_at = ?2 WHERE no = ?1 AND used_at IS NULL")?
            .execute((grant.no, now.ms()))?;
        // Another server may have been quicker.
        if used == 0 {
            return Ok(Ok(SignedIn::No(SignInState::Used)));
        }
        let session_id = work
            .connection
            .prepare_cached(
                "INSERT INTO sessions (person_no, sha256, device, began, last_used) VALUES (?1, ?2, ?3, ?4, ?4) RETURNING no",
            )?
            .query_row((grant.person_no, secret::sha256(&secret), &device.name, now.ms()), |row| row.get(0))?;
        let session = Session { session_id, identity, device, began: now, last_used: now };
        Ok(Ok(SignedIn::Yes(secret, Box::new(session))))
    }
}

const SESSION: &str = "SELECT no, person_no, device, began, last_used FROM sessions";

/// A row of `sessions`, unless the session has ended by itself.
fn live(connection: &Connection, row: &crate::sql::Row<'_>, now: Timestamp) -> Result<Option<Session>> {
    let (began, last_used) = (Timestamp::from_ms(row.get(3)?), Timestamp::from_ms(row.get(4)?));
    if last_used.plus_ms(IDLE_MS) <= now || began.plus_ms(LONGEST_MS) <= now {
        return Ok(None);
    }
    let identity = rows::person_identity(connection, row.get(1)?)?;
    let (session_id, device) = (row.get(0)?, Device { name: row.get(2)? });
    Ok(identity.map(|identity| Session { session_id, identity, device, began, last_used }))
}

/// The session with this secret.
pub(crate) fn session(connection: &Connection, sha256: [u8; 32], now: Timestamp) -> Result<Option<Session>> {
    let mut statement = connection.prepare_cached(&format!("{SESSION} WHERE sha256 = ?1"))?;
    Ok(statement.query_row([sha256], |row| live(connection, row, now)).optional()?.flatten())
}

/// Whether it is time to write that a session is in use.
pub(crate) fn is_due(session: &Session, now: Timestamp) -> bool {
    session.last_used.plus_ms(USED_EVERY_MS) <= now
}

/// The sessions of a person, the last used first.
pub(crate) fn sessions(connection: &Connection, viewer: &Identity, now: Timestamp) -> Result<Vec<Session>> {
    let Who::Person(person) = viewer.sender.who else { return Ok(Vec::new()) };
    let mut statement = connection.prepare_cached(&format!(
        "{SESSION} WHERE person_no = (SELECT no FROM persons WHERE person_id = ?1) ORDER BY last_used DESC, no DESC"
    ))?;
    let found = statement.query_map([person.to_bytes()], |row| live(connection, row, now))?;
    found.filter_map(Result::transpose).collect()
}

/// A person ends one of their own sessions.
pub(crate) struct EndSession {
    pub(crate) who: Who,
    pub(crate) session_id: i64,
}

impl Command for EndSession {
    type Done = ();

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<(), Refusal>> {
        let Who::Person(person) = self.who else { return Ok(Ok(())) };
        work.write()?;
        let ended = work
            .connection
            .prepare_cached(
                "DELETE FROM sessions WHERE no = ?1 AND person_no = (SELECT no FROM persons WHERE person_id = ?2)",
            )?
            .execute((self.session_id, person.to_bytes()))?;
        if ended > 0 {
            // Streams that the session holds open are to look again.
            let epoch: i64 = work
                .connection
                .prepare_cached("UPDATE meta SET admin_epoch = admin_epoch + 1 RETURNING admin_epoch")?
                .query_row([], |row| row.get(0))?;
            work.staged.effects.push(Effect::Access(epoch.unsigned_abs()));
        }
        Ok(Ok(()))
    }
}
