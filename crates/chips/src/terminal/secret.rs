//! Reading a secret from a terminal without showing it.

use std::io::{self, Write};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, read as read_event};

use super::screen::{RawMode, unless_gone};

/// Prints `prompt` to standard error and reads one line, of which nothing is shown. Nothing where Ctrl-C (or Ctrl-D
/// before anything else) was pressed.
///
/// # Errors
/// What the terminal says.
pub fn read(prompt: &str) -> io::Result<Option<String>> {
    ask(prompt).map_err(unless_gone)
}

fn ask(prompt: &str) -> io::Result<Option<String>> {
    let mut err = io::stderr();
    // Before the prompt: what is typed or pasted as soon as it shows must not be shown either.
    let raw = RawMode::enter()?;
    write!(err, "{prompt}")?;
    err.flush()?;
    let read = read_line();
    drop(raw);
    writeln!(err)?;
    read
}

fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    loop {
        match read_event()? {
            Event::Paste(text) => line.push_str(&text),
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('c') if control => return Ok(None),
                    KeyCode::Char('d') if control && line.is_empty() => return Ok(None),
                    KeyCode::Char('u') if control => line.clear(),
                    // A paste may bring its line end along.
                    KeyCode::Char('j' | 'm') if control => return Ok(Some(line)),
                    KeyCode::Char(c) if !control => line.push(c),
                    KeyCode::Backspace => {
                        line.pop();
                    }
                    KeyCode::Enter => return Ok(Some(line)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}
