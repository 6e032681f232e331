//! How much of its budget each harness has used, kept beside the log so that no ask has to count.

use std::collections::{HashMap, VecDeque};

use crate::sql::{Connection, Result};
use chips_core::budget::{Usage, WINDOW_MS};
use chips_protocol::Timestamp;
use chips_protocol::api::Budget;

use super::rows;
use super::shared::{Shared, lock};

/// The limits of a harness: open asks, and asks in an hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) open: Option<i64>,
    pub(crate) hour: Option<i64>,
}

/// What every harness has used, by its number.
#[derive(Debug, Default)]
pub(crate) struct Usages {
    by_harness: HashMap<i64, Used>,
}

#[derive(Debug, Default)]
struct Used {
    open: u64,
    /// When the asks of the window were made, the oldest first.
    hour: VecDeque<i64>,
}

impl Usages {
    /// Reads the asks of the last hour. What is open is counted with [`Usages::found_open`].
    pub(crate) fn load(connection: &Connection, now: Timestamp) -> Result<Self> {
        let mut usages = Self::default();
        let workspaces: Vec<i64> = connection
            .prepare_cached("SELECT no FROM workspaces")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_>>()?;
        let mut newest = connection
            .prepare_cached("SELECT harness_no, asked_at FROM asks WHERE pos > ?1 AND pos < ?2 ORDER BY pos DESC")?;
        for ws_no in workspaces {
            let mut rows = newest.query((rows::pos(ws_no, 0), rows::pos(ws_no + 1, 0)))?;
            while let Some(row) = rows.next()? {
                let asked_at: i64 = row.get(1)?;
                if asked_at + WINDOW_MS <= now.ms() {
                    break;
                }
                usages.used(row.get(0)?).hour.push_front(asked_at);
            }
        }
        Ok(usages)
    }

    /// An open ask was found in the file.
    pub(crate) fn found_open(&mut self, harness_no: i64) {
        self.used(harness_no).open += 1;
    }

    fn used(&mut self, harness_no: i64) -> &mut Used {
        self.by_harness.entry(harness_no).or_default()
    }

    /// What the rules need to know before one more ask.
    pub(crate) fn usage(&mut self, harness_no: i64, limits: Limits, now: Timestamp) -> Usage {
        let used = self.used(harness_no);
        while used.hour.front().is_some_and(|asked_at| asked_at + WINDOW_MS <= now.ms()) {
            used.hour.pop_front();
        }
        counted(limits, used.open, used.hour.len() as u64, used.hour.front().copied().map(Timestamp::from_ms))
    }

    pub(crate) fn asked(&mut self, harness_no: i64, at: Timestamp) {
        let used = self.used(harness_no);
        used.open += 1;
        used.hour.push_back(at.ms());
    }

    pub(crate) fn closed(&mut self, harness_no: i64) {
        let used = self.used(harness_no);
        used.open = used.open.saturating_sub(1);
    }

    /// The ask that was counted last did not happen.
    pub(crate) fn take_back_ask(&mut self, harness_no: i64) {
        let used = self.used(harness_no);
        used.open = used.open.saturating_sub(1);
        used.hour.pop_back();
    }

    /// The close that was counted last did not happen.
    pub(crate) fn take_back_close(&mut self, harness_no: i64) {
        self.used(harness_no).open += 1;
    }
}

/// What a harness has used: by the memory, or where several servers write, counted in the database.
pub(crate) fn used(
    connection: &Connection,
    shared: &Shared,
    (ws_no, harness_no): (i64, i64),
    limits: Limits,
    now: Timestamp,
) -> Result<Usage> {
    if !connection.is_postgres() {
        return Ok(lock(&shared.usages).usage(harness_no, limits, now));
    }
    let (open, hour, oldest): (i64, i64, Option<i64>) = connection
        .prepare_cached(
            "SELECT (SELECT count(*) FROM asks WHERE ws_no = ?1 AND harness_no = ?2 AND state = 0), count(*), min(asked_at)
             FROM asks WHERE ws_no = ?1 AND harness_no = ?2 AND asked_at > ?3",
        )?
        .query_row((ws_no, harness_no, now.ms() - WINDOW_MS), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(counted(limits, open.unsigned_abs(), hour.unsigned_abs(), oldest.map(Timestamp::from_ms)))
}

/// What was counted, as the rules take it.
pub(crate) fn counted(limits: Limits, open: u64, hour: u64, oldest: Option<Timestamp>) -> Usage {
    let limit = |limit: Option<i64>| limit.map(|limit| u64::try_from(limit).unwrap_or_default());
    let budget = Budget { open, open_limit: limit(limits.open), hour, hour_limit: limit(limits.hour) };
    Usage { budget, oldest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ask_counts_for_an_hour_and_for_as_long_as_it_is_open() {
        let mut usages = Usages::default();
        let limits = Limits { open: Some(2), hour: None };
        usages.asked(1, Timestamp::from_ms(0));
        usages.asked(1, Timestamp::from_ms(1_000));
        usages.closed(1);
        let usage = usages.usage(1, limits, Timestamp::from_ms(WINDOW_MS - 1));
        assert_eq!(usage.budget, Budget { open: 1, open_limit: Some(2), hour: 2, hour_limit: None });
        assert_eq!(usage.oldest, Some(Timestamp::from_ms(0)));
        let usage = usages.usage(1, limits, Timestamp::from_ms(WINDOW_MS));
        assert_eq!((usage.budget.hour, usage.oldest), (1, Some(Timestamp::from_ms(1_000))));
        assert_eq!(usages.usage(2, limits, Timestamp::from_ms(0)).budget.open, 0);
    }

    #[test]
    fn what_is_taken_back_was_never_counted() {
        let mut usages = Usages::default();
        usages.asked(1, Timestamp::from_ms(5));
        let before = usages.usage(1, Limits::default(), Timestamp::from_ms(6));
        usages.asked(1, Timestamp::from_ms(6));
        usages.closed(1);
        usages.take_back_close(1);
        usages.take_back_ask(1);
        assert_eq!(usages.usage(1, Limits::default(), Timestamp::from_ms(6)), before);
    }
}
