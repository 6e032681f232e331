//! No input leads to a 5xx: requests put together at random, from parts that are nearly right.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Reply, TestApp, answer, ask, ask_id_of};

/// Something that may stand where anything may.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!("qst_01K4ZQPX000000000000000009")),
        Just(json!("question.ask")),
        Just(json!("system")),
        Just(json!("")),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Every place in a value, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| places(member, &format!("{at}/{name}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

fn any_path() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        Just("v1".to_owned()),
        Just("events".to_owned()),
        Just("stream".to_owned()),
        Just("asks".to_owned()),
        Just("runs".to_owned()),
        Just("me".to_owned()),
        Just("end".to_owned()),
        Just("ack".to_owned()),
        Just("schemas".to_owned()),
        Just("problems".to_owned()),
        Just("sign-in".to_owned()),
        Just("assets".to_owned()),
        Just("qst_01K4ZQPX000000000000000009".to_owned()),
        Just("run_01K4ZQPX000000000000000009".to_owned()),
        Just("..".to_owned()),
        Just("%2e%2e".to_owned()),
        Just("%00".to_owned()),
        Just("%ff".to_owned()),
        Just("%".to_owned()),
        "[ -~]{0,12}".prop_map(|text| text.replace(['/', '?', '#'], "")),
    ];
    prop::collection::vec(segment, 0..5).prop_map(|segments| format!("/{}", segments.join("/")))
}

fn any_query() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("after"),
        Just("limit"),
        Just("type"),
        Just("run_id"),
        Just("ask_id"),
        Just("log"),
        Just("state"),
        Just("label"),
        Just("q"),
        Just("before"),
        Just("next"),
        Just("x"),
        Just(""),
    ];
    let value = prop_oneof![
        Just("0".to_owned()),
        Just("1".to_owned()),
        Just("18446744073709551615".to_owned()),
        Just("9223372036854775808".to_owned()),
        Just("open".to_owned()),
        Just("0.0.1".to_owned()),
        Just("ff.-8000000000000000.ffffffffffffffff".to_owned()),
        Just("qst_01K4ZQPX000000000000000009".to_owned()),
        Just("%".to_owned()),
        Just("%25_%27%22%5c%00".to_owned()),
        Just("a:b".to_owned()),
        "[ -~]{0,12}".prop_map(|text| text.replace(['#', '&', ' '], "")),
        any::<String>().prop_map(|text| text.bytes().take(40).map(|byte| format!("%{byte:02x}")).collect()),
    ];
    prop::collection::vec((name, value), 0..4)
        .prop_map(|pairs| pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&"))
}

/// Values of a strategy, as many as asked for, and the same each time. Nothing is shrunk: a failure shows the request itself.
fn some<T: std::fmt::Debug>(strategy: &impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

#[tokio::test]
async fn an_event_with_anything_in_any_place_is_taken_or_refused() {
    let app = TestApp::start().await;
    app.admin().set_budget(app.harness_id(), Some(None), Some(None)).unwrap();
    let run = app.harness.run().await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let values = some(&any_value(), 1500);
    for (at, value) in values.into_iter().enumerate() {
        let mut event = if at % 2 == 0 { ask(&app.harness, run) } else { answer(&app.harness, &asked, "26") };
        let mut found = Vec::new();
        places(&event, "", &mut found);
        *event.pointer_mut(&found[at % found.len()]).unwrap() = value;
        let path = if at % 7 == 0 { "/v1/runs" } else { "/v1/events" };
        let reply = app.harness.post(path, &event).await;
        assert!(reply.status < 500, "{event} led to {reply:?}");
        if reply.status >= 400 {
            assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{event} led to {reply:?}");
            assert_eq!(reply.json()["status"], reply.status);
        }
    }
    app.person.get(&format!("/v1/asks/{}", ask_id_of(&asked))).await.expect(200);
}

#[tokio::test]
async fn any_path_and_query_is_answered() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let methods = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::OPTIONS, Method::DELETE];
    let requests = some(&(any_path(), any_query()), 1500);
    let known =
        ["/v1/events", "/v1/asks", "/v1/asks/qst_01K4ZQPX000000000000000009", "/v1/me", "/", "/history", "/sign-in"];
    for (at, (path, query)) in requests.into_iter().enumerate() {
        let path = if at % 2 == 0 { known[at / 2 % known.len()].to_owned() } else { path };
        let Ok(url) = format!("http://{}{path}?{query}", app.address).parse::<reqwest::Url>() else { continue };
        if url.path().ends_with("/stream") || url.path() == "/live" {
            continue;
        }
        let method = if at % 4 < 3 { Method::GET } else { methods[at % methods.len()].clone() };
        let actor = if at % 3 == 0 { &app.person } else { &app.harness };
        let reply =
            Reply::to(actor.request(method.clone(), &format!("{}?{}", url.path(), url.query().unwrap_or_default())))
                .await;
        assert!(reply.status < 500, "{method} {url} led to {reply:?}");
    }
    app.harness.get("/v1/me").await.expect(200);
}

#[tokio::test]
async fn any_bytes_are_no_event() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let text = ask(&app.harness, run).to_string();
    let cuts = some(&(0..text.len(), any::<u8>(), any::<bool>()), 500);
    for (at, byte, cut) in cuts {
        let mut bytes = text.clone().into_bytes();
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] = byte;
        }
        let request = app.harness.request(Method::POST, "/v1/events").header("content-type", "application/json");
        let reply = Reply::to(request.body(bytes.clone())).await;
        assert!(reply.status < 500, "{:?} led to {reply:?}", String::from_utf8_lossy(&bytes));
    }
}
