//! The hooks in Claude Code's settings file: put in and taken out again, with everything else left as it was.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use super::Version;
use super::hook::ASK_TOOL;

/// How long Claude Code lets the hook wait, in seconds: a day. Its own default of ten minutes is shorter than a person.
pub const TIMEOUT_SECONDS: u64 = 86_400;

/// The oldest version that takes answers from a hook.
pub const OLDEST: Version = (2, 1, 85);

/// The first version that is known to have the hook [`BATCH`]. Older ones may refuse a file of settings whole for a hook that
/// they have no word for.
const BATCHES: Version = (2, 1, 152);

/// The hook for what the terminal has refused.
const BATCH: &str = "PostToolBatch";
/// The hook that stands in for [`BATCH`], later, in versions that don't have it.
const TURN: &str = "Stop";

/// What the terminal shows while it waits for Chips.
const STATUS: &str = "Waiting for an answer in Chips";

/// The version of the Claude Code on the path, from `claude --version`.
pub fn version() -> Option<Version> {
    let output = std::process::Command::new("claude").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut parts = text.split_whitespace().next()?.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}

/// What marks a hook as this program's, whatever it is called with.
const MARK: &str = "hook claude-code";

/// The settings of a project (`.claude/settings.json` below `folder`), or the user's own.
///
/// # Errors
/// There is no home folder.
pub fn path(project: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(folder) = project {
        return Ok(folder.join(".claude").join("settings.json"));
    }
    let folder = match std::env::var_os("CLAUDE_CONFIG_DIR").filter(|set| !set.is_empty()) {
        Some(set) => PathBuf::from(set),
        None => etcetera::home_dir().context("there is no home folder")?.join(".claude"),
    };
    Ok(folder.join("settings.json"))
}

/// The settings as they stand in the file: the text, and what it says. A file that is not there says nothing.
///
/// # Errors
/// It can't be read, or holds something else than one JSON object (nothing is mended then, nothing is lost).
pub fn read(path: &Path) -> anyhow::Result<(String, Map<String, Value>)> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
    };
    if text.trim().is_empty() {
        return Ok((text, Map::new()));
    }
    let value = chips_protocol::json::read(text.as_bytes())
        .with_context(|| format!("{} is not JSON; mend it first, nothing was changed", path.display()))?;
    match value {
        Value::Object(settings) => Ok((text, settings)),
        _ => bail!("{} holds no JSON object; mend it first, nothing was changed", path.display()),
    }
}

/// The settings with this program's hooks, for this version of Claude Code: those it had before are replaced, everything else
/// stays as it is.
///
/// # Errors
/// `hooks` or one of its lists is of another kind than Claude Code's documentation says.
pub fn with_hooks(
    settings: &Map<String, Value>,
    command: &str,
    permissions: bool,
    version: Option<Version>,
) -> anyhow::Result<Map<String, Value>> {
    let mut settings = without_hooks(settings)?;
    let asked = if permissions { "*" } else { ASK_TOOL };
    let hook = |timeout: u64| json!({ "type": "command", "command": command, "timeout": timeout });
    let mut first = hook(TIMEOUT_SECONDS);
    first["statusMessage"] = json!(STATUS);
    let refused = if version.is_some_and(|version| version >= BATCHES) { BATCH } else { TURN };
    let entries = [
        ("PreToolUse", json!({ "matcher": ASK_TOOL, "hooks": [first] })),
        ("PermissionRequest", json!({ "matcher": asked, "hooks": [hook(TIMEOUT_SECONDS)] })),
        ("PostToolUse", json!({ "matcher": asked, "hooks": [hook(10)] })),
        (refused, json!({ "hooks": [hook(10)] })),
        ("SessionEnd", json!({ "hooks": [hook(10)] })),
    ];
    let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
    let Value::Object(hooks) = hooks else { bail!("`hooks` is no object in these settings") };
    for (event, entry) in entries {
        let list = hooks.entry(event).or_insert_with(|| json!([]));
        let Value::Array(list) = list else { bail!("`hooks.{event}` is no list in these settings") };
        list.push(entry);
    }
    Ok(settings)
}

/// The settings without this program's hooks. Lists and objects that only held them go with them.
///
/// # Errors
/// As [`with_hooks`].
pub fn without_hooks(settings: &Map<String, Value>) -> anyhow::Result<Map<String, Value>> {
    let mut settings = settings.clone();
    let Some(hooks) = settings.get_mut("hooks") else { return Ok(settings) };
    let Value::Object(hooks) = hooks else { bail!("`hooks` is no object in these settings") };
    let mut emptied = Vec::new();
    for (event, list) in hooks.iter_mut() {
        let Value::Array(list) = list else { bail!("`hooks.{event}` is no list in these settings") };
        let before = list.len();
        for entry in list.iter_mut() {
            if let Some(Value::Array(inner)) = entry.get_mut("hooks") {
                inner.retain(|hook| !is_ours(hook));
            }
        }
        // Only what this removal has emptied goes; an entry that was empty before is somebody's own.
        list.retain(|entry| !entry.get("hooks").and_then(Value::as_array).is_some_and(Vec::is_empty));
        if list.is_empty() && before > 0 {
            emptied.push(event.clone());
        }
    }
    for event in emptied {
        hooks.shift_remove(&event);
    }
    if hooks.is_empty() {
        settings.shift_remove("hooks");
    }
    Ok(settings)
}

/// This program's hooks as they stand in settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// What is run.
    pub command: String,
    /// The shortest time-out of those that wait for a person, in seconds; nothing where one has none of its own, for Claude
    /// Code's default is shorter than any that is written.
    pub timeout: Option<u64>,
    /// Whether hooks are missing that a newer Chips puts in: questions answered in the terminal would stay open in Chips.
    pub is_old: bool,
}

impl Installed {
    /// What the command is given, as it has to be given again: empty, or beginning with a space.
    pub fn flags(&self) -> &str {
        self.command.split_once(MARK).map_or("", |(_, flags)| flags)
    }
}

/// This program's hooks in these settings; nothing where there are none.
pub fn installed(settings: &Map<String, Value>) -> Option<Installed> {
    let hooks = settings.get("hooks")?.as_object()?;
    let ours = |event: &str| -> Vec<&Value> {
        let entries = hooks.get(event).and_then(Value::as_array).into_iter().flatten();
        let inner = entries.filter_map(|entry| entry.get("hooks")?.as_array()).flatten();
        inner.filter(|hook| is_ours(hook)).collect()
    };
    let waiting: Vec<&Value> = ["PreToolUse", "PermissionRequest"].into_iter().flat_map(ours).collect();
    let command = waiting.first()?.get("command")?.as_str()?.to_owned();
    let timeouts = waiting.iter().map(|hook| hook.get("timeout").and_then(Value::as_u64));
    let is_old = ours("PostToolUse").is_empty() || (ours(BATCH).is_empty() && ours(TURN).is_empty());
    Some(Installed { command, timeout: timeouts.min().flatten(), is_old })
}

fn is_ours(hook: &Value) -> bool {
    hook.get("command").and_then(Value::as_str).is_some_and(|command| command.contains(MARK))
}

/// Writes the settings so that a crash leaves either the old file or the new one, with the mode that the old one had.
///
/// # Errors
/// The folder can't be made or the file can't be written.
pub fn write(path: &Path, settings: &Map<String, Value>) -> anyhow::Result<String> {
    let text = format!("{}\n", serde_json::to_string_pretty(settings)?);
    // A settings file is often a link into a folder of dotfiles; the file it names is the one to replace.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().context("a settings file stands in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    let aside = path.with_extension(format!("json.{}", std::process::id()));
    let written = std::fs::write(&aside, &text).and_then(|()| {
        if let Ok(before) = std::fs::metadata(&path) {
            std::fs::set_permissions(&aside, before.permissions())?;
        }
        std::fs::File::open(&aside)?.sync_all()?;
        std::fs::rename(&aside, &path)
    });
    if written.is_err() {
        // Best effort: what matters is that the old file is untouched.
        let _ = std::fs::remove_file(&aside);
    }
    written.with_context(|| format!("can't write {}", path.display()))?;
    Ok(text)
}

/// The lines that differ, with a little of what stands around them.
pub fn diff(before: &str, after: &str) -> String {
    similar::TextDiff::from_lines(before, after).unified_diff().context_radius(2).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn somebodys() -> Map<String, Value> {
        object(json!({
            "model": "opus",
            "hooks": {
                "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": "lint" }] }],
                "Stop": [{ "hooks": [] }],
            },
            "permissions": { "allow": ["Read"] },
        }))
    }

    #[test]
    fn what_was_there_is_kept_and_comes_back_when_the_hooks_go() {
        let before = somebodys();
        let with = with_hooks(&before, "chips hook claude-code", false, None).unwrap();
        assert_eq!(with["hooks"]["PreToolUse"][0], before["hooks"]["PreToolUse"][0]);
        assert_eq!(with["permissions"], before["permissions"]);
        assert_eq!(with["hooks"]["PreToolUse"][1]["matcher"], "AskUserQuestion");
        assert_eq!(with["hooks"]["PreToolUse"][1]["hooks"][0]["timeout"], 86_400);
        assert_eq!(with["hooks"]["PreToolUse"][1]["hooks"][0]["statusMessage"], "Waiting for an answer in Chips");
        assert_eq!(with["hooks"]["PostToolUse"][0]["matcher"], "AskUserQuestion");
        assert_eq!(with["hooks"]["PermissionRequest"][0]["matcher"], "AskUserQuestion");
        let again = without_hooks(&with).unwrap();
        assert_eq!(again["hooks"]["PreToolUse"], before["hooks"]["PreToolUse"]);
        assert!(again["hooks"].get("PermissionRequest").is_none());
        assert_eq!(again["model"], before["model"]);
    }

    #[test]
    fn put_in_twice_they_stand_there_once() {
        let once = with_hooks(&Map::new(), "chips hook claude-code", true, None).unwrap();
        let twice = with_hooks(&once, "chips hook claude-code", true, None).unwrap();
        assert_eq!(once, twice);
        assert_eq!(once["hooks"]["PermissionRequest"][0]["matcher"], "*");
        assert_eq!(once["hooks"]["PostToolUse"][0]["matcher"], "*");
        assert_eq!(without_hooks(&once).unwrap(), Map::new());
    }

    #[test]
    fn settings_of_another_shape_are_left_alone() {
        for odd in [json!({ "hooks": [] }), json!({ "hooks": { "PreToolUse": {} } })] {
            assert!(with_hooks(&object(odd), "chips hook claude-code", false, None).is_err());
        }
    }

    #[test]
    fn what_is_installed_is_found_with_its_time_out() {
        let with = with_hooks(&somebodys(), "/opt/chips hook claude-code --exclusive", false, None).unwrap();
        let found = installed(&with).unwrap();
        assert_eq!(found.command, "/opt/chips hook claude-code --exclusive");
        assert_eq!((found.timeout, found.is_old, found.flags()), (Some(86_400), false, " --exclusive"));
        assert_eq!(installed(&somebodys()), None);
    }

    #[test]
    fn what_the_terminal_refuses_is_heard_of_by_a_hook_that_the_version_knows() {
        for (version, event) in [(None, "Stop"), (Some((2, 1, 85)), "Stop"), (Some((2, 1, 332)), "PostToolBatch")] {
            let with = with_hooks(&Map::new(), "chips hook claude-code", false, version).unwrap();
            let events: Vec<&String> = with["hooks"].as_object().unwrap().keys().collect();
            assert_eq!(events, ["PreToolUse", "PermissionRequest", "PostToolUse", event, "SessionEnd"]);
            assert!(!installed(&with).unwrap().is_old);
        }
    }

    #[test]
    fn hooks_of_an_older_chips_are_told_and_made_new() {
        let command = "chips hook claude-code --permissions";
        let new = with_hooks(&Map::new(), command, true, None).unwrap();
        for event in ["PostToolUse", "Stop"] {
            let mut old = new.clone();
            old["hooks"].as_object_mut().unwrap().shift_remove(event);
            let found = installed(&old).unwrap();
            assert!(found.is_old, "{event} is missing");
            assert_eq!(found.timeout, Some(86_400));
            let upgraded = with_hooks(&old, command, true, Some((2, 1, 332))).unwrap();
            assert!(!installed(&upgraded).unwrap().is_old);
            assert!(upgraded["hooks"].get("Stop").is_none(), "one of the two is enough");
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_a_link_stays_a_link() {
        let home = tempfile::tempdir().unwrap();
        let (real, link) = (home.path().join("dotfiles.json"), home.path().join("settings.json"));
        std::fs::write(&real, "{\"model\": \"opus\"}").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let (_, settings) = read(&link).unwrap();
        write(&link, &with_hooks(&settings, "chips hook claude-code", false, None).unwrap()).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(std::fs::read_to_string(&real).unwrap().contains("86400"));
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 2, "nothing else is left behind");
    }

    #[test]
    fn a_file_that_is_not_json_is_not_touched() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("settings.json");
        std::fs::write(&path, "{ // mine\n}").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("nothing was changed"));
    }
}
