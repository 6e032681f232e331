//! PostgreSQL is there and says nothing, or has no connection to spare.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

use crate::server::Server;
use crate::support::process::output;
use crate::support::{LIMIT, Request, until};
use crate::team::{Ended, Team, command};

#[test]
fn whoever_waits_for_a_postgresql_that_says_nothing_is_told_so_and_it_goes_on_where_it_was() {
    let server = Server::new();
    let team = Team::new(&server.url());
    let serve = team.serve();
    let harness = team.harness(&serve);
    let run = harness.open_run();
    let ask = harness.plain_ask(&run);
    server.signal(Signal::STOP);
    let thaw = Thaw(&server);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let refused = harness.send(&ask);
            refused.expect(503);
            assert!(refused.header("retry-after").is_some());
        });
        for _ in 0..6 {
            scope.spawn(|| harness.get("/v1/asks").expect(503));
        }
        scope.spawn(|| {
            let told = output(command(team.folder(), &server.url(), &["person", "list"]));
            let said = String::from_utf8_lossy(&told.stderr);
            assert_eq!((told.status.code(), said.contains("says nothing for 10 s")), (Some(1), true), "{said}");
        });
        scope.spawn(|| {
            // Whoever watches is told most of it all the same.
            let figures = Request::get("/metrics").send(serve.addr);
            assert_eq!(figures.status, 200, "{}", figures.text());
            let figures = figures.text();
            assert!(figures.contains("\nchips_http_requests_total") && figures.contains("\nchips_store_commits_total"));
            assert!(!figures.contains("\nchips_asks_open ") && !figures.contains("\nchips_store_database_bytes"));
        });
    });
    drop(thaw);
    until(LIMIT, "the same write to get through", || {
        let answer = harness.send(&ask);
        assert!(matches!(answer.status, 200 | 201 | 503), "{}", answer.text());
        (answer.status != 503).then_some(())
    });
    assert_eq!(harness.log().len(), 1, "it was written once");
    assert!(Request::get("/metrics").send(serve.addr).text().contains("\nchips_asks_open 1\n"));
}

#[test]
fn servers_that_get_few_connections_leave_each_other_enough_to_write() {
    let server = Server::new();
    for sql in ["CREATE ROLE app LOGIN", "CREATE DATABASE app OWNER app ENCODING 'UTF8'"] {
        server.sql(sql);
    }
    let url = format!("postgres://app@{}/app?sslmode=disable", server.host());
    let team = Team::new(&url);
    let (one, two) = (team.serve(), team.serve());
    let (harness, other) = (team.harness(&one), team.harness(&two));
    let run = harness.open_run();
    // Just enough for both to write, to listen, and to read on one connection.
    server.sql("ALTER ROLE app CONNECTION LIMIT 6");
    server.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'app'");
    // The one that is read at takes what there is, before the other one wants any.
    let (path, taken) = (format!("/v1/runs/{run}"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let taken = Ended(&taken);
        for _ in 0..6 {
            let (other, path, taken) = (&other, &path, taken.0);
            scope.spawn(move || {
                while !taken.load(Ordering::SeqCst) {
                    drop(other.get(path));
                }
            });
        }
        let count = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'";
        until(LIMIT, "nothing to be left", || (server.sql(count) == "6").then_some(()));
    });
    for harness in [&harness, &other] {
        until(LIMIT, "a write to get through", || {
            let answer = harness.send(&harness.plain_ask(&run));
            assert!(matches!(answer.status, 201 | 503), "{}", answer.text());
            (answer.status == 201).then_some(())
        });
    }
}

struct Thaw<'a>(&'a Server);

impl Drop for Thaw<'_> {
    fn drop(&mut self) {
        self.0.signal(Signal::CONT);
    }
}
