//! The tools by which an MCP client asks people through Chips: `ask_person`, `wait_for_answer`, `withdraw_question`.
//!
//! A model asks; the call waits for one slice of time and returns the answer, or `pending` with what to do next. The
//! rules are Chips': behind a [`Desk`], which is either a client of a server ([`stdio::serve`]) or the server itself
//! ([`http::Front`]). Everything that is MCP, and every word that a model reads, is here.

mod desk;
pub mod http;
mod input;
mod lines;
mod memory;
mod outcome;
mod pace;
pub mod stdio;
mod tools;

pub use desk::{Asking, Desk, Trouble};
pub use pace::{BEAT, Link, Pace};
