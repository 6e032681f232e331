//! A synchronous standby is gone, and somebody cancels the wait for it.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::server::Server;
use crate::support::{LIMIT, until};
use crate::team::{Team, Told};

/// Sessions of Chips that wait for the standby, by process id.
const WAITING: &str = "SELECT coalesce(string_agg(pid::text, ',' ORDER BY pid), '') FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'chips'";
const CANCEL: &str = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'chips'";

#[test]
fn a_commit_that_was_not_waited_for_is_acknowledged_once_it_is_safe_and_503_until_then() {
    let server = Server::new();
    let team = Team::new(&server.url());
    let serve = team.serve();
    let harness = team.harness(&serve);
    let run = harness.open_run();
    let told = Told::default();

    // The wait is cancelled once. The write is looked up, which waits as well; then the standby is given up.
    server.set("synchronous_standby_names", "gone");
    let first = harness.plain_ask(&run);
    let answered = AtomicBool::new(false);
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| {
            let answer = harness.send(&first);
            answered.store(true, Ordering::SeqCst);
            answer
        });
        let writer = until(LIMIT, "the write to wait", || Some(server.sql(WAITING)).filter(|pids| !pids.is_empty()));
        server.sql(CANCEL);
        until(LIMIT, "the look-up to wait", || {
            Some(server.sql(WAITING)).filter(|pids| !pids.is_empty() && *pids != writer)
        });
        assert!(!answered.load(Ordering::SeqCst), "nothing is said before it is known");
        server.set("synchronous_standby_names", "");
        answer.join().unwrap()
    });
    answer.expect(201);
    told.acknowledged.lock().unwrap().push(answer.json());

    // Every wait is cancelled: nobody can say that it lasts.
    server.set("synchronous_standby_names", "gone");
    let second = harness.plain_ask(&run);
    answered.store(false, Ordering::SeqCst);
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| {
            let answer = harness.send(&second);
            answered.store(true, Ordering::SeqCst);
            answer
        });
        until(LIMIT, "an answer", || {
            server.sql(CANCEL);
            answered.load(Ordering::SeqCst).then_some(())
        });
        answer.join().unwrap()
    });
    answer.expect(503);
    assert!(answer.header("retry-after").is_some());

    // It was written on this server all the same: the repeat is a replay.
    server.set("synchronous_standby_names", "");
    let again = until(LIMIT, "a write to get through", || {
        let again = harness.send(&second);
        (again.status != 503).then_some(again)
    });
    again.expect(200);
    assert!(again.replayed());
    told.acknowledged.lock().unwrap().push(again.json());
    told.hold_against(&harness);
}
