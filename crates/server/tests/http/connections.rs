//! What happens below HTTP's surface: slow and lying peers, requests in a row, and requests within requests.

use std::time::Duration;

use crate::support::{Raw, Setup, TestApp, ask, until, within};

/// A `POST /v1/events` up to the end of its header, with these headers more.
fn post(app: &TestApp, headers: &str) -> String {
    format!(
        "POST /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n{headers}\r\n",
        app.address, app.harness.token
    )
}

fn get(app: &TestApp, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n", app.address, app.harness.token)
}

#[tokio::test]
async fn m22_a_body_that_is_too_large_is_refused_and_the_refusal_arrives() {
    let app = TestApp::start().await;
    for length in [256 * 1024 + 1, 900_000, 1024 * 1024] {
        let mut raw = Raw::connect(app.address).await;
        raw.send(post(&app, &format!("Content-Length: {length}\r\n"))).await;
        raw.send(vec![b' '; length]).await;
        let reply = raw.reply().await;
        assert_eq!(reply.status, 413);
        assert!(reply.body.contains("\"too_large\""));
        raw.closed().await;
    }
    // In chunks nobody says beforehand how long it will be; past a mebibyte the connection ends.
    let mut raw = Raw::connect(app.address).await;
    raw.send(post(&app, "Transfer-Encoding: chunked\r\n")).await;
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..17 {
        raw.send(&chunk).await;
    }
    assert_eq!(raw.reply().await.status, 413);
    raw.closed().await;
    // The largest that is taken.
    let mut raw = Raw::connect(app.address).await;
    raw.send(post(&app, &format!("Content-Length: {}\r\n", 256 * 1024))).await;
    raw.send(vec![b' '; 256 * 1024]).await;
    assert_eq!(raw.reply().await.status, 400);
}

#[tokio::test]
async fn whoever_asks_before_sending_too_much_is_told_at_once() {
    let app = TestApp::start().await;
    let mut raw = Raw::connect(app.address).await;
    raw.send(post(&app, "Content-Length: 500000\r\nExpect: 100-continue\r\n")).await;
    assert_eq!(raw.reply().await.status, 413);
    let mut raw = Raw::connect(app.address).await;
    raw.send(post(&app, "Content-Length: 2\r\nExpect: 100-continue\r\n")).await;
    let go_on = raw.reply_to("HEAD").await;
    assert_eq!(go_on.status, 100);
    raw.send("{}").await;
    assert_eq!(raw.reply().await.status, 422);
}

#[tokio::test]
async fn m22_a_content_length_that_lies_is_no_json() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let body = ask(&app.harness, run).to_string();
    for promised in [body.len() + 1, body.len() + 100_000] {
        let mut raw = Raw::connect(app.address).await;
        raw.send(post(&app, &format!("Content-Length: {promised}\r\n"))).await;
        raw.send(&body).await;
        tokio::io::AsyncWriteExt::shutdown(&mut raw.stream).await.unwrap();
        let reply = raw.reply().await;
        assert_eq!(reply.status, 400);
        assert!(reply.body.contains("\"malformed_json\""), "{}", reply.body);
    }
    assert_eq!(app.harness.head_seq().await, 0);
    // One that is too small leaves bytes over, which are no request.
    let mut raw = Raw::connect(app.address).await;
    raw.send(post(&app, "Content-Length: 2\r\n")).await;
    raw.send("{}{}{}\r\n\r\n").await;
    assert_eq!(raw.reply().await.status, 422);
    let rest = String::from_utf8(raw.rest().await).unwrap();
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400"), "{rest}");
}

#[tokio::test]
async fn m22_a_body_that_drips_is_cut_off() {
    let app = TestApp::with(Setup::limited(|limits| limits.body = Duration::from_millis(300))).await;
    let mut raw = Raw::connect(app.address).await;
    raw.send(post(&app, "Content-Length: 100000\r\n")).await;
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let (mut read, mut write) = raw.stream.split();
    let dripping = async {
        loop {
            ticks.tick().await;
            if tokio::io::AsyncWriteExt::write_all(&mut write, b" ").await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let mut answer = Vec::new();
    let reading = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut answer);
    within(async {
        tokio::select! {
            () = dripping => {}
            outcome = reading => drop(outcome),
        }
    })
    .await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(app.harness.head_seq().await, 0);
}

#[tokio::test]
async fn h16_a_thousand_headers_that_drip_end_in_time_and_hold_nobody_up() {
    const CONNECTIONS: usize = 1000;
    let app = TestApp::with(Setup::limited(|limits| limits.header = Duration::from_secs(2))).await;
    let request = get(&app, "/v1/me");
    let mut dripping = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut raw = Raw::connect(app.address).await;
        raw.send(&request[..1]).await;
        dripping.push(raw);
    }
    let run = app.harness.run().await;
    app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let drips = dripping.into_iter().map(|raw| {
        let bytes = request.clone().into_bytes();
        async move {
            let Raw { stream, .. } = raw;
            let (mut read, mut write) = stream.into_split();
            let writing = async {
                let mut ticks = tokio::time::interval(Duration::from_millis(500));
                for byte in &bytes[1..] {
                    ticks.tick().await;
                    if tokio::io::AsyncWriteExt::write_all(&mut write, &[*byte]).await.is_err() {
                        break;
                    }
                }
                std::future::pending::<()>().await;
            };
            let mut answer = Vec::new();
            tokio::select! {
                () = writing => {}
                outcome = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut answer) => drop(outcome),
            }
            answer
        }
    });
    let answers = within(futures::future::join_all(drips)).await;
    assert!(answers.iter().all(|answer| !answer.starts_with(b"HTTP/1.1 200")));
    // On a connection of its own: what the harness had before ends at this very moment.
    let mut next = Raw::connect(app.address).await;
    next.send(request).await;
    assert_eq!(next.reply().await.status, 200);
}

#[tokio::test]
async fn a_connection_that_says_nothing_ends() {
    let app = TestApp::with(Setup::limited(|limits| limits.header = Duration::from_millis(200))).await;
    let mut silent = Raw::connect(app.address).await;
    silent.closed().await;
    let mut idle = Raw::connect(app.address).await;
    idle.send(get(&app, "/v1/me")).await;
    assert_eq!(idle.reply().await.status, 200);
    idle.closed().await;
}

#[tokio::test]
async fn requests_in_a_row_are_answered_in_order() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let body = ask(&app.harness, run).to_string();
    let mut raw = Raw::connect(app.address).await;
    let all = [
        get(&app, "/v1/me"),
        format!("{}{body}", post(&app, &format!("Content-Length: {}\r\n", body.len()))),
        get(&app, "/v1/nothing"),
        get(&app, "/v1/events?limit=1"),
    ];
    raw.send(all.concat()).await;
    let mut statuses = Vec::new();
    for _ in &all {
        statuses.push(raw.reply().await.status);
    }
    assert_eq!(statuses, [200, 201, 404, 200]);
}

#[tokio::test]
async fn a_request_that_ends_its_side_is_answered() {
    let app = TestApp::start().await;
    let mut raw = Raw::connect(app.address).await;
    raw.send(get(&app, "/v1/me")).await;
    tokio::io::AsyncWriteExt::shutdown(&mut raw.stream).await.unwrap();
    assert_eq!(raw.reply().await.status, 200);
    raw.closed().await;
}

#[tokio::test]
async fn no_request_hides_in_another() {
    let app = TestApp::with(Setup::limited(|limits| limits.header = Duration::from_secs(1))).await;
    let run = app.harness.run().await;
    let hidden = {
        let body = ask(&app.harness, run).to_string();
        format!("{}{body}", post(&app, &format!("Content-Length: {}\r\n", body.len())))
    };
    for headers in [
        // Two framings: whoever is in front may have believed the other one.
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: identity, chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length : 5\r\n",
        " Content-Length: 5\r\n",
        "Transfer-Encoding : chunked\r\n",
    ] {
        let mut raw = Raw::connect(app.address).await;
        raw.send(format!("{}0\r\n\r\n{hidden}", post(&app, headers))).await;
        let all = String::from_utf8_lossy(&raw.rest().await).into_owned();
        assert!(!all.contains("HTTP/1.1 201"), "{headers:?}: {all}");
        assert!(all.matches("HTTP/1.1 ").count() <= 1, "{headers:?}: {all}");
        assert!(all.is_empty() || all.starts_with("HTTP/1.1 4"), "{headers:?}: {all}");
    }
    assert_eq!(app.harness.head_seq().await, 0);
}

#[tokio::test]
async fn odd_requests_get_an_answer_that_is_no_fault_of_the_server() {
    let app = TestApp::start().await;
    let host = format!("Host: {}\r\n", app.address);
    let long = "a".repeat(100_000);
    for request in [
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "\r\n\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        format!("OPTIONS * HTTP/1.1\r\n{host}\r\n"),
        format!("CONNECT {} HTTP/1.1\r\n{host}\r\n", app.address),
        format!("CONNECT /v1/me HTTP/1.1\r\n{host}\r\n"),
        format!("TRACE /v1/me HTTP/1.1\r\n{host}\r\n"),
        format!("GET /v1/me#fragment HTTP/1.1\r\n{host}\r\n"),
        format!("GET v1/me HTTP/1.1\r\n{host}\r\n"),
        format!("GET /{long} HTTP/1.1\r\n{host}\r\n"),
        format!("GET / HTTP/1.1\r\n{host}X: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(1000)),
        format!("GET / HTTP/1.1\r\n{host}\u{0}: x\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{host}Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n"),
        format!("GET /\u{7f} HTTP/1.1\r\n{host}\r\n"),
        format!("GET /v1/../v1/me HTTP/1.1\r\n{host}\r\n"),
        format!("GET //evil.example/v1/me HTTP/1.1\r\n{host}\r\n"),
        format!("GET /v1/me? HTTP/1.0\r\n{host}\r\n"),
    ] {
        let mut raw = Raw::connect(app.address).await;
        raw.send(&request).await;
        // Where an answer leaves the connection open, the next line ends it.
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut raw.stream).await;
        let all = raw.rest().await;
        let text = String::from_utf8_lossy(&all);
        let shown = &request[..request.len().min(60)];
        assert!(!text.contains("HTTP/1.1 5"), "{shown:?}: {text}");
        assert!(!text.contains("HTTP/1.1 1"), "{shown:?}: {text}");
    }
    app.harness.get("/v1/me").await.expect(200);
}

#[tokio::test]
async fn when_all_places_are_taken_the_next_one_waits_for_a_place() {
    let app = TestApp::with(Setup::limited(|limits| {
        limits.connections = 3;
        limits.header = Duration::from_millis(500);
    }))
    .await;
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(Raw::connect(app.address).await);
    }
    let mut next = Raw::connect(app.address).await;
    next.send(get(&app, "/v1/me")).await;
    assert_eq!(next.reply().await.status, 200, "the silent ones ended in time");
    for mut raw in taken {
        raw.closed().await;
    }
}

#[tokio::test]
async fn a_reader_of_an_answer_that_stops_reading_is_cut_off() {
    let app = TestApp::with(Setup::limited(|limits| limits.stalled_write = Duration::from_millis(300))).await;
    let run = app.harness.run().await;
    for _ in 0..40 {
        let sent = crate::support::with(&ask(&app.harness, run), "/questions/0/prompt", "x".repeat(4000));
        app.harness.send(&sent).await.expect(201);
    }
    let mut raw = Raw::narrow(app.address).await;
    // Far more than both ends' buffers hold, and not one byte of it is read.
    for _ in 0..100 {
        raw.send(get(&app, "/v1/events?limit=100")).await;
    }
    let before = "route=\"/v1/events\",status=\"200\"";
    until(async || app.person.get("/metrics").await.text.contains(before).then_some(())).await;
    let all = raw_rest_after_cut(&mut raw).await;
    assert!(all < 100, "{all} answers came");
}

/// Waits until the server has cut the connection, without reading, then counts the whole answers that were under way.
async fn raw_rest_after_cut(raw: &mut Raw) -> usize {
    within(async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        loop {
            ticks.tick().await;
            // A byte to a connection that was cut comes back as an error, sooner or later.
            if tokio::io::AsyncWriteExt::write_all(&mut raw.stream, b"\r\n").await.is_err() {
                return;
            }
        }
    })
    .await;
    let bytes = raw.rest().await;
    String::from_utf8_lossy(&bytes).matches("\"head\":").count()
}
