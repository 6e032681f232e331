//! `chips backup` and `chips restore` while clients write.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::export::{check, exported};
use crate::support::browser::{Browser, forms};
use crate::support::events::chosen;
use crate::support::process::text;
use crate::support::scene::{Scene, api};
use crate::support::{Conn, Folder, LIMIT, Serve, until};

#[test]
fn a_backup_under_load_holds_what_was_acknowledged_before_it_and_makes_a_folder_that_goes_on() {
    let scene = Scene::new();
    scene.lift_budget();
    let run = scene.harness.open_run();
    let acknowledged: Mutex<Vec<Value>> = Mutex::default();
    let stop = AtomicBool::new(false);
    let copies = std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut conn = Conn::open(scene.harness.addr).unwrap();
                let mut open: Option<Value> = None;
                while !stop.load(Ordering::Relaxed) {
                    let event = match open.take() {
                        Some(ask) => scene.harness.answer(&ask, &[chosen("fence", &["paint"])]),
                        None => scene.harness.plain_ask(&run),
                    };
                    // No write waits for the backup, and none is refused because of it.
                    let stored = conn.send(&scene.harness.event_request(event.to_string())).unwrap().expect(201);
                    if stored["type"] == "question.ask" {
                        open = Some(stored.clone());
                    }
                    acknowledged.lock().unwrap().push(stored);
                }
            });
        }
        let mut copies = Vec::new();
        for number in 0..4 {
            let least = 100 * (number + 1);
            until(LIMIT, "more writes", || (acknowledged.lock().unwrap().len() > least).then_some(()));
            let before: Vec<Value> = acknowledged.lock().unwrap().clone();
            let file = scene.folder.path().join(format!("copy-{number}.db"));
            let made = scene.folder.admin(&["backup", file.to_str().unwrap()]);
            copies.push((file, made, before));
        }
        stop.store(true, Ordering::Relaxed);
        copies
    });
    let whole = exported(&scene.folder, &[]);
    for (file, made, before) in copies {
        let mut folder = Folder::empty();
        folder.made = scene.folder.made.clone();
        let restored = folder.admin(&["restore", file.to_str().unwrap()]);
        assert_eq!(restored["events"], made["events"]);
        let lines = exported(&folder, &[]);
        assert_eq!(json!(lines.len()), made["events"]);
        assert_eq!(lines, whole[..lines.len()], "the beginning of the log, event for event");
        check(&folder, &lines);
        let held: HashSet<&str> = lines.iter().map(String::as_str).collect();
        assert!(before.iter().all(|event| held.contains(&*event.to_string())), "what was acknowledged is in it");

        let serve = Serve::start(&folder);
        let harness = api(&folder.made, "harness", serve.addr, &scene.harness.workspace);
        assert_eq!(harness.head(), lines.len() as u64);
        let log = harness.get("/v1/events?limit=1").expect(200)["log"].clone();
        assert_ne!(log, made["log"]);
        harness.get(&format!("/v1/events?after=1&log={}", text(&made, "/log"))).expect_problem(410, "log_changed");
        let run = harness.open_run();
        let next = harness.send(&harness.plain_ask(&run)).expect(201);
        assert_eq!(next["seq"], json!(lines.len() + 1));
        serve.stop();
    }
}

#[test]
fn sessions_come_back_or_stay_behind_as_the_flag_says_and_tokens_come_back() {
    let scene = Scene::new();
    let mut browser = Browser::new(scene.serve.addr);
    browser.sign_in(&scene.folder.text("/sign_in_url"));
    let unused = text(&scene.folder.admin(&["person", "link", &scene.person.id]), "/sign_in_url");
    let file = scene.folder.path().join("copy.db");
    scene.folder.admin(&["backup", file.to_str().unwrap()]);
    for (flag, kept) in [(None, true), (Some("--drop-sessions"), false)] {
        let mut folder = Folder::empty();
        folder.made = scene.folder.made.clone();
        let restore = ["restore", file.to_str().unwrap()].into_iter().chain(flag).collect::<Vec<_>>();
        folder.admin(&restore);
        let serve = Serve::start(&folder);
        let mut there = Browser::new(serve.addr);
        there.cookies = browser.cookies.clone();
        assert_eq!(there.get("/").status == 200, kept, "{flag:?}");
        let person = api(&folder.made, "person", serve.addr, &scene.person.workspace);
        person.get("/v1/me").expect(200);
        let path = Browser::path(&unused);
        let page = Browser::new(serve.addr).get(path).text();
        assert!(forms(&page, path).iter().all(|form| form.action != path), "a link from before is void: {page}");
        serve.stop();
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_backup_that_is_told_to_end_leaves_nothing_behind() {
    use rustix::process::Signal;

    use crate::support::process::Process;
    use crate::support::{LIMIT, until};

    let folder = Folder::new();
    let copies = folder.path().join("copies");
    std::fs::create_dir(&copies).unwrap();
    let left = || std::fs::read_dir(&copies).unwrap().map(|found| found.unwrap().file_name()).collect::<Vec<_>>();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut command = folder.chips();
        command
            .env("CHIPS_TEST_STOP_AT", "1")
            .arg("backup")
            .arg(copies.join("monday.db"))
            .arg("--data")
            .arg(folder.data());
        let mut process = Process::spawn(command);
        until(LIMIT, "the copy to be there without its name", || {
            assert_eq!(process.ended(), None, "{}", process.stderr());
            process.stderr().contains("stopped at 1: the copy").then_some(())
        });
        assert_eq!(left().len(), 1);
        process.signal(signal);
        assert_eq!(process.wait(LIMIT).code(), Some(130), "{}", process.stderr());
        assert_eq!(left(), Vec::<std::ffi::OsString>::new());
    }
}
