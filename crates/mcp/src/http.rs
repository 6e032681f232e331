//! Streamable HTTP: one request at a time, answered at once, with no state that a restart would lose.
//!
//! Every request is served for itself. What a session has to remember, the client's name, stands in its identifier,
//! sealed with the credential that opened it: nobody else can use it, there is no table of sessions to fill, and a
//! session outlives a restart of the server.

mod answer;
mod session;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::memory::{Memory, Receipts};
use crate::pace::{Link, Pace};
use crate::tools::Tools;

pub use answer::Body;
pub use session::Session;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Ended sessions that are remembered as ended; an older one could be used again, by its own credential alone.
const ENDED: usize = 4096;

/// The MCP side of a server.
#[derive(Debug)]
pub struct Front {
    memory: Arc<Memory>,
    pace: Pace,
    /// Between two comments of a stream.
    comment: Duration,
    /// Calls that a session could cancel.
    calls: Mutex<HashMap<(String, String), CancellationToken>>,
    ended: Mutex<(HashSet<String>, VecDeque<String>)>,
}

/// What a request is, as far as that has to be known before it is answered.
#[derive(Debug)]
pub struct Arrival {
    /// The conversation that it belongs to.
    pub conversation: Conversation,
    opens: Option<Session>,
    cancels: Option<String>,
    request_id: Option<String>,
}

/// What holds a client's requests together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conversation {
    /// A session (revisions up to 2025-11-25).
    Session(Session),
    /// The client's name, which each request tells (revision 2026-07-28); empty where it tells nothing.
    Client(String),
}

impl Conversation {
    /// The client's name.
    pub fn client(&self) -> &str {
        match self {
            Self::Session(session) => session.client(),
            Self::Client(name) => name,
        }
    }
}

/// Why a request does not even arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The session is none of this credential's, has ended or is too old: the client opens a new one.
    NoSession,
    /// No session is named where one must be.
    SessionNeeded,
    /// The body is a list of messages, which only revision 2025-03-26 had.
    Batch,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Front {
    /// A front at this pace, whose streams say something every `comment`.
    pub fn new(pace: Pace, comment: Duration) -> Self {
        Self { memory: Arc::default(), pace, comment, calls: Mutex::default(), ended: Mutex::default() }
    }

    /// Looks at a request's body and session. `credential` is a secret of whoever sent it; `now` is in Unix seconds.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn arrival(
        &self,
        headers: &HeaderMap,
        message: &Value,
        credential: &[u8; 32],
        now: u64,
    ) -> Result<Arrival, Refused> {
        if message.is_array() {
            return Err(Refused::Batch);
        }
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        let method = text("/method").unwrap_or_default();
        let opens = (method == "initialize")
            .then(|| Session::open(text("/params/clientInfo/name").unwrap_or_default(), credential, now));
        let session = match opens {
            Some(_) => None,
            None => self.session(headers, credential, now)?,
        };
        let client = || text("/params/_meta/io.modelcontextprotocol~1clientInfo/name").unwrap_or_default();
        Ok(Arrival {
            cancels: (method == "notifications/cancelled").then(|| message["params"]["requestId"].to_string()),
            request_id: message.get("id").filter(|_| !method.is_empty()).map(Value::to_string),
            conversation: match session {
                Some(session) => Conversation::Session(session),
                None => Conversation::Client(session::plain(client())),
            },
            opens,
        })
    }

    /// The session that these headers name, if they name one.
    fn session(&self, headers: &HeaderMap, credential: &[u8; 32], now: u64) -> Result<Option<Session>, Refused> {
        let mut named = headers.get_all(SESSION_ID).iter();
        let (Some(id), None) = (named.next(), named.next()) else {
            return if headers.contains_key(SESSION_ID) { Err(Refused::NoSession) } else { Ok(None) };
        };
        let session = id.to_str().ok().and_then(|id| Session::read(id, credential, now)).ok_or(Refused::NoSession)?;
        if lock(&self.ended).0.contains(session.id()) {
            return Err(Refused::NoSession);
        }
        Ok(Some(session))
    }

    /// Ends the session that these headers name.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn end(&self, headers: &HeaderMap, credential: &[u8; 32], now: u64) -> Result<(), Refused> {
        let session = self.session(headers, credential, now)?.ok_or(Refused::SessionNeeded)?;
        let mut ended = lock(&self.ended);
        if ended.0.insert(session.id().to_owned()) {
            ended.1.push_back(session.id().to_owned());
        }
        if ended.1.len() > ENDED
            && let Some(oldest) = ended.1.pop_front()
        {
            ended.0.remove(&oldest);
        }
        drop(ended);
        lock(&self.calls).iter().filter(|((of, _), _)| of == session.id()).for_each(|(_, call)| call.cancel());
        Ok(())
    }

    /// Answers a request: with JSON where that is quick, else with a stream whose first byte goes out at once. `closed`
    /// ends the waiting: calls return what they know then.
    pub async fn answer<D: Desk>(
        self: &Arc<Self>,
        request: Request<Bytes>,
        arrival: Arrival,
        desk: Arc<D>,
        closed: CancellationToken,
    ) -> Response<Body> {
        let session = match &arrival.conversation {
            Conversation::Session(session) => Some(session.id().to_owned()),
            Conversation::Client(_) => None,
        };
        if let (Some(session), Some(request_id)) = (&session, arrival.cancels)
            && let Some(call) = lock(&self.calls).get(&(session.clone(), request_id))
        {
            call.cancel();
        }
        let call = Call {
            front: self.clone(),
            key: session.zip(arrival.request_id),
            cancelled: CancellationToken::new(),
            desk: desk.clone(),
            receipts: Receipts::default(),
        };
        if let Some(key) = &call.key {
            lock(&self.calls).insert(key.clone(), call.cancelled.clone());
        }
        let tools = Tools {
            desk,
            memory: self.memory.clone(),
            pace: self.pace,
            link: Link::Http,
            client: Some(arrival.conversation.client().to_owned()),
            receipts: call.receipts.clone(),
            closed,
        };
        let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
        config.legacy_session_mode = false;
        config.json_response = true;
        // The stream around it has its own comments.
        config.sse_keep_alive = None;
        let service =
            StreamableHttpService::new(move || Ok(tools.clone()), Arc::new(NeverSessionManager::default()), config);
        let inner = Box::pin(async move { service.handle(request.map(Full::new)).await });
        let mut response = answer::answer(inner, call, self.comment).await;
        if let Some(session) = arrival.opens
            && response.status().is_success()
            && let Ok(id) = HeaderValue::from_str(session.id())
        {
            response.headers_mut().insert(SESSION_ID, id);
        }
        response
    }
}

/// A call that is being answered; it is forgotten when it is dropped.
pub(crate) struct Call<D> {
    front: Arc<Front>,
    key: Option<(String, String)>,
    cancelled: CancellationToken,
    desk: Arc<D>,
    receipts: Receipts,
}

impl<D: Desk> Call<D> {
    /// The whole answer has gone out.
    fn told(&self) {
        for ask_id in self.receipts.take_all() {
            self.front.memory.handed.insert(ask_id);
            let desk = self.desk.clone();
            tokio::spawn(async move { desk.handed_over(ask_id).await });
        }
    }
}

impl<D> Drop for Call<D> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            lock(&self.front.calls).remove(key);
        }
    }
}
