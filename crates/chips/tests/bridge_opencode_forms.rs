//! `chips bridge opencode` and the forms of OpenCode's version 2, which is published nowhere yet: against a server that
//! speaks its wire as documented.
#![allow(clippy::unwrap_used)]

mod desk;
mod serving;
mod stub;

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use desk::Desk;
use serde_json::{Value, json};
use serving::{Serving, until};
use stub::{Request, begin_events, event, reply};

/// What the server knows.
#[derive(Default)]
struct State {
    open: Vec<Value>,
    listening: Vec<TcpStream>,
    replies: Vec<(String, Value)>,
}

impl State {
    fn tell(&mut self, kind: &str, data: Value) {
        let said = json!({ "id": "evt_1", "type": kind, "data": data, "location": { "directory": "/srv/garden" } });
        self.listening.retain_mut(|reader| event(reader, &said));
    }
}

#[derive(Clone)]
struct OpenCode {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl OpenCode {
    fn new() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let kept = state.clone();
        Self { address: stub::serve(move |request, connection| answer(&state, &request, connection)), state: kept }
    }

    /// Opens a form, as a session that asks does.
    fn ask(&self, id: &str, fields: Value) {
        let form = json!({ "id": id, "sessionID": "ses_1", "title": "Questions", "mode": "form", "fields": fields });
        let mut state = self.state.lock().unwrap();
        state.open.push(form.clone());
        state.tell("form.created", json!({ "form": form }));
    }

    /// Closes a form without the bridge.
    fn close(&self, id: &str, kind: &str, more: Value) {
        let mut state = self.state.lock().unwrap();
        state.open.retain(|form| form["id"] != id);
        let mut data = json!({ "id": id, "sessionID": "ses_1" });
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        state.tell(kind, data);
    }

    fn replies(&self) -> Vec<(String, Value)> {
        self.state.lock().unwrap().replies.clone()
    }

    fn is_heard(&self) -> bool {
        !self.state.lock().unwrap().listening.is_empty()
    }

    /// Starts a bridge, and waits until it listens.
    fn bridge(&self, desk: &Desk, more: &[&str]) -> Serving {
        self.state.lock().unwrap().listening.clear();
        let url = format!("http://{}", self.address);
        let bridge = desk.start(desk.command(&[&["bridge", "opencode", "--url", &url], more].concat()));
        until("the bridge", || self.is_heard().then_some(()));
        bridge
    }
}

fn answer(state: &Mutex<State>, request: &Request, mut connection: TcpStream) {
    let json = |connection, status: &str, body: Value| reply(connection, status, "application/json", &body.to_string());
    let path = request.path.split('?').next().unwrap();
    let mut state = state.lock().unwrap();
    match (request.method.as_str(), path) {
        ("GET", "/api/event") => {
            begin_events(&mut connection);
            event(&mut connection, &json!({ "id": "evt_0", "type": "server.connected", "data": {} }));
            state.listening.push(connection);
        }
        ("GET", "/api/session") => {
            let session = json!({ "id": "ses_1", "title": "Plant", "location": { "directory": "/srv/garden" } });
            json(connection, "200 OK", json!({ "data": [session], "cursor": {} }));
        }
        ("GET", "/api/session/ses_1") => {
            json(connection, "200 OK", json!({ "data": { "id": "ses_1", "title": "Plant" } }))
        }
        ("GET", "/api/form/request") => {
            assert!(request.path.ends_with("?location%5Bdirectory%5D=%2Fsrv%2Fgarden"), "{}", request.path);
            json(connection, "200 OK", json!({ "location": { "directory": "/srv/garden" }, "data": state.open }));
        }
        ("GET", "/api/session/ses_none/form") => {
            json(connection, "404 Not Found", json!({ "_tag": "SessionNotFoundError", "message": "no such session" }));
        }
        ("POST", path) => {
            let id = path.strip_prefix("/api/session/ses_1/form/").unwrap();
            let form = id.split('/').next().unwrap();
            let known = state.open.len();
            state.open.retain(|open| open["id"] != form);
            if state.open.len() == known {
                return json(connection, "409 Conflict", json!({ "_tag": "FormAlreadySettledError", "id": form }));
            }
            state.replies.push((id.to_owned(), request.body.clone()));
            reply(connection, "204 No Content", "application/json", "");
            let kind = if id.ends_with("/cancel") { "form.cancelled" } else { "form.replied" };
            state.tell(kind, json!({ "id": form, "sessionID": "ses_1", "answer": request.body["answer"] }));
        }
        _ => reply(connection, "200 OK", "text/html", "<!doctype html>"),
    }
}

fn one() -> Value {
    json!([{
        "key": "q0", "type": "string", "title": "Bed", "description": "Which bed first?", "custom": true,
        "options": [{ "value": "herbs", "label": "Herbs, north" }, { "value": "beans", "label": "Beans" }],
    }])
}

fn closed(desk: &Desk, ask: &Value) -> Value {
    let path = format!("/v1/asks/{}?wait=20", ask["ask_id"].as_str().unwrap());
    desk.server().api(&desk.person, "GET", &path, None).1
}

#[test]
fn an_answer_in_chips_closes_the_form_with_values_of_its_own_types() {
    let (desk, opencode) = (Desk::new(), OpenCode::new());
    let _bridge = opencode.bridge(&desk, &[]);
    let mut fields = one();
    fields.as_array_mut().unwrap().push(json!({ "key": "water", "type": "boolean", "title": "Water it?" }));
    opencode.ask("frm_1", fields);
    let ask = desk.open_ask();
    assert_eq!(ask["ask"]["questions"][0]["prompt"], "Which bed first?");
    assert_eq!(ask["ask"]["questions"][0]["options"][0]["label"], "Herbs, north");
    assert_eq!(ask["ask"]["questions"][1]["options"][1], json!({ "value": "false", "label": "No" }));
    let run = format!("/v1/runs/{}", ask["ask"]["run_id"].as_str().unwrap());
    assert_eq!(desk.server().api(&desk.person, "GET", &run, None).1["title"], "Plant · garden");
    desk.answer(json!({ "question_id": "q1", "values": ["false"] }));
    let replies = until("the reply", || Some(opencode.replies()).filter(|replies| !replies.is_empty()));
    assert_eq!(replies, [("frm_1/reply".to_owned(), json!({ "answer": { "water": false } }))]);
}

#[test]
fn an_answer_in_opencode_settles_the_ask_and_a_cancel_withdraws_it() {
    let (desk, opencode) = (Desk::new(), OpenCode::new());
    let _bridge = opencode.bridge(&desk, &[]);
    opencode.ask("frm_1", one());
    let ask = desk.open_ask();
    opencode.close("frm_1", "form.replied", json!({ "answer": { "q0": "beans" } }));
    let settled = closed(&desk, &ask);
    assert_eq!((&settled["state"], &settled["answer"]["answers"][0]["values"]), (&json!("settled"), &json!(["beans"])));
    opencode.ask("frm_2", one());
    let ask = desk.open_ask();
    opencode.close("frm_2", "form.cancelled", json!({}));
    assert_eq!(closed(&desk, &ask)["state"], "withdrawn");
    assert!(opencode.replies().is_empty());
}

#[test]
fn what_was_asked_or_closed_while_no_bridge_ran_is_not_missed() {
    let (desk, opencode) = (Desk::new(), OpenCode::new());
    opencode.ask("frm_1", one());
    let bridge = opencode.bridge(&desk, &[]);
    let ask = desk.open_ask();
    bridge.terminate();
    let bridge = opencode.bridge(&desk, &[]);
    bridge.err.wait_for("the same ask", |said| said.contains(ask["ask_id"].as_str().unwrap()).then_some(()));
    assert_eq!(desk.events("question.ask").len(), 1, "never a second card");

    // The stream is cut, and the form closes before it stands again: the list says that it is gone.
    let mut state = opencode.state.lock().unwrap();
    state.open.clear();
    state.listening.clear();
    drop(state);
    assert_eq!(closed(&desk, &ask)["state"], "withdrawn");
}

#[test]
fn what_chips_can_t_carry_stays_in_opencode_and_silence_is_told_as_it_was_wished() {
    let (desk, opencode) = (Desk::new(), OpenCode::new());
    let bridge = opencode.bridge(&desk, &["--timeout", "1s", "--on-no-answer", "cancel"]);
    opencode.ask("frm_1", json!([{ "key": "port", "type": "integer", "title": "Port" }]));
    bridge.err.wait_for("why", |said| said.contains("frm_1 is left to OpenCode's own dialog").then_some(()));
    assert!(desk.events("question.ask").is_empty());
    opencode.ask("frm_2", one());
    let replies = until("the reply", || Some(opencode.replies()).filter(|replies| !replies.is_empty()));
    assert_eq!(replies[0].0, "frm_2/cancel");
}
