//! One file a command. Each has its arguments (`Args`) and `run`, which says how the process ends.

/// The examples at the end of a command's help.
macro_rules! examples {
    ($($line:literal),+ $(,)?) => {
        concat!("\u{1b}[1m\u{1b}[4mExamples:\u{1b}[0m", $("\n  ", $line),+)
    };
}
pub(crate) use examples;

pub mod answer;
pub mod ask;
pub mod away;
pub mod backup;
pub mod bridge;
pub mod check;
pub mod completions;
pub mod config;
pub mod connect;
pub mod doctor;
pub mod erase;
pub mod export;
pub mod harness;
pub mod hook;
pub mod inbox;
pub mod init;
pub mod man;
pub mod mcp;
pub mod migrate;
pub mod person;
pub mod restore;
pub mod schema;
pub mod serve;
pub mod space;
pub mod tail;
pub mod workspace;
