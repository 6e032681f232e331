//! `GET /v1/asks`, `GET /v1/asks/ASK_ID` without a wait, and `POST /v1/asks/ASK_ID/ack`.

use serde_json::{Value, json};

use crate::support::{Setup, TestApp, answer, ask, ask_id_of, id, until, with};

fn ids(page: &Value) -> Vec<String> {
    page["asks"].as_array().unwrap().iter().map(ask_id_of).collect()
}

#[tokio::test]
async fn an_ask_says_all_there_is_to_know() {
    let app = TestApp::start().await;
    let asked = app.harness.send(&ask(&app.harness, app.harness.run().await)).await.expect(201);
    let path = format!("/v1/asks/{}", ask_id_of(&asked));
    let open = app.person.get(&path).await.expect(200);
    assert_eq!(open["state"], "open");
    assert_eq!(open["tier"], "active", "every question has a default");
    assert_eq!(open["asker"], json!({ "kind": "harness", "id": app.harness.id, "name": open["asker"]["name"] }));
    assert_eq!(open["option_labels"], json!({ "window": { "19": "19 September", "26": "26 September" } }));
    assert_eq!(open["ask"], asked);
    for absent in ["answer", "answerer", "delivered_at", "acknowledged_at"] {
        assert_eq!(open[absent], Value::Null, "{absent}");
    }
    assert_eq!((&open["asker_gone"], &open["late_answers"]), (&json!(false), &json!([])));
    assert!(open["deadline"].is_string());

    let answered = app.person.send(&answer(&app.person, &asked, "26")).await.expect(201);
    let closed = app.person.get(&path).await.expect(200);
    assert_eq!((&closed["state"], &closed["answer"]), (&json!("answered"), &answered));
    assert_eq!(closed["answerer"]["id"], json!(app.person.id));
    assert_eq!(closed["delivered_at"], Value::Null, "a person's look delivers nothing");
}

#[tokio::test]
async fn an_answer_is_delivered_when_the_harness_gets_it() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let ways = ["/v1/asks/{ask}", "/v1/asks?state=closed", "/v1/events?ask_id={ask}", "stream"];
    for way in ways {
        let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
        app.person.send(&answer(&app.person, &asked, "26")).await.expect(201);
        let path = format!("/v1/asks/{}", ask_id_of(&asked));
        let seq = app.person.head_seq().await;
        match way {
            "stream" => {
                let mut stream = app.harness.stream(&format!("/v1/events/stream?after={}", seq - 1)).await;
                assert_eq!(stream.event().await.0, seq);
            }
            path => drop(app.harness.get(&path.replace("{ask}", &ask_id_of(&asked))).await.expect(200)),
        }
        let delivered = until(async || {
            let now = app.person.get(&path).await.expect(200);
            now["delivered_at"].as_str().map(str::to_owned)
        })
        .await;
        app.harness.get(&path).await.expect(200);
        let now = app.person.get(&path).await.expect(200);
        assert_eq!(now["delivered_at"], json!(delivered), "the first time stands");
    }
}

#[tokio::test]
async fn head_delivers_nothing() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let second = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    for one in [&asked, &second] {
        app.person.send(&answer(&app.person, one, "26")).await.expect(201);
    }
    for path in [&format!("/v1/asks/{}", ask_id_of(&asked)), "/v1/asks", "/v1/events"] {
        assert_eq!(app.harness.head(path).await.status, 200);
    }
    // What is noted lazily is noted in order: once the second is, the first would be.
    app.harness.get(&format!("/v1/asks/{}", ask_id_of(&second))).await.expect(200);
    let delivered = async |ask: &Value| {
        app.person.get(&format!("/v1/asks/{}", ask_id_of(ask))).await.expect(200)["delivered_at"].clone()
    };
    until(async || delivered(&second).await.is_string().then_some(())).await;
    assert_eq!(delivered(&asked).await, Value::Null);
}

#[tokio::test]
async fn the_open_list_has_the_most_urgent_first() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let mut sent = Vec::new();
    // With a default and a late deadline, with a default and a soon one, with neither, without a default but with a deadline.
    for (default, timeout) in [(true, Some(7200)), (true, Some(60)), (false, None), (false, Some(600)), (true, None)] {
        let mut one = ask(&app.harness, run);
        let members = one.as_object_mut().unwrap();
        members.shift_remove("on_no_answer");
        match timeout {
            Some(seconds) => members["timeout_seconds"] = json!(seconds),
            None => drop(members.shift_remove("timeout_seconds")),
        }
        if !default {
            one["questions"][0].as_object_mut().unwrap().shift_remove("default_value");
        }
        app.harness.send(&one).await.expect(201);
        sent.push(ask_id_of(&one));
    }
    let order: Vec<String> = [3, 2, 1, 0, 4].map(|at: usize| sent[at].clone()).into();
    assert_eq!(ids(&app.person.get("/v1/asks?state=open").await.expect(200)), order);
    let newest: Vec<String> = sent.iter().rev().cloned().collect();
    assert_eq!(ids(&app.person.get("/v1/asks").await.expect(200)), newest);

    for (query, all) in [("state=open&", &order), ("", &newest)] {
        let mut got = Vec::new();
        let mut before = String::new();
        loop {
            let page = app.person.get(&format!("/v1/asks?{query}limit=2{before}")).await.expect(200);
            assert_eq!(page["head"], 5);
            got.extend(ids(&page));
            match page["next"].as_str() {
                Some(next) => before = format!("&before={next}"),
                None => break,
            }
        }
        assert_eq!(&got, all);
    }
}

#[tokio::test]
async fn lists_are_narrowed() {
    let app = TestApp::start().await;
    let run = app.harness.run_with(json!({ "space_id": app.space, "labels": { "team": "billing:eu" } })).await;
    let first = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let other_run = app.other_harness.run_with(json!({ "title": "Nightly Überprüfung" })).await;
    let second = app.other_harness.send(&ask(&app.other_harness, other_run)).await.expect(201);
    app.person.send(&answer(&app.person, &second, "19")).await.expect(201);
    let get = async |query: String| ids(&app.person.get(&format!("/v1/asks?{query}")).await.expect(200));
    let (one, two) = (vec![ask_id_of(&first)], vec![ask_id_of(&second)]);
    assert_eq!(get("state=open".into()).await, one);
    assert_eq!(get("state=closed".into()).await, two);
    assert_eq!(get("state=answered".into()).await, two);
    assert_eq!(get("state=withdrawn".into()).await, Vec::<String>::new());
    assert_eq!(get(format!("space_id={}", app.space)).await, one);
    assert_eq!(get(format!("run_id={other_run}")).await, two);
    assert_eq!(get(format!("harness_id={}", app.harness.id)).await, one);
    assert_eq!(get("label=team:billing:eu".into()).await, one);
    assert_eq!(get("label=team:billing".into()).await, Vec::<String>::new());
    assert_eq!(get("q=%C3%BCBERPR%C3%BCF".into()).await, two);
    assert_eq!(get("q=26+sept&state=open".into()).await, one);
    assert_eq!(get("q=%25".into()).await, Vec::<String>::new(), "no pattern");
    assert_eq!(get("q=".into()).await.len(), 2);
    for foreign in [format!("run_id={}", id("run_")), format!("space_id={}", app.foreign_space)] {
        assert_eq!(get(foreign).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn parameters_are_read_strictly() {
    let app = TestApp::start().await;
    for query in [
        "state=pending",
        "state=",
        "limit=0",
        "limit=201",
        "label=team",
        "label=:x",
        "run_id=x",
        "space_id=run_01K4ZQPX000000000000000005",
        "harness_id=",
        "before=x",
        "before=0.0",
        "before=0.0.1.1",
        "state=open&before=0.0.1",
        "state=closed&before=1.0.1",
        "after=1",
        "state=open&state=open",
    ] {
        app.person.get(&format!("/v1/asks?{query}")).await.problem(400, "bad_query");
    }
    let path = format!("/v1/asks/{}", id("qst_"));
    for query in ["wait=-1", "wait=301", "wait=1.0", "wait=", "wait=x", "wait=1&wait=1", "state=open"] {
        app.person.get(&format!("{path}?{query}")).await.problem(400, "bad_query");
    }
}

#[tokio::test]
async fn the_harness_acknowledges_once() {
    let app = TestApp::start().await;
    let asked = app.harness.send(&ask(&app.harness, app.harness.run().await)).await.expect(201);
    let path = format!("/v1/asks/{}/ack", ask_id_of(&asked));
    assert_eq!(app.harness.post_empty(&path).await.expect(200)["acknowledged_at"], Value::Null, "it is open");
    app.person.send(&answer(&app.person, &asked, "26")).await.expect(201);
    let first = app.harness.post_empty(&path).await.expect(200);
    assert!(first["acknowledged_at"].is_string());
    // A body, of whatever type, is not looked at.
    let again = app.harness.post_text(&path, "not json").await.expect(200);
    assert_eq!(again["acknowledged_at"], first["acknowledged_at"]);
    app.person.post_empty(&path).await.problem(403, "wrong_sender");
    app.other_harness.post_empty(&path).await.problem(404, "not_found");
    app.foreign_person.post_empty(&path).await.problem(404, "not_found");
    app.harness.post_empty(&format!("/v1/asks/{}/ack", id("qst_"))).await.problem(404, "not_found");
    app.harness.post_text(&path, &" ".repeat(300_000)).await.problem(413, "too_large");
    assert_eq!(app.harness.get(&path).await.problem(405, "method_not_allowed")["status"], 405);
}

#[tokio::test]
async fn a_lapsed_lease_says_that_the_asker_is_gone_and_a_look_brings_it_back() {
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    let run = app.harness.run_with(json!({ "lease_seconds": 30 })).await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let path = format!("/v1/asks/{}", ask_id_of(&asked));
    let gone = async || app.person.get(&path).await.expect(200)["asker_gone"].as_bool().unwrap();
    assert!(!gone().await);
    for way in [
        path.clone(),
        format!("/v1/runs/{run}"),
        format!("/v1/events?run_id={run}"),
        format!("/v1/events?ask_id={}", ask_id_of(&asked)),
        format!("/v1/asks?run_id={run}"),
    ] {
        time.pass_ms(31_000);
        assert!(gone().await, "nobody was heard of");
        app.harness.get("/v1/me").await.expect(200);
        app.harness.head(&way).await;
        app.other_harness.get(&way).await;
        app.person.get(&way).await;
        app.harness.get(&way).await.expect(200);
        until(async || (!gone().await).then_some(())).await;
    }
    time.pass_ms(31_000);
    assert!(gone().await);
    app.harness.send(&with(&asked, "/v", 2)).await;
    until(async || (!gone().await).then_some(())).await;
}
