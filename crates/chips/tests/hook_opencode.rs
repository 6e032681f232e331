//! `chips hook opencode`: its file among OpenCode's plugins, and its other half as the plugin speaks to it.
#![allow(clippy::unwrap_used)]

mod desk;
mod serving;

use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};

use desk::Desk;
use serde_json::{Value, json};
use serving::{Machine, Printed, until};

fn asked(id: &str) -> Value {
    json!({ "title": "Plant", "directory": "/srv/garden", "event": { "type": "question.asked", "properties": {
        "id": id, "sessionID": "ses_1",
        "questions": [{ "question": "Which bed?", "header": "Bed", "options": [{ "label": "Herbs" }, { "label": "Beans" }] }],
    } } })
}

/// The command as the plugin starts it.
struct Hook {
    child: std::process::Child,
    input: Option<ChildStdin>,
    out: Printed,
    err: Printed,
}

impl Hook {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self { input: child.stdin.take(), out: Printed::read(out), err: Printed::read(err), child }
    }

    fn say(&mut self, what: &Value) {
        writeln!(self.input.as_ref().unwrap(), "{what}").unwrap();
    }

    fn told(&self) -> Value {
        self.out.wait_for("a reply", |text| serde_json::from_str(text.lines().last()?).ok())
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn closed(desk: &Desk, ask: &Value) -> Value {
    let path = format!("/v1/asks/{}?wait=20", ask["ask_id"].as_str().unwrap());
    desk.server().api(&desk.person, "GET", &path, None).1
}

#[test]
fn an_answer_goes_out_until_opencode_has_it_and_the_end_takes_back_what_is_open() {
    let desk = Desk::new();
    let mut hook = Hook::start(desk.command(&["hook", "opencode"]));
    hook.say(&asked("que_1"));
    let ask = desk.open_ask();
    assert_eq!(ask["ask"]["questions"][0].get("default_value"), None, "no default is invented");
    desk.answer(json!({ "question_id": "q0", "values": ["Beans"] }));
    assert_eq!(hook.told(), json!({ "id": "que_1", "body": { "answers": [["Beans"]] } }));
    // A reply that did not get through is given again.
    hook.say(&json!({ "replied": "que_1", "status": 0 }));
    hook.out.wait_for("the reply again", |text| (text.lines().count() == 2).then_some(()));
    hook.say(&json!({ "replied": "que_1", "status": 200 }));
    until("the receipt", || closed(&desk, &ask)["acknowledged_at"].is_string().then_some(()));

    hook.say(&asked("que_2"));
    let ask = desk.open_ask();
    hook.end();
    assert_eq!(closed(&desk, &ask)["state"], "withdrawn");
    assert_eq!(desk.run_state(ask["ask"]["run_id"].as_str().unwrap()), "ended");
}

#[test]
fn a_question_waits_for_a_chips_that_is_not_there_and_one_who_is_not_away_is_asked_in_opencode() {
    let mut desk = Desk::new();
    let address = desk.server().address().to_string();
    let command = desk.command(&["hook", "opencode"]);
    desk.stop();
    let mut hook = Hook::start(command);
    hook.say(&asked("que_1"));
    hook.err.wait_for("the trouble", |said| said.contains("can't reach").then_some(()));
    desk.start_server(&["--listen", &address]);
    let ask = desk.open_ask();
    hook.say(&json!({ "event": { "type": "question.rejected", "properties": { "requestID": "que_1" } } }));
    assert_eq!(closed(&desk, &ask)["state"], "withdrawn");

    desk.machine.text(&["away", "off"]);
    hook.say(&asked("que_2"));
    hook.end();
    assert_eq!(desk.events("question.ask").len(), 1);
}

#[test]
fn a_line_that_can_not_be_read_is_told_and_is_not_the_last_one_that_is_heard() {
    let desk = Desk::new();
    let mut hook = Hook::start(desk.command(&["hook", "opencode"]));
    for bad in [&b"\xff\xfe\n"[..], b"junk\n", b"{\"neither\": 1}\n"] {
        hook.input.as_ref().unwrap().write_all(bad).unwrap();
    }
    hook.say(&asked("que_1"));
    desk.open_ask();
    let told = hook.err.text();
    assert_eq!(told.matches("that is not JSON").count(), 2, "{told}");
    assert!(told.contains("neither an event nor a reply"), "{told}");
    hook.end();
}

#[test]
fn the_plugin_is_put_in_and_taken_out_again_and_nothing_else_is_touched() {
    let machine = Machine::new();
    let folder = machine.home().join(".config/opencode/plugin");
    let file = folder.join("chips.js");
    let said = |args: &[&str]| {
        let output = machine.run(&[&["hook", "opencode"], args].concat());
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, diff, _) = said(&["--install", "--dry-run"]);
    assert!(code == Some(0) && diff.contains("+export const Chips"), "{diff}");
    assert!(!file.exists());

    let (_, _, next) = said(&["--install", "--timeout", "8h", "--default-first"]);
    assert!(next.contains("--uninstall") && next.contains("chips connect"), "{next}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(r#""hook","opencode","--default-first","--timeout","28800s"]"#), "{text}");
    assert!(said(&["--install", "--timeout", "8h", "--default-first"]).2.contains("nothing to change"));
    let checks = String::from_utf8(machine.run(&["doctor"]).stdout).unwrap();
    assert!(checks.contains("OpenCode\n  ok"), "{checks}");
    std::fs::write(&file, format!("{text}// changed\n")).unwrap();
    let checks = String::from_utf8(machine.run(&["doctor"]).stdout).unwrap();
    assert!(checks.contains("wrong") && checks.contains("chips hook opencode --install"), "{checks}");
    assert_eq!(said(&["--uninstall"]).0, Some(0));
    assert!(!folder.exists());
    assert!(said(&["--uninstall"]).2.contains("nothing to change"));

    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(&file, "export const Mine = 1\n").unwrap();
    for change in ["--install", "--uninstall"] {
        let (code, _, why) = said(&[change]);
        assert!(code == Some(1) && why.contains("was not written by Chips"), "{why}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "export const Mine = 1\n");
    assert_eq!(said(&["--install", "--timeout", "1h", "--on-no-answer", "use_default"]).0, Some(2));
}
