//! The one place of this crate that looks at a clock.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The wall clock, in milliseconds since 1970; 0 where it stands before that.
#[allow(clippy::disallowed_methods)]
pub(crate) fn wall_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or_default()
}

/// The monotonic clock.
#[allow(clippy::disallowed_methods)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
