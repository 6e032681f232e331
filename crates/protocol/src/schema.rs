//! The JSON Schemas (2020-12) of the events in their stored form, generated from the types.
//!
//! A schema says what can be said of one event without its neighbours; what only [`crate::validate`] can know is
//! listed where the two are held against each other (`tests/agreement.rs`).

mod pattern;

use std::borrow::Cow;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::event::{Envelope, EventType, QuestionAnswered, QuestionAsk, VERSION};
use crate::validate::ENVELOPE;

pub(crate) use pattern::{date_time, exact, plain, prose, web_address};

macro_rules! stand_ins {
    ($($(#[$doc:meta])* $name:ident = $schema:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let schema: fn(&mut SchemaGenerator) -> Schema = $schema;
                schema(generator)
            }
        }
    )*};
}

stand_ins! {
    /// Stands in derived schemas for a `question.ask` in its stored form.
    QuestionAskEvent = |_| embedded(EventType::QuestionAsk);
    /// Stands in derived schemas for a `question.answered` in its stored form.
    QuestionAnsweredEvent = |_| embedded(EventType::QuestionAnswered);
    /// Stands in derived schemas for any event in its stored form.
    AnyEvent = |generator| {
        let any = [generator.subschema_for::<QuestionAskEvent>(), generator.subschema_for::<QuestionAnsweredEvent>()];
        json_schema!({ "description": "An event of any type, in its stored form.", "oneOf": any })
    };
}

/// The schema of the stored form of one event type: one flat object, closed to unknown fields.
pub fn of(event_type: EventType) -> Value {
    static SCHEMAS: LazyLock<[Value; 2]> = LazyLock::new(|| EventType::ALL.map(generate));
    match event_type {
        EventType::QuestionAsk => SCHEMAS[0].clone(),
        EventType::QuestionAnswered => SCHEMAS[1].clone(),
    }
}

/// The name of the file that holds the schema of an event type, and the end of the path that it is served at.
pub const fn file_name(event_type: EventType) -> &'static str {
    match event_type {
        EventType::QuestionAsk => "question.ask.json",
        EventType::QuestionAnswered => "question.answered.json",
    }
}

/// The example of an event type that its documentation shows, in its stored form, as JSON text.
pub const fn example(event_type: EventType) -> &'static str {
    match event_type {
        EventType::QuestionAsk => include_str!("event/question.ask.json"),
        EventType::QuestionAnswered => include_str!("event/question.answered.json"),
    }
}

/// What an event type is for, in one sentence.
pub const fn summary(event_type: EventType) -> &'static str {
    match event_type {
        EventType::QuestionAsk => "One to four questions with tappable options, a default, and a time-out.",
        EventType::QuestionAnswered => "The chosen options or free text, or a note that the time-out passed.",
    }
}

fn generate(event_type: EventType) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut generator = settings.into_generator();
    let mut envelope = Envelope::json_schema(&mut generator);
    let mut content = match event_type {
        EventType::QuestionAsk => QuestionAsk::json_schema(&mut generator),
        EventType::QuestionAnswered => QuestionAnswered::json_schema(&mut generator),
    };

    let mut fields = take_object(&mut envelope, "properties");
    fields.insert(
        "v".into(),
        json!({ "description": "The protocol's major version.", "type": "integer", "const": VERSION }),
    );
    fields.insert(
        "type".into(),
        json!({ "description": "What kind of event this is.", "type": "string", "const": event_type.as_str() }),
    );
    let mut properties: Map<String, Value> = ENVELOPE.iter().filter_map(|&name| fields.remove_entry(name)).collect();
    properties.extend(take_object(&mut content, "properties"));

    let mut needed = vec![json!("v"), json!("type")];
    needed.extend(take_list(&mut envelope, "required"));
    needed.extend(take_list(&mut content, "required"));
    let required: Vec<&String> = properties.keys().filter(|name| needed.iter().any(|other| other == *name)).collect();

    let mut schema = json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("/schemas/{}", file_name(event_type)),
        "title": event_type.as_str(),
        "description": summary(event_type),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    for (keyword, value) in content.ensure_object() {
        if !["$schema", "title", "description", "type", "additionalProperties"].contains(&keyword.as_str()) {
            schema.insert(keyword.clone(), value.clone());
        }
    }
    if let Ok(example) = serde_json::from_str::<Value>(example(event_type)) {
        schema.insert("examples".into(), json!([example]));
    }
    RecursiveTransform(plain_words).transform(&mut schema);
    RecursiveTransform(in_reading_order).transform(&mut schema);
    schema.to_value()
}

/// The schema within another document: its own name and dialect would make it a document of its own.
fn embedded(event_type: EventType) -> Schema {
    let mut schema = of(event_type);
    if let Some(keywords) = schema.as_object_mut() {
        keywords.shift_remove("$schema");
        keywords.shift_remove("$id");
    }
    schema.try_into().unwrap_or_default()
}

fn take_object(schema: &mut Schema, keyword: &str) -> Map<String, Value> {
    match schema.remove(keyword) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn take_list(schema: &mut Schema, keyword: &str) -> Vec<Value> {
    match schema.remove(keyword) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// An `Option` in a struct that the wire carries is a field that may be left out; `null` is refused.
pub(crate) fn absent_not_null(schema: &mut Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        if property.get("default") == Some(&Value::Null) {
            property.shift_remove("default");
        }
        if let Some(Value::Array(types)) = property.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = &types[..] {
                let only = only.clone();
                property.insert("type".into(), only);
            }
        }
        if let Some(Value::Array(choices)) = property.get_mut("anyOf") {
            choices.retain(|choice| choice != &json!({ "type": "null" }));
            if let [Value::Object(only)] = &choices[..] {
                let only = only.clone();
                property.shift_remove("anyOf");
                for (keyword, value) in only {
                    property.entry(keyword).or_insert(value);
                }
            }
        }
    }
}

/// A choice of words as one `enum`, and whole numbers without the names of Rust's integers.
fn plain_words(schema: &mut Schema) {
    let words: Option<Vec<Value>> = schema
        .get("oneOf")
        .and_then(Value::as_array)
        .and_then(|choices| choices.iter().map(|choice| choice.get("const").cloned()).collect());
    if let Some(words) = words {
        schema.remove("oneOf");
        schema.insert("type".into(), "string".into());
        schema.insert("enum".into(), words.into());
    }
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
        schema.remove("format");
    }
}

/// What a person who reads a schema looks for first comes first.
fn in_reading_order(schema: &mut Schema) {
    const ORDER: [&str; 29] = [
        "$schema",
        "$id",
        "title",
        "description",
        "type",
        "const",
        "enum",
        "format",
        "minimum",
        "exclusiveMinimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "properties",
        "propertyNames",
        "maxProperties",
        "required",
        "additionalProperties",
        "minItems",
        "maxItems",
        "uniqueItems",
        "items",
        "anyOf",
        "allOf",
        "oneOf",
        "if",
        "then",
        "examples",
    ];
    if let Some(keywords) = schema.as_object_mut() {
        let mut sorted: Vec<(String, Value)> = std::mem::take(keywords).into_iter().collect();
        sorted.sort_by_key(|(keyword, _)| ORDER.iter().position(|known| known == keyword).unwrap_or(ORDER.len()));
        keywords.extend(sorted);
    }
}

/// The rules between an actor's fields: the id fits the kind, and only an agent speaks through a harness.
pub(crate) fn actor_rules() -> Value {
    use crate::id::{AgentId, HarnessId, PersonId};

    fn id_of<T: JsonSchema>() -> Value {
        SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().get("pattern").cloned().into()
    }
    let kinds = [
        ("person", json!({ "pattern": id_of::<PersonId>() })),
        ("harness", json!({ "pattern": id_of::<HarnessId>() })),
        ("agent", json!({ "pattern": id_of::<AgentId>() })),
        ("system", json!({ "const": "system" })),
    ];
    kinds
        .into_iter()
        .map(|(kind, id)| {
            let mut then = json!({ "id": id });
            if kind != "agent" {
                then["harness_id"] = json!(false);
            }
            json!({
                "if": { "properties": { "kind": { "const": kind } }, "required": ["kind"] },
                "then": { "properties": then },
            })
        })
        .collect()
}

/// `use_default` needs a default to use.
pub(crate) fn default_rule(schema: &mut Schema) {
    schema.insert(
        "if".into(),
        json!({ "properties": { "on_no_answer": { "const": "use_default" } }, "required": ["on_no_answer"] }),
    );
    schema.insert(
        "then".into(),
        json!({ "properties": { "questions": { "contains": { "required": ["default_value"] } } } }),
    );
}
