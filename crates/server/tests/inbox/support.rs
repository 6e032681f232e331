//! A running server, a harness that asks, and browsers without JavaScript.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chips_core::notify::Channel;
use chips_core::{Access, Sender, Who};
use chips_protocol::api::{Ask, AskState, NewRun, Run};
use chips_protocol::{AskId, EventId, HarnessId, PersonId, RunId, SpaceId, WorkspaceId, validate};
use chips_server::{Config, Ended, bind};
use chips_store::admin::{self, Admin, SignIn};
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::{Identity, NewEndpoint, Options, Store, secret};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The longest that a test waits for anything.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Waits for something that must come.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("it did not come in time")
}

/// Looks again and again until there is something.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let search = async {
        loop {
            ticks.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    tokio::time::timeout(LIMIT, search).await.unwrap_or_else(|_| panic!("in vain: {what}"))
}

/// A server with one workspace: Kim, who owns it; Robin; and a harness called "Purchasing".
pub struct App {
    pub address: SocketAddr,
    pub store: Store,
    pub workspace_id: WorkspaceId,
    pub space: SpaceId,
    pub kim: PersonId,
    pub robin: PersonId,
    pub harness: HarnessId,
    stop: CancellationToken,
    running: Option<JoinHandle<Ended>>,
    dir: TempDir,
    minted: AtomicU64,
}

impl App {
    pub async fn start() -> Self {
        Self::with(|_| {}, TimeSource::System).await
    }

    /// With another configuration.
    pub async fn configured(change: impl FnOnce(&mut Config)) -> Self {
        Self::with(change, TimeSource::System).await
    }

    /// With a clock that is moved by hand. It begins now, because links are made by the wall's clock.
    pub async fn by_hand() -> (Self, ManualTime) {
        Self::by_hand_with(|_| {}).await
    }

    /// The same with another configuration.
    pub async fn by_hand_with(change: impl FnOnce(&mut Config)) -> (Self, ManualTime) {
        let time = ManualTime::at(TimeSource::System.wall());
        (Self::with(change, TimeSource::Manual(time.clone())).await, time)
    }

    async fn with(change: impl FnOnce(&mut Config), time: TimeSource) -> Self {
        // A client for plain http asks for a provider of cryptography too.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let made = admin::init(dir.path()).unwrap();
        let mut hand = Admin::open(dir.path()).unwrap();
        let kim = hand.add_person(made.workspace_id, "Kim").unwrap().0.id;
        let robin = hand.add_person(made.workspace_id, "Robin").unwrap().0.id;
        let harness = hand.add_harness(made.workspace_id, "Purchasing").unwrap().id;
        hand.set_budget(harness, Some(None), Some(None)).unwrap();
        let store = Store::open(dir.path(), Options { time, ..Options::default() }).unwrap();
        let mut config = Config::on(SocketAddr::from(([127, 0, 0, 1], 0)));
        change(&mut config);
        let server = bind(config, store.clone()).await.unwrap();
        let stop = CancellationToken::new();
        Self {
            address: server.address(),
            running: Some(tokio::spawn(server.run(stop.clone()))),
            store,
            workspace_id: made.workspace_id,
            space: made.space_id,
            kim,
            robin,
            harness,
            stop,
            dir,
            minted: AtomicU64::new(1),
        }
    }

    /// A hand in the data folder, beside the server.
    pub fn admin(&self) -> Admin {
        Admin::open(self.dir.path()).unwrap()
    }

    /// A new way to sign in.
    pub fn way_in(&self, person: PersonId) -> SignIn {
        self.admin().link_person(person).unwrap()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A person as the store is asked for them.
    pub fn identity(&self, person: PersonId) -> Identity {
        let sender = Sender { workspace_id: self.workspace_id, who: Who::Person(person) };
        Identity { sender, name: "Kim".into(), access: Access::Person(person, [self.space].into()), owner: false }
    }

    /// A person is told at an address too, from now on.
    pub async fn tell(&self, person: PersonId, channel: Channel, address: &str, secret: Value) -> i64 {
        let (address, secret) = (address.to_owned(), secret.to_string());
        let endpoint = NewEndpoint { channel, address, secret, name: "Phone".to_owned(), session_id: None };
        self.store.add_endpoint(&self.identity(person), endpoint).await.unwrap().unwrap()
    }

    /// A browser in which nobody is signed in.
    pub fn browser(&self) -> Browser {
        Browser::new(self.address)
    }

    /// A browser in which Kim is signed in.
    pub async fn kim(&self) -> Browser {
        self.signed_in(self.kim).await
    }

    /// A browser in which this person is signed in.
    pub async fn signed_in(&self, person: PersonId) -> Browser {
        let browser = self.browser();
        let path = format!("/sign-in/{}", self.way_in(person).secret);
        let page = browser.get(&path).await;
        let done = browser.submit(&page.form(&path), &[]).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.body);
        browser
    }

    /// Stops the server and waits until it has ended.
    pub async fn stop(&mut self) {
        self.stop.cancel();
        assert!(matches!(within(self.running.take().unwrap()).await.unwrap(), Ended::Stopped));
    }

    /// Opens the store of a server that was stopped. Nobody is served yet.
    pub async fn reopen(&mut self) {
        self.store = Store::open(self.dir.path(), Options::default()).unwrap();
    }

    /// Serves again, on the same address.
    pub async fn serve_again(&mut self) {
        self.serve_again_with(|_| {}).await;
    }

    /// The same with another configuration.
    pub async fn serve_again_with(&mut self, change: impl FnOnce(&mut Config)) {
        self.stop = CancellationToken::new();
        let mut config = Config::on(self.address);
        change(&mut config);
        let server = bind(config, self.store.clone()).await.unwrap();
        self.running = Some(tokio::spawn(server.run(self.stop.clone())));
    }

    fn sender(&self) -> Sender {
        self.sender_of(self.harness)
    }

    /// A harness as the store is asked for it.
    pub fn sender_of(&self, harness: HarnessId) -> Sender {
        Sender { workspace_id: self.workspace_id, who: Who::Harness(harness) }
    }

    /// Whom the store is asked for, as the harness.
    fn viewer(&self) -> Identity {
        Identity {
            sender: self.sender(),
            name: "Purchasing".into(),
            access: Access::Harness(self.harness),
            owner: false,
        }
    }

    /// An id that no other of this test has.
    fn mint(&self) -> u128 {
        u128::from(self.minted.fetch_add(1, Ordering::SeqCst)) << 8
    }

    pub async fn run(&self, title: &str) -> Run {
        self.open_run(NewRun { title: Some(title.into()), ..NewRun::default() }).await
    }

    pub async fn open_run(&self, run: NewRun) -> Run {
        self.store.open_run(self.sender(), run).await.unwrap().0
    }

    /// Ends a run.
    pub async fn end_run(&self, run_id: RunId) {
        self.store.end_run(self.sender(), run_id).await.unwrap();
    }

    /// Asks, in a run of its own. `ask` holds `questions` and what else the content has.
    pub async fn ask(&self, ask: Value) -> AskId {
        let run = self.run("Weekly restock").await;
        self.ask_in(run.run_id, ask).await
    }

    /// Asks in a run.
    pub async fn ask_in(&self, run_id: RunId, mut ask: Value) -> AskId {
        let ask_id = AskId::from_parts(1_788_000_000_000, self.mint());
        ask["ask_id"] = json!(ask_id);
        self.write("question.ask", run_id, ask).await;
        ask_id
    }

    /// Another harness asks, in a run of its own.
    pub async fn ask_as(&self, harness: HarnessId, ask: Value) -> AskId {
        let run = NewRun { title: Some("Nightly".into()), ..NewRun::default() };
        self.ask_of(harness, run, ask).await
    }

    /// A harness opens a run and asks in it.
    pub async fn ask_of(&self, harness: HarnessId, run: NewRun, mut ask: Value) -> AskId {
        let run_id = self.store.open_run(self.sender_of(harness), run).await.unwrap().0.run_id;
        let ask_id = AskId::from_parts(1_788_000_000_000, self.mint());
        ask["ask_id"] = json!(ask_id);
        self.write_as(harness, "question.ask", run_id, ask).await;
        ask_id
    }

    /// The harness answers its own question (or, with no answers, takes it back).
    pub async fn settle(&self, ask_id: AskId, answers: Value) {
        let run_id = self.read(ask_id).await.ask.envelope.run_id;
        self.write("question.answered", run_id, json!({ "ask_id": ask_id, "answers": answers })).await;
    }

    /// The harness says that it has acted on the answer.
    pub async fn acknowledge(&self, ask_id: AskId) {
        self.store.acknowledge(self.sender(), ask_id).await.unwrap();
    }

    async fn write(&self, event_type: &str, run_id: RunId, event: Value) {
        self.write_as(self.harness, event_type, run_id, event).await;
    }

    async fn write_as(&self, harness: HarnessId, event_type: &str, run_id: RunId, mut event: Value) {
        let id = EventId::from_parts(1_788_000_000_000, self.mint());
        for (name, value) in [
            ("v", json!(1)),
            ("type", json!(event_type)),
            ("id", json!(id)),
            ("workspace_id", json!(self.workspace_id)),
            ("run_id", json!(run_id)),
            ("idempotency_key", json!(id.to_string())),
            ("actor", json!({ "kind": "harness", "id": harness })),
        ] {
            event[name] = value;
        }
        let draft = validate::draft(&event).unwrap();
        self.store.submit(self.sender_of(harness), draft).await.unwrap();
    }

    /// The ask as the harness sees it.
    pub async fn read(&self, ask_id: AskId) -> Ask {
        self.store.ask(&self.viewer(), ask_id).await.unwrap().unwrap()
    }

    /// Waits until the ask is closed.
    pub async fn closed(&self, ask_id: AskId) -> Ask {
        until("the ask closes", || async {
            let ask = self.read(ask_id).await;
            (ask.state != AskState::Open).then_some(ask)
        })
        .await
    }

    /// The answers of a closed ask, without who and when.
    pub async fn answers(&self, ask_id: AskId) -> Value {
        let ask = self.read(ask_id).await;
        json!(ask.answer.unwrap().as_answered().unwrap().answers)
    }

    /// The `seq` of the last event.
    pub fn head(&self) -> u64 {
        *self.store.head(self.workspace_id).borrow()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// One question with two options and what else it has.
pub fn question(id: &str, prompt: &str, more: Value) -> Value {
    let mut question = json!({
        "question_id": id,
        "prompt": prompt,
        "options": [
            { "value": "19", "label": "19 September", "description": "The date on the order." },
            { "value": "26", "label": "26 September" },
        ],
    });
    for (name, value) in more.as_object().unwrap() {
        question[name] = value.clone();
    }
    question
}

/// An ask with one plain question.
pub fn plain() -> Value {
    json!({ "questions": [question("when", "Which day should I confirm?", json!({}))] })
}

/// An ask with one question that also takes free text.
pub fn with_text() -> Value {
    json!({ "questions": [question("when", "Which day should I confirm?", json!({ "allow_free_text": true }))] })
}

/// A browser that runs no scripts: it keeps cookies and sends forms, and follows nothing by itself.
pub struct Browser {
    client: reqwest::Client,
    base: String,
    cookies: Mutex<BTreeMap<String, String>>,
}

impl Browser {
    fn new(address: SocketAddr) -> Self {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent("Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0")
            .build()
            .unwrap();
        Self { client, base: format!("http://{address}"), cookies: Mutex::default() }
    }

    /// The cookies, as a header has them.
    pub fn cookies(&self) -> String {
        let cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    /// A browser with the same cookies.
    pub fn twin(&self) -> Self {
        let cookies = self.cookies.lock().unwrap().clone();
        Self { client: self.client.clone(), base: self.base.clone(), cookies: Mutex::new(cookies) }
    }

    pub async fn get(&self, path: &str) -> Page {
        self.request(Method::GET, path, &[], None).await
    }

    pub async fn head(&self, path: &str) -> Page {
        self.request(Method::HEAD, path, &[], None).await
    }

    /// Loads a page and goes where it leads.
    pub async fn go(&self, path: &str) -> Page {
        let mut page = self.get(path).await;
        while page.status.is_redirection() {
            page = self.get(&page.location()).await;
        }
        page
    }

    /// Sends a form with its hidden fields and these.
    pub async fn submit(&self, form: &Form, fields: &[(&str, &str)]) -> Page {
        let mut all: Vec<(&str, &str)> = form.hidden.iter().map(|(name, value)| (&**name, &**value)).collect();
        all.extend(fields);
        self.post(&form.action, &all).await
    }

    /// Sends fields as a form of this site.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let origin = [("origin", self.base.as_str())];
        self.request(Method::POST, path, &origin, Some(encode(fields))).await
    }

    /// Sends anything.
    pub async fn request(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Option<String>) -> Page {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        }
        let cookies = self.cookies();
        if !cookies.is_empty() {
            all.insert("cookie", HeaderValue::from_str(&cookies).unwrap());
        }
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            all.entry("content-type").or_insert(HeaderValue::from_static("application/x-www-form-urlencoded"));
            request = request.body(body);
        }
        let response = within(request.headers(all).send()).await.unwrap();
        for cookie in response.headers().get_all(SET_COOKIE) {
            let (pair, _) = cookie.to_str().unwrap().split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            let mut cookies = self.cookies.lock().unwrap();
            if value.is_empty() {
                cookies.remove(name)
            } else {
                cookies.insert(name.into(), value.into())
            };
        }
        Page {
            path: path.to_owned(),
            status: response.status(),
            headers: response.headers().clone(),
            body: within(response.text()).await.unwrap(),
        }
    }

    /// Opens a stream and leaves its body to be read.
    pub async fn open(&self, path: &str, headers: &[(&str, &str)]) -> reqwest::Response {
        let mut request = self.client.get(format!("{}{path}", self.base)).header("cookie", self.cookies());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        within(request.send()).await.unwrap()
    }
}

/// Fields as a form sends them.
pub fn encode(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

/// A reply.
#[derive(Debug)]
pub struct Page {
    pub path: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Page {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Where it leads.
    pub fn location(&self) -> String {
        self.header("location").to_owned()
    }

    /// What a person reads on it: no tags, white space folded.
    pub fn text(&self) -> String {
        let body = self.body.split_once("<main").map_or(self.body.as_str(), |(_, main)| main);
        let mut text = String::new();
        let mut within_tag = false;
        for c in body.chars() {
            match c {
                '<' => within_tag = true,
                '>' if within_tag => {
                    within_tag = false;
                    text.push(' ');
                }
                c if !within_tag => text.push(c),
                _ => {}
            }
        }
        unescape(&text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Holds that a person reads this.
    #[track_caller]
    pub fn says(&self, words: &str) {
        // Isolation puts tags, and so spaces, around names.
        let close = |text: &str| text.replace(' ', "");
        assert!(close(&self.text()).contains(&close(words)), "{words:?} is not in {:?}", self.text());
    }

    /// The first form that goes to this path.
    #[track_caller]
    pub fn form(&self, action: &str) -> Form {
        self.forms().into_iter().find(|form| form.action == action).unwrap_or_else(|| {
            panic!("no form to {action} on {} ({}): {}", self.path, self.status, self.body);
        })
    }

    pub fn forms(&self) -> Vec<Form> {
        let forms = self.body.split("<form ").skip(1).filter_map(|rest| rest.split("</form>").next());
        forms
            .map(|form| {
                let inputs = form.split("<input ").skip(1);
                let hidden = inputs.filter(|input| attribute(input, "type").as_deref() == Some("hidden"));
                Form {
                    action: attribute(form, "action").unwrap_or_default(),
                    hidden: hidden
                        .map(|input| (attribute(input, "name").unwrap(), attribute(input, "value").unwrap()))
                        .collect(),
                }
            })
            .collect()
    }
}

/// A form, and its hidden fields.
#[derive(Debug, Clone)]
pub struct Form {
    pub action: String,
    pub hidden: Vec<(String, String)>,
}

impl Form {
    pub fn hidden(&self, name: &str) -> &str {
        &self.hidden.iter().find(|(key, _)| key == name).unwrap().1
    }

    /// The same with another hidden field.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.hidden.retain(|(key, _)| key != name);
        self.hidden.push((name.into(), value.into()));
        self
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let tag = tag.split('>').next()?;
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    rest.split('"').next().map(unescape)
}

/// The text of a piece of HTML, each entity read once.
fn unescape(html: &str) -> String {
    const ENTITIES: [(&str, char); 9] = [
        ("&lt;", '<'),
        ("&gt;", '>'),
        ("&quot;", '"'),
        ("&amp;", '&'),
        ("&#60;", '<'),
        ("&#62;", '>'),
        ("&#34;", '"'),
        ("&#39;", '\''),
        ("&#38;", '&'),
    ];
    let mut text = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        match ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity)) {
            Some((entity, character)) => {
                text.push(*character);
                rest = &rest[entity.len()..];
            }
            None => {
                text.push('&');
                rest = &rest[1..];
            }
        }
    }
    text + rest
}

/// The SHA-256 of a way in's link.
pub fn link_sha256(way_in: &SignIn) -> [u8; 32] {
    secret::sha256(&way_in.secret)
}
