//! What is left of texts that are erased: events that say when and by whom something was asked and answered, and no more.
//!
//! An erased event is still an event of the protocol: what must be unique stays unique, an answer still names an option of
//! its question, and which option was chosen can be told by its place. Erasing what was erased changes nothing.
//!
//! A client may write `[erased]` as well. So what a text says is never enough to take it for erased: it is told by what is kept
//! of erasures, and only what says `[erased]` needs to be looked up there.

use chips_protocol::{Answer, Content, Event, QuestionAsk};

/// What stands where a text was erased. Where texts must differ, a space and a number from 1 follow.
pub const ERASED: &str = "[erased]";

/// The text for the `nth` (from 0) of several that must differ.
fn numbered(nth: usize) -> String {
    format!("{ERASED} {}", nth + 1)
}

/// Whether a text says that it was erased.
pub fn says_erased(text: &str) -> bool {
    text.strip_prefix(ERASED).is_some_and(|rest| {
        let number = rest.strip_prefix(' ').unwrap_or_default();
        rest.is_empty() || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Whether an event says that texts of it were erased: all of an ask's, or of an answer at least what was typed. Where it does not,
/// none were.
pub fn event_says_erased(event: &Event) -> bool {
    match &event.content {
        Content::QuestionAsk(ask) => {
            ask.questions.iter().all(|question| says_erased(&question.prompt) && says_erased(&question.question_id))
        }
        Content::QuestionAnswered(answered) => answered
            .answers
            .iter()
            .any(|answer| says_erased(&answer.question_id) || answer.free_text.as_deref().is_some_and(says_erased)),
    }
}

/// Erases every text of an ask: prompts, labels, values, descriptions, defaults and question ids. How many questions and
/// options there are stays, and which default and time-out.
pub fn ask(ask: &mut QuestionAsk) {
    for (nth, question) in ask.questions.iter_mut().enumerate() {
        let default = question.default_value.as_ref();
        let default = default.map(|default| question.options.iter().position(|option| option.value == *default));
        question.default_value = default.map(|place| place.map_or_else(|| ERASED.to_owned(), numbered));
        question.question_id = numbered(nth);
        question.prompt = ERASED.to_owned();
        for (nth, option) in question.options.iter_mut().enumerate() {
            option.value = numbered(nth);
            option.label = numbered(nth);
            if let Some(description) = &mut option.description {
                *description = ERASED.to_owned();
            }
        }
    }
}

/// Erases every text of answers to an ask, which is given as it was: the names of questions and options become those that
/// [`ask()`] gives them.
pub fn answers(ask: &QuestionAsk, answers: &mut [Answer]) {
    for (nth, answer) in answers.iter_mut().enumerate() {
        let place = ask.questions.iter().position(|question| question.question_id == answer.question_id);
        let options = place.map(|place| ask.questions[place].options.as_slice()).unwrap_or_default();
        for (nth, value) in answer.values.iter_mut().enumerate() {
            // No answer that was accepted names anything else than an option; if one does, it still becomes unique.
            let place = options.iter().position(|option| option.value == *value);
            *value = numbered(place.unwrap_or(options.len() + nth));
        }
        answer.question_id = numbered(place.unwrap_or(ask.questions.len() + nth));
    }
    free_text(answers);
}

/// Erases what a person typed in answers, and nothing else of them.
pub fn free_text(answers: &mut [Answer]) {
    for text in answers.iter_mut().filter_map(|answer| answer.free_text.as_mut()) {
        *text = ERASED.to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_that_it_was_erased_is_told_from_what_does_not() {
        for erased in ["[erased]", "[erased] 1", "[erased] 12"] {
            assert!(says_erased(erased), "{erased}");
        }
        for text in ["", "erased", "[erased] ", "[erased]1", "[erased] x", "[erased] 1 ", " [erased]", "[Erased]"] {
            assert!(!says_erased(text), "{text}");
        }
    }
}
