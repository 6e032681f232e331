//! Looking changes nothing.

use chips_store::SignInState;
use reqwest::Method;
use serde_json::json;

use crate::support::{App, Browser, link_sha256, plain, question};

#[tokio::test]
async fn no_get_and_no_head_changes_anything() {
    let app = App::start().await;
    let open = app.ask(plain()).await;
    let closed = app.ask(json!({ "questions": [question("a", "Done?", json!({}))] })).await;
    app.settle(closed, json!([{ "question_id": "a", "values": ["19"] }])).await;
    let kim = app.kim().await;
    let other = app.kim().await;
    let way_in = app.way_in(app.kim);
    let before = (app.head(), sessions(&kim).await);
    let run_id = app.read(open).await.ask.envelope.run_id;
    for path in [
        "/".to_owned(),
        "/?before=x&utm_source=y".to_owned(),
        format!("/asks/{open}"),
        format!("/asks/{open}?q0=0"),
        format!("/asks/{closed}"),
        format!("/fragments/asks/{open}?view=page"),
        "/fragments/list".to_owned(),
        "/history?q=x&state=answered&before=0.0.1".to_owned(),
        format!("/runs/{run_id}"),
        "/settings".to_owned(),
        "/settings/sessions/end".to_owned(),
        "/settings/sessions/end-others".to_owned(),
        "/sign-in".to_owned(),
        format!("/sign-in/{}", way_in.secret),
        "/sign-out".to_owned(),
        "/manifest.webmanifest".to_owned(),
    ] {
        for method in [Method::GET, Method::HEAD, Method::GET] {
            let page = kim.request(method.clone(), &path, &[("purpose", "prefetch")], None).await;
            assert!(!page.status.is_server_error(), "{method} {path}: {}", page.status);
            if method == Method::HEAD {
                assert_eq!(page.body, "");
            }
        }
    }
    assert_eq!((app.head(), sessions(&kim).await), before);
    assert_eq!(other.get("/").await.status, reqwest::StatusCode::OK);
    assert_eq!(app.read(open).await.state, chips_protocol::api::AskState::Open);
    assert_eq!(app.read(closed).await.acknowledged_at, None);
    let state = app.store.sign_in_state(link_sha256(&way_in)).await.unwrap();
    assert!(matches!(state, SignInState::Good { .. }), "{state:?}");
}

/// How many other sessions the person's settings list.
async fn sessions(kim: &Browser) -> usize {
    kim.get("/settings").await.body.matches("/settings/sessions/end\"").count()
}
