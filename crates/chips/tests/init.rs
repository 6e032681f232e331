//! `chips init`: what it makes, what it prints, and that it never touches what is there.
#![allow(clippy::unwrap_used)]

mod serving;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use chips_protocol::{HarnessId, PersonId, SpaceId, WorkspaceId};
use serving::{Machine, secrets_in};

/// The files of a folder and what is in them.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn init_prints_the_document_of_the_contract() {
    let machine = Machine::new();
    let data = machine.home().join("elsewhere");
    let made = machine.json(&["init", "--data", data.to_str().unwrap()]);
    let keys: Vec<_> = made.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["workspace_id", "space_id", "person", "harness", "sign_in_url", "sign_in_code"]);
    made["workspace_id"].as_str().unwrap().parse::<WorkspaceId>().unwrap();
    made["space_id"].as_str().unwrap().parse::<SpaceId>().unwrap();
    made["person"]["id"].as_str().unwrap().parse::<PersonId>().unwrap();
    made["harness"]["id"].as_str().unwrap().parse::<HarnessId>().unwrap();
    assert!(made["person"]["token"].as_str().unwrap().starts_with("chips_uk_"));
    assert!(made["harness"]["token"].as_str().unwrap().starts_with("chips_hk_"));
    assert!(made["sign_in_url"].as_str().unwrap().starts_with("http://127.0.0.1:7070/sign-in/"));
    assert_eq!(made["sign_in_code"].as_str().unwrap().len(), 9);
    assert!(!machine.data().exists(), "the folder that was named is the one that is made");
}

#[test]
fn only_the_user_gets_into_the_folder() {
    let machine = Machine::new();
    machine.json(&["init"]);
    let mode = std::fs::metadata(machine.data()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_folder_that_has_a_workspace_is_left_as_it_is() {
    let machine = Machine::new();
    machine.json(&["init"]);
    let before = files(&machine.data());
    for args in [&["init", "--json"][..], &["init"]] {
        let said = machine.refused(args, 1);
        assert!(said.starts_with("chips: ") && said.contains("already"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert!(files(&machine.data()) == before, "a file changed");
}

#[test]
fn links_are_built_on_the_public_url_from_then_on() {
    let machine = Machine::new();
    let made = machine.json(&["init", "--public-url", "https://chips.example.com"]);
    assert!(made["sign_in_url"].as_str().unwrap().starts_with("https://chips.example.com/sign-in/"));
    let link = machine.json(&["person", "link", made["person"]["id"].as_str().unwrap()]);
    assert!(link["sign_in_url"].as_str().unwrap().starts_with("https://chips.example.com/sign-in/"));
}

#[test]
fn without_json_it_prints_lines_to_copy() {
    let machine = Machine::new();
    let text = machine.text(&["init"]);
    assert!(text.lines().any(|line| line.starts_with("export CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN=chips_hk_")));
    assert!(text.lines().any(|line| line.contains("chips ask ") && line.contains("-o 19=")), "{text}");
    assert!(text.lines().any(|line| line.starts_with("http://127.0.0.1:7070/sign-in/")), "{text}");
}

#[test]
fn a_folder_that_cant_be_made_is_said_in_one_line() {
    let machine = Machine::new();
    std::fs::write(machine.home().join("file"), "").unwrap();
    let said = machine.refused(&["init", "--data", machine.home().join("file/data").to_str().unwrap()], 1);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("file/data"), "{said}");
    assert!(!secrets_in(&said));
}

#[test]
fn wrong_usage_ends_with_2() {
    let machine = Machine::new();
    for args in [
        &["init", "--public-url", "chips.example.com"][..],
        &["init", "--public-url", "https://chips.example.com/inbox"],
        &["init", "--nonsense"],
        &["init", "extra"],
        &[],
        &["nonsense"],
    ] {
        machine.refused(args, 2);
    }
    assert!(!machine.data().exists());
}
