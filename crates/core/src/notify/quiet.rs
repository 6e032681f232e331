//! Quiet hours: by the clock on a person's wall, also when it is changed.

use std::fmt;
use std::str::FromStr;

use chips_protocol::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time of day, to the minute, in the person's own zone. Written `22:30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay(Time);

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0.hour(), self.0.minute())
    }
}

impl FromStr for TimeOfDay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let two = |digits: &str| {
            let plain = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
            plain.then(|| digits.parse::<i8>().ok()).flatten()
        };
        text.split_once(':')
            .and_then(|(hour, minute)| Time::new(two(hour)?, two(minute)?, 0, 0).ok())
            .map(Self)
            .ok_or_else(|| format!("{text:?} is no time of day; write it like 22:30"))
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Hours in which a person is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    /// Their beginning.
    pub from: TimeOfDay,
    /// Their end; on the next day where it is not after the beginning.
    pub to: TimeOfDay,
    /// Whether they hold for what blocks a harness too.
    #[serde(default)]
    pub time_sensitive: bool,
}

impl Quiet {
    /// When those of these hours end that a moment is in.
    pub(super) fn ends(&self, zone: &TimeZone, at: Timestamp) -> Option<Timestamp> {
        let (TimeOfDay(from), TimeOfDay(to)) = (self.from, self.to);
        let today = zone.to_datetime(jiff::Timestamp::from_millisecond(at.ms()).ok()?).date();
        [today.yesterday().ok(), Some(today)].into_iter().flatten().find_map(|day| {
            let last = if from < to { day } else { day.tomorrow().ok()? };
            let (begin, end) = (shows(zone, day, from)?, shows(zone, last, to)?);
            (begin <= at && at < end).then_some(end)
        })
    }
}

/// The first moment at which clocks in a zone show this time of this day, or a later one.
fn shows(zone: &TimeZone, day: Date, time: Time) -> Option<Timestamp> {
    let found = zone.to_ambiguous_timestamp(DateTime::from_parts(day, time));
    let is_left_out = matches!(found.offset(), AmbiguousOffset::Gap { .. });
    let before = found.earlier().ok()?;
    let moment = if is_left_out { zone.following(before).next()?.timestamp() } else { before };
    Some(Timestamp::from_ms(moment.as_millisecond()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use chips_protocol::api::Tier;
    use proptest::prelude::*;

    use super::*;
    use crate::notify::Preferences;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn quiet(from: &str, to: &str, time_sensitive: bool) -> Preferences {
        let quiet = Quiet { from: from.parse().unwrap(), to: to.parse().unwrap(), time_sensitive };
        Preferences { zone: "Europe/Berlin".to_owned(), quiet: Some(quiet), ..Preferences::default() }
    }

    #[test]
    fn a_time_of_day_is_hours_and_minutes_in_two_digits() {
        assert_eq!("07:05".parse::<TimeOfDay>().unwrap().to_string(), "07:05");
        for bad in ["24:00", "7:00", "22:60", "22", "22:00:00", "+2:00"] {
            assert!(bad.parse::<TimeOfDay>().is_err(), "{bad}");
        }
    }

    #[test]
    fn quiet_hours_hold_in_the_persons_zone_over_midnight_and_not_for_what_blocks_a_harness() {
        let night = quiet("22:00", "07:00", false);
        for (when, until) in [
            ("2026-11-30T20:59:59Z", "2026-11-30T20:59:59Z"),
            ("2026-11-30T21:00:00Z", "2026-12-01T06:00:00Z"),
            ("2026-12-01T05:59:59Z", "2026-12-01T06:00:00Z"),
            ("2026-12-01T06:00:00Z", "2026-12-01T06:00:00Z"),
            // The night in which summer time begins is an hour shorter.
            ("2027-03-27T21:00:00Z", "2027-03-28T05:00:00Z"),
        ] {
            assert_eq!(night.after_quiet(Tier::Active, at(when)), at(until), "{when}");
            assert_eq!(night.after_quiet(Tier::TimeSensitive, at(when)), at(when), "{when}");
        }
        let noon = quiet("12:00", "13:00", true);
        assert_eq!(noon.after_quiet(Tier::TimeSensitive, at("2026-11-30T11:30:00Z")), at("2026-11-30T12:00:00Z"));
        assert_eq!(noon.after_quiet(Tier::Active, at("2026-11-30T12:00:00Z")), at("2026-11-30T12:00:00Z"));
    }

    #[test]
    fn quiet_hours_are_those_of_the_clock_on_the_wall_when_it_is_changed_too() {
        for (zone, from, to, when, until) in [
            // Put forward from 02:00 to 03:00 at 01:00Z: an end that is left out is when the clock is changed, and so is a
            // beginning.
            ("Europe/Berlin", "22:00", "02:30", "2027-03-28T00:59:59Z", "2027-03-28T01:00:00Z"),
            ("Europe/Berlin", "22:00", "02:30", "2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z"),
            ("Europe/Berlin", "02:30", "07:00", "2027-03-28T00:59:59Z", "2027-03-28T00:59:59Z"),
            ("Europe/Berlin", "02:30", "07:00", "2027-03-28T01:00:00Z", "2027-03-28T05:00:00Z"),
            // The minute between them is left out.
            ("Europe/Berlin", "02:31", "02:30", "2027-03-27T12:00:00Z", "2027-03-29T00:30:00Z"),
            // Put back from 03:00 to 02:00 at 01:00Z: 02:30 comes twice, and the first one counts.
            ("Europe/Berlin", "22:00", "02:30", "2027-10-31T00:29:59Z", "2027-10-31T00:30:00Z"),
            ("Europe/Berlin", "22:00", "02:30", "2027-10-31T01:10:00Z", "2027-10-31T01:10:00Z"),
            ("Europe/Berlin", "02:30", "07:00", "2027-10-31T00:29:59Z", "2027-10-31T00:29:59Z"),
            ("Europe/Berlin", "02:30", "07:00", "2027-10-31T01:10:00Z", "2027-10-31T06:00:00Z"),
            ("Europe/Berlin", "22:00", "07:00", "2027-10-30T20:00:00Z", "2027-10-31T06:00:00Z"),
            // The other way round the year, and by half an hour: 02:00 becomes 02:30 at 15:30Z.
            ("Australia/Lord_Howe", "22:00", "02:15", "2027-10-02T15:29:59Z", "2027-10-02T15:30:00Z"),
            ("Australia/Lord_Howe", "22:00", "07:00", "2027-10-02T15:29:59Z", "2027-10-02T20:00:00Z"),
            ("Australia/Lord_Howe", "22:00", "07:00", "2027-04-03T15:00:00Z", "2027-04-03T20:30:00Z"),
            // Zones that are no whole hours from UTC.
            ("Asia/Kathmandu", "22:00", "07:00", "2027-01-01T16:15:00Z", "2027-01-02T01:15:00Z"),
            ("Asia/Kathmandu", "22:00", "07:00", "2027-01-01T16:14:59Z", "2027-01-01T16:14:59Z"),
            ("America/St_Johns", "22:00", "07:00", "2027-01-01T01:30:00Z", "2027-01-01T10:30:00Z"),
            // The night of the change is an hour shorter there: 02:00 becomes 03:00 at 05:30Z.
            ("America/St_Johns", "22:00", "07:00", "2027-03-14T01:30:00Z", "2027-03-14T09:30:00Z"),
            // Midnight itself is left out.
            ("America/Santiago", "22:00", "00:00", "2027-09-05T03:59:59Z", "2027-09-05T04:00:00Z"),
            // So is a whole day, 2011-12-30: the night that began on the 29th is that of the 31st.
            ("Pacific/Apia", "22:00", "00:00", "2011-12-30T09:00:00Z", "2011-12-30T10:00:00Z"),
            ("Pacific/Apia", "22:00", "07:00", "2011-12-30T09:00:00Z", "2011-12-30T17:00:00Z"),
        ] {
            let preferences = Preferences { zone: zone.to_owned(), ..quiet(from, to, false) };
            assert_eq!(preferences.after_quiet(Tier::Active, at(when)), at(until), "{zone} {from}-{to} at {when}");
        }
    }

    /// Zones of every kind of change: by an hour, by half an hour, by a day, at midnight, and none.
    const ZONES: [&str; 9] = [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "America/St_Johns",
        "America/Santiago",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Asia/Kathmandu",
        "Africa/Casablanca",
    ];

    proptest! {
        #[test]
        fn what_comes_after_the_quiet_hours_is_not_in_them(
            ms in 0_i64..4_000_000_000_000, from in 0_u32..1440, length in 1_u32..1440,
            zone in proptest::sample::select(ZONES.to_vec()),
        ) {
            let time = |minute: u32| format!("{:02}:{:02}", minute / 60 % 24, minute % 60).parse::<TimeOfDay>().unwrap();
            let quiet = Quiet { from: time(from), to: time(from + length), time_sensitive: false };
            let preferences = Preferences { zone: zone.to_owned(), quiet: Some(quiet), ..Preferences::default() };
            let at = Timestamp::from_ms(ms);
            let after = preferences.after_quiet(Tier::Active, at);
            prop_assert!(at <= after && after.ms() - at.ms() <= 3 * 86_400_000, "{} {}", at, after);
            prop_assert_eq!(preferences.after_quiet(Tier::Active, after), after);
            if after > at {
                let before = after.plus_ms(-1);
                prop_assert_eq!(preferences.after_quiet(Tier::Active, before), after, "they hold to their end");
            }
            // Where no clock was changed for days, the time on the wall says it all.
            let tz = TimeZone::get(zone).unwrap();
            let offset = |days: i64| tz.to_offset(jiff::Timestamp::from_millisecond(ms + days * 86_400_000).unwrap());
            if (-2..=2).all(|days| offset(days) == offset(0)) {
                let wall = |at: Timestamp| {
                    let ms = at.ms() + i64::from(offset(0).seconds()) * 1000;
                    u32::try_from(ms.rem_euclid(86_400_000) / 60_000).unwrap()
                };
                let is_in = |minute: u32| (minute + 1440 - from) % 1440 < length;
                prop_assert_eq!(is_in(wall(at)), after > at, "{}", at);
                if after > at {
                    prop_assert_eq!(wall(after), (from + length) % 1440);
                    prop_assert!(after.ms() - at.ms() <= 86_400_000);
                }
            }
        }
    }
}
