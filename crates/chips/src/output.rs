//! What commands print: results to standard output, everything else meant for a person to standard error.
//!
//! A reader that goes away (`chips harness list | head -1`) is no failure: [`Closed`] travels up to `main`, which ends
//! quietly. Text that others chose (names, reasons) is escaped before it reaches a terminal.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use chips_protocol::text::is_bidi_control;
use serde::Serialize;

/// Nobody reads standard output any more.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads standard output any more")]
pub struct Closed;

/// Prints a text to standard output as it stands, and flushes it.
///
/// # Errors
/// [`Closed`] where the reader has gone, else what the system says.
pub fn text(text: impl Display) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.to_string().as_bytes()).and_then(|()| out.flush()).map_err(unwritten)
}

/// Why standard output could not be written: [`Closed`] where the reader has gone.
pub fn unwritten(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Closed.into(),
        _ => anyhow::Error::new(error).context("standard output can't be written"),
    }
}

/// Prints a line to standard output, and flushes it.
///
/// # Errors
/// As [`text`].
pub fn line(line: impl Display) -> anyhow::Result<()> {
    text(format_args!("{line}\n"))
}

/// Prints one JSON document on one line to standard output.
///
/// # Errors
/// As [`text`].
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(json_text(value, false)?)
}

/// A value as JSON, on one line or indented. Characters that would move a terminal's cursor or turn the direction of
/// the text stand as `\u` escapes, which every JSON reader turns back.
///
/// # Errors
/// The value has no JSON form.
pub fn json_text(value: &impl Serialize, indented: bool) -> anyhow::Result<String> {
    let json = if indented { serde_json::to_string_pretty(value)? } else { serde_json::to_string(value)? };
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        // Beyond ASCII these occur inside strings alone, and all lie in the basic plane: one escape each is enough.
        if is_bidi_control(c) || matches!(c, '\u{7F}'..='\u{9F}') {
            safe.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    Ok(safe)
}

/// Prints a line for a person to standard error. Where nobody reads it, nothing is lost.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints why a command failed: one line that scripts find by its `chips: `, broken between words on a terminal.
pub fn error(reason: &str) {
    note(fill(&format!("chips: {reason}"), columns_of(io::stderr())));
}

/// The text in lines of at most this many columns, if there is a limit. Words stay whole: commands and addresses can be
/// copied.
pub fn fill(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let whole_words = textwrap::Options::new(columns.max(20))
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .word_separator(textwrap::WordSeparator::AsciiSpace);
    textwrap::fill(text, whole_words)
}

/// The text on one line, fit for a terminal: control characters, line ends and bidirectional controls stand escaped.
pub fn one_line(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_bidi_control(c) || matches!(c, '\u{2028}' | '\u{2029}') {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Whether standard output is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard output takes colours: a terminal that is not dumb, and nobody said `NO_COLOR` (<https://no-color.org>).
pub fn has_colours() -> bool {
    is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// A text that stands out, where standard output takes colours.
pub fn bold(text: &str) -> String {
    if has_colours() { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// The columns of the terminal behind standard output, or nothing where there is none.
pub fn columns() -> Option<usize> {
    columns_of(io::stdout())
}

fn columns_of(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_hostile_name_stays_on_its_line() {
        assert_eq!(one_line("x\n\u{1b}[31m\u{9b}2J\u{202e}y\u{2028}é"), r"x\n\u{1b}[31m\u{9b}2J\u{202e}y\u{2028}é");
    }

    #[test]
    fn json_holds_no_character_that_a_terminal_acts_on_and_says_the_same() {
        let name = "x\n\u{1b}[31m\u{7f}\u{9b}2J\u{202e}y é 🍟";
        let json = json_text(&name, false).unwrap();
        assert!(!json.chars().any(|c| c.is_control() || is_bidi_control(c)), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), name);
    }
}
