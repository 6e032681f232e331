//! What the validator finds: every fault at once, each at its place, in one order.
#![allow(clippy::unwrap_used)]

mod common;

use chips_protocol::event::{Content, DraftContent};
use chips_protocol::validate::{draft, new_run, stored};
use chips_protocol::{FaultCode, Participant};
use common::{answered, answered_write, ask, ask_write, brief, draft_faults, remove, set, stored_faults};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn the_pages_examples_are_good_in_their_stored_form() {
    assert!(matches!(stored(&ask()).unwrap().content, Content::QuestionAsk(_)));
    assert!(matches!(stored(&answered()).unwrap().content, Content::QuestionAnswered(_)));
}

#[test]
fn a_write_needs_a_key_and_nothing_that_chips_stamps() {
    let ask = draft(&ask_write()).unwrap();
    assert_eq!(ask.idempotency_key, "delivery-window-1");
    assert!(matches!(ask.content, DraftContent::QuestionAsk(_)));
    assert!(matches!(draft(&answered_write()).unwrap().content, DraftContent::QuestionAnswered(_)));
    assert_eq!(brief(&draft_faults(&common::ask())), [("/idempotency_key", "required")]);
}

#[test]
fn what_chips_stamps_counts_for_nothing_in_a_write_but_its_json_type() {
    let mut write = answered_write();
    for (pointer, value) in
        [("/ts", "yesterday"), ("/answered_by", "me"), ("/answered_at", ""), ("/actor/harness_id", "x")]
    {
        set(&mut write, pointer, json!(value));
    }
    assert_eq!(draft(&write), draft(&answered_write()));
    for pointer in ["/ts", "/answered_by", "/answered_at", "/actor/harness_id"] {
        set(&mut write, pointer, Value::Null);
    }
    assert_eq!(
        brief(&draft_faults(&write)),
        [
            ("/ts", "wrong_type"),
            ("/actor/harness_id", "wrong_type"),
            ("/answered_by", "wrong_type"),
            ("/answered_at", "wrong_type")
        ]
    );
}

#[test]
fn an_agent_names_itself_and_chips_names_its_harness() {
    let mut write = ask_write();
    set(
        &mut write,
        "/actor",
        json!({ "kind": "agent", "id": "agt_01K4ZQPX000000000000000008", "harness_id": "hrn_01K4ZQPX000000000000000004" }),
    );
    assert!(matches!(draft(&write).unwrap().actor, Participant::Agent(_, None)));
    assert!(stored(&write).is_err());
    set(&mut write, "/ts", json!("2026-09-02T14:22:05.004Z"));
    assert!(stored(&write).unwrap().envelope.actor.harness_id.is_some());
}

#[test]
fn every_fault_is_told_at_once_in_the_order_of_the_tables() {
    let mut event = json!({ "on_no_answer": "use_defualt", "questions": [
        { "options": [{ "label": 1, "value": "" }], "prompt": "x".repeat(4001), "question_id": "a\u{0}" },
        { "question_id": "b", "prompt": "?", "options": [{ "value": "1", "label": "Yes" }, { "value": "1", "label": "yes " }] , "defualt_value": "1" },
    ] });
    set(&mut event, "/type", json!("question.ask"));
    set(&mut event, "/actor", json!({ "id": "usr_01K4ZQPX000000000000000003", "kind": "harness", "name": "x" }));
    let expected = [
        ("/v", "required"),
        ("/id", "required"),
        ("/ts", "required"),
        ("/workspace_id", "required"),
        ("/run_id", "required"),
        ("/actor/id", "bad_id"),
        ("/actor/name", "unknown_field"),
        ("/ask_id", "required"),
        ("/questions/0/question_id", "forbidden_character"),
        ("/questions/0/prompt", "too_long"),
        ("/questions/0/options", "too_few"),
        ("/questions/0/options/0/value", "empty"),
        ("/questions/0/options/0/label", "wrong_type"),
        ("/questions/1/options/1/value", "duplicate"),
        ("/questions/1/options/1/label", "duplicate"),
        ("/questions/1/defualt_value", "unknown_field"),
        ("/on_no_answer", "unknown_value"),
    ];
    let faults = stored_faults(&event);
    assert_eq!(brief(&faults), expected);

    let mut reversed = serde_json::Map::new();
    for (key, value) in event.as_object().unwrap().iter().rev() {
        reversed.insert(key.clone(), value.clone());
    }
    assert_eq!(stored_faults(&Value::Object(reversed)), faults);
}

#[test]
fn an_unknown_field_is_told_with_the_known_one_that_looks_most_like_it() {
    for (wrong, meant) in [
        ("timeout_second", "timeout_seconds"),
        ("timeoutSeconds", "timeout_seconds"),
        ("on_no_anwser", "on_no_answer"),
        ("question", "questions"),
        ("idempotencyKey", "idempotency_key"),
        ("space", "space_id"),
    ] {
        let mut event = ask();
        set(&mut event, &format!("/{wrong}"), json!(1));
        let faults = stored_faults(&event);
        assert_eq!(brief(&faults), [(format!("/{wrong}").as_str(), "unknown_field")]);
        assert!(faults[0].message.contains(&format!("`{meant}`")), "{}", faults[0].message);
    }
}

#[test]
fn pointers_are_escaped() {
    let mut event = ask();
    event.as_object_mut().unwrap().insert("a/b~c".into(), json!(1));
    let faults = stored_faults(&event);
    assert_eq!(brief(&faults), [("/a~1b~0c", "unknown_field")]);
    assert!(event.pointer(&faults[0].pointer).is_some());
}

#[test]
fn without_a_known_type_only_the_envelope_is_checked() {
    let mut event = ask();
    set(&mut event, "/type", json!("question.asked"));
    set(&mut event, "/id", json!("evt_1"));
    set(&mut event, "/anything", json!(1));
    set(&mut event, "/actor/anything", json!(1));
    let expected = [("/type", "unknown_type"), ("/id", "bad_id"), ("/actor/anything", "unknown_field")];
    assert_eq!(brief(&stored_faults(&event)), expected);
    remove(&mut event, "/type");
    assert_eq!(brief(&stored_faults(&event))[0], ("/type", "required"));
}

#[test]
fn what_is_no_object_is_one_fault() {
    for value in [
        json!(null),
        json!([]),
        json!("x"),
        json!(1),
        json!(true),
        ask().as_object().unwrap().values().cloned().collect(),
    ] {
        assert_eq!(brief(&stored_faults(&value)), [("", "wrong_type")]);
        assert_eq!(brief(&draft_faults(&value)), [("", "wrong_type")]);
        assert_eq!(brief(&new_run(&value).unwrap_err()), [("", "wrong_type")]);
    }
}

#[test]
fn a_whole_number_is_a_whole_number_however_it_is_written() {
    for text in ["60", "60.0", "6e1", "0.6e2"] {
        let mut write = ask_write();
        set(&mut write, "/timeout_seconds", serde_json::from_str(text).unwrap());
        let DraftContent::QuestionAsk(ask) = draft(&write).unwrap().content else { panic!() };
        assert_eq!(ask.timeout_seconds.unwrap().to_string(), "60");
    }
    for text in ["0.5", "1e-320", "31536000", "31535999.999"] {
        let mut write = ask_write();
        set(&mut write, "/timeout_seconds", serde_json::from_str(text).unwrap());
        assert!(draft(&write).is_ok(), "{text}");
    }
    for text in ["0", "-0.0", "-1", "1e308", "31536000.5", "31536001", "18446744073709551615"] {
        let mut write = ask_write();
        set(&mut write, "/timeout_seconds", serde_json::from_str(text).unwrap());
        assert_eq!(brief(&draft_faults(&write)), [("/timeout_seconds", "out_of_range")], "{text}");
    }
    for value in [json!("60"), json!(true), json!(null), json!([60])] {
        let mut write = ask_write();
        set(&mut write, "/timeout_seconds", value);
        assert_eq!(brief(&draft_faults(&write)), [("/timeout_seconds", "wrong_type")]);
    }
}

#[test]
fn lengths_count_characters() {
    let mut event = ask();
    set(&mut event, "/questions/0/options/0/label", json!("\u{1F600}".repeat(300)));
    assert!(stored(&event).is_ok());
    set(&mut event, "/questions/0/options/0/label", json!("\u{1F600}".repeat(301)));
    assert_eq!(brief(&stored_faults(&event)), [("/questions/0/options/0/label", "too_long")]);
}

#[test]
fn a_document_made_of_faults_is_told_a_bounded_number() {
    let mut event = ask();
    for number in 0..20_000 {
        event.as_object_mut().unwrap().insert(format!("x{number}"), json!(1));
    }
    set(&mut event, "/questions", (0..20_000).map(|_| json!(1)).collect());
    let faults = stored_faults(&event);
    assert_eq!(faults.len(), chips_protocol::limits::FAULTS);
    assert_eq!(brief(&faults)[0], ("/questions", "too_many"));
}

#[test]
fn a_run_may_be_opened_with_nothing_said() {
    assert_eq!(new_run(&json!({})), Ok(chips_protocol::api::NewRun::default()));
}

#[test]
fn a_run_comes_back_as_it_was_said() {
    let body = json!({
        "run_id": "run_01K4ZQPX000000000000000005",
        "space_id": "spc_01K4ZQPX000000000000000002",
        "title": "Confirm deliveries",
        "url": "HTTPS://ci.example:8443/jobs/7?x=1#log",
        "labels": { "branch": "main", "repo": "shop" },
        "parent_run_id": "run_01K4ZQPX000000000000000006",
        "lease_seconds": 60.0
    });
    let run = new_run(&body).unwrap();
    assert_eq!(run.lease_seconds.as_ref().unwrap().to_string(), "60");
    let mut expected = body;
    expected["lease_seconds"] = json!(60);
    assert_eq!(serde_json::to_value(run).unwrap(), expected);
}

#[test]
fn each_fault_of_a_run_is_told_at_its_place() {
    let many: serde_json::Map<_, _> = (0..17).map(|number| (format!("k{number:02}"), json!("v"))).collect();
    let cases = [
        (json!({ "run_id": "run_1" }), "/run_id", FaultCode::BadId),
        (json!({ "run_id": null }), "/run_id", FaultCode::WrongType),
        (json!({ "title": "\u{200B} " }), "/title", FaultCode::Empty),
        (json!({ "title": "a\u{202E}b" }), "/title", FaultCode::ForbiddenCharacter),
        (json!({ "title": "x".repeat(301) }), "/title", FaultCode::TooLong),
        (json!({ "url": "ftp://ci.example/" }), "/url", FaultCode::NotAllowed),
        (json!({ "url": "javascript:alert(1)" }), "/url", FaultCode::NotAllowed),
        (json!({ "url": "/jobs/7" }), "/url", FaultCode::NotAllowed),
        (json!({ "url": "https://" }), "/url", FaultCode::NotAllowed),
        (json!({ "url": "https://bank.example@evil.example/" }), "/url", FaultCode::NotAllowed),
        (json!({ "url": "https://@evil.example/" }), "/url", FaultCode::NotAllowed),
        (json!({ "url": "https://bank.example\\@evil.example/" }), "/url", FaultCode::NotAllowed),
        (json!({ "url": "https://ci.example/a b" }), "/url", FaultCode::NotAllowed),
        (json!({ "url": "https://ci.example/\n" }), "/url", FaultCode::NotAllowed),
        (json!({ "url": "https:/ci.example/" }), "/url", FaultCode::NotAllowed),
        (json!({ "url": format!("https://ci.example/{}", "x".repeat(2000)) }), "/url", FaultCode::TooLong),
        (json!({ "labels": [] }), "/labels", FaultCode::WrongType),
        (json!({ "labels": many }), "/labels", FaultCode::TooMany),
        (json!({ "labels": { "a/b": 1 } }), "/labels/a~1b", FaultCode::WrongType),
        (json!({ "labels": { "": "x" } }), "/labels/", FaultCode::Empty),
        (json!({ "labels": { "a": " " } }), "/labels/a", FaultCode::Empty),
        (json!({ "labels": { "a": "x".repeat(256) } }), "/labels/a", FaultCode::TooLong),
        (json!({ "labels": { "k".repeat(64): "x" } }), "", FaultCode::TooLong),
        (json!({ "lease_seconds": 0 }), "/lease_seconds", FaultCode::OutOfRange),
        (json!({ "lease_seconds": "60" }), "/lease_seconds", FaultCode::WrongType),
        (json!({ "lease_second": 60 }), "/lease_second", FaultCode::UnknownField),
        (
            json!({ "run_id": "run_01K4ZQPX000000000000000005", "parent_run_id": "run_01K4ZQPX000000000000000005" }),
            "/parent_run_id",
            FaultCode::NotAllowed,
        ),
    ];
    let schema = jsonschema::draft202012::new(&schemars::schema_for!(chips_protocol::api::NewRun).to_value()).unwrap();
    assert!(schema.is_valid(&json!({})) && schema.is_valid(&json!({ "url": "https://ci.example", "labels": {} })));
    for (body, pointer, code) in cases {
        // That a run is no part of itself is nothing that a schema can say.
        assert_eq!(schema.is_valid(&body), body.get("parent_run_id").is_some(), "{body}");
        let faults = new_run(&body).unwrap_err();
        assert_eq!(faults.len(), 1, "{body}: {faults:?}");
        assert_eq!(faults[0].code, code, "{body}");
        assert!(faults[0].pointer.starts_with(pointer), "{body}: {}", faults[0].pointer);
    }
}

/// Any JSON value whose members are apt to be an event's.
fn any_document() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "v",
        "type",
        "id",
        "ts",
        "actor",
        "kind",
        "seq",
        "ask_id",
        "questions",
        "options",
        "value",
        "label",
        "answers",
        "values",
        "default_value",
        "on_no_answer",
        "timeout_seconds",
        "url",
        "labels",
        "title",
        "",
        "~/",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec!["question.ask", "question.answered", "use_default", "system", "http://["])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..8).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_the_document_checking_it_never_panics_and_each_fault_has_its_place(document in any_document()) {
        for faults in [draft(&document).err(), stored(&document).err(), new_run(&document).err()].into_iter().flatten() {
            prop_assert!(!faults.is_empty());
            for fault in faults {
                let here = document.pointer(&fault.pointer).is_some();
                prop_assert_eq!(here, fault.code != FaultCode::Required, "{:?}", fault);
            }
        }
        let _ = serde_json::from_value::<chips_protocol::Event>(document);
    }
}
