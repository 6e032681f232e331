//! The cases of writing that go wrong elsewhere: retries, races, cuts, and answers that fit or do not.

use serde_json::{Value, json};

use crate::support::{Raw, TestApp, answer, ask, ask_id_of, fault, id, options, until, with};

/// The same members in the opposite order, at every depth.
fn turned(value: &Value) -> Value {
    match value {
        Value::Object(members) => members.iter().rev().map(|(name, member)| (name.clone(), turned(member))).collect(),
        Value::Array(items) => items.iter().map(turned).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn m01_the_same_ask_twice_is_one_event() {
    let app = TestApp::start().await;
    let sent = ask(&app.harness, app.harness.run().await);
    let first = app.harness.send(&sent).await;
    first.expect(201);
    let second = app.harness.send(&sent).await;
    second.expect(200);
    assert_eq!(first.text, second.text, "byte for byte");
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    assert_eq!(second.header("idempotency-body-differs"), None);
    assert_eq!(app.harness.head_seq().await, 1);
}

#[tokio::test]
async fn m02_fifty_copies_at_once_are_one_event() {
    let app = TestApp::start().await;
    let sent = ask(&app.harness, app.harness.run().await);
    let replies = futures::future::join_all((0..50).map(|_| app.harness.send(&sent))).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1);
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 49);
    assert!(replies.iter().all(|reply| reply.text == replies[0].text));
    assert_eq!(app.harness.head_seq().await, 1);
}

#[tokio::test]
async fn m03_another_spelling_of_the_same_ask_is_a_replay() {
    let app = TestApp::start().await;
    let sent = ask(&app.harness, app.harness.run().await);
    let stored = app.harness.send(&sent).await.expect(201);
    for key in [sent["idempotency_key"].clone(), json!("another key")] {
        let spelt = turned(&with(&sent, "/idempotency_key", key));
        let text = format!("{spelt:#}").replace("\"Ship ", "\"\\u0053hip ");
        assert!(text.contains("\\u0053hip"));
        let reply = app.harness.post_text("/v1/events", &text).await;
        assert_eq!(reply.expect(200), stored);
        assert_eq!(reply.header("idempotency-body-differs"), None);
    }
    let new_id = with(&with(&sent, "/idempotency_key", "third key"), "/id", id("evt_"));
    assert_eq!(app.harness.send(&new_id).await.expect(200), stored, "the same ask with another event id");
    assert_eq!(app.harness.head_seq().await, 1);
}

#[tokio::test]
async fn m04_the_same_ask_id_for_other_options_is_a_conflict() {
    let app = TestApp::start().await;
    let sent = ask(&app.harness, app.harness.run().await);
    app.harness.send(&sent).await.expect(201);
    let mut other = with(&with(&sent, "/idempotency_key", "new"), "/id", id("evt_"));
    other["questions"][0]["options"].as_array_mut().unwrap().reverse();
    app.harness.send(&other).await.problem(409, "ask_id_conflict");
    assert_eq!(app.harness.head_seq().await, 1);
}

#[tokio::test]
async fn m05_a_refusal_does_not_use_the_key_up() {
    let app = TestApp::start().await;
    let sent = ask(&app.harness, app.harness.run().await);
    let bad = with(&sent, "/questions/0/options/0/label", "");
    assert_eq!(app.harness.send(&bad).await.faults(), [fault("/questions/0/options/0/label", "empty")]);
    app.harness.send(&sent).await.expect(201);
}

#[tokio::test]
async fn m06_a_cut_connection_then_the_same_again_is_one_event() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    for kept in [0, 1] {
        let sent = ask(&app.harness, run);
        let body = sent.to_string();
        let mut raw = Raw::connect(app.address).await;
        raw.send(format!(
            "POST /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            app.address,
            app.harness.token,
            body.len()
        ))
        .await;
        if kept == 0 {
            // Gone before the answer's first byte; what was read by then is carried out, or nothing is.
            drop(raw);
        } else {
            raw.reply().await;
        }
        let again = app.harness.send(&sent).await;
        assert!([200, 201].contains(&again.status), "{}", again.text);
        let asked = app.harness.get(&format!("/v1/events?ask_id={}", ask_id_of(&sent))).await.expect(200);
        assert_eq!(asked["events"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn m07_an_answer_that_won_is_a_replay_when_sent_again() {
    let app = TestApp::start().await;
    let asked = ask(&app.harness, app.harness.run().await);
    app.harness.send(&asked).await.expect(201);
    let sent = answer(&app.person, &asked, "26");
    let won = app.person.send(&sent).await.expect(201);
    assert_eq!(app.person.send(&sent).await.expect(200), won);
}

#[tokio::test]
async fn m08_an_answer_before_its_ask_can_be_sent_again_after_it() {
    let app = TestApp::start().await;
    let asked = ask(&app.harness, app.harness.run().await);
    let sent = answer(&app.person, &asked, "26");
    app.person.send(&sent).await.problem(404, "not_found");
    app.harness.send(&asked).await.expect(201);
    app.person.send(&sent).await.expect(201);
}

#[tokio::test]
async fn m12_an_answer_that_says_nothing_is_refused() {
    let app = TestApp::start().await;
    let asked = ask(&app.harness, app.harness.run().await);
    app.harness.send(&asked).await.expect(201);
    let empty = with(&answer(&app.person, &asked, "26"), "/answers/0/values", json!([]));
    app.person.send(&empty).await.faults();
    for blank in ["", "  \n", "\u{200b}"] {
        let sent = with(&empty, "/answers/0/free_text", blank);
        assert!(app.person.send(&sent).await.faults().contains(&fault("/answers/0/free_text", "empty")), "{blank:?}");
    }
    let now = app.person.get(&format!("/v1/asks/{}", ask_id_of(&asked))).await.expect(200);
    assert_eq!(now["state"], "open");
}

#[tokio::test]
async fn m13_one_of_three_questions_answered_closes_the_ask() {
    let app = TestApp::start().await;
    let mut asked = ask(&app.harness, app.harness.run().await);
    let question = asked["questions"][0].clone();
    for name in ["two", "three"] {
        let other = with(&question, "/question_id", name);
        asked["questions"].as_array_mut().unwrap().push(other);
    }
    app.harness.send(&asked).await.expect(201);
    let sent = with(&answer(&app.person, &asked, "26"), "/answers/0/question_id", "two");
    let stored = app.person.send(&sent).await.expect(201);
    assert_eq!(stored["answers"], json!([{ "question_id": "two", "values": ["26"] }]));
    let now = app.person.get(&format!("/v1/asks/{}", ask_id_of(&asked))).await.expect(200);
    assert_eq!((&now["state"], &now["answer"]), (&json!("answered"), &stored));
}

#[tokio::test]
async fn m14_two_values_and_free_text_are_both_kept() {
    let app = TestApp::start().await;
    let asked = with(&ask(&app.harness, app.harness.run().await), "/questions/0/multi_select", true);
    app.harness.send(&asked).await.expect(201);
    let mut sent = with(&answer(&app.person, &asked, ""), "/answers/0/values", json!(["26", "19"]));
    sent["answers"][0]["free_text"] = json!("or both");
    let stored = app.person.send(&sent).await.expect(201);
    assert_eq!(stored["answers"], sent["answers"]);
}

#[tokio::test]
async fn m15_another_harness_s_ask_is_no_ask() {
    let app = TestApp::start().await;
    let asked = ask(&app.harness, app.harness.run().await);
    app.harness.send(&asked).await.expect(201);
    let theirs = app.other_harness.send(&answer(&app.other_harness, &asked, "19")).await;
    let unknown = with(&asked, "/ask_id", id("qst_"));
    let nothing = app.other_harness.send(&answer(&app.other_harness, &unknown, "19")).await;
    theirs.problem(404, "not_found");
    assert_eq!(theirs.text, nothing.text);
}

#[tokio::test]
async fn m28_option_values_are_text_whatever_they_look_like() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    for value in ["Yes, now", "__proto__", "'; DROP TABLE--", "{{7*7}}", "<script>", "\\", "\u{1f980}", " x "] {
        let mut asked = ask(&app.harness, run);
        asked["questions"][0]["options"] = options(&[value, "other"]);
        asked["questions"][0]["default_value"] = json!(value);
        let stored = app.harness.send(&asked).await.expect(201);
        assert_eq!(stored["questions"], asked["questions"]);
        let answered = app.person.send(&answer(&app.person, &asked, value)).await.expect(201);
        assert_eq!(answered["answers"][0]["values"][0], value);
        let now = app.person.get(&format!("/v1/asks/{}", ask_id_of(&asked))).await.expect(200);
        assert_eq!(now["option_labels"]["window"][value], format!("Option {value}"));
    }
}

#[tokio::test]
async fn a_harness_settles_and_withdraws_its_own_question() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    for (answers, timed_out, state) in [
        (json!([{ "question_id": "window", "values": ["26"] }]), false, "settled"),
        (json!([]), false, "withdrawn"),
        (json!([{ "question_id": "window", "values": ["19"] }]), true, "timed_out"),
        (json!([]), true, "timed_out"),
    ] {
        let asked = ask(&app.harness, run);
        app.harness.send(&asked).await.expect(201);
        let mut sent = with(&answer(&app.harness, &asked, ""), "/answers", answers);
        sent["timed_out"] = json!(timed_out);
        let stored = app.harness.send(&sent).await.expect(201);
        assert_eq!(stored["answered_by"], json!(app.harness.id));
        let now = app.harness.get(&format!("/v1/asks/{}", ask_id_of(&asked))).await.expect(200);
        assert_eq!(now["state"], state);
        assert_eq!(now["answerer"]["id"], json!(app.harness.id));
    }
}

#[tokio::test]
async fn a_person_answers_something_and_no_time_out() {
    let app = TestApp::start().await;
    let asked = ask(&app.harness, app.harness.run().await);
    app.harness.send(&asked).await.expect(201);
    let sent = answer(&app.person, &asked, "19");
    let nothing = app.person.send(&with(&sent, "/answers", json!([]))).await.faults();
    assert_eq!(nothing, [fault("/answers", "too_few")]);
    let timed_out = app.person.send(&with(&sent, "/timed_out", true)).await.faults();
    assert_eq!(timed_out, [fault("/timed_out", "not_allowed")]);
    let both = app.person.send(&with(&sent, "/answers/0/free_text", "and")).await.faults();
    assert_eq!(both.len(), 1, "{both:?}");
    let two = app.person.send(&with(&sent, "/answers/0/values", json!(["19", "26"]))).await.faults();
    assert_eq!(two.len(), 1, "{two:?}");
    app.person.send(&with(&sent, "/timed_out", false)).await.expect(201);
}

#[tokio::test]
async fn a_write_whose_sender_hangs_up_is_carried_out() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let mut sent = Vec::new();
    for _ in 0..20 {
        let event = ask(&app.harness, run);
        let body = event.to_string();
        let mut raw = Raw::connect(app.address).await;
        raw.send(format!(
            "POST /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            app.address,
            app.harness.token,
            body.len()
        ))
        .await;
        // Sends nothing more, and waits for no answer: the request is whole.
        tokio::io::AsyncWriteExt::shutdown(&mut raw.stream).await.unwrap();
        sent.push((event, raw));
    }
    until(async || (app.harness.head_seq().await == 20).then_some(())).await;
    for (event, _) in &sent {
        app.harness.send(event).await.expect(200);
    }
}
