//! What administration writes, inside its transaction.

use crate::sql::{OptionalExtension, Transaction};
use chips_core::budget::{DEFAULT_HOUR, DEFAULT_OPEN};
use chips_protocol::{HarnessId, ParticipantId, PersonId, SpaceId, Timestamp, WorkspaceId, limits, text};

use super::{AdminError, Initialised, Issued, SignIn};
use crate::clock::TimeSource;
use crate::engine::rows;
use crate::postgres::node;
use crate::secret::{self, TokenKind};
use crate::session::SIGN_IN_MS;

/// The time of an act: Chips' clock as far as it can be known beside a server, never behind the log.
pub(super) fn now(transaction: &Transaction<'_>) -> Result<Timestamp, AdminError> {
    let clock = if transaction.is_postgres() { node::read_clock(transaction)? } else { TimeSource::System.wall() };
    Ok(clock.max(rows::last_ts(transaction)?))
}

fn check_name(name: &str) -> Result<(), AdminError> {
    text::check_name(name, limits::NAME).map_err(AdminError::Refused)
}

/// The time part and the random part of a new identifier.
fn fresh(now: Timestamp) -> (u64, u128) {
    (now.ms().unsigned_abs(), u128::from_be_bytes(secret::random()))
}

pub(super) fn workspace_no(transaction: &Transaction<'_>, workspace: WorkspaceId) -> Result<i64, AdminError> {
    rows::workspace_no(transaction, workspace)?
        .ok_or_else(|| AdminError::NotFound(format!("there is no workspace {workspace}")))
}

/// The number of a workspace that may get somebody or something new: one that was erased has ended.
pub(super) fn live_workspace(transaction: &Transaction<'_>, workspace: WorkspaceId) -> Result<i64, AdminError> {
    let no = workspace_no(transaction, workspace)?;
    if rows::ended_workspaces(transaction)?.contains(&workspace.to_string()) {
        return Err(AdminError::Refused(format!(
            "{workspace} was erased and has ended; `chips workspace add NAME` makes another"
        )));
    }
    Ok(no)
}

pub(super) fn add_workspace(transaction: &Transaction<'_>, name: &str) -> Result<Initialised, AdminError> {
    check_name(name)?;
    let now = now(transaction)?;
    let (ms, random) = fresh(now);
    let workspace_id = WorkspaceId::from_parts(ms, random);
    let ws_no: i64 = transaction.query_row(
        "INSERT INTO workspaces (workspace_id, name, created_at) VALUES (?1, ?2, ?3) RETURNING no",
        (workspace_id.to_bytes(), name, now.ms()),
        |row| row.get(0),
    )?;
    let space_id = add_space(transaction, ws_no, "General", &[])?;
    let (person, sign_in) = add_person(transaction, ws_no, "Owner", true)?;
    let harness = add_harness(transaction, ws_no, "Harness")?;
    Ok(Initialised { workspace_id, space_id, person, harness, sign_in })
}

pub(super) fn add_person(
    transaction: &Transaction<'_>,
    ws_no: i64,
    name: &str,
    owner: bool,
) -> Result<(Issued<PersonId>, SignIn), AdminError> {
    check_name(name)?;
    let now = now(transaction)?;
    let (ms, random) = fresh(now);
    let id = PersonId::from_parts(ms, random);
    let person_no: i64 = transaction.query_row(
        "INSERT INTO persons (ws_no, person_id, name, owner, created_at) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING no",
        (ws_no, id.to_bytes(), name, owner, now.ms()),
        |row| row.get(0),
    )?;
    let token = issue(transaction, Owner::Person(person_no), now)?;
    Ok((Issued { id, token }, grant(transaction, person_no)?))
}

pub(super) fn add_harness(
    transaction: &Transaction<'_>,
    ws_no: i64,
    name: &str,
) -> Result<Issued<HarnessId>, AdminError> {
    check_name(name)?;
    let now = now(transaction)?;
    let (ms, random) = fresh(now);
    let id = HarnessId::from_parts(ms, random);
    let harness_no: i64 = transaction.query_row(
        "INSERT INTO harnesses (ws_no, harness_id, name, open_limit, hour_limit, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING no",
        (ws_no, id.to_bytes(), name, DEFAULT_OPEN as i64, DEFAULT_HOUR as i64, now.ms()),
        |row| row.get(0),
    )?;
    let token = issue(transaction, Owner::Harness(harness_no), now)?;
    Ok(Issued { id, token })
}

pub(super) fn add_space(
    transaction: &Transaction<'_>,
    ws_no: i64,
    name: &str,
    members: &[PersonId],
) -> Result<SpaceId, AdminError> {
    check_name(name)?;
    let now = now(transaction)?;
    let (ms, random) = fresh(now);
    let id = SpaceId::from_parts(ms, random);
    let space_no: i64 = transaction.query_row(
        "INSERT INTO spaces (ws_no, space_id, name, closed, created_at) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING no",
        (ws_no, id.to_bytes(), name, !members.is_empty(), now.ms()),
        |row| row.get(0),
    )?;
    for member in members {
        let person = find_person(transaction, *member)?;
        if person.ws_no != ws_no {
            return Err(AdminError::Refused(format!("{member} is not in this workspace")));
        }
        transaction.execute(
            "INSERT INTO members (space_no, person_no) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            (space_no, person.no),
        )?;
    }
    Ok(id)
}

/// Whose a token is.
#[derive(Clone, Copy)]
enum Owner {
    Person(i64),
    Harness(i64),
}

fn issue(transaction: &Transaction<'_>, owner: Owner, now: Timestamp) -> Result<String, AdminError> {
    let (kind, person_no, harness_no) = match owner {
        Owner::Person(no) => (TokenKind::Person, Some(no), None),
        Owner::Harness(no) => (TokenKind::Harness, None, Some(no)),
    };
    let token = secret::new_token(kind);
    transaction.execute(
        "INSERT INTO tokens (sha256, person_no, harness_no, created_at) VALUES (?1, ?2, ?3, ?4)",
        (secret::sha256(&token), person_no, harness_no, now.ms()),
    )?;
    Ok(token)
}

/// A new way to sign in for an enabled person.
pub(super) fn grant(transaction: &Transaction<'_>, person_no: i64) -> Result<SignIn, AdminError> {
    let now = now(transaction)?;
    let link = secret::new_secret();
    // Forty bits may meet those of another code that is still kept.
    let code = loop {
        let code = secret::new_code();
        let taken = transaction
            .prepare_cached("SELECT 1 FROM grants WHERE code_sha256 = ?1")?
            .exists([secret::sha256(&secret::canonical_code(&code))])?;
        if !taken {
            break code;
        }
    };
    transaction.execute(
        "INSERT INTO grants (person_no, link_sha256, code_sha256, ends_at) VALUES (?1, ?2, ?3, ?4)",
        (
            person_no,
            secret::sha256(&link),
            secret::sha256(&secret::canonical_code(&code)),
            now.plus_ms(SIGN_IN_MS).ms(),
        ),
    )?;
    Ok(SignIn { secret: link, code })
}

/// A row of `persons` or `harnesses`.
pub(super) struct Found {
    pub(super) no: i64,
    pub(super) ws_no: i64,
    pub(super) disabled: bool,
}

fn found(row: &crate::sql::Row<'_>) -> crate::sql::Result<Found> {
    Ok(Found { no: row.get(0)?, ws_no: row.get(1)?, disabled: row.get::<_, Option<i64>>(2)?.is_some() })
}

fn find_person(transaction: &Transaction<'_>, person: PersonId) -> Result<Found, AdminError> {
    transaction
        .query_row("SELECT no, ws_no, disabled_at FROM persons WHERE person_id = ?1", [person.to_bytes()], found)
        .optional()?
        .ok_or_else(|| AdminError::NotFound(format!("there is no person {person}; see `chips person list`")))
}

pub(super) fn find_harness(transaction: &Transaction<'_>, harness: HarnessId) -> Result<Found, AdminError> {
    transaction
        .query_row("SELECT no, ws_no, disabled_at FROM harnesses WHERE harness_id = ?1", [harness.to_bytes()], found)
        .optional()?
        .ok_or_else(|| AdminError::NotFound(format!("there is no harness {harness}; see `chips harness list`")))
}

/// The number of a person who is not disabled.
pub(super) fn enabled_person(transaction: &Transaction<'_>, person: PersonId) -> Result<i64, AdminError> {
    let found = find_person(transaction, person)?;
    if found.disabled {
        return Err(AdminError::Refused(format!("{person} is disabled")));
    }
    Ok(found.no)
}

pub(super) fn rotate(
    transaction: &Transaction<'_>,
    id: ParticipantId,
    overlap_ms: Option<i64>,
) -> Result<(Issued<ParticipantId>, Option<SignIn>), AdminError> {
    let owner = match id {
        ParticipantId::Person(person) => Owner::Person(enabled_person(transaction, person)?),
        ParticipantId::Harness(harness) => {
            let found = find_harness(transaction, harness)?;
            if found.disabled {
                return Err(AdminError::Refused(format!("{harness} is disabled")));
            }
            Owner::Harness(found.no)
        }
        ParticipantId::Agent(_) | ParticipantId::System => return Err(no_credential(id)),
    };
    let now = now(transaction)?;
    let (column, no) = match owner {
        Owner::Person(no) => ("person_no", no),
        Owner::Harness(no) => ("harness_no", no),
    };
    match overlap_ms.filter(|ms| *ms > 0) {
        Some(ms) => transaction.execute(
            &format!("UPDATE tokens SET ends_at = CASE WHEN ends_at < ?2 THEN ends_at ELSE ?2 END WHERE {column} = ?1"),
            (no, now.plus_ms(ms).ms()),
        )?,
        None => transaction.execute(&format!("DELETE FROM tokens WHERE {column} = ?1"), [no])?,
    };
    let token = issue(transaction, owner, now)?;
    let sign_in = match owner {
        Owner::Person(no) => Some(grant(transaction, no)?),
        Owner::Harness(_) => None,
    };
    Ok((Issued { id, token }, sign_in))
}

fn no_credential(id: ParticipantId) -> AdminError {
    AdminError::NotFound(format!("{id} is neither a person nor a harness: it has no token of its own"))
}

pub(super) fn disable(transaction: &Transaction<'_>, id: ParticipantId) -> Result<(), AdminError> {
    let now = now(transaction)?.ms();
    match id {
        ParticipantId::Person(person) => {
            let no = find_person(transaction, person)?.no;
            transaction
                .execute("UPDATE persons SET disabled_at = coalesce(disabled_at, ?2) WHERE no = ?1", (no, now))?;
            transaction.execute("DELETE FROM tokens WHERE person_no = ?1", [no])?;
            transaction.execute("DELETE FROM sessions WHERE person_no = ?1", [no])?;
            transaction.execute("DELETE FROM grants WHERE person_no = ?1", [no])?;
        }
        ParticipantId::Harness(harness) => {
            let no = find_harness(transaction, harness)?.no;
            transaction
                .execute("UPDATE harnesses SET disabled_at = coalesce(disabled_at, ?2) WHERE no = ?1", (no, now))?;
            transaction.execute("DELETE FROM tokens WHERE harness_no = ?1", [no])?;
        }
        ParticipantId::Agent(_) | ParticipantId::System => return Err(no_credential(id)),
    }
    Ok(())
}

pub(super) fn set_budget(
    transaction: &Transaction<'_>,
    harness: HarnessId,
    open: Option<Option<u64>>,
    hour: Option<Option<u64>>,
) -> Result<(), AdminError> {
    let no = find_harness(transaction, harness)?.no;
    let column = |limit: Option<u64>| limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
    if let Some(open) = open {
        transaction.execute("UPDATE harnesses SET open_limit = ?2 WHERE no = ?1", (no, column(open)))?;
    }
    if let Some(hour) = hour {
        transaction.execute("UPDATE harnesses SET hour_limit = ?2 WHERE no = ?1", (no, column(hour)))?;
    }
    Ok(())
}

pub(super) fn set_member(
    transaction: &Transaction<'_>,
    space: SpaceId,
    person: PersonId,
    member: bool,
) -> Result<(), AdminError> {
    let (space_no, ws_no, closed): (i64, i64, bool) = transaction
        .query_row("SELECT no, ws_no, closed FROM spaces WHERE space_id = ?1", [space.to_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?
        .ok_or_else(|| AdminError::NotFound(format!("there is no space {space}; see `chips space list`")))?;
    let found = find_person(transaction, person)?;
    if found.ws_no != ws_no {
        return Err(AdminError::Refused(format!("{person} is not in the workspace of {space}")));
    }
    if !closed {
        return Err(AdminError::Refused(format!("{space} is an open space: everybody is in it")));
    }
    if member {
        transaction.execute(
            "INSERT INTO members (space_no, person_no) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            (space_no, found.no),
        )?;
    } else {
        transaction.execute("DELETE FROM members WHERE space_no = ?1 AND person_no = ?2", (space_no, found.no))?;
    }
    Ok(())
}

pub(super) fn set_private(transaction: &Transaction<'_>, space: SpaceId, private: bool) -> Result<(), AdminError> {
    match transaction.execute("UPDATE spaces SET private = ?2 WHERE space_id = ?1", (space.to_bytes(), private))? {
        0 => Err(AdminError::NotFound(format!("there is no space {space}; see `chips space list`"))),
        _ => Ok(()),
    }
}

pub(super) fn set_owner(
    transaction: &Transaction<'_>,
    harness: HarnessId,
    owner: Option<PersonId>,
) -> Result<(), AdminError> {
    let harness = find_harness(transaction, harness)?;
    let owner_no = match owner {
        Some(person) => {
            let found = find_person(transaction, person)?;
            if found.ws_no != harness.ws_no {
                return Err(AdminError::Refused(format!("{person} is not in this workspace")));
            }
            Some(enabled_person(transaction, person)?)
        }
        None => None,
    };
    transaction.execute("UPDATE harnesses SET owner_no = ?2 WHERE no = ?1", (harness.no, owner_no))?;
    Ok(())
}
