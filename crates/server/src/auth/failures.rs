//! Slows down whoever guesses: each peer has a bucket of failed attempts that refills with time.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use chips_protocol::Timestamp;

/// Failed attempts that a peer may make at once.
const BURST: i64 = 30;
/// Milliseconds after which one more is allowed.
const REFILL_MS: i64 = 2_000;
/// Peers that are told apart; the others share one bucket, so memory stays bounded whoever comes.
const PEERS: usize = 10_000;

/// The failed attempts of all peers: one for tokens, one for sign-ins, so that neither locks the other out.
///
/// Only failures count. A token is looked up first and only a wrong one is refused with 429: nobody guesses 190 bits, and a good
/// one is never held up. A sign-in code is short, so [`Failures::allowed`] is asked *before* it is tried.
#[derive(Debug, Default)]
pub struct Failures {
    /// For each peer, when its bucket will be full again.
    peers: Mutex<HashMap<Option<IpAddr>, Timestamp>>,
}

/// Whole seconds after which the next attempt is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAfter(pub u64);

impl Failures {
    /// Whether this peer may try now. Changes nothing.
    ///
    /// # Errors
    /// How long to wait.
    pub fn allowed(&self, peer: IpAddr, now: Timestamp) -> Result<(), RetryAfter> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(&mut peers, peer, now);
        room(peers.get(&key).copied(), now)
    }

    /// Counts a failed attempt of this peer.
    ///
    /// # Errors
    /// It was one too many: it is answered with 429 and how long to wait.
    pub fn failed(&self, peer: IpAddr, now: Timestamp) -> Result<(), RetryAfter> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(&mut peers, peer, now);
        let full_at = peers.get(&key).copied();
        room(full_at, now)?;
        peers.insert(key, full_at.unwrap_or(now).max(now).plus_ms(REFILL_MS));
        Ok(())
    }
}

fn room(full_at: Option<Timestamp>, now: Timestamp) -> Result<(), RetryAfter> {
    let owed_ms = full_at.map_or(0, |full_at| full_at.ms() - now.ms());
    let wait_ms = owed_ms - (BURST - 1) * REFILL_MS;
    if wait_ms > 0 { Err(RetryAfter(wait_ms.unsigned_abs().div_ceil(1000))) } else { Ok(()) }
}

/// The bucket that a peer belongs to: its address (of IPv6 the /64, which is what one subscriber has), or the shared one where
/// too many are told apart already.
fn key(peers: &mut HashMap<Option<IpAddr>, Timestamp>, peer: IpAddr, now: Timestamp) -> Option<IpAddr> {
    let address = match peer.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    };
    if peers.len() >= PEERS && !peers.contains_key(&Some(address)) {
        peers.retain(|_, full_at| *full_at > now);
        if peers.len() >= PEERS {
            return None;
        }
    }
    Some(address)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const START: Timestamp = Timestamp::from_ms(1_000_000);

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_burst_passes_then_a_wait_that_is_told_and_true() {
        let failures = Failures::default();
        for _ in 0..BURST {
            assert_eq!(failures.failed(ip("10.0.0.1"), START), Ok(()));
        }
        let RetryAfter(seconds) = failures.failed(ip("10.0.0.1"), START).unwrap_err();
        assert_eq!(seconds, 2);
        assert!(failures.allowed(ip("10.0.0.1"), START).is_err());
        assert_eq!(failures.failed(ip("10.0.0.2"), START), Ok(()), "another peer is not held up");
        let later = START.plus_ms(seconds as i64 * 1000);
        assert_eq!(failures.allowed(ip("10.0.0.1"), later), Ok(()));
        assert_eq!(failures.failed(ip("10.0.0.1"), later), Ok(()));
        assert!(failures.failed(ip("10.0.0.1"), later).is_err());
    }

    #[test]
    fn one_subscriber_of_ipv6_is_one_peer() {
        let failures = Failures::default();
        for host in 0..BURST {
            assert_eq!(failures.failed(ip(&format!("2001:db8:0:1::{host:x}")), START), Ok(()));
        }
        assert!(failures.failed(ip("2001:db8:0:1:ffff::1"), START).is_err());
        assert_eq!(failures.failed(ip("2001:db8:0:2::1"), START), Ok(()));
        assert_eq!(failures.failed(ip("::ffff:10.0.0.1"), START), Ok(()));
        assert!(failures.peers.lock().unwrap().contains_key(&Some(ip("10.0.0.1"))));
    }

    #[test]
    fn memory_stays_bounded_and_strangers_share_a_bucket() {
        let failures = Failures::default();
        for n in 0..PEERS as u32 + 2 * BURST as u32 {
            let _ = failures.failed(IpAddr::from(n.to_be_bytes()), START);
        }
        assert!(failures.peers.lock().unwrap().len() <= PEERS + 1);
        assert!(failures.allowed(ip("99.9.9.9"), START).is_err(), "the shared bucket is spent");
        assert_eq!(failures.allowed(ip("99.9.9.9"), START.plus_ms(BURST * REFILL_MS)), Ok(()));
    }
}
