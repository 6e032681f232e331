//! Many deadlines at once.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::scene::{Scene, ms, seq};
use crate::support::{Conn, LIMIT, until};

const ASKS: usize = 2000;

#[test]
fn deadlines_two_thousand_within_three_seconds_all_close_exactly_once() {
    let scene = Scene::new();
    scene.lift_budget();
    let run = scene.harness.open_run();
    let base: i64 = ms(&scene.harness.get(&format!("/v1/runs/{run}")).expect(200)["started_at"]);

    // Each is asked with the time-out that lets it end in the same three seconds, soon.
    let clients = 8;
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (scene, run) = (&scene, &run);
            scope.spawn(move || {
                let mut conn = Conn::open(scene.harness.addr).unwrap();
                let mut now = base;
                for n in (client..ASKS).step_by(clients) {
                    let due = base + 12_000 + (n as i64 * 3000) / ASKS as i64;
                    let mut ask = scene.harness.plain_ask(run);
                    ask["timeout_seconds"] = json!((due - now).max(1) as f64 / 1000.0);
                    let request = scene.harness.event_request(ask.to_string());
                    now = ms(&conn.send(&request).unwrap().expect(201)["ts"]);
                }
            });
        }
    });

    until(LIMIT * 2, "every ask to close", || (scene.harness.head() == 2 * ASKS as u64).then_some(()));
    let log = scene.harness.log();
    let mut deadlines = BTreeMap::new();
    let mut late = Vec::new();
    for event in &log {
        let ask_id = event["ask_id"].as_str().unwrap();
        if event["type"] == "question.ask" {
            let timeout = (event["timeout_seconds"].as_f64().unwrap() * 1000.0).ceil() as i64;
            deadlines.insert(ask_id, ms(&event["ts"]) + timeout);
        } else {
            let deadline = deadlines.remove(ask_id).expect("one close for each ask, after it");
            assert_eq!(event["timed_out"], true);
            late.push(ms(&event["answered_at"]) - deadline);
        }
    }
    assert!(deadlines.is_empty());
    assert!(late.iter().all(|late| *late >= 0), "some closed early: {:?}", late.iter().min());
    assert!(log.iter().map(seq).eq(1..=2 * ASKS as u64));
    late.sort_unstable();
    println!(
        "{ASKS} deadlines in 3 s, ms late: p50 {}, p99 {}, most {}",
        late[ASKS / 2],
        late[ASKS * 99 / 100],
        late[ASKS - 1]
    );
}
