//! Lengths of time, read as people write them and shown as people read them.

use std::time::Duration;

use serde_json::Number;

/// The longest time-out, in seconds: 365 days.
const LONGEST: u64 = chips_protocol::limits::SECONDS as u64;

/// Reads a time-out: seconds (`90`, `0.5`), or numbers with units, the largest first (`90s`, `15m`, `1h30m`, `2d`).
///
/// # Errors
/// In words, with the way out.
pub fn timeout(text: &str) -> Result<Number, String> {
    const FORM: &str = "a time-out is seconds (90, 0.5), or numbers with units, the largest first: 90s, 15m, 1h30m, 2d";
    let text = text.trim();
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let seconds = if let Some(seconds) = bare(unsigned) { seconds } else { with_units(unsigned).ok_or(FORM)? };
    if unsigned.len() != text.len() || seconds.as_f64().is_none_or(|seconds| seconds <= 0.0) {
        return Err("a time-out is more than 0; leave it out to wait until somebody answers".to_owned());
    }
    if seconds.as_f64().is_none_or(|seconds| seconds > LONGEST as f64) {
        return Err("a time-out is at most 365 days; leave it out to wait until somebody answers".to_owned());
    }
    Ok(seconds)
}

/// Seconds without a unit (or with it, where they have a fraction); anything that only looks like a number (`1e3`, `inf`) is none.
fn bare(text: &str) -> Option<Number> {
    if text.contains('.')
        && let Some((whole, fraction)) = text.strip_suffix('s').unwrap_or(text).split_once('.')
    {
        let text = format!("{whole}.{fraction}");
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        return if digits(whole) && digits(fraction) { Number::from_f64(text.parse().ok()?) } else { None };
    }
    whole(text).map(Number::from)
}

/// A whole number; one that is too large for any time-out stays so.
fn whole(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}

fn with_units(text: &str) -> Option<Number> {
    let mut units = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)].as_slice();
    let mut total: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (digits, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let unit = after.chars().next()?;
        let place = units.iter().position(|(letter, _)| *letter == unit)?;
        total = total.saturating_add(whole(digits)?.saturating_mul(units[place].1));
        units = &units[place + 1..];
        rest = &after[unit.len_utf8()..];
    }
    (!text.is_empty()).then(|| total.into())
}

/// How much time is left, by its two largest units: `2d 3h`, `1h 05m`, `59m 12s`, `12s`.
pub fn left(time: Duration) -> String {
    // Rounded up, so that what has just been asked for an hour says an hour.
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    if days > 0 {
        format!("{days}d {}h", hours % 24)
    } else if hours > 0 {
        format!("{hours}h {:02}m", minutes % 60)
    } else if minutes > 0 {
        format!("{minutes}m {:02}s", seconds % 60)
    } else {
        format!("{seconds}s")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn time_outs_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("15m", 900),
            ("1h30m", 5_400),
            ("2d", 172_800),
            ("1d2h3m4s", 93_784),
            (" 5m ", 300),
            ("0h1s", 1),
            ("365d", 31_536_000),
        ] {
            assert_eq!(timeout(text), Ok(seconds.into()), "{text}");
        }
        for text in ["0.5", "0.5s"] {
            assert_eq!(timeout(text), Ok(Number::from_f64(0.5).unwrap()));
        }
    }

    #[test]
    fn what_is_no_time_out_is_refused_and_never_replaced() {
        for text in ["", "h", "1.5h", "1 h", "1H", "30m1h", "1h1h", "5x", "1e3", "inf", "nan", "+5", ".5", "5.", "１０"]
        {
            assert!(timeout(text).unwrap_err().starts_with("a time-out is seconds"), "{text}");
        }
        for text in ["0", "0s", "0.0", "-5", "-1h"] {
            assert!(timeout(text).unwrap_err().starts_with("a time-out is more than 0"), "{text}");
        }
        for text in ["366d", "31536001", "99999999999999999999", "99999999999999999999d", "31536000.5"] {
            assert!(timeout(text).unwrap_err().starts_with("a time-out is at most"), "{text}");
        }
    }

    #[test]
    fn time_left_is_told_by_its_two_largest_units() {
        for (ms, text) in [
            (0, "0s"),
            (1, "1s"),
            (12_000, "12s"),
            (59_001, "1m 00s"),
            (3_552_000, "59m 12s"),
            (3_900_000, "1h 05m"),
            (183_600_000, "2d 3h"),
        ] {
            assert_eq!(left(Duration::from_millis(ms)), text);
        }
    }
}
