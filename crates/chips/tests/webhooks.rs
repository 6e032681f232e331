//! What the real binary sends to addresses that it was given: answers to a harness, questions to a browser's push service.
#![allow(clippy::unwrap_used)]

mod desk;
mod serving;
#[allow(clippy::disallowed_methods, clippy::unwrap_used)] // a client of its own clock, as in `cases`
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use desk::Desk;
use serde_json::{Value, json};
use serving::LIMIT;
use support::browser::{Browser, Form};

/// Headers in lower case, and the body.
struct Post {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Post {
    fn header(&self, name: &str) -> &str {
        &self.headers.iter().find(|(known, _)| known == name).unwrap().1
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Takes every POST with 204 until the test ends.
fn receive(listener: TcpListener) -> Receiver<Post> {
    let (tell, posts) = channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = BufReader::new(connection.unwrap());
            let mut headers = Vec::new();
            let mut line = String::new();
            while connection.read_line(&mut line).unwrap() > 2 {
                if let Some((name, value)) = line.split_once(": ") {
                    headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
                }
                line.clear();
            }
            let length = headers.iter().find(|(name, _)| name == "content-length").unwrap().1.parse().unwrap();
            let mut body = vec![0; length];
            connection.read_exact(&mut body).unwrap();
            connection.into_inner().write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
            if tell.send(Post { headers, body }).is_err() {
                return;
            }
        }
    });
    posts
}

fn chosen(desk: &Desk) {
    desk.answer(json!({ "question_id": "question", "values": ["19"] }));
}

#[test]
fn n07_an_answer_is_posted_after_a_kill_and_again_by_hand_and_its_key_can_be_changed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let origin = format!("http://{address}");
    let mut desk = Desk::with(&["--allow-outbound", &origin]);
    let machine = &desk.machine;
    let harness = machine.json(&["harness", "list"])[0]["id"].as_str().unwrap().to_owned();
    let url = format!("{origin}/chips");
    let added = machine.run(&["harness", "webhook", "add", &harness, &url, "--json"]);
    assert_eq!(String::from_utf8(added.stderr).unwrap(), "", "the server excepts it");
    let added: Value = serde_json::from_slice(&added.stdout).unwrap();
    assert!(added["key"].as_str().unwrap().starts_with("whsec_"), "{added}");
    let number = added["id"].to_string();

    // Nobody listens there yet, and the server is killed.
    drop(listener);
    let ask = desk.ask(&["Ship on the 19th or the 26th?", "-o", "19=19 September", "-o", "26=26 September"]);
    chosen(&desk);
    assert_eq!(desk::end(ask).1, "19\n");
    desk.kill();
    let posts = receive(TcpListener::bind(address).unwrap());
    desk.start_server(&["--allow-outbound", &origin]);
    let first = posts.recv_timeout(LIMIT).unwrap();
    let event = first.json();
    let (id, ask_id) = (event["id"].as_str().unwrap(), event["ask_id"].as_str().unwrap());
    assert_eq!((&event["type"], first.header("webhook-id")), (&json!("question.answered"), id));
    assert_eq!(first.header("webhook-signature").split(' ').count(), 1);

    let again = desk.machine.refused(&["harness", "webhook", "add", &harness, &url], 1);
    assert!(again.contains(&format!("already, as webhook {number}")) && again.contains("rotate"), "{again}");

    let rotated = desk.machine.json(&["harness", "webhook", "rotate", &number]);
    assert_ne!(rotated["key"], added["key"]);
    desk.machine.json(&["harness", "webhook", "resend", &number, ask_id]);
    let again = posts.recv_timeout(LIMIT).unwrap();
    assert_eq!((again.header("webhook-id"), &again.body), (id, &first.body));
    assert_eq!(again.header("webhook-signature").split(' ').count(), 2);

    let listed = desk.machine.json(&["harness", "webhook", "list"]);
    assert_eq!((&listed[0]["url"], &listed[0]["disabled"]), (&json!(url), &json!(false)), "{listed}");
    desk.machine.json(&["harness", "webhook", "remove", &number]);
    assert_eq!(desk.machine.json(&["harness", "webhook", "list"]), json!([]));
    assert!(posts.try_recv().is_err(), "it was posted a third time");
}

#[test]
fn what_can_not_be_is_refused_in_words() {
    let desk = Desk::new();
    let machine = &desk.machine;
    let harness = machine.json(&["harness", "list"])[0]["id"].as_str().unwrap().to_owned();
    machine.refused(&["harness", "webhook", "add", &harness, "ftp://example.com/"], 2);
    machine.refused(&["harness", "webhook", "add", &harness, "https://user:secret@example.com/"], 2);
    machine.refused(&["harness", "webhook", "add", &harness, "https://example.com:0/"], 2);
    machine.refused(&["harness", "webhook", "add", &harness, "https://example.com/\r\nX: y"], 2);
    let missing = machine.refused(&["harness", "webhook", "remove", "7"], 1);
    assert!(missing.contains("no webhook 7"), "{missing}");
    // The server that runs excepts nothing, so nothing could ever be sent there.
    for (url, why) in [
        ("https://192.168.1.9/", "no public address"),
        ("https://127.1/", "no public address"),
        ("http://example.com/", "is not https"),
        ("https://intranet/", "no public address"),
    ] {
        let said = machine.refused(&["harness", "webhook", "add", &harness, url], 2);
        let origin = url.trim_end_matches('/').replace("127.1", "127.0.0.1");
        assert!(said.contains(why) && said.contains(&format!("--allow-outbound {origin} first")), "{said}");
    }
    assert_eq!(machine.json(&["harness", "webhook", "list"]), json!([]));
    // Where none runs, it may be started with the exception.
    let mut desk = desk;
    desk.kill();
    let added = desk.machine.run(&["harness", "webhook", "add", &harness, "https://192.168.1.9/"]);
    let said = String::from_utf8(added.stderr).unwrap();
    assert!(
        added.status.success() && said.contains("must be started with --allow-outbound https://192.168.1.9"),
        "{said}"
    );
}

#[test]
fn an_owner_and_a_private_space_are_said_and_listed() {
    let desk = Desk::new();
    let machine = &desk.machine;
    let id = |kind: &str| machine.json(&[kind, "list"])[0]["id"].as_str().unwrap().to_owned();
    let (harness, person, space) = (id("harness"), id("person"), id("space"));
    assert_eq!(machine.json(&["harness", "owner", &harness, &person])["owner"], json!(person));
    let listed = machine.json(&["harness", "list"]);
    assert!(listed[0]["note"].as_str().unwrap().ends_with(&format!("owner {person}")), "{listed}");
    assert_eq!(machine.json(&["harness", "owner", &harness, "none"])["owner"], Value::Null);
    machine.json(&["space", "private", &space, "on"]);
    let listed = machine.json(&["space", "list"]);
    assert_eq!(listed[0]["note"], "open, private");
    machine.refused(&["space", "private", &space, "perhaps"], 2);
    machine.refused(&["harness", "owner", &harness, "usr_01K4ZQPX000000000000000003"], 1);
}

#[test]
fn n07_a_question_is_pushed_once_after_a_kill_and_by_the_same_key() {
    const PUSH: &str = "/settings/told/web-push";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let origin = format!("http://{address}");
    let mut desk = Desk::with(&["--allow-outbound", &origin]);
    let person = desk.machine.json(&["person", "list"])[0]["id"].as_str().unwrap().to_owned();
    let link = desk.machine.json(&["person", "link", &person])["sign_in_url"].as_str().unwrap().to_owned();
    let mut browser = Browser::new(desk.server().address());
    browser.sign_in(&link);
    let offer = browser.get(PUSH).json();
    let key = offer["key"].as_str().unwrap();
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let subscription = Form {
        method: "post".to_owned(),
        action: PUSH.to_owned(),
        fields: vec![
            field("token", offer["token"].as_str().unwrap()),
            field("endpoint", &format!("{origin}/push/1")),
            // The keys of the example in RFC 8291.
            field("p256dh", "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
            field("auth", "BTBZMqHH6r4Tts7J_aSIgg"),
        ],
        choices: Vec::new(),
        texts: Vec::new(),
    };
    let taken = browser.submit_only(&subscription, &[]);
    assert_eq!(taken.status, 204, "{}", taken.text());

    // The push service is away, and the server is killed as soon as the question is there.
    drop(listener);
    let ask = desk.ask(&["Ship on the 19th or the 26th?", "-o", "19=19 September", "-o", "26=26 September"]);
    desk.open_ask();
    desk.kill();
    let posts = receive(TcpListener::bind(address).unwrap());
    desk.start_server(&["--allow-outbound", &origin, "--listen", &browser.addr().to_string()]);
    let pushed = posts.recv_timeout(LIMIT).unwrap();
    assert_eq!((pushed.header("content-encoding"), pushed.header("urgency")), ("aes128gcm", "high"));
    assert!(pushed.header("authorization").ends_with(&format!("k={key}")), "the key outlives the process");
    assert_eq!(browser.get(PUSH).json()["key"], key);

    // What comes next is the outcome: the question was not pushed a second time.
    chosen(&desk);
    assert_eq!(desk::end(ask).1, "19\n");
    let over = posts.recv_timeout(LIMIT).unwrap();
    assert_eq!((over.header("urgency"), over.header("topic")), ("normal", pushed.header("topic")));
    desk.stop();
    assert!(posts.try_recv().is_err(), "something was pushed a third time");
}
