//! `/healthz`, `/readyz` and `/metrics`.

use reqwest::Method;

use crate::support::{Reply, Setup, TestApp, anonymous, answer, ask};

fn look(app: &TestApp, path: &str) -> reqwest::RequestBuilder {
    anonymous().request(Method::GET, format!("http://{}{path}", app.address))
}

#[tokio::test]
async fn health_and_readiness_are_public() {
    let app = TestApp::start().await;
    for (path, text) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let reply = Reply::to(look(&app, path)).await;
        assert_eq!((reply.status, reply.text.as_str()), (200, text));
    }
}

#[tokio::test]
async fn the_figures_follow_what_happens() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    let first = app.harness.send(&ask(&app.harness, run)).await.expect(201);
    app.harness.send(&ask(&app.harness, run)).await.expect(201);
    app.person.send(&answer(&app.person, &first, "19")).await.expect(201);
    app.harness.get("/v1/nothing/here").await.problem(404, "not_found");
    let _stream = app.person.stream("/v1/events/stream").await;
    let reply = Reply::to(look(&app, "/metrics")).await;
    assert!(reply.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    for line in [
        "chips_asks_open 1",
        "chips_asks_opened_total 2",
        "chips_asks_closed_total{state=\"answered\"} 1",
        "chips_streams 1",
        "chips_waiters 0",
        "chips_store_writable 1",
        "chips_http_requests_total{method=\"POST\",route=\"/v1/events\",status=\"201\"} 3",
        "chips_http_requests_total{method=\"GET\",route=\"unmatched\",status=\"404\"} 1",
        "chips_deadline_lateness_seconds_count 0",
        "chips_http_problems_total{code=\"not_found\"} 1",
        "chips_budget_refusals_total{limit=\"open\"} 0",
        "chips_outbox_attempts_total{channel=\"ntfy\",outcome=\"failed\"} 0",
        "chips_outbox_messages{channel=\"ntfy\"} 0",
        "chips_store_queue_jobs 0",
        concat!("chips_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(reply.text.lines().any(|found| found == line), "{line} is not in\n{}", reply.text);
    }
    for name in [
        "chips_store_commits_total",
        "chips_store_jobs_total",
        "chips_store_database_bytes",
        "chips_store_commit_duration_seconds_sum",
        "chips_store_group_jobs_sum",
        "chips_asks_oldest_open_seconds",
        "chips_start_time_seconds",
        "chips_http_request_duration_seconds_count{class=\"write\"}",
    ]
    .into_iter()
    // A database server has these to itself.
    .chain((!crate::ON_POSTGRES).then_some(["chips_store_wal_bytes", "chips_store_free_bytes"]).into_iter().flatten())
    {
        let prefix = format!("{name} ");
        let value = reply.text.lines().find_map(|line| line.strip_prefix(&prefix)?.parse::<f64>().ok());
        assert!(value.is_some_and(|value| value > 0.0), "{name} is not in\n{}", reply.text);
    }
    assert!(reply.text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn figures_are_not_for_those_behind_a_proxy_unless_the_server_is_told_so() {
    let app = TestApp::start().await;
    let mut setup = Setup::default();
    setup.config.public_metrics = true;
    let open = TestApp::with(setup).await;
    for header in ["x-forwarded-for", "forwarded", "x-real-ip", "via"] {
        Reply::to(look(&app, "/metrics").header(header, "127.0.0.1")).await.problem(404, "not_found");
        let reply = Reply::to(look(&open, "/metrics").header(header, "127.0.0.1")).await;
        assert_eq!(reply.status, 200);
    }
}

#[tokio::test]
async fn refusals_are_counted_by_code_and_budgets_by_the_limit_that_was_reached() {
    let app = TestApp::start().await;
    let run = app.harness.run().await;
    app.admin().set_budget(app.harness_id(), Some(Some(1)), None).unwrap();
    app.harness.send(&ask(&app.harness, run)).await.expect(201);
    app.harness.send(&ask(&app.harness, run)).await.problem(429, "over_budget");
    app.harness.send(&serde_json::json!({})).await.problem(422, "invalid_event");
    let text = Reply::to(look(&app, "/metrics")).await.text;
    for line in [
        "chips_budget_refusals_total{limit=\"open\"} 1",
        "chips_budget_refusals_total{limit=\"hour\"} 0",
        "chips_refused_writes_total{code=\"over_budget\"} 1",
        "chips_http_problems_total{code=\"over_budget\"} 1",
        "chips_http_problems_total{code=\"invalid_event\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn a_number_that_a_caller_brings_is_the_request_s_where_it_is_well_formed() {
    let app = TestApp::start().await;
    let ask = async |id: &str| {
        let reply = Reply::to(look(&app, "/healthz").header("x-request-id", id)).await;
        reply.header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(ask("0f8fad5b-d9cb-469f-a165-70867728950e").await, "0f8fad5b-d9cb-469f-a165-70867728950e");
    let session = chips_store::secret::new_secret();
    for bad in ["short", "with a space", "chips_hk_0123456789", &session] {
        let own = ask(bad).await;
        assert!(own.len() == 16 && own != bad, "{own}");
    }
}
