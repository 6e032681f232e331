//! `/metrics`, read by a parser that is not our own; and the dashboard and the alerts that are built on it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::browser::{Browser, forms};
use crate::support::events::chosen;
use crate::support::scene::Scene;
use crate::support::{LIMIT, Request, until};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Asks, answers, settles, lets time out, is refused, signs in wrongly: what moves the figures.
fn play(scene: &Scene) {
    let run = scene.harness.open_run();
    let answered = scene.asked(&scene.harness.plain_ask(&run));
    scene.person.send(&scene.person.answer(&answered, &[chosen("fence", &["paint"])])).expect(201);
    let withdrawn = scene.asked(&scene.harness.plain_ask(&run));
    scene.harness.send(&scene.harness.answer(&withdrawn, &[])).expect(201);
    let mut times_out = scene.harness.plain_ask(&run);
    times_out["timeout_seconds"] = json!(1);
    scene.asked(&times_out);
    scene.harness.closed(&times_out);
    scene.folder.admin(&["harness", "budget", &scene.harness.id, "--open", "1"]);
    scene.asked(&scene.harness.plain_ask(&run));
    scene.harness.send(&scene.harness.plain_ask(&run)).expect_problem(429, "over_budget");
    scene.harness.send(&json!({})).expect_problem(422, "invalid_event");
    Request::get("/v1/me").bearer("chips_hk_wrong").send(scene.serve.addr).expect_problem(401, "unauthenticated");
    let mut browser = Browser::new(scene.serve.addr);
    let page = browser.visit("/sign-in");
    let form = forms(&page.text(), "/sign-in").into_iter().find(|form| !form.texts.is_empty()).unwrap();
    browser.submit(&form, &[(&form.texts[0], "AAAA-AAAA")]);
    browser.sign_in(&scene.folder.text("/sign_in_url"));
    browser.visit("/history");
}

fn figures(scene: &Scene) -> String {
    Request::get("/metrics").send(scene.serve.addr).text()
}

#[test]
fn the_figures_are_openmetrics_and_every_panel_and_alert_points_at_one_that_is_there() {
    let scene = Scene::new();
    play(&scene);
    // A link that was never made.
    Request::get("/sign-in/GuessedGuessedGuessedGuessedGuessedGuessedGue").send(scene.serve.addr);
    let _stream = scene.person.stream();
    let text = until(LIMIT, "the stream to be counted", || {
        Some(figures(&scene)).filter(|text| text.contains("chips_streams 1\n"))
    });
    for line in [
        "chips_asks_closed_total{state=\"answered\"} 1",
        "chips_asks_closed_total{state=\"timed_out\"} 1",
        "chips_asks_closed_total{state=\"withdrawn\"} 1",
        "chips_asks_open 1",
        "chips_budget_refusals_total{limit=\"open\"} 1",
        "chips_http_problems_total{code=\"unauthenticated\"} 1",
        "chips_sign_ins_failed_total{by=\"code\"} 1",
        "chips_sign_ins_failed_total{by=\"link\"} 1",
        "chips_deadline_lateness_seconds_count 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    let mut check = Command::new(root().join("tests/metrics/check"));
    let mut check = check.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let checked = check.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}\n{text}");
}
