//! What is in an archive, and where.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

use super::chips;
use crate::root;

/// A file of the archive.
pub struct File {
    /// 0o755 for what can be run, else 0o644.
    pub mode: u32,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Files by their path below the archive's folder, in the order of the archive.
pub type Contents = BTreeMap<String, File>;

/// What is taken over from the repository as it is.
const FROM_REPOSITORY: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE", "docs", "deploy", "schemas"];

/// Everything: what is in the repository, and what this binary says about itself. `scratch` is a folder that will be thrown away.
pub fn of_release(binary: &Path, scratch: &Path, licences: String) -> anyhow::Result<Contents> {
    let mut contents = Contents::new();
    for part in FROM_REPOSITORY {
        add(&mut contents, &root().join(part), part)?;
    }
    add(&mut contents, &root().join("deploy/chips-backup"), "libexec/chips-backup")?;
    contents.insert("LICENCES-OF-DEPENDENCIES.txt".into(), File { mode: 0o644, bytes: licences.into_bytes() });

    add(&mut contents, binary, "bin/chips")?;
    let completions = [
        ("bash", "share/bash-completion/completions/chips"),
        ("zsh", "share/zsh/site-functions/_chips"),
        ("fish", "share/fish/vendor_completions.d/chips.fish"),
    ];
    for (shell, path) in completions {
        let script = chips(binary, ["completions", shell])?;
        contents.insert(path.into(), File { mode: 0o644, bytes: script.into_bytes() });
    }
    let manual = scratch.join("man1");
    chips(binary, [Path::new("man"), manual.as_path()])?;
    add(&mut contents, &manual, "share/man/man1")?;
    Ok(contents)
}

/// Adds a file, or all files of a folder; what editors leave beside them stays out.
fn add(contents: &mut Contents, from: &Path, to: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let unreadable = || format!("can't read {}", from.display());
    let metadata = std::fs::metadata(from).with_context(unreadable)?;
    if metadata.is_dir() {
        for entry in std::fs::read_dir(from).with_context(unreadable)? {
            let name = entry.with_context(unreadable)?.file_name();
            let name = name.to_str().with_context(|| format!("{} has a name that is no text in it", from.display()))?;
            if !name.starts_with('.') && !name.ends_with('~') {
                add(contents, &from.join(name), &format!("{to}/{name}"))?;
            }
        }
        return Ok(());
    }
    let mode = if metadata.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
    contents.insert(to.to_owned(), File { mode, bytes: std::fs::read(from).with_context(unreadable)? });
    Ok(())
}
