//! A server that plays a script: one step for each request, in order, and keeps what it was sent.

#![allow(clippy::unwrap_used, dead_code)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chips_client::{Client, ClientBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

/// What the server does with one request.
pub enum Step {
    /// Sends these bytes and closes the connection.
    Send(Vec<u8>),
    /// Closes the connection without a byte.
    Cut,
    /// Sends these bytes and leaves the connection open until the test ends.
    SendAndHold(Vec<u8>),
    /// Sends what comes from the test, until the test drops the sender.
    Feed(mpsc::UnboundedReceiver<Vec<u8>>),
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Method and target.
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The server. It ends with the test's runtime.
pub struct Script {
    pub port: u16,
    steps: Arc<Mutex<VecDeque<Step>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    _held: oneshot::Sender<()>,
}

impl Script {
    pub async fn play(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::play_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), steps)
    }

    pub fn play_on(listener: TcpListener, steps: impl IntoIterator<Item = Step>) -> Self {
        let steps = Arc::new(Mutex::new(steps.into_iter().collect::<VecDeque<_>>()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let port = listener.local_addr().unwrap().port();
        let (held, hold) = oneshot::channel::<()>();
        tokio::spawn({
            let (steps, seen) = (steps.clone(), seen.clone());
            async move {
                let mut open = Vec::new();
                while let Ok((mut socket, _)) = listener.accept().await {
                    let Some(request) = read_request(&mut socket).await else { continue };
                    seen.lock().unwrap().push(request);
                    let step = steps.lock().unwrap().pop_front();
                    match step {
                        Some(Step::Send(bytes)) => {
                            let _ = socket.write_all(&bytes).await;
                            let _ = socket.shutdown().await;
                        }
                        Some(Step::Cut) => drop(socket),
                        Some(Step::SendAndHold(bytes)) => {
                            let _ = socket.write_all(&bytes).await;
                            open.push(socket);
                        }
                        Some(Step::Feed(mut pieces)) => {
                            tokio::spawn(async move {
                                while let Some(piece) = pieces.recv().await {
                                    let _ = socket.write_all(&piece).await;
                                }
                            });
                        }
                        None => {
                            let _ = socket.write_all(&problem(500, "off_script", "the script has no step left")).await;
                        }
                    }
                }
                let _ = hold.await;
            }
        });
        Self { port, steps, seen, _held: held }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn steps_left(&self) -> usize {
        self.steps.lock().unwrap().len()
    }

    pub fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    pub fn builder(&self) -> ClientBuilder {
        Client::builder(&self.url(), &token("hk")).pauses(Duration::from_millis(1), Duration::from_millis(20))
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = bytes[head + 4..].to_vec();
    while body.len() < length {
        if socket.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Seen { line, headers, body })
}

/// A token that has the right form.
pub fn token(kind: &str) -> String {
    format!("chips_{kind}_{}", "0".repeat(38))
}

/// A whole reply.
pub fn reply(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
        .into_bytes()
}

/// A reply with JSON.
pub fn ok(body: &Value) -> Vec<u8> {
    reply(200, "content-type: application/json\r\n", &body.to_string())
}

/// A reply that is a problem.
pub fn problem(status: u16, code: &str, detail: &str) -> Vec<u8> {
    problem_with(status, code, detail, "", json!({}))
}

/// A reply that is a problem, with headers and members of its own.
pub fn problem_with(status: u16, code: &str, detail: &str, headers: &str, more: Value) -> Vec<u8> {
    let mut body = json!({
        "type": format!("/problems/{code}"), "title": "t", "status": status, "detail": detail, "code": code,
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    reply(status, &format!("content-type: application/problem+json\r\n{headers}"), &body.to_string())
}

/// The start of a stream.
pub fn stream_head() -> String {
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_owned()
}

/// One message of a stream.
pub fn message(seq: u64, event: &Value) -> String {
    format!("id: {seq}\nevent: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

pub const WORKSPACE: &str = "ws_01K4ZQPX000000000000000001";
pub const RUN: &str = "run_01K4ZQPX000000000000000005";
pub const ASK: &str = "qst_01K4ZQPX000000000000000009";
pub const HARNESS: &str = "hrn_01K4ZQPX000000000000000004";
pub const PERSON: &str = "usr_01K4ZQPX000000000000000003";

/// What `GET /v1/me` says to the harness.
pub fn me() -> Value {
    json!({
        "workspace_id": WORKSPACE,
        "participant": { "kind": "harness", "id": HARNESS, "name": "Mailbot" },
        "spaces": [],
        "budget": { "open": 0, "open_limit": 100, "hour": 0, "hour_limit": 600 },
        "something_newer": true,
    })
}

/// A `question.ask` as it is stored.
pub fn ask_event(seq: u64) -> Value {
    json!({
        "v": 1, "type": "question.ask", "id": format!("evt_01K4ZQPX0000000000000000{:02}", seq % 100),
        "ts": "2026-09-02T14:22:05.004Z", "workspace_id": WORKSPACE,
        "actor": { "kind": "harness", "id": HARNESS }, "run_id": RUN, "seq": seq, "idempotency_key": "k",
        "ask_id": ASK,
        "questions": [{
            "question_id": "question", "prompt": "Ship?",
            "options": [{ "value": "y", "label": "Yes" }, { "value": "n", "label": "No" }],
        }],
    })
}

/// A `question.answered` as it is stored.
pub fn answered_event(seq: u64) -> Value {
    json!({
        "v": 1, "type": "question.answered", "id": format!("evt_01K4ZQPX0000000000000000{:02}", seq % 100),
        "ts": "2026-09-02T14:29:40.117Z", "workspace_id": WORKSPACE,
        "actor": { "kind": "person", "id": PERSON }, "run_id": RUN, "seq": seq, "idempotency_key": "a",
        "ask_id": ASK, "answers": [{ "question_id": "question", "values": ["y"] }],
        "answered_by": PERSON, "answered_at": "2026-09-02T14:29:40.117Z",
    })
}

/// ASK, open or answered.
pub fn ask_state(open: bool) -> Value {
    json!({
        "ask_id": ASK, "state": if open { "open" } else { "answered" }, "tier": "time_sensitive", "deadline": null,
        "asker": { "kind": "harness", "id": HARNESS, "name": "Mailbot" },
        "answerer": if open { Value::Null } else { json!({ "kind": "person", "id": PERSON, "name": "Ada" }) },
        "asker_gone": false, "reachable": true, "ask": ask_event(1),
        "answer": if open { Value::Null } else { answered_event(2) },
        "option_labels": { "question": { "y": "Yes", "n": "No" } }, "late_answers": [],
        "delivered_at": null, "acknowledged_at": null, "something_newer": [1, 2],
    })
}

/// RUN.
pub fn run() -> Value {
    json!({
        "run_id": RUN, "harness_id": HARNESS, "space_id": null, "title": null, "url": null, "labels": {},
        "parent_run_id": null, "state": "live", "started_at": "2026-09-02T14:22:05.004Z", "ended_at": null,
        "lease_seconds": null, "lease_until": null,
    })
}

/// A page of no events.
pub fn page(head: u64) -> Value {
    json!({ "events": [], "head": head, "log": "log1" })
}
