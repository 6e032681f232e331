//! Times on the wire: RFC 3339, section 5.6, always in UTC and with milliseconds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment in milliseconds since 1970-01-01T00:00:00Z, printed as `2026-09-02T14:22:05.004Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// A text that is no RFC 3339 date-time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a time is an RFC 3339 date-time like `2026-09-02T14:22:05.004Z`")]
pub struct BadTimestamp;

impl Timestamp {
    /// The moment this many milliseconds after 1970-01-01T00:00:00Z.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// This moment and `ms` milliseconds, held within what an `i64` can say.
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

/// The moments that RFC 3339 can say, as far as [`jiff`] goes: the years 0 to 9999, less the last 26 hours (its
/// largest moment has a print in every time zone).
const PRINTABLE_MS: (i64, i64) = (-62_167_219_200_000, 253_402_207_199_999);

impl fmt::Display for Timestamp {
    /// A moment before the year 0 or after 9999 prints as the nearest one that has a print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.clamp(PRINTABLE_MS.0, PRINTABLE_MS.1);
        let stamp = jiff::Timestamp::from_millisecond(ms).map_err(|_| fmt::Error)?;
        write!(f, "{}", stamp.strftime("%Y-%m-%dT%H:%M:%S.%3fZ"))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        // jiff reads more than RFC 3339 allows (a space, a zone in brackets); the shape is held here.
        let bytes = text.as_bytes();
        let digits =
            |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
        let shaped = bytes.len() >= 20
            && digits(0..4)
            && bytes[4] == b'-'
            && digits(5..7)
            && bytes[7] == b'-'
            && digits(8..10)
            && matches!(bytes[10], b'T' | b't')
            && digits(11..13)
            && bytes[13] == b':'
            && digits(14..16)
            && bytes[16] == b':'
            && digits(17..19);
        let rest = bytes.get(19..).unwrap_or_default();
        let fraction = match rest.first() {
            Some(b'.') => 1 + rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count(),
            _ => 0,
        };
        let zone = &rest[fraction..];
        let zoned = matches!(zone, b"Z" | b"z")
            || (zone.len() == 6
                && matches!(zone[0], b'+' | b'-')
                && zone[3] == b':'
                && [1, 2, 4, 5].iter().all(|&at| zone[at].is_ascii_digit())
                && &zone[1..3] < b"24"
                && &zone[4..6] < b"60");
        if !shaped || fraction == 1 || fraction > 10 || !zoned {
            return Err(BadTimestamp);
        }
        let stamp: jiff::Timestamp = text.parse().map_err(|_| BadTimestamp)?;
        // Down to the millisecond before, on both sides of 1970.
        let ms = stamp.as_nanosecond().div_euclid(1_000_000);
        i64::try_from(ms).ok().filter(|ms| (PRINTABLE_MS.0..=PRINTABLE_MS.1).contains(ms)).map(Self).ok_or(BadTimestamp)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::object::parse(deserializer)
    }
}

impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "format": "date-time",
            "pattern": crate::schema::date_time(),
        })
    }
}
