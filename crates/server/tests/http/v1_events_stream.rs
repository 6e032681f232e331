//! `GET /v1/events/stream`: the log as Server-Sent Events.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Frame, Raw, Setup, TestApp, answer, ask, until, with, within};

/// Streams look their credential up at some comments too; without any, what ends them is the change itself.
fn never_comments() -> Setup {
    Setup::limited(|limits| limits.comment = Duration::from_secs(3600))
}

async fn told(app: &TestApp) -> Value {
    let run = app.harness.run().await;
    app.harness.send(&ask(&app.harness, run)).await.expect(201)
}

#[tokio::test]
async fn a_stream_begins_with_the_retry_and_has_the_headers_that_keep_it_alive() {
    let app = TestApp::start().await;
    let mut stream = app.harness.stream("/v1/events/stream").await;
    let header = |name: &str| stream.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(header("content-type").as_deref(), Some("text/event-stream"));
    assert_eq!(header("cache-control").as_deref(), Some("no-store"));
    assert_eq!(header("x-accel-buffering").as_deref(), Some("no"));
    assert_eq!(header("content-encoding"), None);
    assert_eq!(header("content-length"), None);
    assert_eq!(stream.next().await, Some(Frame::Retry(1000)));
}

#[tokio::test]
async fn without_a_place_it_begins_at_the_head_and_with_one_after_it() {
    let app = TestApp::start().await;
    let first = told(&app).await;
    let mut live = app.person.stream("/v1/events/stream").await;
    let mut whole = app.person.stream("/v1/events/stream?after=0").await;
    let second = told(&app).await;
    assert_eq!(live.event().await, (2, second.clone()));
    assert_eq!(whole.event().await, (1, first));
    assert_eq!(whole.event().await, (2, second.clone()));
    let mut resumed = app.person.stream_from("/v1/events/stream?after=0", Some("1")).await;
    assert_eq!(resumed.event().await, (2, second), "`Last-Event-ID` wins over `after`");
}

#[tokio::test]
async fn a_place_that_can_not_be_is_refused() {
    let app = TestApp::start().await;
    told(&app).await;
    let from = |last: &'static str| {
        let request = app.person.request(reqwest::Method::GET, "/v1/events/stream").header("last-event-id", last);
        crate::support::Reply::to(request)
    };
    from("2").await.problem(410, "cursor_ahead");
    for bad in ["x", "-1", "+1", "1.0", "1 1", "99999999999999999999"] {
        from(bad).await.problem(400, "bad_query");
    }
    app.person.get("/v1/events/stream?after=2").await.problem(410, "cursor_ahead");
    app.person.get("/v1/events/stream?limit=2").await.problem(400, "bad_query");
}

#[tokio::test]
async fn filters_hold_for_what_comes() {
    let app = TestApp::start().await;
    let asked = told(&app).await;
    let mut answers = app.person.stream("/v1/events/stream?after=0&type=question.answered").await;
    let ask_id = asked["ask_id"].as_str().unwrap();
    let mut one = app.harness.stream(&format!("/v1/events/stream?after=1&ask_id={ask_id}")).await;
    let mut others = app.other_harness.stream("/v1/events/stream?after=0").await;
    told(&app).await;
    let answered = app.person.send(&answer(&app.person, &asked, "26")).await.expect(201);
    assert_eq!(answers.event().await, (3, answered.clone()));
    assert_eq!(one.event().await, (3, answered));
    let run = app.other_harness.run().await;
    let own = app.other_harness.send(&ask(&app.other_harness, run)).await.expect(201);
    assert_eq!(others.event().await, (4, own), "another harness's events never come");
}

#[tokio::test]
async fn m17_a_cut_stream_resumes_with_each_event_once() {
    let app = TestApp::start().await;
    let mut stream = app.person.stream("/v1/events/stream").await;
    let first = told(&app).await;
    let (seq, got) = stream.event().await;
    assert_eq!(got, first);
    drop(stream);
    let second = told(&app).await;
    let mut resumed = app.person.stream_from("/v1/events/stream", Some(&seq.to_string())).await;
    assert_eq!(resumed.event().await, (2, second));
    let third = told(&app).await;
    assert_eq!(resumed.event().await, (3, third));
}

#[tokio::test]
async fn m18_a_text_that_looks_like_a_stream_stays_one_line() {
    let app = TestApp::start().await;
    let mut stream = app.person.stream("/v1/events/stream").await;
    let run = app.harness.run().await;
    let prompt = "a\r\n\r\nevent: x\ndata: forged\n\nid: 99\u{2028}b\rretry: 1";
    let sent = with(&ask(&app.harness, run), "/questions/0/prompt", prompt);
    let stored = app.harness.send(&sent).await.expect(201);
    assert_eq!(stored["questions"][0]["prompt"], prompt);
    assert_eq!(stream.next().await, Some(Frame::Retry(1000)));
    let Some(Frame::Event { id, event, data }) = stream.next().await else { panic!("no event") };
    assert_eq!((id.as_str(), event.as_str()), ("1", "question.ask"));
    assert_eq!(serde_json::from_str::<Value>(&data).unwrap(), stored);
    told(&app).await;
    assert_eq!(stream.event().await.0, 2, "nothing was forged in between");
}

#[tokio::test]
async fn a_quiet_stream_comments() {
    let app = TestApp::with(Setup::limited(|limits| limits.comment = Duration::from_millis(20))).await;
    let mut stream = app.person.stream("/v1/events/stream").await;
    assert_eq!(stream.next().await, Some(Frame::Retry(1000)));
    for _ in 0..10 {
        assert_eq!(stream.next().await, Some(Frame::Comment));
    }
    let told = told(&app).await;
    assert_eq!(stream.event().await, (1, told));
}

#[tokio::test]
async fn a_stream_whose_client_has_left_ends_soon_and_one_whose_client_has_no_more_to_say_goes_on() {
    // Nothing but that it looks could tell that somebody has left.
    let app = TestApp::with(never_comments()).await;
    let open = async || {
        let mut raw = Raw::connect(app.address).await;
        let (address, token) = (app.address, &app.person.token);
        raw.send(format!("GET /v1/events/stream HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"))
            .await;
        raw
    };
    let streams = async |count: usize| {
        let line = format!("chips_streams {count}");
        until(async || app.person.get("/metrics").await.text.lines().any(|found| found == line).then_some(())).await;
    };
    let mut quiet = open().await;
    streams(1).await;
    tokio::io::AsyncWriteExt::shutdown(&mut quiet.stream).await.unwrap();
    let left = open().await;
    streams(2).await;
    drop(left);
    streams(1).await;
    let told = told(&app).await;
    let id = told["id"].as_str().unwrap();
    within(async {
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        while !text.contains(id) {
            let count = tokio::io::AsyncReadExt::read(&mut quiet.stream, &mut piece).await.unwrap();
            assert!(count > 0, "it ended: {text}");
            text.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
    })
    .await;
}

#[tokio::test]
async fn head_gets_the_headers_and_no_stream() {
    let app = TestApp::start().await;
    let mut raw = Raw::connect(app.address).await;
    let request = format!(
        "HEAD /v1/events/stream HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        app.address, app.person.token
    );
    for _ in 0..2 {
        raw.send(&request).await;
        let reply = raw.reply_to("HEAD").await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        assert_ne!(reply.header("content-length"), Some("0"));
    }
}

#[tokio::test]
async fn h07_a_stream_ends_when_its_token_does_and_the_ask_stays() {
    let app = TestApp::with(never_comments()).await;
    let asked = told(&app).await;
    let mut stream = app.harness.stream("/v1/events/stream").await;
    let mut kept = app.person.stream("/v1/events/stream").await;
    assert_eq!(stream.next().await, Some(Frame::Retry(1000)));
    app.admin().disable(app.harness.id).unwrap();
    assert_eq!(stream.rest().await, Vec::<Value>::new());
    app.harness.get("/v1/me").await.problem(401, "unauthenticated");
    let answered = app.person.send(&answer(&app.person, &asked, "26")).await.expect(201);
    assert_eq!(kept.event().await, (2, answered));
}

#[tokio::test]
async fn a_new_token_ends_the_old_one_s_stream() {
    let app = TestApp::with(never_comments()).await;
    let mut stream = app.harness.stream("/v1/events/stream").await;
    let (issued, _) = app.admin().rotate(app.harness.id, None).unwrap();
    assert_eq!(stream.rest().await, Vec::<Value>::new());
    let mut renewed = app.harness.clone();
    renewed.token = issued.token;
    renewed.get("/v1/me").await.expect(200);
}

#[tokio::test]
async fn a_stream_ends_soon_after_its_token_ended_by_itself() {
    let (mut setup, time) = Setup::by_hand();
    setup.config.limits.comment = Duration::from_millis(20);
    let app = TestApp::with(setup).await;
    app.admin().rotate(app.harness.id, Some(60_000)).unwrap();
    let mut stream = app.harness.stream("/v1/events/stream").await;
    assert_eq!(stream.next().await, Some(Frame::Retry(1000)));
    for _ in 0..10 {
        assert_eq!(stream.next().await, Some(Frame::Comment));
    }
    time.pass_ms(365 * 24 * 3_600_000);
    assert_eq!(stream.rest().await, Vec::<Value>::new());
}

#[tokio::test]
async fn h06_whoever_leaves_a_space_gets_no_more_of_it() {
    let app = TestApp::with(never_comments()).await;
    let run = app.harness.run_in(app.closed_space).await;
    let first = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let mut stream = app.person.stream("/v1/events/stream?after=0").await;
    assert_eq!(stream.event().await, (1, first.clone()));
    let person = app.person.id.to_string().parse().unwrap();
    let mut changes = app.store.access_changes();
    app.admin().set_member(app.closed_space, person, false).unwrap();
    // A new request feels it at once; the stream is told within seconds.
    let path = format!("/v1/asks/{}", first["ask_id"].as_str().unwrap());
    app.person.get(&path).await.problem(404, "not_found");
    app.person.send(&answer(&app.person, &first, "19")).await.problem(404, "not_found");
    within(changes.changed()).await.unwrap();
    app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let open_run = app.harness.run().await;
    let third = app.harness.send(&ask(&app.harness, open_run)).await.expect(201);
    assert_eq!(stream.event().await, (3, third), "the second never came");
}

#[tokio::test]
async fn a_thousand_quiet_streams_hear_one_event() {
    let app = TestApp::start().await;
    let mut streams = Vec::new();
    for _ in 0..1000 {
        streams.push(app.person.stream("/v1/events/stream").await);
    }
    let told = told(&app).await;
    for stream in &mut streams {
        assert_eq!(stream.event().await, (1, told.clone()));
    }
}

#[tokio::test]
async fn m31_a_reader_that_stops_reading_is_cut_off_and_misses_nothing() {
    const EVENTS: u64 = 10_000;
    let app = TestApp::with(Setup::limited(|limits| limits.stalled_write = Duration::from_millis(500))).await;
    app.admin().set_budget(app.harness_id(), Some(None), Some(None)).unwrap();
    let mut raw = Raw::narrow(app.address).await;
    raw.send(format!(
        "GET /v1/events/stream?after=0 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        app.address, app.person.token
    ))
    .await;
    let mut attentive = app.person.stream("/v1/events/stream?after=0").await;
    let run = app.harness.run().await;
    let writing = async {
        for _ in 0..EVENTS / 500 {
            let sent: Vec<Value> = (0..500).map(|_| ask(&app.harness, run)).collect();
            app.append(&sent).await;
        }
    };
    let reading = async {
        for seq in 1..=EVENTS {
            assert_eq!(attentive.event().await.0, seq);
        }
    };
    tokio::join!(writing, reading);
    let last = read_until_cut(&mut raw).await;
    assert!(last < EVENTS, "it was cut off before the end");
    let mut resumed = app.person.stream_from("/v1/events/stream", Some(&last.to_string())).await;
    for seq in last + 1..=EVENTS {
        assert_eq!(resumed.event().await.0, seq);
    }
    until(async || app.person.get("/metrics").await.text.contains("chips_streams 2\n").then_some(())).await;
}

/// The last `id` of a whole event in what came before the connection was cut.
async fn read_until_cut(raw: &mut Raw) -> u64 {
    let bytes = raw.rest().await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    whole.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).next_back().unwrap_or(0)
}

#[tokio::test]
async fn a_stream_renews_the_lease_of_the_run_it_names() {
    let (setup, time) = Setup::by_hand();
    let app = TestApp::with(setup).await;
    let run = app.harness.run_with(json!({ "lease_seconds": 30 })).await;
    let path = format!("/v1/runs/{run}");
    let before = app.person.get(&path).await.expect(200)["lease_until"].clone();
    time.pass_ms(20_000);
    let _stream = app.harness.stream(&format!("/v1/events/stream?run_id={run}")).await;
    until(async || (app.person.get(&path).await.expect(200)["lease_until"] != before).then_some(())).await;
}
