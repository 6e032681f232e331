//! What can be asked of a store.

use std::sync::Arc;

use chips_protocol::api::AskState;
use chips_protocol::{AskId, EventType, HarnessId, RunId, SpaceId};

use crate::Record;

/// Which events, from where, and how many at most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsQuery {
    /// Only events after this `seq`.
    pub after: u64,
    /// At most this many visible events.
    pub limit: usize,
    /// Only this type.
    pub event_type: Option<EventType>,
    /// Only this run's.
    pub run_id: Option<RunId>,
    /// Only this ask's.
    pub ask_id: Option<AskId>,
}

/// Events that fit a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventsBatch {
    /// The events, in the order of their `seq`.
    pub records: Vec<Arc<Record>>,
    /// The log was looked through up to here: the next read begins after it, even where nothing was visible.
    pub through: u64,
    /// The workspace's last `seq`.
    pub head: u64,
    /// The `seq` that the log begins with; where that is more than one after the query's `after`, events between the two were dropped.
    pub kept_from: u64,
}

/// Which asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AskFilter {
    /// All, newest first.
    #[default]
    All,
    /// Those that are open: without a default on every question first, then by deadline (none last), then by `seq`.
    Open,
    /// Those that are closed, newest first.
    Closed,
    /// Those in one state, newest first (open ones ordered as with [`AskFilter::Open`]).
    State(AskState),
}

/// Which asks, and how many at most. "Newest" goes by the `seq` of the `question.ask`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AsksQuery {
    /// By state.
    pub filter: AskFilter,
    /// Only in this space.
    pub space_id: Option<SpaceId>,
    /// Only of this run.
    pub run_id: Option<RunId>,
    /// Only of this harness.
    pub harness_id: Option<HarnessId>,
    /// Only of runs with this label.
    pub label: Option<(String, String)>,
    /// Only where this stands in a prompt, an option's label, an answer's free text or the run's title, whatever its case.
    pub text: Option<String>,
    /// At most this many.
    pub limit: usize,
    /// What an earlier page gave as `next`.
    pub before: Option<Cursor>,
}

/// A place in a list of asks; opaque to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The order's first key: 0 for the newest-first order; else 1 + the tier's rank.
    pub rank: u8,
    /// The deadline in milliseconds, or `i64::MAX` where there is none; 0 in the newest-first order.
    pub deadline_ms: i64,
    /// The `seq` of the `question.ask`.
    pub seq: u64,
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}.{:x}.{:x}", self.rank, self.deadline_ms, self.seq)
    }
}

impl std::str::FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('.');
        let mut next = || parts.next().filter(|part| !part.starts_with('+')).ok_or(());
        let rank = u8::from_str_radix(next()?, 16).map_err(drop)?;
        let deadline_ms = i64::from_str_radix(next()?, 16).map_err(drop)?;
        let seq = u64::from_str_radix(next()?, 16).map_err(drop)?;
        if next().is_ok() {
            return Err(());
        }
        Ok(Self { rank, deadline_ms, seq })
    }
}
