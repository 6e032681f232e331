//! Asks and answers in words, on one line each and fit for a terminal.

use chips_protocol::api::{Ask, AskState, Named};
use chips_protocol::{OnNoAnswer, ParticipantKind, Question};

use crate::terminal::text;

/// Who it is, by name.
pub fn name(named: &Named) -> String {
    let name = text::one_line(&named.name);
    if name.is_empty() { named.id.to_string() } else { name }
}

/// What was chosen, by the labels that people know: `19 September`, `A, B and “a text”`.
pub fn chosen(question: &Question, values: &[String], free_text: Option<&str>) -> String {
    let label = |value: &String| {
        let label = question.option(value).map_or(value.as_str(), |option| option.label.as_str());
        text::one_line(label)
    };
    let mut parts: Vec<String> = values.iter().map(label).collect();
    parts.extend(free_text.map(|typed| format!("“{}”", text::one_line(typed))));
    match parts.split_last() {
        None => "none of these".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// What the answer to an ask is, over all its questions; nothing where nothing was answered.
pub fn answer(ask: &Ask) -> Option<String> {
    let questions = &ask.ask.as_ask()?.questions;
    let answers = &ask.answer.as_ref()?.as_answered()?.answers;
    let in_order = questions.iter().filter_map(|question| {
        let answer = answers.iter().find(|answer| answer.question_id == question.question_id)?;
        Some(chosen(question, &answer.values, answer.free_text.as_deref()))
    });
    let parts: Vec<String> = in_order.collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// How an ask was closed, and by whom.
pub fn closed(ask: &Ask) -> String {
    let by = ask.answerer.as_ref().map_or_else(|| "somebody".to_owned(), name);
    let answer = answer(ask);
    match (ask.state, answer) {
        (AskState::Open, _) => "It is open.".to_owned(),
        (AskState::TimedOut, Some(answer)) => format!("The time ran out, and the default was taken: {answer}"),
        (AskState::TimedOut, None) => "The time ran out, and nothing was taken.".to_owned(),
        (AskState::Withdrawn, _) => format!("{by} took the question back."),
        (AskState::Settled, Some(answer)) => format!("{by} settled it without Chips: {answer}"),
        (_, answer) => format!("{by} answered: {}", answer.unwrap_or_else(|| "none of these".to_owned())),
    }
}

/// What happens if nobody answers, where there is a time-out.
pub fn silence(ask: &Ask) -> Option<String> {
    let content = ask.ask.as_ask()?;
    ask.deadline?;
    let asker = name(&ask.asker);
    Some(match content.on_no_answer() {
        OnNoAnswer::UseDefault => {
            let defaults = content.questions.iter().filter_map(|question| {
                let value = question.default_value.as_ref()?;
                Some(match question.option(value) {
                    Some(option) => text::one_line(&option.label),
                    None => format!("“{}”", text::one_line(value)),
                })
            });
            let defaults: Vec<String> = defaults.collect();
            format!("If nobody answers, {asker} takes: {}", defaults.join(" · "))
        }
        OnNoAnswer::Cancel => format!("If nobody answers, {asker} gives the work up."),
        OnNoAnswer::Continue => format!("If nobody answers, {asker} goes on without an answer."),
    })
}

/// Whether it is a person.
pub fn is_person(named: &Named) -> bool {
    named.kind == ParticipantKind::Person
}
