//! The examples of `chips-client` do what they say, as whole programs against a real server.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::events::ask_with;
use support::process::{Process, text};
use support::scene::Scene;
use support::{LIMIT, question, until};

/// An example as it was built beside this test.
fn example(scene: &Scene, name: &str) -> Command {
    let built = std::env::current_exe().unwrap();
    let beside: PathBuf = built.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(
        beside.is_file(),
        "{} is not built: `cargo build --workspace --all-targets` builds the examples, and so does ./test",
        beside.display()
    );
    let mut command = Command::new(beside);
    support::process::clean(&mut command, scene.folder.path());
    command.current_dir(scene.folder.path());
    command.env("CHIPS_URL", scene.serve.url()).env("CHIPS_TOKEN", &scene.harness.token);
    command
}

/// The only open ask, once there is one.
fn open_ask(scene: &Scene) -> Value {
    until(LIMIT, "an open ask", || {
        let page = scene.person.get("/v1/asks?state=open").expect(200);
        page["asks"].get(0).cloned()
    })
}

fn answer(scene: &Scene, ask: &Value, value: &str) {
    let answers = [json!({ "question_id": "question", "values": [value] })];
    scene.person.send(&scene.person.answer(&ask["ask"], &answers)).expect(201);
}

fn finished(process: Process) -> String {
    let output = process.finish(LIMIT);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out
}

#[test]
fn ask_tells_who_chose_what_and_acknowledges_it() {
    let scene = Scene::new();
    std::fs::create_dir(scene.folder.path().join(".git")).unwrap();
    std::fs::write(scene.folder.path().join(".git/HEAD"), "ref: refs/heads/restock\n").unwrap();
    let process = Process::spawn(example(&scene, "ask"));
    let ask = open_ask(&scene);
    let run = scene.harness.get(&format!("/v1/runs/{}", text(&ask, "/ask/run_id"))).expect(200);
    assert_eq!(run["title"], "Restock, week 38");
    assert_eq!(run["labels"]["branch"], "restock");
    let folder = scene.folder.path().canonicalize().unwrap();
    assert_eq!(Path::new(run["labels"]["folder"].as_str().unwrap()).canonicalize().unwrap(), folder);

    answer(&scene, &ask, "26");
    let who = text(&scene.person.get("/v1/me").expect(200), "/participant/name");
    assert_eq!(finished(process), format!("{who} chose 26\n"));
    let closed = scene.harness.ask(&ask);
    assert_ne!(closed["acknowledged_at"], Value::Null);
    let run = scene.harness.get(&format!("/v1/runs/{}", text(&ask, "/ask/run_id"))).expect(200);
    assert_eq!(run["state"], "ended");
}

#[test]
fn ask_goes_on_where_its_run_was_ended_by_somebody_else() {
    let scene = Scene::new();
    let process = Process::spawn(example(&scene, "ask"));
    let run = text(&open_ask(&scene), "/ask/run_id");
    scene.harness.post_empty(&format!("/v1/runs/{run}/end")).expect(200);
    assert_eq!(finished(process), "withdrawn\n");
}

#[test]
fn resume_takes_up_the_same_ask_after_a_kill() {
    let scene = Scene::new();
    let start = || {
        let mut command = example(&scene, "resume");
        command.arg("state.txt");
        Process::spawn(command)
    };
    let mut killed = start();
    killed.says("that it asked", |line| line.strip_prefix("asked ").map(str::to_owned));
    let ask = open_ask(&scene);
    drop(killed);

    let mut again = start();
    let id = again.says("what it takes up", |line| line.strip_prefix("taking up ").map(str::to_owned));
    assert_eq!(id, text(&ask, "/ask_id"));
    answer(&scene, &ask, "keep");
    assert_eq!(finished(again), "answered: Some([\"keep\"])\n");
    assert_eq!(scene.harness.events("&type=question.ask").len(), 1, "nobody was asked twice");
    assert!(!scene.folder.path().join("state.txt").exists(), "the next start is another piece of work");
}

#[test]
fn stream_goes_on_after_the_last_answer_that_it_dealt_with() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let ask = || scene.asked(&scene.harness.event(&run, ask_with(&[question("fence")])));
    let answer = |ask: &Value| {
        let value = ask["questions"][0]["options"][0]["value"].clone();
        let answers = [json!({ "question_id": "fence", "values": [value] })];
        scene.person.send(&scene.person.answer(ask, &answers)).expect(201);
    };
    let start = || {
        let mut command = example(&scene, "stream");
        command.args([run.as_str(), "place.txt"]);
        Process::spawn(command)
    };
    let dealt_with = |process: &mut Process, ask: &Value| {
        let id = text(ask, "/ask_id");
        process.says("the answer", |line| line.starts_with(&format!("{id} closed")).then_some(()));
        until(LIMIT, "the place", || {
            let answered = scene.harness.events(&format!("&type=question.answered&ask_id={id}"));
            let place = std::fs::read_to_string(scene.folder.path().join("place.txt")).unwrap_or_default();
            place.starts_with(&format!("{} ", answered.first()?["seq"])).then_some(())
        });
    };

    let asks = [ask(), ask(), ask()];
    let mut first = start();
    answer(&asks[0]);
    dealt_with(&mut first, &asks[0]);
    drop(first);
    answer(&asks[1]);
    let mut second = start();
    dealt_with(&mut second, &asks[1]);
    answer(&asks[2]);
    dealt_with(&mut second, &asks[2]);
    assert_eq!(second.stdout().lines().count(), 2, "what was dealt with before does not come again");
    assert_ne!(scene.harness.ask(&asks[2])["acknowledged_at"], Value::Null);
}

#[test]
fn settle_or_withdraw_closes_from_whichever_side_is_first() {
    for (typed, state, said) in [
        (Some("yes\n"), "settled", "answered here: [\"yes\"]\n"),
        (Some("\n"), "withdrawn", "withdrawn here\n"),
        (None, "answered", "answered in Chips: [\"no\"]\n"),
    ] {
        let scene = Scene::new();
        let (input, mut terminal) = terminal();
        let mut command = example(&scene, "settle_or_withdraw");
        let process = Process::spawn({
            command.stdin(input);
            command
        });
        let ask = open_ask(&scene);
        match typed {
            Some(line) => terminal.write_all(line.as_bytes()).unwrap(),
            None => answer(&scene, &ask, "no"),
        }
        assert_eq!(finished(process), said);
        assert_eq!(scene.harness.state(&ask), state);
    }
}

/// A standard input, and what writes to it.
fn terminal() -> (Stdio, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    (Stdio::from(reader), writer)
}
