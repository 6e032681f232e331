//! Bodies, numbers and identifiers that are none: M19 to M24, M30.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::scene::{Api, Scene, seq};
use crate::support::{Conn, LIMIT, Request, Response, new_id};

/// The harness of a scene with a live run in it, and an ask that would be taken.
fn ready() -> (Scene, Value) {
    let scene = Scene::new();
    let ask = scene.harness.plain_ask(&scene.harness.open_run());
    (scene, ask)
}

/// Checks that the server has not suffered: it answers, and the log holds this much.
#[track_caller]
fn unharmed(scene: &Scene, head: u64) {
    assert_eq!(scene.harness.head(), head);
    let log = scene.serve.log();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn m19_json_that_is_no_event_is_never_taken_for_one() {
    let (scene, ask) = ready();
    let in_order: Vec<_> = ask.as_object().unwrap().values().cloned().collect();
    let envelope_in_order = json!([1, "question.ask", new_id("evt")]);
    let mut nested = ask.clone();
    nested["questions"][0] = json!(["fence", "Paint it?", [["a", "A"], ["b", "B"]]]);
    let mut actor = ask.clone();
    actor["actor"] = json!(["harness", scene.harness.id]);
    for body in ["null", "[]", "\"x\"", "{}", "0", "true", "", " ", "{", "{} {}", "[null]"] {
        let answer = scene.harness.send_raw(body);
        assert!(matches!(answer.status, 400 | 422), "{body}: {} {}", answer.status, answer.text());
    }
    for body in [json!(in_order), envelope_in_order, json!([ask]), nested, actor] {
        let answer = scene.harness.send(&body);
        answer.expect_problem(422, "invalid_event");
    }
    unharmed(&scene, 0);
    scene.harness.send(&ask).expect(201);
}

#[test]
fn m20_a_key_that_stands_twice_is_refused_at_any_depth() {
    let (scene, ask) = ready();
    let text = ask.to_string();
    let top = text.replacen("{\"v\":1,", "{\"v\":1,\"v\":1,", 1);
    let in_option = text.replacen("\"value\":\"paint\"", "\"value\":\"paint\",\"value\":\"paint\"", 1);
    let escaped = text.replacen("\"value\":\"paint\"", "\"value\":\"paint\",\"v\\u0061lue\":\"leave\"", 1);
    let unknown = text.replacen("{\"v\":1,", "{\"extra\":{\"deep\":[{\"a\":1,\"b\":{},\"a\":2}]},\"v\":1,", 1);
    for body in [top, in_option, escaped, unknown] {
        assert_ne!(body, text);
        scene.harness.send_raw(body.clone()).expect_problem(400, "duplicate_key");
    }
    unharmed(&scene, 0);
    scene.harness.send_raw(text).expect(201);
}

#[test]
fn m21_a_hundred_thousand_brackets_are_refused_quickly() {
    let (scene, ask) = ready();
    let mut best = Duration::MAX;
    for _ in 0..10 {
        for body in ["[".repeat(100_000), "{\"a\":".repeat(50_000), "[".repeat(100_000) + &"]".repeat(100_000)] {
            let began = Instant::now();
            let answer = scene.harness.send_raw(body);
            best = best.min(began.elapsed());
            answer.expect_problem(400, "too_deep");
        }
    }
    assert!(best < Duration::from_millis(50), "the quickest of thirty took {best:?}");

    // 32 levels are allowed, 33 are not, and what is wrong with the former is told as such.
    let nested = |levels: usize| {
        let mut deep = ask.clone();
        let inside = "[".repeat(levels - 1) + &"]".repeat(levels - 1);
        deep["extra"] = serde_json::from_str(&inside).unwrap();
        scene.harness.send(&deep)
    };
    nested(32).expect_fault("/extra", "unknown_field");
    nested(33).expect_problem(400, "too_deep");
    unharmed(&scene, 0);
}

#[test]
fn m22_a_body_that_is_too_large_is_refused() {
    let (scene, ask) = ready();
    let limit = 256 * 1024;
    let padded = |size: usize| {
        let text = ask.to_string();
        " ".repeat(size - text.len()) + &text
    };
    scene.harness.send_raw(padded(limit + 1)).expect_problem(413, "too_large");
    scene.harness.send_raw(padded(900 * 1024)).expect_problem(413, "too_large");
    let chunked = |body: String| {
        let wire = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        scene.harness.event_request(wire).header("Transfer-Encoding", "chunked").send(scene.harness.addr)
    };
    chunked(padded(limit + 1)).expect_problem(413, "too_large");
    // Who asks before sending is told so without having to send it.
    let announced = scene.harness.event_request("").header("Content-Length", "99999999");
    announced.header("Expect", "100-continue").send(scene.harness.addr).expect_problem(413, "too_large");

    // What is far too large is not read to its end, whatever the client does.
    let mut conn = Conn::open(scene.harness.addr).unwrap();
    let head = scene.harness.event_request("").header("Content-Length", "1000000000").wire(scene.harness.addr, false);
    conn.write(&head).unwrap();
    let block = vec![b' '; 64 * 1024];
    let taken = (0..2000).take_while(|_| conn.write(&block).is_ok()).count();
    assert!(taken < 2000, "{taken} blocks of 64 KiB were taken");
    assert!(conn.closes_within(LIMIT));

    unharmed(&scene, 0);
    scene.harness.send_raw(padded(limit)).expect(201);
    let mut second = scene.harness.plain_ask(ask["run_id"].as_str().unwrap());
    second["timeout_seconds"] = json!(60);
    chunked(second.to_string()).expect(201);
}

/// Sends raw bytes, says that there are no more, and gives the first answer, or nothing where the server only hung up.
fn raw(api: &Api, bytes: &[u8]) -> Option<Response> {
    let mut conn = Conn::open(api.addr).unwrap();
    let _ = conn.write(bytes);
    let _ = conn.socket().shutdown(std::net::Shutdown::Write);
    match conn.read_response(false) {
        Ok(response) => Some(response),
        Err(error) => {
            let hung_up = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
            assert!(hung_up.contains(&error.kind()), "{error}");
            None
        }
    }
}

#[test]
fn m22_a_length_that_lies_is_refused() {
    let (scene, ask) = ready();
    let body = ask.to_string();
    let addr = scene.harness.addr;
    let with = |headers: &[(&str, String)]| {
        let mut request = scene.harness.event_request(body.clone());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        raw(&scene.harness, &request.wire(addr, false))
    };
    let length = |length: usize| ("Content-Length", length.to_string());
    let lies = [
        ("longer than the body", vec![length(body.len() + 1)]),
        ("shorter than the body", vec![length(body.len() - 1)]),
        ("two lengths", vec![length(body.len()), length(body.len() - 1)]),
        ("no number", vec![("Content-Length", "many".into())]),
        ("negative", vec![("Content-Length", "-1".into())]),
        ("more than a number can be", vec![("Content-Length", "9".repeat(40))]),
        ("chunks that are none", vec![("Transfer-Encoding", "chunked".into())]),
        ("another coding", vec![("Transfer-Encoding", "gzip".into())]),
    ];
    for (lie, headers) in lies {
        if let Some(answer) = with(&headers) {
            assert!(matches!(answer.status, 400 | 413 | 415 | 501), "{lie}: {} {}", answer.status, answer.text());
        }
        assert_eq!(scene.harness.head(), 0, "{lie}");
    }
    // A length that promises more is the client's fault, and is said to be.
    with(&[length(body.len() + 1)]).expect("an answer").expect(400);
    unharmed(&scene, 0);
}

#[test]
fn m22_a_body_that_trickles_is_cut_off_within_thirty_seconds() {
    let (scene, ask) = ready();
    let body = ask.to_string();
    let wire = scene.harness.event_request(body.clone()).wire(scene.harness.addr, false);
    let (head, body) = wire.split_at(wire.len() - body.len());
    let mut conn = Conn::open(scene.harness.addr).unwrap();
    conn.write(head).unwrap();
    conn.socket().set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let began = Instant::now();
    for byte in body {
        // A second goes by while nothing comes back; then another byte goes out.
        let mut answer = [0; 512];
        match conn.socket().read(&mut answer) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => break,
        }
        if conn.socket().write_all(&[*byte]).is_err() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(35), "it may trickle on for ever");
    }
    unharmed(&scene, 0);
}

#[test]
fn m23_time_outs_that_are_no_time_are_refused_and_any_spelling_of_one_is_taken() {
    let (scene, ask) = ready();
    let with = |number: &str| {
        let mut fresh = scene.harness.plain_ask(ask["run_id"].as_str().unwrap());
        fresh["timeout_seconds"] = json!("HERE");
        scene.harness.send_raw(fresh.to_string().replace("\"HERE\"", number))
    };
    for number in ["1e308", "1e400", "-0.0", "NaN", "\"60\"", "true", "0", "-1", "31536001", "1e-400", "null", "[60]"] {
        let answer = with(number);
        assert!(matches!(answer.status, 400 | 422), "{number}: {} {}", answer.status, answer.text());
        if answer.status == 422 {
            let code =
                if matches!(number, "\"60\"" | "true" | "null" | "[60]") { "wrong_type" } else { "out_of_range" };
            answer.expect_fault("/timeout_seconds", code);
        }
    }
    unharmed(&scene, 0);
    for (number, seconds) in
        [("6e1", 60.0), ("0.5", 0.5), ("31536000", 31_536_000.0), ("60.000", 60.0), ("1E+2", 100.0)]
    {
        assert_eq!(with(number).expect(201)["timeout_seconds"].as_f64(), Some(seconds), "{number}");
    }
}

#[test]
fn m24_identifiers_that_are_none_are_refused_and_reach_nothing() {
    let (scene, ask) = ready();
    let stored = scene.asked(&ask);
    let id = stored["ask_id"].as_str().unwrap();
    let ulid = &id[4..];
    let bad = [
        format!("qst_8{}", "Z".repeat(25)),
        format!("qst_{}", ulid.to_lowercase()),
        format!("QST_{ulid}"),
        format!("qst_{}I", &ulid[..25]),
        format!("qst_{}L", &ulid[..25]),
        format!("qst_{}O", &ulid[..25]),
        format!("qst_{}U", &ulid[..25]),
        id[..29].to_owned(),
        format!("{id}0"),
        format!("evt_{ulid}"),
        ulid.to_owned(),
        format!("{id}\n"),
        format!(" {id}"),
        format!("qst_{}", ulid.replacen('0', "\u{ff10}", 1)),
        String::new(),
    ];
    for id in &bad {
        let mut event = scene.harness.plain_ask(stored["run_id"].as_str().unwrap());
        event["ask_id"] = json!(id);
        scene.harness.send(&event).expect_fault("/ask_id", "bad_id");
        let mut answer = scene.person.answer(&stored, &[]);
        answer["ask_id"] = json!(id);
        scene.person.send(&answer).expect_fault("/ask_id", "bad_id");

        let encoded: String =
            url::form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>().replace('+', "%20");
        let read = scene.harness.get(&format!("/v1/asks/{encoded}"));
        if !id.is_empty() {
            read.expect_problem(404, "not_found");
        }
        scene.harness.get(&format!("/v1/events?ask_id={encoded}")).expect_problem(400, "bad_query");
    }
    for field in ["id", "run_id", "workspace_id", "space_id"] {
        let mut event = scene.harness.plain_ask(stored["run_id"].as_str().unwrap());
        event[field] = json!("run_01k4zqpx000000000000000005");
        scene.harness.send(&event).expect_fault(&format!("/{field}"), "bad_id");
    }
    let mut event = scene.harness.plain_ask(stored["run_id"].as_str().unwrap());
    event["actor"]["id"] = json!("hrn_8ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    scene.harness.send(&event).expect_fault("/actor/id", "bad_id");
    unharmed(&scene, seq(&stored));
}

#[test]
fn m30_a_path_under_v1_that_is_none_answers_json() {
    let (scene, ask) = ready();
    for path in [
        "/v1/anything-else",
        "/v1",
        "/v1/",
        "/v1/events/",
        "/v1/asks/x/y/z",
        "/v1//events",
        "/v1/%2e%2e/",
        "/V1/events",
    ] {
        for method in ["POST", "GET", "PUT", "DELETE"] {
            let mut request = Request::new(method, path).bearer(&scene.harness.token).header("Accept", "text/html");
            if method != "GET" {
                request = request.header("Content-Type", "application/json").body(ask.to_string());
            }
            let answer = request.send(scene.harness.addr);
            assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text());
            if path.starts_with("/v1") {
                answer.expect_problem(404, "not_found");
            }
        }
    }
    // It comes before the question who asks; what exists says which methods it has.
    Request::post_json("/v1/anything-else", "{").send(scene.harness.addr).expect_problem(404, "not_found");
    let put = Request::new("PUT", "/v1/events").send(scene.harness.addr);
    put.expect_problem(405, "method_not_allowed");
    let allow = put.header("allow").unwrap();
    assert!(["GET", "HEAD", "POST"].iter().all(|method| allow.contains(method)), "{allow}");
    assert_eq!(scene.harness.head(), 0);
}

#[test]
fn only_plain_json_in_utf_8_is_read() {
    let (scene, ask) = ready();
    let body = ask.to_string();
    let as_type = |kind: Option<&str>| {
        let mut request = Request::new("POST", "/v1/events").bearer(&scene.harness.token).body(body.clone());
        if let Some(kind) = kind {
            request = request.header("Content-Type", kind);
        }
        request.send(scene.harness.addr)
    };
    for kind in
        [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/json; charset=latin1")]
    {
        as_type(kind).expect_problem(415, "unsupported_media_type");
    }
    let coded = scene.harness.event_request(body.clone()).header("Content-Encoding", "gzip");
    coded.send(scene.harness.addr).expect_problem(415, "unsupported_media_type");
    scene.harness.send_raw([b"\xef\xbb\xbf", body.as_bytes()].concat()).expect_problem(400, "malformed_json");
    scene.harness.send_raw(body.replace("Paint it", "Paint \\ud83d it")).expect_problem(400, "malformed_json");
    let not_utf8: Vec<u8> =
        body.replace("Paint it", "Paint ~ it").bytes().map(|b| if b == b'~' { 0xff } else { b }).collect();
    scene.harness.send_raw(not_utf8).expect_problem(400, "malformed_json");
    let problem = scene.harness.send_raw("{\n  \"v\": 1,\n  oops\n}").expect_problem(400, "malformed_json");
    assert!(problem["detail"].as_str().unwrap().contains("line 3"), "{problem}");
    unharmed(&scene, 0);
    as_type(Some("Application/JSON ; Charset=\"UTF-8\"")).expect(201);
}

#[test]
fn a_misspelt_field_is_refused_and_the_right_one_named() {
    let (scene, ask) = ready();
    let misspelt = [
        ("", "timeout_second", "timeout_seconds"),
        ("", "onNoAnswer", "on_no_answer"),
        ("/questions/0", "multiselect", "multi_select"),
    ];
    for (place, wrong, right) in misspelt {
        let mut event = ask.clone();
        event.pointer_mut(place).unwrap()[wrong] = json!(60);
        let problem = scene.harness.send(&event).expect_problem(422, "invalid_event");
        let pointer = format!("{place}/{wrong}");
        let fault = problem["errors"].as_array().unwrap().iter().find(|fault| fault["pointer"] == pointer).unwrap();
        assert_eq!(fault["code"], "unknown_field");
        assert!(fault["message"].as_str().unwrap().contains(right), "{fault}");
    }
    // Every fault is told at once.
    let mut event = ask.clone();
    event["questions"][0]["prompt"] = json!(7);
    event["questions"][0]["options"] = json!([{"value": "a", "label": ""}]);
    event["timeout_seconds"] = json!(null);
    event["seq"] = json!(4);
    event.as_object_mut().unwrap().remove("run_id");
    let faults = scene.harness.send(&event).expect_faults();
    for (pointer, code) in [
        ("/questions/0/prompt", "wrong_type"),
        ("/questions/0/options", "too_few"),
        ("/questions/0/options/0/label", "empty"),
        ("/timeout_seconds", "wrong_type"),
        ("/run_id", "required"),
    ] {
        assert!(faults.contains(&(pointer.into(), code.into())), "{code} at {pointer}: {faults:?}");
    }
    assert!(faults.iter().any(|(pointer, _)| pointer == "/seq"), "{faults:?}");
}
