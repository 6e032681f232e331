//! The schemas as documents: valid against their own dialect, closed, and good for their own examples.
#![allow(clippy::unwrap_used)]

mod common;

use chips_protocol::schema::{AnyEvent, QuestionAnsweredEvent, QuestionAskEvent, example, of};
use chips_protocol::{EventType, api, validate};
use schemars::schema_for;
use serde_json::{Value, json};

#[test]
fn each_schema_is_a_schema() {
    for event_type in EventType::ALL {
        jsonschema::draft202012::meta::validate(&of(event_type)).unwrap();
    }
}

#[test]
fn each_schema_takes_its_own_example_and_no_other_types() {
    let examples: Vec<Value> =
        EventType::ALL.iter().map(|&event_type| serde_json::from_str(example(event_type)).unwrap()).collect();
    assert_eq!(examples, [common::ask(), common::answered()]);
    for (index, event_type) in EventType::ALL.into_iter().enumerate() {
        let schema = of(event_type);
        assert_eq!(schema["examples"], json!([examples[index]]));
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        for (other, example) in examples.iter().enumerate() {
            assert_eq!(validator.is_valid(example), index == other);
            assert!(validate::stored(example).is_ok());
        }
    }
}

/// Every object schema in a schema, with its place.
fn objects(schema: &Value, place: String, found: &mut Vec<(String, Value)>) {
    if schema["type"] == json!("object") {
        found.push((place.clone(), schema.clone()));
    }
    match schema {
        Value::Object(members) => {
            for (key, value) in members.iter().filter(|(key, _)| *key != "examples") {
                objects(value, format!("{place}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                objects(value, format!("{place}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn each_object_is_closed_and_each_field_is_explained() {
    for event_type in EventType::ALL {
        let mut found = Vec::new();
        objects(&of(event_type), String::new(), &mut found);
        assert!(found.len() > 2, "{found:?}");
        for (place, schema) in found {
            assert_eq!(schema["additionalProperties"], json!(false), "{event_type:?} {place}");
            for (name, field) in schema["properties"].as_object().unwrap() {
                assert!(field["description"].is_string(), "{event_type:?} {place}/{name}");
            }
        }
    }
}

#[test]
fn nothing_in_an_event_may_be_null() {
    for event_type in EventType::ALL {
        assert!(!of(event_type).to_string().contains("null"));
    }
    assert!(!schema_for!(api::NewRun).to_value().to_string().contains("null"));
}

#[test]
fn replies_embed_the_events_schemas() {
    let strip = |event_type| {
        let mut schema = of(event_type);
        schema.as_object_mut().unwrap().retain(|keyword, _| keyword != "$schema" && keyword != "$id");
        schema
    };
    let ask = schema_for!(api::Ask).to_value();
    assert_eq!(ask["$defs"]["QuestionAskEvent"], strip(EventType::QuestionAsk));
    assert_eq!(ask["$defs"]["QuestionAnsweredEvent"], strip(EventType::QuestionAnswered));
    let page = schema_for!(api::EventsPage).to_value();
    assert_eq!(page["properties"]["events"]["items"]["$ref"], json!("#/$defs/AnyEvent"));

    let any = jsonschema::draft202012::new(&schema_for!(AnyEvent).to_value()).unwrap();
    assert!(any.is_valid(&common::ask()) && any.is_valid(&common::answered()));
    assert!(!any.is_valid(&json!({})));
    for (schema, example) in [
        (schema_for!(QuestionAskEvent).to_value(), common::ask()),
        (schema_for!(QuestionAnsweredEvent).to_value(), common::answered()),
    ] {
        assert!(jsonschema::draft202012::new(&schema).unwrap().is_valid(&example));
    }
}

#[test]
fn the_schema_of_a_reply_takes_the_reply() {
    let ask: api::Ask = serde_json::from_value(json!({
        "ask_id": "qst_01K4ZQPX000000000000000009",
        "state": "answered",
        "tier": "active",
        "deadline": "2026-09-02T15:22:05.004Z",
        "asker": { "kind": "harness", "id": "hrn_01K4ZQPX000000000000000004", "name": "shop" },
        "answerer": { "kind": "person", "id": "usr_01K4ZQPX000000000000000003", "name": "Ada" },
        "asker_gone": false,
        "reachable": true,
        "ask": common::ask(),
        "answer": common::answered(),
        "option_labels": { "delivery-window": { "19": "19 September", "26": "26 September" } },
        "late_answers": [{
            "by": "usr_01K4ZQPX000000000000000003",
            "at": "2026-09-02T15:22:06.004Z",
            "answers": [{ "question_id": "delivery-window", "values": ["26"] }]
        }],
        "delivered_at": null,
        "acknowledged_at": null
    }))
    .unwrap();
    let schema = jsonschema::draft202012::new(&schema_for!(api::Ask).to_value()).unwrap();
    let reply = serde_json::to_value(ask).unwrap();
    schema.validate(&reply).unwrap();
}
