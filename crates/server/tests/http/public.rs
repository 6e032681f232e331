//! What explains the API, and what answers where there is nothing.

use std::collections::BTreeSet;

use chips_protocol::problem::ProblemCode;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Reply, TestApp, anonymous, answer, ask, ask_id_of, id, with};

fn request(app: &TestApp, method: &str, path: &str) -> reqwest::RequestBuilder {
    anonymous().request(method.parse::<Method>().unwrap(), format!("http://{}{path}", app.address))
}

#[tokio::test]
async fn schemas_problems_and_the_description_are_public() {
    let app = TestApp::start().await;
    for name in ["question.ask", "question.answered"] {
        let reply = Reply::to(request(&app, "GET", &format!("/schemas/{name}.json"))).await;
        let schema = reply.expect(200);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["properties"]["type"]["const"], name);
    }
    let document = Reply::to(request(&app, "GET", "/openapi.json")).await.expect(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for code in ProblemCode::ALL {
        let reply = Reply::to(request(&app, "GET", &format!("/problems/{}", code.as_str()))).await;
        assert_eq!(reply.status, 200);
        assert!(reply.header("content-type").unwrap().starts_with("text/markdown"));
        assert!(reply.text.contains(code.as_str()), "{}", reply.text);
    }
    for nothing in ["/schemas/question.json", "/schemas/%ff", "/problems/nothing", "/problems/%ff", "/schemas/"] {
        Reply::to(request(&app, "GET", nothing)).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn every_described_endpoint_is_served_with_its_methods_and_no_others() {
    let app = TestApp::start().await;
    let document = Reply::to(request(&app, "GET", "/openapi.json")).await.expect(200);
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 10);
    for (path, operations) in paths {
        let mut described: BTreeSet<String> =
            operations.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        if described.contains("GET") {
            described.insert("HEAD".to_owned());
        }
        let real = path
            .replace("{ask_id}", &id("qst_"))
            .replace("{run_id}", &id("run_"))
            .replace("{file}", "question.ask.json")
            .replace("{code}", "not_found");
        let reply = Reply::to(request(&app, "PATCH", &real)).await;
        reply.problem(405, "method_not_allowed");
        let allowed: BTreeSet<String> =
            reply.header("allow").unwrap().split(',').map(|method| method.trim().to_owned()).collect();
        assert_eq!(allowed, described, "{path}");
    }
}

#[tokio::test]
async fn m30_a_path_of_the_api_that_is_not_there_is_json_for_every_method() {
    let app = TestApp::start().await;
    for path in ["/v1", "/v1/", "/v1/anything-else", "/v1/events/", "/v1/asks/a/b/c", "/v1/runs/x/y", "/v1/sign-in"] {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
            let reply = Reply::to(request(&app, method, path).header("accept", "text/html")).await;
            reply.problem(404, "not_found");
        }
    }
}

#[tokio::test]
async fn elsewhere_a_browser_gets_a_page_and_a_program_a_problem() {
    let app = TestApp::start().await;
    let page = Reply::to(request(&app, "GET", "/nothing").header("accept", "text/html,*/*;q=0.8")).await;
    assert_eq!(page.status, 404);
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    assert!(page.text.to_lowercase().starts_with("<!doctype html>"));
    Reply::to(request(&app, "GET", "/nothing")).await.problem(404, "not_found");
    Reply::to(request(&app, "GET", "/nothing").header("accept", "application/json")).await.problem(404, "not_found");
}

#[tokio::test]
async fn every_reply_keeps_browsers_from_guessing_framing_and_sharing() {
    let app = TestApp::start().await;
    for path in ["/v1/me", "/v1/nothing", "/nothing", "/healthz", "/openapi.json", "/metrics"] {
        let reply = Reply::to(request(&app, "GET", path).header("origin", "https://evil.example")).await;
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert!(reply.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"), "{path}");
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
        assert_eq!(reply.header("access-control-allow-origin"), None, "{path}");
        assert_eq!(reply.header("server"), None, "{path}");
    }
    let preflight = request(&app, "OPTIONS", "/v1/events")
        .header("origin", "https://evil.example")
        .header("access-control-request-method", "POST");
    let reply = Reply::to(preflight).await;
    reply.problem(405, "method_not_allowed");
    assert!(!reply.headers.keys().any(|name| name.as_str().starts_with("access-control")));
}

#[tokio::test]
async fn every_reply_has_a_number_of_its_own() {
    let app = TestApp::start().await;
    let mut seen = BTreeSet::new();
    for path in ["/v1/me", "/v1/me", "/nothing", "/healthz"] {
        let reply = Reply::to(request(&app, "GET", path)).await;
        assert!(seen.insert(reply.header("x-request-id").unwrap().to_owned()));
    }
}

#[tokio::test]
async fn a_problem_s_page_is_where_its_type_says() {
    let app = TestApp::start().await;
    let problem: Value = Reply::to(request(&app, "GET", "/v1/me")).await.json();
    let reply = Reply::to(request(&app, "GET", problem["type"].as_str().unwrap())).await;
    assert_eq!(reply.status, 200);
}

/// Holds a reply against the schema that the description names for it.
#[track_caller]
fn fits(document: &Value, name: &str, value: &Value) {
    let schema = json!({ "$ref": format!("#/components/schemas/{name}"), "components": document["components"] });
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(value).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{value} is no {name}: {faults:?}");
}

#[tokio::test]
async fn replies_are_what_the_description_says() {
    let app = TestApp::start().await;
    let document = Reply::to(request(&app, "GET", "/openapi.json")).await.expect(200);
    fits(&document, "Me", &app.harness.get("/v1/me").await.expect(200));
    fits(&document, "Me", &app.person.get("/v1/me").await.expect(200));
    let bare = app.harness.run().await;
    let said = json!({ "title": "t", "url": "https://example.com", "labels": { "a": "b" }, "lease_seconds": 0.5 });
    let run = app.harness.run_with(said.clone()).await;
    fits(&document, "NewRun", &said);
    let agent = json!({ "kind": "agent", "id": id("agt_") });
    let asked = app.harness.send(&with(&ask(&app.harness, run), "/actor", agent)).await.expect(201);
    fits(&document, "AnyEvent", &asked);
    let left_open = app.harness.send(&ask(&app.harness, bare)).await.expect(201);
    let answered = app.person.send(&answer(&app.person, &asked, "26")).await.expect(201);
    fits(&document, "AnyEvent", &answered);
    fits(
        &document,
        "Problem",
        &app.colleague.send(&answer(&app.colleague, &asked, "19")).await.problem(409, "already_closed"),
    );
    fits(&document, "Problem", &app.harness.send(&json!({})).await.problem(422, "invalid_event"));
    fits(&document, "Problem", &app.harness.get("/v1/nothing").await.problem(404, "not_found"));
    for ask in [&asked, &left_open] {
        fits(&document, "Ask", &app.person.get(&format!("/v1/asks/{}", ask_id_of(ask))).await.expect(200));
    }
    fits(&document, "AsksPage", &app.person.get("/v1/asks?limit=1").await.expect(200));
    fits(&document, "EventsPage", &app.person.get("/v1/events").await.expect(200));
    for run in [bare, run] {
        fits(&document, "Run", &app.harness.get(&format!("/v1/runs/{run}")).await.expect(200));
        fits(&document, "Run", &app.harness.post_empty(&format!("/v1/runs/{run}/end")).await.expect(200));
    }
    fits(&document, "EventsPage", &app.harness.get("/v1/events").await.expect(200));
}
