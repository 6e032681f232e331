//! A server is frozen over deadlines, and thaws.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::json;

use crate::home::Home;
use crate::support::scene::seq;
use crate::support::{LIMIT, Serve, until};
use crate::team::{Team, Told};

#[test]
fn a_server_that_is_frozen_over_deadlines_and_thaws_changes_nothing() {
    let home = Home::schema();
    let team = Team::new(home.url());
    let (frozen, awake) = (team.serve(), team.serve());
    let (harness, other) = (team.harness(&frozen), team.harness(&awake));
    let run = harness.open_run();
    let told = Told::default();

    for round in 1..=3 {
        let asks: Vec<_> = (0..10)
            .map(|place| {
                let mut ask = if place % 2 == 0 { harness.plain_ask(&run) } else { other.plain_ask(&run) };
                ask["timeout_seconds"] = json!(1);
                let at = if place % 2 == 0 { &harness } else { &other };
                at.send(&ask).expect(201)
            })
            .collect();
        told.acknowledged.lock().unwrap().extend(asks.iter().cloned());
        frozen.process.signal(Signal::STOP);
        let thaw = Thaw(&frozen);
        let closed: Vec<_> = asks.iter().map(|ask| other.closed(ask)).collect();
        assert!(closed.iter().all(|ask| ask["state"] == "timed_out"), "{closed:?}");
        drop(thaw);
        // It learns what happened meanwhile, and says the same of it.
        for (ask, mut closed) in asks.iter().zip(closed) {
            let mut seen = harness.closed(ask);
            // The harness has seen the close by now.
            seen["delivered_at"].take();
            closed["delivered_at"].take();
            assert_eq!(seen, closed, "round {round}");
        }
        // Once its own timer has looked at what was due, a write of its own comes after.
        let after = harness.send(&harness.plain_ask(&run)).expect(201);
        until(LIMIT, "the write at the other server", || (other.head() >= seq(&after)).then_some(()));
        told.acknowledged.lock().unwrap().push(after);
        told.hold_against(&other);
        told.hold_against(&harness);
    }
    let closes = other.events("&type=question.answered").len();
    assert_eq!(closes, 30, "each deadline fired once");
}

#[test]
fn a_server_that_is_frozen_while_it_writes_holds_others_up_for_a_while_and_thaws_without_a_trace() {
    let home = Home::schema();
    let team = Team::new(home.url());
    let (frozen, awake) = (team.serve(), team.serve());
    let (harness, other) = (team.harness(&frozen), team.harness(&awake));
    let run = harness.open_run();
    let told = Told::default();
    let over = AtomicBool::new(false);

    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let ended = told.write_while(&harness, &run, |_| !over.load(Ordering::SeqCst));
                assert!(matches!(ended, Some(201 | 503)), "{ended:?}");
            });
        }
        until(LIMIT, "the clients to be busy", || (told.count() >= 40).then_some(()));
        frozen.process.signal(Signal::STOP);
        let thaw = Thaw(&frozen);
        over.store(true, Ordering::SeqCst);
        // Where it was stopped in the middle of a transaction, PostgreSQL puts an end to that.
        for _ in 0..5 {
            told.acknowledged.lock().unwrap().push(other.send(&other.plain_ask(&run)).expect(201));
        }
        drop(thaw);
    });
    told.send_again(&other);
    until(LIMIT, "the server that thawed to write again", || {
        let answer = harness.send(&harness.plain_ask(&run));
        assert!(matches!(answer.status, 201 | 503), "{}", answer.text());
        (answer.status == 201).then(|| told.acknowledged.lock().unwrap().push(answer.json()))
    });
    told.hold_against(&other);
    told.hold_against(&harness);
}

struct Thaw<'a>(&'a Serve);

impl Drop for Thaw<'_> {
    fn drop(&mut self) {
        self.0.process.signal(Signal::CONT);
    }
}
