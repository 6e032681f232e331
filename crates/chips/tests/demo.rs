//! `chips serve --demo`: from the question to the answer that came back, in one command.
#![allow(clippy::unwrap_used)]

mod serving;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use serving::{Machine, Serving};

/// The JSON document that stands in a text.
fn document(text: &str) -> Option<Value> {
    let from = text.find("\n{\n")?;
    let to = from + text[from..].find("\n}\n")? + 2;
    serde_json::from_str(&text[from..to]).ok()
}

/// The link and the code that the demo prints.
fn sign_in(server: &Serving) -> (String, String) {
    server.out.wait_for("the link and the code", |text| {
        let link = text.split_whitespace().find(|word| word.contains("/sign-in/"))?.to_owned();
        let code = text.split("type the code ").nth(1)?.split_once('.')?.0.to_owned();
        Some((link, code))
    })
}

/// A token for the first person.
fn person(machine: &Machine) -> String {
    let id = machine.json(&["person", "list"])[0]["id"].as_str().unwrap().to_owned();
    machine.json(&["person", "rotate", &id])["token"].as_str().unwrap().to_owned()
}

/// A browser without JavaScript, as far as the inbox needs one.
struct Browser<'a> {
    server: &'a Serving,
    cookies: BTreeMap<String, String>,
}

impl Browser<'_> {
    fn send(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (cookies, origin) = (cookies.join("; "), self.server.url());
        let mut headers = vec![("Cookie", cookies.as_str())];
        if method == "POST" {
            headers.extend([("Content-Type", "application/x-www-form-urlencoded"), ("Origin", &origin)]);
        }
        let (status, head, body) = self.server.http(method, path, &headers, body);
        for line in head.lines() {
            let Some((name, value)) = line.split_once(": ") else { continue };
            if name.eq_ignore_ascii_case("set-cookie") {
                let (name, value) = value.split(';').next().unwrap().split_once('=').unwrap();
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        (status, body)
    }

    fn open(&mut self, path: &str) -> String {
        let (status, page) = self.send("GET", path, "");
        assert_eq!(status, 200, "{path}: {page}");
        page
    }

    /// Sends the page's form to `path` with its hidden fields and this one.
    fn press(&mut self, page: &str, path: &str, field: &str) {
        let form = page.split_once(&format!("action=\"{path}\"")).unwrap_or_else(|| panic!("{page}")).1;
        let form = form.split_once("</form>").unwrap().0;
        let mut fields: Vec<String> = Vec::new();
        for input in form.split("<input type=\"hidden\" name=\"").skip(1) {
            let (name, rest) = input.split_once("\" value=\"").unwrap();
            fields.push(format!("{name}={}", rest.split_once('"').unwrap().0));
        }
        fields.push(field.to_owned());
        let (status, page) = self.send("POST", path, &fields.join("&"));
        assert_eq!(status, 303, "{page}");
    }
}

#[test]
fn the_link_signs_in_and_a_tap_in_the_inbox_is_the_answer_that_comes_back() {
    let machine = Machine::new();
    let server = machine.serve(&["--demo"]);
    let (link, _) = sign_in(&server);
    let path = link.strip_prefix(&server.url()).unwrap();
    server.out.wait_for("that it waits", |text| text.contains("waiting for an answer in the inbox…").then_some(()));

    let mut browser = Browser { server: &server, cookies: BTreeMap::new() };
    for _ in 0..3 {
        browser.open(path);
    }
    let page = browser.open(path);
    browser.press(&page, path, "");
    let inbox = browser.open("/");
    assert!(inbox.contains("Northwind can ship on the 19th or the 26th.") && inbox.contains("Purchasing"), "{inbox}");
    let ask = inbox.split_once("data-ask=\"").unwrap().1.split_once('"').unwrap().0;
    let path = format!("/asks/{ask}");
    let page = browser.open(&path);
    browser.press(&page, &path, "q0=1");

    let printed = server.out.wait_for("the answer that came back", document);
    assert_eq!(printed["type"], "question.answered");
    assert_eq!(printed["ask_id"], ask);
    assert_eq!(printed["answers"], json!([{ "question_id": "delivery-window", "values": ["26"] }]));
}

#[test]
fn the_demo_shows_the_main_job_from_the_question_to_the_answer() {
    let machine = Machine::new();
    let server = machine.serve(&["--demo"]);
    let (link, code) = sign_in(&server);
    let path = link.strip_prefix(&server.url()).unwrap();
    assert_eq!(server.http("GET", path, &[], "").0, 200, "the link works as it stands");
    assert_eq!(code.len(), 9, "{code}");
    server.out.wait_for("that it waits", |text| text.contains("waiting for an answer in the inbox…").then_some(()));

    let token = person(&machine);
    let ask = server.open_ask(&token);
    assert_eq!(ask["asker"]["name"], "Purchasing");
    assert_eq!(ask["tier"], "active");
    let question = &ask["ask"]["questions"][0];
    assert_eq!((&question["question_id"], &question["default_value"]), (&json!("delivery-window"), &json!("19")));
    assert_eq!((&question["allow_free_text"], &ask["ask"]["timeout_seconds"]), (&json!(true), &json!(3600)));

    let (status, event) = server.answer(&token, &ask, json!({ "question_id": "delivery-window", "values": ["26"] }));
    assert_eq!(status, 201, "{event}");
    let printed = server.out.wait_for("the answer that came back", document);
    assert_eq!(printed, event, "the event as the log holds it");
    server.out.wait_for("that it goes on serving", |text| text.contains("Ctrl-C ends the server").then_some(()));
    assert!(server.out.text().contains("confirms 26 September"), "{}", server.out.text());

    let (_, ask) = server.api(&token, "GET", &format!("/v1/asks/{}", ask["ask_id"].as_str().unwrap()), None);
    assert!(ask["acknowledged_at"].is_string(), "{ask}");
    let (_, run) = server.api(&token, "GET", &format!("/v1/runs/{}", ask["ask"]["run_id"].as_str().unwrap()), None);
    assert_eq!((&run["title"], &run["state"]), (&json!("Weekly restock"), &json!("ended")));
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn words_of_ones_own_come_back_escaped_for_the_terminal() {
    let machine = Machine::new();
    let server = machine.serve(&["--demo"]);
    let token = person(&machine);
    let ask = server.open_ask(&token);
    let words = "Ask again\nin \u{202e}May";
    let answer = json!({ "question_id": "delivery-window", "values": [], "free_text": words });
    assert_eq!(server.answer(&token, &ask, answer).0, 201);
    let printed = server.out.wait_for("the answer that came back", document);
    assert_eq!(printed["answers"][0]["free_text"], words);
    server.out.wait_for("that it goes on serving", |text| text.contains("Ctrl-C ends the server").then_some(()));
    let text = server.out.text();
    assert!(text.contains(r#"reads "Ask again\nin \u{202e}May""#), "{text}");
    assert!(!text.contains('\u{202e}'), "{text}");
}

#[test]
fn a_demo_started_again_asks_anew_and_leaves_nothing_behind() {
    let machine = Machine::new();
    let server = machine.serve(&["--demo"]);
    let (first_link, _) = sign_in(&server);
    let token = person(&machine);
    let first = server.open_ask(&token);
    assert_eq!(server.terminate().code(), Some(0));

    let server = machine.serve(&["--demo"]);
    let (second_link, _) = sign_in(&server);
    assert_ne!(first_link.rsplit('/').next(), second_link.rsplit('/').next());
    server.out.wait_for("that it waits", |text| text.contains("waiting for an answer in the inbox…").then_some(()));
    let (_, page) = server.api(&token, "GET", "/v1/asks?state=open", None);
    let open = page["asks"].as_array().unwrap();
    assert_eq!(open.len(), 1, "{page}");
    assert_ne!(open[0]["ask_id"], first["ask_id"]);
    let (_, first) = server.api(&token, "GET", &format!("/v1/asks/{}", first["ask_id"].as_str().unwrap()), None);
    assert_eq!(first["state"], "withdrawn");
    let harnesses = machine.json(&["harness", "list"]);
    let played = harnesses.as_array().unwrap().iter().filter(|one| one["name"] == "Purchasing").count();
    assert_eq!(played, 1, "{harnesses}");
}

#[test]
fn the_demo_takes_over_no_harness_of_the_same_name() {
    let machine = Machine::new();
    machine.json(&["init"]);
    let real = machine.json(&["harness", "add", "Purchasing"]);
    let server = machine.serve(&["--demo"]);
    sign_in(&server);
    assert_eq!(server.me(real["token"].as_str().unwrap()), 200);
}

#[test]
fn the_demo_prints_no_token() {
    let machine = Machine::new();
    let server = machine.serve(&["--demo"]);
    let token = person(&machine);
    let ask = server.open_ask(&token);
    let answer = json!({ "question_id": "delivery-window", "values": ["19"] });
    assert_eq!(server.answer(&token, &ask, answer).0, 201);
    server.out.wait_for("that it goes on serving", |text| text.contains("Ctrl-C ends the server").then_some(()));
    let (out, err) = (server.out.clone(), server.err.clone());
    assert_eq!(server.terminate().code(), Some(0));
    for text in [out.to_end(), err.to_end()] {
        assert!(!text.contains("chips_hk_") && !text.contains("chips_uk_"), "{text}");
    }
}
