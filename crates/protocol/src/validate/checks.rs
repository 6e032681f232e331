//! What the checks of every event share: walking an object field by field, and collecting faults.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Number, Value};

use super::{Fault, FaultCode};
use crate::limits;
use crate::text::{is_bidi_control, is_blank, is_forbidden_control};
use crate::time::Timestamp;

/// A place in a document, as a chain up to its root: no pointer is written before there is a fault.
#[derive(Clone, Copy)]
pub(super) struct Place<'p>(Option<(&'p Place<'p>, Step<'p>)>);

#[derive(Clone, Copy)]
enum Step<'p> {
    Member(&'p str),
    Item(usize),
}

impl<'p> Place<'p> {
    pub(super) const ROOT: Place<'static> = Place(None);

    pub(super) fn member(&'p self, name: &'p str) -> Self {
        Place(Some((self, Step::Member(name))))
    }

    pub(super) fn item(&'p self, index: usize) -> Self {
        Place(Some((self, Step::Item(index))))
    }

    /// What the message calls the place: the field's name, or the field whose item it is.
    fn name(&self) -> Cow<'p, str> {
        match self.0 {
            None => "the document".into(),
            Some((_, Step::Member(name))) => format!("`{name}`").into(),
            Some((list, Step::Item(_))) => format!("an item of {}", list.name()).into(),
        }
    }
}

impl fmt::Display for Place<'_> {
    /// The JSON pointer (RFC 6901).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some((parent, Step::Item(index))) => write!(f, "{parent}/{index}"),
            Some((parent, Step::Member(name))) => {
                write!(f, "{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
            }
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Field<'v, 'p> {
    pub(super) value: &'v Value,
    pub(super) place: Place<'p>,
}

/// An object and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Object<'v, 'p> {
    pub(super) map: &'v Map<String, Value>,
    pub(super) place: &'p Place<'p>,
}

/// What a text must keep to, beside having no control characters.
pub(super) struct TextRule {
    /// In Unicode scalar values.
    pub(super) max: usize,
    /// Whether it may be white space and zero-width characters alone.
    pub(super) blank: bool,
    /// Whether it may hold bidirectional controls.
    pub(super) bidi: bool,
}

impl TextRule {
    /// A text that stands for something or is tapped: never blank, never turned round.
    pub(super) const fn exact(max: usize) -> Self {
        Self { max, blank: false, bidi: false }
    }

    /// A text that is read: never blank.
    pub(super) const fn prose(max: usize) -> Self {
        Self { max, blank: false, bidi: true }
    }
}

/// The faults found so far. Each check returns what it has checked, or nothing where it found a fault.
#[derive(Default)]
pub(super) struct Checks {
    faults: Vec<Fault>,
}

impl Checks {
    pub(super) fn fault(&mut self, place: &Place<'_>, code: FaultCode, message: impl Into<String>) {
        if self.faults.len() < limits::FAULTS {
            self.faults.push(Fault::new(place.to_string(), code, message));
        }
    }

    /// What was checked where there is no fault. `typed` is there then: a check that returns nothing has told why.
    pub(super) fn finish<T>(self, typed: Option<T>) -> Result<T, Vec<Fault>> {
        match typed {
            Some(typed) if self.faults.is_empty() => Ok(typed),
            _ => Err(self.faults),
        }
    }

    fn wrong_type(&mut self, field: Field<'_, '_>, wanted: &str) {
        let message = format!("{} must be {wanted}, not {}", field.place.name(), type_name(field.value));
        self.fault(&field.place, FaultCode::WrongType, message);
    }

    pub(super) fn object<'v, 'p>(&mut self, field: &'p Field<'v, 'p>) -> Option<Object<'v, 'p>> {
        match field.value {
            Value::Object(map) => Some(Object { map, place: &field.place }),
            _ => {
                self.wrong_type(*field, "an object");
                None
            }
        }
    }

    /// The items of a list, and a fault where they are too few or too many. Of too many only the first ones are
    /// returned: the rest has its fault already.
    pub(super) fn list<'v>(&mut self, field: Field<'v, '_>, min: usize, max: usize, what: &str) -> Option<&'v [Value]> {
        let Value::Array(items) = field.value else {
            self.wrong_type(field, "an array");
            return None;
        };
        let count = items.len();
        if count < min {
            let message = format!("{} holds {count} {what}; at least {min} are needed", field.place.name());
            self.fault(&field.place, FaultCode::TooFew, message);
        } else if count > max {
            let message = format!("{} holds {count} {what}; at most {max} are allowed", field.place.name());
            self.fault(&field.place, FaultCode::TooMany, message);
        }
        Some(&items[..count.min(max)])
    }

    /// A field that must be there.
    pub(super) fn required<'v, 'p>(&mut self, object: Object<'v, 'p>, name: &'p str) -> Option<Field<'v, 'p>> {
        let field = self.optional(object, name);
        if field.is_none() {
            self.fault(&object.place.member(name), FaultCode::Required, format!("`{name}` is missing"));
        }
        field
    }

    /// A field that may be left out.
    pub(super) fn optional<'v, 'p>(&mut self, object: Object<'v, 'p>, name: &'p str) -> Option<Field<'v, 'p>> {
        object.map.get(name).map(|value| Field { value, place: object.place.member(name) })
    }

    pub(super) fn string<'v>(&mut self, field: Field<'v, '_>) -> Option<&'v str> {
        let text = field.value.as_str();
        if text.is_none() {
            self.wrong_type(field, "a string");
        }
        text
    }

    pub(super) fn boolean(&mut self, field: Field<'_, '_>) -> Option<bool> {
        let value = field.value.as_bool();
        if value.is_none() {
            self.wrong_type(field, "true or false");
        }
        value
    }

    pub(super) fn text<'v>(&mut self, field: Field<'v, '_>, rule: &TextRule) -> Option<&'v str> {
        let text = self.string(field)?;
        self.text_rule(&field.place, text, rule).then_some(text)
    }

    /// Whether a text keeps to a rule; the faults where not.
    pub(super) fn text_rule(&mut self, place: &Place<'_>, text: &str, rule: &TextRule) -> bool {
        let before = self.faults.len();
        // No text has more characters than bytes.
        if text.len() > rule.max {
            let count = text.chars().count();
            if count > rule.max {
                let message = format!("{} is {count} characters long; at most {} are allowed", place.name(), rule.max);
                self.fault(place, FaultCode::TooLong, message);
            }
        }
        if !rule.blank && is_blank(text) {
            let message = format!("{} is blank; it needs something to read", place.name());
            self.fault(place, FaultCode::Empty, message);
        }
        let forbidden = |c: char| is_forbidden_control(c) || (!rule.bidi && is_bidi_control(c));
        if let Some((index, c)) = text.chars().enumerate().find(|&(_, c)| forbidden(c)) {
            let kind = if is_bidi_control(c) { "a bidirectional control" } else { "a control character" };
            let name = place.name();
            let message =
                format!("{name} has {kind}, U+{:04X}, as its character {}; take it out", u32::from(c), index + 1);
            self.fault(place, FaultCode::ForbiddenCharacter, message);
        }
        self.faults.len() == before
    }

    /// An identifier. A text of another shape is no identifier; so is one of another kind.
    pub(super) fn id<T: FromStr<Err = crate::id::BadId>>(&mut self, field: Field<'_, '_>) -> Option<T> {
        match self.string(field)?.parse() {
            Ok(id) => Some(id),
            Err(error) => {
                self.fault(&field.place, FaultCode::BadId, format!("{} is no identifier: {error}", field.place.name()));
                None
            }
        }
    }

    pub(super) fn time(&mut self, field: Field<'_, '_>) -> Option<Timestamp> {
        match self.string(field)?.parse() {
            Ok(time) => Some(time),
            Err(error) => {
                let message = format!("{} is no time: {error}", field.place.name());
                self.fault(&field.place, FaultCode::UnknownValue, message);
                None
            }
        }
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&mut self, field: Field<'_, '_>, words: &[(&str, T)]) -> Option<T> {
        let text = self.string(field)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let all: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let message = format!("{} must be {}", field.place.name(), all.join(" or "));
            self.fault(&field.place, FaultCode::UnknownValue, message);
        }
        found.map(|&(_, meaning)| meaning)
    }

    /// A stretch of time: more than 0 and at most [`limits::SECONDS`]. A whole number comes back as one, however it
    /// was written.
    pub(super) fn seconds(&mut self, field: Field<'_, '_>) -> Option<Number> {
        let Value::Number(number) = field.value else {
            self.wrong_type(field, "a number of seconds");
            return None;
        };
        let seconds = number.as_f64().unwrap_or(f64::INFINITY);
        if !(seconds > 0.0 && seconds <= f64::from(limits::SECONDS)) {
            let name = field.place.name();
            let message = format!(
                "{name} must be more than 0 and at most {} seconds; leave it out for no limit",
                limits::SECONDS
            );
            self.fault(&field.place, FaultCode::OutOfRange, message);
            return None;
        }
        Some(if seconds.fract() == 0.0 { Number::from(seconds as u64) } else { number.clone() })
    }

    pub(super) fn seq(&mut self, field: Field<'_, '_>) -> Option<u64> {
        let Value::Number(number) = field.value else {
            self.wrong_type(field, "a number");
            return None;
        };
        let seq = whole(number).filter(|seq| (1..=limits::SEQ).contains(seq));
        if seq.is_none() {
            let message = format!("{} must be a whole number from 1 to {}", field.place.name(), limits::SEQ);
            self.fault(&field.place, FaultCode::OutOfRange, message);
        }
        seq
    }

    /// A number that is exactly this one.
    pub(super) fn version(&mut self, field: Field<'_, '_>, version: u64) {
        match field.value {
            Value::Number(number) if whole(number) == Some(version) => {}
            Value::Number(_) => {
                let message = format!("this is protocol version {version}; `v` must be {version}");
                self.fault(&field.place, FaultCode::UnsupportedVersion, message);
            }
            _ => self.wrong_type(field, "a number"),
        }
    }

    /// Faults for the members that are none of `known`, by name.
    pub(super) fn unknown_fields(&mut self, object: Object<'_, '_>, known: &[&str]) {
        let mut unknown: Vec<_> = object.map.keys().filter(|name| !known.contains(&name.as_str())).collect();
        unknown.sort_unstable();
        for name in unknown.into_iter().take(limits::FAULTS) {
            let message = match closest(name, known) {
                Some(meant) => format!("this field is not known; did you mean `{meant}`?"),
                None => "this field is not known".to_owned(),
            };
            self.fault(&object.place.member(name), FaultCode::UnknownField, message);
        }
    }
}

/// The whole number that a number is, however it is written (`60`, `60.0`, `6e1`).
fn whole(number: &Number) -> Option<u64> {
    number.as_u64().or_else(|| {
        let value = number.as_f64()?;
        (value.fract() == 0.0 && value >= 0.0 && value <= limits::SEQ as f64).then_some(value as u64)
    })
}

/// The known word that a word looks most like.
pub(super) fn closest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // A word that is much longer than any known one looks like none of them more for its end.
    let start: String = word.chars().take(64).collect();
    known.iter().copied().min_by_key(|other| strsim::damerau_levenshtein(&start, other))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null (leave the field out instead)",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
