//! Which sessions have a page in sight: one that is visible and was touched a moment ago. An agent's connection, a page in
//! the background and a terminal say nothing of that. Whether a session has ended since, the store knows.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a page that was touched counts as in sight.
pub const IN_SIGHT: Duration = Duration::from_secs(60);

/// The sessions that have a page in sight.
#[derive(Debug, Default)]
pub struct Presence {
    touched: Mutex<HashMap<i64, Instant>>,
}

impl Presence {
    /// A visible page of the session with this number says that it was touched.
    pub fn touched(&self, session_id: i64) {
        self.touched_at(session_id, Instant::now());
    }

    /// The numbers of the sessions that have a page in sight now.
    pub fn in_sight(&self) -> BTreeSet<i64> {
        self.in_sight_at(Instant::now())
    }

    fn touched_at(&self, session_id: i64, now: Instant) {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).insert(session_id, now);
    }

    fn in_sight_at(&self, now: Instant) -> BTreeSet<i64> {
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        touched.retain(|_, at| now.saturating_duration_since(*at) < IN_SIGHT);
        touched.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_in_sight_for_a_minute_after_a_touch() {
        let presence = Presence::default();
        let (ada, ben) = (1, 2);
        let start = Instant::now();
        presence.touched_at(ada, start);
        presence.touched_at(ben, start + Duration::from_secs(30));
        assert_eq!(presence.in_sight_at(start + Duration::from_secs(59)), [ada, ben].into());
        assert_eq!(presence.in_sight_at(start + Duration::from_secs(60)), [ben].into());
        assert_eq!(presence.in_sight_at(start + Duration::from_secs(90)), BTreeSet::new());
    }
}
