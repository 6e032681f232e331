//! Events to send.

use chips_protocol::RunId;
use serde_json::{Value, json};
use ulid::Ulid;

use super::Actor;

/// A new identifier with this prefix.
pub fn id(prefix: &str) -> String {
    let mut random = [0; 16];
    getrandom::fill(&mut random).unwrap();
    format!("{prefix}{}", Ulid::from_parts(1_790_000_000_000, u128::from_le_bytes(random)))
}

/// A question with two options, a default, a time-out and free text.
pub fn ask(of: &Actor, run: RunId) -> Value {
    let mut event = of.envelope("question.ask", run);
    event["ask_id"] = json!(id("qst_"));
    event["questions"] = json!([{
        "question_id": "window",
        "prompt": "Ship on the 19th or the 26th?",
        "options": [{ "value": "19", "label": "19 September" }, { "value": "26", "label": "26 September" }],
        "allow_free_text": true,
        "default_value": "19",
    }]);
    event["timeout_seconds"] = json!(3600);
    event["on_no_answer"] = json!("use_default");
    event
}

/// An answer to an ask, which chooses this value of its first question.
pub fn answer(of: &Actor, ask: &Value, value: &str) -> Value {
    let run = ask["run_id"].as_str().unwrap().parse().unwrap();
    let mut event = of.envelope("question.answered", run);
    event["ask_id"] = ask["ask_id"].clone();
    event["answers"] = json!([{ "question_id": ask["questions"][0]["question_id"], "values": [value] }]);
    event
}

/// Options with these values, labelled like them.
pub fn options(values: &[&str]) -> Value {
    values.iter().map(|value| json!({ "value": value, "label": format!("Option {value}") })).collect()
}

/// The event with the value at this JSON pointer replaced, or added where its parent is an object.
pub fn with(event: &Value, pointer: &str, value: impl Into<Value>) -> Value {
    let mut event = event.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = event.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value.into(),
        parent => parent[name] = value.into(),
    }
    event
}

pub fn ask_id_of(ask: &Value) -> String {
    ask["ask_id"].as_str().unwrap().to_owned()
}

/// A fault as [`super::Reply::faults`] tells it.
pub fn fault(pointer: &str, code: &str) -> (String, String) {
    (pointer.to_owned(), code.to_owned())
}
