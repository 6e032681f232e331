//! One of two servers is killed in the middle of its answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::home::Home;
use crate::support::events::chosen;
use crate::support::stream::Stream;
use crate::support::{LIMIT, until};
use crate::team::{Ended, Team, Told};

const ROUNDS: usize = 20;
const CLIENTS: usize = 6;
/// How soon a close is seen at the other server.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

#[test]
fn a_server_that_is_killed_twenty_times_loses_nothing_and_the_other_one_shows_every_close_at_once() {
    let home = Home::schema();
    let team = Team::new(home.url());
    let other = team.serve();
    let (beside, person) = (team.harness(&other), team.person(&other));
    let run = beside.open_run();
    let told = Told::default();
    let acknowledged_at: Mutex<HashMap<String, Instant>> = Mutex::default();
    let seen_at: Mutex<HashMap<String, Instant>> = Mutex::default();
    let done = AtomicBool::new(false);

    let mut stream = Stream::open(other.addr, &beside.token, "?after=0", None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let message = stream.next(Duration::from_millis(200)).expect("the stream goes on");
                let Some(event) = message.map(|message| message.json()) else { continue };
                if event["type"] == "question.answered" {
                    let ask_id = event["ask_id"].as_str().unwrap().to_owned();
                    assert!(seen_at.lock().unwrap().insert(ask_id, Instant::now()).is_none(), "told twice");
                }
            }
        });
        // Whoever panics here must not leave the reader of the stream behind.
        let ended = Ended(&done);
        for round in 1..=ROUNDS {
            let before = told.count();
            let killed = team.serve();
            let harness = team.harness(&killed);
            let (rival, asks) = mpsc::channel::<Value>();
            std::thread::scope(|scope| {
                for _ in 0..CLIENTS {
                    let (rival, told, run, harness, acknowledged_at) =
                        (rival.clone(), &told, &run, &harness, &acknowledged_at);
                    scope.spawn(move || {
                        let ended = told.write_while(harness, run, |stored| {
                            if stored["type"] == "question.ask" {
                                let _ = rival.send(stored.clone());
                            } else {
                                let ask_id = stored["ask_id"].as_str().unwrap().to_owned();
                                acknowledged_at.lock().unwrap().insert(ask_id, Instant::now());
                            }
                            true
                        });
                        assert_eq!(ended, None, "the connection broke");
                    });
                }
                drop(rival);
                // A person at the other server answers some of the asks at the same time.
                let (told, person) = (&told, &person);
                scope.spawn(move || {
                    for ask in asks.iter().step_by(4) {
                        let answer = person.send(&person.answer(&ask, &[chosen("fence", &["leave"])]));
                        assert!(matches!(answer.status, 201 | 409), "{}", answer.text());
                        if answer.status == 201 {
                            told.acknowledged.lock().unwrap().push(answer.json());
                        }
                    }
                });
                until(LIMIT, "the clients to be busy", || (told.count() >= before + 30).then_some(()));
                killed.kill();
            });
            assert_eq!(told.unsure.lock().unwrap().len(), CLIENTS, "round {round}");
            told.send_again(&beside);
        }
        until(LIMIT, "every close to be seen", || {
            let seen = seen_at.lock().unwrap();
            acknowledged_at.lock().unwrap().keys().all(|ask_id| seen.contains_key(ask_id)).then_some(())
        });
        drop(ended);
    });

    told.hold_against(&beside);
    let seen_at = seen_at.into_inner().unwrap();
    for (ask_id, at) in acknowledged_at.into_inner().unwrap() {
        let after = seen_at[&ask_id].saturating_duration_since(at);
        assert!(after < SEEN_WITHIN, "the close of {ask_id} was seen after {after:?}");
    }
    // A server that was started anew says the same.
    let fresh = team.serve();
    assert_eq!(team.harness(&fresh).log(), beside.log());
}
