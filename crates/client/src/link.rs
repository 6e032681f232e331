//! What is known of the way to the server: whether it is there, and what its clock says.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use chips_protocol::Timestamp;

use crate::clock;

/// A change that callers may want to tell people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkChange {
    /// A call got no reply of the server; it is sent again, perhaps many times, before another change is told.
    Lost {
        /// What happened, in a few words.
        reason: String,
        /// The server has replied before; where it has not, its address may be wrong.
        replied_before: bool,
    },
    /// The server replied again.
    Back,
}

type Listener = dyn Fn(LinkChange) + Send + Sync;

#[derive(Clone, Default)]
pub(crate) struct Link {
    listener: Option<Arc<Listener>>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    down: AtomicBool,
    replied: AtomicBool,
    /// What to add to the wall clock for the server's, in milliseconds.
    offset_ms: AtomicI64,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("down", &self.state.down).finish_non_exhaustive()
    }
}

impl Link {
    pub(crate) fn new(listener: Option<Arc<Listener>>) -> Self {
        Self { listener, ..Self::default() }
    }

    pub(crate) fn lost(&self, reason: &str) {
        if !self.state.down.swap(true, Ordering::Relaxed) {
            let replied_before = self.state.replied.load(Ordering::Relaxed);
            self.tell(LinkChange::Lost { reason: reason.to_owned(), replied_before });
        }
    }

    pub(crate) fn back(&self) {
        self.state.replied.store(true, Ordering::Relaxed);
        if self.state.down.swap(false, Ordering::Relaxed) {
            self.tell(LinkChange::Back);
        }
    }

    fn tell(&self, change: LinkChange) {
        if let Some(listener) = &self.listener {
            listener(change);
        }
    }

    /// Takes the server's time from a reply's `Date` (RFC 9110, section 6.6.1; whole seconds).
    pub(crate) fn heard_date(&self, date: &str) {
        let Ok(date) = httpdate::parse_http_date(date) else { return };
        let Ok(since) = date.duration_since(UNIX_EPOCH) else { return };
        let Ok(ms) = i64::try_from(since.as_millis()) else { return };
        // The header is cut to the second, so the time lies half a second on, on average. An offset of less than that
        // is noise: a clock that agrees is left alone.
        let offset = ms + 500 - clock::wall_ms();
        self.state.offset_ms.store(if offset.abs() <= 1_000 { 0 } else { offset }, Ordering::Relaxed);
    }

    /// How long until a moment of the server's clock; zero once it has passed.
    pub(crate) fn time_left(&self, until: Timestamp) -> Duration {
        let now = clock::wall_ms().saturating_add(self.state.offset_ms.load(Ordering::Relaxed));
        Duration::from_millis(u64::try_from(until.ms().saturating_sub(now)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn an_outage_is_told_once_however_many_calls_fail() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let link = Link::new(Some(Arc::new({
            let told = told.clone();
            move |change| told.lock().unwrap().push(change)
        })));
        link.lost("connection refused");
        link.clone().lost("connection reset");
        link.back();
        link.back();
        link.lost("time-out");
        let lost = |reason: &str, replied_before| LinkChange::Lost { reason: reason.to_owned(), replied_before };
        let changes = [lost("connection refused", false), LinkChange::Back, lost("time-out", true)];
        assert_eq!(*told.lock().unwrap(), changes);
    }

    #[test]
    fn the_time_left_is_by_the_servers_clock() {
        let link = Link::default();
        let ahead = UNIX_EPOCH + Duration::from_millis(clock::wall_ms().unsigned_abs()) + Duration::from_secs(600);
        link.heard_date(&httpdate::fmt_http_date(ahead));
        let until = Timestamp::from_ms(clock::wall_ms()).plus_ms(660_000);
        let left = link.time_left(until).as_secs();
        assert!((55..=62).contains(&left), "{left}");
        link.heard_date("yesterday");
        assert_eq!(link.time_left(Timestamp::from_ms(0)), Duration::ZERO);
    }
}
