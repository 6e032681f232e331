//! Two servers on one PostgreSQL behind the real nginx, by the file that docs/scaling.md names.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::SOON;
use crate::front::{self, Front, Way};
use crate::home::Home;
use crate::support::events::chosen;
use crate::support::scene::{Api, seq};
use crate::support::stream::Stream;
use crate::support::{LIMIT, Request, Serve, until};
use crate::team::{Ended, Line, Team, Told, follow};

const CLIENTS: usize = 4;
/// What Chips says, and what nginx says by itself where nobody answers: each means to come again.
const PASSING: &[u16] = &[502, 503, 504];

/// A figure of a server, whatever its labels, asked of itself.
fn figure(serve: &Serve, name: &str) -> f64 {
    let figures = Request::get("/metrics").send(serve.addr).text();
    let values = figures.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        rest.starts_with(['{', ' ']).then(|| rest.rsplit(' ').next()?.parse::<f64>().ok())?
    });
    values.sum()
}

#[test]
fn two_servers_behind_nginx_are_as_one_and_either_may_be_killed() {
    let home = Home::schema();
    let team = Team::new(home.url());
    let way = Way::open();
    let url = way.url();
    let serve = |listen: &str| {
        let mut command = team.serving(listen);
        command.args(["--public-url", &url, "--trust-proxy", "127.0.0.1"]);
        Serve::spawn(command)
    };
    let (one, two) = (serve("127.0.0.1:0"), serve("127.0.0.1:0"));
    let servers = [("10.0.0.5:7070", one.addr), ("10.0.0.6:7070", two.addr)];
    let front = Front::start(way, |at| front::nginx_by("nginx-nodes.conf", home.beside(), at, &servers));
    let (harness, person) = (team.harness(&one), team.person(&one));
    let (harness, person) = (Api { addr: front.addr(), ..harness }, Api { addr: front.addr(), ..person });
    let run = harness.open_run();
    let told = Told::default();

    // Streams lead to both. An event comes through each of them at once, whichever server took it.
    let mut streams: Vec<Stream> = (0..4).map(|_| person.stream()).collect();
    assert!(figure(&one, "chips_streams") > 0.0 && figure(&two, "chips_streams") > 0.0);
    until(LIMIT, "an ask at one server and its answer at the other", || {
        let at_one = |name: &str, before: f64| figure(&one, name) > before;
        let (opened, closed) = ("chips_asks_opened_total", "chips_asks_closed_total");
        let before = (figure(&one, opened), figure(&one, closed));
        let ask = harness.send(&harness.plain_ask(&run)).expect(201);
        let answer = person.send(&person.answer(&ask, &[chosen("fence", &["paint"])])).expect(201);
        for event in [&ask, &answer] {
            for stream in &mut streams {
                let came = stream.next(SOON).unwrap().unwrap_or_else(|| panic!("nothing came within {SOON:?}"));
                assert_eq!((came.seq(), &came.json()), (seq(event), event));
            }
        }
        told.acknowledged.lock().unwrap().extend([ask, answer]);
        (at_one(opened, before.0) != at_one(closed, before.1)).then_some(())
    });

    // One is killed under load. Clients that send again what was not taken, and resume, get on with the other.
    let places = [front.addr()];
    let (over, followed, strict) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
    let seen: [Mutex<Vec<u64>>; 2] = Default::default();
    std::thread::scope(|scope| {
        let (followed, over) = (Ended(&followed), Ended(&over));
        for seen in &seen {
            let (places, token, followed) = (&places, &person.token, followed.0);
            scope.spawn(move || follow(places, token, PASSING, seen, followed));
        }
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (told, places, harness, run, over, strict) = (&told, &places, &harness, &run, over.0, &strict);
                scope.spawn(move || {
                    let mut line = Line::to(places, 0, PASSING);
                    let go_on = || !over.load(Ordering::SeqCst);
                    told.keep_writing(&mut line, harness, run, || go_on() && !strict.load(Ordering::SeqCst));
                    let mut line = Line::to(places, 0, &[503]);
                    told.keep_writing(&mut line, harness, run, go_on);
                })
            })
            .collect();
        let more = || {
            let before = told.count();
            until(LIMIT, "the clients to get on", || (told.count() >= before + 60).then_some(()));
        };
        more();
        let listen = one.addr.to_string();
        one.kill();
        more();
        // It comes back, and gets its share again.
        let one = serve(&listen);
        until(LIMIT, "asks at the server that is back", || {
            (figure(&one, "chips_asks_opened_total") > 0.0).then_some(())
        });
        more();

        // One after the other is started anew, as for an upgrade: somebody is there all the time, and nginx says so.
        strict.store(true, Ordering::SeqCst);
        let anew = |serve_before: Serve| {
            let listen = serve_before.addr.to_string();
            serve_before.stop();
            let serve = serve(&listen);
            until(LIMIT, "nginx to take it back", || (figure(&serve, "chips_asks_opened_total") > 0.0).then_some(()));
            more();
            serve
        };
        let (one, two) = (anew(one), anew(two));
        drop(over);
        clients.into_iter().for_each(|client| client.join().unwrap());

        told.hold_against(&harness);
        for serve in [&one, &two] {
            told.hold_against(&team.harness(serve));
        }
        let head = harness.head();
        for seen in &seen {
            until(LIMIT, "the stream to come to the end", || {
                (seen.lock().unwrap().last() == Some(&head)).then_some(())
            });
            assert_eq!(*seen.lock().unwrap(), (1..=head).collect::<Vec<_>>(), "each event once, in order");
        }
        drop(followed);
    });
}
