//! What the tests of this crate share.
#![allow(dead_code, clippy::unwrap_used)]

use chips_protocol::{Fault, validate};
use serde_json::{Value, json};

/// The example of a `question.ask` from the protocol's page, in its stored form.
pub fn ask() -> Value {
    json!({
        "v": 1,
        "type": "question.ask",
        "id": "evt_01K4ZQPX000000000000000069",
        "ts": "2026-09-02T14:22:05.004Z",
        "workspace_id": "ws_01K4ZQPX000000000000000001",
        "space_id": "spc_01K4ZQPX000000000000000002",
        "actor": { "kind": "harness", "id": "hrn_01K4ZQPX000000000000000004" },
        "run_id": "run_01K4ZQPX000000000000000005",
        "ask_id": "qst_01K4ZQPX000000000000000009",
        "questions": [
            {
                "question_id": "delivery-window",
                "prompt": "Northwind can ship on the 19th or the 26th. Which should I confirm?",
                "options": [
                    { "value": "19", "label": "19 September", "description": "The date on the PO." },
                    { "value": "26", "label": "26 September", "description": "A week later, but a full pallet." }
                ],
                "multi_select": false,
                "allow_free_text": true,
                "default_value": "19"
            }
        ],
        "timeout_seconds": 3600,
        "on_no_answer": "use_default"
    })
}

/// The example of a `question.answered` from the protocol's page, in its stored form.
pub fn answered() -> Value {
    json!({
        "v": 1,
        "type": "question.answered",
        "id": "evt_01K4ZQPX000000000000000077",
        "ts": "2026-09-02T14:22:19.004Z",
        "workspace_id": "ws_01K4ZQPX000000000000000001",
        "space_id": "spc_01K4ZQPX000000000000000002",
        "actor": { "kind": "system", "id": "system" },
        "run_id": "run_01K4ZQPX000000000000000005",
        "ask_id": "qst_01K4ZQPX000000000000000009",
        "answers": [{ "question_id": "delivery-window", "values": ["19"] }],
        "answered_by": "usr_01K4ZQPX000000000000000003",
        "answered_at": "2026-09-02T14:29:40.117Z",
        "timed_out": false
    })
}

/// The ask as its harness writes it: with a key, without what Chips stamps.
pub fn ask_write() -> Value {
    as_write(ask(), json!({ "kind": "harness", "id": "hrn_01K4ZQPX000000000000000004" }))
}

/// The answer as its person writes it: with a key, without what Chips stamps.
pub fn answered_write() -> Value {
    let mut write = as_write(answered(), json!({ "kind": "person", "id": "usr_01K4ZQPX000000000000000003" }));
    write.as_object_mut().unwrap().remove("answered_by");
    write.as_object_mut().unwrap().remove("answered_at");
    write
}

fn as_write(mut event: Value, actor: Value) -> Value {
    event.as_object_mut().unwrap().remove("ts");
    event["actor"] = actor;
    event["idempotency_key"] = "delivery-window-1".into();
    event
}

/// Puts a value at a JSON pointer; a missing last member is added.
pub fn set(event: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match event.pointer_mut(parent).unwrap() {
        Value::Object(members) => {
            members.insert(name.to_owned(), value);
        }
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        other => panic!("{other} has no {name}"),
    }
}

/// Takes the member at a JSON pointer away.
pub fn remove(event: &mut Value, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    event.pointer_mut(parent).unwrap().as_object_mut().unwrap().shift_remove(name).unwrap();
}

/// Places and codes of the faults, in their order.
pub fn brief(faults: &[Fault]) -> Vec<(&str, &str)> {
    faults.iter().map(|fault| (fault.pointer.as_str(), fault.code.as_str())).collect()
}

/// The faults of an event in its stored form.
pub fn stored_faults(event: &Value) -> Vec<Fault> {
    validate::stored(event).err().unwrap_or_default()
}

/// The faults of a write.
pub fn draft_faults(event: &Value) -> Vec<Fault> {
    validate::draft(event).err().unwrap_or_default()
}
