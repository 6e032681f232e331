//! Claiming: what is due is given to a sender, unless nobody needs it any more or it is passed over.

use chips_core::Refusal;
use chips_core::notify::{Kind, Preferences};
use chips_protocol::api::{AskState, Named};
use chips_protocol::{ParticipantId, Timestamp, WorkspaceId};

use super::{Asked, MAY_BE_TOLD, asked, kind_of, state};
use crate::Notice;
use crate::engine::writer::{Command, Work};
use crate::engine::{endpoints, view};
use crate::notice::CLAIM_MS;
use crate::sql::postgres::Lock;
use crate::sql::{Connection, OptionalExtension, Result};

/// Claims what is due, one message for each endpoint at a time: a slow one delays none but its own.
pub(crate) struct Claim {
    pub(crate) limit: usize,
}

/// Messages that one job looks at at most. What is passed over takes nobody's place: behind it the next is looked at.
const LOOKED_AT: usize = 1_000;

/// A reminder is not sent so shortly before a last call, in milliseconds.
const SOON_MS: i64 = 5 * 60_000;

/// A row of `outbox` that is due.
struct Due {
    ws_no: i64,
    no: i64,
    workspace_id: WorkspaceId,
    ask_pos: i64,
    endpoint_no: i64,
    kind: Kind,
    round: u32,
    due_at: Timestamp,
    tries: u32,
}

/// What becomes of a message that is due.
enum Fate {
    Sent(Box<Notice>),
    /// It can't be sent now; it is looked at again then, as the one of that round.
    PassedOver(Timestamp, u32),
    NotNeeded,
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
        let (mut notices, mut looked_at) = (Vec::new(), 0);
        while notices.len() < self.limit && looked_at < LOOKED_AT {
            let due = due(work.connection, self.limit - notices.len(), now)?;
            if due.is_empty() {
                break;
            }
            looked_at += due.len();
            for due in due {
                work.write()?;
                match fate(work.connection, &due, now)? {
                    Fate::Sent(notice) => {
                        work.connection
                            .prepare_cached("UPDATE outbox SET claimed_until = ?3 WHERE ws_no = ?1 AND no = ?2")?
                            .execute((due.ws_no, due.no, now.plus_ms(CLAIM_MS).ms()))?;
                        notices.push(*notice);
                    }
                    Fate::PassedOver(due_at, round) => {
                        work.connection
                            .prepare_cached("UPDATE outbox SET due_at = ?3, round = ?4 WHERE ws_no = ?1 AND no = ?2")?
                            .execute((due.ws_no, due.no, due_at.ms(), round))?;
                    }
                    Fate::NotNeeded => {
                        work.connection
                            .prepare_cached("UPDATE outbox SET state = ?3 WHERE ws_no = ?1 AND no = ?2")?
                            .execute((due.ws_no, due.no, state::NOT_NEEDED))?;
                    }
                }
            }
        }
        Ok(Ok(notices))
    }
}

/// The first message of each endpoint that is due and that nobody sends, of those to which nothing is under way.
fn due(connection: &Connection, limit: usize, now: Timestamp) -> Result<Vec<Due>> {
    connection
        .prepare_cached(
            "SELECT o.no, w.workspace_id, o.ask_pos, o.endpoint_no, o.kind, o.tries, o.round, o.due_at, o.ws_no
             FROM (SELECT ws_no, min(no) AS no FROM outbox WHERE state = 0 AND due_at <= ?1 AND NOT EXISTS (
                       SELECT 1 FROM outbox b WHERE b.ws_no = outbox.ws_no AND b.endpoint_no = outbox.endpoint_no
                           AND b.claimed_until > ?1)
                   GROUP BY ws_no, endpoint_no) f
             JOIN outbox o ON o.ws_no = f.ws_no AND o.no = f.no JOIN workspaces w ON w.no = o.ws_no
             ORDER BY o.due_at LIMIT ?2",
        )?
        .query_map((now.ms(), limit as i64), |row| {
            Ok(Due {
                ws_no: row.get(8)?,
                no: row.get(0)?,
                workspace_id: WorkspaceId::from_bytes(row.get(1)?),
                ask_pos: row.get(2)?,
                endpoint_no: row.get(3)?,
                kind: kind_of(row.get(4)?)?,
                tries: row.get(5)?,
                round: row.get(6)?,
                due_at: Timestamp::from_ms(row.get(7)?),
            })
        })?
        .collect()
}

/// What becomes of it: people may have changed their mind, or lost the right to see it, or its asker may be gone. What of
/// that can change again lets the message wait, and what was missed meanwhile never comes all at once.
fn fate(connection: &Connection, due: &Due, now: Timestamp) -> Result<Fate> {
    let Some(ask) = asked(connection, due.ask_pos)? else { return Ok(Fate::NotNeeded) };
    let Some((endpoint, owner)) = endpoints::live(connection, due.endpoint_no, now)? else {
        return Ok(Fate::NotNeeded);
    };
    let (run_title, lapsed, private): (Option<String>, bool, bool) = connection
        .prepare_cached(
            "SELECT r.title, r.ended_at IS NOT NULL OR r.lease_until <= ?2, coalesce(s.private, 0)
             FROM asks a JOIN runs r ON r.ws_no = a.ws_no AND r.no = a.run_no LEFT JOIN spaces s ON s.no = a.space_no
             WHERE a.ws_no = ?3 AND a.pos = ?1",
        )?
        .query_row((due.ask_pos, now.ms(), due.ws_no), |row| {
            Ok((row.get(0)?, row.get::<_, Option<bool>>(1)?.unwrap_or_default(), row.get(2)?))
        })?;
    let told = may_be_told(connection, &ask, &owner)?;
    let zone = told.as_ref().map_or_else(|| Preferences::default().zone, |preferences| preferences.zone.clone());
    // What a person who may not see it any more was shown is taken back without a word of it.
    let private = private || (due.kind == Kind::Closed && told.is_none());
    if matches!(due.kind, Kind::Asked | Kind::Reminder | Kind::LastCall) {
        if ask.state != AskState::Open || ask.facts.before_deadline(now).is_none() {
            return Ok(Fate::NotNeeded);
        }
        let preferences = told
            .filter(|preferences| preferences.wants(endpoint.channel, &ask.facts) && preferences.wants_kind(due.kind));
        let Some(preferences) = preferences.filter(|_| due.kind == Kind::Asked || !lapsed) else {
            return Ok(passed_over(&ask, due, now));
        };
        // A last call that is about to come says the same, and more.
        let soon = ask.facts.last_call().is_some_and(|call| now < call && call < now.plus_ms(SOON_MS));
        if due.kind == Kind::Reminder && soon && preferences.wants_kind(Kind::LastCall) {
            return Ok(passed_over(&ask, due, now));
        }
        // Of two that are late together one is enough.
        let since = match due.kind {
            Kind::LastCall => ask.facts.last_call(),
            Kind::Reminder => Some(due.due_at),
            _ => None,
        };
        if let Some(since) = since
            && told_since(connection, due, since)?
        {
            return Ok(if due.kind == Kind::LastCall { Fate::NotNeeded } else { passed_over(&ask, due, now) });
        }
        let quiet_until = preferences.after_quiet(ask.facts.tier, now);
        if quiet_until > now {
            return Ok(match due.kind {
                Kind::LastCall => passed_over(&ask, due, now),
                _ => Fate::PassedOver(quiet_until, due.round),
            });
        }
    }
    let shown = view::ask_at(connection, due.ask_pos, now)?;
    let own = shown.answerer.as_ref().is_some_and(|answerer| answerer.id == owner.id);
    if due.kind == Kind::Closed && own && !endpoint.channel.replaces() {
        return Ok(Fate::NotNeeded);
    }
    Ok(Fate::Sent(Box::new(Notice {
        earlier: earlier(connection, due)?,
        no: due.no,
        kind: due.kind,
        endpoint,
        owner,
        workspace_id: due.workspace_id,
        ask: shown,
        run_title,
        private,
        zone,
        tries: due.tries,
    })))
}

fn passed_over(ask: &Asked, due: &Due, now: Timestamp) -> Fate {
    let again = match due.kind {
        Kind::LastCall => ask.facts.last_call_again(now).map(|at| (at, due.round)),
        _ => ask.facts.passed_over(due.due_at, due.round, now),
    };
    again.map_or(Fate::NotNeeded, |(at, round)| Fate::PassedOver(at, round))
}

/// Whether a message about the ask was taken at this endpoint from then on.
fn told_since(connection: &Connection, due: &Due, since: Timestamp) -> Result<bool> {
    connection
        .prepare_cached(
            "SELECT 1 FROM attempts WHERE ws_no = ?4 AND ask_pos = ?1 AND endpoint_no = ?2 AND outcome = 'accepted' AND at >= ?3",
        )?
        .exists((due.ask_pos, due.endpoint_no, since.ms(), due.ws_no))
}

/// The names that the other side gave to what it took about the ask at this endpoint, the first one first.
fn earlier(connection: &Connection, due: &Due) -> Result<Vec<String>> {
    connection
        .prepare_cached(
            "SELECT detail FROM attempts WHERE ws_no = ?1 AND ask_pos = ?2 AND endpoint_no = ?3 AND outcome = 'accepted'
                 AND detail <> '' ORDER BY no",
        )?
        .query_map((due.ws_no, due.ask_pos, due.endpoint_no), |row| row.get(0))?
        .collect()
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
