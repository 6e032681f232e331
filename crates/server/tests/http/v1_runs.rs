//! `/v1/runs`: opening a run, looking at it, ending it.

use serde_json::{Value, json};

use crate::support::{TestApp, ask, ask_id_of, fault, id};

#[tokio::test]
async fn a_run_is_opened_with_what_is_said_of_it() {
    let app = TestApp::start().await;
    let parent = app.harness.run().await;
    let said = json!({
        "run_id": id("run_"),
        "space_id": app.space,
        "title": "Confirm the delivery",
        "url": "https://ci.example.com/1",
        "labels": { "team": "billing" },
        "parent_run_id": parent,
        "lease_seconds": 60,
    });
    let run = app.harness.post("/v1/runs", &said).await.expect(201);
    for (member, value) in said.as_object().unwrap() {
        assert_eq!(&run[member], value, "{member}");
    }
    assert_eq!((&run["state"], &run["ended_at"]), (&json!("live"), &Value::Null));
    assert_eq!(run["harness_id"], json!(app.harness.id));
    assert!(run["lease_until"].as_str() > run["started_at"].as_str());
    let path = format!("/v1/runs/{}", run["run_id"].as_str().unwrap());
    assert_eq!(app.person.get(&path).await.expect(200), run);

    let bare = app.harness.post("/v1/runs", &json!({})).await.expect(201);
    assert!(bare["run_id"].as_str().unwrap().starts_with("run_"));
    for absent in ["space_id", "title", "url", "parent_run_id", "ended_at", "lease_seconds", "lease_until"] {
        assert_eq!(bare[absent], Value::Null, "{absent}");
    }
    assert_eq!(bare["labels"], json!({}));
}

#[tokio::test]
async fn the_same_run_again_is_the_run_as_it_was_opened() {
    let app = TestApp::start().await;
    let run_id = id("run_");
    let first = app.harness.post("/v1/runs", &json!({ "run_id": run_id, "title": "one" })).await.expect(201);
    let again = app.harness.post("/v1/runs", &json!({ "run_id": run_id, "title": "two" })).await.expect(200);
    assert_eq!(again, first, "the first fields stand");
    app.other_harness.post("/v1/runs", &json!({ "run_id": run_id })).await.problem(409, "run_id_conflict");
    app.foreign_harness.post("/v1/runs", &json!({ "run_id": run_id })).await.expect(201);
}

#[tokio::test]
async fn what_can_not_be_opened_says_why() {
    let app = TestApp::start().await;
    let others = app.other_harness.run().await;
    for (body, pointer, code) in [
        (json!({ "space_id": app.foreign_space }), "/space_id", "unknown_space"),
        (json!({ "space_id": id("spc_") }), "/space_id", "unknown_space"),
        (json!({ "parent_run_id": others }), "/parent_run_id", "unknown_run"),
        (json!({ "run_id": "x" }), "/run_id", "bad_id"),
        (json!({ "titel": "x" }), "/titel", "unknown_field"),
        (json!({ "title": null }), "/title", "wrong_type"),
        (json!({ "lease_seconds": 0 }), "/lease_seconds", "out_of_range"),
        (json!({ "labels": [] }), "/labels", "wrong_type"),
    ] {
        assert_eq!(app.harness.post("/v1/runs", &body).await.faults(), [fault(pointer, code)]);
    }
    app.person.post("/v1/runs", &json!({})).await.problem(403, "wrong_sender");
    app.harness.post_text("/v1/runs", "").await.problem(400, "malformed_json");
    app.harness.post_empty("/v1/runs").await.problem(415, "unsupported_media_type");
    app.harness.post("/v1/runs?x=1", &json!({})).await.problem(400, "bad_query");
    // A harness may open runs in any space of its workspace.
    app.harness.post("/v1/runs", &json!({ "space_id": app.closed_space })).await.expect(201);
}

#[tokio::test]
async fn the_end_of_a_run_withdraws_its_open_asks_once() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let other = app.harness.run().await;
    let first = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let second = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let kept = app.harness.send(&ask(&app.harness, other)).await.expect(201);
    let path = format!("/v1/runs/{run}/end");
    let ended = app.harness.post_empty(&path).await.expect(200);
    assert_eq!(ended["state"], "ended");
    assert!(ended["ended_at"].is_string());
    assert_eq!(app.harness.head_seq().await, 5);
    assert_eq!(app.harness.post_text(&path, "[not json").await.expect(200), ended, "twice is a no-op");
    assert_eq!(app.harness.head_seq().await, 5);
    for closed in [&first, &second] {
        let now = app.person.get(&format!("/v1/asks/{}", ask_id_of(closed))).await.expect(200);
        assert_eq!(now["state"], "withdrawn");
        assert_eq!(now["answer"]["actor"], json!({ "kind": "system", "id": "system" }));
        assert_eq!(now["answer"]["answered_by"], json!(app.harness.id));
        assert_eq!(now["answer"]["answers"], json!([]));
    }
    let now = app.person.get(&format!("/v1/asks/{}", ask_id_of(&kept))).await.expect(200);
    assert_eq!(now["state"], "open");
    app.harness.send(&ask(&app.harness, run)).await.problem(409, "run_ended");
}

#[tokio::test]
async fn a_run_is_its_harness_s_to_end_and_to_see() {
    let app = TestApp::start().await;
    let run = app.harness.run_in(app.closed_space).await;
    let path = format!("/v1/runs/{run}");
    let end = format!("{path}/end");
    app.person.get(&path).await.expect(200);
    app.person.post_empty(&end).await.problem(403, "wrong_sender");
    for other in [&app.colleague, &app.other_harness, &app.foreign_harness, &app.foreign_person] {
        app_refuses(other, &path, &end).await;
    }
    app.harness.get(&format!("/v1/runs/{}", id("run_"))).await.problem(404, "not_found");
    app.harness.post_empty(&format!("/v1/runs/{}/end", id("run_"))).await.problem(404, "not_found");
    app.harness.get("/v1/runs").await.problem(405, "method_not_allowed");
}

async fn app_refuses(other: &crate::support::Actor, path: &str, end: &str) {
    other.get(path).await.problem(404, "not_found");
    other.post_empty(end).await.problem(404, "not_found");
}
