//! What `chips ask` prints when the ask is closed, and how it ends then.

use chips_protocol::QuestionAsk;
use chips_protocol::api::{Ask, AskState};

use crate::commands::answer::words;
use crate::exit::{self, Code};
use crate::output;
use crate::terminal::text;

/// Whether every value that may be chosen can be printed on a line of its own.
pub fn fits_lines(content: &QuestionAsk) -> bool {
    let options = content.questions.iter().flat_map(|question| &question.options);
    !options.map(|option| &option.value).any(|value| value.contains('\n'))
}

/// The chosen values and what was typed, in the order of the questions.
fn values(ask: &Ask) -> Vec<&str> {
    let questions = ask.ask.as_ask().map_or(&[][..], |content| &content.questions);
    let Some(answered) = ask.answer.as_ref().and_then(|event| event.as_answered()) else { return Vec::new() };
    let in_order = questions
        .iter()
        .filter_map(|question| answered.answers.iter().find(|answer| answer.question_id == question.question_id));
    in_order.flat_map(|answer| answer.values.iter().chain(&answer.free_text)).map(String::as_str).collect()
}

/// How the command ends.
pub fn code(ask: &Ask) -> Code {
    let answered = ask.answer.as_ref().and_then(|event| event.as_answered());
    match ask.state {
        AskState::Open => exit::FAILED,
        AskState::Answered | AskState::Settled => exit::DONE,
        AskState::Withdrawn => exit::WITHDRAWN,
        AskState::TimedOut if answered.is_some_and(|answered| !answered.answers.is_empty()) => exit::DONE,
        AskState::TimedOut => exit::TIMED_OUT,
    }
}

/// Prints the answer to standard output, and to standard error how it came about.
///
/// # Errors
/// When standard output can't be written.
pub fn print(ask: &Ask, as_json: bool) -> anyhow::Result<()> {
    output::note(format_args!("chips: {}", words::closed(ask)));
    if as_json {
        return match &ask.answer {
            Some(event) => output::json(event),
            None => Ok(()),
        };
    }
    for value in values(ask) {
        // A program gets the value byte for byte; a terminal must not be steered by it.
        if output::is_terminal() { output::line(text::clean(value))? } else { output::line(value)? }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, from_value, json};

    use super::*;

    fn ask(state: &str, by: Value, answers: Value) -> Ask {
        let option = |value: &str| json!({ "value": value, "label": value.to_uppercase() });
        let envelope = json!({
            "v": 1, "id": "evt_01K4ZQPX000000000000000069", "ts": "2026-09-02T14:22:05.004Z",
            "workspace_id": "ws_01K4ZQPX000000000000000001", "run_id": "run_01K4ZQPX000000000000000005",
            "ask_id": "qst_01K4ZQPX000000000000000009",
        });
        let with = |more: Value| {
            let mut event = envelope.as_object().unwrap().clone();
            event.extend(more.as_object().unwrap().clone());
            Value::Object(event)
        };
        let harness = json!({ "kind": "harness", "id": "hrn_01K4ZQPX000000000000000004" });
        from_value(json!({
            "ask_id": "qst_01K4ZQPX000000000000000009", "state": state, "tier": "active", "deadline": null,
            "asker": { "kind": "harness", "id": "hrn_01K4ZQPX000000000000000004", "name": "Mail\u{1b}bot" },
            "answerer": by, "asker_gone": false, "reachable": true,
            "ask": with(json!({
                "type": "question.ask", "actor": harness, "questions": [
                    { "question_id": "one", "prompt": "1", "options": [option("a"), option("b")] },
                    { "question_id": "two", "prompt": "2", "options": [option("c"), option("d")], "multi_select": true },
                ],
            })),
            "answer": with(json!({
                "type": "question.answered", "actor": harness, "answers": answers,
                "answered_by": "hrn_01K4ZQPX000000000000000004", "answered_at": "2026-09-02T14:22:05.004Z",
            })),
            "option_labels": {}, "late_answers": [], "delivered_at": null, "acknowledged_at": null,
        }))
        .unwrap()
    }

    fn ada() -> Value {
        json!({ "kind": "person", "id": "usr_01K4ZQPX000000000000000003", "name": "Ada" })
    }

    fn both() -> Value {
        json!([
            { "question_id": "two", "values": ["d", "c"], "free_text": "and\u{202e} more" },
            { "question_id": "one", "values": ["b"] },
        ])
    }

    #[test]
    fn values_come_in_the_order_of_the_questions() {
        let answered = ask("answered", ada(), both());
        assert_eq!(values(&answered), ["b", "d", "c", "and\u{202e} more"]);
        assert_eq!(words::closed(&answered), r"Ada answered: B · D, C and “and\u{202e} more”");
    }

    #[test]
    fn each_state_has_its_code_and_its_words() {
        let nothing = || json!([]);
        let system = || json!({ "kind": "system", "id": "system", "name": "Chips" });
        let harness = || json!({ "kind": "harness", "id": "hrn_01K4ZQPX000000000000000004", "name": "Mailbot" });
        for (state, by, answers, code_is, said) in [
            ("answered", ada(), both(), 0, "Ada answered: "),
            ("settled", harness(), both(), 0, "Mailbot settled it without Chips: "),
            ("timed_out", system(), both(), 0, "The time ran out, and the default was taken: "),
            ("timed_out", system(), nothing(), 3, "The time ran out, and nothing was taken."),
            ("withdrawn", harness(), nothing(), 4, "Mailbot took the question back."),
        ] {
            let ask = ask(state, by, answers);
            assert_eq!(code(&ask).0, code_is, "{state}");
            assert!(words::closed(&ask).starts_with(said), "{}", words::closed(&ask));
        }
    }
}
