//! Upgrades: what older versions wrote is read by this one, a kill in between loses nothing, and what this version does not
//! know is left alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::export::{check, export, exported};
use crate::support::process::{output, text};
use crate::support::scene::{Api, seq};
use crate::support::{Folder, Serve};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A data folder as an older version left it.
#[derive(Debug, Clone)]
struct Golden {
    layout: usize,
    database: PathBuf,
    log: Vec<String>,
}

fn golden() -> Vec<Golden> {
    let mut found = Vec::new();
    for version in std::fs::read_dir(root().join("tests/golden")).unwrap().map(Result::unwrap) {
        if !version.file_type().unwrap().is_dir() {
            continue;
        }
        for file in std::fs::read_dir(version.path()).unwrap().map(|entry| entry.unwrap().path()) {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let Some(layout) = name.strip_prefix("layout-").and_then(|name| name.strip_suffix(".db")) else { continue };
            let log = std::fs::read_to_string(file.with_extension("jsonl")).unwrap();
            let log = log.lines().map(str::to_owned).collect();
            found.push(Golden { layout: layout.parse().unwrap(), database: file, log });
        }
    }
    found.sort_by_key(|golden| golden.layout);
    found
}

/// The layout that this version writes.
fn newest() -> usize {
    std::fs::read_dir(root().join("crates/store/src/sqlite/migrations")).unwrap().count()
}

impl Golden {
    /// As a data folder.
    fn folder(&self) -> Folder {
        let folder = Folder::empty();
        std::fs::create_dir(folder.data()).unwrap();
        std::fs::copy(&self.database, folder.data().join("chips.db")).unwrap();
        folder
    }
}

/// A new token for somebody of a golden folder.
fn enter(folder: &Folder, kind: &'static str, nth: usize) -> impl Fn(&Serve) -> Api {
    let listed = folder.admin(&[kind, "list"]);
    let (id, workspace) = (text(&listed[nth], "/id"), text(&listed[nth], "/workspace_id"));
    let token = text(&folder.admin(&[kind, "rotate", &id]), "/token");
    move |serve| Api { addr: serve.addr, token: token.clone(), workspace: workspace.clone(), kind, id: id.clone() }
}

#[test]
fn every_layout_has_a_golden_folder_with_events_of_every_kind() {
    let layouts: Vec<_> = golden().iter().map(|golden| golden.layout).collect();
    assert_eq!(layouts, (1..=newest()).collect::<Vec<_>>(), "tests/golden/README.md says how to make what is missing");
    for Golden { layout, log, .. } in golden() {
        let events: Vec<Value> = log.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let told = |place: &str| -> BTreeSet<String> {
            events.iter().filter_map(|event| event.pointer(place)).map(Value::to_string).collect()
        };
        let has = |place: &str, wanted: &[&str]| {
            let told = told(place);
            assert!(wanted.iter().all(|wanted| told.contains(*wanted)), "layout {layout}: {place} is {told:?}");
        };
        has("/type", &["\"question.ask\"", "\"question.answered\""]);
        has("/actor/kind", &["\"person\"", "\"harness\"", "\"agent\"", "\"system\""]);
        has("/on_no_answer", &["\"use_default\"", "\"cancel\""]);
        has("/timed_out", &["true", "false"]);
        has("/answers", &["[]"]);
        has("/questions/0/multi_select", &["false"]);
        has("/questions/1/multi_select", &["true"]);
        assert!(!told("/answers/1/free_text").is_empty() && !told("/answers/0/free_text").is_empty());
    }
}

#[test]
fn what_is_restored_is_counted_as_it_is_exported() {
    for golden in golden() {
        let folder = Folder::empty();
        let restored = folder.admin(&["restore", golden.database.to_str().unwrap()]);
        assert_eq!(restored["events"], golden.log.len(), "layout {}", golden.layout);
        assert_eq!(exported(&folder, &[]), golden.log);
    }
}

#[test]
fn what_every_layout_holds_is_read_by_this_version_and_goes_on() {
    for golden in golden() {
        let folder = golden.folder();
        assert_eq!(exported(&folder, &[]), golden.log, "layout {}", golden.layout);
        check(&folder, &golden.log);
        let kept = folder.data().join(format!("chips.db.layout-{}", golden.layout));
        assert_eq!(kept.exists(), golden.layout < newest());
        // Two of the people see everything: the second is in the closed space.
        let (person, harness) = (enter(&folder, "person", 1), enter(&folder, "harness", 0));
        let serve = Serve::start(&folder);
        let (person, harness) = (person(&serve), harness(&serve));
        let page = person.get("/v1/events?limit=1000").text();
        assert!(page.contains(&golden.log.join(",")), "layout {}", golden.layout);
        let asks = person.get("/v1/asks?limit=200").expect(200);
        let states: BTreeSet<_> = asks["asks"].as_array().unwrap().iter().map(|ask| text(ask, "/state")).collect();
        assert_eq!(states, ["answered", "open", "settled", "timed_out", "withdrawn"].map(str::to_owned).into());
        let late = asks["asks"].as_array().unwrap().iter().filter(|ask| ask["late_answers"] != json!([])).count();
        assert_eq!(late, 1);

        let open = person.get("/v1/asks?state=open").expect(200)["asks"][0]["ask"].clone();
        let question = &open["questions"][0];
        let chosen = json!({"question_id": question["question_id"], "values": [question["options"][0]["value"]]});
        let answered = person.send(&person.answer(&open, &[chosen])).expect(201);
        assert_eq!(seq(&answered), seq(&serde_json::from_str(golden.log.last().unwrap()).unwrap()) + 1);
        // A write of then, repeated now, is a replay.
        let first: Value = golden
            .log
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .find(|event: &Value| event["type"] == "question.ask" && event["actor"]["id"] == json!(harness.id))
            .unwrap();
        let mut again = first.clone();
        again.as_object_mut().unwrap().remove("seq");
        let replayed = harness.send(&again);
        assert_eq!((replayed.status, replayed.replayed(), replayed.json()), (200, true, first));
        serve.stop();
    }
}

#[test]
fn the_copy_of_an_older_layout_leads_back() {
    for golden in golden().into_iter().filter(|golden| golden.layout < newest()) {
        let folder = golden.folder();
        let before = std::fs::read(folder.data().join("chips.db")).unwrap();
        Serve::start(&folder).stop();
        let kept = folder.data().join(format!("chips.db.layout-{}", golden.layout));
        let version = |bytes: &[u8]| u32::from_be_bytes(bytes[60..64].try_into().unwrap()) as usize;
        assert_eq!(version(&std::fs::read(folder.data().join("chips.db")).unwrap()), newest());
        // Page for page what it was, but for what SQLite counts in its header.
        let copy = std::fs::read(&kept).unwrap();
        assert_eq!((version(&copy), copy.len()), (golden.layout, before.len()));
        assert_eq!(copy[512..], before[512..]);
        let again = Folder::empty();
        again.admin(&["restore", kept.to_str().unwrap()]);
        assert_eq!(exported(&again, &[]), golden.log);
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_kill_at_any_statement_of_an_upgrade_loses_nothing_and_the_next_start_goes_on() {
    for golden in golden().into_iter().filter(|golden| golden.layout < newest()) {
        let mut places = Vec::new();
        for number in 1.. {
            let folder = golden.folder();
            let mut command = folder.chips();
            command.arg("export").arg("--data").arg(folder.data());
            let Some(at) = crate::killed_at(command, number) else { break };
            Serve::start(&folder).stop();
            assert_eq!(exported(&folder, &[]), golden.log, "layout {}, killed at {number}: {at}", golden.layout);
            let left: Vec<_> =
                std::fs::read_dir(folder.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            let left: Vec<_> = left.iter().map(|name| name.to_str().unwrap()).collect();
            assert!(left.contains(&&*format!("chips.db.layout-{}", golden.layout)), "{at}: {left:?}");
            assert!(!left.iter().any(|name| name.ends_with(".part")), "{at}: {left:?}");
            let again = Folder::empty();
            let kept = folder.data().join(format!("chips.db.layout-{}", golden.layout));
            again.admin(&["restore", kept.to_str().unwrap()]);
            assert_eq!(exported(&again, &[]), golden.log, "the copy, killed at {number}: {at}");
            places.push(at);
        }
        let statements = places.iter().filter(|at| *at == "a statement of a step").count();
        let steps = places.iter().filter(|at| *at == "a step").count();
        assert_eq!(steps, newest() - golden.layout, "{places:#?}");
        assert!(statements >= steps && places.len() > statements + 2 * steps, "{places:#?}");
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_folder_whose_making_was_killed_can_be_made() {
    let mut places = 0;
    for number in 1.. {
        let folder = Folder::empty();
        let mut command = folder.chips();
        command.args(["init", "--json", "--data"]).arg(folder.data());
        let Some(at) = crate::killed_at(command, number) else { break };
        places += 1;
        let again = folder.run_admin(&["init"]);
        assert!(again.status.success(), "killed at {at}: {}", String::from_utf8_lossy(&again.stderr));
        Serve::start(&folder).stop();
    }
    assert!(places > 20, "{places}");
}

#[test]
fn what_a_newer_version_or_another_program_wrote_is_refused_in_one_line_and_left_alone() {
    let newer = Folder::new();
    let database = newer.data().join("chips.db");
    let mut bytes = std::fs::read(&database).unwrap();
    // `user_version` in the header of the file.
    bytes[60..64].copy_from_slice(&999_u32.to_be_bytes());
    std::fs::write(&database, &bytes).unwrap();
    for beside in ["chips.db-wal", "chips.db-shm"] {
        let _ = std::fs::remove_file(newer.data().join(beside));
    }
    let foreign = Folder::empty();
    std::fs::create_dir(foreign.data()).unwrap();
    std::fs::write(
        foreign.data().join("chips.db"),
        "somebody else's file, and long enough to be looked at as a database",
    )
    .unwrap();
    for (folder, says) in
        [(&newer, "a newer version of Chips wrote this (layout 999"), (&foreign, "no database of Chips")]
    {
        let database = folder.data().join("chips.db");
        let before = std::fs::read(&database).unwrap();
        let copy = folder.path().join("copy.db");
        let commands: [&[&str]; 7] = [
            &["serve", "--listen", "127.0.0.1:0"],
            &["init"],
            &["export"],
            &["person", "list"],
            &["erase", "--list"],
            &["backup", copy.to_str().unwrap()],
            &["restore", database.to_str().unwrap()],
        ];
        for command in commands {
            let mut run = folder.chips();
            let elsewhere = folder.path().join("elsewhere");
            let data = if command[0] == "restore" { &elsewhere } else { &folder.data() };
            run.args(command).arg("--data").arg(data);
            let refused = output(run);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            let lines: Vec<_> = said.lines().filter(|line| line.starts_with("chips: ")).collect();
            assert_eq!((refused.status.code(), lines.len()), (Some(1), 1), "{command:?}: {said}");
            assert!(lines[0].contains(says) && lines[0].contains("chips.db"), "{command:?}: {said}");
            assert_eq!(std::fs::read(&database).unwrap(), before, "{command:?}");
        }
        let (code, out, _) = export(folder, &[]);
        assert_eq!((code, out.as_str()), (Some(1), ""));
    }
}
