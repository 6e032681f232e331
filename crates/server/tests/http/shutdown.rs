//! How a server ends.

use std::time::Duration;

use chips_server::Ended;
use serde_json::Value;

use crate::support::{Raw, Setup, TestApp, answer, ask, ask_id_of, until, within};

#[tokio::test]
async fn streams_and_waits_end_and_the_server_with_them() {
    let mut app = TestApp::start().await;
    let run = app.harness.run().await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let mut stream = app.person.stream("/v1/events/stream?after=0").await;
    assert_eq!(stream.event().await.1, asked);
    let harness = app.harness.clone();
    let path = format!("/v1/asks/{}?wait=300", ask_id_of(&asked));
    let wait = tokio::spawn(async move { harness.get(&path).await });
    until(async || app.person.get("/metrics").await.text.contains("chips_waiters 1\n").then_some(())).await;
    let idle = Raw::connect(app.address).await;
    app.stop();
    assert_eq!(stream.rest().await, Vec::<Value>::new());
    assert_eq!(within(wait).await.unwrap().expect(200)["state"], "open");
    drop(idle);
    assert!(matches!(app.ended().await, Ended::Stopped));
    assert!(tokio::net::TcpStream::connect(app.address).await.is_err(), "nobody is let in any more");
}

#[tokio::test]
async fn writes_in_flight_are_answered() {
    let mut app = TestApp::start().await;
    let run = app.harness.run().await;
    let sent: Vec<Value> = (0..64).map(|_| ask(&app.harness, run)).collect();
    let writes: Vec<_> = sent
        .iter()
        .cloned()
        .map(|event| {
            let harness = app.harness.clone();
            tokio::spawn(async move {
                harness
                    .request(reqwest::Method::POST, "/v1/events")
                    .json(&event)
                    .send()
                    .await
                    .map(|reply| reply.status())
            })
        })
        .collect();
    until(async || (*app.store.head(app.harness.workspace_id).borrow() > 0).then_some(())).await;
    app.stop();
    assert!(matches!(app.ended().await, Ended::Stopped));
    let mut acknowledged = Vec::new();
    for (write, event) in writes.into_iter().zip(&sent) {
        // One that came too late was refused its connection, and nothing was promised.
        if let Ok(status) = within(write).await.unwrap() {
            assert_eq!(status, 201);
            acknowledged.push(event);
        }
    }
    assert!(!acknowledged.is_empty());
    app.restart_after_end().await;
    for event in acknowledged {
        app.harness.send(event).await.expect(200);
    }
}

#[tokio::test]
async fn a_peer_that_will_not_end_is_cut_off() {
    let setup = Setup::limited(|limits| {
        limits.drain = Duration::from_millis(300);
        limits.header = Duration::from_secs(3600);
        limits.stalled_write = Duration::from_secs(3600);
    });
    let mut app = TestApp::with(setup).await;
    let mut raw = Raw::connect(app.address).await;
    raw.send("GET /v1/me HTTP/1.1\r\nHost: ").await;
    app.harness.get("/v1/me").await.expect(200);
    app.stop();
    assert!(matches!(app.ended().await, Ended::Stopped));
    raw.closed().await;
}

#[tokio::test]
async fn after_a_restart_everything_is_where_it_was() {
    let mut app = TestApp::start().await;
    let run = app.harness.run().await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let log = app.harness.get("/v1/events").await.expect(200)["log"].clone();
    app.restart(|| {}).await;
    let page = app.harness.get("/v1/events").await.expect(200);
    assert_eq!((&page["events"][0], &page["log"]), (&asked, &log));
    let answered = app.person.send(&answer(&app.person, &asked, "19")).await.expect(201);
    assert_eq!(answered["seq"], 2);
}
