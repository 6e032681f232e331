//! `chips serve --simulate`: every branch of a harness, tried in seconds against the real binary.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod support;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use chips_client::protocol::api::{Ask, AskState, NewRun};
use chips_client::protocol::{Answer, EventType, OnNoAnswer, Question, QuestionOption, RunId};
use chips_client::{AskSpec, Client, LinkChange, StreamQuery};
use serde_json::{Value, json};
use support::process::{Process, chips, output};
use support::{LIMIT, Request, Serve};
use tempfile::TempDir;

/// A simulation that runs, and what a harness is told of it.
struct Simulated {
    process: Process,
    addr: SocketAddr,
    token: String,
    home: TempDir,
}

/// The command that plays this script.
fn command(home: &Path, script: &str) -> Command {
    std::fs::write(home.join("script.toml"), script).unwrap();
    let scratch = home.join("scratch");
    std::fs::create_dir_all(&scratch).unwrap();
    let mut command = chips(home);
    command.args(["serve", "--simulate", "script.toml"]).current_dir(home).env("TMPDIR", scratch);
    command
}

fn simulate(script: &str) -> Simulated {
    let home = tempfile::tempdir().unwrap();
    let Serve { process, addr } = Serve::spawn(command(home.path(), script));
    let told = process.stdout();
    let line = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{told}"));
    assert_eq!(line("CHIPS_URL="), format!("http://{addr}"));
    let token = line("CHIPS_TOKEN=").to_owned();
    Simulated { process, addr, token, home }
}

impl Simulated {
    fn client(&self) -> Client {
        Client::new(&format!("http://{}", self.addr), &self.token).unwrap()
    }

    /// What `GET /simulate` says.
    fn report(&self) -> Value {
        Request::get("/simulate").send(self.addr).expect(200)
    }

    fn advance(&self, body: &str) -> support::Response {
        Request::post_json("/simulate/clock", body.to_owned()).send(self.addr)
    }

    /// Everything in the script has happened: it says so itself, by its exit code too, and leaves nothing behind.
    #[track_caller]
    fn done(mut self) {
        let report = self.report();
        assert_eq!(report["done"], true, "{report}\n{}", self.process.stderr());
        self.process.signal(rustix::process::Signal::TERM);
        let status = self.process.wait(LIMIT);
        assert!(status.success(), "{status}\n{}", self.process.stderr());
        let left: Vec<_> = std::fs::read_dir(self.home.path().join("scratch")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Runs a harness to its end, within the limit.
fn harness<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LIMIT, work).await.expect("the harness ends in time") })
}

async fn run(client: &Client) -> RunId {
    client.open_run(NewRun { title: Some("Restock".into()), ..NewRun::default() }).await.unwrap().run_id
}

fn ship(run_id: RunId) -> AskSpec {
    AskSpec::one(run_id, "Ship on the 19th or the 26th?", [("19", "19 September"), ("26", "26 September")])
        .default_value("19")
        .timeout_seconds(3_600)
}

/// Asks the question about shipping, and gives the ask once it is closed.
async fn asked(client: &Client, spec: AskSpec) -> Ask {
    let ask_id = client.ask(spec).await.unwrap().ask_id();
    client.wait(ask_id).await.unwrap()
}

fn answers(ask: &Ask) -> Vec<Answer> {
    ask.answer.as_ref().unwrap().as_answered().unwrap().answers.clone()
}

fn values(ask: &Ask) -> Vec<Vec<String>> {
    answers(ask).into_iter().map(|answer| answer.values).collect()
}

/// A script with one step for whatever comes first.
fn step(acts: &str) -> String {
    format!("[[step]]\ndo = {acts}\n")
}

#[test]
fn an_hour_without_an_answer_passes_at_once() {
    let simulated = simulate(&step("\"ignore\""));
    let ask = harness(async {
        let client = simulated.client();
        asked(&client, ship(run(&client).await)).await
    });
    assert_eq!((ask.state, values(&ask)), (AskState::TimedOut, vec![vec!["19".to_owned()]]));
    let event = ask.answer.unwrap();
    let took = event.envelope.ts.ms() - ask.ask.envelope.ts.ms();
    assert!(took >= 3_600_000, "the log says that an hour has passed: {took} ms");
    simulated.done();
}

#[test]
fn a_person_of_the_script_answers_by_value_by_place_by_question_and_in_words() {
    let question = |id: &str, multi, text| Question {
        question_id: id.into(),
        prompt: format!("{id}?"),
        options: ["a", "b"].map(|v| QuestionOption { value: v.into(), label: v.into(), description: None }).into(),
        multi_select: Some(multi),
        allow_free_text: Some(text),
        default_value: None,
    };
    let simulated = simulate(
        r#"
[[step]]
prompt = "Ship"
title = "Restock"
do = { answer = "26", by = "Ada" }

[[step]]
question_id = "second"
do = { answer = { first = 2, second = ["a", "b"], third = { text = "Neither" } }, after = "10m" }

[[step]]
do = { answer = [], text = "Later" }
"#,
    );
    let (shipped, three, words) = harness(async {
        let client = simulated.client();
        let run_id = run(&client).await;
        let questions =
            vec![question("first", false, false), question("second", true, false), question("third", false, true)];
        // Not in the order of the script: each step takes the ask that it is for.
        let three = asked(&client, AskSpec::new(run_id, questions).timeout_seconds(3_600)).await;
        let shipped = asked(&client, ship(run_id)).await;
        let words = asked(&client, AskSpec::new(run_id, vec![question("third", false, true)])).await;
        (shipped, three, words)
    });
    assert_eq!((shipped.state, values(&shipped)), (AskState::Answered, vec![vec!["26".to_owned()]]));
    assert_eq!(shipped.answerer.unwrap().name, "Ada (script)", "nobody takes it for a person's answer");
    let values = values(&three);
    assert_eq!(values, [vec!["b".to_owned()], vec!["a".to_owned(), "b".to_owned()], vec![]]);
    assert_eq!(answers(&three)[2].free_text.as_deref(), Some("Neither"));
    assert_eq!(three.answerer.unwrap().name, "Script");
    let took = three.answer.unwrap().envelope.ts.ms() - three.ask.envelope.ts.ms();
    assert!((600_000..3_600_000).contains(&took), "ten minutes by Chips' clock: {took} ms");
    assert_eq!(answers(&words)[0].free_text.as_deref(), Some("Later"));
    simulated.done();
}

#[test]
fn a_late_answer_is_kept_beside_the_ask_and_decides_nothing() {
    let simulated = simulate(&step("{ answer_late = \"26\", by = \"Ada\" }"));
    harness(async {
        let client = simulated.client();
        let spec = ship(run(&client).await).on_no_answer(OnNoAnswer::Cancel);
        let ask = asked(&client, spec).await;
        assert_eq!((ask.state, values(&ask)), (AskState::TimedOut, vec![]));
        // The harness is told of the time-out before the person's answer comes: it is there once the step was played.
        simulated.report();
        let ask = client.ask_state(ask.ask_id).await.unwrap();
        assert_eq!(ask.state, AskState::TimedOut);
        assert_eq!(ask.late_answers.len(), 1);
        assert_eq!(ask.late_answers[0].answers[0].values, ["26"]);
    });
    simulated.done();
}

#[test]
fn the_harness_may_close_its_ask_from_somewhere_else() {
    let simulated =
        simulate(&[step("\"withdraw\""), step("{ settle = 2, after = \"1m\" }"), step("\"end_run\"")].concat());
    harness(async {
        let client = simulated.client();
        let run_id = run(&client).await;
        let mut states = Vec::new();
        for _ in 0..3 {
            states.push(asked(&client, ship(run_id)).await.state);
        }
        assert_eq!(states, [AskState::Withdrawn, AskState::Settled, AskState::Withdrawn]);
        assert!(client.ask(ship(run_id)).await.is_err(), "the run has ended");
    });
    simulated.done();
}

#[test]
fn a_wait_and_a_stream_that_are_cut_are_taken_up_again() {
    let simulated = simulate(&step("[{ cut = 2 }, { answer = 1 }]").repeat(2));
    harness(async {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let client = Client::builder(&format!("http://{}", simulated.addr), &simulated.token)
            .on_link({
                let heard = heard.clone();
                move |change| heard.lock().unwrap().push(matches!(change, LinkChange::Lost { .. }))
            })
            .build()
            .unwrap();
        let run_id = run(&client).await;
        let ask = asked(&client, ship(run_id)).await;
        assert_eq!(ask.state, AskState::Answered);
        assert_eq!(*heard.lock().unwrap(), [true, false], "lost, and back");

        let asked = client.ask(ship(run_id)).await.unwrap();
        let query =
            StreamQuery::default().after(asked.event.envelope.seq.unwrap()).event_type(EventType::QuestionAnswered);
        let mut stream = client.stream(query);
        let answer = stream.next().await.unwrap().event().unwrap();
        assert_eq!(answer.content.ask_id(), asked.ask_id());
        assert_eq!(*heard.lock().unwrap(), [true, false, true, false]);
    });
    simulated.done();
}

#[test]
fn a_server_that_restarts_has_the_same_log_on_the_same_port() {
    let simulated = simulate(&[step("[{ restart = \"300ms\" }, { answer = 1 }]"), step("{ answer = 2 }")].concat());
    harness(async {
        let client = simulated.client();
        let run_id = run(&client).await;
        let (first, second) = (asked(&client, ship(run_id)).await, asked(&client, ship(run_id)).await);
        assert_eq!((values(&first), values(&second)), (vec![vec!["19".to_owned()]], vec![vec!["26".to_owned()]]));
        assert_eq!(second.answer.unwrap().envelope.seq, Some(4));
    });
    simulated.done();
}

#[test]
fn a_write_whose_reply_is_lost_is_there_when_it_is_sent_again() {
    let script = "start = { lose_replies = 1 }\n[[step]]\ntimes = 2\ndo = [{ lose_replies = 1 }, { answer = 1 }]\n";
    let simulated = simulate(script);
    harness(async {
        let client = simulated.client();
        // The first write: the run is there, and is the same one.
        let run_id = run(&client).await;
        let first = client.ask(ship(run_id)).await.unwrap();
        assert_eq!(client.wait(first.ask_id()).await.unwrap().state, AskState::Answered);
        let second = client.ask(ship(run_id)).await.unwrap();
        assert_eq!((first.replayed, second.replayed), (false, true), "it was stored the first time");
        assert_eq!(client.me().await.unwrap().budget.unwrap().hour, 2, "nobody was asked twice");
    });
    simulated.done();
}

#[test]
fn writes_are_refused_for_a_while() {
    let simulated = simulate("start = { unavailable = 2 }\notherwise = \"leave\"\n");
    let open = || Request::post_json("/v1/runs", "{}").bearer(&simulated.token).send(simulated.addr);
    for _ in 0..2 {
        let refused = open();
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    }
    open().expect(201);
    simulated.done();
}

#[test]
fn a_test_moves_the_clock_itself() {
    let simulated = simulate("otherwise = \"leave\"\n");
    harness(async {
        let client = simulated.client();
        let asked = client.ask(ship(run(&client).await)).await.unwrap();
        let ask = client.ask_state(asked.ask_id()).await.unwrap();
        assert_eq!(ask.state, AskState::Open);

        let moved = simulated.advance(r#"{"advance_seconds": 3599}"#).expect(200);
        assert_eq!(moved["ahead_seconds"], 3599.0);
        assert_eq!(client.ask_state(ask.ask_id).await.unwrap().state, AskState::Open);
        let left = client.time_left(ask.deadline.unwrap()).as_secs();
        assert!(left < 60, "the `Date` of the replies moves too: {left} s left");

        simulated.advance(r#"{"advance_seconds": 1.5}"#).expect(200);
        let closed = client.ask_state(ask.ask_id).await.unwrap();
        assert_eq!(closed.state, AskState::TimedOut, "what was due has happened when the reply comes");
    });
    for wrong in ["{}", "[]", r#"{"advance_seconds": 0}"#, r#"{"advance_seconds": -1}"#, r#"{"advance_seconds": 1e9}"#]
    {
        let refused = simulated.advance(wrong);
        assert_eq!(refused.status, 422, "{wrong}");
        assert!(refused.text().contains("advance_seconds"), "{}", refused.text());
    }
    let report = simulated.report();
    assert_eq!((&report["otherwise"], &report["ahead_seconds"]), (&json!(1), &json!(3600.5)));
    simulated.done();
}

#[test]
fn what_did_not_happen_is_told_and_fails_the_run() {
    let simulated = simulate(&[step("{ answer = \"27\" }"), step("\"ignore\"").repeat(2)].concat());
    harness(async {
        let client = simulated.client();
        let run_id = run(&client).await;
        client.ask(ship(run_id)).await.unwrap();
        let endless = AskSpec::one(run_id, "Ship?", [("y", "Yes"), ("n", "No")]);
        client.ask(endless).await.unwrap();
    });
    let mut simulated = simulated;
    simulated.process.says("the second failure", |line| line.contains("no time-out that could pass").then_some(()));
    let report = simulated.report();
    assert_eq!(report["done"], false);
    let failed = report["failed"][0].as_str().unwrap();
    assert!(
        failed.starts_with("step 1 (line 1), line 2: no question has the option `27`; `question` has `19`, `26`"),
        "{failed}"
    );
    assert_eq!(report["steps"][2], json!({ "line": 5, "played": 0, "left": 1 }));
    assert_eq!(report["missing"].as_array().unwrap().len(), 3, "{report}");
    simulated.process.signal(rustix::process::Signal::TERM);
    assert_eq!(simulated.process.wait(LIMIT).code(), Some(1));
    assert!(simulated.process.stderr().contains("MISSING: step 3 (line 5) was not played"));
}

#[test]
fn a_command_runs_inside_and_gives_its_exit_code() {
    let home = tempfile::tempdir().unwrap();
    let ended = |script: &str, more: &[&str]| {
        let mut command = command(home.path(), script);
        command.args(["--", env!("CARGO_BIN_EXE_chips"), "ask", "Ship?", "-o", "y=Yes", "-o", "n=No"]).args(more);
        let output = output(command);
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, out, err) = ended(&step("{ answer = \"n\" }"), &[]);
    assert_eq!((code, out.as_str()), (Some(0), "n\n"), "{err}");
    assert!(err.contains("NOTHING HERE IS REAL"), "{err}");
    let (code, out, err) = ended(&step("\"ignore\""), &["--timeout", "1h"]);
    assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
    let (code, _, err) = ended(&step("{ answer = \"n\" }").repeat(2), &[]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("MISSING: step 2 (line 3) was not played"), "{err}");
    let (code, _, err) = ended(&step("{ answer = \"n\", text = \"soon\" }"), &["--timeout", "1s"]);
    assert!(code == Some(3) && err.contains("no question takes free text"), "{code:?}: {err}");
    let start = "start = [{ lose_replies = 5 }, { unavailable = 1 }]\n";
    let mut nothing = command(home.path(), &format!("{start}otherwise = \"leave\""));
    nothing.args(["--", "true"]);
    let nothing = output(nothing);
    let err = String::from_utf8(nothing.stderr).unwrap();
    assert_eq!(nothing.status.code(), Some(1), "{err}");
    assert!(err.contains("5 more writes never came") && err.contains("1 more never came"), "{err}");
    let mut empty = command(home.path(), "");
    empty.arg("--");
    let empty = output(empty);
    assert_eq!(empty.status.code(), Some(2), "{}", String::from_utf8_lossy(&empty.stderr));
    let left: Vec<_> = std::fs::read_dir(home.path().join("scratch")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_command_that_was_stopped_is_no_success() {
    let home = tempfile::tempdir().unwrap();
    let mut command = command(home.path(), "start = { advance = \"1s\" }\notherwise = \"leave\"");
    command.args(["--", "sleep", "600"]);
    let mut process = Process::spawn(command);
    process.says("the beginning", |line| line.contains("moved the clock").then_some(()));
    process.signal(rustix::process::Signal::TERM);
    assert_eq!(process.wait(LIMIT).code(), Some(130));
}

#[test]
fn it_begins_with_a_script_that_can_be_played_and_nothing_that_is_real() {
    let home = tempfile::tempdir().unwrap();
    let refused = |script: &str, more: &[&str], code: i32, parts: &[&str]| {
        let mut command = command(home.path(), script);
        command.args(more);
        let output = output(command);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "{part} is not in {said}"));
    };
    let wrong = "otherwise = \"ignor\"\n\n[[step]]\npromt = \"x\"\ndo = \"leave\"\n";
    refused(wrong, &[], 1, &["script.toml:1: `ignor` is no act; did you mean `ignore`?", "script.toml:4: `promt`"]);
    let good = &step("\"leave\"");
    refused(good, &["--data", "."], 1, &["leave --data out"]);
    refused(good, &["--listen", "0.0.0.0:0"], 1, &["loopback alone"]);
    refused(good, &["--public-url", "https://chips.example.com"], 1, &["leave --public-url out"]);
    refused(good, &["--demo"], 2, &["--demo"]);
    let mut missing = chips(home.path());
    missing.args(["serve", "--simulate", "nowhere.toml"]).current_dir(home.path());
    assert!(String::from_utf8(output(missing).stderr).unwrap().contains("can't read nowhere.toml"));
}

#[test]
fn a_server_that_people_answer_on_has_none_of_it() {
    let folder = support::Folder::new();
    let serve = Serve::start(&folder);
    for request in [Request::get("/simulate"), Request::post_json("/simulate/clock", r#"{"advance_seconds": 1}"#)] {
        let reply = request.send(serve.addr);
        assert_eq!((reply.status, reply.header("chips-simulation")), (404, None));
    }
    let simulated = simulate("otherwise = \"leave\"\n");
    let reply = Request::get("/healthz").send(simulated.addr);
    assert_eq!(reply.header("chips-simulation"), Some("true"));
}
