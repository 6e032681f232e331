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
    ] {
        assert!(reply.text.lines().any(|found| found == line), "{line} is not in\n{}", reply.text);
    }
    for name in ["chips_store_commits", "chips_store_jobs", "chips_store_database_bytes", "chips_store_wal_bytes"] {
        let prefix = format!("{name} ");
        let alternative = format!("{name}_total ");
        let value = reply.text.lines().find_map(|line| {
            line.strip_prefix(&prefix)
                .or_else(|| line.strip_prefix(&alternative))
                .map(|value| value.parse::<f64>().unwrap())
        });
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
