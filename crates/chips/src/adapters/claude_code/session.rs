//! What a hook's environment says of the session that started it. None of it is documented: what is missing is not known.

use std::ffi::OsString;

/// A version of Claude Code: major, minor, patch.
pub type Version = (u32, u32, u32);

/// The first version seen to start `PermissionRequest` hooks beside an open dialog in every permission mode but `dontAsk`.
pub const BESIDE_IN_ALL_MODES: Version = (2, 1, 332);

/// A session of Claude Code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Session {
    /// Whether a person sits before it; `claude -p` has none.
    pub attended: Option<bool>,
    /// Which version it is.
    pub version: Option<Version>,
}

impl Session {
    /// Reads it off the environment, by the name of a variable.
    pub fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        Self {
            attended: text("CLAUDE_CODE_SESSION_ATTENDED").and_then(|word| match word.as_str() {
                "1" => Some(true),
                "0" => Some(false),
                _ => None,
            }),
            version: text("AI_AGENT").as_deref().and_then(version),
        }
    }

    /// Whether a dialog and a `PermissionRequest` hook are known to be open side by side, whatever the mode.
    pub fn is_live_beside(self) -> bool {
        self.attended == Some(true) && self.version.is_some_and(|version| version >= BESIDE_IN_ALL_MODES)
    }
}

/// The version in a text like `claude-code_2-1-332_harness`.
fn version(agent: &str) -> Option<Version> {
    let mut parts = agent.strip_prefix("claude-code_")?.split('_').next()?.split('-').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(agent: &'static str, attended: &'static str) -> Session {
        Session::of(|name| match name {
            "AI_AGENT" => Some(agent.into()),
            "CLAUDE_CODE_SESSION_ATTENDED" => Some(attended.into()),
            _ => None,
        })
    }

    #[test]
    fn a_session_says_its_version_and_whether_somebody_sits_before_it() {
        let seen = session("claude-code_2-1-332_harness", "1");
        assert_eq!(seen, Session { attended: Some(true), version: Some((2, 1, 332)) });
        assert!(seen.is_live_beside());
        assert!(session("claude-code_2-2-0_harness", "1").is_live_beside());
        assert!(!session("claude-code_2-1-331_harness", "1").is_live_beside());
        assert!(!session("claude-code_2-1-332_harness", "0").is_live_beside());
    }

    #[test]
    fn what_it_does_not_say_is_not_guessed() {
        assert_eq!(Session::of(|_| None), Session::default());
        for agent in ["", "claude-code", "claude-code_2-1", "claude-code_two-1-332_harness", "codex_2-1-332_harness"] {
            assert_eq!(session(agent, "yes"), Session::default(), "{agent}");
        }
    }
}
