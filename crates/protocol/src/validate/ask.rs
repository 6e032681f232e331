//! The checks of a `question.ask`.

use serde_json::Value;

use super::FaultCode;
use super::checks::{Checks, Field, Object, TextRule};
use super::event::ask_id;
use crate::event::{OnNoAnswer, Question, QuestionAsk, QuestionOption};
use crate::limits;
use crate::text::{as_drawn, fold};

/// The fields of the content, in the order of the protocol's table.
pub(super) const FIELDS: [&str; 4] = ["ask_id", "questions", "timeout_seconds", "on_no_answer"];
const QUESTION: [&str; 6] = ["question_id", "prompt", "options", "multi_select", "allow_free_text", "default_value"];
const OPTION: [&str; 3] = ["value", "label", "description"];

pub(super) const QUESTION_ID: TextRule = TextRule::exact(limits::QUESTION_ID);
pub(super) const VALUE: TextRule = TextRule::exact(limits::VALUE);
pub(super) const FREE_TEXT: TextRule = TextRule::prose(limits::FREE_TEXT);
const LABEL: TextRule = TextRule::exact(limits::LABEL);
const PROMPT: TextRule = TextRule::prose(limits::PROMPT);
const DESCRIPTION: TextRule = TextRule { max: limits::DESCRIPTION, blank: true, bidi: true };

pub(super) fn content(checks: &mut Checks, object: Object<'_, '_>) -> Option<QuestionAsk> {
    let ask_id = ask_id(checks, object);
    let asked = checks.required(object, "questions");
    let questions = asked.and_then(|field| questions(checks, field));
    let timeout_seconds = checks.optional(object, "timeout_seconds").and_then(|field| checks.seconds(field));
    let on_no_answer = checks.optional(object, "on_no_answer").and_then(|field| {
        let chosen = checks.word(field, &OnNoAnswer::ALL.map(|choice| (choice.as_str(), choice)));
        if chosen == Some(OnNoAnswer::UseDefault) && asked.is_some_and(|field| has_no_default(field.value)) {
            let message = "`use_default` needs a `default_value` on at least one question";
            checks.fault(&field.place, FaultCode::NoDefault, message);
        }
        chosen
    });
    Some(QuestionAsk { ask_id: ask_id?, questions: questions?, timeout_seconds, on_no_answer })
}

/// Whether no question names a default. Where the questions can't be told apart from something else, they have
/// their own fault and this one would only guess.
fn has_no_default(questions: &Value) -> bool {
    questions.as_array().is_some_and(|questions| {
        questions
            .iter()
            .all(|question| question.as_object().is_some_and(|question| !question.contains_key("default_value")))
    })
}

fn questions(checks: &mut Checks, field: Field<'_, '_>) -> Option<Vec<Question>> {
    let items = checks.list(field, limits::QUESTIONS_MIN, limits::QUESTIONS_MAX, "questions")?;
    let mut questions = Vec::with_capacity(items.len());
    for (index, value) in items.iter().enumerate() {
        let earlier = items[..index].iter().filter_map(|other| other.get("question_id")?.as_str());
        questions.push(question(checks, Field { value, place: field.place.item(index) }, earlier));
    }
    questions.into_iter().collect()
}

fn question<'v>(
    checks: &mut Checks,
    field: Field<'v, '_>,
    mut earlier_ids: impl Iterator<Item = &'v str>,
) -> Option<Question> {
    let object = checks.object(&field)?;
    let question_id = checks.required(object, "question_id").and_then(|field| {
        let id = checks.text(field, &QUESTION_ID);
        if field.value.as_str().is_some_and(|id| earlier_ids.any(|other| other == id)) {
            let message = "an earlier question of this ask has this `question_id`; each needs its own";
            checks.fault(&field.place, FaultCode::Duplicate, message);
        }
        id
    });
    let prompt = checks.required(object, "prompt").and_then(|field| checks.text(field, &PROMPT));
    let offered = checks.required(object, "options");
    let options = offered.and_then(|field| options(checks, field));
    let multi_select = checks.optional(object, "multi_select").and_then(|field| checks.boolean(field));
    let allow_free_text = checks.optional(object, "allow_free_text").and_then(|field| checks.boolean(field));
    let default_value = checks.optional(object, "default_value").and_then(|field| default_value(checks, field, object));
    checks.unknown_fields(object, &QUESTION);
    Some(Question {
        question_id: question_id?.to_owned(),
        prompt: prompt?.to_owned(),
        options: options?,
        multi_select,
        allow_free_text,
        default_value: default_value.map(str::to_owned),
    })
}

fn options(checks: &mut Checks, field: Field<'_, '_>) -> Option<Vec<QuestionOption>> {
    let items = checks.list(field, limits::OPTIONS_MIN, limits::OPTIONS_MAX, "options")?;
    let mut options = Vec::with_capacity(items.len());
    // How the labels so far read, folded and as drawn.
    let mut readings: Vec<(String, String)> = Vec::with_capacity(items.len());
    for (index, value) in items.iter().enumerate() {
        let earlier = items[..index].iter().filter_map(|other| other.get("value")?.as_str());
        options.push(option(checks, Field { value, place: field.place.item(index) }, earlier, &mut readings));
    }
    options.into_iter().collect()
}

fn option<'v>(
    checks: &mut Checks,
    field: Field<'v, '_>,
    mut earlier_values: impl Iterator<Item = &'v str>,
    readings: &mut Vec<(String, String)>,
) -> Option<QuestionOption> {
    let object = checks.object(&field)?;
    let value = checks.required(object, "value").and_then(|field| {
        let value = checks.text(field, &VALUE);
        if field.value.as_str().is_some_and(|value| earlier_values.any(|other| other == value)) {
            let message = "an earlier option of this question has this `value`; each needs its own";
            checks.fault(&field.place, FaultCode::Duplicate, message);
        }
        value
    });
    let label = checks.required(object, "label").and_then(|field| {
        // Two labels that are refused for themselves need no comparison.
        let label = checks.text(field, &LABEL)?;
        let reading = (fold(label), as_drawn(label));
        if readings.iter().any(|other| other.0 == reading.0 || other.1 == reading.1) {
            let message = "this label reads like that of an earlier option; people could not tell the two apart";
            checks.fault(&field.place, FaultCode::Duplicate, message);
        } else {
            readings.push(reading);
        }
        Some(label)
    });
    let description = checks.optional(object, "description").and_then(|field| checks.text(field, &DESCRIPTION));
    checks.unknown_fields(object, &OPTION);
    Some(QuestionOption {
        value: value?.to_owned(),
        label: label?.to_owned(),
        description: description.map(str::to_owned),
    })
}

/// A default is an option's value, or free text where that is allowed.
fn default_value<'v>(checks: &mut Checks, field: Field<'v, '_>, question: Object<'_, '_>) -> Option<&'v str> {
    let text = checks.string(field)?;
    let values: Option<Vec<&str>> = question
        .map
        .get("options")
        .and_then(Value::as_array)
        .and_then(|options| options.iter().map(|option| option.get("value")?.as_str()).collect());
    // Where the options can't be read they have their own fault, and whether the default is one of them is not known.
    if values.as_ref().is_none_or(|values| values.contains(&text)) {
        return Some(text);
    }
    match question.map.get("allow_free_text") {
        Some(Value::Bool(true)) => checks.text(field, &FREE_TEXT),
        None | Some(Value::Bool(false)) => {
            let message = "`default_value` is no option's `value`, and the question does not allow free text";
            checks.fault(&field.place, FaultCode::NotAnOption, message);
            None
        }
        Some(_) => Some(text),
    }
}
