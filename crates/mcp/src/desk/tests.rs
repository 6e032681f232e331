//! When an ask is the one that a model makes again.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

fn question(prompt: &str) -> Value {
    json!({ "question_id": "q1", "prompt": prompt, "options": [{ "value": "y", "label": "Yes" }, { "value": "n", "label": "No" }] })
}

/// An open ask of this question, with these fields more.
fn ask(prompt: &str, more: Value) -> Ask {
    let mut asked = json!({
        "v": 1, "type": "question.ask", "id": "evt_01K4ZQPX000000000000000069", "ts": "2026-09-02T14:22:05.004Z",
        "workspace_id": "ws_01K4ZQPX000000000000000001", "run_id": "run_01K4ZQPX000000000000000005", "seq": 1,
        "actor": { "kind": "harness", "id": "hrn_01K4ZQPX000000000000000004" },
        "ask_id": "qst_01K4ZQPX000000000000000009", "questions": [question(prompt)],
    });
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "ask_id": "qst_01K4ZQPX000000000000000009", "state": "open", "tier": "time_sensitive", "deadline": null,
        "asker": { "kind": "harness", "id": "hrn_01K4ZQPX000000000000000004", "name": "Night shift" },
        "answerer": null, "asker_gone": false, "reachable": true, "ask": asked, "answer": null, "option_labels": {},
        "late_answers": [], "delivered_at": null, "acknowledged_at": null,
    }))
    .unwrap()
}

fn asking(title: Option<&str>, timeout_seconds: Value, on_no_answer: Value) -> Asking {
    Asking {
        title: title.map(str::to_owned),
        questions: vec![serde_json::from_value(question("Go?")).unwrap()],
        timeout_seconds: serde_json::from_value(timeout_seconds).unwrap(),
        on_no_answer: serde_json::from_value(on_no_answer).unwrap(),
        handed: Arc::default(),
    }
}

fn run(title: Option<&str>) -> Run {
    serde_json::from_value(json!({
        "run_id": "run_01K4ZQPX000000000000000005", "harness_id": "hrn_01K4ZQPX000000000000000004", "space_id": null,
        "title": title, "url": null, "labels": {}, "parent_run_id": null, "state": "live",
        "started_at": "2026-09-02T14:22:05.004Z", "ended_at": null, "lease_seconds": null, "lease_until": null,
    }))
    .unwrap()
}

#[test]
fn another_title_is_another_ask() {
    let shop = asking(Some("Upgrade the shop"), Value::Null, Value::Null);
    assert!(shop.is_titled(&run(Some("Upgrade the shop")), Some("shop · main")));
    assert!(!shop.is_titled(&run(Some("Upgrade the blog")), Some("shop · main")));
    assert!(!shop.is_titled(&run(None), None));
    let unnamed = asking(None, Value::Null, Value::Null);
    assert!(unnamed.is_titled(&run(None), None) && unnamed.is_titled(&run(Some("shop · main")), Some("shop · main")));
    assert!(!unnamed.is_titled(&run(Some("Upgrade the shop")), Some("shop · main")));
}

#[test]
fn another_time_out_or_policy_is_another_ask() {
    let plain = asking(None, Value::Null, Value::Null);
    let hour = asking(None, json!(3600), Value::Null);
    assert!(plain.is(&ask("Go?", json!({}))) && hour.is(&ask("Go?", json!({ "timeout_seconds": 3600 }))));
    assert!(hour.is(&ask("Go?", json!({ "timeout_seconds": 3600.0 }))), "the same number");
    assert!(!plain.is(&ask("Go on?", json!({}))));
    assert!(!hour.is(&ask("Go?", json!({}))), "a time-out would be dropped");
    assert!(!plain.is(&ask("Go?", json!({ "timeout_seconds": 3600 }))), "it would time out");
    assert!(!hour.is(&ask("Go?", json!({ "timeout_seconds": 60 }))));
    let cancel = asking(None, json!(3600), json!("cancel"));
    assert!(!cancel.is(&ask("Go?", json!({ "timeout_seconds": 3600 }))));
    assert!(cancel.is(&ask("Go?", json!({ "timeout_seconds": 3600, "on_no_answer": "cancel" }))));
    let said = asking(None, json!(3600), json!("continue"));
    assert!(said.is(&ask("Go?", json!({ "timeout_seconds": 3600 }))), "what is left out here means the same");
}

#[test]
fn what_was_told_is_asked_anew() {
    let mut closed = ask("Go?", json!({}));
    closed.state = AskState::Answered;
    let again = asking(None, Value::Null, Value::Null);
    assert!(again.is(&closed));
    again.handed.insert(closed.ask_id);
    assert!(!again.is(&closed));
}
