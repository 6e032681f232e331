//! How many questions a harness, its agents included, may put to people.

use chips_protocol::Timestamp;
use chips_protocol::api::Budget;

/// Open asks that a harness may have, unless the operator says otherwise.
pub const DEFAULT_OPEN: u64 = 100;
/// Asks that a harness may make in [`WINDOW_MS`], unless the operator says otherwise.
pub const DEFAULT_HOUR: u64 = 600;
/// The window of the hourly limit, in milliseconds.
pub const WINDOW_MS: i64 = 3_600_000;
/// What a harness at its limit of open asks is told to wait, in seconds.
pub const RETRY_OPEN_S: u64 = 5;

/// How much of a budget is used now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Counts and limits.
    pub budget: Budget,
    /// When the oldest ask of the window was made.
    pub oldest: Option<Timestamp>,
}

/// Why one more ask is too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverBudget {
    /// Whole seconds, at least 1, after which asking again may work.
    pub retry_after_s: u64,
    /// The limit that was reached.
    pub limit: u64,
    /// Whether it is the hourly limit (else that of open asks).
    pub hourly: bool,
}

/// Whether one more ask fits.
///
/// # Errors
/// The limit that was reached; the hourly one where both are, since it takes longer.
pub fn admit(usage: &Usage, now: Timestamp) -> Result<(), OverBudget> {
    let Budget { open, open_limit, hour, hour_limit } = usage.budget;
    if let Some(limit) = hour_limit.filter(|limit| hour >= *limit) {
        let leaves = usage.oldest.map_or(now, |oldest| oldest.plus_ms(WINDOW_MS));
        let wait_ms = u64::try_from(leaves.ms().saturating_sub(now.ms())).unwrap_or(0);
        // A limit of 0 has no oldest ask to wait for: the whole window is as good an answer as any.
        let wait_ms = if usage.oldest.is_some() { wait_ms } else { WINDOW_MS as u64 };
        return Err(OverBudget { retry_after_s: wait_ms.div_ceil(1000).max(1), limit, hourly: true });
    }
    if let Some(limit) = open_limit.filter(|limit| open >= *limit) {
        return Err(OverBudget { retry_after_s: RETRY_OPEN_S, limit, hourly: false });
    }
    Ok(())
}
