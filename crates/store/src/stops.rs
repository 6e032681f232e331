//! Points at which a test may end the process: between the statements of what must survive that.

/// In a debug build a process stops for good at the `CHIPS_TEST_STOP_AT`th (from 1) of these points and says so on standard
/// error: whoever wants to see what a kill leaves there, kills it there. In any other build this is nothing.
#[cfg(debug_assertions)]
pub(crate) fn stop(at: &str) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static PASSED: AtomicUsize = AtomicUsize::new(0);
    let wanted = std::env::var("CHIPS_TEST_STOP_AT").ok().and_then(|number| number.parse().ok());
    let number = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
    if wanted == Some(number) {
        eprintln!("stopped at {number}: {at}");
        loop {
            std::thread::park();
        }
    }
}

/// Nothing.
#[cfg(not(debug_assertions))]
pub(crate) fn stop(_at: &str) {}
