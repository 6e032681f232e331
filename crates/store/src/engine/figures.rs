//! What the writer counts as it goes.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sql::{Connection, Result};
use chips_core::Refusal;
use chips_core::ask::state;
use chips_core::notify::Channel;
use chips_protocol::api::AskState;
use chips_protocol::{Event, Timestamp};

use super::shared::lock;
use crate::figures::{Budgets, Distribution};

/// Bounds of how long a transaction takes, in nanoseconds: from a quick disk's half a millisecond to one that hangs.
const COMMIT_NS: [u64; 12] = [
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    5_000_000_000,
];
/// Bounds of how many jobs share a commit.
const GROUP_JOBS: [u64; 10] = [1, 2, 5, 10, 25, 50, 100, 250, 1_000, 5_000];

/// Figures for the operator.
pub(crate) struct Figures {
    opened: AtomicU64,
    closed: [AtomicU64; AskState::ALL.len()],
    refused: Mutex<BTreeMap<&'static str, u64>>,
    over_open: AtomicU64,
    over_hour: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) jobs: AtomicU64,
    pub(crate) commit_time: Histogram,
    pub(crate) group_size: Histogram,
    /// Jobs that wait for the writer.
    pub(crate) queued: AtomicU64,
    pub(crate) writable: AtomicBool,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            opened: AtomicU64::new(0),
            closed: Default::default(),
            refused: Mutex::default(),
            over_open: AtomicU64::new(0),
            over_hour: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            jobs: AtomicU64::new(0),
            commit_time: Histogram::new(&COMMIT_NS, 1e-9),
            group_size: Histogram::new(&GROUP_JOBS, 1.0),
            queued: AtomicU64::new(0),
            writable: AtomicBool::new(true),
        }
    }
}

impl Figures {
    /// Counts a committed event.
    pub(crate) fn appended(&self, event: &Event) {
        match state(Some(event)) {
            AskState::Open => self.opened.fetch_add(1, Ordering::Relaxed),
            closed => self.closed[closed as usize].fetch_add(1, Ordering::Relaxed),
        };
    }

    /// Counts a write that the rules refused.
    pub(crate) fn refused(&self, refusal: &Refusal) {
        *lock(&self.refused).entry(refusal.code().as_str()).or_default() += 1;
        if let Refusal::OverBudget(over) = refusal {
            let limit = if over.hourly { &self.over_hour } else { &self.over_open };
            limit.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Asks opened so far.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Closed asks by the state that they closed in.
    pub(crate) fn closed(&self) -> BTreeMap<AskState, u64> {
        let closed = AskState::ALL.into_iter().filter(|state| *state != AskState::Open);
        closed.map(|state| (state, self.closed[state as usize].load(Ordering::Relaxed))).collect()
    }

    /// Refused writes by why.
    pub(crate) fn refusals(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.refused).clone()
    }

    /// Asks that were over the budget.
    pub(crate) fn over_budget(&self) -> Budgets {
        Budgets { open: self.over_open.load(Ordering::Relaxed), hour: self.over_hour.load(Ordering::Relaxed) }
    }
}

/// Counts whole numbers by how large they are.
pub(crate) struct Histogram {
    bounds: &'static [u64],
    /// One more than the bounds: what is above them all.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
    /// What one of the numbers is in the unit that is told.
    unit: f64,
}

impl Histogram {
    fn new(bounds: &'static [u64], unit: f64) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0), unit }
    }

    /// Counts a value.
    pub(crate) fn observe(&self, value: u64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// All that was counted so far.
    pub(crate) fn read(&self) -> Distribution {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let bounds = self.bounds.iter().map(|bound| *bound as f64 * self.unit).chain([f64::INFINITY]);
        Distribution {
            count: counts.iter().sum(),
            buckets: bounds.zip(counts).collect(),
            sum: self.sum.load(Ordering::Relaxed) as f64 * self.unit,
        }
    }
}

/// What only the database knows.
#[derive(Default)]
pub(crate) struct Waiting {
    /// Open asks.
    pub(crate) open: u64,
    /// Size of the database, where a server knows it.
    pub(crate) bytes: Option<u64>,
    /// When the oldest open ask was asked.
    pub(crate) oldest_open: Option<Timestamp>,
    /// Messages that wait, by channel.
    pub(crate) outbox: BTreeMap<Channel, u64>,
    /// When the first of them that is due became so.
    pub(crate) due_since: Option<Timestamp>,
}

/// Reads what waits as of now. Goes through what is open and what waits, not through what is over.
pub(crate) fn waiting(connection: &Connection, now: Timestamp) -> Result<Waiting> {
    let (open, oldest): (i64, Option<i64>) = connection
        .prepare_cached("SELECT count(*), min(asked_at) FROM asks WHERE state = 0")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let bytes: Option<i64> = match connection.postgres() {
        Some(_) => {
            connection.query_row("SELECT pg_database_size(current_database())", [], |row| row.get(0)).map(Some)?
        }
        None => None,
    };
    // One that somebody sends right now is not late.
    let due: Option<i64> = connection
        .prepare_cached("SELECT min(CASE WHEN due_at > claimed_until THEN due_at ELSE claimed_until END) FROM outbox WHERE state = 0 AND due_at <= ?1 AND claimed_until <= ?1")?
        .query_row([now.ms()], |row| row.get(0))?;
    let mut statement = connection.prepare_cached(
        "SELECT e.channel, count(*) FROM outbox o JOIN endpoints e ON e.no = o.endpoint_no WHERE o.state = 0 GROUP BY 1",
    )?;
    let mut rows = statement.query([])?;
    let mut outbox = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (channel, count): (String, i64) = (row.get(0)?, row.get(1)?);
        // A newer version's channel is nobody's to send here.
        if let Ok(channel) = channel.parse() {
            outbox.insert(channel, count.unsigned_abs());
        }
    }
    Ok(Waiting {
        open: open.unsigned_abs(),
        bytes: bytes.map(i64::unsigned_abs),
        oldest_open: oldest.map(Timestamp::from_ms),
        outbox,
        due_since: due.map(Timestamp::from_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_once_and_at_its_own_bound() {
        let histogram = Histogram::new(&[1, 10], 0.5);
        for value in [0, 1, 2, 10, 11] {
            histogram.observe(value);
        }
        let read = histogram.read();
        assert_eq!(read.buckets, [(0.5, 2), (5.0, 2), (f64::INFINITY, 1)]);
        assert_eq!((read.sum, read.count), (12.0, 5));
    }

    #[test]
    fn a_refusal_counts_by_its_code_and_by_the_limit_that_was_reached() {
        let figures = Figures::default();
        let over = |hourly| Refusal::OverBudget(chips_core::budget::OverBudget { retry_after_s: 1, limit: 1, hourly });
        for refusal in [over(true), over(false), over(false), Refusal::RunEnded] {
            figures.refused(&refusal);
        }
        assert_eq!(figures.over_budget(), Budgets { open: 2, hour: 1 });
        assert_eq!(figures.refusals(), [("over_budget", 3), ("run_ended", 1)].into());
    }
}
