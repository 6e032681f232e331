//! The data folder: M33, M35.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::health::{found_by, not_ready, ready};
use crate::support::events::chosen;
use crate::support::process::{clean, output};
use crate::support::scene::{Scene, seq};
use crate::support::{Folder, LIMIT, Serve, ask_with, question, until};

#[test]
fn m33_a_second_server_on_a_folder_is_refused_and_told_who_holds_it() {
    let scene = Scene::new();
    let second = output(Serve::command(&scene.folder, "127.0.0.1:0"));
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains(&scene.serve.process.id().to_string()), "{said}");
    assert!(said.contains(&scene.folder.data().display().to_string()), "{said}");

    // The first goes on; once it has gone, whichever way, the folder is free.
    scene.open_ask();
    let scene = scene.restart(Serve::kill);
    assert_eq!(scene.harness.head(), 1);
    let scene = scene.restart(Serve::stop);
    assert_eq!(scene.harness.head(), 1);
}

#[test]
fn an_init_on_a_folder_that_has_a_workspace_changes_nothing() {
    let scene = Scene::new();
    let again = scene.folder.run_admin(&["init"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(again.stdout.is_empty());
    let served = scene.restart(Serve::stop);
    let again = served.folder.run_admin(&["init"]);
    assert_eq!(again.status.code(), Some(1));
    served.harness.get("/v1/me").expect(200);
    served.person.get("/v1/me").expect(200);
}

/// Runs a script with a copy of the data folder on a small file system of its own, inside a mount namespace: as root, or as
/// anybody where user namespaces are allowed. Nothing where neither goes.
fn on_a_small_disk(folder: &Folder, disk: &Path, script: &str) -> Option<Command> {
    std::fs::create_dir_all(disk).unwrap();
    let mount = format!("mount -t tmpfs -o size=24m chips-test '{}'", disk.display());
    for namespace in [&["--mount"][..], &["--user", "--map-root-user", "--mount"]] {
        let unshare = |script: &str| {
            let mut command = Command::new("unshare");
            clean(&mut command, folder.path());
            command.args(namespace).args(["sh", "-c", script]);
            command
        };
        if unshare(&mount).output().is_ok_and(|output| output.status.success()) {
            let copy = format!("cp -a '{}/.' '{}/'", folder.data().display(), disk.display());
            return Some(unshare(&format!("{mount} && {copy} && {script}")));
        }
    }
    println!("SKIPPED: neither root nor user namespaces here, so no small file system can be mounted");
    None
}

/// Runs `chips` with these arguments and this data folder, in place of the shell.
fn exec(args: &str, disk: &Path) -> String {
    format!("exec '{}' {args} --data '{}'", env!("CARGO_BIN_EXE_chips"), disk.display())
}

/// The doctor, among the files that the server sees.
fn doctor_beside(scene: &Scene, disk: &Path) -> Command {
    let server = scene.serve.process.id().to_string();
    let enter = |how: &[&str], program: &str| {
        let mut command = Command::new("nsenter");
        clean(&mut command, scene.folder.path());
        command.args(["--target", &server, "--mount"]).args(how).arg(program);
        command
    };
    let ways = [&[][..], &["--user", "--preserve-credentials"]];
    let way = ways.into_iter().find(|how| enter(how, "true").output().is_ok_and(|entered| entered.status.success()));
    let mut doctor = enter(way.unwrap(), env!("CARGO_BIN_EXE_chips"));
    doctor.args(["doctor", "--json", "--data"]).arg(disk);
    doctor
}

/// Takes up all room on the file system of this folder.
fn fill(folder: &Path) -> PathBuf {
    let path = folder.join("filler");
    let mut file = std::fs::File::create(&path).unwrap();
    let mut block = vec![7_u8; 64 * 1024];
    while !block.is_empty() {
        if file.write_all(&block).is_err() {
            let half = block.len() / 2;
            block.truncate(half);
        }
    }
    path
}

#[test]
fn m35_a_full_disk_refuses_writes_for_a_while_and_stops_nothing_else() {
    let folder = Folder::new();
    folder.admin(&["harness", "budget", &folder.text("/harness/id"), "--open", "none", "--hour", "none"]);
    let disk = folder.path().join("disk");
    let serve = exec("serve --listen 127.0.0.1:0", &disk);
    let Some(command) = on_a_small_disk(&folder, &disk, &serve) else { return };
    let serve = Serve::spawn(command);
    // `unshare` and `sh` have become the server: its view of the files is reached through its own process id.
    let inside = PathBuf::from(format!("/proc/{}/root", serve.process.id())).join(disk.strip_prefix("/").unwrap());
    let mut scene = Scene::of(folder, serve);
    let run = scene.harness.open_run();
    let first = scene.asked(&scene.harness.plain_ask(&run));
    let mut stream = scene.person.stream();

    let filler = fill(&inside);
    // What lies allocated already may take some writes still, so each is as large as it may be. None of them is lost.
    let large: Vec<_> = ["fence", "gate", "shed", "roof"]
        .map(|place| {
            let mut question = question(place);
            question["prompt"] = "\u{1f33b}".repeat(4000).into();
            question["options"][0]["description"] = "\u{1f33b}".repeat(2000).into();
            question
        })
        .into();
    let mut written = vec![first.clone()];
    let refused = until(LIMIT * 4, "the disk to be full", || {
        let ask = scene.harness.event(&run, ask_with(&large));
        let answer = scene.harness.send(&ask);
        match answer.status {
            201 => {
                written.push(answer.json());
                None
            }
            _ => Some((ask, answer)),
        }
    });
    let (ask, answer) = refused;
    answer.expect_problem(503, "unavailable");
    assert!(answer.header("retry-after").is_some_and(|wait| wait.parse::<u64>().is_ok_and(|wait| wait > 0)));
    assert_eq!(scene.serve.process.ended(), None, "it stays up");
    let id = answer.header("x-request-id").unwrap();
    until(LIMIT, "the store's word on it, in its name", || {
        let log = scene.serve.process.stderr();
        log.lines().any(|line| line.contains("a job could not be written") && line.contains(id)).then_some(())
    });
    let detail = not_ready(&scene);
    assert!(detail.contains("the disk is full"), "{detail}");
    let wrong = found_by(doctor_beside(&scene, &disk));
    let room = wrong.iter().find(|(says, _)| says.contains("its disk has"));
    assert!(
        room.is_some_and(|(says, mend)| says.contains("64 MiB are needed") && mend.contains("make room")),
        "{wrong:?}"
    );
    assert!(
        wrong.iter().any(|(says, _)| says.contains("is not ready") && says.contains("the disk is full")),
        "{wrong:?}"
    );

    // Reading goes on.
    let log = scene.harness.log();
    assert!(written.iter().all(|event| log.contains(event)));
    assert!(log.iter().map(seq).eq(1..=log.len() as u64));
    assert!(!log.iter().any(|event| event["id"] == ask["id"]), "nothing was appended");
    assert_eq!(scene.person.state(&first), "open");
    assert_eq!(stream.expect().seq(), 2, "streams stay open");

    // Once there is room, writing goes on by itself, and the refused write takes its key as if for the first time.
    std::fs::remove_file(filler).unwrap();
    let stored: Value = until(LIMIT, "writes to go on", || {
        let again = scene.harness.send(&ask);
        assert!(matches!(again.status, 201 | 503), "{}", again.text());
        (again.status == 201).then(|| again.json())
    });
    assert_eq!(seq(&stored), log.len() as u64 + 1);
    ready(&scene);
    scene.person.send(&scene.person.answer(&first, &[chosen("fence", &["leave"])])).expect(201);
    scene.serve.stop();
}

#[test]
fn a_file_system_for_reading_alone_is_told_by_the_doctor_and_by_a_server_that_can_t_start() {
    let folder = Folder::new();
    let disk = folder.path().join("disk");
    let read_only = |args: &str| {
        let script = format!("mount -o remount,ro '{}' && {}", disk.display(), exec(args, &disk));
        on_a_small_disk(&folder, &disk, &script)
    };
    let Some(doctor) = read_only("doctor --json") else { return };
    let wrong = found_by(doctor);
    let told = wrong.iter().find(|(says, _)| says.contains("mounted for reading alone"));
    assert!(told.is_some_and(|(_, mend)| mend.contains("mount it for writing")), "{wrong:?}");

    let served = output(read_only("serve --listen 127.0.0.1:0").unwrap());
    assert_eq!(served.status.code(), Some(1));
    let said = String::from_utf8_lossy(&served.stderr).into_owned();
    assert!(said.contains(&disk.display().to_string()) && said.to_lowercase().contains("read-only"), "{said}");
}
