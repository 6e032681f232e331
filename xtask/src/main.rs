//! Chores of the repository: what is generated and checked in, written anew; how fast it is; a release.
//!
//! `cargo run -p xtask -- schemas` writes `schemas/`, `cargo run -p xtask -- docs` writes `docs/protocol/` and
//! `docs/problems/`. Tests fail where what is checked in differs from what would be written.

mod dist;
mod docs;
mod load;
mod schemas;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Chores of the repository")]
struct Chores {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Write the JSON Schemas of the events to `schemas/`.
    Schemas,
    /// Write the documentation of events and problems to `docs/protocol/` and `docs/problems/`.
    Docs,
    /// Measure durable asks a second and the time to an answer, beside what the disk alone can do.
    Load(load::Args),
    /// Make a release: an archive with everything in it that is passed on, and its checksum.
    Dist(dist::Args),
}

fn main() -> anyhow::Result<()> {
    match Chores::parse().chore {
        Chore::Schemas => write_all(schemas::files()),
        Chore::Docs => write_all(docs::files()?),
        Chore::Load(args) => load::run(&args),
        Chore::Dist(args) => dist::run(&args),
    }
}

/// A generated file: its path from the repository's root, and its text.
type Generated = (PathBuf, String);

/// The repository's root.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn write_all(files: Vec<Generated>) -> anyhow::Result<()> {
    for (path, text) in files {
        let target = root().join(&path);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
        }
        std::fs::write(&target, text).with_context(|| format!("can't write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// What is checked in for a generated file, for the tests that hold the two together.
#[cfg(test)]
fn checked_in(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_default()
}
