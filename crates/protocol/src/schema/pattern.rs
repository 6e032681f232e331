//! Regular expressions (ECMA-262, as JSON Schema wants them) that say what text may hold.
//!
//! Written from the predicates of [`crate::text`], so that the two can't drift apart. They stay within what engines
//! share: no look-around, `\uXXXX` and so no character beyond U+FFFF, and each part of a pattern starts where the one
//! before can't go on, so that no engine has to try twice.

use std::sync::LazyLock;

use crate::text::{is_bidi_control, is_forbidden_control, is_zero_width};

/// A text that stands for something or is tapped: not blank, without controls, bidirectional ones included.
pub(crate) fn exact() -> &'static str {
    static PATTERN: LazyLock<String> = LazyLock::new(|| not_blank(|c| is_forbidden_control(c) || is_bidi_control(c)));
    &PATTERN
}

/// A text that is read: not blank, without controls.
pub(crate) fn prose() -> &'static str {
    static PATTERN: LazyLock<String> = LazyLock::new(|| not_blank(is_forbidden_control));
    &PATTERN
}

/// A text without controls.
pub(crate) fn plain() -> &'static str {
    static PATTERN: LazyLock<String> = LazyLock::new(|| format!("^[^{}]*$", class(is_forbidden_control)));
    &PATTERN
}

/// An http or https address with a host and without a name or password.
pub(crate) fn web_address() -> &'static str {
    static PATTERN: LazyLock<String> = LazyLock::new(|| {
        let never = class(|c| is_forbidden_control(c) || is_bidi_control(c) || c.is_whitespace() || c == '\\');
        format!("^[Hh][Tt][Tt][Pp][Ss]?://[^{never}/?#@]+([/?#][^{never}]*)?$")
    });
    &PATTERN
}

/// An RFC 3339 date-time with at most nine digits of a second; it may name a day that its month does not have.
pub(crate) const fn date_time() -> &'static str {
    concat!(
        "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]",
        r"([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]{1,9})?",
        "([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    )
}

fn not_blank(forbidden: impl Fn(char) -> bool) -> String {
    let unseen = |c: char| c.is_whitespace() || is_zero_width(c);
    let lead = class(|c| unseen(c) && !forbidden(c));
    let first_seen = class(|c| unseen(c) || forbidden(c));
    format!("^[{lead}]*[^{first_seen}][^{}]*$", class(&forbidden))
}

/// The inside of a character class: the ranges of the characters up to U+FFFF of which `holds` is true.
fn class(holds: impl Fn(char) -> bool) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for code in (0..=0xFFFF).filter(|&code| char::from_u32(code).is_some_and(&holds)) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == code => *last = code,
            _ => ranges.push((code, code)),
        }
    }
    ranges
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => format!("\\u{first:04X}"),
            _ => format!("\\u{first:04X}-\\u{last:04X}"),
        })
        .collect()
}
