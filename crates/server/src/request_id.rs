//! Numbers for requests.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName};

/// The header that carries the number, both ways.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters that a number of the caller's may have at least and at most.
///
/// The secrets of sessions, sign-in links and buttons look like nothing in particular, and have 43: nothing that holds one fits.
const LENGTH: std::ops::RangeInclusive<usize> = 8..=40;
/// How all tokens of Chips begin, and the keys of webhooks: whatever has that in it, in capitals or not, is no number.
const SECRETS: [&str; 2] = ["chips_", "whsec_"];

/// Gives each request a number that is in its reply and in every line of the log that belongs to it. Not guessable, and
/// not to be relied on for anything else.
///
/// A caller (or the proxy in front) may bring one along. It is taken from anybody: it only names the caller's own lines, and
/// nothing hangs on it. What is long or has other characters than letters, digits, `.`, `_` and `-` is passed over, so that it
/// neither forges a line nor carries text into the log.
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
    /// The number of a request with these headers: the caller's where there is exactly one and it is well formed, else the next.
    pub fn of(&self, headers: &HeaderMap) -> String {
        let mut given = headers.get_all(REQUEST_ID).iter();
        match (given.next().and_then(|value| value.to_str().ok()), given.next()) {
            (Some(id), None) if is_well_formed(id) => id.to_owned(),
            _ => self.next(),
        }
    }

    /// The next number, as 16 hexadecimal digits.
    pub fn next(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        // An odd multiplier visits every number once, so neighbours look nothing like each other.
        format!("{:016x}", self.start.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

fn is_well_formed(id: &str) -> bool {
    LENGTH.contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        && !SECRETS.iter().any(|secret| id.to_ascii_lowercase().contains(secret))
        && !is_like_a_code(id)
}

/// Whether it is spelt as the codes are that sign people in: `7K3M-Q9TD`.
fn is_like_a_code(id: &str) -> bool {
    id.split_once('-').is_some_and(|(one, other)| {
        [one, other].iter().all(|half| half.len() == 4 && half.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_number_is_taken_where_it_is_one_short_and_plain() {
        let ids = RequestIds::default();
        let with = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(REQUEST_ID, axum::http::HeaderValue::from_bytes(value).unwrap());
            }
            ids.of(&headers)
        };
        for good in ["0f8fad5b-d9cb-469f-a165-70867728950e", "a.b_c-d1", &"x".repeat(40)] {
            assert_eq!(with(&[good.as_bytes()]), good);
        }
        let long = "x".repeat(41);
        let bad: [&[u8]; 12] = [
            b"",
            b"short",
            long.as_bytes(),
            b"two words",
            b"tab\tbetween",
            b"quote\"and}brace",
            "umlaut\u{e4}\u{2028}".as_bytes(),
            b"chips_hk_0123456789abcdef",
            b"x-chips_uk_0123456789",
            b"whsec_0123456789abcdef",
            b"WHSEC_0123456789ABCDEF",
            b"7k3m-Q9TD",
        ];
        for bad in bad {
            let own = with(&[bad]);
            assert!(own.len() == 16 && own.bytes().all(|byte| byte.is_ascii_hexdigit()), "{own}");
        }
        assert_eq!(with(&[b"first-number", b"second-number"]).len(), 16);
    }

    #[test]
    fn no_two_are_alike() {
        let ids = RequestIds::default();
        let seen: std::collections::HashSet<String> = (0..1000).map(|_| ids.next()).collect();
        assert_eq!(seen.len(), 1000);
        assert!(seen.iter().all(|id| id.len() == 16));
    }
}
