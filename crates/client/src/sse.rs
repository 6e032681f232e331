//! Server-Sent Events, as far as a reader needs them (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).

use std::collections::VecDeque;

/// No event of Chips is longer: a body has at most 256 KiB, and escaping makes a byte six at most.
const LONGEST: usize = 4 << 20;

/// One message of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The last `id` that the stream said, in this message or before it.
    pub id: String,
    /// The `event`; empty where the message names none.
    pub event: String,
    /// The `data`, its lines joined by line feeds.
    pub data: String,
}

/// The stream is no stream of Server-Sent Events, or holds a message that does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Reads a stream in pieces of any size.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed that follows ends no line of its own.
    after_return: bool,
    begun: bool,
    id: String,
    event: String,
    data: String,
    has_data: bool,
    ready: VecDeque<Message>,
}

impl Parser {
    /// Takes the next piece of the stream.
    ///
    /// # Errors
    /// When a message does not end, or is not UTF-8.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Malformed> {
        for &byte in piece {
            let pair = self.after_return && byte == b'\n';
            self.after_return = byte == b'\r';
            match byte {
                b'\n' if pair => {}
                b'\n' | b'\r' => self.end_line()?,
                _ if self.line.len() + self.data.len() >= LONGEST => return Err(Malformed),
                _ => self.line.push(byte),
            }
        }
        Ok(())
    }

    /// The next message that is complete.
    pub fn pop(&mut self) -> Option<Message> {
        self.ready.pop_front()
    }

    fn end_line(&mut self) -> Result<(), Malformed> {
        let mut bytes = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&bytes).map_err(|_| Malformed)?;
        let line = if self.begun { line } else { line.trim_start_matches('\u{FEFF}') };
        self.begun = true;
        if line.is_empty() {
            self.dispatch();
        } else {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "data" => {
                    if self.has_data {
                        self.data.push('\n');
                    }
                    self.data.push_str(value);
                    self.has_data = true;
                }
                "event" => value.clone_into(&mut self.event),
                "id" if !value.contains('\0') => value.clone_into(&mut self.id),
                // A comment (an empty field name), `retry`, or something newer.
                _ => {}
            }
        }
        bytes.clear();
        self.line = bytes;
        Ok(())
    }

    fn dispatch(&mut self) {
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            self.ready.push_back(Message { id: self.id.clone(), event, data });
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Message> {
        let mut parser = Parser::default();
        for piece in pieces {
            parser.push(piece).unwrap();
        }
        std::iter::from_fn(|| parser.pop()).collect()
    }

    fn message(id: &str, event: &str, data: &str) -> Message {
        Message { id: id.into(), event: event.into(), data: data.into() }
    }

    const STREAM: &str = "\u{FEFF}: hello\n\nid: 7\nevent: question.ask\ndata: {\"a\":1}\n\n\
        data:x\r\ndata: y\r\n\r\nevent: nothing\n\nid: 8\rdata\r\rid: 9\ndata: unfinished\n";

    fn expected() -> Vec<Message> {
        vec![message("7", "question.ask", "{\"a\":1}"), message("7", "", "x\ny"), message("8", "", "")]
    }

    #[test]
    fn messages_end_at_an_empty_line_and_comments_are_passed_over() {
        assert_eq!(read(&[STREAM.as_bytes()]), expected());
    }

    #[test]
    fn it_does_not_matter_where_the_pieces_are_cut() {
        for at in 0..=STREAM.len() {
            let (before, after) = STREAM.as_bytes().split_at(at);
            assert_eq!(read(&[before, after]), expected(), "cut at {at}");
        }
        let single: Vec<&[u8]> = STREAM.as_bytes().chunks(1).collect();
        assert_eq!(read(&single), expected());
    }

    #[test]
    fn what_looks_like_a_line_end_to_people_is_none() {
        let messages = read(&["id: 1\ndata: a\u{2028}b\u{85}c\\r\\n\\nevent: x\n\n".as_bytes()]);
        assert_eq!(messages, [message("1", "", "a\u{2028}b\u{85}c\\r\\n\\nevent: x")]);
    }

    #[test]
    fn a_message_that_does_not_end_is_refused() {
        let mut parser = Parser::default();
        let piece = vec![b'x'; 1 << 20];
        assert!((0..8).any(|_| parser.push(&piece).is_err()));
        assert_eq!(Parser::default().push(b"data: \xFF\n"), Err(Malformed));
    }
}
