//! The rules of Chips: pure functions over what is known. No clock, no randomness, no async, no I/O.
//!
//! A store loads what is known of an ask ([`Known`]) inside its write transaction, calls [`decide()`], appends the
//! events of the [`Decision`] and acts on the rest after the commit. Both backends call the same function, so
//! "the first answer wins" is decided in one place.

pub mod access;
pub mod ask;
pub mod budget;
pub mod decide;
pub mod erase;
pub mod notify;
pub mod refusal;
pub mod tier;

pub use access::{Access, Sender, Who};
pub use ask::{AskFacts, RunFacts};
pub use decide::{Command, Decision, Known, NewEvent, Reply, decide};
pub use refusal::Refusal;
