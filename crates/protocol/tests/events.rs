//! Events as they travel: flat, in one order, and never taken from an array.
#![allow(clippy::unwrap_used)]

mod common;

use chips_protocol::{Event, validate};
use common::{answered, ask, remove, set};
use serde_json::{Value, json};

fn printed(event: &Value) -> String {
    serde_json::to_string(&validate::stored(event).unwrap()).unwrap()
}

#[test]
fn the_pages_examples_come_back_byte_for_byte() {
    for example in [ask(), answered()] {
        assert_eq!(printed(&example), example.to_string());
        let event: Event = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&event).unwrap(), example);
        assert_eq!(serde_json::from_str::<Event>(&example.to_string()).unwrap(), event);
        assert_eq!(validate::stored(&example), Ok(event));
    }
}

#[test]
fn the_envelope_comes_first_and_in_one_order() {
    let mut event = ask();
    set(&mut event, "/seq", json!(7));
    set(&mut event, "/idempotency_key", json!("k"));
    let order: Vec<String> = serde_json::from_str::<serde_json::Map<_, _>>(&printed(&event))
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(
        order,
        [
            "v",
            "type",
            "id",
            "ts",
            "workspace_id",
            "space_id",
            "actor",
            "run_id",
            "seq",
            "idempotency_key",
            "ask_id",
            "questions",
            "timeout_seconds",
            "on_no_answer"
        ]
    );
}

#[test]
fn an_absent_boolean_stays_absent() {
    let mut event = ask();
    remove(&mut event, "/questions/0/multi_select");
    remove(&mut event, "/questions/0/allow_free_text");
    remove(&mut event, "/timeout_seconds");
    assert_eq!(printed(&event), event.to_string());
}

#[test]
fn an_array_is_never_taken_for_an_object() {
    for (event, pointer) in [
        (ask(), ""),
        (ask(), "/actor"),
        (ask(), "/questions/0"),
        (ask(), "/questions/0/options/1"),
        (answered(), ""),
        (answered(), "/answers/0"),
    ] {
        let mut array = event.clone();
        let place = array.pointer_mut(pointer).unwrap();
        *place = place.as_object().unwrap().values().cloned().collect();
        assert!(serde_json::from_value::<Event>(array.clone()).is_err(), "{array}");
        assert!(serde_json::from_str::<Event>(&array.to_string()).is_err(), "{array}");
        assert!(validate::stored(&array).is_err(), "{array}");
    }
}

#[test]
fn a_reader_passes_over_what_it_does_not_know() {
    let mut event = ask();
    set(&mut event, "/later", json!({ "a": [1] }));
    set(&mut event, "/questions/0/later", json!("x"));
    assert_eq!(serde_json::from_value::<Event>(event).unwrap(), validate::stored(&ask()).unwrap());
}

#[test]
fn a_reader_refuses_what_is_no_event_of_this_protocol() {
    for event in [json!(null), json!("x"), json!({}), json!([])] {
        assert!(serde_json::from_value::<Event>(event).is_err());
    }
    for (pointer, value) in
        [("/v", json!(2)), ("/type", json!("question.asked")), ("/id", json!("evt_1")), ("/seq", json!(-1))]
    {
        let mut event = ask();
        set(&mut event, pointer, value);
        assert!(serde_json::from_value::<Event>(event).is_err(), "{pointer}");
    }
    let twice = ask().to_string().replacen("\"v\":1", "\"v\":1,\"v\":1", 1);
    assert!(serde_json::from_str::<Event>(&twice).is_err());
}
