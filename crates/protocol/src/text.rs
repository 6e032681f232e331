//! Rules about text that validation, rules and display share.

/// Folds a label for comparison: NFKC, case, zero-width characters removed, runs of white space to one space, ends
/// trimmed, and letters of other scripts that look like Latin ones to those (Unicode TR39's skeleton, as far as needed).
pub fn fold(label: &str) -> String {
    let _ = label;
    todo!()
}

/// Whether a text is white space and zero-width characters alone.
pub fn is_blank(text: &str) -> bool {
    let _ = text;
    todo!()
}

/// Whether a character is a bidirectional control (U+202A to U+202E, U+2066 to U+2069).
pub const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is a control (category Cc) other than tab, line feed and carriage return.
pub const fn is_forbidden_control(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{B}' | '\u{C}' | '\u{E}'..='\u{1F}' | '\u{7F}'..='\u{9F}')
}

/// The text as it may be shown to people: bidirectional controls and controls other than tab, line feed and carriage return stand escaped
/// (`\u{202e}`), everything else as it is.
pub fn shown(text: &str) -> String {
    let _ = text;
    todo!()
}
