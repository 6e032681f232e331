//! Recording what the other side made of a message, and what follows from it.

use chips_core::Refusal;
use chips_core::notify::{Channel, Kind, Outcome, retry_after};
use chips_protocol::api::AskState;
use chips_protocol::{Timestamp, WorkspaceId};

use super::{Asked, add, asked, kind_code, kind_of, set_told, state};
use crate::engine::work::Scene;
use crate::engine::writer::{Command, Work};
use crate::engine::{endpoints, rows};
use crate::notice::CLAIM_MS;
use crate::sql::{Connection, OptionalExtension, Result, Row};

/// What the other side made of a message.
pub(crate) struct Record {
    pub(crate) workspace_id: WorkspaceId,
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
}

fn sent(connection: &Connection, ws_no: i64, no: i64) -> Result<Option<Sent>> {
    let mut statement = connection.prepare_cached(
        "SELECT o.ask_pos, o.endpoint_no, o.kind, o.round, o.tries, o.state, e.channel, e.name, e.person_no
         FROM outbox o JOIN endpoints e ON e.no = o.endpoint_no WHERE o.ws_no = ?1 AND o.no = ?2",
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
        })
    };
    statement.query_row((ws_no, no), read).optional()
}

impl Command for Record {
    type Done = ();

    /// Beside other servers: what closes the ask must not fall between what is read here and what is written.
    fn workspace(&self) -> Option<WorkspaceId> {
        Some(self.workspace_id)
    }

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<(), Refusal>> {
        let now = work.shared.clock.now();
        let Scene { ws_no, .. } = work.scene(self.workspace_id)?;
        // An endpoint that was removed meanwhile took its messages along.
        let Some(sent) = sent(work.connection, ws_no, self.no)? else { return Ok(Ok(())) };
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
                "INSERT INTO attempts (ws_no, ask_pos, endpoint_no, channel, name, person_no, kind, at, outcome, detail)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute((
                ws_no,
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
            outcome if outcome.is_accepted() => None,
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
        let accepted = self.outcome.is_accepted();
        let left = match (accepted, again) {
            (true, _) => state::ACCEPTED,
            (_, Some(_)) => state::WAITS,
            _ if over => state::NOT_NEEDED,
            _ => state::GIVEN_UP,
        };
        work.connection
            .prepare_cached(
                "UPDATE outbox SET state = ?2, tries = tries + 1, claimed_until = 0, due_at = coalesce(?3, due_at)
                 WHERE ws_no = ?4 AND no = ?1",
            )?
            .execute((self.no, left, again.map(Timestamp::ms), ask.ws_no))?;
        if let Outcome::Gone(_) = self.outcome {
            endpoints::gone(work, sent.endpoint_no, sent.channel, now)?;
        }
        // One that did not answer in time may have taken the message all the same.
        if over && (accepted || self.outcome == Outcome::TimedOut) {
            add(work, ask, sent.endpoint_no, Kind::Closed, 0, now)?;
        }
        if personal && accepted {
            set_told(work, ask.pos, true)?;
            // Whether they want to be reminded is looked at when it is due: until then they may have changed their mind.
            let round = if sent.kind == Kind::Reminder { sent.round + 1 } else { 1 };
            if !over
                && sent.kind != Kind::LastCall
                && let Some(due) = ask.facts.reminder(now, round)
            {
                add(work, ask, sent.endpoint_no, Kind::Reminder, round, due)?;
            }
        }
        if sent.kind == Kind::Asked && !accepted {
            // Every way was tried and nobody was reached so far; whoever is reached by a later try makes it good.
            let hope: bool = work
                .connection
                .prepare_cached(
                    "SELECT 1 FROM outbox WHERE ws_no = ?1 AND ask_pos = ?2 AND kind = 0
                         AND (state = 1 OR (state = 0 AND tries = 0))",
                )?
                .exists((ask.ws_no, ask.pos))?;
            if !hope {
                work.connection
                    .prepare_cached("UPDATE asks SET told = 0 WHERE ws_no = ?1 AND pos = ?2 AND told IS NULL")?
                    .execute((ask.ws_no, ask.pos))?;
            }
        }
        Ok(())
    }
}
