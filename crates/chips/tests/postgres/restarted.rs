//! PostgreSQL crashes under load.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

use crate::server::Server;
use crate::support::process::Process;
use crate::support::{LIMIT, Request, Serve, until};
use crate::team::{Team, Told};

const CLIENTS: usize = 6;

#[test]
fn a_crash_of_postgresql_is_503_for_a_while_and_heals_without_a_restart_of_chips() {
    let mut server = Server::new();
    let team = Team::new(&server.url());
    let (one, two) = (team.serve(), team.serve());
    let run = team.harness(&one).open_run();
    let told = Told::default();

    for round in 1..=2 {
        let before = told.count();
        let down = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let harness = team.harness(if client % 2 == 0 { &one } else { &two });
                let (told, run, down) = (&told, &run, &down);
                scope.spawn(move || {
                    let ended = told.write_while(&harness, run, |_| !down.load(Ordering::SeqCst));
                    // What was in flight may have been written.
                    assert!(matches!(ended, Some(503 | 201)), "round {round}: {ended:?}");
                    assert!(down.load(Ordering::SeqCst), "nobody is turned away while PostgreSQL runs");
                });
            }
            until(LIMIT, "the clients to be busy", || (told.count() >= before + 60).then_some(()));
            down.store(true, Ordering::SeqCst);
            server.crash();
            for serve in [&one, &two] {
                let harness = team.harness(serve);
                let refused = harness.send(&harness.plain_ask(&run));
                refused.expect(503);
                assert!(refused.header("retry-after").is_some());
                until(LIMIT, "readyz to say so", || {
                    (Request::get("/readyz").send(serve.addr).status == 503).then_some(())
                });
            }
            server.start();
        });
        for serve in [&one, &two] {
            until(LIMIT, "readyz to say so", || (Request::get("/readyz").send(serve.addr).status == 200).then_some(()));
            let harness = team.harness(serve);
            let healed = until(LIMIT, "a write to get through", || {
                let answer = harness.send(&harness.plain_ask(&run));
                assert!(matches!(answer.status, 201 | 503), "{}", answer.text());
                (answer.status == 201).then(|| answer.json())
            });
            told.acknowledged.lock().unwrap().push(healed);
        }
        told.send_again(&team.harness(&two));
        told.hold_against(&team.harness(&one));
    }
    assert_eq!(team.harness(&one).log(), team.harness(&two).log());

    // Nor has PostgreSQL to be there first: a server that starts waits for it, and can be told not to.
    server.crash();
    let waiting = || {
        let mut process = Process::spawn(team.serving("127.0.0.1:0"));
        process.says("what it waits for", |line| line.contains("can't be reached; it is tried again").then_some(()));
        process
    };
    let (mut ended, goes_on) = (waiting(), waiting());
    ended.signal(Signal::TERM);
    assert!(ended.wait(LIMIT).success());
    server.start();
    let late = Serve::of(goes_on);
    assert_eq!(team.harness(&late).log(), team.harness(&one).log());
}
