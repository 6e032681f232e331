//! Erased events are events: whatever was asked and answered, what is left of it is valid and says nothing.

#![allow(clippy::unwrap_used)]

use chips_core::decide::{differs, same_ask, same_event};
use chips_core::erase;
use chips_protocol::{
    Answer, AnswerDraft, AskId, Content, Draft, DraftContent, Envelope, Event, EventId, HarnessId, OnNoAnswer,
    Participant, ParticipantId, PersonId, Question, QuestionAnswered, QuestionAsk, QuestionOption, RunId, Timestamp,
    WorkspaceId, validate,
};
use proptest::prelude::*;

/// Stands in every text: no other text has it.
const CANARY: &str = "k\u{e4}narienvogel";

/// A text that holds the canary, and none that another number makes.
fn text(number: usize) -> String {
    format!("{CANARY} number {number}\u{a0}\"quoted\" \\ \u{1f33b}")
}

#[derive(Debug, Clone)]
struct Shape {
    options: usize,
    multi: bool,
    typed: bool,
    described: bool,
    default: Option<usize>,
}

fn shape() -> impl Strategy<Value = Shape> {
    (2..=4_usize, any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(0..5_usize))
        .prop_map(|(options, multi, typed, described, default)| Shape { options, multi, typed, described, default })
}

fn question(nth: usize, shape: &Shape) -> Question {
    let option = |place: usize| QuestionOption {
        value: text(100 * nth + place),
        label: text(100 * nth + 10 + place),
        description: shape.described.then(|| text(100 * nth + 20 + place)),
    };
    // A default past the options is a text of its own.
    let default = shape.default.and_then(|place| match place {
        place if place < shape.options => Some(text(100 * nth + place)),
        _ if shape.typed => Some(text(100 * nth + 30)),
        _ => None,
    });
    Question {
        question_id: text(1_000 + nth),
        prompt: text(2_000 + nth),
        options: (0..shape.options).map(option).collect(),
        multi_select: shape.multi.then_some(true),
        allow_free_text: shape.typed.then_some(true),
        default_value: default,
    }
}

fn ask(shapes: &[Shape]) -> QuestionAsk {
    let questions: Vec<_> = shapes.iter().enumerate().map(|(nth, shape)| question(nth, shape)).collect();
    let any_default = questions.iter().any(|question| question.default_value.is_some());
    QuestionAsk {
        ask_id: AskId::from_parts(1, 1),
        questions,
        timeout_seconds: Some(60.into()),
        on_no_answer: any_default.then_some(OnNoAnswer::UseDefault),
    }
}

/// Chooses the options whose bits are set, or types.
fn answer(question: &Question, bits: u8) -> Option<Answer> {
    let mut values: Vec<String> = question
        .options
        .iter()
        .enumerate()
        .filter(|(place, _)| bits & (1 << place) != 0)
        .map(|(_, option)| option.value.clone())
        .collect();
    if !question.multi() {
        values.truncate(1);
    }
    let types = question.free_text() && (question.multi() || values.is_empty()) && bits & 16 != 0;
    let free_text = types.then(|| text(3_000 + usize::from(bits)));
    let says = !values.is_empty() || free_text.is_some() || question.multi();
    says.then(|| Answer { question_id: question.question_id.clone(), values, free_text })
}

fn event(content: Content) -> Event {
    let actor = match content {
        Content::QuestionAsk(_) => Participant::Harness(HarnessId::from_parts(1, 1)),
        Content::QuestionAnswered(_) => Participant::Person(PersonId::from_parts(1, 1)),
    };
    let envelope = Envelope {
        id: EventId::from_parts(1, 1),
        ts: Timestamp::from_ms(1),
        workspace_id: WorkspaceId::from_parts(1, 1),
        space_id: None,
        actor: actor.actor(),
        run_id: RunId::from_parts(1, 1),
        seq: Some(1),
        idempotency_key: Some("a key".to_owned()),
    };
    Event { envelope, content }
}

fn answered(answers: Vec<Answer>) -> Content {
    Content::QuestionAnswered(QuestionAnswered {
        ask_id: AskId::from_parts(1, 1),
        answers,
        answered_by: ParticipantId::Person(PersonId::from_parts(1, 1)),
        answered_at: Timestamp::from_ms(2),
        timed_out: Some(false),
    })
}

/// The draft of a stored event.
fn draft(event: &Event) -> Draft {
    let content = match &event.content {
        Content::QuestionAsk(ask) => DraftContent::QuestionAsk(ask.clone()),
        Content::QuestionAnswered(answered) => DraftContent::QuestionAnswered(AnswerDraft {
            ask_id: answered.ask_id,
            answers: answered.answers.clone(),
            timed_out: answered.timed_out(),
        }),
    };
    let actor = match event.envelope.actor.id {
        ParticipantId::Person(id) => Participant::Person(id),
        _ => Participant::Harness(HarnessId::from_parts(1, 1)),
    };
    Draft {
        id: event.envelope.id,
        workspace_id: event.envelope.workspace_id,
        space_id: None,
        run_id: event.envelope.run_id,
        idempotency_key: "a key".to_owned(),
        actor,
        content,
    }
}

#[track_caller]
fn valid_and_silent(event: &Event) {
    let json = serde_json::to_value(event).unwrap();
    assert_eq!(validate::stored(&json), Ok(event.clone()), "{json}");
    let said = json.to_string().to_lowercase();
    for piece in ["k\u{e4}n", "vogel", "number", "quoted", "\u{1f33b}"] {
        assert!(!said.contains(piece), "{said}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_is_erased_stays_valid_keeps_its_shape_and_says_nothing(
        shapes in prop::collection::vec(shape(), 1..=4),
        bits in prop::collection::vec(0..32_u8, 4),
    ) {
        let whole = ask(&shapes);
        let answers: Vec<_> = whole.questions.iter().zip(&bits).filter_map(|(one, bits)| answer(one, *bits)).collect();
        let (asked, closed) = (event(Content::QuestionAsk(whole.clone())), event(answered(answers.clone())));
        assert!(validate::stored(&serde_json::to_value(&asked).unwrap()).is_ok());
        assert!(validate::stored(&serde_json::to_value(&closed).unwrap()).is_ok());

        let (mut erased, mut silent) = (whole.clone(), answers.clone());
        erase::answers(&whole, &mut silent);
        erase::ask(&mut erased);
        let (after, after_closed) = (event(Content::QuestionAsk(erased.clone())), event(answered(silent.clone())));
        valid_and_silent(&after);
        valid_and_silent(&after_closed);
        assert!(erase::event_says_erased(&after) && !erase::event_says_erased(&asked));
        assert_eq!(erase::event_says_erased(&after_closed), !answers.is_empty());
        assert!(!erase::event_says_erased(&closed));

        // Which option was chosen, and which is the default, is told by its place.
        let place = |ask: &QuestionAsk, answer: &Answer| -> (usize, Vec<usize>) {
            let at = ask.questions.iter().position(|question| question.question_id == answer.question_id).unwrap();
            let options = &ask.questions[at].options;
            let chosen = answer.values.iter().map(|value| options.iter().position(|option| option.value == *value).unwrap());
            (at, chosen.collect())
        };
        for (before, after) in answers.iter().zip(&silent) {
            assert_eq!(place(&whole, before), place(&erased, after));
            assert_eq!(before.free_text.is_some(), after.free_text.is_some());
        }
        for (before, after) in whole.questions.iter().zip(&erased.questions) {
            let default = |one: &Question| one.default_value.as_ref().map(|default| one.options.iter().position(|option| option.value == *default));
            assert_eq!(default(before), default(after));
            assert_eq!((before.multi(), before.free_text(), before.options.len()), (after.multi(), after.free_text(), after.options.len()));
        }

        // Twice is once.
        let (mut again, mut again_silent) = (erased.clone(), silent.clone());
        erase::answers(&erased, &mut again_silent);
        erase::ask(&mut again);
        assert_eq!((&again, &again_silent), (&erased, &silent));

        // Whoever repeats a write gets what is stored, and no conflict.
        let run = after.envelope.run_id;
        assert!(same_ask(&after, &whole, run, true));
        assert!(same_event(&after, &draft(&asked), true) && !differs(&after, &draft(&asked), true));
        assert!(same_event(&after_closed, &draft(&closed), true) && !differs(&after_closed, &draft(&closed), true));
        // What has another shape is still another.
        let mut other = whole.clone();
        other.timeout_seconds = Some(61.into());
        assert!(!same_ask(&after, &other, run, true));
        let mut other = whole.clone();
        other.questions.push(question(4, &shapes[0]));
        assert!(!same_ask(&after, &other, run, true));
        // What a client wrote so itself is a text like any other.
        assert!(!same_ask(&after, &whole, run, false) && same_ask(&after, &erased, run, false));
        assert!(differs(&after, &draft(&asked), false) && !differs(&after, &draft(&after), false));
        assert_eq!(differs(&after_closed, &draft(&closed), false), !answers.is_empty());

        // What a person typed can be erased alone.
        let mut untyped = answers.clone();
        erase::free_text(&mut untyped);
        for (before, after) in answers.iter().zip(&untyped) {
            assert_eq!((&before.question_id, &before.values), (&after.question_id, &after.values));
            assert_eq!(after.free_text.as_deref(), before.free_text.as_ref().map(|_| erase::ERASED));
        }
    }
}
