//! Power cuts: M32.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::support::events::chosen;
use crate::support::scene::{Scene, seq};
use crate::support::{Conn, LIMIT, Serve, until};

const CLIENTS: usize = 16;

#[test]
fn m32_a_kill_while_sixteen_clients_write_loses_nothing_that_was_acknowledged() {
    let mut scene = Scene::new();
    scene.lift_budget();
    let run = scene.harness.open_run();
    let acknowledged: Mutex<Vec<Value>> = Mutex::default();

    for round in 1..=3 {
        // What each client sent last and got no answer to.
        let unsure: Mutex<Vec<Value>> = Mutex::default();
        let count = AtomicUsize::new(0);
        let harness = scene.harness.clone();
        scene = std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                let (harness, run, acknowledged, unsure, count) = (&harness, &run, &acknowledged, &unsure, &count);
                scope.spawn(move || {
                    let mut conn = Conn::open(harness.addr).unwrap();
                    let mut open: Option<Value> = None;
                    loop {
                        let event = match open.take() {
                            Some(ask) => harness.answer(&ask, &[chosen("fence", &["paint"])]),
                            None => harness.plain_ask(run),
                        };
                        match conn.send(&harness.event_request(event.to_string())) {
                            Ok(answer) => {
                                let stored = answer.expect(201);
                                if stored["type"] == "question.ask" {
                                    open = Some(stored.clone());
                                }
                                acknowledged.lock().unwrap().push(stored);
                                count.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(_) => return unsure.lock().unwrap().push(event),
                        }
                    }
                });
            }
            until(LIMIT, "the clients to be busy", || (count.load(Ordering::Relaxed) > 150).then_some(()));
            scene.restart(Serve::kill)
        });

        let log: HashMap<u64, Value> = scene.harness.log().into_iter().map(|event| (seq(&event), event)).collect();
        let head = scene.harness.head();
        assert!((1..=head).all(|seq| log.contains_key(&seq)), "round {round}: no gap up to {head}");
        assert_eq!(log.len() as u64, head);
        for event in acknowledged.lock().unwrap().iter() {
            assert_eq!(log.get(&seq(event)), Some(event), "round {round}");
        }

        // Sent again, what nobody knew the outcome of is in the log once.
        let unsure = unsure.into_inner().unwrap();
        assert_eq!(unsure.len(), CLIENTS);
        for event in &unsure {
            let again = scene.harness.send(event);
            let known = log.values().any(|logged| logged["id"] == event["id"]);
            assert_eq!(again.status, if known { 200 } else { 201 }, "{}", again.text());
            acknowledged.lock().unwrap().push(again.json());
        }
    }

    let log = scene.harness.log();
    let ids: std::collections::HashSet<_> = log.iter().map(|event| event["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), log.len(), "no event stands twice");
    assert_eq!(log.len(), acknowledged.lock().unwrap().len(), "and there are no others");
}

#[test]
fn a_stop_while_clients_write_answers_each_write_or_has_not_taken_it() {
    let mut scene = Scene::new();
    scene.lift_budget();
    let run = scene.harness.open_run();
    let (acknowledged, unsure): (Mutex<Vec<Value>>, Mutex<Vec<Value>>) = Default::default();
    let harness = scene.harness.clone();
    scene = std::thread::scope(|scope| {
        for _ in 0..4 {
            let (harness, run, acknowledged, unsure) = (&harness, &run, &acknowledged, &unsure);
            scope.spawn(move || {
                let mut conn = Conn::open(harness.addr).unwrap();
                loop {
                    let event = harness.plain_ask(run);
                    let request = harness.event_request(event.to_string());
                    match conn.send(&request) {
                        Ok(answer) if answer.status == 201 => acknowledged.lock().unwrap().push(answer.json()),
                        _ => return unsure.lock().unwrap().push(event),
                    }
                }
            });
        }
        until(LIMIT, "the clients to be busy", || (acknowledged.lock().unwrap().len() > 50).then_some(()));
        scene.restart(Serve::stop)
    });
    let log = scene.harness.log();
    for event in acknowledged.lock().unwrap().iter() {
        assert!(log.contains(event));
    }
    // Nothing was written behind a client's back: writes in flight finish before the connections end.
    assert_eq!(log.len(), acknowledged.lock().unwrap().len());
    for event in unsure.lock().unwrap().iter() {
        scene.harness.send(event).expect(201);
    }
}
