//! `GET /v1/events`: a page of the log.

use serde_json::{Value, json};

use crate::support::{TestApp, answer, ask, ask_id_of, id};

/// A log of `count` asks of one run, and the run.
async fn asks(app: &TestApp, count: usize) -> (chips_protocol::RunId, Vec<Value>) {
    let run = app.harness.run().await;
    let sent = futures::future::join_all((0..count).map(|_| {
        let asked = ask(&app.harness, run);
        async move { app.harness.send(&asked).await.expect(201) }
    }))
    .await;
    (run, sent)
}

fn seqs(page: &Value) -> Vec<u64> {
    page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn an_empty_log_is_an_empty_page() {
    let app = TestApp::start().await;
    let page = app.harness.get("/v1/events").await.expect(200);
    assert_eq!(page, json!({ "events": [], "head": 0, "log": app.store.log_id() }));
}

#[tokio::test]
async fn pages_follow_each_other_without_a_gap() {
    let app = TestApp::start().await;
    app.admin().set_budget(app.harness_id(), Some(None), Some(None)).unwrap();
    let (_, _) = asks(&app, 250).await;
    let first = app.harness.get("/v1/events").await.expect(200);
    assert_eq!(seqs(&first), (1..=100).collect::<Vec<_>>(), "100 if the limit is left out");
    assert_eq!(first["head"], 250);
    let second = app.harness.get("/v1/events?after=100&limit=120").await.expect(200);
    assert_eq!(seqs(&second), (101..=220).collect::<Vec<_>>());
    let last = app.harness.get("/v1/events?after=220&limit=1000").await.expect(200);
    assert_eq!(seqs(&last), (221..=250).collect::<Vec<_>>());
    let all = app.harness.get("/v1/events?limit=1000").await.expect(200);
    assert_eq!(seqs(&all), (1..=250).collect::<Vec<_>>());
    let none = app.harness.get("/v1/events?after=250").await.expect(200);
    assert_eq!((seqs(&none), &none["head"]), (vec![], &json!(250)));
}

#[tokio::test]
async fn the_limit_counts_what_is_visible() {
    let app = TestApp::start().await;
    app.admin().set_budget(app.harness_id(), Some(None), Some(None)).unwrap();
    asks(&app, 150).await;
    let run = app.other_harness.run().await;
    let own = app.other_harness.send(&ask(&app.other_harness, run)).await.expect(201);
    let page = app.other_harness.get("/v1/events?limit=1").await.expect(200);
    assert_eq!(page["events"], json!([own]));
    assert_eq!(page["head"], 151);
    let page = app.person.get("/v1/events?after=149&limit=5").await.expect(200);
    assert_eq!(seqs(&page), [150, 151]);
}

#[tokio::test]
async fn filters_narrow_and_a_foreign_thing_gives_nothing() {
    let app = TestApp::start().await;
    let (run, sent) = asks(&app, 3).await;
    let asked = &sent[1];
    let answered = app.person.send(&answer(&app.person, asked, "19")).await.expect(201);
    let get = async |query: &str| app.person.get(&format!("/v1/events?{query}")).await.expect(200)["events"].clone();
    assert_eq!(get(&format!("ask_id={}", ask_id_of(asked))).await, json!([asked, answered]));
    assert_eq!(get("type=question.answered").await, json!([answered]));
    assert_eq!(get(&format!("run_id={run}&type=question.ask&after=1&limit=1")).await[0]["seq"], 2);
    assert_eq!(get(&format!("ask_id={}", id("qst_"))).await, json!([]));
    assert_eq!(get(&format!("run_id={}", id("run_"))).await, json!([]));
    let foreign = app.foreign_person.get(&format!("/v1/events?run_id={run}")).await.expect(200);
    assert_eq!((&foreign["events"], &foreign["head"]), (&json!([]), &json!(0)));
    let others = app.other_harness.get(&format!("/v1/events?run_id={run}")).await.expect(200);
    assert_eq!(others["events"], json!([]));
}

#[tokio::test]
async fn parameters_are_read_strictly() {
    let app = TestApp::start().await;
    for query in [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=ten",
        "limit=1.0",
        "limit=",
        "after=-1",
        "after=x",
        "after=%2b1",
        "after=99999999999999999999",
        "after=0&after=0",
        "type=question",
        "type=",
        "run_id=x",
        "ask_id=run_01K4ZQPX000000000000000005",
        "afer=0",
        "q=%ff",
        "Limit=1",
        "wait=1",
    ] {
        app.harness.get(&format!("/v1/events?{query}")).await.problem(400, "bad_query");
    }
    let problem = app.harness.get("/v1/events?afer=0").await.json();
    let detail = problem["detail"].as_str().unwrap();
    for known in ["`after`", "`limit`", "`type`", "`run_id`", "`ask_id`", "`log`"] {
        assert!(detail.contains(known), "{detail}");
    }
}

#[tokio::test]
async fn a_cursor_past_the_head_or_of_another_history_is_refused() {
    let app = TestApp::start().await;
    asks(&app, 1).await;
    for path in ["/v1/events", "/v1/events/stream"] {
        app.harness.get(&format!("{path}?after=2")).await.problem(410, "cursor_ahead");
        app.harness.get(&format!("{path}?after=18446744073709551615")).await.problem(410, "cursor_ahead");
        app.harness.get(&format!("{path}?after=0&log=another")).await.problem(410, "log_changed");
    }
    let log = app.store.log_id().to_owned();
    app.harness.get(&format!("/v1/events?after=1&log={log}")).await.expect(200);
}

#[tokio::test]
async fn head_is_a_get_without_a_body() {
    let app = TestApp::start().await;
    app.admin().set_budget(app.harness_id(), Some(None), Some(None)).unwrap();
    asks(&app, 120).await;
    for path in ["/v1/events", "/v1/events?limit=1000", "/v1/asks", "/v1/me", "/openapi.json", "/healthz", "/readyz"] {
        let reply = app.harness.head(path).await;
        assert_eq!((reply.status, reply.text.as_str()), (200, ""), "{path}");
        let got = app.harness.get(path).await;
        assert_eq!(reply.header("content-type"), got.header("content-type"), "{path}");
        if let Some(length) = reply.header("content-length") {
            assert_eq!(length, got.text.len().to_string(), "{path}");
        }
    }
    let refused = app.harness.head("/v1/events?limit=0").await;
    assert_eq!((refused.status, refused.text.as_str()), (400, ""));
}
