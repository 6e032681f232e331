//! What a job reads and appends inside the writer's transaction.

use std::sync::{Arc, PoisonError};

use crate::sql::{OptionalExtension, Result};
use chips_core::{Access, AskFacts, RunFacts, Sender, Who, ask, tier};
use chips_protocol::api::LateAnswer;
use chips_protocol::{
    AgentId, AskId, Content, Event, EventId, HarnessId, Participant, RunId, SpaceId, Timestamp, WorkspaceId,
};

use super::keys;
use super::rows::{self, NO_DEADLINE};
use super::shared::lock;
use super::usage::Limits;
use super::writer::{Effect, Place, Undo, Work};
use crate::postgres::ahead::{NewAsk, NewEvent};
use crate::postgres::node;
use crate::{DeadlineChange, Record};

/// Late answers that are kept beside an ask.
const LATE_KEPT: usize = 10;

/// The workspace that a job works in, and Chips' time for the job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) ws_no: i64,
    /// Never behind the log's last `ts`.
    pub(crate) now: Timestamp,
}

/// A run as the writer needs it.
pub(crate) struct RunRow {
    pub(crate) run_no: i64,
    pub(crate) harness_no: i64,
    pub(crate) space_no: Option<i64>,
    pub(crate) limits: Limits,
    pub(crate) facts: RunFacts,
}

/// An ask as the writer needs it.
pub(crate) struct AskRow {
    pub(crate) pos: i64,
    pub(crate) harness_no: i64,
    pub(crate) space_no: Option<i64>,
    pub(crate) deadline: i64,
    pub(crate) facts: AskFacts,
}

impl Work<'_> {
    /// The workspace of a job, and its time.
    pub(crate) fn scene(&mut self, workspace_id: WorkspaceId) -> Result<Scene> {
        if let Some(place) = self.state.places.get(&workspace_id) {
            let now = self.shared.clock.now().max(place.last_ts);
            return Ok(Scene { workspace_id, ws_no: place.ws_no, now });
        }
        let unknown = || rows::odd("a credential", format_args!("the unknown workspace {workspace_id}"));
        let (ws_no, head, last_ts) = match &self.shared.node {
            // From here to the end of the transaction no other server appends to this log.
            Some(_) => node::take_turn_in(self, workspace_id)?.ok_or_else(unknown)?,
            None => {
                let ws_no = rows::workspace_no(self.connection, workspace_id)?.ok_or_else(unknown)?;
                let (head, last_ts) = rows::head(self.connection, ws_no)?;
                (ws_no, head, last_ts)
            }
        };
        let log = self.shared.log_from(workspace_id, head);
        self.state.places.insert(workspace_id, Place { ws_no, found: head, head, last_ts, log });
        Ok(Scene { workspace_id, ws_no, now: self.shared.clock.now().max(last_ts) })
    }

    /// An id for an event of Chips' own.
    pub(crate) fn fresh(&mut self, now: Timestamp) -> EventId {
        EventId::from_parts(now.ms().unsigned_abs(), self.state.random.next())
    }

    /// The event at a place, from memory where it is new.
    pub(crate) fn record(&self, scene: &Scene, pos: i64) -> Result<Arc<Record>> {
        self.find_record(scene, pos)?.ok_or_else(|| rows::odd("the log", format_args!("nothing at {pos}")))
    }

    fn find_record(&self, scene: &Scene, pos: i64) -> Result<Option<Arc<Record>>> {
        let place = self.state.places.get(&scene.workspace_id);
        match place.and_then(|place| place.log.record(rows::seq(pos))) {
            Some(record) => Ok(Some(record)),
            None => rows::record_at(self.connection, pos),
        }
    }

    /// The event that the sender's accepted write with this key appended.
    pub(crate) fn by_key(&self, scene: &Scene, sender: &Sender, key: &str) -> Result<Option<Arc<Record>>> {
        for pos in keys::places(self.connection, self.shared, scene.ws_no, sender, key)? {
            // One that this very transaction drops is not there any more, though its hash still is.
            if let Some(record) = self.find_record(scene, pos)?
                && is_write_of(&record.event, sender, key)
            {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The event with this id.
    pub(crate) fn by_id(&self, scene: &Scene, id: EventId) -> Result<Option<Arc<Record>>> {
        let pos = self
            .connection
            .prepare_cached("SELECT pos FROM events WHERE ws_no = ?1 AND event_id = ?2")?
            .query_row((scene.ws_no, id.to_bytes()), |row| row.get(0))
            .optional()?;
        pos.map(|pos| self.record(scene, pos)).transpose()
    }

    /// A run of the workspace, whoever's it is.
    pub(crate) fn run(&self, scene: &Scene, run_id: RunId) -> Result<Option<RunRow>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT r.no, r.harness_no, r.space_no, r.ended_at, h.harness_id, h.open_limit, h.hour_limit, s.space_id
             FROM runs r JOIN harnesses h ON h.no = r.harness_no LEFT JOIN spaces s ON s.no = r.space_no
             WHERE r.ws_no = ?1 AND r.run_id = ?2",
        )?;
        statement
            .query_row((scene.ws_no, run_id.to_bytes()), |row| {
                Ok(RunRow {
                    run_no: row.get(0)?,
                    harness_no: row.get(1)?,
                    space_no: row.get(2)?,
                    limits: Limits { open: row.get(5)?, hour: row.get(6)? },
                    facts: RunFacts {
                        run_id,
                        harness_id: HarnessId::from_bytes(row.get(4)?),
                        space_id: row.get::<_, Option<[u8; 16]>>(7)?.map(SpaceId::from_bytes),
                        ended: row.get::<_, Option<i64>>(3)?.is_some(),
                    },
                })
            })
            .optional()
    }

    /// An ask of the workspace, whoever may see it.
    pub(crate) fn ask(&self, scene: &Scene, ask_id: AskId) -> Result<Option<AskRow>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT pos, harness_no, space_no, deadline, closed_pos FROM asks WHERE ws_no = ?1 AND ask_id = ?2",
        )?;
        let found = statement.query_row((scene.ws_no, ask_id.to_bytes()), found_ask).optional()?;
        found.map(|found| self.ask_row(scene, found)).transpose()
    }

    /// The ask that was opened at a place.
    pub(crate) fn ask_at(&self, scene: &Scene, pos: i64) -> Result<AskRow> {
        let mut statement = self.connection.prepare_cached(
            "SELECT pos, harness_no, space_no, deadline, closed_pos FROM asks WHERE ws_no = ?1 AND pos = ?2",
        )?;
        self.ask_row(scene, statement.query_row((scene.ws_no, pos), found_ask)?)
    }

    /// The same, of an ask whose row was read.
    pub(crate) fn ask_row(&self, scene: &Scene, found: FoundAsk) -> Result<AskRow> {
        let FoundAsk { pos, harness_no, space_no, deadline, closed_pos } = found;
        let opened = self.record(scene, pos)?;
        let mut facts = AskFacts::opened(Arc::clone(&opened.event), opened.harness_id)
            .ok_or_else(|| rows::odd("asks.pos", format_args!("{pos}, where the log has no question.ask")))?;
        if let Some(closed) = closed_pos {
            facts.closed_by = Some(Arc::clone(&self.record(scene, closed)?.event));
        }
        Ok(AskRow { pos, harness_no, space_no, deadline, facts })
    }

    /// The number of a space of the workspace.
    pub(crate) fn space_no(&self, scene: &Scene, space_id: SpaceId) -> Result<Option<i64>> {
        self.connection
            .prepare_cached("SELECT no FROM spaces WHERE space_id = ?1 AND ws_no = ?2")?
            .query_row((space_id.to_bytes(), scene.ws_no), |row| row.get(0))
            .optional()
    }

    /// What the sender may see, as far as it concerns this ask: at most the ask's own space is named.
    pub(crate) fn access(&self, sender: &Sender, ask: &AskRow) -> Result<Access> {
        self.access_to(sender, ask.space_no, ask.facts.event.envelope.space_id)
    }

    /// What the sender may see, as far as it concerns one space.
    pub(crate) fn access_to(&self, sender: &Sender, space_no: Option<i64>, space: Option<SpaceId>) -> Result<Access> {
        let person = match sender.who {
            Who::Harness(harness) => return Ok(Access::Harness(harness)),
            Who::Person(person) => person,
        };
        let inside = self
            .connection
            .prepare_cached(
                "SELECT 1 FROM spaces s WHERE s.no = ?1 AND (s.closed = 0 OR EXISTS (
                     SELECT 1 FROM members m JOIN persons p ON p.no = m.person_no
                     WHERE m.space_no = s.no AND p.person_id = ?2))",
            )?
            .exists((space_no, person.to_bytes()))?;
        Ok(Access::Person(person, space.filter(|_| inside).into_iter().collect()))
    }

    /// Registers an agent that was not seen before.
    pub(crate) fn register(&mut self, scene: &Scene, agent: AgentId, harness: HarnessId) -> Result<()> {
        self.write()?;
        self.connection
            .prepare_cached(
                "INSERT INTO agents (ws_no, agent_id, harness_no)
                 SELECT ?1, ?2, no FROM harnesses WHERE harness_id = ?3",
            )?
            .execute((scene.ws_no, agent.to_bytes(), harness.to_bytes()))?;
        self.state.ahead.registered(scene.ws_no, agent);
        Ok(())
    }

    /// Appends a `question.ask`: the event, its key, the ask and its deadline.
    pub(crate) fn open_ask(
        &mut self,
        scene: &Scene,
        sender: &Sender,
        run: &RunRow,
        event: Event,
    ) -> Result<Arc<Record>> {
        let harness_id = run.facts.harness_id;
        let record = self.append(scene, Some(sender), run.harness_no, harness_id, run.space_no, event)?;
        let Content::QuestionAsk(asked) = &record.event.content else {
            return Err(rows::odd("a decision", "an ask that is none"));
        };
        let deadline = ask::deadline(&record.event);
        let row = NewAsk {
            pos: rows::pos(scene.ws_no, record.seq),
            ws_no: scene.ws_no,
            ask_id: asked.ask_id.to_bytes(),
            run_no: run.run_no,
            harness_no: run.harness_no,
            space_no: run.space_no,
            tier: rows::tier_code(tier::tier(asked)),
            asked_at: record.event.envelope.ts.ms(),
            deadline: deadline.map_or(NO_DEADLINE, Timestamp::ms),
        };
        if self.state.ahead.gathers() {
            self.state.ahead.asked(row);
        } else {
            self.connection
                .prepare_cached(
                    "INSERT INTO asks (pos, ws_no, ask_id, run_no, harness_no, space_no, state, tier, asked_at, deadline)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?9)",
                )?
                .execute((
                    row.pos,
                    row.ws_no,
                    row.ask_id,
                    row.run_no,
                    row.harness_no,
                    row.space_no,
                    row.tier,
                    row.asked_at,
                    row.deadline,
                ))?;
        }
        if self.shared.node.is_none() {
            lock(&self.shared.usages).asked(run.harness_no, record.event.envelope.ts);
            self.staged.undo.push(Undo::Asked(run.harness_no));
        }
        if let Some(deadline) = deadline {
            let change = DeadlineChange::Opened(deadline, scene.workspace_id, asked.ask_id);
            self.staged.effects.push(Effect::Deadline(change));
        }
        Ok(record)
    }

    /// Appends the `question.answered` that closes an ask: the event, its key where a client sent it, and the ask's state.
    pub(crate) fn close_ask(
        &mut self,
        scene: &Scene,
        sender: Option<&Sender>,
        ask: &AskRow,
        event: Event,
    ) -> Result<Arc<Record>> {
        let record = self.append(scene, sender, ask.harness_no, ask.facts.harness_id, ask.space_no, event)?;
        self.connection
            .prepare_cached("UPDATE asks SET state = ?3, closed_pos = ?4 WHERE ws_no = ?1 AND pos = ?2")?
            .execute((
                scene.ws_no,
                ask.pos,
                rows::state_code(ask::state(Some(&record.event))),
                rows::pos(scene.ws_no, record.seq),
            ))?;
        if self.shared.node.is_none() {
            lock(&self.shared.usages).closed(ask.harness_no);
            self.staged.undo.push(Undo::Closed(ask.harness_no));
        }
        let ask_id = ask.facts.event.content.ask_id();
        self.state.ahead.closed(scene.ws_no, ask_id, ask.harness_no);
        if ask.deadline != NO_DEADLINE {
            let deadline = Timestamp::from_ms(ask.deadline);
            let change = DeadlineChange::Closed(deadline, scene.workspace_id, ask_id);
            self.staged.effects.push(Effect::Deadline(change));
        }
        self.staged.effects.push(Effect::Closed(scene.workspace_id, ask_id));
        Ok(record)
    }

    /// Keeps a person's answer that came too late. One that the same person repeats word for word is kept once.
    pub(crate) fn keep_late(&mut self, ask: &AskRow, late: LateAnswer) -> Result<()> {
        let ws_no = rows::ws_no(ask.pos);
        let kept: Option<String> = self
            .connection
            .prepare_cached("SELECT late FROM asks WHERE ws_no = ?1 AND pos = ?2")?
            .query_row((ws_no, ask.pos), |row| row.get(0))?;
        let mut kept = late_answers(kept.as_deref())?;
        if kept.iter().any(|known| known.by == late.by && known.answers == late.answers) {
            return Ok(());
        }
        kept.push(late);
        if kept.len() > LATE_KEPT {
            kept.remove(0);
        }
        let text = serde_json::to_string(&kept).map_err(|error| rows::odd("a late answer", error))?;
        self.write()?;
        self.connection
            .prepare_cached("UPDATE asks SET late = ?3 WHERE ws_no = ?1 AND pos = ?2")?
            .execute((ws_no, ask.pos, text))
            .map(drop)
    }

    /// Appends an event to the workspace's log: the next `seq`, its JSON made once, its key where a client sent it.
    fn append(
        &mut self,
        scene: &Scene,
        sender: Option<&Sender>,
        harness_no: i64,
        harness_id: HarnessId,
        space_no: Option<i64>,
        mut event: Event,
    ) -> Result<Arc<Record>> {
        self.write()?;
        let place = self
            .state
            .places
            .get_mut(&scene.workspace_id)
            .ok_or_else(|| rows::odd("the writer", "no place for the workspace"))?;
        let seq = place.head + 1;
        let pos = rows::pos(scene.ws_no, seq);
        event.envelope.seq = Some(seq);
        let body = serde_json::to_string(&event).map_err(|error| rows::odd("an event", error))?;
        let gathers = self.state.ahead.gathers();
        if !gathers {
            self.connection
                .prepare_cached(
                    "INSERT INTO events (pos, ws_no, event_id, harness_no, space_no, type, ts, body)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                )?
                .execute((
                    pos,
                    scene.ws_no,
                    event.envelope.id.to_bytes(),
                    harness_no,
                    space_no,
                    rows::type_code(event.content.event_type()),
                    event.envelope.ts.ms(),
                    &body,
                ))?;
        }
        let mut hash = None;
        if let (Some(sender), Some(key)) = (sender, &event.envelope.idempotency_key) {
            let mut keys = self.shared.keys.write().unwrap_or_else(PoisonError::into_inner);
            let key = keys.hash(sender, key);
            hash = Some(key);
            if self.shared.node.is_none() {
                self.connection.prepare_cached("INSERT INTO keys (pos, hash) VALUES (?1, ?2)")?.execute((pos, key))?;
                keys.insert(key, pos);
                self.staged.undo.push(Undo::Key(key, pos));
            } else if !gathers {
                self.connection
                    .prepare_cached("INSERT INTO keys (ws_no, hash, pos) VALUES (?1, ?2, ?3)")?
                    .execute((scene.ws_no, key, pos))?;
            }
        }
        self.staged.undo.push(Undo::Head(scene.workspace_id, place.head, place.last_ts));
        (place.head, place.last_ts) = (seq, event.envelope.ts);
        let log = Arc::clone(&place.log);
        let record = Arc::new(Record { seq, harness_id, event: Arc::new(event), json: body.into() });
        if gathers {
            let record = Arc::clone(&record);
            self.state.ahead.appended(NewEvent { ws_no: scene.ws_no, harness_no, space_no, hash, record });
        }
        self.staged.effects.push(Effect::Appended(log, Arc::clone(&record)));
        Ok(record)
    }
}

/// A row of `asks`, before its events are read.
pub(crate) struct FoundAsk {
    pub(crate) pos: i64,
    pub(crate) harness_no: i64,
    pub(crate) space_no: Option<i64>,
    pub(crate) deadline: i64,
    pub(crate) closed_pos: Option<i64>,
}

fn found_ask(row: &crate::sql::Row<'_>) -> Result<FoundAsk> {
    Ok(FoundAsk {
        pos: row.get(0)?,
        harness_no: row.get(1)?,
        space_no: row.get(2)?,
        deadline: row.get(3)?,
        closed_pos: row.get(4)?,
    })
}

/// Whether an event is what this sender's write with this key appended.
pub(crate) fn is_write_of(event: &Event, sender: &Sender, key: &str) -> bool {
    event.envelope.workspace_id == sender.workspace_id
        && event.envelope.idempotency_key.as_deref() == Some(key)
        && rows::sender_of(event) == Some(sender.who)
}

/// Late answers from their column.
pub(crate) fn late_answers(column: Option<&str>) -> Result<Vec<LateAnswer>> {
    column.map_or(Ok(Vec::new()), |text| serde_json::from_str(text).map_err(|error| rows::odd("asks.late", error)))
}

/// The agent that a draft names as its actor.
pub(crate) const fn agent(actor: Participant) -> Option<AgentId> {
    match actor {
        Participant::Agent(agent, _) => Some(agent),
        _ => None,
    }
}
