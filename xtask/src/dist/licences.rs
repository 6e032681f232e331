//! The licences of what is linked into the binary. Each package must say what its licence is, that must be one that may be passed on
//! with Chips, and its text must be there: else there is no release.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use super::text as as_text;

/// The licences that Chips can be passed on under: all they ask for is that their text goes along.
const ACCEPTED: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "ISC",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Zlib",
    "BSL-1.0",
    "Unicode-3.0",
    "0BSD",
    "CC0-1.0",
    "Unlicense",
];

/// How the files that hold licences are named, in upper case.
const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// What is linked without being a package.
const BESIDE_PACKAGES: &str = "\
The Rust standard library, MIT OR Apache-2.0, is taken under the Apache License 2.0, whose text is Chips' own (LICENSE).
SQLite, which is compiled into libsqlite3-sys, is in the public domain (https://sqlite.org/copyright.html).
";

/// One package that is linked, or whose macros have written a part of what is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    licence: String,
    folder: PathBuf,
}

/// The list of all packages below `package`, each with its licence, and then every text with the packages whose it is.
///
/// # Errors
/// Names every package that is not accounted for.
pub fn text(metadata: &Value, package: &str) -> anyhow::Result<String> {
    let packages = linked(metadata, package)?;
    let mut wrong = Vec::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in &packages {
        let name = format!("{} {}", package.name, package.version);
        if let Err(reason) = acceptable(&package.licence) {
            wrong.push(format!("{name}: {reason}"));
        }
        let found = texts_in(&package.folder)?;
        if found.is_empty() {
            wrong.push(format!("{name}: no text of its licence in {}", package.folder.display()));
        }
        for text in found {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    if !wrong.is_empty() {
        bail!("the licences of these packages are not accounted for:\n  {}", wrong.join("\n  "));
    }

    let mut all = String::from(
        "Chips is licensed under the Apache License 2.0: see LICENSE. These packages are a part of its binary:\n\n",
    );
    for Package { name, version, licence, .. } in &packages {
        writeln!(all, "{:<44}  {licence}", format!("{name} {version}"))?;
    }
    write!(all, "\n{BESIDE_PACKAGES}\nEach text below is that of the packages named above it.\n")?;
    let mut texts: Vec<_> = texts.into_iter().collect();
    texts.sort_by(|(text, names), (other, others)| (names, text).cmp(&(others, other)));
    for (text, names) in texts {
        write!(all, "\n{}\n{}\n\n{text}\n", "=".repeat(100), names.join(", "))?;
    }
    Ok(all)
}

/// The packages below one of the workspace that it does not need for building and testing alone, the workspace's own left out.
fn linked(metadata: &Value, package: &str) -> anyhow::Result<BTreeSet<Package>> {
    let list = |value: &Value| value.as_array().cloned().context("`cargo metadata` has changed: no list");
    let mut packages = BTreeMap::new();
    for package in list(&metadata["packages"])? {
        packages.insert(as_text(&package["id"])?.to_owned(), package);
    }
    let mut below: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"])? {
        let needed = list(&node["deps"])?;
        let linked = needed.iter().filter(|needed| {
            needed["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        });
        let ids = linked.map(|needed| as_text(&needed["pkg"]).map(str::to_owned)).collect::<Result<_, _>>()?;
        below.insert(as_text(&node["id"])?.to_owned(), ids);
    }
    let is_root = |found: &&Value| found["name"] == package && found["source"].is_null();
    let root = packages.values().find(is_root).with_context(|| format!("no package {package} in the workspace"))?;

    let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut left = vec![as_text(&root["id"])?.to_owned()];
    while let Some(id) = left.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        left.extend(below.get(&id).into_iter().flatten().cloned());
        let package = packages.get(&id).with_context(|| format!("`cargo metadata` does not describe {id}"))?;
        if package["source"].is_null() {
            continue;
        }
        let manifest = Path::new(as_text(&package["manifest_path"])?);
        found.insert(Package {
            name: as_text(&package["name"])?.to_owned(),
            version: as_text(&package["version"])?.to_owned(),
            licence: package["license"].as_str().unwrap_or_default().to_owned(),
            folder: manifest.parent().context("a manifest without a folder")?.to_owned(),
        });
    }
    Ok(found)
}

/// Whether Chips may be passed on with a package under this licence (an SPDX expression); if not, why.
fn acceptable(licence: &str) -> Result<(), String> {
    let read = |error: spdx::ParseError| format!("its licence {licence:?} can't be read: {}", error.reason);
    let expression = Expression::parse_mode(licence, ParseMode::LAX).map_err(read)?;
    let accepted: Vec<_> = ACCEPTED.iter().filter_map(|one| Licensee::parse(one).ok()).collect();
    match expression.evaluate(|needed| accepted.iter().any(|licensee| licensee.satisfies(needed))) {
        true => Ok(()),
        false => Err(format!("its licence is {licence}, which is not among those that are accepted")),
    }
}

/// The texts of licences that lie in a package's folder; no text twice.
fn texts_in(folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    let unreadable = || format!("can't read {}", folder.display());
    let mut texts = BTreeSet::new();
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let path = entry.path();
        if !NAMES.iter().any(|start| name.starts_with(start)) || name.ends_with(".RS") {
            continue;
        }
        if path.is_dir() {
            for inner in std::fs::read_dir(&path).with_context(unreadable)? {
                texts.extend(read(&inner.with_context(unreadable)?.path())?);
            }
        } else {
            texts.extend(read(&path)?);
        }
    }
    Ok(texts)
}

/// The text of a file, the same for the same text however its lines end; nothing where it is blank.
fn read(path: &Path) -> anyhow::Result<Option<String>> {
    let bytes = std::fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.trim_start_matches('\u{feff}').lines().map(str::trim_end).collect();
    let text = lines.join("\n").trim_matches('\n').to_owned();
    Ok((!text.is_empty()).then_some(text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    /// What cargo says of a workspace whose `chips` needs these packages: name, licence, kind of the need.
    fn metadata(folder: &Path, needed: &[(&str, &str, Value)]) -> Value {
        let manifest = |name: &str| folder.join(name).join("Cargo.toml");
        let package = |name: &str, licence: &str, source: Value| {
            json!({"id": name, "name": name, "version": "1.0.0",
            "license": licence, "source": source, "manifest_path": manifest(name)})
        };
        let mut packages = vec![package("chips", "Apache-2.0", Value::Null)];
        let mut nodes = Vec::new();
        for (name, licence, _) in needed {
            packages.push(package(name, licence, json!("registry")));
            nodes.push(json!({"id": name, "deps": []}));
        }
        let deps: Vec<_> =
            needed.iter().map(|(name, _, kind)| json!({"pkg": name, "dep_kinds": [{"kind": kind}]})).collect();
        nodes.push(json!({"id": "chips", "deps": deps}));
        json!({"packages": packages, "resolve": {"nodes": nodes}})
    }

    fn put(folder: &Path, package: &str, file: &str, text: &str) {
        let path = folder.join(package).join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn the_same_text_stands_once_with_all_whose_it_is() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "a", "LICENSE-MIT", "MIT, by everybody\n");
        put(folder.path(), "b", "license", "MIT, by everybody\r\n\r\n");
        put(folder.path(), "b", "src/lib.rs", "no licence");
        put(folder.path(), "b", "LICENSES/Apache-2.0.txt", "Apache");
        let needed = [("a", "MIT", Value::Null), ("b", "Apache-2.0/MIT", Value::Null), ("c", "none", json!("build"))];
        let all = text(&metadata(folder.path(), &needed), "chips").unwrap();
        assert_eq!(all.matches("MIT, by everybody").count(), 1, "{all}");
        assert!(all.contains("\na 1.0.0, b 1.0.0\n\nMIT, by everybody\n"), "{all}");
        assert!(all.contains("\nb 1.0.0\n\nApache\n"), "{all}");
        assert!(!all.contains("c 1.0.0"), "{all}");
    }

    #[test]
    fn whatever_is_not_accounted_for_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for package in ["copyleft", "mute", "odd"] {
            put(folder.path(), package, "LICENSE", "…");
        }
        std::fs::create_dir(folder.path().join("bare")).unwrap();
        let none = Value::Null;
        let needed = [
            ("copyleft", "GPL-3.0-only AND MIT", none.clone()),
            ("mute", "", none.clone()),
            ("odd", "Ours", none.clone()),
            ("bare", "MIT", none),
        ];
        let error = text(&metadata(folder.path(), &needed), "chips").unwrap_err().to_string();
        for part in ["copyleft 1.0.0: its licence is GPL", "mute 1.0.0", "odd 1.0.0", "bare 1.0.0: no text"] {
            assert!(error.contains(part), "{part:?} is not in {error}");
        }
    }

    #[test]
    fn a_choice_needs_one_licence_that_is_accepted_and_a_sum_all_of_them() {
        for good in ["MIT OR GPL-2.0-only", "(MIT OR Apache-2.0) AND Unicode-3.0", "Apache-2.0 WITH LLVM-exception"] {
            assert_eq!(acceptable(good), Ok(()), "{good}");
        }
        for bad in ["MIT AND GPL-2.0-only", "MPL-2.0", "LicenseRef-Ours"] {
            assert!(acceptable(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_licence_of_the_list_is_one_of_spdx() {
        for licence in ACCEPTED {
            assert!(Licensee::parse(licence).is_ok(), "{licence}");
        }
    }
}
