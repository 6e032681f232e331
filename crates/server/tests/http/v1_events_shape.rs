//! Bodies that are no event, or not quite one.

use serde_json::{Value, json};

use crate::support::{TestApp, answer, ask, ask_id_of, fault, options, with};

/// A prefix of a kind, and an upper-case ULID.
const ULID: &str = "01K4ZQPX000000000000000009";

#[tokio::test]
async fn m19_what_is_no_object_is_never_taken_for_an_event() {
    let app = TestApp::start().await;
    let sent = ask(&app.harness, app.harness.run().await);
    let in_order: Value = sent.as_object().unwrap().values().cloned().collect();
    for body in [json!(null), json!([]), json!("x"), json!({}), json!(1), json!(true), in_order, json!([sent])] {
        app.harness.send(&body).await.faults();
        app.harness.post("/v1/runs", &if body == json!({}) { json!([]) } else { body }).await.faults();
    }
    let mut nested = sent.clone();
    nested["questions"][0] = nested["questions"][0].as_object().unwrap().values().cloned().collect();
    assert_eq!(app.harness.send(&nested).await.faults(), [fault("/questions/0", "wrong_type")]);
    assert_eq!(app.harness.head_seq().await, 0);
}

#[tokio::test]
async fn m20_a_key_that_stands_twice_is_refused_at_any_depth() {
    let app = TestApp::start().await;
    let text = ask(&app.harness, app.harness.run().await).to_string();
    let doubled = [
        text.replacen("{\"v\":1,", "{\"v\":1,\"v\":1,", 1),
        text.replacen("{\"value\":\"19\",", "{\"value\":\"19\",\"value\":\"26\",", 1),
        text.replacen("{\"v\":1,", "{\"v\":1,\"unknown\":{\"deep\":[{\"a\":1,\"\\u0061\":1}]},", 1),
    ];
    for body in doubled {
        assert_ne!(body, text);
        app.harness.post_text("/v1/events", &body).await.problem(400, "duplicate_key");
    }
    app.harness.post_text("/v1/runs", r#"{"title":"a","title":"b"}"#).await.problem(400, "duplicate_key");
}

#[tokio::test]
async fn m21_endless_nesting_is_refused() {
    let app = TestApp::start().await;
    for opening in ["[", "{\"a\":"] {
        let body = opening.repeat(100_000 / opening.len());
        app.harness.post_text("/v1/events", &body).await.problem(400, "too_deep");
    }
    let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
    app.harness.post_text("/v1/events", &deep).await.problem(400, "too_deep");
    let just = format!("{}{}", "[".repeat(32), "]".repeat(32));
    app.harness.post_text("/v1/events", &just).await.faults();
}

#[tokio::test]
async fn m23_time_outs_are_numbers_within_bounds() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    for (text, status, code) in [
        ("1e308", 422, "invalid_event"),
        ("1e400", 400, "malformed_json"),
        ("-0.0", 422, "invalid_event"),
        ("NaN", 400, "malformed_json"),
        ("\"60\"", 422, "invalid_event"),
        ("true", 422, "invalid_event"),
        ("0", 422, "invalid_event"),
        ("-1", 422, "invalid_event"),
        ("31536001", 422, "invalid_event"),
        ("null", 422, "invalid_event"),
        ("6e1", 201, ""),
        ("0.5", 201, ""),
        ("31536000", 201, ""),
        ("1e-300", 201, ""),
    ] {
        let body = ask(&app.harness, run).to_string();
        let body = body.replacen("\"timeout_seconds\":3600", &format!("\"timeout_seconds\":{text}"), 1);
        let reply = app.harness.post_text("/v1/events", &body).await;
        match status {
            201 => assert!(reply.expect(201)["timeout_seconds"].is_number()),
            status => drop(reply.problem(status, code)),
        }
    }
}

#[tokio::test]
async fn m24_what_is_no_identifier_never_names_anything() {
    let app = TestApp::start().await;
    let asked = ask(&app.harness, app.harness.run().await);
    app.harness.send(&asked).await.expect(201);
    let bad: Vec<String> = [
        "qst_8ZZZZZZZZZZZZZZZZZZZZZZZZZ".to_owned(),
        format!("qst_{}", ULID.to_lowercase()),
        format!("qst_{}", ULID.replace('K', "I")),
        format!("qst_{}", ULID.replace('K', "L")),
        format!("qst_{}", ULID.replace('K', "O")),
        format!("qst_{}", ULID.replace('K', "U")),
        format!("qst_{}", &ULID[1..]),
        format!("qst_{ULID}0"),
        format!("evt_{ULID}"),
        format!("QST_{ULID}"),
        format!("qst_{ULID}\n"),
        format!("qst_{}", ULID.replace('0', "\u{ff10}")),
        ask_id_of(&asked).to_lowercase(),
        String::new(),
    ]
    .into();
    for id in &bad {
        let sent = with(&answer(&app.person, &asked, "19"), "/ask_id", id.as_str());
        assert_eq!(app.person.send(&sent).await.faults(), [fault("/ask_id", "bad_id")], "{id:?}");
        let path: String = id.bytes().map(|byte| format!("%{byte:02x}")).collect();
        if !path.is_empty() {
            app.person.get(&format!("/v1/asks/{path}")).await.problem(404, "not_found");
            app.person.get(&format!("/v1/runs/{path}")).await.problem(404, "not_found");
        }
        app.person.get(&format!("/v1/events?ask_id={path}")).await.problem(400, "bad_query");
    }
    let own = ask_id_of(&asked);
    let spelt: String = own.bytes().map(|byte| format!("%{byte:02x}")).collect();
    app.person.get(&format!("/v1/asks/{spelt}")).await.expect(200);
    app.person.get("/v1/asks/%ff").await.problem(404, "not_found");
}

#[tokio::test]
async fn m25_nul_is_refused_wherever_text_stands() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let asked = ask(&app.harness, run);
    for pointer in [
        "/questions/0/prompt",
        "/questions/0/options/0/label",
        "/questions/0/options/0/value",
        "/questions/0/options/0/description",
        "/questions/0/question_id",
        "/idempotency_key",
    ] {
        let faults = app.harness.send(&with(&asked, pointer, "a\u{0}b")).await.faults();
        assert!(faults.contains(&fault(pointer, "forbidden_character")), "{pointer}: {faults:?}");
    }
    app.harness.send(&asked).await.expect(201);
    let sent = with(&answer(&app.person, &asked, ""), "/answers/0/values", json!([]));
    let faults = app.person.send(&with(&sent, "/answers/0/free_text", "a\u{0}b")).await.faults();
    assert_eq!(faults, [fault("/answers/0/free_text", "forbidden_character")]);
}

#[tokio::test]
async fn m26_a_label_reads_in_one_direction_and_a_prompt_may_not() {
    let app = TestApp::start().await;
    let asked = ask(&app.harness, app.harness.run().await);
    let turned = "19\u{202e}rebmetpeS";
    let label = app.harness.send(&with(&asked, "/questions/0/options/0/label", turned)).await.faults();
    assert_eq!(label, [fault("/questions/0/options/0/label", "forbidden_character")]);
    let stored = app.harness.send(&with(&asked, "/questions/0/prompt", turned)).await.expect(201);
    assert_eq!(stored["questions"][0]["prompt"], turned);
}

#[tokio::test]
async fn m27_options_can_be_told_apart() {
    let app = TestApp::start().await;
    let asked = ask(&app.harness, app.harness.run().await);
    let mut same_values = with(&asked, "/questions/0/options", options(&["a", "a"]));
    same_values["questions"][0]["options"][1]["label"] = json!("another");
    same_values["questions"][0]["default_value"] = json!("a");
    assert_eq!(app.harness.send(&same_values).await.faults(), [fault("/questions/0/options/1/value", "duplicate")]);
    // The last pair is h14: a Latin and a Cyrillic letter.
    for (one, other) in [("Yes", "yes "), ("Yes", "Y\u{200b}es"), ("Delete", "D\u{435}lete")] {
        let labelled = with(&asked, "/questions/0/options/0/label", one);
        let labelled = with(&labelled, "/questions/0/options/1/label", other);
        let faults = app.harness.send(&labelled).await.faults();
        assert_eq!(faults, [fault("/questions/0/options/1/label", "duplicate")], "{one:?} {other:?}");
    }
    let mut twice = asked.clone();
    let other = with(&asked["questions"][0], "/question_id", "other");
    twice["questions"].as_array_mut().unwrap().push(other);
    app.harness.send(&twice).await.expect(201);
}
