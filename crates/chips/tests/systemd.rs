//! The units under `deploy/` are sound, closed to what they need not, and do what `docs/install.md` says: on a machine of its own,
//! which is Debian's systemd as the first process of new namespaces.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "systemd/machine.rs"]
mod machine;
mod release;
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use machine::Machine;
use release::Release;
use support::process::{chips, clean, output};
use support::{Folder, LIMIT, until};

const UNITS: [&str; 3] = ["chips.service", "chips-backup.service", "chips-backup.timer"];

/// How exposed a service may be: `systemd-analyze security` counts from 0 to 10, here in tenths.
const EXPOSURE: [(&str, &str); 2] = [("chips.service", "12"), ("chips-backup.service", "5")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder as the root of a machine on which everything is installed.
fn installed(folder: &Folder) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;

    let machine = folder.path().join("machine");
    let put = |from: &Path, to: &str| {
        let to = machine.join(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, &to).unwrap();
        to
    };
    for unit in UNITS {
        put(&root().join("deploy").join(unit), &format!("etc/systemd/system/{unit}"));
    }
    put(&root().join("deploy/chips-backup"), "usr/local/libexec/chips-backup");
    // Whether it is there and can be run is all that is looked at.
    let chips = put(&root().join("deploy/chips-backup"), "usr/local/bin/chips");
    std::fs::set_permissions(chips, std::fs::Permissions::from_mode(0o755)).unwrap();
    machine
}

fn analyze(folder: &Folder, machine: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new("systemd-analyze");
    clean(&mut command, folder.path());
    command.args(arguments).arg(format!("--root={}", machine.display()));
    let output = output(command);
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn the_units_are_sound() {
    let folder = Folder::empty();
    let machine = installed(&folder);
    let (sound, said) =
        analyze(&folder, &machine, &[&["verify", "--man=no", "--recursive-errors=no"], &UNITS[..]].concat());
    assert!(sound && said.is_empty(), "{said}");
    // A name that systemd does not know is a complaint, not an error.
    let unit = machine.join("etc/systemd/system/chips.service");
    let text = std::fs::read_to_string(&unit).unwrap().replace("ProtectHome=", "ProtektHome=");
    std::fs::write(unit, text).unwrap();
    let (_, said) =
        analyze(&folder, &machine, &[&["verify", "--man=no", "--recursive-errors=no"], &UNITS[..]].concat());
    assert!(said.contains("ProtektHome"), "{said}");
}

#[test]
fn the_services_are_closed_to_what_they_need_not() {
    let folder = Folder::empty();
    let machine = installed(&folder);
    for (unit, most) in EXPOSURE {
        let threshold = format!("--threshold={most}");
        let (closed, said) = analyze(&folder, &machine, &["security", "--offline=yes", &threshold, unit]);
        assert!(closed, "{unit} is exposed by more than {most} tenths:\n{said}");
    }
    let opened = machine.join("etc/systemd/system/chips.service");
    let text = std::fs::read_to_string(&opened).unwrap().replace("CapabilityBoundingSet=\n", "");
    std::fs::write(opened, text).unwrap();
    let (closed, said) = analyze(&folder, &machine, &["security", "--offline=yes", "--threshold=12", "chips.service"]);
    assert!(!closed, "{said}");
}

#[test]
fn the_newest_copies_are_kept_and_one_that_failed_removes_none() {
    let folder = Folder::new();
    let copies = folder.path().join("copies");
    std::fs::create_dir(&copies).unwrap();
    let old = ["chips-2024-02-28T000000Z.db", "chips-2024-02-29T000000Z.db", "chips-2025-01-01T000000Z.db"];
    for name in old.iter().chain(&["chips-before-the-move.db", "chips.db"]) {
        std::fs::write(copies.join(name), "an old copy").unwrap();
    }
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(&copies).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
    };
    let back_up = |data: &Path, kept: &str| {
        let mut command = Command::new(root().join("deploy/chips-backup"));
        clean(&mut command, folder.path());
        let beside = Path::new(env!("CARGO_BIN_EXE_chips")).parent().unwrap().to_owned();
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths([beside].into_iter().chain(std::env::split_paths(&path))).unwrap();
        command.env("PATH", path).env("CHIPS_DATA", data).env("CHIPS_BACKUPS", &copies).env("CHIPS_BACKUPS_KEPT", kept);
        output(command)
    };

    let nothing = back_up(&folder.path().join("nowhere"), "1");
    assert!(!nothing.status.success());
    assert_eq!(names().len(), 5, "nothing was removed");
    let wrong = back_up(&folder.data(), "0");
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
    assert_eq!(names().len(), 5, "nothing was made");

    let made = back_up(&folder.data(), "2");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let left = names();
    let new = left.iter().find(|name| name.as_str() > old[2] && name.ends_with("Z.db")).expect("a new copy");
    assert_eq!(left, [old[2], new, "chips-before-the-move.db", "chips.db"]);
    // It is a whole one.
    let mut restore = chips(folder.path());
    restore.arg("restore").arg(copies.join(new)).arg("--data").arg(folder.path().join("restored"));
    assert!(output(restore).status.success());
}

/// The shell blocks marked `sh systemd` of the manual of installation, for this release.
fn steps(release: &Release) -> Vec<String> {
    let manual = std::fs::read_to_string(root().join("docs/install.md")).unwrap();
    let named = format!("chips-{}-x86_64-unknown-linux-gnu", env!("CARGO_PKG_VERSION"));
    assert!(manual.contains(&named), "docs/install.md is about another version than {named}");
    let blocks = manual.split("```sh systemd\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().replace(&named, &release.name)).collect()
}

#[test]
fn installed_as_the_manual_says_it_serves_is_confined_comes_back_and_is_backed_up_and_restored() {
    let folder = Folder::empty();
    let release = Release::in_folder(folder.path());
    let Some(machine) = Machine::boot(&folder) else {
        println!("SKIPPED: no namespaces in which systemd could start: that needs root");
        return;
    };
    let steps = steps(&release);
    let [install, start, administer, back_up, restore, restart] = &steps[..] else { panic!("{steps:#?}") };
    machine.run(&[install.as_str(), start].concat());
    let ready = || {
        let reply = "curl -s -o /dev/null -w '%{http_code}' -H 'Host: chips.example.com' http://127.0.0.1:7070/readyz";
        until(LIMIT, "the service to be ready", || (machine.try_run(reply).1 == "200").then_some(()));
    };
    ready();
    let main = || machine.run("systemctl show -P MainPID chips").trim().to_owned();

    // Confined, in truth and not only by the words of the unit.
    let status = machine.run(&format!("cat /proc/{}/status", main()));
    let of = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(of("CapBnd:").trim_start_matches('0'), "", "{status}");
    assert_eq!((&*of("NoNewPrivs:"), &*of("Seccomp:")), ("1", "2"), "{status}");
    let user = machine.run("id -u chips").trim().to_owned();
    assert!(user != "0" && of("Uid:").split_whitespace().all(|uid| uid == user), "{status}");
    assert_eq!(machine.run("stat -c '%a %U' /var/lib/chips /var/lib/chips/chips.db"), "700 chips\n600 chips\n");

    // Administered, and asked a question, through all that confines it.
    let said = machine.run(administer);
    assert!(said.contains("https://chips.example.com/sign-in/"), "{said}");
    let token = said.split([' ', '=', '\n']).find(|word| word.starts_with("chips_hk_")).expect("a token of a harness");
    let asked = format!(
        "CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN={token} chips ask 'Ship it?' -o yes=Yes -o no=No --default no --timeout 1s"
    );
    machine.run(restart);
    ready();
    assert_eq!(machine.run(&asked), "no\n");
    let log = machine.run("journalctl --unit chips --output cat");
    assert!(log.contains("listening on http://127.0.0.1:7070"), "{log}");

    // What is killed comes back by itself.
    let killed = main();
    machine.run(&format!("kill -KILL {killed}"));
    until(LIMIT, "another process", || (!["0", &*killed].contains(&&*main())).then_some(()));
    ready();

    // Backed up by the unit, and restored.
    let listed = machine.run(back_up);
    assert!(listed.lines().any(|line| line.starts_with("-rw-------") && line.ends_with("Z.db")), "{listed}");
    assert_eq!(machine.run("systemctl is-active chips-backup.timer"), "active\n");
    machine.run(restore);
    ready();
    assert_eq!(machine.run(&asked), "no\n", "the token is in the copy");

    // A stop is a clean end; a wrong command line and a failed store stay down, anything else does not.
    machine.run("systemctl stop chips");
    assert_eq!(
        machine.run("systemctl show -P ActiveState chips; systemctl show -P Result chips"),
        "inactive\nsuccess\n"
    );
    machine.run("mkdir -p /etc/systemd/system/chips.service.d");
    for (code, comes_back) in [(70, false), (2, false), (1, true)] {
        let drop_in = format!("[Service]\\nExecStart=\\nExecStart=/bin/sh -c \"exit {code}\"\\nRestartSec=1h\\n");
        machine.run(&format!(
            "printf '{drop_in}' >/etc/systemd/system/chips.service.d/ends.conf; systemctl daemon-reload"
        ));
        machine.run("systemctl reset-failed chips || true; systemctl start chips || true");
        let state = until(LIMIT, "its end", || {
            let state = machine.run("systemctl show -P SubState chips").trim().to_owned();
            ["failed", "auto-restart"].contains(&&*state).then_some(state)
        });
        assert_eq!(state == "auto-restart", comes_back, "exit code {code}: {state}");
        machine.run("systemctl stop chips");
    }
}
