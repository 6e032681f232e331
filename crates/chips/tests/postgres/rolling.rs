//! A version comes after another, on servers that go on serving meanwhile.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::home::Home;
use crate::support::events::chosen;
use crate::support::process::{Process, output};
use crate::support::scene::{Api, ask_path, seq};
use crate::support::stream::Stream;
use crate::support::{Conn, LIMIT, Request, Serve, until};
use crate::team::{Ended, Line, Team, Told, command, follow};

/// What a version may bring while the one before it goes on: a column on each of the busiest tables, a table, an index, a check that
/// allows more.
const STEP: &str = "
    ALTER TABLE events ADD COLUMN weight BIGINT NOT NULL DEFAULT 1;
    ALTER TABLE asks ADD COLUMN note TEXT NOT NULL DEFAULT 'none';
    ALTER TABLE workspaces ADD COLUMN colour TEXT;
    CREATE TABLE notes (ask_pos BIGINT PRIMARY KEY, text TEXT NOT NULL);
    CREATE INDEX asks_by_time ON asks (ws_no, asked_at);
    ALTER TABLE tokens DROP CONSTRAINT tokens_check;
    ALTER TABLE tokens ADD CONSTRAINT tokens_check CHECK (person_no IS NULL OR harness_no IS NULL);
";

/// A step that the version before it can't live with. It writes down where the log stood.
const ALONE: &str = "-- alone
    CREATE TABLE stood (head BIGINT NOT NULL);
    INSERT INTO stood SELECT head FROM workspaces;
    ALTER TABLE asks ADD COLUMN mood BIGINT NOT NULL DEFAULT 0;
";

const CLIENTS: usize = 4;

fn file(home: &Home, step: &str) -> PathBuf {
    let path = home.beside().join("step.sql");
    std::fs::write(&path, step).unwrap();
    path
}

/// A server of the next version, as soon as it runs: it may take a while until it serves.
fn next(team: &Team, listen: &str, step: &std::path::Path) -> Process {
    let mut command = team.serving(listen);
    command.env("CHIPS_TEST_NEXT_STEP", step);
    Process::spawn(command)
}

fn layout(home: &Home) -> i64 {
    home.sql("SELECT layout FROM meta").parse().unwrap()
}

#[test]
fn two_servers_are_replaced_one_after_the_other_by_a_newer_version_and_nobody_notices() {
    let home = Home::schema();
    let team = Team::new(home.url());
    let step = file(&home, STEP);
    let (first, second) = (team.serve(), team.serve());
    let places = [first.addr, second.addr];
    let (harness, person) = (team.harness(&first), team.person(&first));
    let (run, token) = (harness.open_run(), &harness.token);
    let before = layout(&home);
    let told = Told::default();
    let (done, followed) = (AtomicBool::new(false), AtomicBool::new(false));
    let (seen, waited) = (Mutex::<Vec<u64>>::default(), Mutex::<usize>::default());

    std::thread::scope(|scope| {
        let (followed, ended) = (Ended(&followed), Ended(&done));
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            let (told, harness, run, done) = (&told, &harness, &run, &done);
            clients.push(scope.spawn(move || {
                let mut line = Line::to(&places, client, &[503]);
                told.keep_writing(&mut line, harness, run, || !done.load(Ordering::SeqCst));
            }));
        }
        clients.push(scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                wait_once(&places, &harness, &person, &run, &told);
                *waited.lock().unwrap() += 1;
            }
        }));
        let (seen, until_then) = (&seen, followed.0);
        scope.spawn(move || follow(&places, token, &[503], seen, until_then));
        let more = |count: usize| {
            let (acknowledged, polls) = (told.count(), *waited.lock().unwrap());
            until(LIMIT * 2, "the clients to get on", || {
                (told.count() >= acknowledged + count && *waited.lock().unwrap() > polls).then_some(())
            });
        };
        more(40);

        // The first server ends as an operator ends it. Somebody reads for long meanwhile: the step waits for that, and nobody else.
        let listen = first.addr.to_string();
        first.stop();
        let reader = Reader::of(&home);
        let mut newer = next(&team, &listen, &step);
        let mut third = next(&team, "127.0.0.1:0", &step);
        newer.says("what it waits for", |line| line.contains("somebody holds them").then_some(()));
        assert_eq!(layout(&home), before);
        more(20);
        drop(reader);
        // Two of the newer version started at the same time.
        let (newer, third) = (Serve::of(newer), {
            third.says("that it listens", listens);
            third
        });
        assert_eq!(layout(&home), before + 1);
        assert_eq!(home.sql("SELECT count(*) FROM asks WHERE note <> 'none'"), "0");
        more(40);

        // The older one is started anew in the middle of it, then replaced as well.
        let listen = second.addr.to_string();
        second.stop();
        let older = Serve::spawn(team.serving(&listen));
        more(40);
        older.stop();
        let last = Serve::of(next(&team, &listen, &step));
        more(40);

        drop(ended);
        clients.into_iter().for_each(|client| client.join().unwrap());
        for serve in [&newer, &last] {
            told.hold_against(&team.harness(serve));
        }
        let head = team.harness(&last).head();
        until(LIMIT, "the stream to come to the end", || (seen.lock().unwrap().last() == Some(&head)).then_some(()));
        drop(followed);
        assert_eq!(*seen.lock().unwrap(), (1..=head).collect::<Vec<_>>(), "each event once, in order");
        assert_eq!(layout(&home), before + 1);
        let log = newer.log() + &last.log() + &third.stderr();
        assert!(!log.contains("panicked") && !log.contains("cached plan"), "{log}");
    });
}

fn listens(line: &str) -> Option<()> {
    line.contains("listening on http://").then_some(())
}

/// Asks at one server and waits there, answers at the other, and waits again wherever the wait was cut short.
fn wait_once(places: &[std::net::SocketAddr; 2], harness: &Api, person: &Api, run: &str, told: &Told) {
    let mut line = Line::to(places, 0, &[503]);
    let ask = line.send(&harness.event_request(harness.plain_ask(run).to_string()));
    assert!(matches!(ask.status, 200 | 201), "{}", ask.text());
    let ask: Value = ask.json();
    told.acknowledged.lock().unwrap().push(ask.clone());
    let wait = Request::get(&format!("{}?wait=20", ask_path(&ask))).bearer(&harness.token);
    let mut waiting = Conn::open(places[0]).ok();
    if let Some(conn) = &mut waiting {
        let _ = conn.write(&wait.wire(places[0], true));
    }
    let answer = person.answer(&ask, &[chosen("fence", &["paint"])]);
    let answer = Line::to(places, 1, &[503]).send(&person.event_request(answer.to_string()));
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
    told.acknowledged.lock().unwrap().push(answer.json());
    let cut_short = waiting.and_then(|mut conn| conn.read_response(false).ok());
    let closed = match cut_short {
        Some(reply) if reply.status == 200 && reply.json()["state"] != "open" => reply.json(),
        Some(reply) => {
            assert!(matches!(reply.status, 200 | 503), "{}", reply.text());
            line.send(&wait).expect(200)
        }
        None => line.send(&wait).expect(200),
    };
    assert_eq!((&closed["state"], seq(&closed["answer"])), (&"answered".into(), seq(&answer.json())));
}

/// Somebody who reads a table and takes their time: a dump, say.
struct Reader<'a> {
    home: &'a Home,
    name: String,
    process: Process,
}

impl<'a> Reader<'a> {
    fn of(home: &'a Home) -> Self {
        let name = format!("reader_{}", std::process::id());
        let mut psql = std::process::Command::new("psql");
        psql.env("PGAPPNAME", &name).args(["-X", "-q", "-d", home.url()]);
        psql.args(["-c", "SELECT count(*) FROM asks; SELECT pg_sleep(600)"]);
        let reader = Self { home, name, process: Process::spawn(psql) };
        let holds = format!(
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
             WHERE application_name = '{}' AND relation = 'asks'::regclass",
            reader.name
        );
        until(LIMIT, "the reader to hold the table", || (home.sql(&holds) == "1").then_some(()));
        reader
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let name = &self.name;
        self.home
            .sql(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"));
        self.process.wait(LIMIT);
    }
}

#[test]
fn a_server_that_a_newer_version_shuts_out_stops_at_once_says_why_and_is_not_started_again() {
    let home = Home::schema();
    let team = Team::new(home.url());
    let step = file(&home, ALONE);
    let old = team.serve();
    let harness = team.harness(&old);
    let run = harness.open_run();
    let told = Told::default();
    let waiting_for = harness.send(&harness.plain_ask(&run)).expect(201);
    told.acknowledged.lock().unwrap().push(waiting_for.clone());
    let mut stream = Stream::open(old.addr, &harness.token, "", None);
    let mut wait = Conn::open(old.addr).unwrap();
    let request = Request::get(&format!("{}?wait=60", ask_path(&waiting_for))).bearer(&harness.token);
    wait.write(&request.wire(old.addr, true)).unwrap();

    let new = std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let ended = told.write_while(&harness, &run, |_| true);
                assert_eq!(ended, Some(503), "turned away once the newer version has begun, and told so");
            });
        }
        until(LIMIT, "the clients to be busy", || (told.count() >= 40).then_some(()));
        Serve::of(next(&team, "127.0.0.1:0", &step))
    });
    // It wrote nothing after the step.
    assert_eq!(home.sql("SELECT head FROM workspaces"), home.sql("SELECT head FROM stood"));

    let why = "a newer version of Chips works on this (layout ";
    let ready = Request::get("/readyz").send(old.addr).expect_problem(503, "unavailable");
    assert!(ready["detail"].as_str().unwrap().contains(why), "{ready}");
    assert!(stream.ends_within(LIMIT));
    assert_eq!(wait.read_response(false).unwrap().status, 503);
    let refused = harness.get("/v1/me");
    refused.expect_problem(503, "unavailable");
    assert!(refused.header("retry-after").is_some());
    let log = old.log();
    let said: Vec<_> = log.lines().filter(|line| line.contains("has to be replaced")).collect();
    assert!(said.len() == 1 && said[0].contains(why), "{log}");
    // It ends as any other.
    old.stop();

    for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["person", "list"]] {
        let refused = output(command(team.folder(), home.url(), args));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(why) && said.trim_end().lines().count() == 1, "{args:?}: {said}");
    }
    assert_eq!(Request::get("/readyz").send(new.addr).status, 200);
    told.send_again(&team.harness(&new));
    told.hold_against(&team.harness(&new));
}

#[test]
fn statements_that_were_prepared_before_a_column_got_another_type_are_prepared_anew() {
    let home = Home::schema();
    let team = Team::new(home.url());
    let serve = team.serve();
    let harness = team.harness(&serve);
    let run = harness.open_run();
    let path = format!("/v1/runs/{run}");
    harness.get(&path).expect(200);
    home.sql("ALTER TABLE runs ALTER COLUMN title TYPE VARCHAR");
    harness.open_run();
    let said = until(LIMIT, "the run to be read again", || {
        let reply = harness.get(&path);
        assert!(matches!(reply.status, 200 | 503), "{}", reply.text());
        (reply.status == 200).then(|| reply.json())
    });
    assert_eq!(said["run_id"], run);
    harness.post_empty(&format!("{path}/end")).expect(200);
}
