//! Random tapes of commands against a model of the contract that fits on a page: whatever is asked, answered, closed,
//! ended, passed and restarted in whatever order, the store says what the model says.

use std::collections::BTreeMap;

use chips_core::Refusal;
use chips_protocol::api::{AskState, NewRun};
use chips_protocol::{AskId, Draft, DraftContent, EventId, ParticipantId, RunId, Timestamp};
use chips_store::admin::{self, Admin, Initialised};
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::{EventsQuery, Identity, Options, Store, Submitted, WriteError};
use proptest::prelude::*;

use crate::support::*;

/// Runs 0 and 1 are of the first harness, 2 is of the second.
const RUNS: usize = 3;
/// Open asks that the first harness may have.
const OPEN_LIMIT: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Harness(usize),
    Person,
}

/// What a question says, as far as the model tells one from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Says {
    seconds: Option<u64>,
    default: bool,
}

#[derive(Debug, Clone)]
pub enum Step {
    Ask { ask: usize, run: usize, by: usize, key: usize, event: usize, says: Says },
    Answer { ask: usize, by: By, key: usize, event: usize, value: Option<&'static str> },
    Expire(usize),
    EndRun(usize),
    Pass(i64),
    Restart,
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let says = (prop_oneof![2 => Just(None), 1 => Just(Some(2)), 1 => Just(Some(5))], any::<bool>())
        .prop_map(|(seconds, default)| Says { seconds, default });
    let by = prop_oneof![3 => Just(By::Person), 2 => Just(By::Harness(0)), 1 => Just(By::Harness(1))];
    let value =
        prop_oneof![3 => Just(Some("a")), 2 => Just(Some("b")), 1 => Just(Some("none of them")), 1 => Just(None)];
    let step = prop_oneof![
        6 => (0..6_usize, 0..RUNS, 0..2_usize, 0..12_usize, 0..20_usize, says).prop_map(
            |(ask, run, by, key, event, says)| Step::Ask { ask, run, by, key, event, says }
        ),
        6 => (0..6_usize, by, 0..12_usize, 0..20_usize, value).prop_map(
            |(ask, by, key, event, value)| Step::Answer { ask, by, key, event, value }
        ),
        2 => (0..6_usize).prop_map(Step::Expire),
        1 => (0..RUNS).prop_map(Step::EndRun),
        2 => (1..3_000_i64).prop_map(Step::Pass),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

/// What the store is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Appended(u64),
    Replayed(u64, bool),
    Refused(&'static str),
    Nothing,
}

/// An event of the model's log.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    /// Nobody's where Chips wrote it.
    sender: Option<By>,
    key: usize,
    event: usize,
    run: usize,
    ask: usize,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Asked(Says),
    Answered(Option<&'static str>),
    ByChips,
}

#[derive(Debug)]
struct Known {
    run: usize,
    says: Says,
    opened: u64,
    deadline: Option<i64>,
    state: AskState,
    late: Vec<&'static str>,
}

#[derive(Debug, Default)]
pub struct Model {
    now: i64,
    log: Vec<Written>,
    asks: BTreeMap<usize, Known>,
    ended: [bool; RUNS],
}

const fn owner(run: usize) -> usize {
    if run == 2 { 1 } else { 0 }
}

impl Model {
    fn append(&mut self, written: Written) -> u64 {
        self.log.push(written);
        self.log.len() as u64
    }

    fn open(&self, harness: usize) -> u64 {
        self.asks.values().filter(|ask| ask.state == AskState::Open && owner(ask.run) == harness).count() as u64
    }

    /// Chips closes the ask.
    fn close(&mut self, ask: usize, state: AskState) {
        if let Some(known) = self.asks.get_mut(&ask) {
            known.state = state;
            let run = known.run;
            self.append(Written { sender: None, key: 0, event: 0, run, ask, content: Content::ByChips });
        }
    }

    fn overdue(&self, ask: usize) -> bool {
        self.asks.get(&ask).is_some_and(|known| {
            known.state == AskState::Open && known.deadline.is_some_and(|deadline| self.now >= deadline)
        })
    }

    /// A replay or a conflict by key and by id.
    fn known(&self, written: &Written) -> Option<Told> {
        let same = |old: &Written| {
            let placed = old.run == written.run && old.ask == written.ask && old.content == written.content;
            placed && (matches!(old.content, Content::Asked(_)) || old.event == written.event)
        };
        let numbered = || self.log.iter().zip(1..).filter(|(old, _)| old.sender.is_some());
        if let Some((old, seq)) = numbered().find(|(old, _)| old.sender == written.sender && old.key == written.key) {
            return Some(Told::Replayed(seq, !same(old)));
        }
        let (old, seq) = numbered().find(|(old, _)| old.event == written.event)?;
        if old.sender == written.sender && same(old) {
            return Some(Told::Replayed(seq, false));
        }
        Some(Told::Refused("event_id_conflict"))
    }

    pub fn step(&mut self, step: &Step) -> Told {
        match *step {
            Step::Ask { ask, run, by, key, event, says } => {
                let content = Content::Asked(says);
                let written = Written { sender: Some(By::Harness(by)), key, event, run, ask, content };
                if let Some(told) = self.known(&written) {
                    return told;
                }
                if let Some(known) = self.asks.get(&ask) {
                    let same = owner(known.run) == by && known.run == run && known.says == says;
                    return if same { Told::Replayed(known.opened, false) } else { Told::Refused("ask_id_conflict") };
                }
                if owner(run) != by {
                    return Told::Refused("invalid_event");
                }
                if self.ended[run] {
                    return Told::Refused("run_ended");
                }
                if by == 0 && self.open(0) >= OPEN_LIMIT {
                    return Told::Refused("over_budget");
                }
                let opened = self.append(written);
                let deadline = says.seconds.map(|seconds| self.now + 1_000 * i64::try_from(seconds).unwrap());
                let known = Known { run, says, opened, deadline, state: AskState::Open, late: Vec::new() };
                self.asks.insert(ask, known);
                Told::Appended(opened)
            }
            Step::Answer { ask, by, key, event, value } => {
                let run = self.asks.get(&ask).map_or(0, |known| known.run);
                let content = Content::Answered(value);
                let written = Written { sender: Some(by), key, event, run, ask, content };
                if let Some(told) = self.known(&written) {
                    return told;
                }
                match self.asks.get(&ask) {
                    Some(known) if by == By::Person || by == By::Harness(owner(known.run)) => {}
                    _ => return Told::Refused("not_found"),
                }
                let fits = match value {
                    Some("a" | "b") => true,
                    Some(_) => false,
                    None => by != By::Person,
                };
                if self.overdue(ask) {
                    self.close(ask, AskState::TimedOut);
                }
                let known = self.asks.get_mut(&ask).unwrap();
                if known.state != AskState::Open {
                    if let (By::Person, true, Some(value)) = (by, fits, value)
                        && !known.late.contains(&value)
                    {
                        known.late.push(value);
                    }
                    return Told::Refused("already_closed");
                }
                if !fits {
                    return Told::Refused("invalid_event");
                }
                known.state = match (by, value) {
                    (By::Person, _) => AskState::Answered,
                    (By::Harness(_), Some(_)) => AskState::Settled,
                    (By::Harness(_), None) => AskState::Withdrawn,
                };
                Told::Appended(self.append(written))
            }
            Step::Expire(ask) => {
                if !self.overdue(ask) {
                    return Told::Nothing;
                }
                self.close(ask, AskState::TimedOut);
                Told::Appended(self.log.len() as u64)
            }
            Step::EndRun(run) => {
                if !self.ended[run] {
                    let mut open: Vec<_> = self
                        .asks
                        .iter()
                        .filter(|(_, known)| known.run == run && known.state == AskState::Open)
                        .map(|(ask, known)| (known.opened, *ask))
                        .collect();
                    open.sort_unstable();
                    for (_, ask) in open {
                        let state = if self.overdue(ask) { AskState::TimedOut } else { AskState::Withdrawn };
                        self.close(ask, state);
                    }
                    self.ended[run] = true;
                }
                Told::Nothing
            }
            Step::Pass(ms) => {
                self.now += ms;
                Told::Nothing
            }
            Step::Restart => Told::Nothing,
        }
    }
}

/// The store with whom it plays.
pub struct Stage {
    pub dir: Home,
    pub time: ManualTime,
    pub store: Store,
    pub harnesses: [Identity; 2],
    pub person: Identity,
    pub runs: [RunId; RUNS],
}

impl Stage {
    pub fn open(dir: &Home, time: &ManualTime) -> Store {
        Store::open(dir.path(), Options { time: TimeSource::Manual(time.clone()), readers: 1 }).unwrap()
    }

    async fn new() -> Self {
        let dir = home();
        let made = admin::init(dir.path()).unwrap();
        Self::set(dir, &made, TimeSource::System.wall()).await
    }

    /// On a store that is there, in this workspace of it, with a clock that shows this time.
    pub async fn set(dir: Home, made: &Initialised, wall: Timestamp) -> Self {
        let mut admin = Admin::open(dir.path()).unwrap();
        let second = admin.add_harness(made.workspace_id, "Second").unwrap();
        admin.set_budget(made.harness.id, Some(Some(OPEN_LIMIT)), Some(None)).unwrap();
        let time = ManualTime::at(wall);
        let store = Self::open(&dir, &time);
        let harnesses = [identity(&store, &made.harness.token).await, identity(&store, &second.token).await];
        let person = identity(&store, &made.person.token).await;
        let mut runs = Vec::new();
        for run in 0..RUNS {
            let sender = harnesses[owner(run)].sender;
            runs.push(store.open_run(sender, NewRun::default()).await.unwrap().0.run_id);
        }
        let runs = runs.try_into().unwrap();
        Self { dir, time, store, harnesses, person, runs }
    }

    pub fn ask_id(ask: usize) -> AskId {
        AskId::from_parts(7, ask as u128)
    }

    async fn submit(&self, by: By, key: usize, event: usize, mut draft: Draft) -> Told {
        draft.idempotency_key = format!("key {key}");
        draft.id = EventId::from_parts(7, event as u128);
        let sender = match by {
            By::Harness(nth) => self.harnesses[nth].sender,
            By::Person => self.person.sender,
        };
        match self.store.submit(sender, draft).await {
            Ok(Submitted::Appended(record)) => Told::Appended(record.seq),
            Ok(Submitted::Replayed { record, differs }) => Told::Replayed(record.seq, differs),
            Err(WriteError::Refused(refusal)) => {
                if let Refusal::AlreadyClosed(winner) = &*refusal {
                    assert!(winner.envelope.seq.is_some() && winner.as_answered().is_some());
                }
                Told::Refused(refusal.code().as_str())
            }
            Err(other) => panic!("{other}"),
        }
    }

    pub async fn step(&mut self, step: &Step, model: &Model) -> Told {
        match *step {
            Step::Ask { ask, run, by, key, event, says } => {
                let mut draft = ask_by(&self.harnesses[by], self.runs[run]);
                let content = asking(&mut draft);
                content.ask_id = Self::ask_id(ask);
                content.timeout_seconds = says.seconds.map(Into::into);
                content.questions[0].default_value = says.default.then(|| "a".to_owned());
                self.submit(By::Harness(by), key, event, draft).await
            }
            Step::Answer { ask, by, key, event, value } => {
                let viewer = match by {
                    By::Harness(nth) => &self.harnesses[nth],
                    By::Person => &self.person,
                };
                let run = self.runs[model.asks.get(&ask).map_or(0, |known| known.run)];
                let answers = value.map(|value| chosen("q1", &[value])).into_iter().collect();
                self.submit(by, key, event, answer_by(viewer, run, Self::ask_id(ask), answers)).await
            }
            Step::Expire(ask) => {
                let workspace_id = self.person.sender.workspace_id;
                if self.store.expire(workspace_id, Self::ask_id(ask)).await.unwrap() {
                    Told::Appended(*self.store.head(workspace_id).borrow())
                } else {
                    Told::Nothing
                }
            }
            Step::EndRun(run) => {
                self.store.end_run(self.harnesses[owner(run)].sender, self.runs[run]).await.unwrap();
                Told::Nothing
            }
            Step::Pass(ms) => {
                self.time.pass_ms(ms);
                Told::Nothing
            }
            Step::Restart => {
                self.store.clone().close().await;
                self.store = Self::open(&self.dir, &self.time);
                Told::Nothing
            }
        }
    }

    /// The whole of what can be seen is what the model says.
    async fn check(&self, model: &Model) {
        let query = EventsQuery { limit: 1_000, ..EventsQuery::default() };
        let log = self.store.events(&self.person, &query).await.unwrap();
        assert_eq!((log.head, log.records.len()), (model.log.len() as u64, model.log.len()));
        let mut last = None;
        for ((record, written), seq) in log.records.iter().zip(&model.log).zip(1..) {
            assert_eq!((record.seq, record.event.envelope.seq), (seq, Some(seq)));
            assert!(Some(record.event.envelope.ts) >= last);
            last = Some(record.event.envelope.ts);
            assert_eq!(record.event.content.ask_id(), Self::ask_id(written.ask));
            assert_eq!(record.event.envelope.actor.id == ParticipantId::System, written.sender.is_none());
        }
        for (ask, known) in &model.asks {
            let shown = self.store.ask(&self.person, Self::ask_id(*ask)).await.unwrap().unwrap();
            assert_eq!(shown.state, known.state);
            assert_eq!(shown.ask.envelope.seq, Some(known.opened));
            let late: Vec<_> = shown.late_answers.iter().map(|late| late.answers[0].values[0].as_str()).collect();
            assert_eq!(late, known.late);
            let closing = log.records.iter().filter(|record| {
                record.event.as_answered().is_some_and(|answered| answered.ask_id == Self::ask_id(*ask))
            });
            assert_eq!(closing.count(), usize::from(known.state != AskState::Open), "exactly one event closes an ask");
        }
        for (nth, harness) in self.harnesses.iter().enumerate() {
            assert_eq!(self.store.me(harness).await.unwrap().budget.unwrap().open, model.open(nth));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_store_says_what_the_contract_says(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut stage = Stage::new().await;
            let mut model = Model::default();
            for (nth, step) in steps.iter().enumerate() {
                let told = stage.step(step, &model).await;
                assert_eq!(told, model.step(step), "step {nth}: {step:?}");
            }
            stage.check(&model).await;
            stage.step(&Step::Restart, &model).await;
            stage.check(&model).await;
        });
    }
}

#[test]
fn the_models_drafts_are_what_it_takes_them_for() {
    // A tape is only worth something if questions that the model holds for equal are equal, and others are not.
    let draft = |says: Says| -> DraftContent {
        let mut content = chips_protocol::QuestionAsk {
            ask_id: Stage::ask_id(1),
            questions: vec![question("q1")],
            timeout_seconds: says.seconds.map(Into::into),
            on_no_answer: None,
        };
        content.questions[0].default_value = says.default.then(|| "a".to_owned());
        DraftContent::QuestionAsk(content)
    };
    let all =
        [None, Some(2), Some(5)].into_iter().flat_map(|seconds| [false, true].map(|default| Says { seconds, default }));
    for (one, other) in all.clone().flat_map(|one| all.clone().map(move |other| (one, other))) {
        assert_eq!(draft(one) == draft(other), one == other);
    }
}
