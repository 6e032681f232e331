//! `chips doctor`: finds what is wrong, says how to mend it, and is quiet where all is well.
#![allow(clippy::unwrap_used)]

mod serving;

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use serving::Machine;

/// What the doctor says with `--json`, and its exit code.
fn examined(machine: &Machine, args: &[&str]) -> (i32, Value) {
    let output = machine.run(&[&["doctor", "--json"], args].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let code = output.status.code().unwrap();
    assert_eq!(report["ok"].as_bool().unwrap(), code == 0, "{report}");
    (code, report)
}

/// What is wrong.
fn wrong(report: &Value) -> Vec<&Value> {
    report["checks"].as_array().unwrap().iter().filter(|check| check["state"] == "wrong").collect()
}

/// What the checks of the data folder say, on one line.
fn says(report: &Value) -> String {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().map(|check| check["says"].as_str().unwrap()).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_folder_that_is_well_gets_0() {
    let machine = Machine::new();
    machine.json(&["init"]);
    let (code, report) = examined(&machine, &[]);
    assert_eq!(code, 0, "{report}");
    assert!(says(&report).contains("holds 1 workspace"), "{report}");
    assert!(says(&report).contains("no server runs"), "{report}");
}

#[test]
fn a_server_that_runs_is_named_and_asked() {
    let machine = Machine::new();
    let server = machine.serve(&[]);
    let (code, report) = examined(&machine, &[]);
    assert_eq!(code, 0, "{report}");
    assert!(says(&report).contains(&format!("process {} serves it on {}", server.pid(), server.url())), "{report}");
    assert_eq!(server.terminate().code(), Some(0));
    assert!(says(&examined(&machine, &[]).1).contains("no server runs"));
}

#[test]
fn as_a_health_check_it_asks_the_server_alone_and_fails_without_one() {
    let machine = Machine::new();
    assert_eq!(examined(&machine, &["--ready"]).0, 1, "there is not even a folder");
    machine.json(&["init"]);
    assert_eq!(examined(&machine, &["--ready"]).0, 1, "no server runs");
    // What else is wrong on the machine is none of its business.
    std::fs::set_permissions(machine.data(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = machine.serve(&["--public-url", "https://chips.example.com"]);
    let (code, report) = examined(&machine, &["--ready"]);
    assert_eq!((code, report["checks"].as_array().unwrap().len()), (0, 1), "{report}");
    assert_eq!(examined(&machine, &[]).0, 1);
    assert_eq!(server.terminate().code(), Some(0));
    assert_eq!(examined(&machine, &["--ready"]).0, 1, "it has gone");
}

#[test]
fn a_folder_that_others_get_into_is_wrong() {
    let machine = Machine::new();
    machine.json(&["init"]);
    std::fs::set_permissions(machine.data(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, report) = examined(&machine, &[]);
    assert_eq!(code, 1);
    let wrong = wrong(&report);
    assert_eq!(wrong.len(), 1, "{report}");
    assert!(wrong[0]["mend"].as_str().unwrap().contains("chmod 700"), "{report}");
    let text = machine.run(&["doctor"]);
    assert!(String::from_utf8(text.stdout).unwrap().contains("wrong"));
}

#[test]
fn files_that_the_server_can_t_write_are_wrong() {
    let machine = Machine::new();
    machine.json(&["init"]);
    let database = machine.data().join("chips.db");
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o400)).unwrap();
    let (code, report) = examined(&machine, &[]);
    assert_eq!(code, 1, "{report}");
    let mends: Vec<_> = wrong(&report).iter().map(|check| check["mend"].as_str().unwrap()).collect();
    assert!(mends.iter().any(|mend| mend.contains(&format!("chmod 600 {}", database.display()))), "{report}");
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o600)).unwrap();

    // A command that was run as root leaves a file of root's; only root can play that.
    if std::os::unix::fs::chown(&database, Some(65_534), None).is_ok() {
        let (code, report) = examined(&machine, &[]);
        assert_eq!(code, 1, "{report}");
        let found = wrong(&report);
        assert!(found[0]["says"].as_str().unwrap().contains("chips.db in it belong"), "{report}");
        assert!(found[0]["mend"].as_str().unwrap().starts_with("`chown -R "), "{report}");
    }
}

#[test]
fn a_backup_is_advised_only_where_something_is_damaged() {
    let machine = Machine::new();
    machine.json(&["init"]);
    std::fs::set_permissions(machine.data(), std::fs::Permissions::from_mode(0o500)).unwrap();
    let (_, report) = examined(&machine, &[]);
    assert!(wrong(&report)[0]["mend"].as_str().unwrap().contains("chmod 700"), "{report}");
    assert!(!report.to_string().contains("backup"), "{report}");
    std::fs::set_permissions(machine.data(), std::fs::Permissions::from_mode(0o700)).unwrap();

    // The layout of a database file stands in its head, 60 bytes from the beginning.
    let (database, copy) = (machine.data().join("chips.db"), machine.home().join("copy.db"));
    machine.text(&["backup", copy.to_str().unwrap()]);
    for name in ["chips.db-wal", "chips.db-shm"] {
        let _ = std::fs::remove_file(machine.data().join(name));
    }
    let mut bytes = std::fs::read(&copy).unwrap();
    bytes[60..64].copy_from_slice(&999_u32.to_be_bytes());
    std::fs::write(&database, bytes).unwrap();
    let (_, report) = examined(&machine, &[]);
    let newer = wrong(&report)[0];
    assert!(newer["says"].as_str().unwrap().contains("layout 999"), "{report}");
    assert!(newer["mend"].as_str().unwrap().contains("install that version"), "{report}");
    assert!(!report.to_string().contains("backup"), "{report}");
    // What a server has left beside it says that there was something.
    std::fs::write(machine.data().join("url"), "http://127.0.0.1:7070\n").unwrap();
    std::fs::write(&database, "").unwrap();
    assert!(wrong(&examined(&machine, &[]).1)[0]["mend"].as_str().unwrap().contains("restore a backup"));
}

#[test]
fn a_workspace_without_an_owner_is_told_when_they_go_and_by_the_doctor() {
    let machine = Machine::new();
    let owner = machine.json(&["init"])["person"]["id"].as_str().unwrap().to_owned();
    let other = machine.json(&["person", "add", "Ada"])["id"].as_str().unwrap().to_owned();
    let said = machine.run(&["erase", "--yes", "--person", &owner]);
    assert!(String::from_utf8(said.stderr).unwrap().contains(&format!("{owner} alone owns ws_")));
    let (code, report) = examined(&machine, &[]);
    assert_eq!(code, 0, "{report}");
    assert!(says(&report).contains("nobody owns ws_"), "{report}");
    let said = machine.run(&["person", "disable", &other]);
    assert!(!String::from_utf8(said.stderr).unwrap().contains("alone owns"));
    let (code, report) = examined(&machine, &[]);
    assert_eq!(code, 1, "{report}");
    assert!(wrong(&report)[0]["mend"].as_str().unwrap().contains("person add NAME --workspace ws_"), "{report}");
}

#[test]
fn a_write_ahead_log_that_nobody_moves_is_wrong() {
    let machine = Machine::new();
    machine.json(&["init"]);
    // As long as one, and empty: nothing of it is on the disk.
    std::fs::File::create(machine.data().join("chips.db-wal")).unwrap().set_len(300 << 20).unwrap();
    let (code, report) = examined(&machine, &[]);
    assert_eq!(code, 1, "{report}");
    let found = wrong(&report);
    assert!(found[0]["says"].as_str().unwrap().contains("write-ahead log has 300 MiB"), "{report}");
    assert!(found[0]["mend"].as_str().unwrap().contains("fuser"), "{report}");
}

#[test]
fn a_named_folder_that_is_not_there_is_wrong_and_the_default_one_is_not_needed() {
    let machine = Machine::new();
    let (code, report) = examined(&machine, &["--data", machine.home().join("nowhere").to_str().unwrap()]);
    assert_eq!(code, 1, "{report}");
    let output = machine.command(&["doctor", "--json"]).env_remove("CHIPS_DATA").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_folder_of_something_else_is_wrong_and_stays_as_it_is() {
    let machine = Machine::new();
    machine.json(&["init"]);
    let database = std::fs::read_dir(machine.data())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "db"))
        .unwrap();
    std::fs::write(&database, "these are my recipes, not a database of Chips".repeat(100)).unwrap();
    for name in ["chips.db-wal", "chips.db-shm"] {
        let _ = std::fs::remove_file(machine.data().join(name));
    }
    let before = std::fs::read(&database).unwrap();
    let (code, report) = examined(&machine, &[]);
    assert_eq!(code, 1, "{report}");
    assert!(says(&report).contains("no database of Chips"), "{report}");
    assert!(std::fs::read(&database).unwrap() == before);
}

/// A configuration file as `chips connect` writes it.
fn configure(machine: &Machine, table: &str, url: &str, token: &str, mode: u32) -> std::path::PathBuf {
    let folder = machine.home().join(".config/chips");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("config.toml");
    std::fs::write(&path, format!("[{table}]\nurl = \"{url}\"\ntoken = \"{token}\"\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn a_good_token_is_told_with_whom_it_speaks_for() {
    let machine = Machine::new();
    let made = machine.json(&["init"]);
    let server = machine.serve(&[]);
    configure(&machine, "person", &server.url(), made["person"]["token"].as_str().unwrap(), 0o600);
    let (code, report) = examined(&machine, &[]);
    assert_eq!(code, 0, "{report}");
    assert!(
        says(&report).contains(&format!("it speaks for Owner ({})", made["person"]["id"].as_str().unwrap())),
        "{report}"
    );
    assert!(!report.to_string().contains("chips_uk_"), "{report}");
}

#[test]
fn a_token_that_has_ended_is_wrong() {
    let machine = Machine::new();
    let made = machine.json(&["init"]);
    let server = machine.serve(&[]);
    configure(&machine, "harness", &server.url(), made["harness"]["token"].as_str().unwrap(), 0o600);
    machine.json(&["harness", "disable", made["harness"]["id"].as_str().unwrap()]);
    let (code, report) = examined(&machine, &[]);
    assert_eq!(code, 1, "{report}");
    let wrong = wrong(&report);
    assert!(wrong.len() == 1 && wrong[0]["says"].as_str().unwrap().contains("not good"), "{report}");
}

#[test]
fn a_server_that_is_not_there_and_a_file_that_others_read_are_both_wrong() {
    let machine = Machine::new();
    let made = machine.json(&["init"]);
    let server = machine.serve(&[]);
    let url = server.url();
    assert_eq!(server.terminate().code(), Some(0));
    let path = configure(&machine, "harness", &url, made["harness"]["token"].as_str().unwrap(), 0o644);
    let (code, report) = examined(&machine, &[]);
    assert_eq!(code, 1, "{report}");
    let wrong = wrong(&report);
    assert_eq!(wrong.len(), 2, "{report}");
    assert!(wrong[0]["mend"].as_str().unwrap().contains(&format!("chmod 600 {}", path.display())), "{report}");
    assert!(wrong[1]["says"].as_str().unwrap().contains(&url), "{report}");
}
