//! The HTTP side of `opencode serve`: what is open, what happens, and replies.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, bail};
use chips_client::parts::{Parser, tls_config};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use url::{Host, Url};

use super::carry::{Delivered, Dialogs, Reply};
use super::wire::{Dialog, Heard, Pending};

/// How long OpenCode may take to reply; listing a directory may have to start what belongs to it.
const REPLY_WITHIN: Duration = Duration::from_secs(30);

/// A stream that is silent for longer is taken for dead. OpenCode sends a heartbeat every ten seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// Of how many sessions the directories are looked into, the latest first.
const SESSIONS: &str = "50";

/// The user name of OpenCode's basic authentication, where none is set.
pub const USER: &str = "opencode";

/// An `opencode serve`.
#[derive(Debug, Clone)]
pub struct Server {
    url: Url,
    user: String,
    password: Option<String>,
    http: reqwest::Client,
}

/// The events of a server, as they come.
pub struct Events {
    dialog: Dialog,
    response: Response,
    parser: Parser,
}

impl Server {
    /// The server at this address.
    ///
    /// # Errors
    /// TLS can't be spoken.
    pub fn new(url: Url, user: String, password: Option<String>) -> anyhow::Result<Self> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("chips/", env!("CARGO_PKG_VERSION")))
            // A redirect would take the password to wherever it points.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .tls_backend_preconfigured(tls_config(url.scheme() == "https")?);
        if is_local(&url) {
            builder = builder.no_proxy();
        }
        Ok(Self { url, user, password, http: builder.build().context("can't set up HTTP")? })
    }

    /// The address, for people.
    pub fn address(&self) -> String {
        self.url.as_str().trim_end_matches('/').to_owned()
    }

    fn request(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        match &self.password {
            Some(password) => request.basic_auth(&self.user, Some(password)),
            None => request,
        }
    }

    /// The JSON at a path; nothing where OpenCode has no such path (it shows its web page there).
    async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> anyhow::Result<Option<(StatusCode, Value)>> {
        let response = self.request(Method::GET, path, query).timeout(REPLY_WITHIN).send().await?;
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            bail!(
                "{} wants another password: set OPENCODE_SERVER_PASSWORD (and OPENCODE_SERVER_USERNAME)",
                self.address()
            );
        }
        if status.is_server_error() {
            bail!("{} answers {status}", self.address());
        }
        if !content_type(&response).starts_with("application/json") {
            return Ok(None);
        }
        Ok(Some((status, response.json().await?)))
    }

    async fn list(&self, path: &[&str], query: &[(&str, &str)]) -> anyhow::Result<Option<Vec<Value>>> {
        let Some((status, said)) = self.get(path, query).await? else { return Ok(None) };
        let list = said.get("data").unwrap_or(&said).as_array().cloned();
        Ok(list.filter(|_| status.is_success()))
    }

    /// Which ways of asking this server speaks.
    ///
    /// # Errors
    /// It can't be reached, or is no OpenCode.
    pub async fn dialogs(&self) -> anyhow::Result<Vec<Dialog>> {
        let mut spoken = Vec::new();
        if self.list(&["question"], &[]).await?.is_some() {
            spoken.push(Dialog::Question);
        }
        // Whether there is such a session or not, a server with forms answers in JSON.
        if self.get(&["api", "session", "ses_none", "form"], &[]).await?.is_some() {
            spoken.push(Dialog::Form);
        }
        if spoken.is_empty() {
            bail!("{} does not answer like OpenCode", self.address());
        }
        Ok(spoken)
    }

    /// Opens the stream of events. What happens after this returned is in it.
    ///
    /// # Errors
    /// It can't be opened.
    pub async fn events(&self, dialog: Dialog) -> anyhow::Result<Events> {
        let path: &[&str] = match dialog {
            Dialog::Question => &["global", "event"],
            Dialog::Form => &["api", "event"],
        };
        let opening = self.request(Method::GET, path, &[]).header(ACCEPT, "text/event-stream").send();
        let response = tokio::time::timeout(REPLY_WITHIN, opening).await.context("no reply in time")??;
        if !response.status().is_success() || !content_type(&response).starts_with("text/event-stream") {
            bail!("{} gives no stream of events ({})", self.address(), response.status());
        }
        Ok(Events { dialog, response, parser: Parser::default() })
    }

    /// The directories to look into: those of the latest sessions, and these.
    async fn directories(&self, dialog: Dialog, known: HashSet<String>) -> anyhow::Result<HashSet<String>> {
        let mut directories = known;
        let latest: &[&str] = match dialog {
            Dialog::Question => &["experimental", "session"],
            Dialog::Form => &["api", "session"],
        };
        let sessions = self.list(latest, &[("limit", SESSIONS)]).await?;
        let of = |session: &Value| {
            let place = session.get("directory").or_else(|| session.pointer("/location/directory"));
            place.or_else(|| session.get("worktree")).and_then(Value::as_str).map(str::to_owned)
        };
        let found = match sessions {
            Some(sessions) => sessions,
            None => self.list(&["project"], &[]).await?.unwrap_or_default(),
        };
        directories.extend(found.iter().filter_map(of));
        Ok(directories)
    }

    /// Which questions are open, and the directories that were looked into.
    ///
    /// # Errors
    /// OpenCode can't be asked.
    pub async fn open(
        &self,
        dialog: Dialog,
        known: HashSet<String>,
    ) -> anyhow::Result<(HashSet<String>, Vec<Pending>)> {
        let directories = self.directories(dialog, known).await?;
        let mut open: Vec<Pending> = Vec::new();
        let mut looked = HashSet::new();
        for directory in directories {
            let listed = match dialog {
                Dialog::Question => self.list(&["question"], &[("directory", &directory)]).await?,
                Dialog::Form => self.forms(&directory).await?,
            };
            if let Some(listed) = listed {
                open.extend(listed.iter().filter_map(|said| Pending::read(dialog, said, Some(&directory))));
                looked.insert(directory);
            }
        }
        Ok((looked, open))
    }

    /// The forms of a directory: by the directory where there is a list for that, else session by session.
    async fn forms(&self, directory: &str) -> anyhow::Result<Option<Vec<Value>>> {
        let place = [("location[directory]", directory)];
        if let Some(forms) = self.list(&["api", "form", "request"], &place).await? {
            return Ok(Some(forms));
        }
        let sessions = self.list(&["api", "session"], &[("directory", directory), ("limit", SESSIONS)]).await?;
        let mut forms = Vec::new();
        for session in sessions.unwrap_or_default() {
            let Some(id) = session.get("id").and_then(Value::as_str) else { continue };
            forms.extend(self.list(&["api", "session", id, "form"], &place).await?.unwrap_or_default());
        }
        Ok(Some(forms))
    }
}

impl Events {
    /// Waits until the server has said anything: from then on nothing is missed.
    ///
    /// # Errors
    /// The stream ended.
    pub async fn begin(&mut self) -> anyhow::Result<()> {
        self.read().await
    }

    /// The next event that matters here.
    ///
    /// # Errors
    /// The stream ended, or went silent.
    pub async fn next(&mut self) -> anyhow::Result<Heard> {
        loop {
            while let Some(message) = self.parser.pop() {
                if let Some(heard) = serde_json::from_str(&message.data).ok().and_then(|said| self.heard(&said)) {
                    return Ok(heard);
                }
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        let piece =
            tokio::time::timeout(SILENCE, self.response.chunk()).await.context("the stream has gone silent")??;
        let piece = piece.context("the stream has ended")?;
        self.parser.push(&piece).map_err(|_| anyhow::anyhow!("the stream can't be read"))
    }

    fn heard(&self, said: &Value) -> Option<Heard> {
        match self.dialog {
            Dialog::Question => Heard::read(said.get("payload")?, said.get("directory").and_then(Value::as_str)),
            Dialog::Form => Heard::read(said, said.pointer("/location/directory").and_then(Value::as_str)),
        }
    }
}

impl Dialogs for Server {
    async fn reply(&self, pending: &Pending, reply: &Reply) -> anyhow::Result<Delivered> {
        let (word, body) = match (reply, pending.dialog) {
            (Reply::Answers(body), _) => ("reply", body.clone()),
            (Reply::Dismiss, Dialog::Question) => ("reject", json!({})),
            (Reply::Dismiss, Dialog::Form) => ("cancel", json!({})),
        };
        let directory = pending.directory.as_deref();
        let (path, name) = match pending.dialog {
            Dialog::Question => (vec!["question", &pending.id, word], "directory"),
            Dialog::Form => {
                (vec!["api", "session", &pending.session, "form", &pending.id, word], "location[directory]")
            }
        };
        let query: Vec<_> = directory.map(|directory| (name, directory)).into_iter().collect();
        let response = self.request(Method::POST, &path, &query).json(&body).timeout(REPLY_WITHIN).send().await?;
        let status = response.status();
        if status.is_server_error() || status == StatusCode::UNAUTHORIZED {
            bail!("{} answers {status}", self.address());
        }
        let is_json = content_type(&response).starts_with("application/json");
        Ok(delivered(status.as_u16(), if is_json { response.json().await.ok() } else { None }.as_ref()))
    }

    async fn title(&self, pending: &Pending) -> Option<String> {
        let directory = pending.directory.as_deref().map(|directory| ("directory", directory));
        let path: &[&str] = match pending.dialog {
            Dialog::Question => &["session", &pending.session],
            Dialog::Form => &["api", "session", &pending.session],
        };
        let (_, said) = self.get(path, &directory.into_iter().collect::<Vec<_>>()).await.ok()??;
        let session = said.get("data").unwrap_or(&said);
        session.get("title").and_then(Value::as_str).map(str::to_owned)
    }

    fn host(&self) -> Option<String> {
        if is_local(&self.url) { None } else { self.url.host_str().map(str::to_owned) }
    }
}

/// What OpenCode's status says of a reply.
pub fn delivered(status: u16, said: Option<&Value>) -> Delivered {
    match status {
        200..=299 => Delivered::Taken,
        404 | 409 | 410 => Delivered::Gone,
        _ => {
            let words = said.and_then(|said| said.get("message").or_else(|| said.pointer("/data/message")));
            Delivered::Refused(words.and_then(Value::as_str).map_or_else(|| format!("status {status}"), str::to_owned))
        }
    }
}

fn content_type(response: &Response) -> &str {
    response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
