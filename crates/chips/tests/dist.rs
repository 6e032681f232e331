//! A release holds what it says, and what it holds works where it is unpacked.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod release;
mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use release::Release;
use serde_json::json;
use support::process::{Process, clean, output};
use support::scene::Scene;
use support::{Folder, LIMIT, Serve, until};

/// Runs a command in a folder; it must succeed. Gives what it prints, and what it complains about.
#[track_caller]
fn run(folder: &Path, program: &str, arguments: &[&str]) -> (String, String) {
    let mut command = Command::new(program);
    clean(&mut command, folder);
    let output = output({
        command.args(arguments).current_dir(folder);
        command
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{}", output.status, text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_release_holds_what_it_says_and_what_it_holds_works() {
    let folder = Folder::new();
    let (first, again) = (folder.path().join("first"), folder.path().join("again"));
    let (release, repeated) = (Release::in_folder(&first), Release::in_folder(&again));
    assert!(
        std::fs::read(&release.archive).unwrap() == std::fs::read(&repeated.archive).unwrap(),
        "the same commit makes another archive"
    );
    run(release.sums.parent().unwrap(), "sha256sum", &["--check", "--strict", "SHA256SUMS"]);

    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    run(&empty, "tar", &["xf", release.archive.to_str().unwrap()]);
    let unpacked = empty.join(&release.name);
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 1, "everything is in one folder");
    let parts = ["README.md", "CHANGELOG.md", "LICENSE", "docs/install.md", "docs/contract.md"];
    for part in parts.iter().chain(&["deploy/chips.service", "deploy/nginx.conf", "schemas/question.ask.json"]) {
        assert!(unpacked.join(part).is_file(), "{part}");
    }
    for (part, mode) in [("bin/chips", 0o755), ("libexec/chips-backup", 0o755), ("LICENSE", 0o644)] {
        let metadata = std::fs::metadata(unpacked.join(part)).unwrap();
        assert_eq!((metadata.permissions().mode() & 0o777, metadata.mtime()), (mode, 1_767_225_600), "{part}");
    }

    every_command_has_a_page_that_man_shows(&unpacked);
    completions_complete(&unpacked);
    licences_cover_all_that_is_linked(&unpacked);
    the_binary_serves_asks_and_prints_the_answer(folder, &unpacked.join("bin/chips"));
}

/// The names of all commands, each with those above it, as help lists them.
fn commands(chips: &Path, above: &[&str], found: &mut BTreeSet<String>) {
    found.insert([&["chips"], above].concat().join("-"));
    let (help, _) = run(chips.parent().unwrap(), chips.to_str().unwrap(), &[above, &["--help"]].concat());
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A description that is broken goes on further to the right.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    for name in names.filter_map(|rest| rest.split_whitespace().next()).filter(|name| *name != "help") {
        commands(chips, &[above, &[name]].concat(), found);
    }
}

fn every_command_has_a_page_that_man_shows(unpacked: &Path) {
    let mut expected = BTreeSet::new();
    commands(&unpacked.join("bin/chips"), &[], &mut expected);
    assert!(expected.len() > 30 && expected.contains("chips-harness-add"), "{expected:?}");
    let manual = unpacked.join("share/man/man1");
    let pages: BTreeSet<_> = std::fs::read_dir(&manual)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().strip_suffix(".1").unwrap().to_owned())
        .collect();
    assert_eq!(pages, expected);
    for page in &pages {
        let file = manual.join(format!("{page}.1"));
        let (shown, complaints) = run(unpacked, "groff", &["-man", "-Tutf8", "-P-cbou", "-ww", file.to_str().unwrap()]);
        assert_eq!(complaints, "", "{page}");
        assert!(shown.contains("SYNOPSIS") && shown.contains("EXAMPLES"), "{page}: {shown}");
    }
}

fn completions_complete(unpacked: &Path) {
    let complete = "source share/bash-completion/completions/chips
        COMP_WORDS=(chips ser) COMP_CWORD=1
        _chips chips ser chips
        printf '%s ' \"${COMPREPLY[@]}\"
        complete -p chips";
    let (completed, complaints) = run(unpacked, "bash", &["-euc", complete]);
    assert_eq!(complaints, "");
    assert!(completed.starts_with("serve complete "), "{completed}");
    let zsh = std::fs::read_to_string(unpacked.join("share/zsh/site-functions/_chips")).unwrap();
    assert!(zsh.starts_with("#compdef chips\n"), "{zsh}");
    let fish = std::fs::read_to_string(unpacked.join("share/fish/vendor_completions.d/chips.fish")).unwrap();
    assert!(fish.contains("complete -c chips"), "{fish}");
}

fn licences_cover_all_that_is_linked(unpacked: &Path) {
    let licences = std::fs::read_to_string(unpacked.join("LICENCES-OF-DEPENDENCIES.txt")).unwrap();
    let (list, texts) = licences.split_once("====").unwrap();
    // Asked of cargo another way than the release does.
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["tree", "--locked", "--package", "chips", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = cargo.current_dir(root).output().unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let mut count = 0;
    for line in String::from_utf8(tree.stdout).unwrap().lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        // Those of the workspace stand with their folder.
        if words.any(|word| word.starts_with("(/")) {
            continue;
        }
        let package = format!("{name} {}", version.trim_start_matches('v'));
        assert!(list.lines().any(|line| line.starts_with(&format!("{package}  "))), "{package} is not listed");
        assert!(texts.contains(&package), "{package} has no text");
        count += 1;
    }
    assert!(count > 100, "only {count} packages");
    assert!(list.contains("SQLite") && list.contains("Rust standard library"), "{list}");
}

fn the_binary_serves_asks_and_prints_the_answer(folder: Folder, chips: &Path) {
    let command = |arguments: &[&str]| {
        let mut command = Command::new(chips);
        clean(&mut command, folder.path());
        command.args(arguments);
        command
    };
    let serve = Serve::spawn(command(&["serve", "--data", folder.data().to_str().unwrap(), "--listen", "127.0.0.1:0"]));
    let mut ask = command(&["ask", "The 19th or the 26th?", "-o", "19=The 19th", "-o", "26=The 26th"]);
    let scene = Scene::of(folder, serve);
    ask.env("CHIPS_URL", scene.serve.url()).env("CHIPS_TOKEN", &scene.harness.token);
    let ask = Process::spawn(ask);
    let open = until(LIMIT, "an open question", || {
        scene.person.get("/v1/asks?state=open").expect(200)["asks"].get(0).cloned()
    });
    let answers = [json!({"question_id": "question", "values": ["26"]})];
    scene.person.send(&scene.person.answer(&open["ask"], &answers)).expect(201);
    let printed = ask.finish(LIMIT);
    assert_eq!((printed.status.code(), &*printed.stdout), (Some(0), &b"26\n"[..]));
    scene.serve.stop();
}
