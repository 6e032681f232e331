//! What OpenCode says and wants to hear: the questions of version 1 (`question.asked`, `POST /question/{id}/reply`) and
//! the forms of version 2 (`form.created`, `POST /api/session/{id}/form/{id}/reply`), and how they are Chips' questions.

use chips_protocol::{Answer, Question, QuestionOption, limits};
use serde_json::{Map, Value, json};

/// Which of OpenCode's two ways of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialog {
    /// Version 1: questions by their place, answers are lists of labels.
    Question,
    /// Version 2: fields by their key, with values of a type.
    Form,
}

/// A question that is open in OpenCode; it may hold several.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// OpenCode's identifier of it, `que_…` or `frm_…`.
    pub id: String,
    /// The session that asks.
    pub session: String,
    /// Where the session works; a reply must name it.
    pub directory: Option<String>,
    /// How OpenCode asks it.
    pub dialog: Dialog,
    /// The request or form as OpenCode says it.
    said: Value,
}

/// What an event of OpenCode's says.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A question is open.
    Asked(Pending),
    /// It was answered, here or in OpenCode's own dialog.
    Answered {
        /// The question.
        id: String,
        /// A list of texts for each question, or an object of values by field.
        given: Value,
    },
    /// It was dismissed.
    Dismissed {
        /// The question.
        id: String,
    },
    /// A session is gone, and all that it asked.
    SessionGone {
        /// The session.
        id: String,
    },
}

/// One question of a [`Pending`], and what its answer looks like to OpenCode.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The question as Chips asks it.
    pub question: Question,
    key: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Texts,
    Flag,
}

fn text(of: &Value, key: &str) -> Option<String> {
    of.get(key).and_then(Value::as_str).map(str::to_owned)
}

impl Pending {
    /// A question or a form as OpenCode lists or announces it; nothing where it has no identifier.
    pub fn read(dialog: Dialog, said: &Value, directory: Option<&str>) -> Option<Self> {
        Some(Self {
            id: text(said, "id")?,
            session: text(said, "sessionID")?,
            directory: directory.map(str::to_owned),
            dialog,
            said: said.clone(),
        })
    }

    /// Its questions under the ids `q0`, `q1`, …
    ///
    /// # Errors
    /// Why Chips can't carry them; then they stay in OpenCode's own dialog.
    pub fn fields(&self, default_first: bool) -> Result<Vec<Field>, String> {
        let fields = match self.dialog {
            Dialog::Question => self.each("questions", question)?,
            Dialog::Form if self.said.get("mode").and_then(Value::as_str) == Some("form") => {
                self.each("fields", field)?
            }
            Dialog::Form => return Err("it wants a page to be opened".to_owned()),
        };
        if fields.is_empty() {
            return Err("it has no questions".to_owned());
        }
        fields
            .into_iter()
            .map(|mut field| {
                let count = field.question.options.len();
                if count < limits::OPTIONS_MIN {
                    return Err(format!("{} has fewer than two options", field.question.question_id));
                }
                if count > limits::OPTIONS_MAX {
                    return Err(format!("{} has {count} options, and Chips shows four", field.question.question_id));
                }
                if default_first {
                    field.question.default_value = Some(field.question.options[0].value.clone());
                }
                Ok(field)
            })
            .collect()
    }

    fn each(&self, key: &str, read: fn(usize, &Value) -> Result<Field, String>) -> Result<Vec<Field>, String> {
        let list = self.said.get(key).and_then(Value::as_array).ok_or("it has no questions")?;
        list.iter().enumerate().map(|(at, said)| read(at, said)).collect()
    }

    /// The body of a reply with these answers; a question without one is left unanswered.
    pub fn reply(&self, fields: &[Field], answers: &[Answer]) -> Value {
        let answer = |field: &Field| answers.iter().find(|answer| answer.question_id == field.question.question_id);
        match self.dialog {
            Dialog::Question => {
                let lists: Vec<_> =
                    fields.iter().map(|field| answer(field).map_or(vec![], |one| field.texts(one))).collect();
                json!({ "answers": lists })
            }
            Dialog::Form => {
                let values: Map<String, Value> =
                    fields.iter().filter_map(|field| Some((field.key.clone(), field.value(answer(field)?)?))).collect();
                json!({ "answer": values })
            }
        }
    }
}

fn options(said: &Value, value_key: &str) -> Result<Vec<QuestionOption>, String> {
    let list = said.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .map(|option| {
            let label = text(option, "label").ok_or("an option has no label")?;
            let value = text(option, value_key).ok_or("an option has no value")?;
            Ok(QuestionOption {
                value,
                label,
                description: text(option, "description").filter(|words| !words.is_empty()),
            })
        })
        .collect()
}

/// A question of version 1: the label is the value, byte for byte, and the person may type unless `custom` says no.
fn question(at: usize, said: &Value) -> Result<Field, String> {
    let multiple = said.get("multiple").and_then(Value::as_bool) == Some(true);
    Ok(Field {
        question: Question {
            question_id: format!("q{at}"),
            prompt: text(said, "question").ok_or("a question has no text")?,
            options: options(said, "label")?,
            multi_select: multiple.then_some(true),
            allow_free_text: Some(said.get("custom").and_then(Value::as_bool) != Some(false)),
            default_value: None,
        },
        key: format!("q{at}"),
        kind: if multiple { Kind::Texts } else { Kind::Text },
    })
}

/// What a field of a form may hold besides its options. Chips can't hold these for OpenCode, and an answer that breaks
/// one would be refused after a person gave it.
const RULES: [&str; 7] = ["when", "format", "minLength", "maxLength", "pattern", "minItems", "maxItems"];

/// A field of a form of version 2. The person may type where `custom` says so.
fn field(at: usize, said: &Value) -> Result<Field, String> {
    let key = text(said, "key").ok_or("a field has no key")?;
    if let Some(rule) = RULES.iter().find(|rule| said.get(**rule).is_some_and(|value| *value != json!([]))) {
        return Err(format!("its field {key} has a rule of its own ({rule})"));
    }
    let (kind, options, custom) = match said.get("type").and_then(Value::as_str) {
        Some("string") => (Kind::Text, options(said, "value")?, true),
        Some("multiselect") => (Kind::Texts, options(said, "value")?, true),
        Some("boolean") => {
            let option = |value: &str, label: &str| QuestionOption {
                value: value.to_owned(),
                label: label.to_owned(),
                description: None,
            };
            (Kind::Flag, vec![option("true", "Yes"), option("false", "No")], false)
        }
        other => return Err(format!("its field {key} is of the type {}", other.unwrap_or("unknown"))),
    };
    let custom = custom && said.get("custom").and_then(Value::as_bool) == Some(true);
    Ok(Field {
        question: Question {
            question_id: format!("q{at}"),
            prompt: text(said, "description").or_else(|| text(said, "title")).unwrap_or_else(|| key.clone()),
            options,
            multi_select: (kind == Kind::Texts).then_some(true),
            allow_free_text: Some(custom),
            default_value: None,
        },
        key,
        kind,
    })
}

impl Field {
    /// The texts of an answer. "None of these" is a choice, and must not read as a question left out: where OpenCode
    /// takes any text, it is said in words.
    fn texts(&self, answer: &Answer) -> Vec<String> {
        let mut texts = answer.values.clone();
        texts.extend(answer.free_text.clone());
        if texts.is_empty() && self.question.free_text() {
            texts.push("None of these".to_owned());
        }
        texts
    }

    fn value(&self, answer: &Answer) -> Option<Value> {
        let texts = self.texts(answer);
        match self.kind {
            Kind::Texts => Some(json!(texts)),
            Kind::Text => texts.into_iter().next().map(Value::String),
            Kind::Flag => texts.first().map(|text| Value::Bool(text == "true")),
        }
    }

    /// The answer that was given in OpenCode, as Chips has it; nothing where the question was left out, or where the
    /// contract has no room for it.
    fn answered(&self, given: &Value) -> Option<Answer> {
        let texts: Vec<String> = match given {
            Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Value::String(one) => vec![one.clone()],
            Value::Bool(flag) => vec![flag.to_string()],
            _ => return None,
        };
        let (mut values, mut typed) = (Vec::new(), Vec::new());
        for text in texts.into_iter().filter(|text| !chips_protocol::text::is_blank(text)) {
            if self.question.option(&text).is_none() {
                typed.push(text);
            } else if !values.contains(&text) {
                values.push(text);
            }
        }
        if !self.question.multi() && values.len() + typed.len() > 1 {
            // One answer is what the question has room for; more than one is what was typed.
            typed.splice(0..0, values.drain(..));
        }
        let free_text = (!typed.is_empty()).then(|| typed.join(", "));
        if (free_text.is_some() && !self.question.free_text()) || (values.is_empty() && free_text.is_none()) {
            return None;
        }
        Some(Answer { question_id: self.question.question_id.clone(), values, free_text })
    }
}

/// The answers that were given in OpenCode, as Chips has them.
pub fn answered(fields: &[Field], given: &Value) -> Vec<Answer> {
    fields
        .iter()
        .enumerate()
        .filter_map(|(at, field)| field.answered(given.get(at).or_else(|| given.get(&field.key))?))
        .collect()
}

impl Heard {
    /// Reads an event: its type, and what it says (`properties` in version 1, `data` in version 2). Most events are about
    /// other things.
    pub fn read(event: &Value, directory: Option<&str>) -> Option<Self> {
        let kind = event.get("type")?.as_str()?;
        let said = event.get("properties").or_else(|| event.get("data"))?;
        Some(match kind {
            "question.asked" => Self::Asked(Pending::read(Dialog::Question, said, directory)?),
            "question.replied" => Self::Answered { id: text(said, "requestID")?, given: said.get("answers")?.clone() },
            "question.rejected" => Self::Dismissed { id: text(said, "requestID")? },
            "form.created" => Self::Asked(Pending::read(Dialog::Form, said.get("form")?, directory)?),
            "form.replied" => Self::Answered { id: text(said, "id")?, given: said.get("answer")?.clone() },
            "form.cancelled" => Self::Dismissed { id: text(said, "id")? },
            "session.deleted" => {
                let id = text(said, "sessionID").or_else(|| text(said.get("info")?, "id"))?;
                Self::SessionGone { id }
            }
            _ => return None,
        })
    }
}

/// Whether OpenCode gave a session this title before it knew what the session is about.
pub fn is_placeholder(title: &str) -> bool {
    ["New session - ", "Child session - "].iter().any(|start| title.starts_with(start)) || title.trim().is_empty()
}

#[cfg(test)]
mod tests;
