//! Numbers for requests.

use std::sync::atomic::{AtomicU64, Ordering};

/// Gives each request a number that is in its reply and in every line of the log that belongs to it. Not guessable, and
/// not to be relied on for anything else.
#[derive(Debug)]
pub struct RequestIds {
    start: u64,
    count: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> Self {
        let mut start = [0; 8];
        // Without randomness the numbers of two starts may be alike: a nuisance in a log, no more.
        let _ = getrandom::fill(&mut start);
        Self { start: u64::from_le_bytes(start), count: AtomicU64::new(0) }
    }
}

impl RequestIds {
    /// The next number, as 16 hexadecimal digits.
    pub fn next(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        // An odd multiplier visits every number once, so neighbours look nothing like each other.
        format!("{:016x}", self.start.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike() {
        let ids = RequestIds::default();
        let seen: std::collections::HashSet<String> = (0..1000).map(|_| ids.next()).collect();
        assert_eq!(seen.len(), 1000);
        assert!(seen.iter().all(|id| id.len() == 16));
    }
}
