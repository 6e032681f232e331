//! `GET /v1/asks/ASK_ID?wait=SECONDS`

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Raw, Reply, Setup, TestApp, answer, ask, ask_id_of, id, until, within};

/// Longer than any overlap, from whichever clock it is counted.
const YEAR_MS: i64 = 365 * 24 * 3_600_000;

/// Begins a wait and returns once the server knows of it.
async fn waiting(app: &TestApp, of: &crate::support::Actor, path: &str) -> tokio::task::JoinHandle<Reply> {
    let before = waiters(app).await;
    let (of, path) = (of.clone(), path.to_owned());
    let wait = tokio::spawn(async move { of.get(&path).await });
    until(async || (waiters(app).await > before).then_some(())).await;
    wait
}

async fn waiters(app: &TestApp) -> u64 {
    let metrics = app.person.get("/metrics").await.text;
    metrics.lines().find_map(|line| line.strip_prefix("chips_waiters ")).unwrap().parse().unwrap()
}

async fn asked(app: &TestApp) -> (Value, String) {
    let run = app.harness.run().await;
    let stored = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let path = format!("/v1/asks/{}?wait=300", ask_id_of(&stored));
    (stored, path)
}

#[tokio::test]
async fn it_returns_as_soon_as_the_ask_is_closed() {
    let app = TestApp::start().await;
    let (stored, path) = asked(&app).await;
    let harness = waiting(&app, &app.harness, &path).await;
    let person = waiting(&app, &app.colleague, &path).await;
    let answered = app.person.send(&answer(&app.person, &stored, "26")).await.expect(201);
    for wait in [harness, person] {
        let ask = within(wait).await.unwrap().expect(200);
        assert_eq!((&ask["state"], &ask["answer"]), (&json!("answered"), &answered));
    }
    let at_once = app.harness.get(&path).await.expect(200);
    assert_eq!(at_once["answer"], answered);
    assert_eq!(waiters(&app).await, 0);
    assert!(at_once["delivered_at"].is_string() || at_once["delivered_at"].is_null());
    let plain = path.trim_end_matches("?wait=300");
    until(async || app.person.get(plain).await.expect(200)["delivered_at"].is_string().then_some(())).await;
}

#[tokio::test]
async fn it_returns_the_ask_as_it_stands_when_the_time_is_up() {
    let app = TestApp::start().await;
    let (_, path) = asked(&app).await;
    for wait in ["wait=0", "wait=1", ""] {
        let ask = app.harness.get(&path.replace("wait=300", wait)).await.expect(200);
        assert_eq!(ask["state"], "open");
    }
}

#[tokio::test]
async fn nobody_waits_for_what_they_may_not_see() {
    let app = TestApp::start().await;
    let (_, path) = asked(&app).await;
    app.other_harness.get(&path).await.problem(404, "not_found");
    app.foreign_person.get(&path).await.problem(404, "not_found");
    app.harness.get(&format!("/v1/asks/{}?wait=300", id("qst_"))).await.problem(404, "not_found");
}

#[tokio::test]
async fn head_never_waits() {
    let app = TestApp::start().await;
    let (_, path) = asked(&app).await;
    let reply = app.harness.head(&path).await;
    assert_eq!((reply.status, reply.text.as_str()), (200, ""));
}

#[tokio::test]
async fn the_end_of_the_run_ends_the_wait() {
    let app = TestApp::start().await;
    let (stored, path) = asked(&app).await;
    let wait = waiting(&app, &app.harness, &path).await;
    let run = stored["run_id"].as_str().unwrap();
    app.harness.post_empty(&format!("/v1/runs/{run}/end")).await.expect(200);
    assert_eq!(within(wait).await.unwrap().expect(200)["state"], "withdrawn");
}

#[tokio::test]
async fn the_end_of_the_token_ends_the_wait() {
    let app = TestApp::start().await;
    let (_, path) = asked(&app).await;
    let wait = waiting(&app, &app.harness, &path).await;
    let kept = waiting(&app, &app.person, &path).await;
    app.admin().disable(app.harness.id).unwrap();
    within(wait).await.unwrap().problem(401, "unauthenticated");
    assert_eq!(waiters(&app).await, 1);
    kept.abort();
}

#[tokio::test]
async fn a_token_that_ended_by_itself_gets_no_answer() {
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    let (_, path) = asked(&app).await;
    app.admin().rotate(app.harness.id, Some(60_000)).unwrap();
    let wait = waiting(&app, &app.harness, &path).await;
    // The deadline passes too: the ask closes, and its answer is nobody's any more who holds the old token.
    time.pass_ms(YEAR_MS);
    within(wait).await.unwrap().problem(401, "unauthenticated");
}

#[tokio::test]
async fn the_loss_of_the_right_to_see_it_ends_the_wait() {
    let app = TestApp::start().await;
    let run = app.harness.run_in(app.closed_space).await;
    let stored = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let wait = waiting(&app, &app.person, &format!("/v1/asks/{}?wait=300", ask_id_of(&stored))).await;
    app.admin().set_member(app.closed_space, app.person.id.to_string().parse().unwrap(), false).unwrap();
    within(wait).await.unwrap().problem(404, "not_found");
}

#[tokio::test]
async fn a_client_that_hangs_up_is_waited_for_no_longer() {
    let app = TestApp::start().await;
    let (_, path) = asked(&app).await;
    let mut raw = Raw::connect(app.address).await;
    raw.send(format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        app.address, app.harness.token
    ))
    .await;
    until(async || (waiters(&app).await == 1).then_some(())).await;
    drop(raw);
    until(async || (waiters(&app).await == 0).then_some(())).await;
}

#[tokio::test]
async fn a_wait_keeps_the_lease_of_its_run() {
    let app = TestApp::with(Setup::default()).await;
    let run = app.harness.run_with(json!({ "lease_seconds": 1 })).await;
    let stored = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let path = format!("/v1/asks/{}", ask_id_of(&stored));
    let wait = waiting(&app, &app.harness, &format!("{path}?wait=300")).await;
    let until_ms = async || {
        let lease = app.person.get(&format!("/v1/runs/{run}")).await.expect(200)["lease_until"].clone();
        lease.as_str().unwrap().parse::<chips_protocol::Timestamp>().unwrap().ms()
    };
    let first = until_ms().await;
    let two_leases = Duration::from_secs(2).as_millis() as i64;
    until(async || (until_ms().await > first + two_leases).then_some(())).await;
    assert!(!app.person.get(&path).await.expect(200)["asker_gone"].as_bool().unwrap());
    app.person.send(&answer(&app.person, &stored, "19")).await.expect(201);
    within(wait).await.unwrap().expect(200);
}
