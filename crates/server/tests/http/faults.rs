//! When the store can't write: for a while, and for good.

use chips_server::Ended;
use serde_json::{Value, json};

use crate::support::{Reply, Setup, TestApp, answer, ask, ask_id_of, until, with, within};

#[tokio::test]
async fn m35_a_full_disk_refuses_writes_until_there_is_room_and_reading_goes_on() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let path = format!("/v1/asks/{}", ask_id_of(&asked));
    app.store.rehearsal().full(true);
    // What fits into pages that are there already is still written, so it takes some writes to meet the end.
    let large = || with(&ask(&app.harness, run), "/questions/0/prompt", "x".repeat(4000));
    let refused = until(async || {
        let sent = large();
        let reply = app.harness.send(&sent).await;
        (reply.status != 201).then_some((sent, reply))
    });
    let (sent, reply) = refused.await;
    reply.problem(503, "unavailable");
    assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    app.harness.get(&path).await.expect(200);
    let head = app.harness.head_seq().await;
    let ready = app.harness.get("/readyz").await;
    if ready.status != 200 {
        ready.problem(503, "unavailable");
    }

    app.store.rehearsal().full(false);
    app.harness.send(&sent).await.expect(201);
    assert_eq!(app.harness.head_seq().await, head + 1, "nothing of the refused write was there");
    assert_eq!(app.harness.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a_store_that_can_t_be_written_is_not_ready_says_why_and_is_ready_again_by_itself() {
    let app = TestApp::start().await;
    app.store.rehearsal().read_only(true);
    let reply = app.harness.get("/readyz").await;
    let problem = reply.problem(503, "unavailable");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("the data folder can't be written") && !detail.contains('\n'), "{detail}");
    assert_eq!(reply.header("retry-after"), Some("5"));
    assert_eq!(app.harness.get("/healthz").await.text, "ok\n");
    let figures = app.harness.get("/metrics").await.text;
    assert!(figures.contains("\nchips_store_writable 0\n"), "{figures}");
    // Who asks whether it is ready was not turned away.
    assert!(figures.contains("\nchips_http_problems_total{code=\"unavailable\"} 0\n"), "{figures}");

    app.store.rehearsal().read_only(false);
    assert_eq!(app.harness.get("/readyz").await.text, "ready\n");
    assert!(app.harness.get("/metrics").await.text.contains("\nchips_store_writable 1\n"));
}

#[tokio::test]
async fn a_deadline_that_could_not_be_written_is_written_once_there_is_room() {
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    let run = app.harness.run().await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    app.store.rehearsal().full_at_commit(1);
    time.pass_ms(3_600_000);
    let path = format!("/v1/asks/{}", ask_id_of(&asked));
    until(async || (app.person.get(&path).await.expect(200)["state"] == "timed_out").then_some(())).await;
    assert_eq!(app.person.head_seq().await, 2);
}

#[tokio::test]
async fn a_failed_fsync_ends_the_server_and_promises_nothing() {
    let mut app = TestApp::start().await;
    let run = app.harness.run().await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let mut stream = app.person.stream("/v1/events/stream?after=1").await;
    app.store.rehearsal().fsync_fails();
    let request = app.person.request(reqwest::Method::POST, "/v1/events").json(&answer(&app.person, &asked, "19"));
    let reply = Reply::to(request).await;
    let problem = reply.problem(503, "unavailable");
    assert!(problem["detail"].as_str().unwrap().contains("unknown"), "{problem}");
    assert_eq!(within(stream.rest()).await, Vec::<Value>::new());
    assert!(matches!(app.ended().await, Ended::Failed(_)));
    app.restart_after_end().await;
    let now = app.person.get(&format!("/v1/asks/{}", ask_id_of(&asked))).await.expect(200);
    assert!([json!("open"), json!("answered")].contains(&now["state"]));
}
