//! Waiting for a condition, with a limit.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a thing that should take a moment may take on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Looks until there is something to see.
///
/// # Panics
/// After `limit`, naming what it waited for.
pub fn until<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < limit, "waited {limit:?} in vain for {what}");
        tick(Duration::from_millis(15));
    }
}

/// Lets this much real time pass, for cases that are about time passing.
pub fn pass(time: Duration) {
    let began = Instant::now();
    until(time + LIMIT, "time to pass", || (began.elapsed() >= time).then_some(()));
}

fn tick(time: Duration) {
    let (lock, never) = (Mutex::new(()), Condvar::new());
    let guard = lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    drop(never.wait_timeout(guard, time));
}
