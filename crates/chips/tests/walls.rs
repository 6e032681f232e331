//! The walls of the repository: who may import whom, how long a file may be, what must have a page.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use chips_protocol::FaultCode;
use chips_protocol::problem::ProblemCode;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every file of the repository that has text in it, by its path from the root.
fn texts() -> BTreeMap<String, String> {
    fn walk(dir: &Path, root: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry.file_type().unwrap();
            if [".git", ".cargo", "target", "node_modules"].iter().any(|skipped| name == *skipped) {
                continue;
            } else if kind.is_dir() {
                walk(&path, root, found);
            } else if kind.is_file()
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                found.insert(path.strip_prefix(root).unwrap().display().to_string(), text);
            }
        }
    }
    let (root, mut found) = (root(), BTreeMap::new());
    walk(&root, &root, &mut found);
    assert!(found.contains_key("Cargo.toml"));
    found
}

/// What each package of the workspace depends on directly: the name and the kind (`normal`, `dev`, `build`).
fn dependencies() -> BTreeMap<String, BTreeSet<(String, String)>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            let kind = |dependency: &Value| dependency["kind"].as_str().unwrap_or("normal").to_owned();
            (text(&package["name"]), dependencies.map(|one| (text(&one["name"]), kind(one))).collect())
        })
        .collect()
}

#[test]
fn each_room_imports_only_those_below_it() {
    let below: BTreeMap<&str, &[&str]> = [
        ("chips-protocol", &[][..]),
        ("chips-core", &["chips-protocol"]),
        ("chips-store", &["chips-protocol", "chips-core"]),
        ("chips-mcp", &["chips-protocol"]),
        ("chips-server", &["chips-protocol", "chips-core", "chips-store", "chips-mcp"]),
        ("chips-client", &["chips-protocol"]),
        ("chips", &["chips-protocol", "chips-core", "chips-store", "chips-server", "chips-client", "chips-mcp"]),
        ("xtask", &["chips-protocol", "chips-core", "chips-store", "chips-server", "chips-client"]),
    ]
    .into();
    let packages = dependencies();
    assert!(packages.keys().map(String::as_str).eq(below.keys().copied()), "a room without a rule: {packages:?}");
    for (package, dependencies) in &packages {
        for (dependency, kind) in dependencies {
            let own = packages.contains_key(dependency);
            let allowed = below[package.as_str()].contains(&dependency.as_str());
            assert!(!own || allowed || kind == "dev", "{package} must not import {dependency}");
            assert!(dependency != "xtask" && dependency != "chips", "{package} imports {dependency}");
        }
    }
}

#[test]
fn each_heavy_library_has_one_home() {
    let homes: [(&str, &[&str]); 10] = [
        ("rmcp", &["chips-mcp"]),
        ("rusqlite", &["chips-store"]),
        ("postgres", &["chips-store"]),
        ("axum", &["chips-server"]),
        ("hyper", &["chips-server"]),
        ("tower-http", &["chips-server"]),
        ("askama", &["chips-server"]),
        ("lettre", &["chips-server"]),
        ("clap", &["chips", "xtask"]),
        ("reqwest", &["chips-client", "chips-server", "chips", "xtask"]),
    ];
    for (package, dependencies) in dependencies() {
        for (library, homes) in homes {
            let takes = |kinds: &[&str]| {
                dependencies.iter().any(|(name, kind)| name == library && kinds.contains(&kind.as_str()))
            };
            let at_home = homes.contains(&package.as_str());
            assert!(at_home || !takes(&["normal", "build"]), "{package} must not import {library}");
            // Not even a test reaches round the store into its file.
            assert!(at_home || library != "rusqlite" || !takes(&["dev"]), "{package} tests with {library}");
        }
    }
}

#[test]
fn every_file_of_rust_can_be_read_in_one_go() {
    let long: Vec<_> = texts()
        .into_iter()
        .filter(|(path, _)| path.ends_with(".rs"))
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > 600)
        .collect();
    assert!(long.is_empty(), "split these by meaning: {long:?}");
}

#[test]
fn every_problem_has_a_page_and_every_page_a_problem() {
    let codes: BTreeSet<String> = ProblemCode::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    let texts = texts();
    let mut pages: BTreeMap<_, _> = texts
        .iter()
        .filter_map(|(path, text)| Some((path.strip_prefix("docs/problems/")?.strip_suffix(".md")?.to_owned(), text)))
        .collect();
    // One page has the codes of the faults, which stand in `errors` and have no `type` of their own.
    let faults = pages.remove("faults").expect("docs/problems/faults.md");
    for fault in FaultCode::ALL {
        assert!(faults.contains(&format!("`{}`", fault.as_str())), "docs/problems/faults.md says nothing of {fault:?}");
    }
    assert!(codes.iter().eq(pages.keys()), "codes {codes:?}\npages {:?}", pages.keys());
    for (code, page) in pages {
        assert!(page.lines().count() > 3, "the page of {code} says nothing");
    }
}

#[test]
fn the_index_of_decisions_is_complete() {
    let texts = texts();
    let index = &texts["docs/adr/README.md"];
    let mut numbers = BTreeSet::new();
    for (path, text) in &texts {
        let Some(name) = path.strip_prefix("docs/adr/").filter(|name| *name != "README.md") else { continue };
        let number = name.get(..4).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.unwrap_or_else(|| panic!("{path} has no number"));
        assert!(numbers.insert(number.to_owned()), "two decisions have the number {number}");
        let title = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
        let title = title.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ':' | ' ' | '-'));
        assert!(index.contains(&format!("]({name})")), "docs/adr/README.md does not link {name}");
        assert!(index.contains(title), "docs/adr/README.md does not name {title:?} ({name})");
    }
    let links = index.matches("](").count();
    assert_eq!(links, numbers.len(), "docs/adr/README.md links something that is not there");
}

#[test]
fn nothing_names_a_place_outside_the_repository() {
    // Put together here, so that this file does not name them either.
    let beside = format!("..{}shared", '/');
    let roots = ["work", "root", "home", "Users"].map(|name| format!("{0}{name}{0}", '/'));
    for (path, text) in texts() {
        for (at, line) in text.lines().enumerate() {
            let place = || format!("{path}:{}: {line}", at + 1);
            assert!(!line.contains(&beside), "{}", place());
            for root in &roots {
                let named = line.match_indices(root).any(|(at, _)| {
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '}' | '~'))
                });
                assert!(!named, "{}", place());
            }
        }
    }
}

#[test]
fn nothing_is_left_undone_or_waited_for_by_sleeping() {
    let undone = ["todo", "unimplemented"].map(|name| format!("{name}!("));
    let (ignored, asleep) =
        (format!("#[{}", "ignore"), [format!("thread::{}(", "sleep"), format!("time::{}(", "sleep")]);
    for (path, text) in texts().iter().filter(|(path, _)| path.ends_with(".rs")) {
        for undone in &undone {
            assert!(!text.contains(undone), "{path} has a {undone}…)");
        }
        assert!(!text.contains(&ignored), "{path} has an ignored test");
        let tests = path.contains("/tests/");
        assert!(!tests || !asleep.iter().any(|asleep| text.contains(asleep)), "{path} sleeps to wait");
    }
}

#[test]
fn every_package_obeys_the_workspaces_lints() {
    let texts = texts();
    let manifests = texts.iter().filter(|(path, _)| path.ends_with("/Cargo.toml"));
    let mut count = 0;
    for (path, text) in manifests {
        assert!(text.contains("[lints]\nworkspace = true"), "{path}");
        count += 1;
    }
    assert_eq!(count, dependencies().len());
}
