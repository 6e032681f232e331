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
    let refused = empty.refused(&["restore", copy, "--data", copy], 1);
    assert!(refused.contains("no folder") && !refused.contains("another folder"), "{refused}");
}

#[test]
fn a_backup_in_the_data_folder_is_warned_of_and_takes_no_name_of_chips_own() {
    let machine = Machine::new();
    machine.text(&["init"]);
    let inside = |name: &str| machine.data().join(name).to_string_lossy().into_owned();
    for name in ["chips.db-wal", "chips.db.layout-1", "chips.db-journal", "lock", "url", "address", "demo"] {
        let there = machine.data().join(name).exists();
        let refused = machine.refused(&["backup", &inside(name)], 1);
        assert!(refused.contains("its own files"), "{refused}");
        assert_eq!(machine.data().join(name).exists(), there);
    }
    let output = machine.run(&["backup", &inside("monday.db")]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stderr).contains("lies in the data folder"));
    let elsewhere = machine.home().join("chips.db.monday").to_string_lossy().into_owned();
    assert_eq!(String::from_utf8_lossy(&machine.run(&["backup", &elsewhere]).stderr), "");
}

#[test]
fn a_database_that_was_cut_to_nothing_is_no_first_start_and_a_backup_takes_its_place() {
    let machine = Machine::new();
    machine.serve(&[]).terminate();
    let copy = machine.home().join("copy.db").to_string_lossy().into_owned();
    machine.text(&["backup", &copy]);
    let database = machine.data().join("chips.db");
    std::fs::write(&database, "").unwrap();
    for words in [&["serve"][..], &["init"], &["backup", "another.db"], &["person", "list"], &["doctor"]] {
        let output = machine.run(words);
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap()).concat();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("the file is empty, though the folder was in use"), "{said}");
    }
    assert_eq!(std::fs::metadata(&database).unwrap().len(), 0);
    machine.text(&["restore", &copy]);
    assert!(machine.text(&["person", "list"]).contains("Owner"));
    // A first start that was cut short is one all the same.
    let machine = Machine::new();
    std::fs::create_dir(machine.data()).unwrap();
    std::fs::write(machine.data().join("chips.db"), "").unwrap();
    std::fs::write(machine.data().join("lock"), "4242\n").unwrap();
    machine.serve(&[]).terminate();
}
