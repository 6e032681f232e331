//! `chips erase`: what was erased is in no file of the folder, and nothing but texts has changed.

use std::path::Path;

use serde_json::{Value, json};

use super::export::{check, exported};
#[cfg(debug_assertions)]
use crate::killed_at;
use crate::support::browser::Browser;
use crate::support::events::{ask_with, new_id, typed};
use crate::support::process::text;
use crate::support::scene::{Api, Scene, ask_path};
use crate::support::stream::Stream;
use crate::support::{Folder, LIMIT, Serve};

/// A text that stands nowhere else: what cuts it leaves its name on one side at least.
fn canary(name: &str) -> String {
    format!("{name}Zaunk\u{f6}nig{name} \u{e4}\u{1f33b} {name}Dompfaff{name}")
}

/// Which of these names stand in which file of a folder, in UTF-8, as JSON escapes it, or in UTF-16.
fn holding(dir: &Path, names: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, names));
            continue;
        }
        // Names are ASCII: without its zeros UTF-16 reads like UTF-8.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.retain(|byte| *byte != 0);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let held = names.iter().filter(|name| text.contains(**name));
        found.extend(held.map(|name| (path.display().to_string(), (*name).to_owned())));
    }
    found
}

#[track_caller]
fn nowhere(folder: &Folder, names: &[&str]) {
    assert_eq!(holding(&folder.data(), names), []);
}

#[track_caller]
fn somewhere(folder: &Folder, names: &[&str]) {
    let held = holding(&folder.data(), names);
    for name in names {
        assert!(held.iter().any(|(_, held)| held == name), "{name} is not in the folder to begin with");
    }
}

fn erase(folder: &Folder, args: &[&str]) -> Value {
    folder.admin(&[&["erase", "--yes"], args].concat())
}

#[track_caller]
fn refused(folder: &Folder, args: &[&str], code: i32) -> String {
    let output = folder.run_admin(&[&["erase"], args].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{said}");
    said
}

/// A question whose every text is a canary, long enough to fill pages.
fn question(name: &str) -> Value {
    let part = |what: &str| canary(&format!("{name}{what}"));
    json!({
        "question_id": format!("{name}qid"),
        "prompt": format!("{} {}", part("pro"), "und noch mehr davon ".repeat(150)) + &part("end"),
        "options": [
            {"value": part("va"), "label": part("la"), "description": part("de")},
            {"value": part("vb"), "label": part("lb")},
        ],
        "allow_free_text": true,
        "default_value": part("df"),
    })
}

/// A scene in which texts stand everywhere.
struct Stage {
    scene: Scene,
    ada: Api,
    /// The bodies that were sent: the question `one`, its answer by Ada, and the question `two`.
    sent: [Value; 3],
    one: Value,
    two: Value,
    run: String,
}

/// In the question `one`, its answers and its run.
const ONE: [&str; 12] = [
    "onepro", "oneend", "oneva", "onela", "onede", "onevb", "onelb", "onedf", "oneqid", "adafree", "latefree",
    "onelate",
];
const TITLE: [&str; 3] = ["titlerun", "urlrun", "labelrun"];
const TWO: [&str; 4] = ["twopro", "twoend", "twovb", "settledtext"];

impl Stage {
    fn new() -> Self {
        let scene = Scene::new();
        scene.lift_budget();
        let ada = scene.add_person(&canary("adaname"));
        let run = scene.harness.open_run_with(&json!({
            "title": canary("titlerun"),
            "url": "https://example.com/urlrun",
            "labels": {"team": canary("labelrun")},
        }));
        let ask = scene.harness.event(&run, ask_with(&[question("one")]));
        let one = scene.asked(&ask);
        let answer = ada.answer(&one, &[typed("oneqid", &canary("adafree"))]);
        ada.send(&answer).expect(201);
        let late = json!({"question_id": "oneqid", "values": [canary("onevb")]});
        scene.person.send(&scene.person.answer(&one, &[late])).expect_problem(409, "already_closed");
        scene.person.send(&scene.person.answer(&one, &[typed("oneqid", &canary("latefree"))])).expect(409);
        scene.person.send(&scene.person.answer(&one, &[typed("oneqid", &canary("onelate"))])).expect(409);
        let again = scene.harness.event(&run, ask_with(&[question("two")]));
        let two = scene.asked(&again);
        let settled = scene.harness.answer(&two, &[typed("twoqid", &canary("settledtext"))]);
        scene.harness.send(&settled).expect(201);
        // What came and went before: pages that were used and are free now.
        for _ in 0..30 {
            let filler = scene.harness.event(&run, ask_with(&[question("filler")]));
            let filler = scene.asked(&filler);
            scene.harness.send(&scene.harness.answer(&filler, &[])).expect(201);
        }
        Self { scene, ada, sent: [ask, answer, again], one, two, run }
    }
}

/// What is left of an export when its texts are left out: what must be the same before and after.
fn without_texts(line: &str) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let text = ["question_id", "prompt", "value", "label", "description", "default_value", "free_text"];
                    match value {
                        Value::String(_) if text.contains(&name.as_str()) => *value = Value::Null,
                        Value::Array(values) if name == "values" => {
                            values.iter_mut().for_each(|value| *value = Value::Null)
                        }
                        value => strip(value),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::from_str(line).unwrap();
    strip(&mut value);
    value
}

/// The lines of two exports that differ, by their `seq`.
#[track_caller]
fn changed(before: &[String], after: &[String]) -> Vec<u64> {
    assert_eq!(before.len(), after.len());
    let mut changed = Vec::new();
    for (before, after) in before.iter().zip(after) {
        assert_eq!(without_texts(before), without_texts(after), "more than texts has changed");
        if before != after {
            let event: Value = serde_json::from_str(after).unwrap();
            changed.push(event["seq"].as_u64().unwrap());
        }
    }
    changed
}

#[test]
fn an_erased_question_is_in_no_file_and_in_no_reply_of_a_server_that_runs() {
    let Stage { scene, ada, sent, one, two, .. } = Stage::new();
    let folder = &scene.folder;
    somewhere(folder, &ONE);
    let before = exported(folder, &[]);
    let mut stream = Stream::open(scene.serve.addr, &scene.person.token, "?after=0", None);
    stream.expect();

    let erased = erase(folder, &["--ask", &text(&one, "/ask_id")]);
    assert_eq!((&erased["what"], &erased["asks"], &erased["runs"]), (&json!("ask"), &json!(1), &json!(0)));
    nowhere(folder, &ONE);
    somewhere(folder, &["titlerun", "twopro", "adaname", "fillerpro"]);
    let after = exported(folder, &[]);
    check(folder, &after);
    assert_eq!(changed(&before, &after), [1, 2]);

    // Whoever reads from now on, reads that: pages, the ask itself, lists, the search, streams, the inbox.
    let says = |reply: String| {
        assert!(!ONE.iter().any(|name| reply.contains(name)), "{reply}");
        reply
    };
    for api in [&scene.person, &scene.harness] {
        let page = says(api.get("/v1/events?limit=3").text());
        assert!(page.contains(&after[0]), "{page}");
        let shown = api.get(&ask_path(&one));
        says(shown.text());
        let shown = shown.json();
        assert_eq!(shown["state"], "answered");
        assert_eq!(shown["ask"]["questions"][0]["prompt"], "[erased]");
        assert_eq!(shown["ask"]["questions"][0]["options"][1]["label"], "[erased] 2");
        assert_eq!(
            shown["answer"]["answers"][0],
            json!({"question_id": "[erased] 1", "values": [], "free_text": "[erased]"})
        );
        assert_eq!(shown["late_answers"].as_array().unwrap().len(), 3);
        assert_eq!(shown["late_answers"][0]["answers"][0]["values"], json!(["[erased] 2"]));
        says(api.get("/v1/asks").text());
        assert_eq!(api.get("/v1/asks?q=onepro").expect(200)["asks"], json!([]));
        assert_eq!(api.get("/v1/asks?q=twopro").expect(200)["asks"].as_array().unwrap().len(), 1);
    }
    let mut anew = Stream::open(scene.serve.addr, &scene.person.token, "?after=0", None);
    says(anew.expect().data.concat());
    says(anew.expect().data.concat());
    let mut browser = Browser::new(scene.serve.addr);
    browser.sign_in(&folder.text("/sign_in_url"));
    let page = says(browser.get(&format!("/asks/{}", text(&one, "/ask_id"))).text());
    assert!(page.contains("[erased]"), "{page}");
    says(browser.get("/history").text());

    // Repeated writes get what is stored, and bring nothing back.
    let [ask, answer, again] = &sent;
    let replayed = scene.harness.send(ask);
    assert_eq!((replayed.status, replayed.replayed(), says(replayed.text())), (200, true, after[0].clone()));
    let mut same = ask.clone();
    (same["id"], same["idempotency_key"]) = (json!(new_id("evt")), json!(new_id("key")));
    let replayed = scene.harness.send(&same);
    assert_eq!((replayed.status, says(replayed.text())), (200, after[0].clone()));
    let late = scene.person.answer(&one, &[typed("oneqid", &canary("onelate"))]);
    says(scene.person.send(&late).text());
    let replayed = ada.send(answer);
    assert_eq!((replayed.status, replayed.replayed(), says(replayed.text())), (200, true, after[1].clone()));
    assert_eq!(scene.harness.send(again).text(), serde_json::to_string(&two).unwrap());
    nowhere(folder, &ONE);

    // Nor does a restart, whichever way.
    let scene = scene.restart(Serve::kill);
    says(scene.person.get("/v1/events?limit=3").text());
    let scene = scene.restart(Serve::stop);
    nowhere(&scene.folder, &ONE);
    assert_eq!(exported(&scene.folder, &[]), after);
}

#[test]
fn a_question_that_says_erased_itself_is_one_like_any_other() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let says = |prompt: &str| {
        json!({
            "question_id": "[erased] 1", "prompt": prompt, "allow_free_text": true,
            "options": [{"value": "[erased] 1", "label": "[erased] 1"}, {"value": "[erased] 2", "label": "[erased] 2"}],
        })
    };
    let ask = scene.harness.event(&run, ask_with(&[says("[erased]")]));
    let asked = scene.asked(&ask);
    let mut other = scene.harness.event(&run, ask_with(&[says("Something else?")]));
    other["ask_id"] = ask["ask_id"].clone();
    // Another question is none that it repeats; its own words are.
    scene.harness.send(&other).expect_problem(409, "ask_id_conflict");
    let mut same = ask.clone();
    (same["id"], same["idempotency_key"]) = (json!(new_id("evt")), json!(new_id("key")));
    assert!(scene.harness.send(&same).replayed());
    let answer = scene.person.answer(&asked, &[typed("[erased] 1", "[erased]")]);
    scene.person.send(&answer).expect(201);
    let mut another = answer.clone();
    another["answers"] = json!([typed("[erased] 1", "meant otherwise")]);
    another["idempotency_key"] = json!(new_id("key"));
    scene.person.send(&another).expect_problem(409, "event_id_conflict");
    // What comes too late is kept beside it.
    let late = scene.person.answer(&asked, &[typed("[erased] 1", "too late")]);
    scene.person.send(&late).expect_problem(409, "already_closed");
    let shown = scene.person.get(&ask_path(&asked)).expect(200);
    assert_eq!(shown["late_answers"][0]["answers"][0]["free_text"], "too late");

    // Once it was erased, nobody knows what it said, and whoever repeats it gets what is stored.
    erase(&scene.folder, &["--ask", &text(&asked, "/ask_id")]);
    assert!(scene.harness.send(&other).replayed());
    assert_eq!(scene.person.send(&another).status, 200);
    let late = scene.person.answer(&asked, &[typed("[erased] 1", "far too late")]);
    scene.person.send(&late).expect_problem(409, "already_closed");
    assert_eq!(scene.person.get(&ask_path(&asked)).expect(200)["late_answers"].as_array().unwrap().len(), 1);
}

#[test]
fn an_erased_person_has_no_name_no_words_no_device_and_no_way_in() {
    let Stage { scene, ada, one, .. } = Stage::new();
    let folder = &scene.folder;
    let link = folder.admin(&["person", "link", &ada.id]);
    let mut browser = Browser::new(scene.serve.addr);
    browser.sign_in(&text(&link, "/sign_in_url"));
    let mut stream = ada.stream();
    somewhere(folder, &["adaname", "adafree"]);
    let before = exported(folder, &[]);

    erase(folder, &["--person", &ada.id]);
    nowhere(folder, &["adaname", "adafree"]);
    // What the harness asked and what others wrote stays.
    somewhere(folder, &["onepro", "onela", "latefree", "titlerun"]);
    let after = exported(folder, &[]);
    check(folder, &after);
    assert_eq!(changed(&before, &after), [2]);
    assert_eq!(ada.get("/v1/me").status, 401);
    assert_ne!(browser.get("/").status, 200);
    assert!(stream.ends_within(LIMIT));
    let shown = scene.person.get(&ask_path(&one)).expect(200);
    assert_eq!(shown["answerer"]["name"], "[erased]");
    assert_eq!(shown["answer"]["answers"][0]["free_text"], "[erased]");
    assert_eq!(shown["answer"]["answered_by"], json!(ada.id));
    // The late answers are somebody else's.
    assert!(shown["late_answers"][1]["answers"][0]["free_text"].as_str().unwrap().contains("latefree"));
    let erased = erase(folder, &["--person", &scene.person.id]);
    assert_eq!(erased["persons"], 1);
    nowhere(folder, &["latefree", "onelate"]);
    somewhere(folder, &["onela"]);
}

#[test]
fn an_erased_run_takes_its_questions_along_and_an_erased_question_its_own_run() {
    let Stage { scene, run, two, .. } = Stage::new();
    let folder = &scene.folder;
    let alone = scene.harness.open_run_with(&json!({"title": canary("alonerun"), "labels": {"x": "y"}}));
    let ask = scene.asked(&scene.harness.event(&alone, ask_with(&[question("alone")])));
    let said = refused(folder, &["--yes", "--ask", &text(&ask, "/ask_id")], 1);
    assert!(said.contains("is open") && said.contains(&text(&ask, "/ask_id")), "{said}");
    scene.harness.send(&scene.harness.answer(&ask, &[])).expect(201);
    let erased = erase(folder, &["--ask", &text(&ask, "/ask_id")]);
    assert_eq!((&erased["asks"], &erased["runs"]), (&json!(1), &json!(1)));
    nowhere(folder, &["alonerun", "alonepro", "alonelb"]);

    let before = exported(folder, &[]);
    somewhere(folder, &[&ONE[..], &TITLE, &TWO].concat());
    let erased = erase(folder, &["--run", &run]);
    assert_eq!(erased["asks"], 32);
    nowhere(folder, &[&ONE[..], &TITLE, &TWO, &["fillerpro"]].concat());
    let after = exported(folder, &[]);
    check(folder, &after);
    assert_eq!(changed(&before, &after), (1..=64).filter(|seq| *seq <= 4 || seq % 2 == 1).collect::<Vec<u64>>());
    let shown = scene.harness.get(&format!("/v1/runs/{run}")).expect(200);
    assert_eq!((&shown["title"], &shown["url"], &shown["labels"]), (&json!("[erased]"), &Value::Null, &json!({})));
    assert_eq!(shown["state"], "live");
    assert_eq!(scene.harness.get(&ask_path(&two)).expect(200)["state"], "settled");
    // The run lives, and its harness may go on.
    scene.asked(&scene.harness.plain_ask(&run));
}

#[test]
fn an_erased_workspace_ends_and_its_neighbour_does_not_notice() {
    let Stage { scene, ada, .. } = Stage::new();
    let folder = &scene.folder;
    let (person, harness) = scene.add_workspace(&canary("neighbour"));
    folder.admin(&["space", "add", &canary("spacename"), "--workspace", &ada.workspace]);
    folder.admin(&["harness", "webhook", "add", &scene.harness.id, "https://example.com/hookpath"]);
    let run = harness.open_run_with(&json!({"title": canary("theirrun")}));
    let theirs = harness.send(&harness.event(&run, ask_with(&[question("theirs")]))).expect(201);
    let all = [&ONE[..], &TITLE, &TWO, &["spacename", "hookpath", "adaname", "fillerpro"]].concat();
    somewhere(folder, &all);
    let at = |workspace: &str| exported(folder, &["--workspace", workspace]);
    let (before, their) = (at(&ada.workspace), at(&harness.workspace));

    erase(folder, &["--workspace", &ada.workspace]);
    nowhere(folder, &all);
    somewhere(folder, &["neighbour", "theirrun", "theirspro"]);
    let after = at(&ada.workspace);
    check(folder, &after);
    changed(&before, &after);
    assert_eq!(at(&harness.workspace), their);
    for api in [&ada, &scene.person, &scene.harness] {
        assert_eq!(api.get("/v1/me").status, 401);
    }
    assert_eq!(person.state(&theirs), "open");
    let listed = folder.admin(&["erase", "--list"]);
    assert_eq!(
        (&listed[0]["what"], &listed[0]["id"], &listed[0]["done"]),
        (&json!("workspace"), &json!(ada.workspace), &json!(true))
    );
    assert_eq!(listed.as_array().unwrap().len(), 1);
    // It has ended: nobody and nothing comes to it, and who names no workspace means the other.
    for what in ["person", "harness", "space"] {
        let output = folder.run_admin(&[what, "add", "Nobody", "--workspace", &ada.workspace]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("was erased and has ended; `chips workspace add NAME` makes another"), "{said}");
    }
    folder.admin(&["person", "add", "Somebody"]);
    let workspaces = folder.admin(&["workspace", "list"]);
    assert_eq!((&workspaces[0]["disabled"], &workspaces[1]["disabled"]), (&json!(true), &json!(false)));
}

#[test]
fn what_is_unknown_ambiguous_or_not_agreed_to_is_refused_and_nothing_changes() {
    let Stage { scene, one, .. } = Stage::new();
    let folder = &scene.folder;
    let before = exported(folder, &[]);
    let id = text(&one, "/ask_id");
    assert!(refused(folder, &["--ask", &id], 2).contains("--yes"));
    refused(folder, &["--yes"], 2);
    refused(folder, &["--yes", "--ask", &id, "--person", &scene.person.id], 2);
    refused(folder, &["--yes", "--ask", "qst_1"], 2);
    for unknown in [
        ["--ask", &new_id("qst")],
        ["--run", &new_id("run")],
        ["--person", &new_id("usr")],
        ["--workspace", &new_id("ws")],
    ] {
        let said = refused(folder, &[&["--yes"], &unknown[..]].concat(), 1);
        assert!(said.contains("there is no") && said.contains(unknown[1]), "{said}");
    }
    let (_, harness) = scene.add_workspace("Second");
    let run = harness.open_run();
    let mut same = harness.plain_ask(&run);
    same["ask_id"] = json!(id);
    let same = harness.send(&same).expect(201);
    harness.send(&harness.answer(&same, &[])).expect(201);
    assert!(refused(folder, &["--yes", "--ask", &id], 1).contains("--workspace"));
    let at = ["--workspace", scene.harness.workspace.as_str()];
    assert_eq!(exported(folder, &at), before);
    erase(folder, &["--ask", &id, "--workspace", &harness.workspace]);
    assert_eq!(exported(folder, &at), before);
    somewhere(folder, &ONE);
}

#[test]
fn copies_in_the_folder_are_removed_or_told() {
    let Stage { scene, one, .. } = Stage::new();
    let folder = &scene.folder;
    let id = text(&one, "/ask_id");
    let backups = folder.data().join("somewhere/far/below/where/backups/are");
    std::fs::create_dir_all(&backups).unwrap();
    let backup = backups.join("monday.db");
    folder.admin(&["backup", backup.to_str().unwrap()]);
    let layout = folder.data().join("chips.db.layout-1");
    std::fs::copy(&backup, &layout).unwrap();
    let said = refused(folder, &["--yes", "--ask", &id], 1);
    assert!(said.contains("monday.db") && said.contains("--leave-backups") && !said.contains("layout-1"), "{said}");
    somewhere(folder, &ONE);
    let erased = erase(folder, &["--ask", &id, "--leave-backups"]);
    assert_eq!((&erased["removed"], &erased["left"]), (&json!([layout]), &json!([backup])));
    assert!(!layout.exists());
    let left = holding(&folder.data(), &ONE);
    assert!(left.len() == ONE.len() && left.iter().all(|(file, _)| *file == backup.display().to_string()), "{left:?}");
    std::fs::remove_file(&backup).unwrap();
    nowhere(folder, &ONE);

    // Of a file that is not Chips' own nobody knows what is in it: an export, say, or a packed backup.
    let (export, packed) = (backups.join("log.jsonl"), folder.data().join("chips.db.gz"));
    std::fs::write(&export, exported(folder, &[]).join("\n")).unwrap();
    std::fs::write(&packed, "what nobody can read").unwrap();
    let own = folder.data().join("url.4242.new");
    std::fs::write(&own, "http://127.0.0.1:7070\n").unwrap();
    std::fs::write(folder.data().join("empty"), "").unwrap();
    let said = refused(folder, &["--yes", "--ask", &id], 1);
    assert!(said.contains("not Chips' own") && said.contains("log.jsonl") && said.contains("chips.db.gz"), "{said}");
    assert!(!said.contains("url") && !said.contains("empty") && !said.contains("lock"), "{said}");
    let erased = erase(folder, &["--ask", &id, "--leave-backups"]);
    assert_eq!(erased["left"], json!([packed, export]));
    assert!(export.exists() && packed.exists() && own.exists());
}

/// A copy of a folder.
fn copied(folder: &Folder) -> Folder {
    let mut copy = Folder::empty();
    copy.made = folder.made.clone();
    std::fs::create_dir(copy.data()).unwrap();
    for entry in std::fs::read_dir(folder.data()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.data().join(entry.file_name())).unwrap();
    }
    copy
}

#[cfg(debug_assertions)]
#[test]
fn an_erasure_that_is_killed_anywhere_has_not_begun_or_is_finished_by_the_next_start() {
    let Stage { scene, run, .. } = Stage::new();
    let Scene { serve, folder, .. } = scene;
    serve.kill();
    let texts = [&ONE[..], &TITLE, &TWO].concat();
    let mut begun = 0;
    let mut places = Vec::new();
    for number in 1.. {
        let folder = copied(&folder);
        let mut command = folder.chips();
        command.args(["erase", "--yes", "--run", &run]).arg("--data").arg(folder.data());
        let Some(at) = killed_at(command, number) else { break };
        places.push(at);
        let listed = folder.admin(&["erase", "--list"]);
        if listed == json!([]) {
            somewhere(&folder, &texts);
            continue;
        }
        if begun == 0 {
            let said = String::from_utf8(folder.run_admin(&["doctor"]).stdout).unwrap();
            assert!(
                said.contains("was not carried out to the end") && said.contains(&format!("erase --run {run}")),
                "{said}"
            );
        }
        begun += 1;
        // Texts that were not reached yet are erased when it is run again; what was overwritten is in no file by the next start.
        let exported_now = exported(&folder, &[]).concat();
        let beside_the_log = [&TITLE[..], &["latefree", "onelate"]].concat();
        let overwritten: Vec<_> = texts
            .iter()
            .copied()
            .filter(|name| !beside_the_log.contains(name) && !exported_now.contains(name))
            .collect();
        Serve::start(&folder).stop();
        nowhere(&folder, &overwritten);
        erase(&folder, &["--run", &run]);
        nowhere(&folder, &texts);
        check(&folder, &exported(&folder, &[]));
    }
    assert!(places.len() >= 10 && begun >= 5, "{places:#?}");
}
