//! Schema and validator held against each other, over generated events good and bad.
//!
//! What the validator takes the schema takes. What the schema refuses the validator refuses. What the validator
//! refuses the schema refuses too, but for the faults of [`classes::ONLY_THE_VALIDATOR`], which no schema can see.
#![allow(clippy::unwrap_used)]

mod agreement {
    pub mod classes;
    pub mod generate;
}
mod common;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use agreement::{classes, generate};
use chips_protocol::validate::{FaultCode, draft, stored};
use chips_protocol::{Content, DraftContent, Event, EventType, schema};
use common::{brief, stored_faults};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

fn schema_takes(event_type: EventType, event: &Value) -> bool {
    static VALIDATORS: LazyLock<[jsonschema::Validator; 2]> =
        LazyLock::new(|| EventType::ALL.map(|kind| jsonschema::draft202012::new(&schema::of(kind)).unwrap()));
    VALIDATORS[event_type as usize].is_valid(event)
}

/// The same events on every run.
fn some(event_type: EventType, count: usize) -> Vec<Value> {
    let mut runner = TestRunner::deterministic();
    let strategy = generate::good(event_type);
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn both_refuse_every_fault_that_a_schema_can_express() {
    let good = EventType::ALL.map(|event_type| some(event_type, 20));
    for class in classes::both() {
        for event in &good[class.event_type as usize] {
            let mut bad = event.clone();
            (class.harm)(&mut bad);
            let faults = stored_faults(&bad);
            assert_eq!(
                brief(&faults),
                [(class.pointer.as_str(), class.code.as_str())],
                "{}: {bad:#}\n{faults:#?}",
                class.name
            );
            assert!(!schema_takes(class.event_type, &bad), "the schema takes {}: {bad:#}", class.name);
        }
    }
}

#[test]
fn only_the_validator_refuses_what_no_schema_can_express() {
    for class in classes::ONLY_THE_VALIDATOR {
        for mut bad in some(class.event_type, 40) {
            (class.harm)(&mut bad);
            let faults = stored_faults(&bad);
            assert!(!faults.is_empty(), "{} is taken: {bad:#}", class.why);
            for fault in &faults {
                assert!((class.is)(fault, &bad), "{}: {fault:?}", class.why);
            }
            assert!(schema_takes(class.event_type, &bad), "the schema can tell: {}: {bad:#}", class.why);
        }
    }
}

#[test]
fn every_code_that_one_event_can_have_is_held_by_a_class() {
    let mut held: BTreeSet<FaultCode> = classes::both().into_iter().map(|class| class.code).collect();
    held.extend(classes::ONLY_THE_VALIDATOR.iter().map(|class| class.code));
    let every: BTreeSet<FaultCode> =
        FaultCode::ALL.iter().copied().filter(|code| !classes::NEEDS_THE_LOG.contains(code)).collect();
    assert_eq!(held, every);
}

/// Holds the two against each other on one event; returns whether it was taken.
fn hold(event_type: EventType, event: &Value) -> Result<bool, TestCaseError> {
    let faults = stored_faults(event);
    let taken = schema_takes(event_type, event);
    if faults.is_empty() {
        prop_assert!(taken, "the validator takes what the schema refuses: {event:#}");
    } else if taken {
        for fault in &faults {
            prop_assert!(
                classes::ONLY_THE_VALIDATOR.iter().any(|class| (class.is)(fault, event)),
                "the schema takes what the validator refuses: {fault:?}\n{event:#}"
            );
        }
    }
    Ok(faults.is_empty())
}

#[test]
fn both_take_every_good_event() {
    for event_type in EventType::ALL {
        for event in some(event_type, 2_000) {
            assert!(stored(&event).is_ok(), "{:?}\n{event:#}", stored_faults(&event));
            assert!(schema_takes(event_type, &event), "{event:#}");
        }
    }
}

#[test]
fn both_agree_on_events_that_were_changed_anywhere() {
    let config = Config { cases: 6_000, failure_persistence: None, ..Config::default() };
    let strategy = prop::sample::select(EventType::ALL.to_vec())
        .prop_flat_map(|event_type| generate::changed(event_type).prop_map(move |event| (event_type, event)));
    let taken = std::cell::Cell::new(0);
    TestRunner::new(config)
        .run(&strategy, |(event_type, event)| {
            if hold(event_type, &event)? {
                taken.set(taken.get() + 1);
            }
            Ok(())
        })
        .unwrap();
    // The changes must neither be harmless nor hopeless, or nothing was held against anything.
    assert!((100..5_900).contains(&taken.get()), "{} of 6,000 were taken", taken.get());
}

/// The event as its sender would write it.
fn as_write(mut event: Value) -> Value {
    let members = event.as_object_mut().unwrap();
    members.shift_remove("seq");
    members.insert("idempotency_key".into(), json!("k"));
    if members["actor"]["kind"] == json!("system") {
        members.insert("actor".into(), json!({ "kind": "person", "id": "usr_01K4ZQPX000000000000000003" }));
    }
    event
}

#[test]
fn a_good_event_is_a_good_write_and_says_the_same() {
    for event_type in EventType::ALL {
        for event in some(event_type, 300) {
            let write = as_write(event);
            let (draft, stored) = (draft(&write).unwrap(), stored(&write).unwrap());
            assert_eq!(draft.id, stored.envelope.id);
            assert_eq!(draft.run_id, stored.envelope.run_id);
            assert_eq!(draft.space_id, stored.envelope.space_id);
            assert_eq!(draft.actor.id(), stored.envelope.actor.id);
            match (draft.content, stored.content) {
                (DraftContent::QuestionAsk(draft), Content::QuestionAsk(stored)) => assert_eq!(draft, stored),
                (DraftContent::QuestionAnswered(draft), Content::QuestionAnswered(stored)) => {
                    assert_eq!(draft.answers, stored.answers);
                    assert_eq!(draft.timed_out, stored.timed_out());
                }
                (draft, stored) => panic!("{draft:?} {stored:?}"),
            }
        }
    }
}

#[test]
fn what_was_stored_reads_back_as_it_was() {
    for event_type in EventType::ALL {
        for event in some(event_type, 300) {
            let event = stored(&event).unwrap();
            let printed = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&printed).unwrap(), event);
            let value = chips_protocol::json::read(printed.as_bytes()).unwrap();
            assert_eq!(stored_faults(&value), []);
            assert_eq!(stored(&value), Ok(event));
        }
    }
}
