//! `chips backup` and `chips restore`, by the real binary.
#![allow(clippy::unwrap_used)]

mod desk;
mod serving;

use desk::Desk;
use serde_json::json;
use serving::Machine;

#[test]
fn a_backup_of_a_running_server_is_restored_into_a_new_history() {
    let desk = Desk::new();
    let ask = desk.ask(&["Ship on the 19th or the 26th?", "-o", "19=19 September", "-o", "26=26 September"]);
    let open = desk.open_ask();
    let copy = desk.machine.home().join("copy.db");
    let copy = copy.to_str().unwrap();
    let made = desk.machine.json(&["backup", copy]);
    assert_eq!((&made["file"], &made["events"]), (&json!(copy), &json!(1)), "{made}");
    let refused = desk.machine.refused(&["backup", copy], 1);
    assert!(refused.contains("already"), "{refused}");

    let other = Machine::new();
    let restored = other.json(&["restore", copy]);
    assert_eq!(restored["events"], json!(1));
    let refused = other.refused(&["restore", copy], 1);
    assert!(refused.contains("holds a workspace already"), "{refused}");
    let server = other.serve(&[]);
    // The person's token is as it was, and the question can be answered there.
    let (status, event) = server.answer(&desk.person, &open, json!({ "question_id": "question", "values": ["26"] }));
    assert_eq!((status, &event["seq"]), (201, &json!(2)), "{event}");
    // Whoever read the old history is told so.
    let path = format!("/v1/events?after=1&log={}", made["log"].as_str().unwrap());
    let (status, problem) = server.api(&desk.harness, "GET", &path, None);
    assert_eq!((status, &problem["code"]), (410, &json!("log_changed")), "{problem}");
    drop(ask);
}

#[test]
fn sessions_can_be_left_behind_and_a_missing_folder_is_told() {
    let desk = Desk::new();
    let copy = desk.machine.home().join("copy.db");
    let copy = copy.to_str().unwrap();
    desk.machine.text(&["backup", copy]);
    let other = Machine::new();
    other.text(&["restore", copy, "--drop-sessions"]);
    let empty = Machine::new();
    let refused = empty.refused(&["backup", "copy.db"], 1);
    assert!(refused.contains("holds no workspace yet"), "{refused}");
    let refused = empty.refused(&["restore", "/nowhere/copy.db"], 1);
    assert!(refused.contains("/nowhere/copy.db"), "{refused}");
}
