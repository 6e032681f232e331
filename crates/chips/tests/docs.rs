//! The documents can't rot: their shell blocks are run against a real server, their links lead somewhere, and the
//! contract names every code and command there is.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use chips_protocol::FaultCode;
use chips_protocol::problem::ProblemCode;
use serde_json::{Value, json};
use support::process::{Process, clean, output};
use support::scene::{Api, Scene};
use support::until;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every document of the repository.
fn documents() -> Vec<String> {
    fn walk(dir: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, root, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    let mut found: Vec<_> = std::fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md"))
        .collect();
    walk(&root().join("docs"), &root(), &mut found);
    found
}

/// A shell block that is to be run, and what it must print if the document says.
#[derive(Debug)]
struct Block {
    script: String,
    prints: Option<String>,
}

/// The blocks marked `sh run` of a document, each with the `text` block that follows it, if one does.
fn blocks(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<(&str, String)> = None;
    let mut after_block = false;
    for line in document.lines() {
        match &mut fence {
            Some((kind, text)) if line == "```" => {
                match *kind {
                    "sh run" => blocks.push(Block { script: std::mem::take(text), prints: None }),
                    "text" if after_block => blocks.last_mut().unwrap().prints = Some(std::mem::take(text)),
                    _ => {}
                }
                after_block = *kind == "sh run";
                fence = None;
            }
            Some((_, text)) => *text += &format!("{line}\n"),
            None => match line.strip_prefix("```") {
                Some(kind) => fence = Some((kind, String::new())),
                None => after_block &= line.trim().is_empty(),
            },
        }
    }
    assert!(fence.is_none(), "a block has no end");
    blocks
}

/// A person who taps the first option of every question that has time, until told to stop.
fn answers_everything(person: &Api, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let page = person.get("/v1/asks?state=open").expect(200);
        for ask in page["asks"].as_array().unwrap() {
            let event = &ask["ask"];
            if event["timeout_seconds"].as_f64().is_some_and(|seconds| seconds < 60.0) {
                continue;
            }
            let first = |question: &Value| json!({"question_id": question["question_id"], "values": [question["options"][0]["value"]]});
            let answers: Vec<_> = event["questions"].as_array().unwrap().iter().map(first).collect();
            person.send(&person.answer(event, &answers));
        }
        support::wait::pass(std::time::Duration::from_millis(50));
    }
}

/// Runs the blocks of a document one after the other in one shell, and gives what each of them printed.
fn run(scene: &Scene, document: &str, blocks: &[Block]) -> Vec<String> {
    const BETWEEN: &str = "-- the next block --";
    let scratch = tempfile::tempdir().unwrap();
    let script: String = blocks.iter().map(|block| format!("{}echo '{BETWEEN}'\n", block.script)).collect();
    let mut bash = Command::new("bash");
    clean(&mut bash, scene.folder.path());
    let beside = Path::new(env!("CARGO_BIN_EXE_chips")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([beside.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap();
    bash.args(["-euo", "pipefail", "-c", &script])
        .current_dir(scratch.path())
        .env("PATH", path)
        .env("CHIPS_URL", scene.serve.url())
        .env("CHIPS_TOKEN", &scene.harness.token)
        .env("CHIPS_USER_TOKEN", &scene.person.token);

    let stop = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| answers_everything(&scene.person, &stop));
        let mut process = Process::spawn(bash);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until(support::LIMIT * 4, "the blocks to end", || process.ended())
        }));
        stop.store(true, Ordering::Relaxed);
        let said = process.stdout() + &process.stderr();
        ended.unwrap_or_else(|_| panic!("{document}: {said}"));
        process.finish(support::LIMIT)
    });
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{document}: {}\n{out}\n{err}", output.status);
    out.split(&format!("{BETWEEN}\n")).map(str::to_owned).take(blocks.len()).collect()
}

#[test]
fn the_shell_blocks_of_the_documents_do_what_they_say() {
    let mut count = 0;
    for document in documents() {
        let blocks = blocks(&read(&document));
        if blocks.is_empty() {
            continue;
        }
        let scene = Scene::new();
        for (block, printed) in blocks.iter().zip(run(&scene, &document, &blocks)) {
            if let Some(prints) = &block.prints {
                assert_eq!(&printed, prints, "{document}: {}", block.script);
            }
            count += 1;
        }
        let open = scene.person.get("/v1/asks?state=open").expect(200);
        assert_eq!(open["asks"], json!([]), "{document} leaves a question open");
    }
    assert!(count >= 4, "only {count} blocks were run");
}

#[test]
fn every_link_between_the_documents_leads_somewhere() {
    let mut count = 0;
    for document in documents() {
        let text = read(&document);
        let dir = Path::new(&document).parent().unwrap().to_owned();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let images = text.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for target in targets.chain(images) {
            let (path, part) = target.split_once('#').unwrap_or((target, ""));
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let file = if path.is_empty() { root().join(&document) } else { root().join(&dir).join(path) };
            assert!(file.exists(), "{document} links {target}, which is not there");
            if !part.is_empty() {
                let headings = std::fs::read_to_string(&file).unwrap();
                let mut anchors = headings.lines().filter(|line| line.starts_with('#')).map(anchor);
                assert!(anchors.any(|anchor| anchor == part), "{document} links {target}: no such heading");
            }
            count += 1;
        }
    }
    assert!(count > 20, "only {count} links were found");
}

/// What a heading is linked by.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn the_contract_names_every_code() {
    let contract = read("docs/contract.md");
    let problems = ProblemCode::ALL.iter().map(|code| (code.as_str(), Some(code.status())));
    let faults = FaultCode::ALL.iter().map(|code| (code.as_str(), None));
    for (code, status) in problems.chain(faults) {
        let rows = contract.lines().filter(|line| line.starts_with('|') && line.contains(&format!("`{code}`")));
        match status {
            Some(status) => assert!(rows.into_iter().any(|row| row.starts_with(&format!("| {status} |"))), "{code}"),
            None => assert!(rows.count() > 0, "{code}"),
        }
    }
}

#[test]
fn the_contract_names_every_command_and_every_endpoint() {
    let contract = read("docs/contract.md");
    let scene = Scene::new();
    let mut help = scene.folder.chips();
    help.arg("--help");
    let help = String::from_utf8(output(help).stdout).unwrap();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<_> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 10, "{help}");
    for command in commands.iter().filter(|command| **command != "help") {
        assert!(contract.contains(&format!("`chips {command}")), "chips {command} is not in the contract");
    }
    let openapi = support::Request::get("/openapi.json").send(scene.serve.addr).expect(200);
    let paths = openapi["paths"].as_object().unwrap();
    assert!(paths.len() >= 8, "{paths:?}");
    for path in paths.keys() {
        let named = path.replace("{ask_id}", "ASK_ID").replace("{run_id}", "RUN_ID");
        // What stands for one of a few files is named by what stands before it.
        let named = named.split('{').next().unwrap_or_default();
        assert!(contract.contains(named), "{path} is not in the contract");
    }
}
