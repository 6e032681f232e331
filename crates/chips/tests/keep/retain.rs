//! `chips serve --retain`: the old beginning of a log goes, and everybody is told.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::export::{check, export, exported};
use crate::support::events::chosen;
use crate::support::process::output;
use crate::support::scene::{Scene, ask_path, ms};
use crate::support::stream::Stream;
use crate::support::{Folder, LIMIT, Serve, until};

/// Serves with a wall clock that is this far off (`-40d`).
fn serve(folder: &Folder, listen: &str, off: &str, args: &[&str]) -> Serve {
    let library = ["x86_64-linux-gnu", "aarch64-linux-gnu", ""]
        .iter()
        .map(|arch| PathBuf::from("/usr/lib").join(arch).join("faketime/libfaketimeMT.so.1"))
        .find(|path| path.exists())
        .expect("libfaketime is needed (Debian: apt-get install libfaketime; ./test does it)");
    let mut command: Command = Serve::command(folder, listen);
    command.args(args).env("LD_PRELOAD", library).env("FAKETIME", off).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    command.env("DONT_FAKE_MONOTONIC", "1");
    Serve::spawn(command)
}

/// Waits until the server has dropped events up to this one.
fn dropped(scene: &Scene, up_to: u64) {
    until(LIMIT, "old events to be dropped", || {
        let page = scene.person.get("/v1/events?after=0");
        (page.status == 410 && page.text().contains(&format!("up to {up_to} are not kept"))).then_some(())
    });
}

#[test]
fn what_is_older_goes_up_to_an_open_question_and_the_rest_stays() {
    let folder = Folder::new();
    let old = serve(&folder, "127.0.0.1:0", "-40d", &[]);
    let listen = old.addr.to_string();
    let scene = Scene::of(folder, old);
    let run = scene.harness.open_run();
    let answered = |scene: &Scene| {
        let ask = scene.asked(&scene.harness.plain_ask(&run));
        let answer = scene.person.answer(&ask, &[chosen("fence", &["paint"])]);
        scene.person.send(&answer).expect(201);
        (ask, answer)
    };
    let (first, answer) = answered(&scene);
    let open = scene.asked(&scene.harness.plain_ask(&run));
    let (third, _) = answered(&scene);
    let before = exported(&scene.folder, &[]);
    assert_eq!(before.len(), 5);
    let Scene { serve: old, folder, .. } = scene;
    old.stop();

    let mut now = Serve::command(&folder, &listen);
    now.args(["--retain", "30"]);
    let scene = Scene::of(folder, Serve::spawn(now));
    dropped(&scene, 2);
    let after = exported(&scene.folder, &[]);
    assert_eq!(after, before[2..]);
    check(&scene.folder, &after);
    until(LIMIT, "the ask to go", || (scene.person.get(&ask_path(&first)).status == 404).then_some(()));
    assert_eq!(scene.person.state(&open), "open");
    assert_eq!(scene.person.state(&third), "answered", "it is as old, and behind an open one");
    let (code, out, err) = export(&scene.folder, &["--since", "0"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("events up to 2 are not kept any more"), "{err}");
    assert_eq!(exported(&scene.folder, &["--since", "2"]), after);

    // Readers: a page and a stream from before, and whoever follows.
    scene.person.get("/v1/events?after=1").expect_problem(410, "cursor_gone");
    assert_eq!(scene.person.get("/v1/events").expect(200)["events"].as_array().unwrap().len(), 3);
    let mut stream = Stream::open(scene.serve.addr, &scene.person.token, "?after=2", None);
    assert_eq!(stream.expect().seq(), 3);
    let mut tail = scene.folder.chips();
    tail.args(["tail", "--after", "0"]).env("CHIPS_URL", scene.serve.url()).env("CHIPS_TOKEN", &scene.harness.token);
    let tailed = output(tail);
    let said = String::from_utf8_lossy(&tailed.stderr).into_owned();
    assert_eq!((tailed.status.code(), tailed.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("up to 2 are not kept any more") && said.contains("after=2"), "{said}");
    // A key goes with its event: the answer to a question that is gone is no replay.
    assert_eq!(scene.person.send(&answer).status, 404);

    // Once the question is answered, everything that is old goes. Its answer is young, and so the question stays with it.
    let late = scene.person.send(&scene.person.answer(&open, &[chosen("fence", &["leave"])])).expect(201);
    let last = ms(&late["ts"]);
    let scene = {
        let Scene { serve: server, folder, .. } = scene;
        server.kill();
        let mut command = Serve::command(&folder, &listen);
        command.args(["--retain", "30"]);
        Scene::of(folder, Serve::spawn(command))
    };
    dropped(&scene, 5);
    assert_eq!(exported(&scene.folder, &[]).len(), 1);
    assert_eq!(scene.person.state(&open), "answered");
    assert_eq!(scene.person.ask(&open)["ask"], serde_json::from_str::<Value>(&before[2]).unwrap());
    assert_eq!(scene.harness.head(), 6);
    let next = scene.asked(&scene.harness.plain_ask(&run));
    assert_eq!(next["seq"], json!(7));
    assert!(ms(&next["ts"]) >= last);
}

#[test]
fn how_long_events_are_kept_is_a_key_like_any_other() {
    let folder = Folder::new();
    for wrong in ["0", "1.5", "30d", "36501"] {
        let mut command = Serve::command(&folder, "127.0.0.1:0");
        command.args(["--retain", wrong]);
        let refused = output(command);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{wrong}: {said}");
        assert!(said.contains("a whole number of days"), "{said}");
    }
    for text in ["retain = 90\n", "retain = \"90\"\n"] {
        let file = folder.path().join("chips.toml");
        std::fs::write(&file, text).unwrap();
        let mut command = folder.chips();
        command.args(["config", "--check", "--json", "--config"]).arg(&file);
        let told = output(command);
        let told: Value = serde_json::from_slice(&told.stdout).unwrap();
        assert_eq!(told["ok"], true, "{told}");
        let values = told["values"].as_array().unwrap();
        let retain = values.iter().find(|value| value["key"] == "retain").unwrap();
        assert_eq!((&retain["value"], &retain["from"]), (&json!("90"), &json!("file")), "{told}");
    }
}
