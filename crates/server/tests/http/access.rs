//! Who may speak, and who sees what.

use std::sync::{Arc, Mutex};

use reqwest::Method;
use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::support::{Reply, TestApp, anonymous, answer, ask, ask_id_of, fault, id, with};

/// Every path that needs a token, with these identifiers.
fn guarded(ask_id: &str, run_id: &str) -> Vec<(Method, String)> {
    vec![
        (Method::GET, "/v1/events".into()),
        (Method::POST, "/v1/events".into()),
        (Method::GET, "/v1/events/stream".into()),
        (Method::GET, "/v1/asks".into()),
        (Method::GET, format!("/v1/asks/{ask_id}")),
        (Method::POST, format!("/v1/asks/{ask_id}/ack")),
        (Method::POST, "/v1/runs".into()),
        (Method::GET, format!("/v1/runs/{run_id}")),
        (Method::POST, format!("/v1/runs/{run_id}/end")),
        (Method::GET, "/v1/me".into()),
    ]
}

#[tokio::test]
async fn h01_every_wrong_token_gets_the_same_answer() {
    let app = TestApp::start().await;
    let wrong_checksum = {
        let mut token = app.harness.token.clone();
        let last = token.pop().unwrap();
        token.push(if last == 'a' { 'b' } else { 'a' });
        token
    };
    let (rotated, _) = app.admin().rotate(app.other_harness.id, None).unwrap();
    let revoked = app.other_harness.token.clone();
    app.admin().disable(app.colleague.id).unwrap();
    let unknown = chips_store::secret::new_token(chips_store::secret::TokenKind::Harness);
    let wrong: Vec<Vec<String>> = vec![
        vec![],
        vec!["Bearer".into()],
        vec!["Bearer ".into()],
        vec![format!("Bearer {wrong_checksum}")],
        vec![format!("Bearer {unknown}")],
        vec![format!("Bearer {revoked}")],
        vec![format!("Bearer {}", app.colleague.token)],
        vec![format!("Basic {}", app.harness.token)],
        vec![app.harness.token.clone()],
        vec![format!("Bearer {0} {0}", app.harness.token)],
        vec![format!("Bearer {}", app.harness.token), format!("Bearer {}", app.harness.token)],
        vec![format!("Bearer {}", app.harness.token.to_lowercase())],
    ];
    let client = anonymous();
    let mut seen: Vec<(Value, Option<String>)> = Vec::new();
    for values in wrong {
        let mut request = client.get(format!("http://{}/v1/me", app.address));
        for value in &values {
            request = request.header(AUTHORIZATION, value);
        }
        let reply = Reply::to(request).await;
        let problem = reply.problem(401, "unauthenticated");
        seen.push((problem, reply.header("www-authenticate").map(str::to_owned)));
    }
    assert!(seen.iter().all(|reply| *reply == seen[0]));
    assert_eq!(seen[0].1.as_deref(), Some("Bearer"));
    // The scheme's case does not count (RFC 9110, section 11.1).
    let request = client.get(format!("http://{}/v1/me", app.address));
    Reply::to(request.header(AUTHORIZATION, format!("bearer {}", rotated.token))).await.expect(200);
}

#[tokio::test]
async fn a_token_is_needed_wherever_there_is_something_to_see() {
    let app = TestApp::start().await;
    let client = anonymous();
    for (method, path) in guarded(&id("qst_"), &id("run_")) {
        let request = client.request(method, format!("http://{}{path}", app.address));
        // In the body it is none.
        Reply::to(request.body(json!({ "token": app.harness.token }).to_string()))
            .await
            .problem(401, "unauthenticated");
    }
}

#[tokio::test]
async fn a_token_in_the_query_is_refused_wherever_it_stands() {
    let app = TestApp::start().await;
    let token = &app.harness.token;
    let spelt: String = token.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for query in [
        format!("token={token}"),
        "access_token=x".to_owned(),
        "API_KEY=x".to_owned(),
        format!("q={token}"),
        format!("q={spelt}"),
        format!("after=0&x=Bearer+{token}"),
        token.clone(),
    ] {
        for path in ["/v1/events", "/v1/nothing", "/", "/healthz", "/problems/not_found"] {
            let reply = app.harness.get(&format!("{path}?{query}")).await;
            let problem = reply.problem(400, "token_in_query");
            assert!(!problem.to_string().contains(token.as_str()), "it is not said again");
        }
    }
}

#[tokio::test]
async fn failed_tokens_are_slowed_down_and_good_ones_are_not() {
    let app = TestApp::start().await;
    let client = anonymous();
    let guess = || {
        let token = chips_store::secret::new_token(chips_store::secret::TokenKind::Person);
        Reply::to(client.get(format!("http://{}/v1/me", app.address)).bearer_auth(token))
    };
    let mut refused = None;
    for _ in 0..200 {
        let reply = guess().await;
        if reply.status == 429 {
            refused = Some(reply);
            break;
        }
        reply.problem(401, "unauthenticated");
    }
    let refused = refused.expect("nobody was slowed down");
    refused.problem(429, "rate_limited");
    assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    app.harness.get("/v1/me").await.expect(200);
    // What a proxy would add changes nothing.
    let request = client.get(format!("http://{}/v1/me", app.address)).header("x-forwarded-for", "203.0.113.7");
    Reply::to(request).await.problem(429, "rate_limited");
}

#[tokio::test]
async fn h02_what_is_not_one_s_own_is_not_there() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let strangers = [&app.foreign_harness, &app.foreign_person, &app.other_harness];
    for stranger in strangers {
        for ((method, real), (_, random)) in
            guarded(&ask_id_of(&asked), &run.to_string()).into_iter().zip(guarded(&id("qst_"), &id("run_")))
        {
            if real == random {
                continue;
            }
            let real = Reply::to(stranger.request(method.clone(), &real)).await;
            let random = Reply::to(stranger.request(method, &random)).await;
            real.problem(404, "not_found");
            assert_eq!(real.text, random.text);
        }
        assert_eq!(stranger.events().await, Vec::<Value>::new());
        assert_eq!(stranger.get("/v1/asks").await.expect(200)["asks"], json!([]));
        let theirs = answer(stranger, &asked, "19");
        stranger.send(&theirs).await.problem(404, "not_found");
    }
    assert_eq!(app.harness.head_seq().await, 1);
}

#[tokio::test]
async fn h03_another_harness_s_run_and_ask_give_nothing_away() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let in_foreign_run = app.other_harness.send(&ask(&app.other_harness, run)).await;
    assert_eq!(in_foreign_run.faults(), [fault("/run_id", "unknown_run")]);
    let own = app.other_harness.run().await;
    let taken = with(&ask(&app.other_harness, own), "/ask_id", asked["ask_id"].clone());
    let reply = app.other_harness.send(&taken).await;
    reply.problem(409, "ask_id_conflict");
    assert!(!reply.text.contains(&app.harness.id.to_string()));
    let same_key = with(&ask(&app.other_harness, own), "/idempotency_key", asked["idempotency_key"].clone());
    app.other_harness.send(&same_key).await.expect(201);
}

#[tokio::test]
async fn h04_identifiers_are_one_workspace_s_own() {
    let app = TestApp::start().await;
    let asked = app.harness.send(&ask(&app.harness, app.harness.run().await)).await.expect(201);
    let run = app.foreign_harness.run().await;
    let mut theirs = ask(&app.foreign_harness, run);
    for member in ["ask_id", "id", "idempotency_key"] {
        theirs[member] = asked[member].clone();
    }
    let stored = app.foreign_harness.send(&theirs).await.expect(201);
    assert_eq!(stored["seq"], 1);
}

#[tokio::test]
async fn a_closed_space_is_seen_by_its_members_alone() {
    let app = TestApp::start().await;
    let run = app.harness.run_in(app.closed_space).await;
    let asked = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    let path = format!("/v1/asks/{}", ask_id_of(&asked));
    app.person.get(&path).await.expect(200);
    app.colleague.get(&path).await.problem(404, "not_found");
    app.colleague.send(&answer(&app.colleague, &asked, "19")).await.problem(404, "not_found");
    assert_eq!(app.colleague.events().await, Vec::<Value>::new());
    app.admin().set_member(app.closed_space, app.colleague.id.to_string().parse().unwrap(), true).unwrap();
    app.colleague.get(&path).await.expect(200);
    app.colleague.send(&answer(&app.colleague, &asked, "19")).await.expect(201);
}

/// Keeps what is logged, as the console's format has it.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn h15_nothing_that_somebody_sends_forges_a_line_of_the_log_or_leaves_a_secret_in_it() {
    let kept = Kept::default();
    let writer = kept.clone();
    tracing_subscriber::fmt().json().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).init();
    let app = TestApp::start().await;
    let name = "x\n{\"level\":\"ERROR\"}\u{1b}[31m";
    assert!(app.admin().add_harness(app.harness.workspace_id, name).is_err(), "a name is one line");
    let issued = app.admin().add_harness(app.harness.workspace_id, "x{\"level\":\"ERROR\"}").unwrap();
    let mut odd = app.harness.clone();
    (odd.id, odd.token) = (chips_protocol::ParticipantId::Harness(issued.id), issued.token);
    odd.get("/v1/me").await.expect(200);
    let run = odd.run_with(json!({ "title": "x\n{\"level\":\"ERROR\"}" })).await;
    odd.send(&ask(&odd, run)).await.expect(201);
    let secret = chips_store::secret::new_secret();
    odd.get(&format!("/sign-in/{secret}")).await;
    odd.get(&format!("/v1/me?token={}", odd.token)).await.problem(400, "token_in_query");
    let forged = anonymous().get(format!("http://{}/v1/me", app.address)).header("host", "x\t{\"level\":\"ERROR\"}");
    Reply::to(forged).await;
    let log = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("/v1/me"), "requests are logged");
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_ne!(line["level"], "ERROR", "{line}");
    }
    assert!(!log.contains('\u{1b}'));
    for secret in [&odd.token, &secret, &app.harness.token] {
        assert!(!log.contains(secret.as_str()), "a secret is in the log");
    }
}
