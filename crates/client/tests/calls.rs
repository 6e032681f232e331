//! Plain calls over a network that misbehaves.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use chips_client::protocol::problem::ProblemCode;
use chips_client::protocol::{Answer, FaultCode};
use chips_client::{AskSpec, Client, Error};
use serde_json::json;
use support::*;
use tokio::net::TcpListener;

fn spec() -> AskSpec {
    AskSpec::one(RUN.parse().unwrap(), "Ship?", [("y", "Yes"), ("n", "No")])
}

fn yes() -> Vec<Answer> {
    vec![Answer { question_id: "question".into(), values: vec!["y".into()], free_text: None }]
}

#[tokio::test]
async fn a_write_is_repeated_byte_for_byte_until_its_outcome_is_known() {
    let stored = ok(&ask_event(1));
    let half = stored[..stored.len() - 40].to_vec();
    let server = Script::play([
        Step::Send(ok(&me())),
        Step::Cut,
        Step::Send(half),
        Step::Send(problem_with(503, "unavailable", "the disk is full", "retry-after: 0\r\n", json!({}))),
        Step::Send(reply(502, "content-type: text/html\r\n", "<h1>Bad gateway</h1>")),
        Step::Send(reply(
            200,
            "content-type: application/json\r\nidempotency-replayed: true\r\n",
            &ask_event(1).to_string(),
        )),
    ])
    .await;
    let written = server.client().ask(spec().ask_id(ASK.parse().unwrap())).await.unwrap();
    assert!(written.replayed && !written.differs);
    assert_eq!(written.ask_id().to_string(), ASK);

    let seen = server.seen();
    assert_eq!(seen[0].line, "GET /v1/me");
    let posts = &seen[1..];
    assert_eq!(posts.len(), 5);
    for post in posts {
        assert_eq!(post.line, "POST /v1/events");
        assert_eq!(post.body, posts[0].body);
        assert_eq!(post.header("content-type"), Some("application/json"));
        assert_eq!(post.header("authorization"), Some(format!("Bearer {}", token("hk")).as_str()));
    }
    let event = posts[0].json();
    assert_eq!(event["ask_id"], ASK);
    assert_eq!(event["actor"], json!({ "kind": "harness", "id": HARNESS }));
    assert_eq!(event["workspace_id"], WORKSPACE);
    assert_eq!(event["questions"], ask_event(1)["questions"]);
    assert!(!event["idempotency_key"].as_str().unwrap().is_empty());
    assert!(event.get("ts").is_none() && event.get("seq").is_none() && event.get("timeout_seconds").is_none());
}

#[tokio::test]
async fn two_asks_share_neither_id_nor_key() {
    let steps = [ok(&me()), ok(&ask_event(1)), ok(&ask_event(2))];
    let server = Script::play(steps.map(Step::Send)).await;
    let client = server.client();
    client.ask(spec()).await.unwrap();
    client.ask(spec()).await.unwrap();
    let seen = server.seen();
    let (one, other) = (seen[1].json(), seen[2].json());
    for member in ["id", "ask_id", "idempotency_key"] {
        assert_ne!(one[member], other[member], "{member}");
    }
}

#[tokio::test]
async fn a_run_that_is_opened_twice_by_a_repeat_is_one_run() {
    let server = Script::play([Step::Cut, Step::Send(ok(&run()))]).await;
    server.client().open_run(Default::default()).await.unwrap();
    let seen = server.seen();
    assert!(seen[0].json()["run_id"].as_str().unwrap().starts_with("run_"));
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn a_server_that_stays_away_is_given_up_after_the_limit() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = Client::builder(&format!("http://{gone}"), &token("hk"))
        .pauses(Duration::from_millis(1), Duration::from_millis(4))
        .retry_for(Some(Duration::from_millis(50)))
        .build()
        .unwrap();
    let error = client.me().await.unwrap_err();
    assert_eq!(error.to_string(), format!("can't reach http://{gone}: connection refused"));
    assert!(matches!(error, Error::Unreachable { .. }));
}

#[tokio::test]
async fn a_server_that_can_not_write_is_quoted_when_it_is_given_up() {
    let refusal = || problem_with(503, "unavailable", "the disk is full", "retry-after: 120\r\n", json!({}));
    let server = Script::play([Step::Send(ok(&me())), Step::Send(refusal())]).await;
    let error = server.client().ask(spec()).await.unwrap_err();
    assert_eq!(error.code(), Some(ProblemCode::Unavailable));
    assert_eq!(error.to_string(), "the disk is full (unavailable)");
    assert!(matches!(error, Error::Refused { retry_after: Some(after), .. } if after.as_secs() == 120));
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_token_goes_nowhere_else() {
    let elsewhere = Script::play([]).await;
    let server = Script::play([Step::Send(reply(308, &format!("location: {}/v1/me\r\n", elsewhere.url()), ""))]).await;
    let error = server.client().me().await.unwrap_err();
    assert!(matches!(error, Error::NotChips { status: 308, .. }), "{error}");
    assert!(error.to_string().contains(&elsewhere.url()), "{error}");
    assert_eq!(elsewhere.seen(), []);
}

#[tokio::test]
async fn what_does_not_answer_like_chips_is_named() {
    for (bytes, part) in [
        (reply(200, "content-type: text/html\r\n", "<h1>Free WiFi</h1>"), "can't be read"),
        (reply(404, "content-type: text/html\r\n", "<h1>Not here</h1>"), "HTTP 404"),
        (reply(500, "", r#"{"detail":"a teapot"}"#), "a teapot"),
        (ok(&json!([1, 2, 3])), "can't be read"),
    ] {
        let server = Script::play([Step::Send(bytes)]).await;
        let error = server.client().me().await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} does not answer like Chips: ", server.url())), "{error}");
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_refusal_carries_every_fault() {
    let errors = json!({ "errors": [
        { "pointer": "/questions/0/options", "code": "too_few", "message": "two to four" },
        { "pointer": "/timeout_seconds", "code": "out_of_range", "message": "more than 0" },
    ]});
    let steps = [ok(&me()), problem_with(422, "invalid_event", "2 faults", "", errors)];
    let server = Script::play(steps.map(Step::Send)).await;
    let error = server.client().ask(spec()).await.unwrap_err();
    let faults = &error.problem().unwrap().errors;
    assert_eq!(faults.iter().map(|fault| fault.code).collect::<Vec<_>>(), [FaultCode::TooFew, FaultCode::OutOfRange]);
}

#[tokio::test]
async fn an_answer_that_came_too_late_knows_the_one_that_won() {
    let steps = [
        ok(&ask_state(true)),
        ok(&me()),
        problem_with(409, "already_closed", "too late", "", json!({ "answer": answered_event(2) })),
    ];
    let server = Script::play(steps.map(Step::Send)).await;
    let ask_id: chips_client::protocol::AskId = ASK.parse().unwrap();
    let error = server.client().answer(ask_id, yes()).await.unwrap_err();
    assert_eq!(error.winning_answer().unwrap().as_answered().unwrap().answers, yes());
    let sent = server.seen()[2].json();
    assert_eq!(sent["run_id"], RUN);
    assert!(sent.get("timed_out").is_none());
}

#[tokio::test]
async fn settling_and_withdrawing_say_what_they_are() {
    let steps = [ok(&me()), ok(&answered_event(2)), ok(&answered_event(3)), ok(&ask_state(false))];
    let server = Script::play(steps.map(Step::Send)).await;
    let client = server.client();
    let ask = (ASK.parse().unwrap(), RUN.parse().unwrap());
    client.settle_timed_out(ask, yes()).await.unwrap();
    client.withdraw(ask).await.unwrap();
    client.acknowledge(ask.0).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen[1].json()["timed_out"], true);
    assert_eq!(seen[2].json()["answers"], json!([]));
    assert_eq!(seen[3].line, format!("POST /v1/asks/{ASK}/ack"));
    assert_eq!(seen[3].body, b"");
}

#[tokio::test]
async fn filters_are_escaped_on_their_way() {
    let steps = [ok(&json!({ "asks": [], "head": 0, "next": null }))];
    let server = Script::play(steps.map(Step::Send)).await;
    let query = chips_client::AsksQuery::default().closed().label("team", "a&b=c").text("19th or 26th?").limit(10);
    server.client().asks(&query).await.unwrap();
    assert_eq!(server.seen()[0].line, "GET /v1/asks?state=closed&label=team%3Aa%26b%3Dc&q=19th+or+26th%3F&limit=10");
}
