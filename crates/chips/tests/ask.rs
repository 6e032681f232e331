//! `chips ask` against a real server.
#![allow(clippy::unwrap_used)]

mod desk;
mod proxy;
mod serving;

use std::io::Write;
use std::process::Stdio;

use desk::{Desk, end, text};
use rustix::process::Signal;
use serde_json::{Value, json};
use serving::Machine;

const ASK_ID: &str = "qst_01K4ZQPX000000000000000009";
const OPTIONS: [&str; 4] = ["-o", "yes=Yes, now", "-o", "no=Not yet"];

fn yes() -> Value {
    json!({ "question_id": "question", "values": ["yes"] })
}

#[test]
fn it_prints_the_chosen_value_and_ends_the_run_that_it_opened() {
    let desk = Desk::new();
    let ask = desk.ask(&[&["Deploy?"], &OPTIONS[..]].concat());
    let open = desk.open_ask();
    assert_eq!(open["ask"]["questions"][0]["options"][0], json!({ "value": "yes", "label": "Yes, now" }));
    let ask_id = open["ask_id"].as_str().unwrap();
    let run_id = open["ask"]["run_id"].as_str().unwrap();
    assert_eq!(run_id[4..], ask_id[4..], "the run's ULID is the ask's");
    let place = format!("asked: {}/asks/{ask_id}", desk.server().url());
    ask.err.wait_for("where it can be answered", |said| said.contains(&place).then_some(()));
    let again = format!("chips ask --ask-id {ask_id}\n");
    ask.err.wait_for("how it is taken up", |said| said.contains(&again).then_some(()));
    desk.answer(yes());
    let (code, out, err) = end(ask);
    assert_eq!((code, out.as_str()), (Some(0), "yes\n"), "{err}");
    assert!(err.contains("answered: Yes, now"), "{err}");
    assert_eq!(desk.run_state(run_id), "ended");
}

#[test]
fn values_and_text_come_one_a_line_and_the_event_as_json() {
    let desk = Desk::new();
    let arguments = ["What else?", "-o", "a=b=c", "-o", "d", "--multi", "--free-text"];
    let answer = || json!({ "question_id": "question", "values": ["d", "a"], "free_text": "soon\u{202e}" });
    let ask = desk.ask(&arguments);
    desk.answer(answer());
    assert_eq!(end(ask).1, "d\na\nsoon\u{202e}\n");
    let ask = desk.ask(&[&arguments[..], &["--json"]].concat());
    assert_eq!(desk.open_ask()["option_labels"]["question"], json!({ "a": "b=c", "d": "d" }));
    desk.answer(answer());
    let (code, out, err) = end(ask);
    let event: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out:?} {err:?}"));
    assert_eq!((code, &event["answers"][0], &event["type"]), (Some(0), &answer(), &json!("question.answered")));
}

#[test]
fn each_way_to_close_has_its_exit_code() {
    let desk = Desk::new();
    let ask = |more: &[&str]| desk.ask(&[&["Deploy?"], &OPTIONS[..], more].concat());

    let (code, out, err) = end(ask(&["--timeout", "0.2", "--default", "no"]));
    assert_eq!((code, out.as_str()), (Some(0), "no\n"), "{err}");
    assert!(err.contains("The time ran out, and the default was taken: Not yet"), "{err}");

    let (code, out, err) = end(ask(&["--timeout", "0.2s", "--on-no-answer", "cancel"]));
    assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");

    let withdrawn = ask(&[]);
    desk.settle(json!([]));
    assert_eq!(end(withdrawn).0, Some(4));

    let settled = ask(&[]);
    desk.settle(json!([yes()]));
    assert_eq!(end(settled).1, "yes\n");

    let ended = ask(&["--json"]);
    let run_id = desk.open_ask()["ask"]["run_id"].as_str().unwrap().to_owned();
    desk.server().api(&desk.harness, "POST", &format!("/v1/runs/{run_id}/end"), None);
    let (code, out, _) = end(ended);
    assert_eq!(code, Some(4));
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["answers"], json!([]));
}

#[test]
fn an_interrupt_leaves_the_question_open_and_says_how_to_take_it_up() {
    let desk = Desk::new();
    let ask = desk.ask(&[&["Deploy?"], &OPTIONS[..]].concat());
    let ask_id = desk.open_ask()["ask_id"].as_str().unwrap().to_owned();
    ask.err.wait_for("that it waits", |said| said.contains("waiting").then_some(()));
    ask.signal(Signal::INT);
    let (code, out, err) = end(ask);
    assert_eq!((code, out.as_str()), (Some(130), ""));
    let again = format!("chips ask --ask-id {ask_id}");
    assert!(err.contains(&format!("stays open. Take it up again with: {again}\n")), "{err}");
    assert_eq!(desk.open_ask()["state"], "open");

    let taken_up = desk.ask(&["--ask-id", &ask_id]);
    taken_up.err.wait_for("that it is taken up", |said| said.contains("taken up").then_some(()));
    desk.answer(yes());
    let (code, out, err) = end(taken_up);
    assert_eq!((code, out.as_str()), (Some(0), "yes\n"), "{err}");
    assert_eq!(desk.run_state(&ask_id.replace("qst_", "run_")), "ended");
}

#[test]
fn it_says_that_nobody_could_be_told() {
    let desk = Desk::new();
    let ask = desk.ask(&[&["Deploy?"], &OPTIONS[..]].concat());
    desk.answer(yes());
    assert!(!end(ask).2.contains("nobody could be told"), "the inbox is the way where nothing else is set up");

    let away = desk.machine.json(&["person", "add", "Away"])["id"].as_str().unwrap().to_owned();
    let space = desk.machine.json(&["space", "add", "Closed", "--member", &away])["id"].as_str().unwrap().to_owned();
    let (code, ..) = text(&desk.machine.command(&["person", "disable", &away]).output().unwrap());
    assert_eq!(code, Some(0));
    let unheard = desk.ask(&[&["Deploy?", "--space", &space], &OPTIONS[..]].concat());
    unheard.err.wait_for("that nobody hears", |said| said.contains("nobody could be told of it so far").then_some(()));
    unheard.signal(Signal::INT);
    assert_eq!(end(unheard).0, Some(130));
}

#[test]
fn a_token_that_ends_meanwhile_leaves_the_question_open_and_says_how_to_go_on() {
    let desk = Desk::new();
    let ask = desk.ask(&[&["Deploy?"], &OPTIONS[..]].concat());
    ask.err.wait_for("that it waits", |said| said.contains("waiting").then_some(()));
    let open = desk.open_ask();
    let (ask_id, harness) = (open["ask_id"].as_str().unwrap(), open["asker"]["id"].as_str().unwrap());
    desk.machine.json(&["harness", "rotate", harness]);
    let (code, out, err) = end(ask);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("the question stays open") && err.contains("`chips connect`"), "{err}");
    assert!(err.contains(&format!("chips ask --ask-id {ask_id}")), "{err}");
    assert_eq!(desk.open_ask()["state"], "open");
}

#[test]
fn killed_and_started_again_it_is_the_same_ask_even_when_it_is_closed_by_then() {
    let desk = Desk::new();
    let arguments = [&["Deploy?"], &OPTIONS[..], &["--ask-id", ASK_ID]].concat();
    let mut killed = desk.ask(&arguments);
    desk.open_ask();
    killed.signal(Signal::KILL);
    killed.wait();
    let again = desk.ask(&arguments);
    again.err.wait_for("that it is taken up", |said| said.contains("taken up").then_some(()));
    desk.answer(yes());
    assert_eq!(end(again).1, "yes\n");
    for arguments in [&arguments[..], &["--ask-id", ASK_ID]] {
        let (code, out, err) = end(desk.ask(arguments));
        assert_eq!((code, out.as_str()), (Some(0), "yes\n"), "{err}");
    }
    assert_eq!(desk.events("question.ask").len(), 1);

    let other = desk.ask(&["Another question?", "-o", "a", "-o", "b", "--ask-id", ASK_ID]);
    let (code, out, err) = end(other);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("ask_id_conflict"), "{err}");
    assert_eq!(end(desk.ask(&["--ask-id", "qst_01K4ZQPX000000000000000010"])).0, Some(1));
}

/// M34: the server restarts, and the network is away for a while.
#[test]
fn it_outlives_a_restart_of_the_server_and_a_dead_network() {
    // The network has another address than the server, and the server answers for that one too.
    let serve = ["--allow-host", "127.0.0.1"];
    let mut desk = Desk::with(&serve);
    let network = proxy::Network::to(desk.server().address());
    let ask = desk.start(desk.command_at(&network.url(), &[&["ask", "Deploy?"], &OPTIONS[..]].concat()));
    desk.open_ask();
    let lost = |times: usize| {
        let said = |said: &str| (said.matches("lost the connection").count() == times).then_some(());
        ask.err.wait_for("that the connection is lost", said);
    };
    let back = |times: usize| {
        let said = |said: &str| (said.matches("the connection is back").count() == times).then_some(());
        ask.err.wait_for("that the connection is back", said);
    };

    desk.stop();
    lost(1);
    desk.start_server(&serve);
    network.lead_to(desk.server().address());
    back(1);

    network.cut();
    lost(2);
    network.open();
    back(2);

    network.hold();
    desk.answer(yes());
    network.open();
    let (code, out, err) = end(ask);
    assert_eq!((code, out.as_str()), (Some(0), "yes\n"), "{err}");
    assert_eq!(desk.events("question.ask").len(), 1);
    assert_eq!(desk.events("question.answered").len(), 1);
}

#[test]
fn several_questions_come_from_a_file() {
    let desk = Desk::new();
    let option = |value: &str| json!({ "value": value, "label": value.to_uppercase() });
    let content = json!({
        "timeout_seconds": 600, "on_no_answer": "continue", "questions": [
            { "question_id": "first", "prompt": "1?", "options": [option("a"), option("b")] },
            { "question_id": "second", "prompt": "2?", "options": [option("c"), option("d")] },
        ],
    });
    let file = desk.machine.home().join("ask.json");
    std::fs::write(&file, content.to_string()).unwrap();
    let ask = desk.ask(&["--file", file.to_str().unwrap(), "--timeout", "5m"]);
    let open = desk.open_ask();
    assert_eq!(open["ask"]["timeout_seconds"], 300);
    assert_eq!(open["ask"]["questions"], content["questions"]);
    desk.settle(json!([
        { "question_id": "second", "values": ["d"] }, { "question_id": "first", "values": ["a"] },
    ]));
    assert_eq!(end(ask).1, "a\nd\n");

    let mut command = desk.command(&["ask", "--file", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(content.to_string().as_bytes()).unwrap();
    desk.settle(json!([{ "question_id": "second", "values": ["c"] }]));
    let (code, out, err) = text(&child.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["answers"][0]["values"], json!(["c"]));
}

#[test]
fn a_run_that_was_given_is_used_and_not_ended() {
    let desk = Desk::new();
    let run = desk.server().api(&desk.harness, "POST", "/v1/runs", Some(&json!({}))).1;
    let run_id = run["run_id"].as_str().unwrap();
    let mut command = desk.command(&[&["ask", "Deploy?"], &OPTIONS[..]].concat());
    command.env("CHIPS_RUN", run_id);
    let ask = desk.start(command);
    assert_eq!(desk.open_ask()["ask"]["run_id"], run_id);
    desk.answer(yes());
    assert_eq!(end(ask).0, Some(0));
    assert_eq!(desk.run_state(run_id), "live");
}

#[test]
fn what_can_not_be_asked_is_refused_before_anything_is_sent() {
    let machine = Machine::new();
    let refused = |arguments: &[&str], code: i32, part: &str| {
        let mut command = machine.command(&[&["ask"], arguments].concat());
        command.env("CHIPS_URL", "http://127.0.0.1:9").env("CHIPS_TOKEN", format!("chips_hk_{}", "0".repeat(38)));
        let (status, out, err) = text(&command.output().unwrap());
        assert_eq!((status, out.as_str()), (Some(code), ""), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    };
    let asking = |more: &[&'static str]| [&["Deploy?"], &OPTIONS[..], more].concat();
    refused(&["Deploy?"], 2, "two to four options");
    refused(&["Deploy?", "-o", "yes"], 2, "two to four options");
    refused(&[], 2, "PROMPT");
    refused(&asking(&["--timeout", "0"]), 2, "more than 0");
    refused(&asking(&["--timeout", "-1"]), 2, "more than 0");
    refused(&asking(&["--timeout", "1 hour"]), 2, "90s, 15m, 1h30m, 2d");
    refused(&asking(&["--timeout", "366d"]), 2, "at most 365 days");
    refused(&asking(&["--ask-id", "qst_x"]), 2, "qst_");
    refused(&asking(&["--on-no-answer", "panic"]), 2, "use_default");
    refused(&["Deploy?", "-o", "a\nb=AB", "-o", "c"], 2, "--json");
    refused(&["Deploy?", "-o", "a=Yes", "-o", "b=yes "], 1, "-o number 2, its label");
    refused(&["Deploy?", "-o", "a=Y\u{202e}", "-o", "b"], 1, "forbidden_character");
    refused(&asking(&["--default", "maybe"]), 1, "--default");
    refused(&asking(&["--on-no-answer", "use_default"]), 1, "no_default");
    let file = machine.home().join("ask.json");
    std::fs::write(&file, "{\n  \"questions\": [],\n  \"questions\": []\n}").unwrap();
    refused(&["--file", file.to_str().unwrap()], 1, "ask.json:3:");
    std::fs::write(&file, "{\"questions\": [], \"timeout_second\": 5}").unwrap();
    refused(&["--file", file.to_str().unwrap()], 1, "/timeout_second:");
}

#[test]
fn the_servers_refusal_is_one_line_and_leaves_no_run_behind() {
    let desk = Desk::new();
    let id =
        desk.server().api(&desk.harness, "GET", "/v1/me", None).1["participant"]["id"].as_str().unwrap().to_owned();
    desk.machine.text(&["harness", "budget", &id, "--open", "0", "--hour", "none"]);
    let (code, out, err) = end(desk.ask(&[&["Deploy?"], &OPTIONS[..], &["--ask-id", ASK_ID]].concat()));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("(over_budget)") && err.lines().count() == 1, "{err}");
    assert_eq!(desk.run_state(&ASK_ID.replace("qst_", "run_")), "ended");
}

#[test]
fn only_a_harness_asks() {
    let desk = Desk::new();
    let mut command = desk.command(&[&["ask", "Deploy?"], &OPTIONS[..]].concat());
    command.env("CHIPS_TOKEN", &desk.person);
    let (code, _, err) = text(&command.output().unwrap());
    assert_eq!(code, Some(1));
    assert!(err.contains("CHIPS_TOKEN holds a person's token") && !err.contains(&desk.person), "{err}");
    let mut command = desk.command(&[&["ask", "Deploy?"], &OPTIONS[..]].concat());
    command.env_remove("CHIPS_TOKEN");
    let (code, _, err) = text(&command.output().unwrap());
    assert_eq!(code, Some(1));
    assert!(err.contains("chips connect"), "{err}");
}

/// What a file says and what the arguments say must not be mixed up: a default that is dropped is a question that waits.
#[test]
fn a_file_takes_no_options_beside_it() {
    let machine = Machine::new();
    for extra in [&["-o", "a"][..], &["--multi"], &["--free-text"], &["--default", "a"]] {
        let said = machine.refused(&[&["ask", "--file", "ask.json"], extra].concat(), 2);
        assert!(said.contains("--file"), "{said}");
    }
}
