//! Whether the server can take writes: what `/readyz` says, and how `chips doctor` explains it.

use std::process::Command;

use serde_json::Value;

use crate::support::process::{Process, clean, output};
use crate::support::scene::Scene;
use crate::support::{LIMIT, Request, until};

/// What the doctor finds wrong with the scene's data folder, each with what mends it.
fn wrong(scene: &Scene) -> Vec<(String, String)> {
    let mut doctor = scene.folder.chips();
    doctor.args(["doctor", "--json", "--data"]).arg(scene.folder.data());
    found_by(doctor)
}

/// What this doctor finds wrong, each with what mends it.
pub fn found_by(doctor: Command) -> Vec<(String, String)> {
    let examined = output(doctor);
    let report: Value = serde_json::from_slice(&examined.stdout).unwrap();
    assert_eq!(examined.status.code(), Some(if report["ok"] == true { 0 } else { 1 }), "{report}");
    let wrong = report["checks"].as_array().unwrap().iter().filter(|check| check["state"] == "wrong");
    let part = |check: &Value, name: &str| check[name].as_str().unwrap_or_default().to_owned();
    wrong.map(|check| (part(check, "says"), part(check, "mend"))).collect()
}

/// Waits until the server is not ready, and gives why in its own words: one line.
pub fn not_ready(scene: &Scene) -> String {
    let problem = until(LIMIT * 2, "the server not to be ready", || {
        let reply = Request::get("/readyz").send(scene.serve.addr);
        (reply.status != 200).then(|| reply.expect_problem(503, "unavailable"))
    });
    assert_eq!(Request::get("/healthz").send(scene.serve.addr).text(), "ok\n");
    let detail = problem["detail"].as_str().unwrap().to_owned();
    assert!(!detail.contains('\n'), "{detail}");
    detail
}

/// Waits until the server is ready.
pub fn ready(scene: &Scene) {
    until(LIMIT, "the server to be ready", || {
        (Request::get("/readyz").send(scene.serve.addr).status == 200).then_some(())
    });
}

#[test]
fn a_database_that_another_process_has_locked_is_told_with_that_process_and_comes_back_by_itself() {
    let scene = Scene::new();
    ready(&scene);
    let mut holder = Command::new("python3");
    clean(&mut holder, scene.folder.path());
    let hold = "import signal, sqlite3, sys\n\
                database = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                database.execute('BEGIN IMMEDIATE')\n\
                print('held', flush=True)\n\
                signal.pause()";
    holder.args(["-c", hold]).arg(scene.folder.data().join("chips.db"));
    let mut holder = Process::spawn(holder);
    holder.says("that it holds the lock", |line| (line == "held").then_some(()));

    let detail = not_ready(&scene);
    assert!(detail.contains("another process holds the database"), "{detail}");
    let wrong_now = wrong(&scene);
    let [(says, mend)] = &wrong_now[..] else { panic!("{wrong_now:?}") };
    assert!(says.contains("another process holds the database"), "{says}");
    assert!(mend.contains(&format!("process {} (python", holder.id())), "{mend}");

    drop(holder);
    ready(&scene);
    assert_eq!(wrong(&scene), []);
    scene.open_ask();
}
