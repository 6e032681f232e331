//! The primary is lost under load, and its synchronous standby takes over.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::server::Server;
use crate::support::{LIMIT, until};
use crate::team::{Team, Told};

const CLIENTS: usize = 6;

#[test]
fn a_synchronous_standby_that_is_promoted_under_load_has_all_that_was_acknowledged() {
    let mut primary = Server::new();
    let standby = primary.standby();
    primary.set("synchronous_standby_names", "standby");
    let in_step = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    until(LIMIT, "the standby to be in step", || (primary.sql(in_step) == "1").then_some(()));

    let team = Team::new(&format!("postgres://chips@{},{}/postgres?sslmode=disable", primary.host(), standby.host()));
    let (one, two) = (team.serve(), team.serve());
    let run = team.harness(&one).open_run();
    let told = Told::default();
    let lost = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let harness = team.harness(if client % 2 == 0 { &one } else { &two });
            let (told, run, lost) = (&told, &run, &lost);
            scope.spawn(move || {
                let ended = told.write_while(&harness, run, |_| !lost.load(Ordering::SeqCst));
                assert!(matches!(ended, Some(503 | 201)), "{ended:?}");
            });
        }
        until(LIMIT, "the clients to be busy", || (told.count() >= 100).then_some(()));
        primary.crash();
        lost.store(true, Ordering::SeqCst);
        standby.sql("SELECT pg_promote()");
    });
    for serve in [&one, &two] {
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
    told.hold_against(&team.harness(&two));
}
