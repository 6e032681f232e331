//! The same write twice: M01 to M08.

use std::io::Write;
use std::net::Shutdown;
use std::sync::Barrier;

use serde_json::json;

use crate::support::events::chosen;
use crate::support::scene::{Api, Scene, seq};
use crate::support::{Conn, LIMIT, Request, ask_with, new_id, question, until};

/// Sends the same bytes from this many clients at the same moment, each on a connection that is open already.
fn all_at_once(api: &Api, bodies: &[String]) -> Vec<crate::support::Response> {
    let start = Barrier::new(bodies.len());
    std::thread::scope(|scope| {
        let clients: Vec<_> = bodies
            .iter()
            .map(|body| {
                let start = &start;
                scope.spawn(move || {
                    let mut conn = Conn::open(api.addr).unwrap();
                    let request = api.event_request(body.as_bytes());
                    start.wait();
                    conn.send(&request).unwrap()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

#[test]
fn m01_the_same_ask_posted_twice_byte_for_byte_is_one_event() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let body = scene.harness.plain_ask(&run).to_string();
    let before = scene.harness.head();

    let first = scene.harness.send_raw(body.clone());
    first.expect(201);
    assert!(first.header("idempotency-replayed").is_none());
    assert_eq!(scene.harness.head(), before + 1);

    let second = scene.harness.send_raw(body);
    second.expect(200);
    assert!(second.replayed(), "{:?}", second.headers);
    assert!(second.header("idempotency-body-differs").is_none());
    assert_eq!(first.text(), second.text());
    assert_eq!(scene.harness.head(), before + 1);
}

#[test]
fn m02_fifty_copies_of_one_ask_at_the_same_time_are_one_event() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let ask = scene.harness.plain_ask(&run);

    let copies = vec![ask.to_string(); 50];
    // A harness that mints a new event and a new key for each try is the same ask all the same.
    let again = scene.harness.plain_ask(&run);
    let retries: Vec<_> = (0..50)
        .map(|_| {
            let mut retry = again.clone();
            retry["id"] = json!(new_id("evt"));
            retry["idempotency_key"] = json!(new_id("key"));
            retry.to_string()
        })
        .collect();

    for bodies in [copies, retries] {
        let before = scene.harness.head();
        let answers = all_at_once(&scene.harness, &bodies);
        let made: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
        assert_eq!(made.len(), 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
        for answer in &answers {
            assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
            assert_eq!(answer.replayed(), answer.status == 200);
            assert_eq!(answer.text(), made[0].text());
        }
        assert_eq!(scene.harness.head(), before + 1);
    }
}

#[test]
fn m03_an_ask_written_in_another_way_is_the_same_ask() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let (h, ws) = (&scene.harness.id, &scene.harness.workspace);
    let (id, key, ask_id) = (new_id("evt"), new_id("key"), new_id("qst"));
    let written = format!(
        r#"{{"v":1,"type":"question.ask","id":"{id}","workspace_id":"{ws}","actor":{{"kind":"harness","id":"{h}"}},"run_id":"{run}","idempotency_key":"{key}","ask_id":"{ask_id}","questions":[{{"question_id":"box","prompt":"Ship the red box?","options":[{{"value":"y","label":"Ship"}},{{"value":"n","label":"Wait"}}],"multi_select":false}}],"timeout_seconds":60}}"#
    );
    let stored = scene.harness.send_raw(written).expect(201);

    // Other order, other white space, an escape for a letter, 6e1 for 60, an absent boolean for a false one.
    let otherwise = |id: &str, key: &str| {
        format!(
            "{{\n  \"timeout_seconds\" : 6e1,\t\"questions\": [ {{ \"options\": [ {{\"label\": \"\\u0053hip\", \"value\": \"y\"}},\r\n {{\"label\":\"Wait\",\"value\":\"n\"}} ], \"prompt\":\"\\u0053hip the red box?\", \"question_id\":\"box\" }} ],\n \"ask_id\":\"{ask_id}\", \"idempotency_key\":\"{key}\", \"run_id\":\"{run}\", \"actor\":{{\"id\":\"{h}\",\"kind\":\"harness\"}}, \"workspace_id\":\"{ws}\", \"id\":\"{id}\", \"type\":\"question.ask\", \"v\":1 }}\n"
        )
    };
    let ways = [
        ("its key", otherwise(&id, &key)),
        ("its event id", otherwise(&id, &new_id("key"))),
        ("its ask id", otherwise(&new_id("evt"), &new_id("key"))),
    ];
    for (known_by, body) in ways {
        let again = scene.harness.send_raw(body);
        assert_eq!(again.expect(200), stored, "known by {known_by}");
        assert!(again.replayed(), "known by {known_by}");
        assert!(again.header("idempotency-body-differs").is_none(), "known by {known_by}");
    }
    assert_eq!(scene.harness.head(), seq(&stored));
}

#[test]
fn m04_another_ask_under_a_used_ask_id_is_a_conflict() {
    let scene = Scene::new();
    let first = scene.open_ask();
    let mut swapped = scene.harness.plain_ask(first["run_id"].as_str().unwrap());
    swapped["ask_id"] = first["ask_id"].clone();
    swapped["questions"][0]["options"].as_array_mut().unwrap().swap(0, 1);

    scene.harness.send(&swapped).expect_problem(409, "ask_id_conflict");
    assert_eq!(scene.harness.head(), seq(&first), "nothing was appended");
    assert_eq!(scene.harness.ask(&first)["ask"], first);
}

#[test]
fn m05_a_refusal_uses_neither_the_key_nor_the_ids_up() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let mended = scene.harness.plain_ask(&run);
    let mut broken = mended.clone();
    broken["questions"][0]["options"][1]["label"] = json!("   ");

    scene.harness.send(&broken).expect_fault("/questions/0/options/1/label", "empty");
    assert_eq!(scene.harness.head(), 0);
    let stored = scene.harness.send(&mended).expect(201);
    assert_eq!(stored["idempotency_key"], mended["idempotency_key"]);
}

#[test]
fn m06_a_request_cut_off_before_its_answer_and_sent_again_is_one_event() {
    let scene = Scene::new();
    scene.lift_budget();
    let run = scene.harness.open_run();
    let mut asks = Vec::new();
    for round in 0..40 {
        let ask = scene.harness.plain_ask(&run);
        let wire = scene.harness.event_request(ask.to_string()).wire(scene.harness.addr, false);
        let conn = Conn::open(scene.harness.addr).unwrap();
        // Every fourth is cut in the middle of the body, the others when all is sent; half of them hang up politely.
        let sent = if round % 4 == 0 { wire.len() - 100 } else { wire.len() };
        conn.socket().write_all(&wire[..sent]).unwrap();
        if round % 2 == 0 {
            conn.socket().shutdown(Shutdown::Both).unwrap();
        }
        drop(conn);

        let again = scene.harness.send(&ask);
        assert!(matches!(again.status, 200 | 201), "{}", again.text());
        assert_eq!(again.replayed(), again.status == 200);
        asks.push(ask);
    }
    // Whatever was still on its way when the connection was cut has arrived once the log stops growing at one each.
    until(LIMIT, "one event for each ask", || (scene.harness.head() == 40).then_some(()));
    for ask in &asks {
        let filter = format!("&ask_id={}", ask["ask_id"].as_str().unwrap());
        assert_eq!(scene.harness.events(&filter).len(), 1);
    }
}

#[test]
fn m07_an_answer_that_won_may_be_sent_again() {
    let scene = Scene::new();
    let ask = scene.open_ask();
    let answer = scene.person.answer(&ask, &[chosen("fence", &["paint"])]);

    let first = scene.person.send(&answer);
    first.expect(201);
    let second = scene.person.send(&answer);
    second.expect(200);
    assert!(second.replayed());
    assert_eq!(first.text(), second.text());

    // With a new key it is known by its id; what is new in all is too late.
    let mut new_key = answer.clone();
    new_key["idempotency_key"] = json!(new_id("key"));
    assert!(scene.person.send(&new_key).replayed());
    let other = scene.person.answer(&ask, &[chosen("fence", &["paint"])]);
    let problem = scene.person.send(&other).expect_problem(409, "already_closed");
    assert_eq!(problem["answer"], first.json());
}

#[test]
fn m08_an_answer_that_came_before_its_ask_is_taken_after_it() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let ask = scene.harness.plain_ask(&run);
    let answer = scene.person.answer(&ask, &[chosen("fence", &["leave"])]);

    scene.person.send(&answer).expect_problem(404, "not_found");
    scene.asked(&ask);
    let stored = scene.person.send(&answer).expect(201);
    assert_eq!(stored["answered_by"], json!(scene.person.id));
    assert_eq!(scene.harness.state(&ask), "answered");
}

#[test]
fn a_key_is_its_senders_own_and_lives_as_long_as_its_event() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let ask = scene.harness.plain_ask(&run);
    let stored = scene.asked(&ask);

    // Another sender's key of the same spelling is another key; so is another case.
    let other = scene.add_harness("another");
    let mut theirs = other.event(&other.open_run(), ask_with(&[question("fence")]));
    theirs["idempotency_key"] = ask["idempotency_key"].clone();
    other.send(&theirs).expect(201);
    let mut lower = scene.harness.plain_ask(&run);
    lower["idempotency_key"] = json!(ask["idempotency_key"].as_str().unwrap().to_lowercase());
    scene.harness.send(&lower).expect(201);

    // A key that is known wins over a body that is no ask any more, and over the end of the run, after a restart too.
    scene.harness.post_empty(&format!("/v1/runs/{run}/end")).expect(200);
    let scene = scene.restart(crate::support::Serve::stop);
    let mut nonsense = ask.clone();
    nonsense["questions"] = json!([]);
    let again = scene.harness.send(&nonsense);
    assert_eq!(again.expect(200), stored);
    assert_eq!(again.header("idempotency-body-differs"), Some("true"));
    scene.harness.send(&scene.harness.plain_ask(&run)).expect_problem(409, "run_ended");
}

#[test]
fn a_client_that_hangs_up_after_the_last_byte_has_written() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let ask = scene.harness.plain_ask(&run);
    let request: Request = scene.harness.event_request(ask.to_string());
    let conn = Conn::open(scene.harness.addr).unwrap();
    conn.socket().write_all(&request.wire(scene.harness.addr, false)).unwrap();
    conn.socket().shutdown(Shutdown::Both).unwrap();
    drop(conn);
    until(LIMIT, "the event", || (scene.harness.head() == 1).then_some(()));
}
