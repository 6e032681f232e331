//! `GET /v1/me`: who a token speaks for.

use serde_json::{Value, json};

use crate::support::{TestApp, ask};

fn space_ids(me: &Value) -> Vec<Value> {
    me["spaces"].as_array().unwrap().iter().map(|space| space["id"].clone()).collect()
}

#[tokio::test]
async fn a_harness_sees_every_space_and_its_budget() {
    let app = TestApp::start().await;
    let me = app.harness.get("/v1/me").await.expect(200);
    assert_eq!(me["workspace_id"], json!(app.harness.workspace_id));
    assert_eq!(me["participant"]["id"], json!(app.harness.id));
    assert_eq!(me["participant"]["kind"], "harness");
    let spaces = space_ids(&me);
    assert!(spaces.contains(&json!(app.space)) && spaces.contains(&json!(app.closed_space)));
    assert_eq!(me["budget"], json!({ "open": 0, "open_limit": 100, "hour": 0, "hour_limit": 600 }));
    let run = app.harness.run().await;
    app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let me = app.harness.get("/v1/me").await.expect(200);
    assert_eq!(me["budget"], json!({ "open": 1, "open_limit": 100, "hour": 1, "hour_limit": 600 }));
}

#[tokio::test]
async fn a_person_sees_the_spaces_they_are_in_and_has_no_budget() {
    let app = TestApp::start().await;
    let me = app.person.get("/v1/me").await.expect(200);
    assert!(space_ids(&me).contains(&json!(app.closed_space)));
    assert_eq!(me.get("budget"), None);
    let colleague = app.colleague.get("/v1/me").await.expect(200);
    assert_eq!(colleague["participant"], json!({ "kind": "person", "id": app.colleague.id, "name": "Colleague" }));
    assert_eq!(space_ids(&colleague), [json!(app.space)]);
    app.person.get("/v1/me?verbose=1").await.problem(400, "bad_query");
}
