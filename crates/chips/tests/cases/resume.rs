//! `chips ask` through restarts and cut networks: M34.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::events::chosen;
use crate::support::process::Process;
use crate::support::proxy::Proxy;
use crate::support::scene::{Api, Scene};
use crate::support::wait::pass;
use crate::support::{Folder, LIMIT, Serve, new_id, until};

fn chips_ask(scene: &Scene, url: &str, more: &[&str]) -> Command {
    let mut command = scene.folder.chips();
    command
        .env("CHIPS_URL", url)
        .env("CHIPS_TOKEN", &scene.harness.token)
        .args(["ask", "Which colour for the gate?", "-o", "green=Green", "-o", "grey=Grey, like the house"])
        .args(more);
    command
}

/// The only ask of the workspace, once it is there.
fn only_ask(person: &Api) -> Value {
    let asks = until(LIMIT, "the ask", || {
        let page = person.get("/v1/asks").expect(200);
        page["asks"].as_array().filter(|asks| !asks.is_empty()).cloned()
    });
    assert_eq!(asks.len(), 1);
    asks[0]["ask"].clone()
}

/// Checks that the command printed the answer and that there was one ask in all of it.
fn printed(process: Process, scene: &Scene) {
    let output = process.finish(LIMIT * 2);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{err}", output.status);
    assert_eq!(out, "grey\n", "{err}");
    let kinds: Vec<_> = scene.person.log().iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["question.ask", "question.answered"]);
}

#[test]
fn m34_chips_ask_prints_the_answer_over_a_restart_of_the_server() {
    for end in [Serve::stop as fn(Serve), Serve::kill] {
        let scene = Scene::new();
        let process = Process::spawn(chips_ask(&scene, &scene.serve.url(), &[]));
        let ask = only_ask(&scene.person);
        let scene = scene.restart(end);
        scene.person.send(&scene.person.answer(&ask, &[chosen(question_id(&ask), &["grey"])])).expect(201);
        printed(process, &scene);
    }
}

#[test]
fn m34_chips_ask_prints_the_answer_over_a_network_cut_of_twenty_seconds() {
    let proxy = Proxy::new();
    let folder = Folder::new();
    let mut serve = Serve::command(&folder, "127.0.0.1:0");
    serve.args(["--public-url", &proxy.url()]);
    let scene = Scene::of(folder, Serve::spawn(serve));
    proxy.lead_to(scene.serve.addr);
    let process = Process::spawn(chips_ask(&scene, &proxy.url(), &[]));
    let ask = only_ask(&scene.person);

    proxy.cut();
    scene.person.send(&scene.person.answer(&ask, &[chosen(question_id(&ask), &["grey"])])).expect(201);
    pass(Duration::from_secs(20));
    assert_eq!(process.stdout(), "", "nothing comes through");
    proxy.mend();
    printed(process, &scene);
}

#[test]
fn m34_chips_ask_killed_and_started_again_takes_up_the_same_ask() {
    let scene = Scene::new();
    let ask_id = new_id("qst");
    let first = Process::spawn(chips_ask(&scene, &scene.serve.url(), &["--ask-id", &ask_id]));
    let ask = only_ask(&scene.person);
    assert_eq!(ask["ask_id"], ask_id);
    drop(first);
    let second = Process::spawn(chips_ask(&scene, &scene.serve.url(), &["--ask-id", &ask_id]));
    scene.person.send(&scene.person.answer(&ask, &[chosen(question_id(&ask), &["grey"])])).expect(201);
    printed(second, &scene);
}

fn question_id(ask: &Value) -> &str {
    ask["questions"][0]["question_id"].as_str().unwrap()
}
