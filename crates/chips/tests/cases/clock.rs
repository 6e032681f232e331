//! Deadlines and the clock they are judged by: M09 to M11.

use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::events::chosen;
use crate::support::scene::{Api, Scene, ms};
use crate::support::{Folder, LIMIT, Serve, ask_with, question, until};

/// An ask that takes `leave` where nobody answers within this time.
fn asks_for(harness: &Api, run: &str, seconds: f64) -> Value {
    let mut question = question("fence");
    question["default_value"] = json!("leave");
    let mut ask = harness.event(run, ask_with(&[question]));
    ask["timeout_seconds"] = json!(seconds);
    ask["on_no_answer"] = json!("use_default");
    ask
}

/// Checks that the time-out closed this ask with its default, and says how late (in milliseconds).
#[track_caller]
fn lateness(stored: &Value, closed: &Value) -> i64 {
    assert_eq!(closed["state"], "timed_out", "{closed}");
    let answer = &closed["answer"];
    assert_eq!(answer["actor"], json!({"kind": "system", "id": "system"}));
    assert_eq!(answer["answered_by"], "system");
    assert_eq!(answer["timed_out"], true);
    assert_eq!(answer["answers"], json!([chosen("fence", &["leave"])]));
    assert!(answer.get("idempotency_key").is_none());
    let timeout = stored["timeout_seconds"].as_f64().unwrap() * 1000.0;
    let deadline = ms(&stored["ts"]) + timeout.ceil() as i64;
    assert_eq!(ms(&closed["deadline"]), deadline);
    let late = ms(&answer["answered_at"]) - deadline;
    assert!(late >= 0, "closed {late} ms after the deadline");
    assert!(ms(&answer["ts"]) >= deadline);
    late
}

fn wall_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// The log's order and its times agree.
fn assert_ts_never_goes_back(log: &[Value]) {
    let stamps: Vec<_> = log.iter().map(|event| ms(&event["ts"])).collect();
    assert!(stamps.is_sorted(), "{stamps:?}");
}

#[test]
fn m09_nobody_answers_in_two_seconds_and_the_default_is_taken_once() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let asks: Vec<_> = (0..8).map(|_| scene.asked(&asks_for(&scene.harness, &run, 2.0))).collect();
    let late: Vec<_> = asks.iter().map(|ask| lateness(ask, &scene.person.closed(ask))).collect();
    // A busy machine may hold one up; that it is not slow by itself shows in the best of eight.
    assert!(late.iter().any(|late| *late <= 500), "milliseconds late: {late:?}");
    println!("milliseconds after the deadline: {late:?}");
    assert_eq!(scene.harness.head(), 16);
    assert_ts_never_goes_back(&scene.harness.log());
}

#[test]
fn m10_a_deadline_that_passes_while_the_server_is_down_is_closed_at_the_start() {
    let ends: [fn(Serve); 2] = [Serve::stop, Serve::kill];
    for end in ends {
        let scene = Scene::new();
        let run = scene.harness.open_run();
        let ask = scene.asked(&asks_for(&scene.harness, &run, 1.0));
        let waits = scene.asked(&asks_for(&scene.harness, &run, 3600.0));
        let deadline = ms(&ask["ts"]) + 1000;

        let scene = scene.restart(|serve| {
            end(serve);
            until(LIMIT, "the deadline to pass", || (wall_ms() > deadline + 200).then_some(()));
        });
        // An answer finds it closed, whether the worker was there first or the answer itself closed it.
        let answer = scene.person.answer(&ask, &[chosen("fence", &["paint"])]);
        let problem = scene.person.send(&answer).expect_problem(409, "already_closed");
        let closed = scene.person.closed(&ask);
        lateness(&ask, &closed);
        assert_eq!(problem["answer"], closed["answer"]);
        assert_eq!(closed["late_answers"][0]["by"], json!(scene.person.id));
        assert_eq!(scene.person.state(&waits), "open");
        assert_eq!(scene.harness.head(), 3);
    }
}

/// A wall clock that is set by hand while the monotonic clock runs on: libfaketime with a file.
pub struct WallClock {
    folder: tempfile::TempDir,
}

impl WallClock {
    pub fn new() -> Self {
        let clock = Self { folder: tempfile::tempdir().unwrap() };
        clock.jump("+0");
        clock
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("offset")
    }

    /// Sets the clock this far from the right time (`-2h`).
    pub fn jump(&self, offset: &str) {
        let new = self.folder.path().join("new");
        std::fs::write(&new, format!("{offset}\n")).unwrap();
        std::fs::rename(new, self.file()).unwrap();
    }

    pub fn govern(&self, command: &mut Command) {
        let library = ["x86_64-linux-gnu", "aarch64-linux-gnu", ""]
            .iter()
            .map(|arch| PathBuf::from("/usr/lib").join(arch).join("faketime/libfaketimeMT.so.1"))
            .find(|path| path.exists())
            .expect("libfaketime is needed (Debian: apt-get install libfaketime; ./test does it)");
        command
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", self.file())
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
    }

    /// Hours that a process under this clock is off by.
    fn hours_off(&self) -> i64 {
        let mut date = Command::new("date");
        date.arg("+%s%3N");
        self.govern(&mut date);
        let shown = String::from_utf8(date.output().unwrap().stdout).unwrap();
        let off = shown.trim().parse::<i64>().unwrap() - wall_ms();
        (off as f64 / 3_600_000.0).round() as i64
    }

    fn serve(&self, folder: &Folder, listen: &str) -> Serve {
        let mut command = Serve::command(folder, listen);
        self.govern(&mut command);
        Serve::spawn(command)
    }
}

#[test]
fn m11_a_wall_clock_that_jumps_two_hours_back_and_on_moves_no_deadline() {
    let clock = WallClock::new();
    let folder = Folder::new();
    let serve = clock.serve(&folder, "127.0.0.1:0");
    let scene = Scene::of(folder, serve);
    let run = scene.harness.open_run();

    let ask = scene.asked(&asks_for(&scene.harness, &run, 6.0));
    let long = scene.asked(&asks_for(&scene.harness, &run, 5400.0));
    clock.jump("-2h");
    assert_eq!(clock.hours_off(), -2);
    let in_the_past = scene.asked(&asks_for(&scene.harness, &run, 5400.0));
    clock.jump("+2h");
    assert_eq!(clock.hours_off(), 2);
    let in_the_future = scene.asked(&asks_for(&scene.harness, &run, 5400.0));
    assert_eq!(scene.harness.state(&ask), "open", "two hours on, it is not two hours later");

    let closed = scene.person.closed(&ask);
    lateness(&ask, &closed);
    let took = ms(&closed["answer"]["ts"]) - ms(&ask["ts"]);
    assert!((6000..600_000).contains(&took), "closed {took} ms after it opened");
    for ask in [&long, &in_the_past, &in_the_future] {
        assert_eq!(scene.harness.state(ask), "open");
    }
    assert_ts_never_goes_back(&scene.harness.log());

    // A start takes the wall clock up where it is ahead of the log, and the log where the wall clock is behind.
    let listen = scene.serve.addr.to_string();
    let Scene { serve, folder, person, harness } = scene;
    serve.stop();
    let serve = clock.serve(&folder, &listen);
    assert_eq!(person.closed(&long)["state"], "timed_out", "the operator set the clock two hours on, and it counts");
    let last = ms(&harness.log().last().unwrap()["ts"]);
    serve.stop();
    clock.jump("-2h");
    let _serve = clock.serve(&folder, &listen);
    let later = harness.send(&asks_for(&harness, &run, 60.0)).expect(201);
    assert!(ms(&later["ts"]) >= last);
    assert_ts_never_goes_back(&harness.log());
}

#[test]
fn silence_is_written_down_as_the_harness_said_it_would_act() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let ask = |on_no_answer: Option<&str>, default: Option<&str>| {
        let (mut first, second) = (question("fence"), question("gate"));
        if let Some(default) = default {
            first["default_value"] = json!(default);
            first["allow_free_text"] = json!(true);
        }
        let mut ask = scene.harness.event(&run, ask_with(&[first, second]));
        ask["timeout_seconds"] = json!(0.5);
        if let Some(word) = on_no_answer {
            ask["on_no_answer"] = json!(word);
        }
        scene.asked(&ask)
    };
    let paint = json!([chosen("fence", &["paint"])]);
    let own_words = json!([{"question_id": "fence", "values": [], "free_text": "whatever is cheaper"}]);
    let cases = [
        (ask(None, None), json!([])),
        (ask(None, Some("paint")), paint.clone()),
        (ask(Some("use_default"), Some("paint")), paint),
        (ask(Some("use_default"), Some("whatever is cheaper")), own_words),
        (ask(Some("cancel"), Some("paint")), json!([])),
        (ask(Some("continue"), Some("paint")), json!([])),
    ];
    for (ask, taken) in cases {
        let closed = scene.harness.closed(&ask);
        assert_eq!(closed["state"], "timed_out");
        assert_eq!(closed["answer"]["answers"], taken, "{ask}");
        assert_eq!(closed["answer"]["timed_out"], true);
    }
}

#[test]
fn an_ask_without_a_time_out_waits() {
    let scene = Scene::new();
    let ask = scene.open_ask();
    let now = scene.harness.get(&format!("{}?wait=1", crate::support::scene::ask_path(&ask))).expect(200);
    assert_eq!(now["state"], "open");
    assert_eq!(now["deadline"], Value::Null);
    let scene = scene.restart(Serve::stop);
    assert_eq!(scene.harness.state(&ask), "open");
    assert_eq!(scene.harness.head(), 1);
}

#[test]
fn a_wait_of_zero_or_none_answers_at_once_and_a_wait_that_makes_no_sense_is_refused() {
    let scene = Scene::new();
    let ask = scene.open_ask();
    let path = crate::support::scene::ask_path(&ask);
    assert_eq!(scene.harness.get(&format!("{path}?wait=0")).expect(200)["state"], "open");
    for wait in ["301", "-1", "1.5", "x", "", "1e2", "+5"] {
        scene.harness.get(&format!("{path}?wait={wait}")).expect_problem(400, "bad_query");
    }
}
