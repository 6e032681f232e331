//! An answer against its ask: what it may say, and what is taken when nobody answers.

use chips_protocol::{Answer, AnswerDraft, Fault, FaultCode, OnNoAnswer, QuestionAsk};

use crate::access::Who;

/// Every fault of an answer that only shows beside its ask.
pub(super) fn faults(ask: &QuestionAsk, answer: &AnswerDraft, who: Who) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |pointer: String, code, message: String| faults.push(Fault::new(pointer, code, message));

    if let Who::Person(_) = who {
        if answer.answers.is_empty() {
            fault(
                "/answers".into(),
                FaultCode::TooFew,
                "answer at least one question; only the harness that asked withdraws with `[]`".into(),
            );
        }
        if answer.timed_out {
            fault(
                "/timed_out".into(),
                FaultCode::NotAllowed,
                "only the harness that asked says that a default was taken".into(),
            );
        }
    }
    for (at, entry) in answer.answers.iter().enumerate() {
        let place = format!("/answers/{at}");
        let Some(question) = ask.question(&entry.question_id) else {
            fault(
                format!("{place}/question_id"),
                FaultCode::UnknownValue,
                "no question of this ask has this id".into(),
            );
            continue;
        };
        for (nth, value) in entry.values.iter().enumerate() {
            if question.option(value).is_none() {
                let offered: Vec<_> = question.options.iter().map(|option| format!("{:?}", option.value)).collect();
                fault(
                    format!("{place}/values/{nth}"),
                    FaultCode::NotAnOption,
                    format!("this question offers {}", offered.join(", ")),
                );
            }
        }
        if entry.free_text.is_some() && !question.free_text() {
            fault(format!("{place}/free_text"), FaultCode::NotAllowed, "this question takes no free text".into());
        }
        if question.multi() {
            continue;
        }
        if entry.values.len() > 1 {
            fault(format!("{place}/values"), FaultCode::TooMany, "this question takes one option".into());
        }
        match (&entry.free_text, entry.values.is_empty()) {
            (None, true) => {
                fault(
                    format!("{place}/values"),
                    FaultCode::TooFew,
                    "choose one option, or leave the question out".into(),
                );
            }
            (Some(_), false) => {
                fault(
                    format!("{place}/free_text"),
                    FaultCode::NotAllowed,
                    "this question takes either one option or free text, not both".into(),
                );
            }
            _ => {}
        }
    }
    faults
}

/// What Chips takes when the time-out passes: with `use_default` one entry for each question that has a default,
/// else nothing.
pub(super) fn defaults(ask: &QuestionAsk) -> Vec<Answer> {
    if ask.on_no_answer() != OnNoAnswer::UseDefault {
        return Vec::new();
    }
    ask.questions
        .iter()
        .filter_map(|question| {
            let default = question.default_value.clone()?;
            let (values, free_text) =
                if question.option(&default).is_some() { (vec![default], None) } else { (Vec::new(), Some(default)) };
            Some(Answer { question_id: question.question_id.clone(), values, free_text })
        })
        .collect()
}
