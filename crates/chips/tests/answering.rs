//! `chips answer`, `chips inbox` and `chips connect` on a terminal.
#![allow(clippy::unwrap_used)]

mod desk;
mod proxy;
mod pty;
mod serving;

use std::process::Command;

use desk::{Desk, end};
use pty::{CTRL_C, DOWN, ENTER, ESC, LEFT, Tty, UP};
use rustix::process::Signal;
use serde_json::{Value, json};
use serving::Serving;

const SIZE: (u16, u16) = (60, 24);

fn tty(desk: &Desk, size: (u16, u16), arguments: &[&str]) -> Tty {
    let url = desk.server().url();
    Tty::start(&desk.machine, size, &[("CHIPS_URL", &url), ("CHIPS_USER_TOKEN", &desk.person)], arguments)
}

/// Asks, and opens the question on a terminal.
fn asked(desk: &Desk, arguments: &[&str]) -> (Serving, Tty) {
    let ask = desk.ask(arguments);
    let ask_id = desk.open_ask()["ask_id"].as_str().unwrap().to_owned();
    let tty = tty(desk, SIZE, &["answer", &ask_id]);
    tty.wait_for(" asks");
    (ask, tty)
}

const DAYS: [&str; 5] = ["Ship on the 19th or the 26th?", "-o", "19=19 September", "-o", "26=26 September"];

fn days(more: &[&'static str]) -> Vec<&'static str> {
    [&DAYS[..], more].concat()
}

#[test]
fn arrows_and_enter_answer_and_the_terminal_is_left_as_it_was() {
    let desk = Desk::new();
    let (ask, mut tty) = asked(&desk, &days(&["--default", "19", "--timeout", "1h"]));
    let screen = tty.wait_for("If nobody answers");
    assert!(screen.contains(" ❯ 1  19 September (default)\n   2  26 September"), "{screen}");
    assert!(screen.contains(" 1h 00m left") || screen.contains(" 59m "), "{screen}");
    assert!(screen.lines().last().unwrap().starts_with(" ↑↓ 1–2 choose · Enter send · q leave"), "{screen}");
    tty.press(DOWN);
    tty.wait_for(" ❯ 2  26 September");
    tty.press(DOWN);
    tty.press(UP);
    tty.wait_for(" ❯ 1  19 September");
    tty.press("2");
    tty.wait_for(" ❯ 2  26 September");
    tty.press_until(ENTER, "Answered: 26 September");
    assert_eq!(tty.code(), 0);
    assert_eq!(end(ask).1, "26\n");
    let screen = tty.screen();
    assert!(screen.contains("Answered: 26 September") && !screen.contains("❯"), "{screen}");
    assert!(!tty.is_alternate() && !tty.hides_cursor());
}

#[test]
fn an_enter_that_was_meant_for_the_list_answers_nothing() {
    let desk = Desk::new();
    let ask = desk.ask(&days(&[]));
    desk.open_ask();
    let mut tty = tty(&desk, SIZE, &["inbox"]);
    tty.wait_for("❯ Ship on");
    tty.press("\r\r\r2");
    tty.wait_for(" ❯ 2  26 September");
    assert_eq!(desk.open_ask()["state"], "open");
    drop(ask);
}

#[test]
fn a_typed_answer_is_a_text_whatever_is_in_it() {
    let desk = Desk::new();
    let (ask, mut tty) = asked(&desk, &days(&["--free-text", "--json"]));
    tty.press("t");
    tty.wait_for("Enter take this");
    tty.press("2 days, q\x7f");
    tty.wait_for("❯ t  2 days,");
    tty.press(ESC);
    tty.wait_until("the draft, left", |screen| screen.contains("2 days,") && screen.contains("t type"));
    tty.press("1");
    tty.wait_for(" ❯ 1  19 September");
    tty.press("t");
    tty.press("\x1b[200~ more\nthan that\x1b[201~");
    tty.wait_for("than that");
    tty.press(ENTER);
    assert_eq!(tty.code(), 0);
    let answer: Value = serde_json::from_str(&end(ask).1).unwrap();
    assert_eq!(answer["answers"][0]["values"], json!([]));
    assert_eq!(answer["answers"][0]["free_text"], "2 days,  more\nthan that");
}

#[test]
fn several_choices_are_marked_with_space_or_digits_and_none_is_asked_about() {
    let desk = Desk::new();
    let (ask, mut tty) = asked(&desk, &days(&["--multi"]));
    tty.press_until(ENTER, "Nothing is chosen. Enter once more");
    tty.press("2");
    tty.wait_for("[x] 26 September");
    tty.press(UP);
    tty.press(" ");
    tty.wait_for("[x] 19 September");
    tty.press("2");
    tty.wait_for("[ ] 26 September");
    tty.press(ENTER);
    assert_eq!(tty.code(), 0);
    assert_eq!(end(ask).1, "19\n");

    let (ask, mut tty) = asked(&desk, &days(&["--multi", "--json"]));
    tty.press_until(ENTER, "Nothing is chosen. Enter once more");
    tty.press(ENTER);
    assert_eq!(tty.code(), 0);
    assert!(end(ask).1.contains("\"values\":[]"));
}

#[test]
fn several_questions_are_gone_through_and_shown_before_they_are_sent() {
    let desk = Desk::new();
    let option = |value: &str| json!({ "value": value, "label": format!("Label {value}") });
    let questions = json!({ "questions": [
        { "question_id": "first", "prompt": "One?", "options": [option("a"), option("b")] },
        { "question_id": "second", "prompt": "Two?", "options": [option("c"), option("d")] },
        { "question_id": "third", "prompt": "Three?", "options": [option("e"), option("f")], "allow_free_text": true },
    ]});
    let file = desk.machine.home().join("ask.json");
    std::fs::write(&file, questions.to_string()).unwrap();
    let (ask, mut tty) = asked(&desk, &["--file", file.to_str().unwrap(), "--json"]);
    tty.wait_for("Question 1 of 3");
    tty.press_until(ENTER, "Question 2 of 3");
    tty.press("\t");
    tty.wait_for("Question 3 of 3");
    tty.press(LEFT);
    tty.press(LEFT);
    tty.wait_for("✓ Label a");
    tty.press("2\r");
    tty.wait_for("Question 2 of 3");
    tty.press("\t");
    tty.press("t1 2 3\r");
    let screen = tty.wait_for("Is this your answer?");
    assert!(screen.contains("1  One?\n      Label b"), "{screen}");
    assert!(screen.contains("2  Two?\n      not answered"), "{screen}");
    assert!(screen.contains("3  Three?\n      “1 2 3”") && screen.contains("send only what is answered"), "{screen}");
    tty.press(ENTER);
    assert_eq!(tty.code(), 0);
    let answers = serde_json::from_str::<Value>(&end(ask).1).unwrap()["answers"].clone();
    assert_eq!(
        answers,
        json!([
            { "question_id": "first", "values": ["b"] },
            { "question_id": "third", "values": [], "free_text": "1 2 3" },
        ])
    );
}

#[test]
fn answered_elsewhere_it_closes_itself_says_by_whom_and_keeps_what_was_typed() {
    let desk = Desk::new();
    let (ask, mut tty) = asked(&desk, &days(&["--free-text"]));
    tty.press("tperhaps never");
    tty.wait_for("perhaps never");
    desk.answer(json!({ "question_id": "question", "values": ["19"] }));
    assert_eq!(tty.code(), 1);
    let screen = tty.screen();
    assert!(screen.contains("Closed meanwhile. ") && screen.contains("answered: 19 September"), "{screen}");
    assert!(screen.contains("not sent:\nperhaps never"), "{screen}");
    assert!(!tty.is_alternate());
    assert_eq!(end(ask).1, "19\n");
}

#[test]
fn leaving_and_signals_give_the_terminal_back_and_answer_nothing() {
    let desk = Desk::new();
    let ask = desk.ask(&days(&["--free-text"]));
    let ask_id = desk.open_ask()["ask_id"].as_str().unwrap().to_owned();
    let open = || {
        let tty = tty(&desk, SIZE, &["answer", &ask_id]);
        tty.wait_for("q leave");
        assert!(tty.is_alternate());
        tty
    };
    let left = |tty: Tty, code: u32| {
        assert_eq!(tty.code(), code, "{}", tty.screen());
        assert!(!tty.is_alternate() && !tty.hides_cursor());
    };
    for keys in ["q", ESC] {
        let mut tty = open();
        tty.press(keys);
        left(tty, 1);
    }
    let mut typed = open();
    typed.press("tdraft\x1b");
    typed.wait_until("the draft, left", |screen| screen.contains("t  draft") && screen.contains("t type"));
    typed.press("q");
    typed.wait_for("Once more leaves it behind");
    typed.press("q");
    left(typed, 1);
    let mut interrupted = open();
    interrupted.press(CTRL_C);
    left(interrupted, 130);
    let terminated = open();
    terminated.signal(Signal::TERM);
    left(terminated, 143);
    assert_eq!(desk.open_ask()["state"], "open");
    drop(ask);
}

#[test]
fn a_long_question_is_read_from_its_start_and_nothing_unseen_is_taken() {
    let desk = Desk::new();
    let prompt = (1..=60).map(|n| format!("Line {n} of a long prompt.")).collect::<Vec<_>>().join("\n");
    let ask = desk.ask(&[&prompt, "-o", "y=Yes", "-o", "n=No"]);
    let ask_id = desk.open_ask()["ask_id"].as_str().unwrap().to_owned();
    let mut tty = tty(&desk, (40, 16), &["answer", &ask_id]);
    let screen = tty.wait_for("↓ more");
    assert!(screen.contains("Line 1 of") && !screen.contains("❯"), "{screen}");
    tty.press("\x1b[6~");
    tty.wait_until("the next page", |screen| screen.contains("↑ more") && !screen.contains("Line 1 of"));
    tty.press_until(ENTER, "This is what Enter takes");
    tty.press(ENTER);
    assert_eq!(tty.code(), 0);
    assert_eq!(end(ask).1, "y\n");
}

#[test]
fn a_prompt_can_not_steer_the_terminal_and_colours_can_be_left_out() {
    let desk = Desk::new();
    let ask = desk.ask(&["Right \u{202e}tfel", "-o", "a=日本語のとても長いラベル", "-o", "b=Ordinary"]);
    let ask_id = desk.open_ask()["ask_id"].as_str().unwrap().to_owned();
    let url = desk.server().url();
    let variables = [("CHIPS_URL", url.as_str()), ("CHIPS_USER_TOKEN", desk.person.as_str())];
    let coloured = Tty::start(&desk.machine, (40, 20), &variables, &["answer", &ask_id]);
    let screen = coloured.wait_for("\\u{202e}tfel");
    assert!(screen.contains("日本語のとても長いラベル") && !screen.contains('\u{202e}'), "{screen}");
    assert!(coloured.raw().contains("\x1b[38;5;14m"), "{:?}", coloured.raw());
    let plain = [&variables[..], &[("NO_COLOR", "1")]].concat();
    let plain = Tty::start(&desk.machine, (40, 20), &plain, &["answer", &ask_id]);
    plain.wait_for("Ordinary");
    let raw = plain.raw();
    assert!(!raw.contains("\x1b[38;") && !raw.contains("\x1b[48;") && !raw.contains('\u{202e}'), "{raw:?}");
    drop(ask);
}

#[test]
fn the_inbox_is_live_and_answers_one_after_another() {
    let desk = Desk::new();
    let mut tty = tty(&desk, SIZE, &["inbox"]);
    tty.wait_for("Nobody asks anything right now");
    let first = desk.ask(&["First question?", "-o", "a=Label a", "-o", "b=Label b"]);
    tty.wait_for("❯ First question?");
    let second = desk.ask(&["Second question?", "-o", "c=Label c", "-o", "d=Label d"]);
    let screen = tty.wait_for("2 open");
    assert!(screen.find("First question?").unwrap() < screen.find("Second question?").unwrap(), "{screen}");
    tty.press("j");
    tty.wait_for("❯ Second question?");
    tty.press(ENTER);
    tty.wait_for("Label c");
    tty.press("2");
    tty.press_until(ENTER, "Answered: Label d");
    tty.wait_for("1 open");
    assert_eq!(end(second).1, "d\n");
    // Closed elsewhere: the list follows, and so does the question that is open on the screen.
    tty.wait_for("❯ First question?");
    tty.resize(100, 30);
    // The list has just moved under the cursor: Enter does nothing for a moment.
    tty.press_until(ENTER, "Label a");
    desk.answer(json!({ "question_id": "question", "values": ["a"] }));
    tty.wait_for("answered: Label a");
    tty.wait_for("nothing open");
    assert_eq!(end(first).1, "a\n");
    tty.press("q");
    assert_eq!(tty.code(), 0);
    assert!(!tty.is_alternate() && !tty.hides_cursor());
}

#[test]
fn a_lost_connection_is_shown_and_an_answer_waits_for_it() {
    let serve = ["--allow-host", "127.0.0.1"];
    let mut desk = Desk::with(&serve);
    let network = proxy::Network::to(desk.server().address());
    let ask = desk.ask(&days(&[]));
    let ask_id = desk.open_ask()["ask_id"].as_str().unwrap().to_owned();
    let variables = [("CHIPS_URL", &*network.url()), ("CHIPS_USER_TOKEN", &*desk.person)];
    let mut tty = Tty::start(&desk.machine, SIZE, &variables, &["answer", &ask_id]);
    tty.wait_for(" asks");
    network.cut();
    tty.wait_for("No connection");
    tty.press("2");
    tty.press_until(ENTER, "Not sent yet");
    desk.stop();
    desk.start_server(&serve);
    network.lead_to(desk.server().address());
    network.open();
    assert_eq!(tty.code(), 0, "{}", tty.screen());
    assert_eq!(desk.events("question.answered")[0]["answers"][0]["values"], json!(["26"]));
    drop(ask);
}

#[test]
fn connect_asks_for_the_token_without_showing_it() {
    let desk = Desk::new();
    let mut tty = Tty::start(&desk.machine, (100, 24), &[], &["connect", &desk.server().url()]);
    tty.wait_for("it is not shown");
    tty.press(&format!("typed wrong\x15{}", desk.person));
    tty.press(ENTER);
    assert_eq!(tty.code(), 0, "{}", tty.screen());
    let screen = tty.wait_for("Connected to");
    assert!(
        screen.contains("chips inbox") && !tty.raw().contains("chips_uk_") && !screen.contains("wrong"),
        "{screen}"
    );

    let mut tty = Tty::start(&desk.machine, (100, 24), &[], &["connect", &desk.server().url()]);
    tty.wait_for("it is not shown");
    tty.press(CTRL_C);
    assert_eq!(tty.code(), 130);
}

/// A terminal that is closed while a command waits on it, without a signal that would end it: prints its exit code.
const CLOSED: &str = "
import os, pty, signal, sys
wanted, command = sys.argv[1].encode(), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.execv(command[0], command)
shown = b''
while wanted not in shown:
    shown += os.read(terminal, 4096)
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

#[test]
fn a_terminal_that_is_closed_ends_the_command_and_answers_nothing() {
    let desk = Desk::new();
    let ask = desk.ask(&DAYS);
    let ask_id = desk.open_ask()["ask_id"].as_str().unwrap().to_owned();
    let url = desk.server().url();
    for (shows, arguments) in
        [(" asks", &["answer", &ask_id][..]), ("Ship on", &["inbox"]), ("oken", &["connect", &url])]
    {
        let mut command = Command::new("python3");
        desk.machine.clean(&mut command);
        command.args(["-c", CLOSED, shows, env!("CARGO_BIN_EXE_chips")]).args(arguments);
        command.env("CHIPS_URL", &url).env("CHIPS_USER_TOKEN", &desk.person);
        let (code, out, err) = end(desk.start(command));
        assert_eq!((code, out.as_str()), (Some(0), "129\n"), "{arguments:?}: {err}");
    }
    assert_eq!(desk.open_ask()["state"], "open");
    drop(ask);
}
