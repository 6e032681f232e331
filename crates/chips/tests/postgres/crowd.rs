//! Thousands wait, on a handful of connections to the database.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::home::Home;
use crate::support::events::chosen;
use crate::support::scene::{ask_path, seq};
use crate::support::stream::Stream;
use crate::support::{Conn, LIMIT, Request, until};
use crate::team::Team;

const EACH: usize = 1_000;
/// One that writes, one that listens, four that read.
const CONNECTIONS: usize = 6;

#[test]
fn two_thousand_who_wait_are_all_woken_and_hold_no_connection_to_the_database() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let home = Home::schema();
    let team = Team::new(home.url());
    let name = format!("crowd_{}", std::process::id());
    let (serve, other) = (team.serve_by(&format!("{}&application_name={name}", home.url())), team.serve());
    let (harness, person) = (team.harness(&serve), team.person(&other));
    let run = harness.open_run();
    let ask = harness.send(&harness.plain_ask(&run)).expect(201);

    let done = AtomicBool::new(false);
    let count = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'");
    let most = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            until(LIMIT * 2, "the crowd to be woken", || {
                most = most.max(home.sql(&count).parse::<usize>().unwrap());
                done.load(Ordering::SeqCst).then_some(most)
            })
        });
        let waits: Vec<Conn> = (0..EACH)
            .map(|_| {
                let mut conn = Conn::open(serve.addr).unwrap();
                let wait = Request::get(&format!("{}?wait=60", ask_path(&ask))).bearer(&harness.token);
                conn.write(&wait.wire(serve.addr, true)).unwrap();
                conn
            })
            .collect();
        let sent: Vec<Conn> = (0..EACH)
            .map(|_| {
                let mut conn = Conn::open(serve.addr).unwrap();
                Stream::send(&mut conn, serve.addr, &harness.token, "", Some(seq(&ask))).unwrap();
                conn
            })
            .collect();
        let streams: Vec<Stream> = sent.into_iter().map(Stream::on).collect();

        // The answer comes in at the other server.
        let closed = person.send(&person.answer(&ask, &[chosen("fence", &["paint"])])).expect(201);
        for mut conn in waits {
            assert_eq!(conn.read_response(false).unwrap().expect(200)["state"], "answered");
        }
        for mut stream in streams {
            assert_eq!(stream.expect().json(), closed);
        }
        done.store(true, Ordering::SeqCst);
        watch.join().unwrap()
    });
    assert!((1..=CONNECTIONS).contains(&most), "{most} connections");
}
