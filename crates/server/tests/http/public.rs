//! What explains the API, and what answers where there is nothing.

use std::collections::BTreeSet;

use chips_protocol::problem::ProblemCode;
use reqwest::Method;
use serde_json::Value;

use crate::support::{Reply, TestApp, anonymous, id};

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
        let reply = Reply::to(request(&app, "DELETE", &real)).await;
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
