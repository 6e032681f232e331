//! Text that others chose, made fit for a terminal: nothing in it can move the cursor, change a colour or turn the
//! direction of what stands beside it. Widths are columns, as Unicode has them.

use std::borrow::Cow;

use chips_protocol::text::shown;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::output;

/// A text with its line ends kept as line feeds, tabs as spaces and everything that a terminal acts on escaped.
pub fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in shown(&text.replace("\r\n", "\n")).chars() {
        match c {
            '\r' | '\u{2028}' | '\u{2029}' => clean.push('\n'),
            '\t' => clean.push_str("    "),
            c => clean.push(c),
        }
    }
    clean
}

/// A text on one line: white space of any kind is one space, everything that a terminal acts on is escaped.
pub fn one_line(text: &str) -> String {
    output::one_line(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A text in lines of at most `width` columns. Line ends in it are kept, words that are too long are broken.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let options = textwrap::Options::new(width.max(2)).break_words(true);
    textwrap::wrap(&clean(text), options).into_iter().map(Cow::into_owned).collect()
}

/// The beginning of a text that is one line already, in at most `width` columns, with `…` where something is left out.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut used = 1;
    for cluster in text.graphemes(true) {
        used += cluster.width();
        if used > width {
            break;
        }
        cut.push_str(cluster);
    }
    cut.truncate(cut.trim_end().len());
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// The columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use chips_protocol::text::{is_bidi_control, is_forbidden_control};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_prompt_can_not_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\u{9b}31m\u{202e}c\u{7}"), r"a\u{1b}[2Jb\u{9b}31m\u{202e}c\u{7}");
        assert_eq!(clean("one\r\ntwo\rthree\u{2028}four\tfive"), "one\ntwo\nthree\nfour    five");
        assert_eq!(one_line("  one\r\n\u{1b}two \t three "), r"one \u{1b}two three");
    }

    #[test]
    fn lines_wrap_at_words_and_keep_their_ends() {
        assert_eq!(wrap("Ship on the 19th?\n\nOr later?", 10), ["Ship on", "the 19th?", "", "Or later?"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("日本語のテキスト", 6), ["日本語", "のテキ", "スト"]);
    }

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!(cut("Northwind", 9), "Northwind");
        assert_eq!(cut("Northwind can", 10), "Northwind…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("👩‍👩‍👧‍👦 family", 4), "👩‍👩‍👧‍👦…");
        assert_eq!(cut("abc", 0), "");
    }

    proptest! {
        #[test]
        fn nothing_that_is_shown_leaves_its_columns_or_steers(text in any::<String>(), columns in 2_usize..120) {
            for line in wrap(&text, columns) {
                prop_assert!(width(&line) <= columns, "{line:?}");
                prop_assert!(!line.contains(['\n', '\r', '\t']));
                prop_assert!(!line.chars().any(|c| is_bidi_control(c) || is_forbidden_control(c)), "{line:?}");
            }
            let line = cut(&one_line(&text), columns);
            prop_assert!(width(&line) <= columns && !line.chars().any(|c| c.is_control() || is_bidi_control(c)));
        }
    }
}
