//! OpenCode: a plugin that carries the questions of a terminal UI, and a bridge for `opencode serve`.
//!
//! Both hear of a question, carry it ([`carry::Carrier`]) and give the answer back; only the way to OpenCode differs. A
//! question stays open in OpenCode's own dialog all the while, and whoever answers first wins: an answer there settles
//! the ask, an answer in Chips closes the dialog. OpenCode is never held up, and never hurt where Chips is not there.

pub mod bridge;
pub mod carry;
pub mod plugin;
pub mod server;
pub mod settings;
mod wire;

use std::time::Duration;

use chips_client::protocol::{AskId, OnNoAnswer, RunId};

/// The version of OpenCode that this adapter is tested with.
pub const TESTED: &str = "1.18.33";

/// How questions are asked.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Take the first option for the default.
    pub default_first: bool,
    /// How long to wait for an answer; for ever where it is left out.
    pub timeout: Option<Duration>,
    /// What happens then.
    pub on_no_answer: Option<OnNoAnswer>,
}

/// A session's run is found again by whoever knows the session: its identifier is made of the session's.
fn run_id(session: &str, nth: u8) -> RunId {
    RunId::from_parts(0, digest(&["run", session, &nth.to_string()]))
}

/// The ask of a part of a question of OpenCode's: the same one, whoever asks and however often.
fn ask_id(session: &str, question: &str, part: usize) -> AskId {
    AskId::from_parts(0, digest(&["ask", session, question, &part.to_string()]))
}

/// 80 bits that stand for these texts.
fn digest(texts: &[&str]) -> u128 {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    hash.update(b"opencode");
    for text in texts {
        hash.update([0]);
        hash.update(text.as_bytes());
    }
    hash.finalize().iter().take(10).fold(0, |bits, byte| (bits << 8) | u128::from(*byte))
}
