//! The client itself, and the calls that are about runs and the token.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chips_protocol::api::{Me, NewRun, Run};
use chips_protocol::{RunId, Timestamp};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

use crate::address::Address;
use crate::backoff::Pauses;
use crate::call::{Patience, Request};
use crate::error::{Error, SetupError};
use crate::link::{Link, LinkChange};
use crate::token::{Token, TokenKind};
use crate::{mint, tls};

/// Speaks to one server for one harness or person. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    retry_for: Option<Duration>,
}

struct Inner {
    address: Address,
    kind: TokenKind,
    http: reqwest::Client,
    link: Link,
    settings: Settings,
    /// Who the token speaks for; it never changes.
    me: OnceCell<Me>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub pauses: Pauses,
    /// How long the server may take to reply.
    pub reply_within: Duration,
    /// How long one poll of a wait lasts.
    pub poll: Duration,
    /// How long a stream may be silent before it counts as dead.
    pub silence: Duration,
}

/// The longest poll that the server allows for all the proxies on the way.
const LONGEST_POLL: Duration = Duration::from_secs(50);

/// How long a connection is kept for the next call. The server ends one that says nothing for 15 s: a call that went out
/// on it at that moment would have to be sent again.
const IDLE: Duration = Duration::from_secs(10);

/// Sets a client up.
pub struct ClientBuilder {
    address: String,
    token: String,
    agent: String,
    connect_within: Duration,
    retry_for: Option<Duration>,
    settings: Settings,
    listener: Option<Arc<dyn Fn(LinkChange) + Send + Sync>>,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("address", &self.address).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Names the program in the `User-Agent` header. Without this: `chips-client/VERSION`.
    #[must_use]
    pub fn user_agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = agent.into();
        self
    }

    /// How long a connection may take to stand: 10 s if this is not called.
    #[must_use]
    pub fn connect_within(mut self, limit: Duration) -> Self {
        self.connect_within = limit;
        self
    }

    /// How long the server may take to reply to a plain call: 30 s if this is not called.
    #[must_use]
    pub fn reply_within(mut self, limit: Duration) -> Self {
        self.settings.reply_within = limit;
        self
    }

    /// How long a plain call is sent again before it fails: 30 s if this is not called, nothing for no end.
    #[must_use]
    pub fn retry_for(mut self, limit: Option<Duration>) -> Self {
        self.retry_for = limit;
        self
    }

    /// The pause before a call is sent again: `first`, then twice as long each time, up to `cap`. 200 ms and 8 s if
    /// this is not called. A server's `Retry-After` makes it longer, jitter up to half as short.
    #[must_use]
    pub fn pauses(mut self, first: Duration, cap: Duration) -> Self {
        self.settings.pauses = Pauses { first, cap };
        self
    }

    /// How long one poll of [`Client::wait`] lasts, in whole seconds from 1 to 50: 30 s if this is not called.
    #[must_use]
    pub fn poll(mut self, length: Duration) -> Self {
        self.settings.poll = Duration::from_secs(length.as_secs().clamp(1, LONGEST_POLL.as_secs()));
        self
    }

    /// How long a stream may be silent before it is taken for dead and opened anew. The server says something every
    /// 15 s; 40 s if this is not called.
    #[must_use]
    pub fn silence(mut self, limit: Duration) -> Self {
        self.settings.silence = limit;
        self
    }

    /// Is told when the server can't be reached, and when it can be again.
    #[must_use]
    pub fn on_link(mut self, listener: impl Fn(LinkChange) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// The client. It connects when it is first used.
    ///
    /// # Errors
    /// When the address or the token can't be one, or TLS can't be spoken.
    pub fn build(self) -> Result<Client, SetupError> {
        let address: Address = self.address.parse()?;
        let token: Token = self.token.parse()?;
        let http = |error: &dyn fmt::Display| SetupError::Http(error.to_string());
        let mut credential =
            HeaderValue::from_str(&format!("Bearer {}", token.secret())).map_err(|error| http(&error))?;
        credential.set_sensitive(true);
        let mut builder = reqwest::Client::builder()
            .default_headers(HeaderMap::from_iter([(AUTHORIZATION, credential)]))
            .user_agent(self.agent)
            // A redirect would take the token to wherever it points.
            .redirect(Policy::none())
            .connect_timeout(self.connect_within)
            .pool_idle_timeout(IDLE)
            // A network that goes away without a word is noticed within half a minute, even in mid-poll.
            .tcp_keepalive(Duration::from_secs(15))
            .tcp_keepalive_interval(Duration::from_secs(5))
            .tcp_keepalive_retries(3)
            .tls_backend_preconfigured(tls::config(address.is_encrypted())?);
        if address.is_loopback() {
            // No proxy can reach this machine's own loopback interface.
            builder = builder.no_proxy();
        }
        let inner = Inner {
            kind: token.kind(),
            http: builder.build().map_err(|error| http(&error))?,
            link: Link::new(self.listener),
            settings: self.settings,
            me: OnceCell::new(),
            address,
        };
        Ok(Client { inner: Arc::new(inner), retry_for: self.retry_for })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.inner.address)
            .field("kind", &self.inner.kind)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client for the server at `url` (`http://127.0.0.1:7070`), as the harness or person that `token` speaks for.
    ///
    /// # Errors
    /// When the address or the token can't be one, or TLS can't be spoken.
    pub fn new(url: &str, token: &str) -> Result<Self, SetupError> {
        Self::builder(url, token).build()
    }

    /// As [`Client::new`], with settings.
    ///
    /// ```
    /// # fn main() -> Result<(), chips_client::SetupError> {
    /// let token = format!("chips_hk_{}", "x".repeat(38));
    /// let client = chips_client::Client::builder("http://127.0.0.1:7070", &token)
    ///     .user_agent("night-shift/1.4")
    ///     .on_link(|change| eprintln!("{change:?}"))
    ///     .build()?;
    /// assert_eq!(client.address().to_string(), "http://127.0.0.1:7070");
    /// # Ok(()) }
    /// ```
    pub fn builder(url: &str, token: &str) -> ClientBuilder {
        ClientBuilder {
            address: url.to_owned(),
            token: token.to_owned(),
            agent: concat!("chips-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_within: Duration::from_secs(10),
            retry_for: Some(Duration::from_secs(30)),
            settings: Settings {
                pauses: Pauses::default(),
                reply_within: Duration::from_secs(30),
                poll: Duration::from_secs(30),
                silence: Duration::from_secs(40),
            },
            listener: None,
        }
    }

    /// This client with another limit on how long a plain call is sent again; nothing for no end.
    #[must_use]
    pub fn retry_for(&self, limit: Option<Duration>) -> Self {
        Self { inner: self.inner.clone(), retry_for: limit }
    }

    /// The server's address.
    pub fn address(&self) -> &Address {
        &self.inner.address
    }

    /// What the token speaks for.
    pub fn kind(&self) -> TokenKind {
        self.inner.kind
    }

    /// How long until a moment of the server's clock, which the client knows from the replies so far; zero once it
    /// has passed. This machine's clock may be wrong.
    pub fn time_left(&self, until: Timestamp) -> Duration {
        self.inner.link.time_left(until)
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.inner.http
    }

    pub(crate) fn link(&self) -> &Link {
        &self.inner.link
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn patience(&self) -> Patience {
        Patience::Within(self.retry_for)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, Error> {
        self.call(&self.get_request(path, query, self.settings().reply_within), self.patience())
            .await
            .map(|(read, _)| read)
    }

    pub(crate) fn get_request(&self, path: &str, query: &[(&str, String)], time_limit: Duration) -> Request {
        let mut url = self.address().at(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Request { method: Method::GET, url, body: None, time_limit }
    }

    pub(crate) fn post_request(&self, path: &str, body: Option<Bytes>) -> Request {
        Request { method: Method::POST, url: self.address().at(path), body, time_limit: self.settings().reply_within }
    }

    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, body: Option<Bytes>) -> Result<T, Error> {
        self.call(&self.post_request(path, body), self.patience()).await.map(|(read, _)| read)
    }

    /// Who the token speaks for: `GET /v1/me`.
    ///
    /// # Errors
    /// `unauthenticated`, or what [`Error`] lists.
    pub async fn me(&self) -> Result<Me, Error> {
        let me: Me = self.get("/v1/me", &[]).await?;
        // Whoever asked first has set it; the workspace and the participant of a token never change.
        let _ = self.inner.me.set(me.clone());
        Ok(me)
    }

    /// [`Client::me`] as it was when it was first asked: workspace and participant, which never change.
    pub(crate) async fn identity(&self) -> Result<&Me, Error> {
        self.inner.me.get_or_try_init(|| self.get("/v1/me", &[])).await
    }

    /// Opens a run. Where `run_id` is left out, one is minted here, so that a call that is sent again opens no
    /// second run. A run that this harness opened before is returned as it stands, its first fields kept.
    ///
    /// # Errors
    /// `run_id_conflict`, `wrong_sender` (a person's token), `invalid_event`, or what [`Error`] lists.
    pub async fn open_run(&self, mut run: NewRun) -> Result<Run, Error> {
        if run.run_id.is_none() {
            run.run_id = Some(mint::run_id()?);
        }
        self.post("/v1/runs", Some(json(&run))).await
    }

    /// Ends a run; its open asks close. Ending it twice does nothing.
    ///
    /// # Errors
    /// `not_found`, or what [`Error`] lists.
    pub async fn end_run(&self, run_id: RunId) -> Result<Run, Error> {
        self.post(&format!("/v1/runs/{run_id}/end"), None).await
    }

    /// A run as it stands.
    ///
    /// # Errors
    /// `not_found`, or what [`Error`] lists.
    pub async fn run(&self, run_id: RunId) -> Result<Run, Error> {
        self.get(&format!("/v1/runs/{run_id}"), &[]).await
    }
}

/// The bytes of a body. The types that are sent have text keys and finite numbers, so this can't fail.
pub(crate) fn json(body: &impl Serialize) -> Bytes {
    serde_json::to_vec(body).map(Bytes::from).unwrap_or_default()
}
