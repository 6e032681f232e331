//! A data folder is moved into PostgreSQL by the real binary, killed again and again on the way, and goes on there.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::home::Home;
use crate::support::browser::Browser;
use crate::support::events::chosen;
use crate::support::process::{Process, output, text};
use crate::support::scene::{Api, Scene, ask_path, seq};
use crate::support::stream::Stream;
use crate::support::{Folder, LIMIT, Request, Serve, until};
use crate::team::command;

/// Every file of a folder but what a running process needs: the index in memory, and its number in the lock.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    named
        .filter(|(name, _)| !name.ends_with("-shm") && name != "lock")
        .map(|(name, path)| (name, std::fs::read(path).unwrap()))
        .collect()
}

fn migrate(folder: &Folder, url: &str, args: &[&str]) -> std::process::Command {
    let data = folder.data();
    command(folder, url, &[&["migrate", "--data", data.to_str().unwrap()], args].concat())
}

/// What the command printed, and how it ended.
fn run(command: std::process::Command) -> (Option<i32>, String, String) {
    let told = output(command);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (told.status.code(), text(told.stdout), text(told.stderr))
}

#[test]
fn a_folder_that_is_moved_goes_on_at_two_servers_as_if_nothing_had_been() {
    let home = Home::schema();
    let Scene { serve, folder, person, harness } = Scene::new();
    let run_id = harness.open_run();
    let answered = harness.send(&harness.plain_ask(&run_id)).expect(201);
    person.send(&person.answer(&answered, &[chosen("fence", &["paint"])])).expect(201);
    let open = harness.send(&harness.plain_ask(&run_id)).expect(201);
    let mut due = harness.plain_ask(&run_id);
    due["timeout_seconds"] = json!(2);
    let sent = due.clone();
    let due = harness.send(&due).expect(201);
    let mut browser = Browser::new(serve.addr);
    browser.sign_in(&folder.text("/sign_in_url"));

    let (code, out, err) = run(migrate(&folder, home.url(), &[]));
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("is held by process") && err.contains("end that one first"), "{err}");
    let before = harness.get("/v1/events?limit=1000").expect(200);
    serve.stop();
    let was = files(&folder.data());

    // Killed at its mark, with the tables and nothing in them, then at every third step until it is done.
    let mut kills = 0;
    let how = loop {
        let mut moving = migrate(&folder, home.url(), &["--json"]);
        let (at, what) = [("1", "the mark of the move"), ("1", "the tables")].get(kills).unwrap_or(&("4", ""));
        moving.env("CHIPS_TEST_STOP_AT", at);
        let at = format!("stopped at {at}: {what}");
        let mut process = Process::spawn(moving);
        let stopped = until(LIMIT, "the move to come to a stop or to its end", || match process.ended() {
            Some(_) => Some(false),
            None => process.stderr().contains(&at).then_some(true),
        });
        if !stopped {
            let told = process.finish(LIMIT);
            assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
            break text(&serde_json::from_slice(&told.stdout).unwrap(), "/how");
        }
        process.signal(Signal::KILL);
        process.wait(LIMIT);
        kills += 1;
        let refused = [command_serve(&folder, home.url()), command(&folder, home.url(), &["init"])];
        for refused in refused.into_iter().take(if kills <= 3 { 2 } else { 0 }) {
            let (code, _, err) = self::run(refused);
            assert_eq!(code, Some(1));
            assert!(err.contains("a data folder is being moved here") && err.contains("chips migrate"), "{err}");
        }
    };
    assert!(kills > 5 && ["gone_on", "before"].contains(&how.as_str()), "{kills} {how}");
    assert_eq!(files(&folder.data()), was, "the folder is left as it was");

    let (one, other) =
        (Serve::spawn(command_serve(&folder, home.url())), Serve::spawn(command_serve(&folder, home.url())));
    let here = Api { addr: one.addr, ..harness.clone() };
    let there = Api { addr: other.addr, ..person };
    // The same log under the same name, and a cursor into it is good.
    let after = here.get("/v1/events?limit=1000").expect(200);
    assert_eq!(after["log"], before["log"]);
    let events = |page: &Value| page["events"].as_array().unwrap().clone();
    assert!(events(&after).starts_with(&events(&before)));
    let log = text(&before, "/log");
    here.get(&format!("/v1/events?after=1&log={log}")).expect(200);
    let mut stream = Stream::open(one.addr, &here.token, "", Some(1));
    let first = stream.next(Duration::from_secs(20)).unwrap().unwrap();
    assert_eq!((first.seq(), &first.json()), (2, &events(&before)[1]));
    // The deadline fires, once.
    assert_eq!(here.closed(&due)["state"], "timed_out");
    let closes = |ask: &Value| {
        let closes = here.events("&type=question.answered");
        closes.iter().filter(|event| event["ask_id"] == ask["ask_id"]).count()
    };
    assert_eq!(closes(&due), 1);
    // What was sent before is known, and who was signed in is.
    let again = here.send(&sent);
    assert_eq!((again.status, again.replayed(), seq(&again.json())), (200, true, seq(&due)));
    let mut moved = Browser::new(other.addr);
    moved.cookies = browser.cookies;
    let page = moved.get(&format!("/asks/{}", text(&open, "/ask_id")));
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("fence"), "{}", page.text());
    // An answer at one server ends a wait at the other.
    let waits = std::thread::spawn({
        let (addr, path) = (one.addr, format!("{}?wait=60", ask_path(&open)));
        let request = Request::get(&path).bearer(&here.token);
        move || request.send(addr).expect(200)
    });
    there.send(&there.answer(&open, &[chosen("fence", &["leave"])])).expect(201);
    assert_eq!(waits.join().unwrap()["state"], "answered");
    assert_eq!(closes(&open), 1);
}

fn command_serve(folder: &Folder, url: &str) -> std::process::Command {
    command(folder, url, &["serve", "--listen", "127.0.0.1:0"])
}

#[test]
fn a_move_tells_in_plain_words_what_it_did_and_what_to_do() {
    let (home, folder) = (Home::schema(), Folder::new());
    let (code, out, err) = run(migrate(&folder, home.url(), &[]));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.lines().any(|line| line.split_whitespace().eq(["workspaces", "1"])), "{out}");
    assert!(out.contains("rows moved, read again and found the same"), "{out}");
    assert!(err.contains("start the servers: ") && err.contains("do not serve"), "{err}");
    assert!(!err.contains('\r'), "no progress where nobody looks at a terminal: {err}");
    let (code, out, _) = run(migrate(&folder, home.url(), &[]));
    assert_eq!(code, Some(0));
    assert!(out.contains("is there already, all of it; nothing was changed"), "{out}");
    let mut nowhere = folder.chips();
    nowhere.args(["migrate", "--data"]).arg(folder.data());
    let (code, _, err) = run(nowhere);
    assert_eq!(code, Some(2));
    assert!(err.contains("--database"), "{err}");
}
