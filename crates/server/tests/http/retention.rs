//! A log that has lost its beginning: what older cursors are told.

use std::time::Duration;

use chips_protocol::api::AskState;
use chips_store::DropPlace;
use serde_json::{Value, json};

use crate::support::{Frame, Setup, TestApp, ask, ask_id_of, until, with, within};

const DAY_MS: i64 = 86_400_000;

/// Asks and withdraws.
async fn withdrawn(app: &TestApp) -> Value {
    let run = app.harness.run().await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let mut answer = app.harness.envelope("question.answered", run);
    (answer["ask_id"], answer["answers"]) = (asked["ask_id"].clone(), json!([]));
    app.harness.send(&answer).await.expect(201);
    asked
}

/// Drops everything that is older than two days.
async fn drop_old(app: &TestApp) {
    let before = app.store.clock().now().plus_ms(-2 * DAY_MS);
    let mut place = Some(DropPlace::default());
    while let Some(at) = place {
        place = within(app.store.drop_older(before, at)).await.unwrap().1;
    }
}

#[tokio::test]
async fn a_cursor_that_is_older_than_what_is_kept_is_told_so_and_how_to_go_on() {
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    let old = withdrawn(&app).await;
    time.pass_ms(3 * DAY_MS);
    let young = withdrawn(&app).await;
    drop_old(&app).await;

    for path in ["/v1/events?after=0", "/v1/events?after=1", "/v1/events/stream?after=0", "/v1/events/stream?after=1"] {
        let problem = app.person.get(path).await.problem(410, "cursor_gone");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("up to 2 are not kept") && detail.contains("after=2"), "{path}: {detail}");
    }
    let resumed = app.person.request(reqwest::Method::GET, "/v1/events/stream").header("last-event-id", "1");
    crate::support::Reply::to(resumed).await.problem(410, "cursor_gone");
    let filtered = format!("/v1/events?after=0&ask_id={}", ask_id_of(&young));
    app.person.get(&filtered).await.problem(410, "cursor_gone");

    // What it is told leads on, and so does a page without a cursor.
    for path in ["/v1/events?after=2", "/v1/events"] {
        let page = app.person.get(path).await.expect(200);
        assert_eq!((page["events"][0].clone(), page["head"].clone()), (young.clone(), json!(4)), "{path}");
    }
    assert_eq!(app.person.get("/v1/events?after=3").await.expect(200)["events"][0]["seq"], 4);
    assert_eq!(app.person.get("/v1/events?after=4").await.expect(200)["events"], json!([]));
    app.person.get("/v1/events?after=5").await.problem(410, "cursor_ahead");
    let mut stream = app.person.stream("/v1/events/stream?after=2").await;
    assert_eq!(stream.event().await, (3, young.clone()));

    app.person.get(&format!("/v1/asks/{}", ask_id_of(&old))).await.problem(404, "not_found");
    let page = app.person.get("/v1/asks").await.expect(200);
    assert_eq!((page["asks"].as_array().unwrap().len(), page["head"].clone()), (1, json!(4)));
    // A write of before is a new one: its key went with its event.
    let again = app.harness.send(&with(&old, "/seq", Value::Null)).await;
    assert_eq!(again.status, 422);
}

#[tokio::test]
async fn an_open_stream_that_falls_behind_what_is_kept_ends_and_is_told_so_when_it_resumes() {
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    let run = app.harness.run().await;
    // More than the connection takes by itself.
    let long = "x".repeat(4_000);
    let question = |nth: usize| {
        json!({
            "question_id": format!("q{nth}"), "prompt": long,
            "options": [{"value": "a", "label": "A", "description": "x".repeat(2_000)}, {"value": "b", "label": "B"}],
        })
    };
    let mut events = Vec::new();
    for _ in 0..500 {
        let mut event = ask(&app.harness, run);
        event["questions"] = (0..4).map(question).collect();
        (event["on_no_answer"], event["timeout_seconds"]) = (json!("cancel"), json!(60));
        events.push(event);
    }
    app.admin().set_budget(app.harness_id(), Some(None), Some(None)).unwrap();
    app.append(&events).await;
    let mut stream = app.person.stream("/v1/events/stream?after=0&type=question.ask").await;
    assert_eq!(stream.next().await, Some(Frame::Retry(1000)));
    time.pass_ms(3 * DAY_MS);
    until(async || {
        let open = app.person.get("/v1/asks?state=open&limit=1").await.expect(200);
        (open["asks"] == json!([])).then_some(())
    })
    .await;
    time.pass_ms(3 * DAY_MS);
    drop_old(&app).await;
    assert_eq!(app.store.kept_from(app.person.workspace_id), 1_001);

    let read = stream.rest().await;
    assert!(!read.is_empty() && read.len() < 500, "{} were read", read.len());
    assert!(read.iter().zip(1..).all(|(event, seq)| event["seq"] == seq), "no gap before the end");
    let last = read.len().to_string();
    let resumed = app.person.request(reqwest::Method::GET, "/v1/events/stream").header("last-event-id", last);
    crate::support::Reply::to(resumed).await.problem(410, "cursor_gone");
}

#[tokio::test]
async fn a_server_that_is_told_to_drops_at_its_start_what_is_older() {
    let (mut setup, time) = Setup::by_hand();
    setup.config.retain = Some(Duration::from_secs(30 * 86_400));
    let mut app = TestApp::with(setup).await;
    let old = withdrawn(&app).await;
    let run = app.harness.run().await;
    let mut event = ask(&app.harness, run);
    for field in ["timeout_seconds", "on_no_answer"] {
        event.as_object_mut().unwrap().remove(field);
    }
    let open = app.harness.send(&event).await.expect(201);
    time.pass_ms(31 * DAY_MS);
    withdrawn(&app).await;
    app.restart(|| {}).await;
    let problem = until(async || {
        let page = app.person.get("/v1/events?after=0").await;
        (page.status == 410).then_some(page)
    })
    .await;
    problem.problem(410, "cursor_gone");
    // What was cut off is deleted a step later.
    let path = format!("/v1/asks/{}", ask_id_of(&old));
    until(async || (app.person.get(&path).await.status == 404).then_some(())).await;
    let shown = app.person.get(&format!("/v1/asks/{}", ask_id_of(&open))).await.expect(200);
    assert_eq!(shown["state"], json!(AskState::Open));
    let log = app.person.events().await;
    assert_eq!(log.iter().map(|event| event["seq"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 4, 5]);
}
