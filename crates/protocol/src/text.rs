//! Rules about text that validation, rules and display share.

mod lookalikes;

use unicode_normalization::UnicodeNormalization;

use lookalikes::latin;

/// Folds a label for comparison: NFKC, case, zero-width characters removed, runs of white space to one space, ends
/// trimmed, and letters of other scripts that look like Latin ones to those (Unicode TR39's skeleton, as far as needed).
///
/// Case goes first, so `ΝΑΙ` and `ναι` fold alike. What only looks alike in capitals (`Νo` with a Greek capital nu
/// beside `No`) is for [`read_alike`].
pub fn fold(label: &str) -> String {
    fold_by(label, |c, folded| {
        for lower in c.to_uppercase().flat_map(char::to_lowercase) {
            folded.push(latin(lower).unwrap_or(lower));
        }
    })
}

/// Whether two labels can't be told apart when they are read: equal after [`fold`], or equal once each letter stands
/// for the Latin one that it looks like as it was written, capital or not.
pub fn read_alike(one: &str, other: &str) -> bool {
    fold(one) == fold(other) || as_drawn(one) == as_drawn(other)
}

/// As [`fold`], with the look of a letter decided before its case is folded.
pub(crate) fn as_drawn(label: &str) -> String {
    fold_by(label, |c, folded| {
        folded.extend(latin(c).unwrap_or(c).to_uppercase().flat_map(char::to_lowercase));
    })
}

fn fold_by(label: &str, letter: impl Fn(char, &mut String)) -> String {
    if label.is_ascii() {
        return one_space_between_words(&label.to_ascii_lowercase());
    }
    // Twice: NFKC takes some lookalikes to letters that look like nothing Latin (the lunate sigma), and some
    // forms are lookalikes only once it has been at work (a bold Greek alpha).
    let once = fold_letters(label.nfd(), &letter);
    let twice = fold_letters(once.nfkd(), &letter);
    one_space_between_words(&twice.nfc().collect::<String>())
}

fn one_space_between_words(text: &str) -> String {
    let mut words = text.split_whitespace();
    let mut folded = String::with_capacity(text.len());
    folded.extend(words.next());
    for word in words {
        folded.push(' ');
        folded.push_str(word);
    }
    folded
}

fn fold_letters(letters: impl Iterator<Item = char>, letter: &impl Fn(char, &mut String)) -> String {
    let mut folded = String::new();
    for c in letters.filter(|&c| !is_zero_width(c)) {
        letter(c, &mut folded);
    }
    folded
}

/// Whether a text is white space and zero-width characters alone.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_zero_width(c))
}

/// Whether a character takes no room of its own: Unicode's default-ignorable code points, and the blank pattern of
/// Braille (U+2800), which is drawn as nothing.
pub const fn is_zero_width(c: char) -> bool {
    matches!(
        c,
        '\u{AD}'
            | '\u{34F}'
            | '\u{61C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFF8}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
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
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_bidi_control(c) || is_forbidden_control(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether a character ends a line, steers whoever shows it, or turns text round: what a name never has.
fn is_no_part_of_a_name(c: char) -> bool {
    c.is_control() || is_bidi_control(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Checks the name of a workspace, a person, a harness, a space or an address: one line that can be read, of at most `most`
/// characters.
///
/// # Errors
/// What is wrong with it and where, in words for whoever gave it.
pub fn check_name(name: &str, most: usize) -> Result<(), String> {
    if is_blank(name) {
        return Err("the name is blank; give one that people know".to_owned());
    }
    if let Some((at, c)) = name.chars().enumerate().find(|(_, c)| is_no_part_of_a_name(*c)) {
        let what = match c {
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => "a line break",
            '\t' => "a tab",
            _ if is_bidi_control(c) => "a character that turns text round",
            _ => "a control character",
        };
        let (place, code) = (at + 1, u32::from(c));
        return Err(format!(
            "the name has {what} (U+{code:04X}) as its character {place}; give one line of letters that can be seen"
        ));
    }
    match name.chars().count() {
        long if long > most => Err(format!("the name has {long} characters; it may have {most}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn labels_that_differ_in_case_space_width_or_script_read_alike() {
        for (one, other) in [
            ("Yes", "yes "),
            ("Delete", "D\u{435}lete"),
            ("No", "\u{39D}o"),
            ("BETA", "\u{412}\u{415}\u{422}\u{410}"),
            ("\u{39D}\u{391}\u{399}", "\u{3BD}\u{3B1}\u{3B9}"),
            ("\u{412}\u{43E}\u{434}\u{430}", "\u{432}\u{43E}\u{434}\u{430}"),
            ("Keep it", "Keep \u{A0}\t it"),
            ("Keep", "Ke\u{200B}ep"),
            ("Keep", "\u{FF2B}\u{FF45}\u{FF45}\u{FF50}"),
            ("caf\u{E9}", "cafe\u{301}"),
            ("\u{EB}", "\u{451}"),
            ("STRASSE", "stra\u{DF}e"),
            ("cat", "\u{3F2}at"),
            ("a", "\u{1D6C2}"),
        ] {
            assert!(read_alike(one, other), "{one:?} {other:?}");
            assert!(read_alike(other, one), "{other:?} {one:?}");
        }
    }

    #[test]
    fn labels_that_differ_to_the_eye_do_not() {
        for (one, other) in [("Yes", "No"), ("modem", "modern"), ("1", "l"), ("O", "0"), ("19", "26"), ("a b", "ab")] {
            assert!(!read_alike(one, other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_text_of_nothing_to_see_is_blank() {
        for text in ["", " ", "  \n", "\u{200B}", "\u{FEFF}\u{2060}", "\u{3000}\u{2800}", "\u{AD}\u{3164}"] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["0", ".", "\0", " a ", "\u{301}"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }

    #[test]
    fn a_name_is_one_line_that_can_be_read() {
        for good in ["Ada", "Purchasing (EU)", "Größe \u{1F469}\u{200D}\u{1F4BB}", &"a".repeat(100)] {
            assert_eq!(check_name(good, 100), Ok(()), "{good}");
        }
        for (bad, says) in [
            ("", "blank"),
            (" \u{200B}\n", "blank"),
            ("Ada\nRobin", "a line break (U+000A) as its character 4"),
            ("A\r", "a line break (U+000D) as its character 2"),
            ("A\u{2028}", "a line break (U+2028)"),
            ("A\tB", "a tab (U+0009)"),
            ("\0Ada", "a control character (U+0000) as its character 1"),
            ("A\u{1B}[2J", "a control character (U+001B)"),
            ("A\u{85}", "a control character (U+0085)"),
            ("\u{202E}adA", "turns text round (U+202E)"),
            (&"a".repeat(101), "101 characters; it may have 100"),
        ] {
            let refusal = check_name(bad, 100).expect_err(bad);
            assert!(refusal.contains(says) && !refusal.contains(char::is_control), "{bad:?}: {refusal}");
        }
    }

    #[test]
    fn what_turns_text_round_or_moves_a_cursor_is_shown_escaped() {
        assert_eq!(shown("a\u{202E}b\u{1B}[2J\tc\r\n\0"), "a\\u{202e}b\\u{1b}[2J\tc\r\n\\u{0}");
        assert_eq!(shown("Größe \u{1F600}"), "Größe \u{1F600}");
    }

    proptest! {
        #[test]
        fn controls_are_unicodes_controls(c in any::<char>()) {
            prop_assert_eq!(is_forbidden_control(c), c.is_control() && !"\t\n\r".contains(c));
        }

        #[test]
        fn folding_twice_is_folding_once(label in any::<String>()) {
            let once = fold(&label);
            prop_assert_eq!(fold(&once), once);
        }

        #[test]
        fn nothing_shown_can_steer(text in any::<String>()) {
            prop_assert!(!shown(&text).chars().any(|c| is_bidi_control(c) || is_forbidden_control(c)));
        }
    }
}
