//! Somebody with a token.

use std::net::SocketAddr;

use chips_protocol::{ParticipantId, RunId, SpaceId, WorkspaceId};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::{LIMIT, Sse, id, within};

/// A client that speaks for nobody.
pub fn anonymous() -> Client {
    Client::builder().timeout(LIMIT).build().unwrap()
}

/// Clients to share: one for requests, and one for streams, which stay and so have no limit on the whole of them.
#[derive(Clone)]
pub struct Clients {
    requests: Client,
    streams: Client,
}

impl Default for Clients {
    fn default() -> Self {
        Self { requests: anonymous(), streams: Client::builder().build().unwrap() }
    }
}

/// A participant and its token.
#[derive(Clone)]
pub struct Actor {
    pub address: SocketAddr,
    pub workspace_id: WorkspaceId,
    pub id: ParticipantId,
    pub token: String,
    clients: Clients,
}

/// What a request was answered with.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Actor {
    pub fn new(
        clients: Clients,
        address: SocketAddr,
        workspace_id: WorkspaceId,
        id: ParticipantId,
        token: &str,
    ) -> Self {
        Self { address, workspace_id, id, token: token.to_owned(), clients }
    }

    /// A request of this actor, to be completed.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.clients.requests.request(method, format!("http://{}{path}", self.address)).bearer_auth(&self.token)
    }

    pub async fn get(&self, path: &str) -> Reply {
        Reply::to(self.request(Method::GET, path)).await
    }

    pub async fn head(&self, path: &str) -> Reply {
        Reply::to(self.request(Method::HEAD, path)).await
    }

    /// Posts nothing.
    pub async fn post_empty(&self, path: &str) -> Reply {
        Reply::to(self.request(Method::POST, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_text(path, &body.to_string()).await
    }

    pub async fn post_text(&self, path: &str, body: &str) -> Reply {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        Reply::to(request.body(body.to_owned())).await
    }

    /// Writes an event.
    pub async fn send(&self, event: &Value) -> Reply {
        self.post("/v1/events", event).await
    }

    /// Opens a run in no space.
    pub async fn run(&self) -> RunId {
        self.run_with(json!({})).await
    }

    pub async fn run_in(&self, space: SpaceId) -> RunId {
        self.run_with(json!({ "space_id": space })).await
    }

    pub async fn run_with(&self, body: Value) -> RunId {
        self.post("/v1/runs", &body).await.expect(201)["run_id"].as_str().unwrap().parse().unwrap()
    }

    /// The actor of this participant's own events.
    pub fn actor(&self) -> Value {
        let kind = match self.id {
            ParticipantId::Person(_) => "person",
            ParticipantId::Harness(_) => "harness",
            ParticipantId::Agent(_) => "agent",
            ParticipantId::System => "system",
        };
        json!({ "kind": kind, "id": self.id })
    }

    /// The envelope of an event of this participant, with a key and an id of its own.
    pub fn envelope(&self, event_type: &str, run: RunId) -> Value {
        json!({
            "v": 1,
            "type": event_type,
            "id": id("evt_"),
            "workspace_id": self.workspace_id,
            "actor": self.actor(),
            "run_id": run,
            "idempotency_key": id("key-"),
        })
    }

    /// Opens a stream.
    pub async fn stream(&self, path: &str) -> Sse {
        self.stream_from(path, None).await
    }

    pub async fn stream_from(&self, path: &str, last_event_id: Option<&str>) -> Sse {
        let url = format!("http://{}{path}", self.address);
        let mut request = self.clients.streams.get(url).bearer_auth(&self.token);
        if let Some(last) = last_event_id {
            request = request.header("last-event-id", last);
        }
        let response = within(request.send()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Sse::new(response)
    }

    /// The workspace's last `seq`.
    pub async fn head_seq(&self) -> u64 {
        self.get("/v1/events?limit=1").await.expect(200)["head"].as_u64().unwrap()
    }

    /// All events that this actor sees.
    pub async fn events(&self) -> Vec<Value> {
        self.get("/v1/events?limit=1000").await.expect(200)["events"].as_array().unwrap().clone()
    }
}

impl Reply {
    pub async fn to(request: RequestBuilder) -> Self {
        let response = within(request.send()).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = within(response.text()).await.unwrap();
        Self { status, headers, text }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The body, where the status is this one.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()
    }

    /// The problem, where it is one with this status and code and has the right form.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.text);
        let problem = self.json();
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["type"], format!("/problems/{code}"), "{problem}");
        for member in ["title", "detail"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        }
        assert_eq!(problem.get("errors").is_some(), code == "invalid_event", "{problem}");
        problem
    }

    /// The pointers and codes of the faults, where the event was refused.
    #[track_caller]
    pub fn faults(&self) -> Vec<(String, String)> {
        let problem = self.problem(422, "invalid_event");
        let text = |fault: &Value, member: &str| fault[member].as_str().unwrap().to_owned();
        let faults = problem["errors"].as_array().unwrap();
        faults.iter().map(|fault| (text(fault, "pointer"), text(fault, "code"))).collect()
    }
}
