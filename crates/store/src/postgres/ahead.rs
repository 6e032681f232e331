//! Beside other servers each statement is a conversation, and a workspace has one of them at a time. So what the client writes
//! of a group need to know is asked for all of them at once, and what they append is written at once.
//!
//! The group has the turn of each of its workspaces: what was found stands until the group itself changes it. A write that
//! names what an earlier one of the group changed (the same key twice, an answer to a question of the same group) looks for
//! itself, as every job does that is no client's write; before that, what is gathered is written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use chips_core::budget::{Usage, WINDOW_MS};
use chips_core::{RunFacts, Sender};
use chips_protocol::{AgentId, AskId, Draft, DraftContent, HarnessId, RunId, SpaceId, Timestamp};

use crate::Record;
use crate::engine::rows;
use crate::engine::usage::{self, Limits};
use crate::engine::work::{FoundAsk, RunRow, Scene, agent};
use crate::engine::writer::{Task, Work};
use crate::sql::{Column, Result, Row, Value};

/// What a client's write needs to know, where neither its key nor its event is known.
#[derive(Default)]
pub(crate) struct Foreseen {
    pub(crate) agent_of: Option<HarnessId>,
    pub(crate) space_known: bool,
    pub(crate) ask: Option<FoundAsk>,
    pub(crate) run: Option<RunRow>,
}

/// An event that is yet to be written.
pub(crate) struct NewEvent {
    pub(crate) ws_no: i64,
    pub(crate) harness_no: i64,
    pub(crate) space_no: Option<i64>,
    /// Of the key, where a client sent it.
    pub(crate) hash: Option<i64>,
    pub(crate) record: Arc<Record>,
}

/// An ask that is opened.
pub(crate) struct NewAsk {
    pub(crate) pos: i64,
    pub(crate) ws_no: i64,
    pub(crate) ask_id: [u8; 16],
    pub(crate) run_no: i64,
    pub(crate) harness_no: i64,
    pub(crate) space_no: Option<i64>,
    pub(crate) tier: i64,
    pub(crate) asked_at: i64,
    pub(crate) deadline: i64,
}

/// What the group has changed, by the workspace's number.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Changed {
    Event(i64, [u8; 16]),
    Key(i64, i64),
    Ask(i64, [u8; 16]),
    Agent(i64, AgentId),
}

/// What a harness has used of its budget.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    open: u64,
    hour: u64,
    oldest: Option<Timestamp>,
}

/// What was looked up for a group beforehand, and what it appends.
#[derive(Default)]
pub(crate) struct Ahead {
    /// By the job's place in the group.
    found: HashMap<usize, Foreseen>,
    /// The first job that nothing was looked up for.
    until: usize,
    /// The job that runs.
    job: usize,
    /// Whether what it appends is written with what others append.
    gathers: bool,
    usages: HashMap<i64, Used>,
    changed: HashSet<Changed>,
    events: Vec<NewEvent>,
    asks: Vec<NewAsk>,
}

impl Ahead {
    /// Whether what the job appends is to be handed over with [`Ahead::appended`] and [`Ahead::asked`] rather than written.
    pub(crate) fn gathers(&self) -> bool {
        self.gathers
    }

    pub(crate) fn appended(&mut self, event: NewEvent) {
        self.changed.insert(Changed::Event(event.ws_no, event.record.event.envelope.id.to_bytes()));
        self.changed.extend(event.hash.map(|hash| Changed::Key(event.ws_no, hash)));
        self.events.push(event);
    }

    pub(crate) fn asked(&mut self, ask: NewAsk) {
        self.changed.insert(Changed::Ask(ask.ws_no, ask.ask_id));
        if let Some(used) = self.usages.get_mut(&ask.harness_no) {
            let at = Timestamp::from_ms(ask.asked_at);
            *used = Used { open: used.open + 1, hour: used.hour + 1, oldest: used.oldest.or(Some(at)) };
        }
        self.asks.push(ask);
    }

    pub(crate) fn closed(&mut self, ws_no: i64, ask_id: AskId, harness_no: i64) {
        if self.gathers {
            self.changed.insert(Changed::Ask(ws_no, ask_id.to_bytes()));
            if let Some(used) = self.usages.get_mut(&harness_no) {
                used.open = used.open.saturating_sub(1);
            }
        }
    }

    pub(crate) fn registered(&mut self, ws_no: i64, agent: AgentId) {
        if self.gathers {
            self.changed.insert(Changed::Agent(ws_no, agent));
        }
    }

    /// What a harness has used, as far as its limits need it.
    pub(crate) fn usage(&self, harness_no: i64, limits: Limits) -> Usage {
        let used = self.usages.get(&harness_no).copied().unwrap_or_default();
        usage::counted(limits, used.open, used.hour, used.oldest)
    }
}

/// What one write names.
struct Named {
    job: usize,
    ws_no: i64,
    event_id: [u8; 16],
    hash: i64,
    agent_id: Option<[u8; 16]>,
    space_id: Option<[u8; 16]>,
    ask_id: [u8; 16],
    run_id: RunId,
    asks: bool,
    /// When the hour began that its harness's budget is about.
    since: i64,
}

/// Gets ready for the job at this place: looks up what it and the client writes after it need to know, or where it is none,
/// writes what was gathered.
pub(crate) fn prepare(work: &mut Work<'_>, tasks: &[Box<dyn Task>], job: usize) -> Result<()> {
    let writes = tasks[job].client_write().is_some();
    if !writes || work.state.ahead.until <= job {
        settle(work)?;
        work.state.ahead = Ahead::default();
    }
    if writes && work.state.ahead.until <= job {
        look_up(work, tasks, job)?;
    }
    (work.state.ahead.job, work.state.ahead.gathers) = (job, writes);
    Ok(())
}

/// What was found for the write that runs; nothing where it has to look for itself.
pub(crate) fn foreseen(work: &mut Work<'_>, scene: &Scene, sender: &Sender, draft: &Draft) -> Option<Foreseen> {
    let job = work.state.ahead.job;
    let foreseen = work.state.ahead.found.remove(&job)?;
    let hash = hash(work, sender, draft);
    let names = [
        Some(Changed::Event(scene.ws_no, draft.id.to_bytes())),
        Some(Changed::Key(scene.ws_no, hash)),
        Some(Changed::Ask(scene.ws_no, draft.content.ask_id().to_bytes())),
        agent(draft.actor).map(|agent| Changed::Agent(scene.ws_no, agent)),
    ];
    let changed = &work.state.ahead.changed;
    (!names.iter().flatten().any(|name| changed.contains(name))).then_some(foreseen)
}

fn hash(work: &Work<'_>, sender: &Sender, draft: &Draft) -> i64 {
    work.shared.keys.read().unwrap_or_else(PoisonError::into_inner).hash(sender, &draft.idempotency_key)
}

/// A column of what is named or written, as a list.
fn list<'a, T>(rows: &'a [T], value: impl Fn(&'a T) -> Value<'a>) -> Vec<Value<'a>> {
    rows.iter().map(value).collect()
}

fn int(number: Option<i64>) -> Value<'static> {
    number.map_or(Value::Null(Column::Int), Value::Int)
}

fn blob(id: &Option<[u8; 16]>) -> Value<'_> {
    id.as_ref().map_or(Value::Null(Column::Blob), |id| Value::Blob(id))
}

/// Each look-up by itself is one row of one index; LIMIT keeps the planner from reading a table for all of them.
const LOOK_UP: &str =
    "SELECT q.n, EXISTS (SELECT 1 FROM events e WHERE e.ws_no = q.ws_no AND e.event_id = q.event_id)
        OR EXISTS (SELECT 1 FROM keys k WHERE k.ws_no = q.ws_no AND k.hash = q.hash),
        (SELECT h.harness_id FROM agents a JOIN harnesses h ON h.no = a.harness_no
            WHERE a.ws_no = q.ws_no AND a.agent_id = q.agent_id LIMIT 1),
        (SELECT s.no FROM spaces s WHERE s.space_id = q.space_id AND s.ws_no = q.ws_no LIMIT 1),
        a.pos, a.harness_no, a.space_no, a.deadline, a.closed_pos,
        r.no, r.harness_no, r.space_no, r.ended_at, r.harness_id, r.open_limit, r.hour_limit, r.space_id
     FROM unnest(?1, ?2, ?3, ?4, ?5, ?6, ?7) WITH ORDINALITY q(ws_no, event_id, hash, agent_id, space_id, ask_id, run_id, n)
     LEFT JOIN LATERAL (SELECT pos, harness_no, space_no, deadline, closed_pos FROM asks
         WHERE ws_no = q.ws_no AND ask_id = q.ask_id LIMIT 1) a ON true
     LEFT JOIN LATERAL (
         SELECT f.no, f.harness_no, f.space_no, f.ended_at, h.harness_id, h.open_limit, h.hour_limit, s.space_id
         FROM runs f JOIN harnesses h ON h.no = f.harness_no LEFT JOIN spaces s ON s.no = f.space_no
         WHERE f.ws_no = q.ws_no AND f.run_id = q.run_id LIMIT 1) r ON true";

/// Looks up what the client writes from this job on need to know, up to the next job that is none.
fn look_up(work: &mut Work<'_>, tasks: &[Box<dyn Task>], from: usize) -> Result<()> {
    let mut named = Vec::new();
    let mut until = from;
    while let Some((sender, draft)) = tasks.get(until).and_then(|task| task.client_write()) {
        // That a workspace is not known is the write's own failure.
        if let Some(place) = work.state.places.get(&sender.workspace_id) {
            named.push(Named {
                job: until,
                ws_no: place.ws_no,
                event_id: draft.id.to_bytes(),
                hash: hash(work, sender, draft),
                agent_id: agent(draft.actor).map(|agent| agent.to_bytes()),
                space_id: draft.space_id.map(|space| space.to_bytes()),
                ask_id: draft.content.ask_id().to_bytes(),
                run_id: draft.run_id,
                asks: matches!(draft.content, DraftContent::QuestionAsk(_)),
                since: work.shared.clock.now().max(place.last_ts).ms() - WINDOW_MS,
            });
        }
        until += 1;
    }
    let runs = named.iter().map(|named| named.run_id.to_bytes()).collect::<Vec<_>>();
    let lists = [
        (Column::Int, list(&named, |named| Value::Int(named.ws_no))),
        (Column::Blob, list(&named, |named| Value::Blob(&named.event_id))),
        (Column::Int, list(&named, |named| Value::Int(named.hash))),
        (Column::Blob, list(&named, |named| blob(&named.agent_id))),
        (Column::Blob, list(&named, |named| blob(&named.space_id))),
        (Column::Blob, list(&named, |named| Value::Blob(&named.ask_id))),
        (Column::Blob, list(&runs, |run| Value::Blob(run))),
    ];
    let lists: Vec<Value<'_>> = lists.iter().map(|(column, values)| Value::List(*column, values)).collect();
    let mut found = HashMap::new();
    let mut asking = BTreeMap::new();
    for row in work.connection.prepare_cached(LOOK_UP)?.query_map(lists, |row| read(row, &named))? {
        let Some((named, foreseen)) = row? else { continue };
        if let (true, None, Some(run)) = (named.asks, &foreseen.ask, &foreseen.run)
            && (run.limits.open.is_some() || run.limits.hour.is_some())
        {
            asking.insert(run.harness_no, (named.ws_no, named.since));
        }
        found.insert(named.job, foreseen);
    }
    let usages = used(work, &asking)?;
    work.state.ahead = Ahead { found, until, usages, ..Ahead::default() };
    Ok(())
}

/// What was found for one write; nothing where its key or its event is known, so that it has to look closer.
fn read<'n>(row: &Row<'_>, named: &'n [Named]) -> Result<Option<(&'n Named, Foreseen)>> {
    let at: i64 = row.get(0)?;
    let named = usize::try_from(at - 1).ok().and_then(|at| named.get(at));
    let named = named.ok_or_else(|| rows::odd("a look-up", format_args!("the line {at}")))?;
    if row.get(1)? {
        return Ok(None);
    }
    let space = |found: Option<[u8; 16]>| found.map(SpaceId::from_bytes);
    let mut foreseen = Foreseen {
        agent_of: row.get::<_, Option<[u8; 16]>>(2)?.map(HarnessId::from_bytes),
        space_known: row.get::<_, Option<i64>>(3)?.is_some(),
        ..Foreseen::default()
    };
    if let Some(pos) = row.get(4)? {
        foreseen.ask = Some(FoundAsk {
            pos,
            harness_no: row.get(5)?,
            space_no: row.get(6)?,
            deadline: row.get(7)?,
            closed_pos: row.get(8)?,
        });
    }
    if let Some(run_no) = row.get(9)? {
        foreseen.run = Some(RunRow {
            run_no,
            harness_no: row.get(10)?,
            space_no: row.get(11)?,
            limits: Limits { open: row.get(14)?, hour: row.get(15)? },
            facts: RunFacts {
                run_id: named.run_id,
                harness_id: HarnessId::from_bytes(row.get(13)?),
                space_id: space(row.get(16)?),
                ended: row.get::<_, Option<i64>>(12)?.is_some(),
            },
        });
    }
    Ok(Some((named, foreseen)))
}

/// What these harnesses have used; each with its workspace, and when the hour began.
fn used(work: &Work<'_>, asking: &BTreeMap<i64, (i64, i64)>) -> Result<HashMap<i64, Used>> {
    if asking.is_empty() {
        return Ok(HashMap::new());
    }
    let harnesses: Vec<_> = asking.keys().map(|harness_no| Value::Int(*harness_no)).collect();
    let workspaces: Vec<_> = asking.values().map(|(ws_no, _)| Value::Int(*ws_no)).collect();
    let since: Vec<_> = asking.values().map(|(_, since)| Value::Int(*since)).collect();
    let lists = [&harnesses, &workspaces, &since].map(|values| Value::List(Column::Int, values)).to_vec();
    work.connection
        .prepare_cached(
            "SELECT q.no, (SELECT count(*) FROM asks o WHERE o.ws_no = q.ws_no AND o.harness_no = q.no AND o.state = 0),
                t.asked, t.oldest FROM unnest(?1, ?2, ?3) q(no, ws_no, since),
             LATERAL (SELECT count(*) AS asked, min(i.asked_at) AS oldest FROM asks i
                 WHERE i.ws_no = q.ws_no AND i.harness_no = q.no AND i.asked_at > q.since) t",
        )?
        .query_map(lists, |row| {
            let (open, hour): (i64, i64) = (row.get(1)?, row.get(2)?);
            let oldest = row.get::<_, Option<i64>>(3)?.map(Timestamp::from_ms);
            Ok((row.get(0)?, Used { open: open.unsigned_abs(), hour: hour.unsigned_abs(), oldest }))
        })?
        .collect()
}

/// Writes what was gathered: events, their keys, and asks, all in one statement.
pub(crate) fn settle(work: &mut Work<'_>) -> Result<()> {
    let events = std::mem::take(&mut work.state.ahead.events);
    let asks = std::mem::take(&mut work.state.ahead.asks);
    if events.is_empty() {
        return Ok(());
    }
    let text = |event: &NewEvent| std::str::from_utf8(&event.record.json).map(str::to_owned);
    let bodies = events.iter().map(text).collect::<std::result::Result<Vec<_>, _>>();
    let bodies = bodies.map_err(|error| rows::odd("an event", error))?;
    let ids: Vec<[u8; 16]> = events.iter().map(|event| event.record.event.envelope.id.to_bytes()).collect();
    let pos = |event: &NewEvent| Value::Int(rows::pos(event.ws_no, event.record.seq));
    let of_key = |value: fn(&NewEvent, i64) -> i64| -> Vec<Value<'_>> {
        events.iter().filter_map(|event| event.hash.map(|hash| Value::Int(value(event, hash)))).collect()
    };
    let lists = [
        (Column::Int, list(&events, pos)),
        (Column::Int, list(&events, |event| Value::Int(event.ws_no))),
        (Column::Blob, list(&ids, |id| Value::Blob(id))),
        (Column::Int, list(&events, |event| Value::Int(event.harness_no))),
        (Column::Int, list(&events, |event| int(event.space_no))),
        (Column::Int, list(&events, |event| Value::Int(rows::type_code(event.record.event.content.event_type())))),
        (Column::Int, list(&events, |event| Value::Int(event.record.event.envelope.ts.ms()))),
        (Column::Text, list(&bodies, |body| Value::Text(body))),
        (Column::Int, of_key(|event, _| event.ws_no)),
        (Column::Int, of_key(|_, hash| hash)),
        (Column::Int, of_key(|event, _| rows::pos(event.ws_no, event.record.seq))),
        (Column::Int, list(&asks, |ask| Value::Int(ask.pos))),
        (Column::Int, list(&asks, |ask| Value::Int(ask.ws_no))),
        (Column::Blob, list(&asks, |ask| Value::Blob(&ask.ask_id))),
        (Column::Int, list(&asks, |ask| Value::Int(ask.run_no))),
        (Column::Int, list(&asks, |ask| Value::Int(ask.harness_no))),
        (Column::Int, list(&asks, |ask| int(ask.space_no))),
        (Column::Int, list(&asks, |ask| Value::Int(ask.tier))),
        (Column::Int, list(&asks, |ask| Value::Int(ask.asked_at))),
        (Column::Int, list(&asks, |ask| Value::Int(ask.deadline))),
    ];
    let lists: Vec<Value<'_>> = lists.iter().map(|(column, values)| Value::List(*column, values)).collect();
    work.connection
        .prepare_cached(
            "WITH e AS (INSERT INTO events (pos, ws_no, event_id, harness_no, space_no, type, ts, body)
                 SELECT * FROM unnest(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)),
             k AS (INSERT INTO keys (ws_no, hash, pos) SELECT * FROM unnest(?9, ?10, ?11))
             INSERT INTO asks (pos, ws_no, ask_id, run_no, harness_no, space_no, state, tier, asked_at, deadline)
             SELECT q.pos, q.ws_no, q.ask_id, q.run_no, q.harness_no, q.space_no, 0, q.tier, q.asked_at, q.deadline
             FROM unnest(?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
                 q(pos, ws_no, ask_id, run_no, harness_no, space_no, tier, asked_at, deadline)",
        )?
        .execute(lists)
        .map(drop)
}
