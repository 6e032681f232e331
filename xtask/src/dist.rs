//! A release: one archive with the stripped binary, completions, the manual, the documents, what deploys it, and the licences of
//! all that is linked; and its checksum beside it.
//!
//! Two runs on the same commit with the same toolchain make the same bytes.

mod archive;
mod contents;
mod licences;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::root;

/// What `dist` takes.
#[derive(clap::Args)]
pub struct Args {
    /// A `chips` that was built already [default: one is built, with the release profile and without this machine's paths]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// The folder that the archive is written to [default: dist in cargo's target folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Makes the archive, and `SHA256SUMS` beside it.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let triple = host()?;
    let metadata = metadata(&triple)?;
    let target = Path::new(text(&metadata["target_directory"])?).join("dist");
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => build(&target.join("build"))?,
    };
    let scratch = tempfile::tempdir().context("can't make a temporary folder")?;
    let stripped = scratch.path().join("chips");
    let mut strip = Command::new("strip");
    said(strip.arg("-o").arg(&stripped).arg(&binary), "strip (of binutils) takes the symbols out of the binary")?;

    let version = env!("CARGO_PKG_VERSION");
    let says = chips(&stripped, ["--version"])?;
    ensure!(
        says.trim() == format!("chips {version}"),
        "{} says that it is {:?}, and this is {version}",
        binary.display(),
        says.trim()
    );
    let name = format!("chips-{version}-{triple}");
    let licences = licences::text(&metadata, "chips")?;
    let contents = contents::of_release(&stripped, scratch.path(), licences)?;
    let bytes = archive::tar_gz(&name, &contents, commit_time()?)?;

    let out = args.out.clone().unwrap_or(target);
    std::fs::create_dir_all(&out).with_context(|| format!("can't make {}", out.display()))?;
    let file = format!("{name}.tar.gz");
    for (name, bytes) in [("SHA256SUMS", archive::checksum(&file, &bytes).as_bytes()), (file.as_str(), &*bytes)] {
        let path = out.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("can't write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Builds the binary as it is released: optimised, and with none of this machine's paths in it.
fn build(target: &Path) -> anyhow::Result<PathBuf> {
    let home = std::env::home_dir().context("there is no home folder")?;
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let root = root().canonicalize().context("can't find the repository")?;
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut cargo = cargo();
    cargo
        .args(["build", "--locked", "--release", "--package", "chips", "--bin", "chips", "--target-dir"])
        .arg(target)
        .env("CARGO_ENCODED_RUSTFLAGS", [remap(&cargo_home, "/cargo"), remap(&root, "/chips")].join("\u{1f}"))
        .current_dir(&root);
    let status = cargo.status().context("can't run cargo")?;
    ensure!(status.success(), "the build failed");
    Ok(target.join("release/chips"))
}

/// What cargo knows of the packages that this platform needs.
fn metadata(triple: &str) -> anyhow::Result<Value> {
    let mut cargo = cargo();
    cargo.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", triple]).current_dir(root());
    serde_json::from_str(&said(&mut cargo, "cargo lists the packages")?).context("`cargo metadata` printed no JSON")
}

/// The platform that rustc builds for here, like `x86_64-unknown-linux-gnu`.
fn host() -> anyhow::Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = said(Command::new(rustc).arg("-vV"), "rustc says what it builds for")?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// When what is released was written, in seconds since 1970: `SOURCE_DATE_EPOCH` (reproducible-builds.org), else the commit's time.
fn commit_time() -> anyhow::Result<u64> {
    let said = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(said) => said,
        Err(_) => {
            let mut git = Command::new("git");
            git.args(["log", "-1", "--format=%ct"]).current_dir(root());
            said(&mut git, "git tells the time of the commit; outside of a repository SOURCE_DATE_EPOCH does")?
        }
    };
    said.trim().parse().with_context(|| format!("{said:?} is no number of seconds since 1970"))
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// What the binary of the release prints, with nothing of this machine's environment.
fn chips(binary: &Path, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> anyhow::Result<String> {
    let mut chips = Command::new(binary);
    chips.args(arguments.into_iter().map(Into::into)).env_clear();
    said(&mut chips, "the binary describes itself")
}

/// What a command prints; `purpose` says what it is for, should it fail.
fn said(command: &mut Command, purpose: &str) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("can't run {program}: {purpose}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{program} ended with {}: {}; {purpose}", output.status, error.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} printed something else than text"))
}

fn text(value: &Value) -> anyhow::Result<&str> {
    value.as_str().with_context(|| format!("`cargo metadata` has changed: {value} is no text"))
}
