//! New identifiers and keys, from the wall clock and the system's randomness.
//!
//! A harness mints an ask's identifier before it asks, so that a retry, even after a crash, is the same ask.

use chips_protocol::{AskId, EventId, RunId};

use crate::clock;

/// The system gave no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes: {0}")]
pub struct NoRandomness(#[from] getrandom::Error);

fn parts() -> Result<(u64, u128), NoRandomness> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok((clock::wall_ms().unsigned_abs(), u128::from_be_bytes(bytes)))
}

/// A new ask's identifier.
///
/// # Errors
/// When the system gives no random bytes.
pub fn ask_id() -> Result<AskId, NoRandomness> {
    parts().map(|(ms, random)| AskId::from_parts(ms, random))
}

/// A new run's identifier.
///
/// # Errors
/// When the system gives no random bytes.
pub fn run_id() -> Result<RunId, NoRandomness> {
    parts().map(|(ms, random)| RunId::from_parts(ms, random))
}

/// A new event's identifier.
///
/// # Errors
/// When the system gives no random bytes.
pub fn event_id() -> Result<EventId, NoRandomness> {
    parts().map(|(ms, random)| EventId::from_parts(ms, random))
}

/// A new idempotency key: 32 hexadecimal digits.
///
/// # Errors
/// When the system gives no random bytes.
pub fn idempotency_key() -> Result<String, NoRandomness> {
    parts().map(|(_, random)| format!("{random:032x}"))
}

/// A random number in `0.0..1.0`; the middle where the system gives no random bytes.
pub fn fraction() -> f64 {
    getrandom::u32().map_or(0.5, |random| f64::from(random) / (f64::from(u32::MAX) + 1.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_minted_is_new_each_time() {
        assert_ne!(ask_id().unwrap(), ask_id().unwrap());
        assert_ne!(run_id().unwrap(), run_id().unwrap());
        assert_ne!(event_id().unwrap(), event_id().unwrap());
        let (one, other) = (idempotency_key().unwrap(), idempotency_key().unwrap());
        assert_ne!(one, other);
        assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
    }

    #[test]
    fn identifiers_sort_by_the_time_they_were_minted() {
        let before = clock::wall_ms().unsigned_abs();
        let id = ask_id().unwrap();
        assert!((before..=clock::wall_ms().unsigned_abs()).contains(&id.ulid().timestamp_ms()), "{id}");
    }
}
