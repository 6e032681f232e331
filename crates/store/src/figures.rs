//! What an operator wants to see of the store.

use std::collections::BTreeMap;

use chips_core::notify::Channel;
use chips_protocol::api::AskState;

/// What an operator wants to see of the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// Open asks over all workspaces.
    pub open_asks: u64,
    /// For how long the oldest of them has been open, in seconds; 0 where there is none.
    pub oldest_open_seconds: f64,
    /// Asks opened since the store was.
    pub opened: u64,
    /// Asks closed since the store was opened, by the state they are in now.
    pub closed: BTreeMap<AskState, u64>,
    /// Writes that the rules refused since the store was opened, whichever way they came in, by the code of the refusal.
    pub refused: BTreeMap<&'static str, u64>,
    /// Asks among them that would have been over the budget: of open asks, and of asks in an hour.
    pub over_budget: Budgets,
    /// Commits so far.
    pub commits: u64,
    /// Jobs in those commits.
    pub jobs: u64,
    /// How long each of those transactions took, from its begin to the end of its commit, in seconds.
    pub commit_seconds: Distribution,
    /// How many jobs each of those commits had.
    pub group_jobs: Distribution,
    /// Jobs that wait for the writer now.
    pub queued: u64,
    /// Messages that wait to be sent, by channel.
    pub outbox: BTreeMap<Channel, u64>,
    /// For how long the first of them that is due has been so, in seconds; 0 where none is.
    pub outbox_overdue_seconds: f64,
    /// Size of the database in bytes.
    pub database_bytes: u64,
    /// Size of the write-ahead log in bytes; 0 where that is the database server's own.
    pub wal_bytes: u64,
    /// Bytes that this process may still write to the file system of the data folder; nothing where there is no folder.
    pub free_bytes: Option<u64>,
    /// Whether the database could be read for these figures. What it alone knows (open asks, messages that wait, sizes) is 0
    /// where not.
    pub readable: bool,
    /// Whether the last write found the store able to take it.
    pub writable: bool,
}

/// A count for each of the two limits that a harness has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budgets {
    /// Of open asks.
    pub open: u64,
    /// Of asks in an hour.
    pub hour: u64,
}

/// Values that were observed, as how many lie below each of some bounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    /// For each bound, the last of which is infinite, how many values are at most as large and above the bound before it.
    pub buckets: Vec<(f64, u64)>,
    /// All values together.
    pub sum: f64,
    /// How many there are.
    pub count: u64,
}
