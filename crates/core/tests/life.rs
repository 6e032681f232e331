//! The life of an ask, driven by random tapes of commands: whatever comes in whichever order, one event closes it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chips_core::budget::Usage;
use chips_core::{Access, AskFacts, Command, Decision, Known, Refusal, Reply, RunFacts, Sender, Who, decide};
use chips_protocol::api::{AskState, Budget};
use chips_protocol::{
    AgentId, Answer, AnswerDraft, AskId, Draft, DraftContent, Event, EventId, FaultCode, HarnessId, OnNoAnswer,
    Participant, ParticipantId, PersonId, Question, QuestionAsk, QuestionOption, RunId, SpaceId, Timestamp,
    WorkspaceId,
};
use proptest::prelude::*;

const START: i64 = 1_800_000_000_000;

fn id<T>(make: fn(u64, u128) -> T, n: u128) -> T {
    make(1_700_000_000_000, n)
}

fn workspace() -> WorkspaceId {
    id(WorkspaceId::from_parts, 1)
}
fn space() -> SpaceId {
    id(SpaceId::from_parts, 2)
}
fn harness(n: u128) -> HarnessId {
    id(HarnessId::from_parts, n)
}
fn person(n: u128) -> PersonId {
    id(PersonId::from_parts, n)
}
fn run(n: u128) -> RunId {
    id(RunId::from_parts, n)
}
fn ask_id() -> AskId {
    id(AskId::from_parts, 9)
}

/// Who acts in the tapes. Harness 1 asks; person 1 is in the ask's space, person 2 is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Actor {
    Asker,
    AskersAgent,
    OtherHarness,
    Member,
    Stranger,
}

impl Actor {
    fn sender(self) -> Sender {
        let who = match self {
            Self::Asker | Self::AskersAgent => Who::Harness(harness(1)),
            Self::OtherHarness => Who::Harness(harness(2)),
            Self::Member => Who::Person(person(1)),
            Self::Stranger => Who::Person(person(2)),
        };
        Sender { workspace_id: workspace(), who }
    }

    fn participant(self) -> Participant {
        match self {
            Self::Asker => Participant::Harness(harness(1)),
            Self::AskersAgent => Participant::Agent(id(AgentId::from_parts, 1), None),
            Self::OtherHarness => Participant::Harness(harness(2)),
            Self::Member => Participant::Person(person(1)),
            Self::Stranger => Participant::Person(person(2)),
        }
    }

    fn access(self) -> Access {
        match self.sender().who {
            Who::Harness(id) => Access::Harness(id),
            Who::Person(id) if id == person(1) => Access::Person(id, BTreeSet::from([space()])),
            Who::Person(id) => Access::Person(id, BTreeSet::new()),
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Pass(i64),
    Ask { by: Actor, id: u128, key: u8, changed: bool },
    Answer { by: Actor, id: u128, key: u8, entries: Vec<(u8, Vec<u8>, bool)>, timed_out: bool },
    Expire,
    EndRun,
}

fn actor() -> impl Strategy<Value = Actor> {
    prop_oneof![
        4 => Just(Actor::Member),
        2 => Just(Actor::Asker),
        2 => Just(Actor::AskersAgent),
        1 => Just(Actor::OtherHarness),
        1 => Just(Actor::Stranger),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let entries = prop::collection::vec((0u8..3, prop::collection::vec(0u8..3, 0..3), any::<bool>()), 0..3);
    prop_oneof![
        2 => (0i64..40_000).prop_map(Step::Pass),
        2 => (actor(), 1u128..4, 0u8..3, prop::bool::weighted(0.2))
            .prop_map(|(by, id, key, changed)| Step::Ask { by, id, key, changed }),
        6 => (actor(), 10u128..16, 3u8..8, entries, prop::bool::weighted(0.1))
            .prop_map(|(by, id, key, entries, timed_out)| Step::Answer { by, id, key, entries, timed_out }),
        1 => Just(Step::Expire),
        1 => Just(Step::EndRun),
    ]
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    timeout: Option<u16>,
    default: Option<bool>,
    on_no_answer: Option<OnNoAnswer>,
    free_text: bool,
}

fn shape() -> impl Strategy<Value = Shape> {
    let policy = prop::option::of(prop_oneof![
        Just(OnNoAnswer::UseDefault),
        Just(OnNoAnswer::Cancel),
        Just(OnNoAnswer::Continue)
    ]);
    (prop::option::of(1u16..90), prop::option::of(any::<bool>()), policy, any::<bool>()).prop_map(
        |(timeout, default, on_no_answer, free_text)| {
            // The validator refuses `use_default` without a default, and a free default without free text.
            let default =
                if on_no_answer == Some(OnNoAnswer::UseDefault) { Some(default.unwrap_or(true)) } else { default };
            Shape { timeout, default: default.map(|offered| offered || !free_text), on_no_answer, free_text }
        },
    )
}

fn question_ask(shape: Shape, changed: bool) -> QuestionAsk {
    let option = |value: &str| QuestionOption { value: value.into(), label: value.to_uppercase(), description: None };
    let question = |id: &str, multi: bool| Question {
        question_id: id.into(),
        prompt: if changed { "Another prompt".into() } else { format!("About {id}?") },
        options: vec![option("a"), option("b")],
        multi_select: Some(multi),
        allow_free_text: shape.free_text.then_some(true),
        default_value: shape.default.map(|offered| if offered { "a".into() } else { "in my own words".into() }),
    };
    QuestionAsk {
        ask_id: ask_id(),
        questions: vec![question("one", false), question("many", true)],
        timeout_seconds: shape.timeout.map(Into::into),
        on_no_answer: shape.on_no_answer,
    }
}

fn answers(entries: &[(u8, Vec<u8>, bool)]) -> Vec<Answer> {
    let mut by_question: BTreeMap<u8, Answer> = BTreeMap::new();
    for (question, values, text) in entries {
        let values: BTreeSet<&str> = values.iter().map(|value| ["a", "b", "c"][usize::from(*value)]).collect();
        by_question.entry(*question).or_insert(Answer {
            question_id: ["one", "many", "none"][usize::from(*question)].into(),
            values: values.into_iter().map(Into::into).collect(),
            free_text: text.then(|| "my own words".into()),
        });
    }
    by_question.into_values().collect()
}

/// The smallest store that can be: the log, and what the rules want to know, found by walking it.
struct World {
    now: Timestamp,
    log: Vec<(Sender, Arc<Event>)>,
    run_ended: bool,
    fresh: u128,
    late: usize,
}

impl World {
    fn new() -> Self {
        Self { now: Timestamp::from_ms(START), log: Vec::new(), run_ended: false, fresh: 1_000, late: 0 }
    }

    fn ask(&self) -> Option<AskFacts> {
        let (_, opening) = self.log.iter().find(|(_, event)| event.as_ask().is_some())?;
        let mut facts = AskFacts::opened(Arc::clone(opening), harness(1)).unwrap();
        for (_, event) in &self.log {
            facts.apply(event);
        }
        Some(facts)
    }

    fn known(&self, sender: &Sender, draft: Option<&Draft>, access: Access) -> Known {
        let find = |test: &dyn Fn(&Sender, &Event) -> bool| {
            self.log.iter().find(|(by, event)| test(by, event)).map(|(by, event)| (Arc::clone(event), by == sender))
        };
        Known {
            by_key: draft.and_then(|draft| {
                find(&|by, event| {
                    by == sender && event.envelope.idempotency_key.as_ref() == Some(&draft.idempotency_key)
                })
                .map(|(event, _)| event)
            }),
            by_id: draft.and_then(|draft| find(&|_, event| event.envelope.id == draft.id)),
            ask: self.ask(),
            run: Some(RunFacts {
                run_id: run(1),
                harness_id: harness(1),
                space_id: Some(space()),
                ended: self.run_ended,
            }),
            space_known: true,
            agent_of: Some(harness(1)),
            access: Some(access),
            usage: Some(Usage {
                budget: Budget { open: 0, open_limit: Some(100), hour: 0, hour_limit: Some(600) },
                oldest: None,
            }),
            erased: false,
        }
    }

    fn judge(&mut self, command: &Command<'_>, known: &Known, sender: Sender) -> Decision {
        self.fresh += 1;
        let decision = decide(known, command, self.now, id(EventId::from_parts, self.fresh));
        for event in &decision.append {
            self.log.push((sender, Arc::new(event.clone())));
        }
        self.late += usize::from(decision.late.is_some());
        decision
    }

    fn draft(&self, by: Actor, event: u128, key: u8, content: DraftContent) -> Draft {
        Draft {
            id: id(EventId::from_parts, event),
            workspace_id: workspace(),
            space_id: None,
            run_id: run(1),
            idempotency_key: format!("key-{key}"),
            actor: by.participant(),
            content,
        }
    }

    fn play(&mut self, step: &Step, shape: Shape) -> Option<Decision> {
        match step {
            Step::Pass(ms) => {
                self.now = self.now.plus_ms(*ms);
                None
            }
            Step::Ask { by, id, key, changed } => {
                let draft = self.draft(*by, *id, *key, DraftContent::QuestionAsk(question_ask(shape, *changed)));
                Some(self.write(*by, &draft))
            }
            Step::Answer { by, id, key, entries, timed_out } => {
                let content = DraftContent::QuestionAnswered(AnswerDraft {
                    ask_id: ask_id(),
                    answers: answers(entries),
                    timed_out: *timed_out,
                });
                let draft = self.draft(*by, *id, *key, content);
                Some(self.write(*by, &draft))
            }
            Step::Expire | Step::EndRun => {
                let sender = Actor::Asker.sender();
                let known = self.known(&sender, None, Actor::Asker.access());
                let command = if matches!(step, Step::Expire) { Command::Expire } else { Command::EndRun };
                let decision = self.judge(&command, &known, sender);
                self.run_ended |= matches!(step, Step::EndRun);
                Some(decision)
            }
        }
    }

    fn write(&mut self, by: Actor, draft: &Draft) -> Decision {
        let sender = by.sender();
        let known = self.known(&sender, Some(draft), by.access());
        self.judge(&Command::Write(&sender, draft), &known, sender)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_one_event_closes_an_ask(shape in shape(), tape in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        for step in &tape {
            let before = world.log.len();
            let overdue = world.ask().is_some_and(|ask| ask.overdue(world.now));
            let closed = world.ask().is_some_and(|ask| ask.closed_by.is_some());
            let decision = world.play(step, shape);

            // The log only grows, and only by what was decided.
            let appended = decision.as_ref().map_or(0, |decision| decision.append.len());
            prop_assert_eq!(world.log.len(), before + appended);
            let Some(decision) = decision else { continue };

            // At most one opening and one closing event, in that order, whatever the tape.
            let openings = world.log.iter().filter(|(_, event)| event.as_ask().is_some()).count();
            let closings = world.log.iter().filter(|(_, event)| event.as_answered().is_some()).count();
            prop_assert!(openings <= 1 && closings <= 1);
            if closings == 1 {
                prop_assert!(world.log.first().unwrap().1.as_ask().is_some());
            }
            // Whatever finds an overdue ask closes it by the time-out, unless it never got as far as the ask.
            if overdue && appended == 1 {
                let (_, last) = world.log.last().unwrap();
                prop_assert_eq!(&last.envelope.actor.id, &ParticipantId::System);
                prop_assert!(last.as_answered().unwrap().timed_out());
                prop_assert!(last.envelope.ts >= world.ask().unwrap().deadline().unwrap());
            }
            // A refusal names the winner, and it is the one in the log.
            if let Err(Refusal::AlreadyClosed(winner)) = &decision.reply {
                let closing = world.ask().unwrap().closed_by.map(|event| event.content.clone());
                prop_assert_eq!(Some(&winner.content), closing.as_ref());
            }
            // Late answers are only ever kept for a person who may see the ask, once it is closed.
            if decision.late.is_some() {
                prop_assert!(closed || overdue);
                prop_assert!(
                    matches!(step, Step::Answer { by: Actor::Member, .. }),
                    "a late answer of {:?}", step
                );
            }
            // Who may close: the asker, its agents, a person who sees it. Others learn nothing of it.
            if let (Step::Answer { by: Actor::OtherHarness | Actor::Stranger, .. }, reply) = (step, &decision.reply) {
                prop_assert!(
                    matches!(reply, Err(Refusal::NotFound(_) | Refusal::ActorMismatch | Refusal::EventIdConflict)),
                    "{:?}", reply
                );
            }
            if let (Step::Ask { by: Actor::Member | Actor::Stranger, .. }, reply) = (step, &decision.reply) {
                prop_assert!(matches!(reply, Err(Refusal::WrongSender(_))), "{:?}", reply);
            }
            // Times never go back, and what Chips writes itself is right.
            for (_, event) in &world.log {
                if let Some(answered) = event.as_answered() {
                    prop_assert_eq!(answered.answered_at, event.envelope.ts);
                    prop_assert!(answered.timed_out.is_some());
                }
            }
            prop_assert!(world.log.windows(2).all(|pair| pair[0].1.envelope.ts <= pair[1].1.envelope.ts));
        }
    }

    #[test]
    fn the_state_follows_from_the_event_that_closed_it(shape in shape(), tape in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        let mut ended_open = false;
        for step in &tape {
            let open = world.ask().is_some_and(|ask| ask.closed_by.is_none() && !ask.overdue(world.now));
            world.play(step, shape);
            ended_open |= open && matches!(step, Step::EndRun);
        }
        let Some(ask) = world.ask() else { return Ok(()) };
        let Some(event) = &ask.closed_by else {
            prop_assert_eq!(ask.state(), AskState::Open);
            return Ok(());
        };
        let answered = event.as_answered().unwrap();
        let expected = match (&event.envelope.actor.id, answered.timed_out(), answered.answers.is_empty()) {
            (_, true, _) => AskState::TimedOut,
            (ParticipantId::Person(_), false, _) => AskState::Answered,
            (_, false, true) => AskState::Withdrawn,
            (_, false, false) => AskState::Settled,
        };
        prop_assert_eq!(ask.state(), expected);
        if ended_open {
            prop_assert_eq!(ask.state(), AskState::Withdrawn);
            prop_assert_eq!(answered.answered_by, ParticipantId::Harness(harness(1)));
        }
    }

    #[test]
    fn an_answer_that_was_taken_fits_its_question(shape in shape(), tape in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        for step in &tape {
            world.play(step, shape);
        }
        let Some(ask) = world.ask() else { return Ok(()) };
        let Some(event) = &ask.closed_by else { return Ok(()) };
        for answer in &event.as_answered().unwrap().answers {
            let question = ask.ask().unwrap().question(&answer.question_id);
            let question = question.expect("an answer to a question of this ask");
            prop_assert!(answer.values.iter().all(|value| question.option(value).is_some()));
            prop_assert!(answer.free_text.is_none() || question.free_text());
            if !question.multi() {
                prop_assert_eq!(answer.values.len() + usize::from(answer.free_text.is_some()), 1);
            }
        }
    }
}

fn open_ask(shape: Shape) -> World {
    let mut world = World::new();
    let decision = world.play(&Step::Ask { by: Actor::Asker, id: 1, key: 0, changed: false }, shape).unwrap();
    assert_eq!(decision.reply, Ok(Reply::Appended));
    world
}

const PLAIN: Shape = Shape { timeout: Some(60), default: Some(true), on_no_answer: None, free_text: true };

fn answer(by: Actor, key: u8, entries: Vec<(u8, Vec<u8>, bool)>) -> Step {
    Step::Answer { by, id: 10 + u128::from(key), key, entries, timed_out: false }
}

#[test]
fn the_deadline_decides_not_the_timer() {
    let mut world = open_ask(PLAIN);
    world.now = Timestamp::from_ms(START + 59_999);
    assert!(!world.ask().unwrap().overdue(world.now));
    world.now = Timestamp::from_ms(START + 60_000);

    let late = world.play(&answer(Actor::Member, 3, vec![(0, vec![1], false)]), PLAIN).unwrap();

    assert!(matches!(late.reply, Err(Refusal::AlreadyClosed(_))));
    assert_eq!(late.append.len(), 1, "the write that finds it overdue closes it");
    assert_eq!(late.late.unwrap().by, ParticipantId::Person(person(1)));
    let closed = world.ask().unwrap().closed_by.unwrap();
    let taken: Vec<_> = closed.as_answered().unwrap().answers.iter().map(|answer| answer.values.clone()).collect();
    assert_eq!(taken, [vec!["a".to_owned()], vec!["a".to_owned()]]);
}

#[test]
fn a_default_in_words_is_taken_as_free_text() {
    let shape = Shape { default: Some(false), ..PLAIN };
    let mut world = open_ask(shape);
    world.now = Timestamp::from_ms(START + 60_000);
    world.play(&Step::Expire, shape);
    let closed = world.ask().unwrap().closed_by.unwrap();
    for taken in &closed.as_answered().unwrap().answers {
        assert_eq!((taken.values.len(), taken.free_text.as_deref()), (0, Some("in my own words")));
    }
}

#[test]
fn cancel_and_continue_take_nothing_and_say_that_the_time_passed() {
    for policy in [OnNoAnswer::Cancel, OnNoAnswer::Continue] {
        let shape = Shape { on_no_answer: Some(policy), ..PLAIN };
        let mut world = open_ask(shape);
        world.now = Timestamp::from_ms(START + 60_000);
        world.play(&Step::Expire, shape);
        let closed = world.ask().unwrap().closed_by.unwrap();
        assert!(closed.as_answered().unwrap().answers.is_empty());
        assert_eq!(world.ask().unwrap().state(), AskState::TimedOut);
    }
}

#[test]
fn a_time_out_before_its_time_does_nothing() {
    let mut world = open_ask(PLAIN);
    let early = world.play(&Step::Expire, PLAIN).unwrap();
    assert_eq!((early.reply, early.append.len()), (Ok(Reply::Nothing), 0));
}

#[test]
fn the_end_of_a_run_closes_what_is_overdue_by_its_time_out() {
    let mut world = open_ask(PLAIN);
    world.now = Timestamp::from_ms(START + 60_001);
    world.play(&Step::EndRun, PLAIN);
    assert_eq!(world.ask().unwrap().state(), AskState::TimedOut);
}

#[test]
fn an_answer_that_won_is_a_replay_when_it_comes_again() {
    let mut world = open_ask(PLAIN);
    let step = answer(Actor::Member, 3, vec![(0, vec![1], false)]);
    assert_eq!(world.play(&step, PLAIN).unwrap().reply, Ok(Reply::Appended));
    let again = world.play(&step, PLAIN).unwrap();
    assert!(matches!(again.reply, Ok(Reply::Replayed { differs: false, .. })));
    assert!(again.append.is_empty());
}

#[test]
fn a_key_replays_whatever_the_body_says_now() {
    let mut world = open_ask(PLAIN);
    let again = world.play(&Step::Ask { by: Actor::Asker, id: 2, key: 0, changed: true }, PLAIN).unwrap();
    assert!(matches!(again.reply, Ok(Reply::Replayed { differs: true, .. })));
    let same = world.play(&Step::Ask { by: Actor::AskersAgent, id: 3, key: 1, changed: false }, PLAIN).unwrap();
    assert!(matches!(same.reply, Ok(Reply::Replayed { differs: false, .. })), "the same ask under another key and id");
    let other = world.play(&Step::Ask { by: Actor::Asker, id: 3, key: 2, changed: true }, PLAIN).unwrap();
    assert_eq!(other.reply, Err(Refusal::AskIdConflict));
}

#[test]
fn what_a_harness_may_not_see_it_can_t_close() {
    let mut world = open_ask(PLAIN);
    let other = world.play(&answer(Actor::OtherHarness, 3, vec![(0, vec![0], false)]), PLAIN).unwrap();
    assert!(matches!(other.reply, Err(Refusal::NotFound(_))));
}

#[test]
fn every_fault_of_an_answer_is_named_with_its_place() {
    let mut world = open_ask(Shape { free_text: false, ..PLAIN });
    let step = Step::Answer {
        by: Actor::Member,
        id: 10,
        key: 3,
        entries: vec![(0, vec![0, 2], true), (2, vec![], false)],
        timed_out: true,
    };
    let Err(Refusal::Invalid(faults)) = world.play(&step, PLAIN).unwrap().reply else { panic!("refused") };
    let found: Vec<_> = faults.iter().map(|fault| (fault.pointer.as_str(), fault.code)).collect();
    assert_eq!(
        found,
        [
            ("/timed_out", FaultCode::NotAllowed),
            ("/answers/0/values/1", FaultCode::NotAnOption),
            ("/answers/0/free_text", FaultCode::NotAllowed),
            ("/answers/0/values", FaultCode::TooMany),
            ("/answers/0/free_text", FaultCode::NotAllowed),
            ("/answers/1/question_id", FaultCode::UnknownValue),
        ]
    );
    assert_eq!(world.ask().unwrap().state(), AskState::Open, "the ask stays open");
}

#[test]
fn a_spent_budget_refuses_and_says_when_to_come_back() {
    let usage = |open, hour, oldest: Option<i64>| Usage {
        budget: Budget { open, open_limit: Some(2), hour, hour_limit: Some(3) },
        oldest: oldest.map(Timestamp::from_ms),
    };
    let now = Timestamp::from_ms(START);
    assert!(chips_core::budget::admit(&usage(1, 2, Some(START - 1)), now).is_ok());
    let open = chips_core::budget::admit(&usage(2, 2, Some(START - 1)), now).unwrap_err();
    assert_eq!((open.retry_after_s, open.hourly), (5, false));
    let hour = chips_core::budget::admit(&usage(2, 3, Some(START - 3_590_500)), now).unwrap_err();
    assert_eq!((hour.retry_after_s, hour.hourly), (10, true), "9.5 s, rounded up");
}
