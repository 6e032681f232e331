//! How long to pause before a call is sent again.

use std::time::Duration;

/// A server's wish to be left alone is held within this.
const LONGEST_WISH: Duration = Duration::from_secs(300);

/// The pause doubles from `first` to `cap`.
#[derive(Debug, Clone, Copy)]
pub struct Pauses {
    /// The first pause.
    pub first: Duration,
    /// The longest pause.
    pub cap: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { first: Duration::from_millis(200), cap: Duration::from_secs(8) }
    }
}

/// The pauses of one call.
#[derive(Debug, Clone)]
pub struct Backoff {
    pauses: Pauses,
    tries: u32,
}

impl Backoff {
    /// Before the first pause.
    pub fn new(pauses: Pauses) -> Self {
        Self { pauses, tries: 0 }
    }

    /// The next pause. `fraction` (0.0 to 1.0) spreads callers that were cut off together: a pause of our own lies
    /// between half of its length and all of it, one that the server wished for is stretched by up to a quarter.
    pub fn next(&mut self, wish: Option<Duration>, fraction: f64) -> Duration {
        let doubled = self.pauses.first.saturating_mul(1 << self.tries.min(16)).min(self.pauses.cap);
        self.tries = self.tries.saturating_add(1);
        let own = doubled.mul_f64(0.5 + fraction / 2.0);
        match wish {
            Some(wish) => own.max(wish.min(LONGEST_WISH).mul_f64(1.0 + fraction / 4.0)),
            None => own,
        }
    }

    /// A call went through: the next pause is a first one again.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSES: Pauses = Pauses { first: Duration::from_millis(100), cap: Duration::from_secs(2) };

    #[test]
    fn pauses_double_up_to_the_cap_and_start_again() {
        let mut backoff = Backoff::new(PAUSES);
        let ms: Vec<_> = (0..7).map(|_| backoff.next(None, 1.0).as_millis()).collect();
        assert_eq!(ms, [100, 200, 400, 800, 1600, 2000, 2000]);
        backoff.reset();
        assert_eq!(backoff.next(None, 0.0).as_millis(), 50);
    }

    #[test]
    fn a_servers_wish_is_no_less_than_kept_and_never_endless() {
        let mut backoff = Backoff::new(PAUSES);
        assert_eq!(backoff.next(Some(Duration::from_secs(5)), 0.0).as_millis(), 5000);
        assert_eq!(backoff.next(Some(Duration::from_secs(4)), 1.0).as_millis(), 5000);
        assert_eq!(backoff.next(Some(Duration::from_secs(1 << 40)), 0.0), LONGEST_WISH);
        assert!(backoff.next(Some(Duration::ZERO), 0.0) >= Duration::from_millis(50));
    }

    #[test]
    fn any_number_of_tries_is_fine() {
        let mut backoff = Backoff { pauses: PAUSES, tries: u32::MAX };
        assert_eq!(backoff.next(None, 1.0), PAUSES.cap);
    }
}
