//! Somebody who receives POSTs and answers them as a test wants.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;

use super::within;

/// What was received.
#[derive(Debug, Clone)]
pub struct Received {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[derive(Default)]
struct Shared {
    /// What is answered next; 204 once it is empty.
    answers: Mutex<Vec<StatusCode>>,
    received: watch::Sender<Vec<Received>>,
}

/// A server on a free port of this machine. It answers 204, what it was told to, or for `/silent` nothing at all; `/redirect`
/// sends to `/elsewhere`, and `/patient` asks to be left alone for a quarter of an hour.
pub struct Receiver {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

impl Receiver {
    pub async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(receive).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, shared }
    }

    /// An address of this receiver.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Its origin, for what a server excepts.
    pub fn origin(&self) -> url::Url {
        self.url("/").parse().unwrap()
    }

    /// Says what is answered to the next requests.
    pub fn answer_with(&self, statuses: &[u16]) {
        let statuses = statuses.iter().rev().map(|status| StatusCode::from_u16(*status).unwrap());
        *self.shared.answers.lock().unwrap() = statuses.collect();
    }

    /// Everything that came, as soon as it is this much.
    pub async fn wait_for(&self, count: usize) -> Vec<Received> {
        let mut received = self.shared.received.subscribe();
        within(received.wait_for(|all| all.len() >= count)).await.unwrap().clone()
    }

    /// Everything that came so far.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.borrow().clone()
    }
}

async fn receive(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let path = uri.path().to_owned();
    shared.received.send_modify(|all| all.push(Received { path: path.clone(), headers, body }));
    match path.as_str() {
        "/silent" => std::future::pending().await,
        "/redirect" => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/elsewhere")]).into_response(),
        "/patient" => (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "900")]).into_response(),
        _ => shared.answers.lock().unwrap().pop().unwrap_or(StatusCode::NO_CONTENT).into_response(),
    }
}
