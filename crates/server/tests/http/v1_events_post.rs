//! `POST /v1/events`: what is appended, what is a replay, what is refused, and in which order it is judged.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Reply, Setup, TestApp, anonymous, answer, ask, ask_id_of, fault, id, with};

#[tokio::test]
async fn an_ask_is_appended_and_comes_back_in_its_stored_form() {
    let app = TestApp::start().await;
    let run = app.harness.run_in(app.space).await;
    let sent = ask(&app.harness, run);
    let reply = app.harness.send(&sent).await;
    let stored = reply.expect(201);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("idempotency-replayed"), None);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(stored["seq"], 1);
    assert_eq!(stored["space_id"], json!(app.space), "Chips fills in the run's");
    assert!(stored["ts"].is_string());
    for member in sent.as_object().unwrap().keys() {
        assert_eq!(stored[member], sent[member], "{member}");
    }
    assert_eq!(app.harness.events().await, [stored]);
}

#[tokio::test]
async fn what_chips_writes_itself_is_written_over() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let asked = app.harness.send(&with(&ask(&app.harness, run), "/ts", "1999-01-01T00:00:00.000Z")).await.expect(201);
    assert_ne!(asked["ts"], "1999-01-01T00:00:00.000Z");
    let mut sent = answer(&app.person, &asked, "26");
    sent["answered_by"] = json!(app.colleague.id);
    sent["answered_at"] = json!("1999-01-01T00:00:00.000Z");
    let stored = app.person.send(&sent).await.expect(201);
    assert_eq!(stored["answered_by"], json!(app.person.id));
    assert_eq!(stored["answered_at"], stored["ts"]);
    assert!(stored["ts"].as_str() >= asked["ts"].as_str());
}

#[tokio::test]
async fn an_agent_speaks_through_its_harness_and_only_through_it() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let agent = json!({ "kind": "agent", "id": id("agt_") });
    let stored = app.harness.send(&with(&ask(&app.harness, run), "/actor", agent.clone())).await.expect(201);
    assert_eq!(stored["actor"]["harness_id"], json!(app.harness.id));
    let others_run = app.other_harness.run().await;
    let stolen = with(&ask(&app.other_harness, others_run), "/actor", agent);
    app.other_harness.send(&stolen).await.problem(403, "actor_mismatch");
}

#[tokio::test]
async fn an_actor_is_the_sender() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let sent = ask(&app.harness, run);
    for other in [&app.person, &app.other_harness, &app.foreign_harness] {
        app.harness.send(&with(&sent, "/actor", other.actor())).await.problem(403, "actor_mismatch");
    }
    let system = json!({ "kind": "system", "id": "system" });
    app.harness.send(&with(&sent, "/actor", system)).await.problem(403, "actor_mismatch");
    app.harness.send(&sent).await.expect(201);
    let answered = answer(&app.person, &sent, "19");
    app.colleague.send(&answered).await.problem(403, "actor_mismatch");
    let agent = json!({ "kind": "agent", "id": id("agt_") });
    app.person.send(&with(&answered, "/actor", agent)).await.problem(403, "actor_mismatch");
    assert_eq!(app.harness.head_seq().await, 1);
}

#[tokio::test]
async fn a_person_can_not_ask() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    app.person.send(&ask(&app.person, run)).await.problem(403, "wrong_sender");
    // Whatever else is wrong with it.
    app.person.send(&json!({ "type": "question.ask" })).await.problem(403, "wrong_sender");
}

#[tokio::test]
async fn the_order_of_the_checks_is_the_contracts() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let sent = ask(&app.harness, run);
    let url = |path: &str| format!("http://{}{path}", app.address);
    let client = anonymous();
    let big = "[".repeat(300 * 1024);

    // Each request has the fault of its line and every one after it.
    let nothing_right = || client.post(url("/v1/nothing")).header("host", "evil.example").body(big.clone());
    Reply::to(nothing_right()).await.problem(421, "misdirected");
    Reply::to(client.post(url("/v1/nothing")).body(big.clone())).await.problem(404, "not_found");
    Reply::to(client.put(url("/v1/events")).body(big.clone())).await.problem(405, "method_not_allowed");
    Reply::to(client.post(url("/v1/events")).body(big.clone())).await.problem(401, "unauthenticated");
    let post = |body: &str| app.harness.request(Method::POST, "/v1/events").body(body.to_owned());
    Reply::to(post(&big)).await.problem(415, "unsupported_media_type");
    let json_type = |body: &str| post(body).header("content-type", "application/json");
    Reply::to(json_type(&big)).await.problem(413, "too_large");
    app.harness.send(&with(&sent, "/v", "no")).await.faults();

    let foreign_actor = with(&with(&sent, "/actor", app.person.actor()), "/v", 2);
    let text = foreign_actor.to_string();
    app.harness.post_text("/v1/events", &text[1..]).await.problem(400, "malformed_json");
    app.harness.send(&foreign_actor).await.problem(403, "actor_mismatch");

    // A known key is a replay even where the body is no event any more.
    app.harness.send(&sent).await.expect(201);
    let replay = app.harness.send(&with(&sent, "/v", 2)).await;
    replay.expect(200);
    assert_eq!(replay.header("idempotency-replayed"), Some("true"));
    assert_eq!(replay.header("idempotency-body-differs"), Some("true"));

    // Shape comes before what the log says of id, ask and run.
    let with_new_key = with(&sent, "/idempotency_key", "another");
    let misshapen = with(&with(&with_new_key, "/run_id", id("run_")), "/v", 2);
    assert_eq!(app.harness.send(&misshapen).await.faults(), [fault("/v", "unsupported_version")]);
    // The id is another event's: before its run is looked at.
    let other_content = with(&with(&with_new_key, "/ask_id", id("qst_")), "/run_id", id("run_"));
    app.harness.send(&other_content).await.problem(409, "event_id_conflict");
    // The ask is another: before its run is looked at.
    let other_ask = with(&with(&with_new_key, "/id", id("evt_")), "/run_id", id("run_"));
    app.harness.send(&other_ask).await.problem(409, "ask_id_conflict");
    let new = with(&other_ask, "/ask_id", id("qst_"));
    assert_eq!(app.harness.send(&new).await.faults(), [fault("/run_id", "unknown_run")]);

    // An unknown ask before a closed one; a closed one before what its options say.
    let answered = answer(&app.person, &sent, "not an option");
    app.person.send(&with(&answered, "/ask_id", id("qst_"))).await.problem(404, "not_found");
    assert_eq!(app.person.send(&with(&answered, "/run_id", id("run_"))).await.faults(), [fault("/run_id", "mismatch")]);
    assert_eq!(app.person.send(&answered).await.faults(), [fault("/answers/0/values/0", "not_an_option")]);
    app.person.send(&answer(&app.person, &sent, "26")).await.expect(201);
    app.person.send(&answered).await.problem(409, "already_closed");

    // An ended run before the budget, and a replay before both.
    app.harness.post_empty(&format!("/v1/runs/{run}/end")).await.expect(200);
    app.admin().set_budget(app.harness_id(), Some(Some(0)), Some(Some(0))).unwrap();
    app.harness.send(&ask(&app.harness, run)).await.problem(409, "run_ended");
    app.harness.send(&sent).await.expect(200);
    let live = app.harness.run().await;
    app.harness.send(&ask(&app.harness, live)).await.problem(429, "over_budget");
}

#[tokio::test]
async fn a_query_is_refused() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    app.harness.post("/v1/events?dry_run=1", &ask(&app.harness, run)).await.problem(400, "bad_query");
    assert_eq!(app.harness.head_seq().await, 0);
}

#[tokio::test]
async fn the_media_type_is_json_in_utf_8_and_nothing_else() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let body = ask(&app.harness, run).to_string();
    let post = |name: &'static str, value: &'static str| {
        app.harness.request(Method::POST, "/v1/events").header(name, value).body(body.clone())
    };
    for bad in ["text/plain", "application/json; charset=latin1", "application/x-www-form-urlencoded"] {
        Reply::to(post("content-type", bad)).await.problem(415, "unsupported_media_type");
    }
    for encoding in ["gzip", "identity"] {
        let request = post("content-type", "application/json").header("content-encoding", encoding);
        Reply::to(request).await.problem(415, "unsupported_media_type");
    }
    assert_eq!(app.harness.head_seq().await, 0);
    Reply::to(post("content-type", "Application/JSON; Charset=\"UTF-8\"")).await.expect(201);
}

#[tokio::test]
async fn bodies_that_are_no_json_say_where() {
    let app = TestApp::start().await;
    let problem = app.harness.post_text("/v1/events", "{\n  \"v\": 1,\n  oops\n}").await.problem(400, "malformed_json");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("line 3") && detail.contains("column"), "{detail}");
    for text in ["", " ", "{", "{}{}", "{} x", "\u{feff}{}", "nul", "{\"a\":1e400}", "{\"a\":\"\\ud800\"}"] {
        app.harness.post_text("/v1/events", text).await.problem(400, "malformed_json");
    }
    let bytes = app.harness.request(Method::POST, "/v1/events").header("content-type", "application/json");
    Reply::to(bytes.body(vec![b'"', 0xff, b'"'])).await.problem(400, "malformed_json");
}

#[tokio::test]
async fn everybody_but_the_first_gets_the_winning_event() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let asked = ask(&app.harness, run);
    app.harness.send(&asked).await.expect(201);
    let won = app.person.send(&answer(&app.person, &asked, "26")).await.expect(201);
    for late in [&app.colleague, &app.harness] {
        let problem = late.send(&answer(late, &asked, "19")).await.problem(409, "already_closed");
        assert_eq!(problem["answer"], won);
    }
    let now = app.person.get(&format!("/v1/asks/{}", ask_id_of(&asked))).await.expect(200);
    assert_eq!(now["late_answers"][0]["by"], json!(app.colleague.id), "a person's is kept beside the ask");
    assert_eq!(now["late_answers"].as_array().unwrap().len(), 1, "a harness's is not");
    assert_eq!(app.harness.head_seq().await, 2);
}

#[tokio::test]
async fn what_must_agree_agrees() {
    let app = TestApp::start().await;
    let run = app.harness.run_in(app.space).await;
    let sent = ask(&app.harness, run);
    let foreign = app.foreign_harness.workspace_id;
    let wrong = [
        ("/workspace_id", json!(foreign), "mismatch"),
        ("/space_id", json!(app.closed_space), "mismatch"),
        ("/space_id", json!(app.foreign_space), "unknown_space"),
        ("/space_id", json!(id("spc_")), "unknown_space"),
        ("/run_id", json!(id("run_")), "unknown_run"),
        ("/seq", json!(1), "not_allowed"),
    ];
    for (pointer, value, code) in wrong {
        let faults = app.harness.send(&with(&sent, pointer, value)).await.faults();
        assert_eq!(faults, [fault(pointer, code)]);
    }
    app.harness.send(&with(&sent, "/space_id", json!(app.space))).await.expect(201);
}

#[tokio::test]
async fn every_fault_is_told_at_once() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let mut sent = ask(&app.harness, run);
    sent["timeout_second"] = json!(60);
    sent["timeout_seconds"] = json!(0);
    sent["questions"][0]["prompt"] = json!(" ");
    sent["questions"][0]["options"][1]["label"] = Value::Null;
    let mut faults = app.harness.send(&sent).await.faults();
    faults.sort();
    assert_eq!(
        faults,
        [
            fault("/questions/0/options/1/label", "wrong_type"),
            fault("/questions/0/prompt", "empty"),
            fault("/timeout_second", "unknown_field"),
            fault("/timeout_seconds", "out_of_range"),
        ]
    );
    let problem = app.harness.send(&sent).await.json();
    let unknown = problem["errors"].as_array().unwrap().iter().find(|fault| fault["code"] == "unknown_field").unwrap();
    assert!(unknown["message"].as_str().unwrap().contains("timeout_seconds"), "the field that it looks like is named");
}

#[tokio::test]
async fn problems_are_absolute_where_the_public_url_is_known() {
    let mut setup = Setup::default();
    setup.config.public_url = Some("https://chips.example.com".parse().unwrap());
    let app = TestApp::with(setup).await;
    let reply = app.harness.get("/v1/asks/nothing").await;
    assert_eq!(reply.json()["type"], "https://chips.example.com/problems/not_found");
    assert_eq!(reply.json()["code"], "not_found");
    assert_eq!(reply.header("content-length"), Some(reply.text.len().to_string().as_str()));
}
