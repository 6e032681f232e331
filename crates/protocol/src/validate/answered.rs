//! The checks of a `question.answered`, as far as they need no look at its ask.

use super::FaultCode;
use super::ask::{FREE_TEXT, QUESTION_ID, VALUE};
use super::checks::{Checks, Field, Object};
use super::event::{Form, ask_id, written_by_chips};
use crate::event::{Answer, AnswerDraft, QuestionAnswered};
use crate::id::{AskId, ParticipantId};
use crate::limits;
use crate::time::Timestamp;

/// The fields of the content, in the order of the protocol's table.
pub(super) const FIELDS: [&str; 5] = ["ask_id", "answers", "answered_by", "answered_at", "timed_out"];
const ANSWER: [&str; 3] = ["question_id", "values", "free_text"];

struct Content {
    ask_id: Option<AskId>,
    answers: Option<Vec<Answer>>,
    answered_by: Option<ParticipantId>,
    answered_at: Option<Timestamp>,
    timed_out: Option<bool>,
}

pub(super) fn draft(checks: &mut Checks, object: Object<'_, '_>) -> Option<AnswerDraft> {
    let content = content(checks, object, Form::Draft);
    Some(AnswerDraft {
        ask_id: content.ask_id?,
        answers: content.answers?,
        timed_out: content.timed_out.unwrap_or(false),
    })
}

pub(super) fn stored(checks: &mut Checks, object: Object<'_, '_>) -> Option<QuestionAnswered> {
    let content = content(checks, object, Form::Stored);
    Some(QuestionAnswered {
        ask_id: content.ask_id?,
        answers: content.answers?,
        answered_by: content.answered_by?,
        answered_at: content.answered_at?,
        timed_out: content.timed_out,
    })
}

fn content(checks: &mut Checks, object: Object<'_, '_>, form: Form) -> Content {
    Content {
        ask_id: ask_id(checks, object),
        answers: checks.required(object, "answers").and_then(|field| answers(checks, field)),
        answered_by: written_by_chips(checks, object, "answered_by", form, Checks::id),
        answered_at: written_by_chips(checks, object, "answered_at", form, Checks::time),
        timed_out: checks.optional(object, "timed_out").and_then(|field| checks.boolean(field)),
    }
}

fn answers(checks: &mut Checks, field: Field<'_, '_>) -> Option<Vec<Answer>> {
    // An ask has no more questions than this, and each is answered at most once.
    let items = checks.list(field, 0, limits::QUESTIONS_MAX, "entries")?;
    let mut answers = Vec::with_capacity(items.len());
    for (index, value) in items.iter().enumerate() {
        let earlier = items[..index].iter().filter_map(|other| other.get("question_id")?.as_str());
        answers.push(answer(checks, Field { value, place: field.place.item(index) }, earlier));
    }
    answers.into_iter().collect()
}

fn answer<'v>(
    checks: &mut Checks,
    field: Field<'v, '_>,
    mut earlier_ids: impl Iterator<Item = &'v str>,
) -> Option<Answer> {
    let object = checks.object(&field)?;
    let question_id = checks.required(object, "question_id").and_then(|field| {
        let id = checks.text(field, &QUESTION_ID);
        if field.value.as_str().is_some_and(|id| earlier_ids.any(|other| other == id)) {
            let message = "an earlier entry answers this question; each question is answered at most once";
            checks.fault(&field.place, FaultCode::Duplicate, message);
        }
        id
    });
    let values = checks.required(object, "values").and_then(|field| values(checks, field));
    let free_text = checks.optional(object, "free_text").and_then(|field| checks.text(field, &FREE_TEXT));
    checks.unknown_fields(object, &ANSWER);
    Some(Answer { question_id: question_id?.to_owned(), values: values?, free_text: free_text.map(str::to_owned) })
}

fn values(checks: &mut Checks, field: Field<'_, '_>) -> Option<Vec<String>> {
    let items = checks.list(field, 0, limits::OPTIONS_MAX, "values")?;
    let mut values = Vec::with_capacity(items.len());
    for (index, value) in items.iter().enumerate() {
        let place = field.place.item(index);
        let text = checks.text(Field { value, place }, &VALUE);
        if value.is_string() && items[..index].contains(value) {
            checks.fault(&place, FaultCode::Duplicate, "this value stands twice; name each once");
        }
        values.push(text.map(str::to_owned));
    }
    values.into_iter().collect()
}
