//! Waits and streams over a network that misbehaves.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chips_client::protocol::AskId;
use chips_client::protocol::api::AskState;
use chips_client::protocol::problem::ProblemCode;
use chips_client::{Client, LinkChange, StreamQuery};
use futures::StreamExt;
use serde_json::json;
use support::*;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

fn ask_id() -> AskId {
    ASK.parse().unwrap()
}

/// A wait that the test gives up on, so that a broken one fails rather than hangs.
async fn soon<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("within 30 s")
}

#[tokio::test]
async fn a_wait_outlives_all_that_is_not_chips_own_word() {
    let half = ok(&ask_state(false))[..200].to_vec();
    let steps = [
        Step::Send(ok(&ask_state(true))),
        Step::Cut,
        Step::Send(half),
        Step::Send(reply(502, "", "")),
        Step::Send(reply(404, "content-type: text/plain\r\n", "404 page not found")),
        Step::Send(reply(302, "location: http://sign-in.example/\r\n", "")),
        Step::Send(reply(200, "content-type: text/html\r\n", "<h1>Free WiFi</h1>")),
        Step::Send(reply(500, "content-type: text/html\r\n", "oops")),
        Step::Send(problem_with(429, "rate_limited", "slow down", "retry-after: 0\r\n", json!({}))),
        Step::Send(problem_with(503, "unavailable", "busy", "retry-after: 0\r\n", json!({}))),
        Step::Send(ok(&ask_state(true))),
        Step::Send(ok(&ask_state(false))),
    ];
    let server = Script::play(steps).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let client = server
        .builder()
        .poll(Duration::from_secs(120))
        .on_link({
            let told = told.clone();
            move |change| told.lock().unwrap().push(change)
        })
        .build()
        .unwrap();
    let ask = soon(client.wait(ask_id())).await.unwrap();
    assert_eq!(ask.state, AskState::Answered);
    assert_eq!(server.steps_left(), 0);
    let long = format!("GET /v1/asks/{ASK}?wait=50");
    let quick = format!("GET /v1/asks/{ASK}");
    let lines: Vec<_> = server.seen().into_iter().map(|seen| seen.line).collect();
    // After a poll that got no reply, what counts first is whether the server is back.
    assert_eq!(lines[..2], [long.clone(), long.clone()]);
    assert_eq!(lines[2..11], vec![quick; 9]);
    assert_eq!(lines[11..], [long]);
    assert_eq!(
        *told.lock().unwrap(),
        [LinkChange::Lost { reason: "the connection was cut".into(), replied_before: true }, LinkChange::Back],
        "one outage, told once"
    );
}

#[tokio::test]
async fn a_wait_outlives_a_server_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (lost, mut is_lost) = mpsc::unbounded_channel();
    let client = Client::builder(&format!("http://{address}"), &token("hk"))
        .pauses(Duration::from_millis(1), Duration::from_millis(20))
        .on_link(move |change| lost.send(change).unwrap())
        .build()
        .unwrap();
    let waiting = tokio::spawn(async move { client.wait(ask_id()).await });
    let lost = LinkChange::Lost { reason: "connection refused".into(), replied_before: false };
    assert_eq!(soon(is_lost.recv()).await, Some(lost));
    let listener = TcpListener::bind(address).await.unwrap();
    let _server = Script::play_on(listener, [Step::Send(ok(&ask_state(false)))]);
    assert_eq!(soon(waiting).await.unwrap().unwrap().state, AskState::Answered);
    assert_eq!(soon(is_lost.recv()).await, Some(LinkChange::Back));
}

#[tokio::test]
async fn a_wait_notices_a_network_that_died_without_a_word() {
    let steps = [Step::SendAndHold(Vec::new()), Step::Send(ok(&ask_state(false)))];
    let server = Script::play(steps).await;
    let client = server.builder().poll(Duration::from_secs(1)).reply_within(Duration::from_millis(10)).build().unwrap();
    assert_eq!(soon(client.wait(ask_id())).await.unwrap().state, AskState::Answered);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn chips_own_word_ends_a_wait() {
    for (status, code, expected) in
        [(404, "not_found", ProblemCode::NotFound), (401, "unauthenticated", ProblemCode::Unauthenticated)]
    {
        let server = Script::play([Step::Cut, Step::Send(problem(status, code, "no"))]).await;
        let error = soon(server.client().wait(ask_id())).await.unwrap_err();
        assert_eq!(error.code(), Some(expected));
    }
}

#[tokio::test]
async fn a_stream_resumes_where_it_was_cut_without_a_gap_or_a_repeat() {
    let head = stream_head();
    let (two, three, four) = (message(2, &ask_event(2)), message(3, &answered_event(3)), message(4, &ask_event(4)));
    let cut_in_mid_message = format!("{head}: hello\n\n{two}{}", &three[..three.len() - 9]);
    let steps = [
        Step::Send(ok(&page(1))),
        Step::Send(cut_in_mid_message.into_bytes()),
        Step::Cut,
        Step::Send(reply(502, "", "")),
        Step::Send(format!("{head}{two}{three}").into_bytes()),
        Step::SendAndHold(format!("{head}{four}").into_bytes()),
    ];
    let server = Script::play(steps).await;
    let mut stream = server.client().stream(StreamQuery::default());
    let mut seqs = Vec::new();
    for _ in 0..3 {
        let streamed = soon(stream.next()).await.unwrap();
        assert_eq!(streamed.event().unwrap().envelope.seq, Some(streamed.seq));
        assert_eq!(streamed.event_type, streamed.event().unwrap().content.event_type().as_str());
        seqs.push(streamed.seq);
    }
    assert_eq!(seqs, [2, 3, 4]);
    assert_eq!(stream.cursor(), Some(4));
    let seen = server.seen();
    assert_eq!(seen[0].line, "GET /v1/events?limit=1&type=question.ask");
    assert_eq!(seen[1].line, "GET /v1/events/stream?after=1&log=log1");
    assert_eq!(seen[1].header("last-event-id"), None);
    let resumed: Vec<_> = seen[2..].iter().map(|seen| seen.header("last-event-id")).collect();
    assert_eq!(resumed, [Some("2"), Some("2"), Some("2"), Some("3")]);
}

#[tokio::test]
async fn a_stream_that_has_gone_silent_is_opened_anew() {
    let steps = [
        Step::SendAndHold(stream_head().into_bytes()),
        Step::SendAndHold(format!("{}{}", stream_head(), message(8, &ask_event(8))).into_bytes()),
    ];
    let server = Script::play(steps).await;
    let client = server.builder().silence(Duration::from_millis(50)).build().unwrap();
    let mut stream = client.stream(StreamQuery::default().after(7).log("log1"));
    // With a place and a history there is nothing to ask before.
    let first = tokio::select! { biased; first = soon(stream.next()) => first.unwrap() };
    assert_eq!(first.seq, 8);
    assert_eq!(server.seen()[0].line, "GET /v1/events/stream?after=7&log=log1");
}

#[tokio::test]
async fn a_comment_keeps_a_stream_alive() {
    let (feed, pieces) = mpsc::unbounded_channel();
    let server = Script::play([Step::Feed(pieces)]).await;
    let client = server.builder().silence(Duration::from_secs(2)).build().unwrap();
    let mut stream = client.stream(StreamQuery::default().after(7).log("log1"));
    feed.send(stream_head().into_bytes()).unwrap();
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    for _ in 0..25 {
        tokio::select! {
            event = stream.next() => panic!("{event:?}"),
            _ = ticks.tick() => feed.send(b": still here\n\n".to_vec()).unwrap(),
        }
    }
    feed.send(message(8, &ask_event(8)).into_bytes()).unwrap();
    assert_eq!(soon(stream.next()).await.unwrap().seq, 8);
    assert_eq!(server.seen().len(), 1, "one connection, although `next` was dropped all the while");
}

#[tokio::test]
async fn another_history_of_the_log_ends_a_stream() {
    let steps = [
        Step::Send(format!("{}{}", stream_head(), message(8, &ask_event(8))).into_bytes()),
        Step::Send(problem(410, "log_changed", "the log was restored")),
    ];
    let server = Script::play(steps).await;
    let stream = server.client().stream(StreamQuery::default().after(7).log("log1")).into_stream();
    let items: Vec<_> = soon(stream.collect()).await;
    assert_eq!(items.len(), 2);
    assert_eq!(items[0].as_ref().unwrap().seq, 8);
    assert_eq!(items[1].as_ref().unwrap_err().code(), Some(ProblemCode::LogChanged));
}

#[tokio::test]
async fn events_of_a_type_that_is_not_known_yet_come_through_as_they_are() {
    let newer = json!({ "v": 1, "type": "note.added", "text": "hello" });
    let steps = [Step::SendAndHold(format!("{}{}", stream_head(), message(8, &newer)).into_bytes())];
    let server = Script::play(steps).await;
    let mut stream = server.client().stream(StreamQuery::default().after(7).log("log1"));
    let streamed = soon(stream.next()).await.unwrap();
    assert_eq!((streamed.event_type.as_str(), streamed.json), ("note.added", newer.to_string()));
}
