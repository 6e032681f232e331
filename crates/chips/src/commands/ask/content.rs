//! What is asked, from the arguments or from a file, checked as the server would check it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use chips_protocol::json::{self, JsonFault};
use chips_protocol::{DraftContent, Fault, OnNoAnswer, Question, QuestionAsk, QuestionOption, limits, validate};
use serde_json::{Map, Number, Value, json};

use crate::output;

/// The question's id where the arguments ask it.
const QUESTION_ID: &str = "question";

/// What a `question.ask` says beyond its envelope.
const MEMBERS: [&str; 4] = ["ask_id", "questions", "timeout_seconds", "on_no_answer"];

/// A question as the arguments give it.
#[derive(Debug)]
pub struct Asked<'a> {
    pub prompt: &'a str,
    pub options: &'a [QuestionOption],
    pub multi: bool,
    pub free_text: bool,
    pub default: Option<&'a str>,
}

/// Reads `VALUE=LABEL`; what has no `=` is both.
///
/// # Errors
/// Never; the protocol judges value and label.
pub fn option(text: &str) -> Result<QuestionOption, std::convert::Infallible> {
    let (value, label) = text.split_once('=').unwrap_or((text, text));
    Ok(QuestionOption { value: value.to_owned(), label: label.to_owned(), description: None })
}

/// The content that the arguments give.
pub fn from_arguments(asked: &Asked<'_>) -> Map<String, Value> {
    let question = Question {
        question_id: QUESTION_ID.to_owned(),
        prompt: asked.prompt.to_owned(),
        options: asked.options.to_vec(),
        multi_select: asked.multi.then_some(true),
        allow_free_text: asked.free_text.then_some(true),
        default_value: asked.default.map(str::to_owned),
    };
    Map::from_iter([("questions".to_owned(), json!([question]))])
}

/// The content that a file gives: an object with `questions`, and perhaps `ask_id`, `timeout_seconds` and
/// `on_no_answer`. `-` is standard input.
///
/// # Errors
/// When it can't be read or is no such object, with the place.
pub fn from_file(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let name = || output::one_line(&path.to_string_lossy());
    let mut bytes = Vec::new();
    // One byte more than may be sent: what is longer is refused by its length.
    let limit = limits::BODY_BYTES as u64 + 1;
    let read = if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.with_context(|| format!("can't read {}", name()))?;
    if bytes.len() > limits::BODY_BYTES {
        anyhow::bail!("{} is larger than the 256 KiB that an event may have", name());
    }
    let value = json::read(&bytes).map_err(|fault| {
        let (JsonFault::Malformed { line, column, .. } | JsonFault::DuplicateKey { line, column, .. }) = &fault else {
            return anyhow::anyhow!("{}: {fault}", name());
        };
        anyhow::anyhow!("{}:{line}:{column}: {fault}", name())
    })?;
    let Value::Object(content) = value else {
        anyhow::bail!("{}: it holds no object with `questions`", name());
    };
    if let Some(member) =
        ["v", "type", "id", "actor", "workspace_id", "run_id"].iter().find(|m| content.contains_key(**m))
    {
        anyhow::bail!(
            "{}: `{member}` belongs to a whole event; a file for `chips ask` holds only {}",
            name(),
            MEMBERS.map(|member| format!("`{member}`")).join(", ")
        );
    }
    Ok(content)
}

/// What stands beside the questions in the arguments, and wins over a file.
#[derive(Debug, Default)]
pub struct Beside {
    pub timeout: Option<Number>,
    pub on_no_answer: Option<OnNoAnswer>,
}

impl Beside {
    /// Puts it into the content.
    pub fn put(self, content: &mut Map<String, Value>) {
        if let Some(seconds) = self.timeout {
            content.insert("timeout_seconds".to_owned(), Value::Number(seconds));
        }
        if let Some(policy) = self.on_no_answer {
            content.insert("on_no_answer".to_owned(), json!(policy));
        }
    }
}

/// Checks the content by the protocol's rules, as part of an event whose envelope has no fault.
///
/// # Errors
/// Every fault.
pub fn check(content: Map<String, Value>) -> Result<QuestionAsk, Vec<Fault>> {
    let ulid = "0".repeat(26);
    let mut event = Map::from_iter([
        ("v".to_owned(), json!(1)),
        ("type".to_owned(), json!("question.ask")),
        ("id".to_owned(), json!(format!("evt_{ulid}"))),
        ("workspace_id".to_owned(), json!(format!("ws_{ulid}"))),
        ("actor".to_owned(), json!({ "kind": "harness", "id": format!("hrn_{ulid}") })),
        ("run_id".to_owned(), json!(format!("run_{ulid}"))),
        ("idempotency_key".to_owned(), json!("check")),
    ]);
    event.extend(content);
    match validate::draft(&Value::Object(event))?.content {
        DraftContent::QuestionAsk(content) => Ok(content),
        DraftContent::QuestionAnswered(_) => Err(Vec::new()),
    }
}

/// A fault's place as the person who gave arguments knows it.
pub fn place(pointer: &str) -> String {
    let parts: Vec<&str> = pointer.split('/').skip(1).collect();
    match parts.as_slice() {
        ["questions", "0", "prompt"] => "PROMPT".to_owned(),
        ["questions", "0", "options"] => "-o".to_owned(),
        ["questions", "0", "options", index, member, ..] => {
            let number = index.parse::<usize>().map_or_else(|_| (*index).to_owned(), |index| (index + 1).to_string());
            format!("-o number {number}, its {member}")
        }
        ["questions", "0", "default_value"] => "--default".to_owned(),
        ["timeout_seconds"] => "--timeout".to_owned(),
        ["on_no_answer"] => "--on-no-answer".to_owned(),
        _ => pointer.to_owned(),
    }
}

/// Where a file was given.
pub fn name(path: &PathBuf) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { output::one_line(&path.to_string_lossy()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use chips_protocol::FaultCode;

    use super::*;

    #[test]
    fn an_option_is_split_at_its_first_equals_sign() {
        for (text, value, label) in [
            ("yes=Yes", "yes", "Yes"),
            ("yes", "yes", "yes"),
            ("a=b=c", "a", "b=c"),
            ("=Yes", "", "Yes"),
            ("Yes, now=Yes, now!", "Yes, now", "Yes, now!"),
        ] {
            let option = option(text).unwrap();
            assert_eq!((option.value.as_str(), option.label.as_str()), (value, label), "{text}");
        }
    }

    fn asked(options: &[QuestionOption], default: Option<&str>) -> Map<String, Value> {
        from_arguments(&Asked { prompt: "Ship?", options, multi: false, free_text: false, default })
    }

    #[test]
    fn what_is_not_said_is_not_sent() {
        let options = [option("yes=Yes").unwrap(), option("no").unwrap()];
        assert_eq!(
            Value::Object(asked(&options, None)),
            json!({ "questions": [{ "question_id": "question", "prompt": "Ship?", "options": [
                { "value": "yes", "label": "Yes" }, { "value": "no", "label": "no" },
            ]}]})
        );
    }

    #[test]
    fn faults_are_found_before_anything_is_sent_and_placed_in_the_arguments() {
        let options = [option("yes=Yes").unwrap(), option("yes=yes ").unwrap()];
        let mut content = asked(&options, Some("maybe"));
        Beside { timeout: None, on_no_answer: Some(OnNoAnswer::UseDefault) }.put(&mut content);
        let faults = check(content).unwrap_err();
        let found: Vec<_> = faults.iter().map(|fault| (place(&fault.pointer), fault.code)).collect();
        assert!(found.contains(&("-o number 2, its value".to_owned(), FaultCode::Duplicate)), "{found:?}");
        assert!(found.contains(&("-o number 2, its label".to_owned(), FaultCode::Duplicate)), "{found:?}");
        assert!(found.contains(&("--default".to_owned(), FaultCode::NotAnOption)), "{found:?}");
    }

    #[test]
    fn a_misspelt_member_of_a_file_is_a_fault() {
        let content = json!({ "questions": [], "timeout_second": 60 });
        let faults = check(content.as_object().unwrap().clone()).unwrap_err();
        assert!(faults.iter().any(|fault| fault.code == FaultCode::UnknownField && fault.pointer == "/timeout_second"));
    }
}
