//! How many questions a harness may put to people.

use serde_json::json;

use crate::support::{Setup, TestApp, answer, ask, fault, id, with};

#[tokio::test]
async fn open_asks_are_limited_and_an_answer_makes_room() {
    let app = TestApp::start().await;
    app.admin().set_budget(app.harness_id(), Some(Some(2)), None).unwrap();
    let run = app.harness.run().await;
    let first = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let second = ask(&app.harness, run);
    app.harness.send(&second).await.expect(201);
    let third = ask(&app.harness, run);
    let refused = app.harness.send(&third).await;
    refused.problem(429, "over_budget");
    assert_eq!(refused.header("retry-after"), Some("5"));
    app.harness.send(&second).await.expect(200);
    assert_eq!(
        app.harness.send(&with(&ask(&app.harness, run), "/v", 2)).await.faults(),
        [fault("/v", "unsupported_version")]
    );
    app.person.send(&answer(&app.person, &first, "19")).await.expect(201);
    app.harness.send(&third).await.expect(201);
    // Another harness has a budget of its own.
    let others = app.other_harness.run().await;
    app.other_harness.send(&ask(&app.other_harness, others)).await.expect(201);
}

#[tokio::test]
async fn asks_of_an_hour_are_limited_and_the_wait_is_true() {
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    app.admin().set_budget(app.harness_id(), None, Some(Some(2))).unwrap();
    let run = app.harness.run().await;
    for _ in 0..2 {
        let sent = with(&ask(&app.harness, run), "/timeout_seconds", 31_536_000);
        app.harness.send(&sent).await.expect(201);
        time.pass_ms(1_000_000);
    }
    let third = with(&ask(&app.harness, run), "/timeout_seconds", 31_536_000);
    let refused = app.harness.send(&third).await;
    refused.problem(429, "over_budget");
    assert_eq!(refused.header("retry-after"), Some("1600"));
    time.pass_ms(1_600_000);
    app.harness.send(&third).await.expect(201);
}

#[tokio::test]
async fn h05_a_thousand_agents_are_one_harness() {
    let app = TestApp::start().await;
    app.admin().set_budget(app.harness_id(), Some(Some(10)), None).unwrap();
    let run = app.harness.run().await;
    let mut taken = 0;
    for _ in 0..1000 {
        let agent = json!({ "kind": "agent", "id": id("agt_") });
        let reply = app.harness.send(&with(&ask(&app.harness, run), "/actor", agent)).await;
        match reply.status {
            201 => taken += 1,
            _ => drop(reply.problem(429, "over_budget")),
        }
    }
    assert_eq!(taken, 10);
}
