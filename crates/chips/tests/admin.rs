//! Administration: exactly what the contract prints, and felt at once by a server that runs.
#![allow(clippy::unwrap_used)]

mod serving;

use std::process::Stdio;

use chips_protocol::{HarnessId, PersonId, SpaceId};
use serde_json::{Value, json};
use serving::{Machine, Serving};

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer} in {value}"))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn status(server: &Serving, value: &Value, pointer: &str) -> u16 {
    server.me(text(value, pointer))
}

#[test]
fn json_is_what_the_contract_says() {
    let machine = Machine::new();
    machine.json(&["init"]);

    let person = machine.json(&["person", "add", "Ada"]);
    assert_eq!(keys(&person), ["id", "token", "sign_in_url", "sign_in_code"]);
    text(&person, "/id").parse::<PersonId>().unwrap();
    let rotated = machine.json(&["person", "rotate", text(&person, "/id")]);
    assert_eq!(keys(&rotated), keys(&person));
    assert_eq!(rotated["id"], person["id"]);
    assert_ne!(rotated["token"], person["token"]);
    let link = machine.json(&["person", "link", text(&person, "/id")]);
    assert_eq!(keys(&link), ["id", "sign_in_url", "sign_in_code"]);

    let harness = machine.json(&["harness", "add", "Purchasing"]);
    assert_eq!(keys(&harness), ["id", "token"]);
    text(&harness, "/id").parse::<HarnessId>().unwrap();
    assert_eq!(keys(&machine.json(&["harness", "rotate", text(&harness, "/id")])), keys(&harness));

    let space = machine.json(&["space", "add", "Warehouse"]);
    assert_eq!(keys(&space), ["id"]);
    text(&space, "/id").parse::<SpaceId>().unwrap();

    let workspace = machine.json(&["workspace", "add", "Second floor"]);
    assert_eq!(keys(&workspace), ["workspace_id", "space_id", "person", "harness", "sign_in_url", "sign_in_code"]);
}

#[test]
fn lists_are_arrays_of_objects_and_tables_of_the_same() {
    let machine = Machine::new();
    let made = machine.json(&["init"]);
    let ada = machine.json(&["person", "add", "Ada"]);
    machine.json(&["harness", "add", "Purchasing"]);
    machine.json(&["space", "add", "Payroll", "--member", text(&ada, "/id")]);
    for (kind, count, name) in [
        ("workspace", 1, None),
        ("person", 2, Some("Ada")),
        ("harness", 2, Some("Purchasing")),
        ("space", 2, Some("Payroll")),
    ] {
        let list = machine.json(&[kind, "list"]);
        let list = list.as_array().unwrap();
        assert_eq!(list.len(), count, "{kind}");
        let table = machine.text(&[kind, "list"]);
        assert_eq!(table.lines().count(), count + 1, "{table}");
        for one in list {
            assert_eq!(one["disabled"], false);
            assert!(table.contains(text(one, "/id")), "{table}");
            if kind != "workspace" {
                assert_eq!(one["workspace_id"], made["workspace_id"]);
            }
        }
        if let Some(name) = name {
            assert_eq!(text(&list[1], "/name"), name);
            assert!(table.contains(name));
        }
    }
}

#[test]
fn a_running_server_feels_it_at_once() {
    let machine = Machine::new();
    let made = machine.json(&["init"]);
    let server = machine.serve(&[]);
    assert_eq!(status(&server, &made, "/harness/token"), 200);

    let harness = machine.json(&["harness", "add", "Purchasing"]);
    let id = text(&harness, "/id");
    assert_eq!(status(&server, &harness, "/token"), 200, "a new token is good");

    let second = machine.json(&["harness", "rotate", id]);
    assert_eq!(status(&server, &harness, "/token"), 401, "the old token has ended");
    assert_eq!(status(&server, &second, "/token"), 200);

    let third = machine.json(&["harness", "rotate", id, "--overlap", "24h"]);
    assert_eq!(status(&server, &second, "/token"), 200, "the old token is good for another day");
    assert_eq!(status(&server, &third, "/token"), 200);

    machine.json(&["harness", "budget", id, "--open", "7", "--hour", "none"]);
    let (_, me) = server.api(text(&third, "/token"), "GET", "/v1/me", None);
    assert_eq!(me["budget"], json!({ "open": 0, "open_limit": 7, "hour": 0, "hour_limit": null }));
    machine.json(&["harness", "budget", id, "--hour", "9"]);
    let (_, me) = server.api(text(&third, "/token"), "GET", "/v1/me", None);
    assert_eq!((&me["budget"]["open_limit"], &me["budget"]["hour_limit"]), (&json!(7), &json!(9)));

    assert_eq!(machine.json(&["harness", "disable", id]), json!({ "id": id, "disabled": true }));
    assert_eq!(status(&server, &second, "/token"), 401);
    assert_eq!(status(&server, &third, "/token"), 401);
    let said = machine.refused(&["harness", "rotate", id], 1);
    assert!(said.contains("disabled"), "{said}");

    let ada = machine.json(&["person", "add", "Ada"]);
    assert_eq!(status(&server, &ada, "/token"), 200);
    machine.json(&["person", "disable", text(&ada, "/id")]);
    assert_eq!(status(&server, &ada, "/token"), 401);
    let said = machine.refused(&["person", "link", text(&ada, "/id")], 1);
    assert!(said.contains("disabled"), "{said}");
}

#[test]
fn who_is_in_a_closed_space_is_felt_at_once() {
    let machine = Machine::new();
    let made = machine.json(&["init"]);
    let server = machine.serve(&[]);
    let ada = machine.json(&["person", "add", "Ada"]);
    let grace = machine.json(&["person", "add", "Grace"]);
    let space = machine.json(&["space", "add", "Payroll", "--member", text(&ada, "/id")]);
    let sees = |person: &Value| {
        let (_, me) = server.api(text(person, "/token"), "GET", "/v1/me", None);
        me["spaces"].as_array().unwrap().iter().any(|seen| seen["id"] == space["id"])
    };
    assert!(sees(&ada) && !sees(&grace));
    let member =
        |act: &str, person: &Value| machine.json(&["space", "member", act, text(&space, "/id"), text(person, "/id")]);
    let said = member("add", &grace);
    assert_eq!(said, json!({ "space_id": space["id"], "person_id": grace["id"], "member": true }));
    member("remove", &ada);
    assert!(!sees(&ada) && sees(&grace));
    member("remove", &grace);
    assert!(!sees(&grace), "closed, and nobody in it");
    let said = machine.refused(&["space", "member", "add", text(&made, "/space_id"), text(&ada, "/id")], 1);
    assert!(said.contains("open space"), "{said}");
}

#[test]
fn where_there_are_several_workspaces_one_is_named() {
    let machine = Machine::new();
    let first = machine.json(&["init"]);
    let second = machine.json(&["workspace", "add", "Second floor"]);
    let (one, two) = (text(&first, "/workspace_id"), text(&second, "/workspace_id"));
    for args in [&["person", "add", "Ada"][..], &["harness", "add", "Purchasing"], &["space", "add", "Warehouse"]] {
        let said = machine.refused(args, 1);
        assert!(said.contains("--workspace") && said.contains(one) && said.contains(two), "{said}");
        machine.json(&[args, &["--workspace", two]].concat());
    }
    // An identifier says which by itself.
    machine.json(&["harness", "rotate", text(&first, "/harness/id")]);
    machine.json(&["person", "link", text(&second, "/person/id")]);
    let with_member = ["space", "add", "Cellar", "--member", text(&second, "/person/id")];
    let cellar = machine.json(&with_member);
    let listed = machine.json(&["space", "list", "--workspace", two]);
    assert!(listed.as_array().unwrap().iter().any(|space| space["id"] == cellar["id"]), "{listed}");
    for kind in ["person", "harness", "space"] {
        let count = |args: &[&str]| machine.json(args).as_array().unwrap().len();
        let more = usize::from(kind == "space");
        assert_eq!(count(&[kind, "list"]), 3 + more);
        assert_eq!(count(&[kind, "list", "--workspace", two]), 2 + more);
        let table = machine.text(&[kind, "list"]);
        assert!(table.contains("WORKSPACE") && table.contains(one) && table.contains(two), "{table}");
    }
    let nobody = "ws_01K4ZQPX000000000000000001";
    let said = machine.refused(&["person", "list", "--workspace", nobody], 1);
    assert!(said.contains(nobody), "{said}");
    let foreign = ["space", "add", "Payroll", "--workspace", one, "--member", text(&second, "/person/id")];
    machine.refused(&foreign, 1);
}

/// Case H15, as far as names go: there is none that could forge a line.
#[test]
fn a_name_is_one_line_that_can_be_read_whatever_it_names() {
    let machine = Machine::new();
    let space = text(&machine.json(&["init"]), "/space_id").to_owned();
    let list = |kind: &str| machine.json(&[kind, "list"]);
    let kinds = ["workspace", "person", "harness", "space"];
    let before = kinds.map(list);
    for kind in kinds {
        for (name, says) in [
            ("x\n{\"level\":\"ERROR\"}\u{1b}[31m\u{9b}2J\u{202e}y", "a line break (U+000A) as its character 2"),
            ("Ada\rRobin", "a line break (U+000D) as its character 4"),
            ("Ada\u{1b}[31m", "a control character (U+001B) as its character 4"),
            ("\u{202e}adA", "turns text round (U+202E) as its character 1"),
            ("A\tB", "a tab (U+0009)"),
        ] {
            let said = machine.refused(&[kind, "add", name], 1);
            assert!(said.contains(says), "{kind} {name:?}: {said}");
            assert!(!said.replace('\n', "").chars().any(|c| c.is_control() || c == '\u{202e}'), "{said:?}");
        }
    }
    assert_eq!(kinds.map(list), before);
    assert_eq!(text(&list("space")[0], "/id"), space);
    let name = "Größe \u{1f469}\u{200d}\u{1f4bb} (EU)";
    machine.json(&["harness", "add", name]);
    assert_eq!(text(&list("harness")[1], "/name"), name, "it comes back as it went in");
}

#[test]
fn who_is_disabled_leaves_no_harness_unheard_of_without_a_word() {
    let machine = Machine::new();
    let made = machine.json(&["init"]);
    let harness = text(&made, "/harness/id").to_owned();
    let ada = text(&machine.json(&["person", "add", "Ada"]), "/id").to_owned();
    machine.json(&["harness", "owner", &harness, &ada]);
    let done = machine.run(&["person", "disable", &ada]);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{said}");
    for words in ["nobody is told of what Harness (", &harness, "its owner Ada (", "harness owner", "none"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(text(&machine.json(&["person", "disable", &ada]), "/unheard/0/id"), harness, "as long as it is so");
    let doctor = machine.run(&["doctor"]);
    let says = String::from_utf8(doctor.stdout).unwrap();
    assert_eq!(doctor.status.code(), Some(1), "{says}");
    assert!(says.contains("nobody is told of what Harness") && says.contains(&format!("harness owner {harness} none")));
    machine.json(&["harness", "owner", &harness, "none"]);
    assert!(machine.run(&["doctor"]).status.success());
    let robin = text(&machine.json(&["person", "add", "Robin"]), "/id").to_owned();
    assert_eq!(machine.json(&["person", "disable", &robin])["unheard"], json!([]));
}

#[test]
fn what_is_refused_changes_nothing_and_says_why() {
    let machine = Machine::new();
    let said = machine.refused(&["person", "list"], 1);
    assert!(said.contains("chips init"), "an empty folder: {said}");
    assert!(!machine.data().exists());
    machine.json(&["init"]);
    let long = "x".repeat(101);
    for args in [
        &["person", "add", ""][..],
        &["person", "add", " \u{200b} "],
        &["harness", "add", &long],
        &["workspace", "add", "\t"],
        &["space", "add", "Payroll", "--member", "usr_01K4ZQPX000000000000000003"],
        &["person", "link", "usr_01K4ZQPX000000000000000003"],
        &["person", "disable", "usr_01K4ZQPX000000000000000003"],
        &["harness", "rotate", "hrn_01K4ZQPX000000000000000004"],
        &["harness", "budget", "hrn_01K4ZQPX000000000000000004", "--open", "1"],
        &["space", "member", "add", "spc_01K4ZQPX000000000000000002", "usr_01K4ZQPX000000000000000003"],
    ] {
        let said = machine.refused(args, 1);
        assert!(said.starts_with("chips: ") && said.lines().count() == 1, "{args:?}: {said}");
    }
    for (kind, count) in [("workspace", 1), ("person", 1), ("harness", 1), ("space", 1)] {
        assert_eq!(machine.json(&[kind, "list"]).as_array().unwrap().len(), count, "{kind}");
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    let machine = Machine::new();
    machine.json(&["init"]);
    for args in [
        &["person"][..],
        &["person", "add"],
        &["person", "link", "hrn_01K4ZQPX000000000000000004"],
        &["person", "link", "usr_8ZZZZZZZZZZZZZZZZZZZZZZZZZ"],
        &["person", "link", "usr_01k4zqpx000000000000000003"],
        &["person", "rotate", "usr_01K4ZQPX000000000000000003", "--overlap", "1 day"],
        &["harness", "budget", "hrn_01K4ZQPX000000000000000004"],
        &["harness", "budget", "hrn_01K4ZQPX000000000000000004", "--open", "-1"],
        &["harness", "budget", "hrn_01K4ZQPX000000000000000004", "--hour", "lots"],
        &["space", "member", "spc_01K4ZQPX000000000000000002"],
        &["completions", "cmd.exe"],
    ] {
        machine.refused(args, 2);
    }
}

#[test]
fn every_shell_gets_completions() {
    let machine = Machine::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = machine.text(&["completions", shell]);
        assert!(script.contains("harness") && script.contains("rotate"), "{shell}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let machine = Machine::new();
    let mut child =
        machine.command(&["completions", "zsh"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
