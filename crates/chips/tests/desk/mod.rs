//! A machine with a server on it, and commands that speak to it.
#![allow(clippy::unwrap_used, dead_code)]

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::serving::{Machine, Serving};

/// A machine with a server on it, and the tokens of its first harness and person.
pub struct Desk {
    pub machine: Machine,
    server: Option<Serving>,
    pub harness: String,
    pub person: String,
}

impl Desk {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// A machine whose server was started with these arguments.
    pub fn with(arguments: &[&str]) -> Self {
        let machine = Machine::new();
        let made = machine.json(&["init"]);
        let token = |kind: &str| made[kind]["token"].as_str().unwrap().to_owned();
        let (harness, person) = (token("harness"), token("person"));
        Self { server: Some(machine.serve(arguments)), machine, harness, person }
    }

    /// The server.
    pub fn server(&self) -> &Serving {
        self.server.as_ref().unwrap()
    }

    /// Ends the server as an operator does. Nothing answers until it is started again.
    pub fn stop(&mut self) {
        let stopped = self.server.take().unwrap().terminate();
        assert!(stopped.success(), "{stopped}");
    }

    /// Ends the server in the middle of whatever it does.
    pub fn kill(&mut self) {
        let mut server = self.server.take().unwrap();
        server.signal(rustix::process::Signal::KILL);
        server.wait();
    }

    /// Starts the server.
    pub fn start_server(&mut self, arguments: &[&str]) {
        self.server = Some(self.machine.serve(arguments));
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_at(&self.server().url(), arguments)
    }

    pub fn command_at(&self, url: &str, arguments: &[&str]) -> Command {
        let mut command = self.machine.command(arguments);
        command.env("CHIPS_URL", url).env("CHIPS_TOKEN", &self.harness);
        command
    }

    /// Starts `chips ask` and lets it wait.
    pub fn ask(&self, arguments: &[&str]) -> Serving {
        self.start(self.command(&[&["ask"], arguments].concat()))
    }

    pub fn start(&self, mut command: Command) -> Serving {
        Serving::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    pub fn open_ask(&self) -> Value {
        self.server().open_ask(&self.person)
    }

    /// Answers the open ask as the person.
    pub fn answer(&self, answer: Value) {
        let (status, event) = self.server().answer(&self.person, &self.open_ask(), answer);
        assert_eq!(status, 201, "{event}");
    }

    /// Closes the open ask as the harness does.
    pub fn settle(&self, answers: Value) {
        let ask = self.open_ask();
        let event = json!({
            "v": 1, "type": "question.answered", "id": ask["ask_id"].as_str().unwrap().replace("qst_", "evt_"),
            "workspace_id": ask["ask"]["workspace_id"], "run_id": ask["ask"]["run_id"], "ask_id": ask["ask_id"],
            "actor": ask["ask"]["actor"], "idempotency_key": format!("settle {}", ask["ask_id"]), "answers": answers,
        });
        let (status, event) = self.server().api(&self.harness, "POST", "/v1/events", Some(&event));
        assert_eq!(status, 201, "{event}");
    }

    pub fn events(&self, event_type: &str) -> Vec<Value> {
        let (_, page) = self.server().api(&self.person, "GET", &format!("/v1/events?type={event_type}"), None);
        page["events"].as_array().unwrap().clone()
    }

    pub fn run_state(&self, run_id: &str) -> Value {
        self.server().api(&self.harness, "GET", &format!("/v1/runs/{run_id}"), None).1["state"].clone()
    }
}

/// Waits for the end of an ask: its code, and what it printed.
pub fn end(mut ask: Serving) -> (Option<i32>, String, String) {
    let code = ask.wait().code();
    (code, ask.out.to_end(), ask.err.to_end())
}

pub fn text(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
