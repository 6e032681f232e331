//! `chips check`

mod place;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chips_protocol::json::{self, JsonFault};
use chips_protocol::validate;
use serde::Serialize;
use serde_json::Value;

use crate::{args, exit, output};

/// Check events without a server, and name every fault with its place
///
/// A file holds one event, an array of events, or one event a line; `-` is standard input. Events are checked in their
/// stored form, as the log, a page or a stream gives them; with --write, as a client sends them. A fault is printed as
/// FILE:LINE:COLUMN, its place in the event, what is wrong and its code. Exit code 1 where there is any.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips check event.json",
    "chips tail --after 0 | chips check -",
    "chips check --write --json ask.json",
))]
pub struct Args {
    /// Files with events; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Check what a client sends, rather than what the log holds
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    json: args::Json,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Found {
    file: String,
    line: usize,
    column: usize,
    /// In the event.
    pointer: String,
    code: &'static str,
    message: String,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    ok: bool,
    events: usize,
    faults: &'a [Found],
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut faults = Vec::new();
    let mut events = 0;
    let mut readable = true;
    for path in &args.files {
        let name = if path == Path::new("-") { "<stdin>".to_owned() } else { path.to_string_lossy().into_owned() };
        match read(path) {
            Ok(bytes) => {
                let lines = path.extension().is_some_and(|ending| ending == "jsonl" || ending == "ndjson");
                let mut checker = Checker { file: &name, write: args.write, events: 0, faults: &mut faults };
                checker.check(&bytes, lines);
                events += checker.events;
            }
            Err(error) => {
                readable = false;
                output::note(format_args!("chips: can't read {}: {error}", output::one_line(&name)));
            }
        }
    }
    let ok = readable && faults.is_empty();
    if args.json.json {
        output::json(&Report { ok, events, faults: &faults })?;
    } else {
        for Found { file, line, column, pointer, code, message } in &faults {
            let place = if pointer.is_empty() { String::new() } else { format!(" {pointer}:") };
            output::line(output::one_line(&format!("{file}:{line}:{column}:{place} {message} ({code})")))?;
        }
    }
    output::note(match faults.len() {
        0 if !readable => "chips: not everything could be read".to_owned(),
        0 => format!("chips: {}, no fault", count(events, "event")),
        many => format!("chips: {} in {}", count(many, "fault"), count(events, "event")),
    });
    Ok(if ok { exit::DONE.into() } else { exit::FAILED.into() })
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Checks the events of one file.
struct Checker<'f> {
    file: &'f str,
    write: bool,
    events: usize,
    faults: &'f mut Vec<Found>,
}

impl Checker<'_> {
    fn check(&mut self, bytes: &[u8], lines: bool) {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let (line, column) = place::line_and_column(&before, before.len());
                return self.found(line, column, "", "malformed_json", "a byte that is no UTF-8");
            }
        };
        let whole = if lines { None } else { Some(json::read(bytes)) };
        match whole {
            Some(Ok(Value::Array(events))) => {
                for (index, event) in events.iter().enumerate() {
                    self.event(event, text, 0, &format!("/{index}"));
                }
            }
            Some(Ok(event)) => self.event(&event, text, 0, ""),
            Some(Err(fault)) if !looks_like_lines(text) => {
                self.events += 1;
                self.malformed(&fault, 0);
            }
            None | Some(Err(_)) => {
                for (above, line) in text.split('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                    match json::read(line.as_bytes()) {
                        Ok(event) => self.event(&event, line, above, ""),
                        Err(fault) => {
                            self.events += 1;
                            self.malformed(&fault, above);
                        }
                    }
                }
            }
        }
    }

    /// Checks one event, which stands in `text` at `prefix`; `above` lines stand before the text.
    fn event(&mut self, event: &Value, text: &str, above: usize, prefix: &str) {
        self.events += 1;
        let checked = if self.write { validate::draft(event).map(drop) } else { validate::stored(event).map(drop) };
        for fault in checked.err().unwrap_or_default() {
            let offset = place::find(text, &format!("{prefix}{}", fault.pointer));
            let (line, column) = place::line_and_column(text, offset);
            self.found(above + line, column, &fault.pointer, fault.code.as_str(), &fault.message);
        }
    }

    fn malformed(&mut self, fault: &JsonFault, above: usize) {
        match fault {
            JsonFault::Malformed { message, line, column } => {
                self.found(above + line, *column, "", "malformed_json", message);
            }
            JsonFault::DuplicateKey { key, line, column } => {
                let message = format!("the key {key:?} stands twice in one object");
                self.found(above + line, *column, "", "duplicate_key", &message);
            }
            JsonFault::TooDeep => self.found(above + 1, 1, "", "too_deep", &fault.to_string()),
        }
    }

    fn found(&mut self, line: usize, column: usize, pointer: &str, code: &'static str, message: &str) {
        self.faults.push(Found {
            file: self.file.to_owned(),
            line,
            column,
            pointer: pointer.to_owned(),
            code,
            message: message.to_owned(),
        });
    }
}

/// Whether a text that is no JSON as a whole is meant as one event a line: its first line is an object from brace to
/// brace, perhaps a broken one.
fn looks_like_lines(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    first.starts_with('{') && first.ends_with('}') && lines.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], write: bool) -> (usize, Vec<Found>) {
        let mut faults = Vec::new();
        let mut checker = Checker { file: "f", write, events: 0, faults: &mut faults };
        checker.check(text, false);
        (checker.events, faults)
    }

    fn places(faults: &[Found]) -> Vec<(usize, usize, &str, &str)> {
        faults.iter().map(|found| (found.line, found.column, found.pointer.as_str(), found.code)).collect()
    }

    fn answered(answers: &str) -> String {
        format!(
            r#"{{"v":1,"type":"question.answered","id":"evt_01K4ZQPX000000000000000077","ts":"2026-09-02T14:22:19.004Z","workspace_id":"ws_01K4ZQPX000000000000000001","actor":{{"kind":"system","id":"system"}},"run_id":"run_01K4ZQPX000000000000000005","ask_id":"qst_01K4ZQPX000000000000000009","answers":{answers},"answered_by":"system","answered_at":"2026-09-02T14:29:40.117Z"}}"#
        )
    }

    #[test]
    fn one_event_an_array_and_lines_are_told_apart() {
        let good = answered("[]");
        assert_eq!(check(good.as_bytes(), false), (1, vec![]));
        assert_eq!(check(format!("[{good},\n{good}]").as_bytes(), false), (2, vec![]));
        assert_eq!(check(format!("{good}\n\n{good}\n").as_bytes(), false), (2, vec![]));
        assert_eq!(check(b"[]", false), (0, vec![]));
    }

    #[test]
    fn a_fault_has_its_line_and_column_in_the_file() {
        let bad = answered("[{\"question_id\":\"a\",\"values\":7}]");
        let column = bad.find(":7}").map_or(0, |at| at + 2);
        let expected = vec![(2, column, "/answers/0/values", "wrong_type")];
        let lines = format!("{}\n{bad}\n", answered("[]"));
        assert_eq!(places(&check(lines.as_bytes(), false).1), expected);
        let array = format!("[{},\n{bad}]", answered("[]"));
        assert_eq!(places(&check(array.as_bytes(), false).1), expected);
    }

    #[test]
    fn broken_json_is_placed_whatever_it_is_in() {
        let (events, faults) = check(b"{\n  \"v\": 1,\n  \"v\": 2\n}", false);
        assert_eq!((events, faults[0].line, faults[0].code), (1, 3, "duplicate_key"));
        let lines = format!("{}\n{{\"v\":}}\n{}", answered("[]"), answered("[]"));
        let (events, faults) = check(lines.as_bytes(), false);
        assert_eq!((events, faults.len(), faults[0].line, faults[0].code), (3, 1, 2, "malformed_json"));
        assert_eq!(places(&check(b"{\"v\":1,\n\xFF}", false).1), [(2, 1, "", "malformed_json")]);
        assert_eq!(check(b"", false).1[0].code, "malformed_json");
        assert_eq!(check("[".repeat(100_000).as_bytes(), false).1[0].code, "too_deep");
        assert!(check(b"null", false).1.iter().all(|found| found.code == "wrong_type"));
    }
}
