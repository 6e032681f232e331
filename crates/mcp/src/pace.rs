//! How long a call waits for a person, and how often it says that it does.
//!
//! A client gives a tool so much time and then takes it for dead. A slice is shorter than that, so that the model always
//! gets a result; progress notifications make it longer where the client counts them.

use std::time::Duration;

/// Between two progress notifications, unless it is said otherwise.
pub const BEAT: Duration = Duration::from_secs(20);

/// How much longer than its slice a call may take where Chips does not reply: it still ends before its client's patience.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// What the way to the client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Standard input and output.
    Stdio,
    /// Streamable HTTP: proxies and clients' own limits on streams are on the way.
    Http,
}

/// How long and how often, for every client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long a call waits before it returns `pending`; what the client allows, where it is left out.
    pub slice: Option<Duration>,
    /// Between two progress notifications.
    pub beat: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { slice: None, beat: BEAT }
    }
}

impl Pace {
    /// How long a call of this client waits; `beats` says that it gets progress notifications.
    pub(crate) fn slice(&self, client: &str, beats: bool, link: Link) -> Duration {
        self.slice.unwrap_or_else(|| allowed(client, beats, link))
    }
}

/// What clients allow, by the name they go by. `docs/harnesses/mcp.md` has the table for people.
fn allowed(client: &str, beats: bool, link: Link) -> Duration {
    let seconds = match (client, beats, link) {
        // 300 s, which progress does not extend.
        ("codex-mcp-client", ..) => 280,
        // Stopped after 30 min without progress; over HTTP after 5 min, and reported to be cut at 6 min even so.
        ("claude-code", true, Link::Stdio) => 8 * 3600,
        ("claude-code", false, Link::Stdio) => 25 * 60,
        ("claude-code", true, Link::Http) => 280,
        ("claude-code", false, Link::Http) => 240,
        // 60 s, which each progress notification starts anew.
        ("opencode", true, Link::Stdio) => 8 * 3600,
        ("opencode", true, Link::Http) => 280,
        // 10 min, which progress does not extend; the name ends with the server's.
        (name, ..) if name.starts_with("gemini-cli-mcp-client") => 540,
        // The SDKs' default is 60 s.
        _ => 50,
    };
    Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_shorter_than_what_the_client_allows() {
        let slice = |client: &str, beats, link| Pace::default().slice(client, beats, link).as_secs();
        for link in [Link::Stdio, Link::Http] {
            for beats in [true, false] {
                assert_eq!(slice("codex-mcp-client", beats, link), 280);
                assert_eq!(slice("gemini-cli-mcp-client-chips", beats, link), 540);
                assert_eq!(slice("somebody", beats, link), 50);
            }
            assert_eq!(slice("opencode", false, link), 50, "60 s, with nothing to extend it");
        }
        assert!(slice("claude-code", false, Link::Stdio) < 30 * 60);
        assert!(slice("claude-code", false, Link::Http) < 5 * 60);
        assert!(slice("claude-code", true, Link::Stdio) > 3600);
        assert!(slice("opencode", true, Link::Stdio) > 3600);
    }

    #[test]
    fn the_operators_slice_is_everybodys() {
        let pace = Pace { slice: Some(Duration::from_secs(7)), beat: BEAT };
        assert_eq!(pace.slice("claude-code", true, Link::Stdio).as_secs(), 7);
        assert_eq!(pace.slice("somebody", false, Link::Http).as_secs(), 7);
    }
}
