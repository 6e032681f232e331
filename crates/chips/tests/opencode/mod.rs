//! The real OpenCode with a model that a test plays, on a machine that reaches no network.
#![allow(clippy::unwrap_used, dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::pty::Tty;
use crate::serving::{LIMIT, Serving, until_within};
use crate::stub;

/// How long OpenCode may take for what it does for the first time: on a busy machine that is a minute.
pub const PATIENCE: Duration = Duration::from_secs(LIMIT.as_secs() * 8);

/// The password of the server.
pub const PASSWORD: &str = "sesame";

/// The program of the npm package, where it is installed; says so where it is not.
pub fn program() -> Option<PathBuf> {
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let kinds: &[&str] = match std::env::consts::ARCH {
        "aarch64" => &["arm64", "arm64-musl"],
        _ if has_avx2() => &["x64", "x64-musl"],
        _ => &["x64-baseline", "x64-baseline-musl"],
    };
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/opencode/node_modules");
    let found =
        kinds.iter().map(|kind| modules.join(format!("opencode-{os}-{kind}/bin/opencode"))).find(|path| path.exists());
    if found.is_none() {
        eprintln!("SKIPPED: OpenCode is not here; `tests/npm/install tests/opencode` brings it");
    }
    found
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

/// A model that asks what it is told to, once for each prompt, and hears the answers.
#[derive(Clone, Default)]
pub struct Model {
    asks: Arc<Mutex<Value>>,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Model {
    /// Serves it as OpenAI's API does; gives the address.
    fn serve(&self) -> String {
        let model = self.clone();
        let address = stub::serve(move |request, mut connection| {
            let last =
                request.body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
            let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
            let can_ask = tools.iter().any(|tool| tool["function"]["name"] == "question");
            let (delta, reason) = if last["role"] == "user" && can_ask {
                let arguments = json!({ "questions": *model.asks.lock().unwrap() }).to_string();
                let call = json!({
                    "index": 0, "id": "call_1", "type": "function",
                    "function": { "name": "question", "arguments": arguments },
                });
                (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
            } else {
                if last["role"] == "tool" {
                    model.heard.lock().unwrap().push(last["content"].to_string());
                }
                (json!({ "role": "assistant", "content": "So be it." }), "stop")
            };
            stub::begin_events(&mut connection);
            for (delta, reason) in [(delta, Value::Null), (json!({}), json!(reason))] {
                let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
                let chunk = json!({
                    "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice],
                });
                stub::event(&mut connection, &chunk);
            }
        });
        format!("http://{address}/v1")
    }

    /// Waits until it has heard this from its tool.
    pub fn wait_for(&self, words: &str) -> String {
        until_within(PATIENCE, words, || self.heard.lock().unwrap().iter().find(|text| text.contains(words)).cloned())
    }
}

/// A machine with Chips, OpenCode and a model on it.
pub struct Garden {
    pub desk: Desk,
    pub model: Model,
    program: PathBuf,
    server: Option<Serving>,
    url: String,
}

/// A session that was asked something.
pub struct Session {
    pub id: String,
    pub folder: String,
}

impl Garden {
    /// Nothing where OpenCode is not installed.
    pub fn new() -> Option<Self> {
        let program = program()?;
        let (desk, model) = (Desk::new(), Model::default());
        let provider = json!({
            "npm": "@ai-sdk/openai-compatible", "name": "stub", "models": { "m": { "name": "m", "tool_call": true } },
            "options": { "baseURL": model.serve(), "apiKey": "none" },
        });
        let config = json!({
            "model": "stub/m", "small_model": "stub/m", "autoupdate": false, "share": "disabled",
            "provider": { "stub": provider },
        });
        let garden = Self { desk, model, program, server: None, url: String::new() };
        std::fs::write(garden.desk.machine.home().join("opencode.json"), config.to_string()).unwrap();
        garden.folder("first");
        // OpenCode would install what plugins may import, unless it finds that it has.
        let own = garden.folder(".config/opencode");
        garden.folder(".config/opencode/node_modules");
        let lock = json!({ "packages": { "": { "dependencies": { "@opencode-ai/plugin": "*" } } } });
        std::fs::write(Path::new(&own).join("package-lock.json"), lock.to_string()).unwrap();
        Some(garden)
    }

    /// A folder of this machine.
    pub fn folder(&self, name: &str) -> String {
        let folder = self.desk.machine.home().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder.canonicalize().unwrap().to_str().unwrap().to_owned()
    }

    /// What OpenCode is started with: no way out to any network, and none of the real machine's configuration.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let nowhere = "http://127.0.0.1:9";
        let mut variables: Vec<(&str, String)> = [
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ("OPENCODE_DISABLE_SHARE", "1"),
            ("npm_config_offline", "true"),
            ("npm_config_fetch_retries", "0"),
            ("npm_config_registry", nowhere),
            ("HTTP_PROXY", nowhere),
            ("HTTPS_PROXY", nowhere),
            ("http_proxy", nowhere),
            ("https_proxy", nowhere),
            ("NO_PROXY", "127.0.0.1,localhost"),
            ("no_proxy", "127.0.0.1,localhost"),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into();
        variables.push(("OPENCODE_CONFIG", self.desk.machine.home().join("opencode.json").display().to_string()));
        variables.push(("CHIPS_URL", self.desk.server().url()));
        variables.push(("CHIPS_TOKEN", self.desk.harness.clone()));
        variables
    }

    /// OpenCode's terminal UI, unchanged, whose model asks these questions.
    pub fn terminal(&self, questions: Value) -> Tty {
        *self.model.asks.lock().unwrap() = questions;
        let mut command = Command::new(&self.program);
        self.desk.machine.clean(&mut command);
        command.current_dir(self.folder("first")).envs(self.variables());
        Tty::run(&command, (80, 30), &[])
    }

    /// Starts `opencode serve`.
    pub fn start(&mut self) {
        let mut command = Command::new(&self.program);
        self.desk.machine.clean(&mut command);
        command.args(["serve", "--port", "0", "--hostname", "127.0.0.1"]).current_dir(self.folder("first"));
        command.envs(self.variables()).env("OPENCODE_SERVER_PASSWORD", PASSWORD);
        let server = Serving::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        self.url = until_within(PATIENCE, "OpenCode", || {
            let text = server.out.text();
            let line = text.lines().find_map(|line| line.split_once("listening on http://"));
            line.map(|(_, address)| format!("http://{}", address.trim()))
        });
        self.server = Some(server);
    }

    /// Ends it.
    pub fn stop(&mut self) {
        self.server.take().unwrap().terminate();
    }

    /// Starts `chips bridge opencode`, and waits until it follows.
    pub fn bridge(&self, more: &[&str]) -> Serving {
        let mut command = self.desk.command(&[&["bridge", "opencode", "--url", &self.url], more].concat());
        command.env("OPENCODE_SERVER_PASSWORD", PASSWORD);
        let bridge = self.desk.start(command);
        bridge.err.wait_for("the bridge", |said| said.contains("follows").then_some(()));
        bridge
    }

    /// One call of OpenCode's API.
    pub fn api(&self, method: &str, path: &str, folder: &str, body: Option<&Value>) -> (u16, Value) {
        stub::call(method, &format!("{}{path}?directory={folder}", self.url), Some(PASSWORD), body)
    }

    /// A session in a folder whose model asks these questions.
    pub fn prompt(&self, folder: &str, questions: Value) -> Session {
        *self.model.asks.lock().unwrap() = questions;
        let folder = self.folder(folder);
        let (status, session) = self.api("POST", "/session", &folder, Some(&json!({ "title": "Plant the beds" })));
        assert_eq!(status, 200, "{session}");
        let id = session["id"].as_str().unwrap().to_owned();
        let prompt = json!({ "parts": [{ "type": "text", "text": "Go on." }] });
        let (status, said) = self.api("POST", &format!("/session/{id}/prompt_async"), &folder, Some(&prompt));
        assert_eq!(status, 204, "{said}");
        Session { id, folder }
    }

    /// Waits until the session's question is open in OpenCode.
    pub fn question(&self, session: &Session) -> Value {
        until_within(PATIENCE, "the question in OpenCode", || {
            let (_, open) = self.api("GET", "/question", &session.folder, None);
            open.as_array()?.iter().find(|question| question["sessionID"] == session.id.as_str()).cloned()
        })
    }

    /// Waits until the session's question is open no more.
    pub fn question_closes(&self, session: &Session) {
        until_within(PATIENCE, "the end of the question", || {
            let (_, open) = self.api("GET", "/question", &session.folder, None);
            let mut open = open.as_array()?.iter();
            open.all(|question| question["sessionID"] != session.id.as_str()).then_some(())
        });
    }

    /// The asks that are open in Chips, as soon as there are this many.
    pub fn open_asks(&self, count: usize) -> Vec<Value> {
        until_within(PATIENCE, "the questions in Chips", || {
            let (_, page) = self.desk.server().api(&self.desk.person, "GET", "/v1/asks?state=open", None);
            page["asks"].as_array().filter(|asks| asks.len() == count).cloned()
        })
    }

    /// An ask, once it is closed.
    pub fn closed(&self, ask: &Value) -> Value {
        let path = format!("/v1/asks/{}?wait=20", ask["ask_id"].as_str().unwrap());
        self.desk.server().api(&self.desk.person, "GET", &path, None).1
    }
}

/// A question of the model's.
pub fn bed() -> Value {
    json!({
        "question": "Which bed first?", "header": "Bed",
        "options": [{ "label": "Herbs, north", "description": "Half done." }, { "label": "Beans", "description": "New." }],
    })
}
