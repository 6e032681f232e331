//! `chips connect`, `tail`, `check` and `schema`, and `answer` and `inbox` where nobody sits at a terminal.
#![allow(clippy::unwrap_used)]

mod desk;
mod proxy;
mod serving;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use desk::{Desk, end, text};
use serde_json::{Value, json};
use serving::{Machine, until};

fn with_input(command: &mut Command, input: &str) -> (Option<i32>, String, String) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses before it reads closes its end.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    text(&child.wait_with_output().unwrap())
}

fn config(machine: &Machine) -> PathBuf {
    machine.home().join(".config/chips/config.toml")
}

#[test]
fn connect_keeps_a_token_that_is_good_and_the_commands_take_it() {
    let desk = Desk::new();
    let machine = &desk.machine;
    let url = desk.server().url();
    let connect = |token: &str| with_input(&mut machine.command(&["connect", &format!("{url}/")]), token);

    let (code, out, err) = connect(&format!("{}\n", desk.harness));
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert!(err.contains(&format!("Connected to {url} as ")) && err.contains("(harness hrn_"), "{err}");
    let (code, _, err) = connect(&desk.person);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(std::fs::metadata(config(machine)).unwrap().permissions().mode() & 0o777, 0o600);

    let ask = desk.start(machine.command(&["ask", "Deploy?", "-o", "yes", "-o", "no"]));
    let listed = until("the question in the inbox", || {
        let listed = machine.text(&["inbox"]);
        (!listed.is_empty()).then_some(listed)
    });
    let (ask_id, rest) = listed.split_once('\t').unwrap();
    assert!(rest.ends_with("\t-\tDeploy?\n"), "{listed:?}");
    let (code, out, err) = text(&machine.run(&["answer", ask_id, "--value", "yes"]));
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", "Answered: yes\n"));
    assert_eq!(end(ask).1, "yes\n");

    std::fs::set_permissions(config(machine), std::fs::Permissions::from_mode(0o644)).unwrap();
    let (code, _, err) = text(&machine.run(&["inbox"]));
    assert_eq!(code, Some(0));
    assert!(err.contains("others can read") && err.contains("chmod 600"), "{err}");
}

#[test]
fn connect_keeps_no_token_that_is_not() {
    let desk = Desk::new();
    let url = desk.server().url();
    for (token, part) in [
        (format!("chips_hk_{}", "0".repeat(38)), "(unauthenticated)"),
        ("hunter2".to_owned(), "a token starts with chips_hk_"),
        (desk.harness[..30].to_owned(), "not copied whole"),
        (String::new(), "no token on standard input"),
    ] {
        let (code, out, err) = with_input(&mut desk.machine.command(&["connect", &url]), &token);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains(part) && (token.is_empty() || !err.contains(&token)), "{err}");
    }
    assert!(!config(&desk.machine).exists());
    desk.machine.refused(&["connect", "127.0.0.1:7070"], 2);
    desk.machine.refused(&["connect", &url, "--token", "x"], 2);
}

#[test]
fn only_a_person_answers() {
    let desk = Desk::new();
    let ask = desk.ask(&["Deploy?", "-o", "yes", "-o", "no"]);
    let ask_id = desk.open_ask()["ask_id"].as_str().unwrap().to_owned();
    for arguments in
        [&["answer", &ask_id, "--value", "yes"][..], &["answer", &ask_id], &["inbox"], &["inbox", "--json"]]
    {
        let (code, out, err) = text(&desk.command(arguments).output().unwrap());
        assert_eq!((code, out.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(err.contains("only a harness's token") && err.contains("CHIPS_USER_TOKEN"), "{err}");
        let mut swapped = desk.command(arguments);
        let (code, out, err) = text(&swapped.env("CHIPS_USER_TOKEN", &desk.harness).output().unwrap());
        assert_eq!((code, out.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(err.contains("CHIPS_USER_TOKEN holds a harness's token"), "{err}");
    }
    assert_eq!(desk.open_ask()["state"], "open");
    drop(ask);
}

#[test]
fn a_script_answers_with_arguments() {
    let desk = Desk::new();
    let answer = |arguments: &[&str]| {
        let mut command = desk.command(&[&["answer"], arguments].concat());
        text(&command.env("CHIPS_USER_TOKEN", &desk.person).output().unwrap())
    };
    let ask = desk.ask(&["What else?", "-o", "a=Apples", "-o", "b", "--multi", "--free-text", "--json"]);
    let ask_id = desk.open_ask()["ask_id"].as_str().unwrap().to_owned();
    for (arguments, code, part) in [
        (&[&ask_id, "--value", "c"][..], 1, "there is: \"a\", \"b\""),
        (&[&ask_id, "--value", "Apples"], 1, "the option's value is \"a\""),
        (&[&ask_id, "--text", "  "], 1, "free_text"),
        (&[&ask_id], 2, "--value"),
        (&["qst_01K4ZQPX000000000000000010", "--none"], 1, "you can't see it"),
        (&["run_01K4ZQPX000000000000000010", "--none"], 2, "qst_"),
    ] {
        let (status, out, err) = answer(arguments);
        assert_eq!((status, out.as_str()), (Some(code), ""), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
    let (code, out, err) = answer(&[&ask_id, "--value", "b", "--text", "pears", "--value", "a", "--json"]);
    assert_eq!((code, err.as_str()), (Some(0), "Answered: b, Apples and “pears”\n"));
    let event: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(event["answers"], json!([{ "question_id": "question", "values": ["b", "a"], "free_text": "pears" }]));
    assert_eq!(serde_json::from_str::<Value>(&end(ask).1).unwrap(), event);
    let (code, out, err) = answer(&[&ask_id, "--none"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.starts_with("chips: too late. ") && err.contains("answered: b, Apples and “pears”"), "{err}");
}

#[test]
fn an_empty_inbox_says_so_and_json_is_a_page() {
    let desk = Desk::new();
    let run =
        |arguments: &[&str]| text(&desk.command(arguments).env("CHIPS_USER_TOKEN", &desk.person).output().unwrap());
    assert_eq!(run(&["inbox"]), (Some(0), String::new(), "Nothing is open.\n".into()));
    let ask = desk.ask(&["Two\nlines \u{202e}?", "-o", "yes", "-o", "no", "--timeout", "1h"]);
    desk.open_ask();
    let (_, out, _) = run(&["inbox"]);
    assert!(out.lines().count() == 1 && out.contains("Two lines \\u{202e}?"), "{out:?}");
    let left = out.split('\t').nth(2).unwrap();
    assert!(left == "1h 00m" || left.starts_with("59m"), "{left}");
    let page: Value = serde_json::from_str(&run(&["inbox", "--json"]).1).unwrap();
    assert_eq!(page["asks"][0]["ask"]["questions"][0]["prompt"], "Two\nlines \u{202e}?");
    drop(ask);
}

#[test]
fn tail_prints_an_event_a_line_and_goes_on_after_a_restart() {
    let serve = ["--allow-host", "127.0.0.1"];
    let mut desk = Desk::with(&serve);
    let network = proxy::Network::to(desk.server().address());
    let ask = desk.start(desk.command_at(&network.url(), &["ask", "Deploy?", "-o", "yes", "-o", "no"]));
    desk.open_ask();
    let tail = desk.start(desk.command_at(&network.url(), &["tail", "--after", "0"]));
    let lines = |count: usize| {
        tail.out.wait_for(&format!("{count} events"), |out| (out.lines().count() == count).then(|| out.to_owned()))
    };
    lines(1);
    desk.stop();
    tail.err.wait_for("that the connection is lost", |err| err.contains("lost the connection").then_some(()));
    desk.start_server(&serve);
    network.lead_to(desk.server().address());
    desk.answer(json!({ "question_id": "question", "values": ["no"] }));
    let events: Vec<Value> = lines(2).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["seq"], &events[0]["type"]), (&json!(1), &json!("question.ask")));
    assert_eq!((&events[1]["seq"], &events[1]["answers"][0]["values"]), (&json!(2), &json!(["no"])));
    assert_eq!(end(ask).1, "no\n");
}

#[test]
fn tail_ends_when_nobody_reads_any_more() {
    let desk = Desk::new();
    let ask = desk.ask(&["Deploy?", "-o", "yes", "-o", "no"]);
    desk.open_ask();
    let mut child =
        desk.command(&["tail", "--after", "0"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.contains("question.ask"), "{line}");
    // Nothing more happens in the log; the reader goes.
    drop(reader);
    let status = until("the end of tail", || child.try_wait().unwrap());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
    drop(ask);
}

#[test]
fn tail_fails_at_once_where_it_can_not_begin() {
    let desk = Desk::new();
    let (code, out, err) = text(&desk.command(&["tail", "--after", "99"]).output().unwrap());
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("(cursor_ahead)"), "{err}");
    let nowhere = "http://127.0.0.1:9";
    let (code, _, err) = text(&desk.command_at(nowhere, &["tail"]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(err.contains("can't reach http://127.0.0.1:9 (connection refused), trying again…\n"), "{err}");
    assert!(err.ends_with("can't reach http://127.0.0.1:9: connection refused\n"), "{err}");
    let (code, _, err) = text(&desk.machine.run(&["tail"]));
    assert_eq!(code, Some(1));
    assert!(err.contains("chips connect"), "{err}");
}

#[test]
fn check_names_every_fault_with_its_place() {
    let machine = Machine::new();
    let good = include_str!("data/question.answered.json");
    let file = |name: &str, text: &str| {
        let path = machine.home().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good_file = file("good.json", good);
    let (code, out, err) = text(&machine.run(&["check", &good_file, &good_file]));
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", "chips: 2 events, no fault\n"));

    let bad_file = file("bad.json", &good.replace("[\"19\"]", "\"19\"").replace("\"v\": 1", "\"v\": 2"));
    let (code, out, err) = text(&machine.run(&["check", &bad_file]));
    assert_eq!(code, Some(1));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert!(
        lines[0].starts_with(&format!("{bad_file}:2:8: /v: ")) && lines[0].ends_with("(unsupported_version)"),
        "{out}"
    );
    assert!(lines[1].starts_with(&format!("{bad_file}:16:17: /answers/0/values: ")), "{out}");
    assert_eq!(err, "chips: 2 faults in 1 event\n");

    let (code, out, _) = text(&machine.run(&["check", "--json", &bad_file]));
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["ok"], &report["events"]), (Some(1), &json!(false), &json!(1)));
    assert_eq!(report["faults"][1]["code"], "wrong_type");

    // A write brings a key; the log's own events have none.
    let (code, out, _) = text(&machine.run(&["check", "--write", &good_file]));
    assert_eq!(code, Some(1));
    assert!(out.contains("/idempotency_key: ") && out.contains("(required)"), "{out}");

    let lines = format!("{}\n{{\"v\":1}}\n", good.replace('\n', " "));
    let (code, out, _) = with_input(&mut machine.command(&["check", "-"]), &lines);
    assert_eq!(code, Some(1));
    assert!(out.lines().all(|line| line.starts_with("<stdin>:2:1: ")), "{out}");

    let (code, _, err) = text(&machine.run(&["check", "/nowhere/at/all", &good_file]));
    assert_eq!(code, Some(1));
    assert!(err.contains("can't read /nowhere/at/all"), "{err}");
    machine.refused(&["check"], 2);
}

#[test]
fn schemas_are_listed_and_printed() {
    let machine = Machine::new();
    assert_eq!(machine.text(&["schema"]), "question.ask\nquestion.answered\n");
    let schema: Value = serde_json::from_str(&machine.text(&["schema", "question.ask"])).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    machine.refused(&["schema", "question"], 2);
}

#[test]
fn every_commands_help_ends_with_examples() {
    let machine = Machine::new();
    for command in ["connect", "ask", "inbox", "answer", "tail", "check", "schema"] {
        let help = machine.text(&[command, "--help"]);
        let (_, examples) = help.split_once("Examples:").unwrap_or_else(|| panic!("{command}: {help}"));
        assert!(examples.trim_start_matches("\u{1b}[0m").trim().starts_with(&format!("chips {command}")), "{examples}");
    }
}
