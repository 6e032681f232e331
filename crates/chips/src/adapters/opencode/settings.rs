//! The plugin's file: put in and taken out again. A file of that name that is somebody else's is left alone.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use etcetera::BaseStrategy;

/// The plugin as it is installed, but for the command.
const PLUGIN: &str = include_str!("plugin.js");

/// The line of [`PLUGIN`] that names the command.
const COMMAND: &str = r#"const COMMAND = ["chips", "hook", "opencode"]"#;

/// What marks a file as this program's: its first words.
const MARK: &str = "// Written by `chips hook opencode --install`";

/// The folders that OpenCode loads plugins from. The first is where the plugin goes: older versions know only that one.
const FOLDERS: [&str; 2] = ["plugin", "plugins"];

/// OpenCode's folder of a project (`.opencode` below `project`), or the user's own.
///
/// # Errors
/// There is no home folder.
fn folder(project: Option<&Path>) -> anyhow::Result<PathBuf> {
    Ok(match project {
        Some(project) => project.join(".opencode"),
        None => etcetera::choose_base_strategy().context("there is no home folder")?.config_dir().join("opencode"),
    })
}

/// Where the plugin goes.
///
/// # Errors
/// There is no home folder.
pub fn path(project: Option<&Path>) -> anyhow::Result<PathBuf> {
    Ok(folder(project)?.join(FOLDERS[0]).join("chips.js"))
}

/// The plugin's text, with this command.
pub fn plugin(command: &[String]) -> String {
    let words = serde_json::Value::from(command.to_vec()).to_string();
    PLUGIN.replace(COMMAND, &format!("const COMMAND = {words}"))
}

/// The text of the file; empty where there is none.
///
/// # Errors
/// It can't be read, or it is not this program's.
pub fn read(path: &Path) -> anyhow::Result<String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
    };
    if !text.starts_with(MARK) {
        bail!("{} was not written by Chips; move it away first, nothing was changed", path.display());
    }
    Ok(text)
}

/// Writes the file so that a crash leaves either the old one or the new one.
///
/// # Errors
/// The folder can't be made or the file can't be written.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().context("a plugin stands in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    // A name that OpenCode would not take for a plugin's.
    let aside = path.with_extension(format!("new.{}", std::process::id()));
    let written = std::fs::write(&aside, text).and_then(|()| {
        std::fs::File::open(&aside)?.sync_all()?;
        std::fs::rename(&aside, path)
    });
    if written.is_err() {
        // Best effort: what matters is that the old file is untouched.
        let _ = std::fs::remove_file(&aside);
    }
    written.with_context(|| format!("can't write {}", path.display()))
}

/// Takes the file away, and its folder where nothing else is in it.
///
/// # Errors
/// The file can't be removed.
pub fn remove(path: &Path) -> anyhow::Result<()> {
    std::fs::remove_file(path).with_context(|| format!("can't remove {}", path.display()))?;
    if let Some(folder) = path.parent() {
        // A folder that holds something else stays.
        let _ = std::fs::remove_dir(folder);
    }
    Ok(())
}

/// A plugin of this program's that OpenCode loads.
#[derive(Debug, PartialEq, Eq)]
pub struct Installed {
    /// The file.
    pub path: PathBuf,
    /// The command that it starts.
    pub command: Vec<String>,
    /// Whether it is what this version of Chips writes.
    pub is_current: bool,
}

/// This program's plugins in the folders of a project, or of the user.
pub fn installed(project: Option<&Path>) -> Vec<Installed> {
    let Ok(folder) = folder(project) else { return Vec::new() };
    FOLDERS
        .iter()
        .map(|name| folder.join(name).join("chips.js"))
        .filter_map(|path| {
            let text = read(&path).ok().filter(|text| !text.is_empty())?;
            let line = text.lines().find_map(|line| line.strip_prefix("const COMMAND = "));
            let command: Vec<String> = line.and_then(|words| serde_json::from_str(words).ok()).unwrap_or_default();
            Some(Installed { path, is_current: text == plugin(&command), command })
        })
        .collect()
}

/// The version of the OpenCode on the path, from `opencode --version`.
pub fn version() -> Option<(u32, u32, u32)> {
    let output = std::process::Command::new("opencode").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut parts = text.split_whitespace().next_back()?.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_plugin_starts_the_command_whatever_is_in_its_path() {
        let command = words(&["/srv/my \"chips\"\\bin", "hook", "opencode", "--timeout", "60s"]);
        let text = plugin(&command);
        assert!(text.contains(r#"const COMMAND = ["/srv/my \"chips\"\\bin","hook","opencode","--timeout","60s"]"#));
        assert!(text.starts_with(MARK));
    }

    #[test]
    fn what_is_installed_is_found_in_either_folder_and_known_to_be_current() {
        let home = tempfile::tempdir().unwrap();
        let command = words(&["chips", "hook", "opencode", "--default-first"]);
        let path = path(Some(home.path())).unwrap();
        assert!(path.ends_with(".opencode/plugin/chips.js"));
        write(&path, &plugin(&command)).unwrap();
        let other = home.path().join(".opencode/plugins/chips.js");
        write(&other, &format!("{}// more\n", plugin(&command))).unwrap();
        let found = installed(Some(home.path()));
        assert_eq!(found[0], Installed { path: path.clone(), command: command.clone(), is_current: true });
        assert_eq!((found[1].is_current, &found[1].command), (false, &command));

        remove(&path).unwrap();
        assert!(!path.parent().unwrap().exists());
        assert_eq!(read(&path).unwrap(), "");
    }

    #[test]
    fn somebody_elses_file_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("chips.js");
        std::fs::write(&path, "export const Mine = async () => ({})\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("nothing was changed"));
    }
}
