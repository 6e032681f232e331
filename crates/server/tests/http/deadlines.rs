//! What happens when nobody answers.

use chips_protocol::Timestamp;
use serde_json::{Value, json};

use crate::support::{Setup, TestApp, answer, ask, ask_id_of, until, with};

fn ms(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<Timestamp>().unwrap().ms()
}

#[tokio::test]
async fn m09_the_default_is_taken_when_the_time_is_up_and_not_before() {
    let app = TestApp::start().await;
    let mut stream = app.person.stream("/v1/events/stream").await;
    let sent = with(&ask(&app.harness, app.harness.run().await), "/timeout_seconds", 2);
    let asked = app.harness.send(&sent).await.expect(201);
    assert_eq!(stream.event().await.1, asked);
    let (seq, closed) = stream.event().await;
    assert!(ms(&closed["ts"]) >= ms(&asked["ts"]) + 2000, "it fired early");
    assert_eq!(seq, 2);
    assert_eq!(closed["actor"], json!({ "kind": "system", "id": "system" }));
    assert_eq!((&closed["answered_by"], &closed["timed_out"]), (&json!("system"), &json!(true)));
    assert_eq!(closed["answers"], json!([{ "question_id": "window", "values": ["19"] }]));
    let now = app.harness.get(&format!("/v1/asks/{}", ask_id_of(&asked))).await.expect(200);
    assert_eq!((&now["state"], &now["answer"]), (&json!("timed_out"), &closed));
}

#[tokio::test]
async fn what_is_noted_follows_what_the_harness_said_it_would_do() {
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    let run = app.harness.run().await;
    let plain = ask(&app.harness, run);
    let free = with(&plain, "/questions/0/default_value", "whenever it suits");
    let chosen = json!([{ "question_id": "window", "values": ["19"] }]);
    let typed = json!([{ "question_id": "window", "values": [], "free_text": "whenever it suits" }]);
    for (sent, policy, answers) in [
        (&plain, Some("use_default"), &chosen),
        (&plain, Some("cancel"), &json!([])),
        (&plain, Some("continue"), &json!([])),
        (&plain, None, &chosen),
        (&free, Some("use_default"), &typed),
    ] {
        let mut sent = sent.clone();
        for (member, prefix) in [("id", "evt_"), ("ask_id", "qst_"), ("idempotency_key", "key-")] {
            sent[member] = json!(crate::support::id(prefix));
        }
        match policy {
            Some(policy) => sent["on_no_answer"] = json!(policy),
            None => drop(sent.as_object_mut().unwrap().shift_remove("on_no_answer")),
        }
        let asked = app.harness.send(&sent).await.expect(201);
        time.pass_ms(3_600_000);
        let path = format!("/v1/asks/{}", ask_id_of(&asked));
        let now = until(async || {
            let now = app.harness.get(&path).await.expect(200);
            (now["state"] != "open").then_some(now)
        })
        .await;
        assert_eq!(now["state"], "timed_out");
        assert_eq!(&now["answer"]["answers"], answers, "{policy:?}");
    }
}

#[tokio::test]
async fn m10_what_fell_due_while_the_server_was_down_is_closed_at_its_start() {
    let (setup, time) = Setup::by_hand();
    let mut app = TestApp::with(setup).await;
    let asked = app.harness.send(&ask(&app.harness, app.harness.run().await)).await.expect(201);
    app.restart(|| time.pass_ms(5_000_000)).await;
    let mut stream = app.person.stream("/v1/events/stream?after=1").await;
    let (_, closed) = stream.event().await;
    assert!(ms(&closed["ts"]) >= ms(&asked["ts"]) + 3_600_000);
    let problem = app.person.send(&answer(&app.person, &asked, "26")).await.problem(409, "already_closed");
    assert_eq!(problem["answer"], closed);
    assert_eq!(app.person.head_seq().await, 2);
}

#[tokio::test]
async fn m11_a_wall_clock_that_jumps_moves_no_deadline() {
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    let run = app.harness.run().await;
    let sent = with(&ask(&app.harness, run), "/timeout_seconds", 60);
    let asked = app.harness.send(&sent).await.expect(201);
    let start = Timestamp::from_ms(1_790_000_000_000);
    let hours = |count: i64| start.plus_ms(count * 3_600_000);
    let path = format!("/v1/asks/{}", ask_id_of(&asked));
    for wall in [hours(-2), hours(2), hours(-2)] {
        time.set_wall(wall);
        time.pass_ms(15_000);
        let other = app.harness.send(&ask(&app.harness, run)).await.expect(201);
        assert!(ms(&other["ts"]) < ms(&asked["ts"]) + 60_000);
        assert_eq!(app.harness.get(&path).await.expect(200)["state"], "open");
    }
    time.pass_ms(15_000);
    let closed = until(async || {
        let now = app.harness.get(&path).await.expect(200);
        (now["state"] == "timed_out").then_some(now["answer"].clone())
    })
    .await;
    assert_eq!(ms(&closed["ts"]), ms(&asked["ts"]) + 60_000);
    let times: Vec<i64> = app.harness.events().await.iter().map(|event| ms(&event["ts"])).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test]
async fn m16_an_answer_after_the_deadline_gets_what_was_taken() {
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    let asked = app.harness.send(&ask(&app.harness, app.harness.run().await)).await.expect(201);
    time.pass_ms(3_601_000);
    // Whichever comes first, the worker or this write: the deadline decides.
    let problem = app.person.send(&answer(&app.person, &asked, "26")).await.problem(409, "already_closed");
    assert_eq!(problem["answer"]["timed_out"], true);
    assert_eq!(problem["answer"]["answers"][0]["values"], json!(["19"]));
    let now = app.person.get(&format!("/v1/asks/{}", ask_id_of(&asked))).await.expect(200);
    assert_eq!(now["late_answers"][0]["answers"][0]["values"], json!(["26"]));
    assert_eq!(app.person.head_seq().await, 2);
}

#[tokio::test]
async fn thousands_of_deadlines_fire_once_each_and_none_early() {
    const ASKS: usize = 3000;
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    app.admin().set_budget(app.harness_id(), Some(None), Some(None)).unwrap();
    let run = app.harness.run().await;
    let sent: Vec<Value> =
        (0..ASKS).map(|at| with(&ask(&app.harness, run), "/timeout_seconds", 10 + at / 1500)).collect();
    app.append(&sent).await;
    time.pass_ms(9_999);
    app.harness.get("/v1/me").await.expect(200);
    assert_eq!(app.harness.head_seq().await, ASKS as u64, "nothing fired early");
    time.pass_ms(1);
    until(async || (app.harness.head_seq().await == ASKS as u64 + 1500).then_some(())).await;
    time.pass_ms(1_000);
    until(async || (app.harness.head_seq().await == 2 * ASKS as u64).then_some(())).await;
    let open = app.harness.get("/v1/asks?state=open").await.expect(200);
    assert_eq!(open["asks"], json!([]));
    let mut closed = std::collections::HashSet::new();
    let mut after = ASKS as u64;
    while after < 2 * ASKS as u64 {
        let page = app.harness.get(&format!("/v1/events?after={after}&limit=1000")).await.expect(200);
        for event in page["events"].as_array().unwrap() {
            assert!(closed.insert(ask_id_of(event)), "closed twice");
            after = event["seq"].as_u64().unwrap();
        }
    }
    assert_eq!(closed.len(), ASKS);
    assert!(app.harness.get("/metrics").await.text.contains("chips_deadline_lateness_seconds_count 3000\n"));
}

#[tokio::test]
async fn an_answered_ask_does_not_fire() {
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    let run = app.harness.run().await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    app.person.send(&answer(&app.person, &asked, "26")).await.expect(201);
    let second = app.harness.send(&with(&ask(&app.harness, run), "/timeout_seconds", 3601)).await.expect(201);
    time.pass_ms(3_601_000);
    let path = format!("/v1/asks/{}", ask_id_of(&second));
    until(async || (app.harness.get(&path).await.expect(200)["state"] == "timed_out").then_some(())).await;
    assert_eq!(app.harness.head_seq().await, 4, "the later deadline fired and the earlier one did not");
}
