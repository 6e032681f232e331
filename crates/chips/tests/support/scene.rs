//! A workspace with a person and a harness on a running server, and what they say to it.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::events::{ask_with, new_id, question};
use super::http::{Request, Response};
use super::process::{Folder, Serve, text};
use super::stream::Stream;

/// A credential, and where to use it.
#[derive(Debug, Clone)]
pub struct Api {
    pub addr: SocketAddr,
    pub token: String,
    pub workspace: String,
    /// The participant's kind and identifier.
    pub kind: &'static str,
    pub id: String,
}

impl Api {
    pub fn get(&self, path: &str) -> Response {
        Request::get(path).bearer(&self.token).send(self.addr)
    }

    pub fn post(&self, path: &str, body: &Value) -> Response {
        Request::post_json(path, body.to_string()).bearer(&self.token).send(self.addr)
    }

    /// A POST without a body.
    pub fn post_empty(&self, path: &str) -> Response {
        Request::new("POST", path).bearer(&self.token).body("").send(self.addr)
    }

    /// The request that sends this body to `/v1/events`, byte for byte.
    pub fn event_request(&self, body: impl Into<Vec<u8>>) -> Request {
        Request::post_json("/v1/events", body).bearer(&self.token)
    }

    /// Sends this body to `/v1/events`, byte for byte.
    pub fn send_raw(&self, body: impl Into<Vec<u8>>) -> Response {
        self.event_request(body).send(self.addr)
    }

    /// Sends this event.
    pub fn send(&self, event: &Value) -> Response {
        self.send_raw(event.to_string())
    }

    /// A whole event of this participant around the fields of its type, with a fresh `id` and key.
    pub fn event(&self, run_id: &str, fields: Value) -> Value {
        let mut event = json!({
            "v": 1,
            "id": new_id("evt"),
            "workspace_id": self.workspace,
            "actor": {"kind": self.kind, "id": self.id},
            "run_id": run_id,
            "idempotency_key": new_id("key"),
        });
        let (Some(event_fields), Value::Object(fields)) = (event.as_object_mut(), fields) else {
            panic!("the fields of an event are an object")
        };
        event_fields.extend(fields);
        event
    }

    /// A `question.ask` with one plain question.
    pub fn plain_ask(&self, run_id: &str) -> Value {
        self.event(run_id, ask_with(&[question("fence")]))
    }

    /// A `question.answered` to this ask.
    pub fn answer(&self, ask: &Value, answers: &[Value]) -> Value {
        let fields = json!({"type": "question.answered", "ask_id": ask["ask_id"], "answers": answers});
        self.event(&text(ask, "/run_id"), fields)
    }

    /// Opens a run without any of the optional fields.
    pub fn open_run(&self) -> String {
        self.open_run_with(&json!({}))
    }

    pub fn open_run_with(&self, fields: &Value) -> String {
        text(&self.post("/v1/runs", fields).expect(201), "/run_id")
    }

    /// The `seq` of the workspace's last event.
    pub fn head(&self) -> u64 {
        self.get("/v1/events?limit=1").expect(200)["head"].as_u64().expect("a head")
    }

    /// Every event that this participant can see, in order.
    pub fn log(&self) -> Vec<Value> {
        self.events("")
    }

    /// Every event that this participant can see and that fits the filter (`""` or `&…`), in order.
    pub fn events(&self, filter: &str) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let after = all.last().map_or(0, seq);
            let page = self.get(&format!("/v1/events?limit=1000&after={after}{filter}")).expect(200);
            let events = page["events"].as_array().expect("events");
            if events.is_empty() {
                return all;
            }
            all.extend(events.iter().cloned());
        }
    }

    /// The ask as it stands.
    pub fn ask(&self, ask: &Value) -> Value {
        self.get(&ask_path(ask)).expect(200)
    }

    pub fn state(&self, ask: &Value) -> String {
        text(&self.ask(ask), "/state")
    }

    /// The ask, once it is closed.
    ///
    /// # Panics
    /// If it stays open for 60 s.
    #[track_caller]
    pub fn closed(&self, ask: &Value) -> Value {
        let conn = Request::get(&format!("{}?wait=20", ask_path(ask))).bearer(&self.token);
        for _ in 0..3 {
            let now = conn.send(self.addr).expect(200);
            if now["state"] != "open" {
                return now;
            }
        }
        panic!("the ask stays open: {ask}");
    }

    /// The stream of events from the head on.
    pub fn stream(&self) -> Stream {
        Stream::open(self.addr, &self.token, "", None)
    }
}

/// Where an ask is.
pub fn ask_path(ask: &Value) -> String {
    format!("/v1/asks/{}", text(ask, "/ask_id"))
}

/// An event's place in the log.
#[track_caller]
pub fn seq(event: &Value) -> u64 {
    event["seq"].as_u64().unwrap_or_else(|| panic!("no seq: {event}"))
}

/// A time of the protocol in milliseconds.
#[track_caller]
pub fn ms(value: &Value) -> i64 {
    let stamp = value.as_str().unwrap_or_else(|| panic!("no time: {value}"));
    let stamp: chips_protocol::Timestamp = stamp.parse().unwrap_or_else(|error| panic!("{stamp}: {error}"));
    stamp.ms()
}

/// A workspace on a running server.
pub struct Scene {
    // The server first: fields are dropped in this order, and the folder must outlive it.
    pub serve: Serve,
    pub folder: Folder,
    pub person: Api,
    pub harness: Api,
}

impl Scene {
    pub fn new() -> Self {
        let folder = Folder::new();
        let serve = Serve::start(&folder);
        Self::of(folder, serve)
    }

    pub fn of(folder: Folder, serve: Serve) -> Self {
        let person = api(&folder.made, "person", serve.addr, &folder.text("/workspace_id"));
        let harness = api(&folder.made, "harness", serve.addr, &folder.text("/workspace_id"));
        Self { serve, folder, person, harness }
    }

    /// The same folder, served again on the same address.
    pub fn restart(mut self, end: impl FnOnce(Serve)) -> Self {
        let listen = self.serve.addr.to_string();
        end(self.serve);
        self.serve = Serve::start_on(&self.folder, &listen);
        self
    }

    /// Another harness of the same workspace.
    pub fn add_harness(&self, name: &str) -> Api {
        let made = self.folder.admin(&["harness", "add", name]);
        participant(&made, "harness", self.serve.addr, &self.harness.workspace)
    }

    /// Another person of the same workspace.
    pub fn add_person(&self, name: &str) -> Api {
        let made = self.folder.admin(&["person", "add", name]);
        participant(&made, "person", self.serve.addr, &self.harness.workspace)
    }

    /// Another workspace: its person and its harness.
    pub fn add_workspace(&self, name: &str) -> (Api, Api) {
        let made = self.folder.admin(&["workspace", "add", name]);
        let workspace = text(&made, "/workspace_id");
        (api(&made, "person", self.serve.addr, &workspace), api(&made, "harness", self.serve.addr, &workspace))
    }

    /// Lets the harness ask without a limit.
    pub fn lift_budget(&self) {
        self.folder.admin(&["harness", "budget", &self.harness.id, "--open", "none", "--hour", "none"]);
    }

    /// Asks, and gives the event as it is stored.
    pub fn asked(&self, ask: &Value) -> Value {
        self.harness.send(ask).expect(201)
    }

    /// A run of the harness with one plain question open in it.
    pub fn open_ask(&self) -> Value {
        let run_id = self.harness.open_run();
        self.asked(&self.harness.plain_ask(&run_id))
    }
}

/// One of the two that `init` and `workspace add` make.
pub fn api(made: &Value, kind: &'static str, addr: SocketAddr, workspace: &str) -> Api {
    participant(&made[kind], kind, addr, workspace)
}

fn participant(made: &Value, kind: &'static str, addr: SocketAddr, workspace: &str) -> Api {
    Api { addr, token: text(made, "/token"), workspace: workspace.into(), kind, id: text(made, "/id") }
}
