//! `chips export`: the log as JSON lines.

use std::io::Read;
use std::process::Stdio;

use serde_json::Value;

use crate::support::Folder;
use crate::support::events::chosen;
use crate::support::process::output;
use crate::support::scene::Scene;

/// What an export prints and says.
pub fn export(folder: &Folder, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = folder.chips();
    command.arg("export").args(args).arg("--data").arg(folder.data());
    let output = output(command);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The lines of an export that succeeds.
#[track_caller]
pub fn exported(folder: &Folder, args: &[&str]) -> Vec<String> {
    let (code, out, err) = export(folder, args);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.is_empty() || out.ends_with('\n'));
    out.lines().map(str::to_owned).collect()
}

/// Runs `chips check` on what was exported.
#[track_caller]
pub fn check(folder: &Folder, lines: &[String]) {
    let file = folder.path().join("exported.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    let mut command = folder.chips();
    command.arg("check").arg(&file);
    let checked = output(command);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
    assert!(said.contains(&format!("{} event", lines.len())), "{said}");
}

/// An ask with an answer, and one that is open.
fn scene() -> Scene {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let ask = scene.asked(&scene.harness.plain_ask(&run));
    scene.person.send(&scene.person.answer(&ask, &[chosen("fence", &["paint"])])).expect(201);
    scene.asked(&scene.harness.plain_ask(&run));
    scene
}

#[test]
fn an_export_is_the_log_byte_for_byte_whether_a_server_runs_or_not() {
    let scene = scene();
    let page = scene.person.get("/v1/events").text();
    let running = exported(&scene.folder, &[]);
    assert_eq!(running.len(), 3);
    assert!(page.contains(&running.join(",")), "{page}");
    check(&scene.folder, &running);
    let Scene { serve, folder, .. } = scene;
    serve.stop();
    assert_eq!(exported(&folder, &[]), running);
}

#[test]
fn an_export_goes_on_where_the_last_one_ended() {
    let scene = scene();
    let all = exported(&scene.folder, &["--since", "0"]);
    assert_eq!(exported(&scene.folder, &["--since", "1"]), all[1..]);
    let (code, out, err) = export(&scene.folder, &["--since", "3"]);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(err.contains("0 events, up to 3") && err.contains("--since 3"), "{err}");
    let (code, out, err) = export(&scene.folder, &["--since", "4"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("the last event is 3"), "{err}");
}

#[test]
fn each_workspace_is_exported_by_itself_and_a_new_one_is_empty() {
    let scene = scene();
    let (_, harness) = scene.add_workspace("Second");
    let (code, out, err) = export(&scene.folder, &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("--workspace"), "{err}");
    assert!(exported(&scene.folder, &["--workspace", &harness.workspace]).is_empty());
    let run = harness.open_run();
    harness.send(&harness.plain_ask(&run)).expect(201);
    let lines = exported(&scene.folder, &["--workspace", &harness.workspace]);
    assert_eq!(lines.len(), 1);
    let event: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!((&event["workspace_id"], &event["seq"]), (&harness.workspace.into(), &1.into()));
    assert_eq!(exported(&scene.folder, &["--workspace", &scene.harness.workspace]).len(), 3);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scene = Scene::new();
    scene.lift_budget();
    let run = scene.harness.open_run();
    // More than a pipe holds.
    for _ in 0..300 {
        scene.asked(&scene.harness.plain_ask(&run));
    }
    let mut command = scene.folder.chips();
    command.arg("export").arg("--data").arg(scene.folder.data()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert!(first.starts_with(b"{\"v\":1"));
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr).unwrap()), (Some(0), String::new()));
}

#[test]
fn an_export_under_load_is_the_log_as_it_stood_when_it_began() {
    let scene = Scene::new();
    scene.lift_budget();
    let run = scene.harness.open_run();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let exports: Vec<_> = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    scene.asked(&scene.harness.plain_ask(&run));
                }
            });
        }
        let exports = (0..5).map(|_| (scene.harness.head(), exported(&scene.folder, &[]))).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        exports
    });
    let whole = exported(&scene.folder, &[]);
    for (head, lines) in exports {
        assert!(lines.len() as u64 >= head);
        assert_eq!(lines, whole[..lines.len()]);
    }
    // A server that is killed leaves nothing that an export can't read.
    let Scene { serve, folder, .. } = scene;
    serve.kill();
    assert_eq!(exported(&folder, &[]), whole);
    check(&folder, &whole);
}

#[test]
fn a_folder_without_a_workspace_is_told() {
    let folder = Folder::empty();
    let (code, _, err) = export(&folder, &[]);
    assert_eq!(code, Some(1));
    assert!(err.contains("holds no workspace yet"), "{err}");
}
