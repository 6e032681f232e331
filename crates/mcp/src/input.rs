//! What the tools take: the schemas that a model sees, and the checks of what it sends.

use chips_protocol::{AskId, Fault, FaultCode, OnNoAnswer, Question, QuestionOption, validate};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::{Map, Number, Value, json};

/// What `ask_person` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskPerson {
    /// One to four questions. Questions that belong together go into one call: the person sees and answers them together.
    #[schemars(length(min = 1, max = 4))]
    pub questions: Vec<NewQuestion>,
    /// The work that the questions belong to, in a few words, such as "Upgrade the payments service". The person sees
    /// it beside the question. Keep it the same for all questions of the same work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 300))]
    pub title: Option<String>,
    /// After how many seconds to stop waiting for an answer. Leave it out to wait until the person answers, which is
    /// almost always right: people may be away for hours. Set it only where the work can go on without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(max = 31_536_000), extend("exclusiveMinimum" = 0))]
    pub timeout_seconds: Option<Number>,
    /// What you will do if timeout_seconds passes: take the default_value of each question that has one (use_default),
    /// give up what depends on the answer (cancel), or go on without an answer (continue).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Policy")]
    pub on_no_answer: Option<OnNoAnswer>,
}

/// The three choices as one list, without a description each.
#[derive(JsonSchema)]
#[schemars(inline)]
#[allow(dead_code, reason = "only its schema is used")]
enum Policy {
    #[schemars(rename = "use_default")]
    UseDefault,
    #[schemars(rename = "cancel")]
    Cancel,
    #[schemars(rename = "continue")]
    Continue,
}

/// One question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewQuestion {
    /// The whole question, so that it can be understood by itself: the person may read it on a phone, without your
    /// conversation before their eyes.
    #[schemars(length(min = 1, max = 4000))]
    pub prompt: String,
    /// Two to four answers to choose from, each different from the others.
    #[schemars(length(min = 2, max = 4))]
    pub options: Vec<NewOption>,
    /// Whether the person may choose more than one option; false if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub multi_select: Option<bool>,
    /// Whether the person may type an answer of their own; false if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub allow_free_text: Option<bool>,
    /// The `value` of the option that is taken if nobody answers in time. Only where silence really may decide; leave it
    /// out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub default_value: Option<String>,
    /// A name of yours for the question, which comes back with its answer; q1, q2 and so on if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 100))]
    pub question_id: Option<String>,
}

/// One answer to choose.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewOption {
    /// What the person taps: short and clear.
    #[schemars(length(min = 1, max = 300))]
    pub label: String,
    /// What choosing it means, where the label does not say it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 2000))]
    pub description: Option<String>,
    /// What comes back to you if it is chosen; the label if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 300))]
    pub value: Option<String>,
}

/// What `wait_for_answer` and `withdraw_question` take.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// The ask_id that ask_person returned, such as "qst_01K4ZQPX000000000000000009".
    #[schemars(length(min = 1))]
    pub ask_id: String,
}

/// What was asked for, checked.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub title: Option<String>,
    pub questions: Vec<Question>,
    pub timeout_seconds: Option<Number>,
    pub on_no_answer: Option<OnNoAnswer>,
}

/// A type's schema as one object that refers to nothing: not every client follows references.
pub(crate) fn schema<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema: Value = settings.into_generator().into_root_schema_for::<T>().into();
    let mut object = schema.as_object_mut().map(std::mem::take).unwrap_or_default();
    // The names of these types and what they are to Rust mean nothing to a model.
    object.remove("title");
    object.remove("description");
    object
}

/// Reads the arguments of `ask_person`.
///
/// # Errors
/// Every fault, with its place in the arguments.
pub(crate) fn wanted(arguments: Map<String, Value>) -> Result<Wanted, Vec<Fault>> {
    let mut arguments = arguments;
    // Models write `null` for what they leave out.
    let mut value = Value::Object(std::mem::take(&mut arguments));
    without_nulls(&mut value);
    let Value::Object(mut arguments) = value else { return Err(Vec::new()) };

    let mut faults: Vec<Fault> = arguments
        .keys()
        .filter(|name| ENVELOPE.contains(&name.as_str()))
        .map(|name| Fault::new(format!("/{name}"), FaultCode::UnknownField, "this tool takes no such argument"))
        .collect();
    arguments.retain(|name, _| !ENVELOPE.contains(&name.as_str()));
    let title = arguments.remove("title");
    name_what_has_no_name(&mut arguments);

    // An event's own checks, on an event with these questions.
    let mut event = ENVELOPE_OF_NOBODY.with(Map::clone);
    event.extend(arguments);
    let draft = validate::draft(&Value::Object(event.clone()));
    faults.extend(draft.err().unwrap_or_default().into_iter().map(in_the_tools_words));
    let run = title.as_ref().map(|title| validate::new_run(&json!({ "title": title })));
    faults.extend(run.and_then(Result::err).unwrap_or_default());
    if !faults.is_empty() {
        return Err(faults);
    }
    event.retain(|name, _| !ENVELOPE.contains(&name.as_str()));
    event.extend(title.map(|title| ("title".to_owned(), title)));
    // What has passed the checks has this shape; should it not, the fault is told like any other.
    let asked: AskPerson = serde_json::from_value(Value::Object(event))
        .map_err(|error| vec![Fault::new("", FaultCode::WrongType, error.to_string())])?;
    Ok(Wanted {
        title: asked.title,
        questions: asked.questions.into_iter().map(NewQuestion::typed).collect(),
        timeout_seconds: asked.timeout_seconds,
        on_no_answer: asked.on_no_answer,
    })
}

/// A fault of an unknown field, with a hint at the field of the tool that was probably meant: the event's own checks know
/// the fields of an event.
fn in_the_tools_words(fault: Fault) -> Fault {
    if fault.code != FaultCode::UnknownField {
        return fault;
    }
    let parts: Vec<&str> = fault.pointer.split('/').skip(1).collect();
    let fields: &[&str] = match parts.len() {
        1 => &["questions", "title", "timeout_seconds", "on_no_answer"],
        3 => &["prompt", "options", "multi_select", "allow_free_text", "default_value", "question_id"],
        _ => &["label", "description", "value"],
    };
    let name = parts.last().copied().unwrap_or_default();
    let meant = fields.iter().find(|field| {
        let (field, name) = (field.to_ascii_lowercase(), name.to_ascii_lowercase());
        !name.is_empty()
            && (field.split('_').any(|part| part == name) || field.replace('_', "") == name.replace(['_', '-'], ""))
    });
    let message = match meant {
        Some(meant) => format!("there is no such field; `{meant}` is probably meant"),
        None => format!("there is no such field; these are: {}", fields.join(", ")),
    };
    Fault::new(fault.pointer, fault.code, message)
}

/// Reads the arguments of the two tools that name an ask.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn which(arguments: Map<String, Value>) -> Result<AskId, Vec<Fault>> {
    let which: Which = serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        vec![Fault::new("/ask_id", FaultCode::Required, format!("give ask_id and nothing else ({error})"))]
    })?;
    which.ask_id.trim().parse().map_err(|_| {
        let message =
            "this is no ask_id; it looks like qst_01K4ZQPX000000000000000009 and came with the result of ask_person";
        vec![Fault::new("/ask_id", FaultCode::BadId, message)]
    })
}

impl NewQuestion {
    fn typed(self) -> Question {
        let option = |option: NewOption| QuestionOption {
            value: option.value.unwrap_or_else(|| option.label.clone()),
            label: option.label,
            description: option.description,
        };
        Question {
            question_id: self.question_id.unwrap_or_default(),
            prompt: self.prompt,
            options: self.options.into_iter().map(option).collect(),
            multi_select: self.multi_select,
            allow_free_text: self.allow_free_text,
            default_value: self.default_value,
        }
    }
}

/// The fields of an event that are not for a model to give.
const ENVELOPE: [&str; 11] =
    ["v", "type", "id", "ts", "workspace_id", "space_id", "run_id", "seq", "idempotency_key", "actor", "ask_id"];

thread_local! {
    /// Everything of an event but its questions, from nobody.
    static ENVELOPE_OF_NOBODY: Map<String, Value> = match json!({
        "v": 1, "type": "question.ask", "id": "evt_01K4ZQPX000000000000000001",
        "workspace_id": "ws_01K4ZQPX000000000000000001", "run_id": "run_01K4ZQPX000000000000000001",
        "actor": { "kind": "harness", "id": "hrn_01K4ZQPX000000000000000001" },
        "idempotency_key": "checked and never sent", "ask_id": "qst_01K4ZQPX000000000000000001",
    }) {
        Value::Object(event) => event,
        _ => Map::new(),
    };
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(without_nulls);
        }
        Value::Array(array) => array.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// Fills in what may be left out here and not in an event: a question's id, an option's value.
fn name_what_has_no_name(arguments: &mut Map<String, Value>) {
    let questions = arguments.get_mut("questions").and_then(Value::as_array_mut);
    for (at, question) in questions.into_iter().flatten().enumerate() {
        let Some(question) = question.as_object_mut() else { continue };
        question.entry("question_id").or_insert_with(|| json!(format!("q{}", at + 1)));
        let options = question.get_mut("options").and_then(Value::as_array_mut);
        for option in options.into_iter().flatten().filter_map(Value::as_object_mut) {
            if let (None, Some(label)) = (option.get("value"), option.get("label")) {
                option.insert("value".to_owned(), label.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(arguments: Value) -> Result<Wanted, Vec<Fault>> {
        wanted(arguments.as_object().unwrap().clone())
    }

    fn places(arguments: Value) -> Vec<(String, FaultCode)> {
        read(arguments).unwrap_err().into_iter().map(|fault| (fault.pointer, fault.code)).collect()
    }

    fn bed() -> Value {
        json!({ "prompt": "Which bed first?", "options": [{ "label": "Herbs" }, { "label": "Beans", "value": "b" }] })
    }

    #[test]
    fn what_is_left_out_is_named_and_no_default_is_invented() {
        let wanted = read(json!({ "questions": [bed(), bed()], "title": null, "timeout_seconds": null })).unwrap();
        let ids: Vec<_> = wanted.questions.iter().map(|question| question.question_id.as_str()).collect();
        assert_eq!(ids, ["q1", "q2"]);
        let values: Vec<_> = wanted.questions[0].options.iter().map(|option| option.value.as_str()).collect();
        assert_eq!(values, ["Herbs", "b"]);
        assert_eq!(wanted.questions[0].default_value, None);
        assert_eq!((wanted.timeout_seconds, wanted.on_no_answer, wanted.title), (None, None, None));
    }

    #[test]
    fn every_fault_is_told_with_its_place_in_the_arguments() {
        let mut odd = bed();
        odd["options"][1]["label"] = json!("HERBS");
        odd["header"] = json!("Bed");
        let found = places(json!({
            "questions": [odd], "timeout": 5, "run_id": "mine", "on_no_answer": "use_default", "title": "",
        }));
        for (place, code) in [
            ("/questions/0/options/1/label", FaultCode::Duplicate),
            ("/questions/0/header", FaultCode::UnknownField),
            ("/timeout", FaultCode::UnknownField),
            ("/run_id", FaultCode::UnknownField),
            ("/on_no_answer", FaultCode::NoDefault),
            ("/title", FaultCode::Empty),
        ] {
            assert!(found.contains(&(place.to_owned(), code)), "{place} {code:?} is missing in {found:?}");
        }
        assert!(places(json!({})).contains(&("/questions".to_owned(), FaultCode::Required)));
        assert!(places(json!({ "questions": [] })).contains(&("/questions".to_owned(), FaultCode::TooFew)));
        assert!(places(json!({ "questions": "Which?" })).contains(&("/questions".to_owned(), FaultCode::WrongType)));
    }

    #[test]
    fn an_ask_is_named_by_its_id_alone() {
        let id = "qst_01K4ZQPX000000000000000009";
        let read = |arguments: Value| which(arguments.as_object().unwrap().clone());
        assert_eq!(read(json!({ "ask_id": id })).unwrap().to_string(), id);
        for wrong in [json!({}), json!({ "ask_id": "the last one" }), json!({ "ask_id": id, "wait": 5 })] {
            assert_eq!(read(wrong.clone()).unwrap_err().len(), 1, "{wrong}");
        }
    }

    #[test]
    fn the_schemas_stand_on_their_own_and_take_nothing_that_they_don_t_name() {
        let schema = schema::<AskPerson>();
        let text = serde_json::to_string(&schema).unwrap();
        assert!(!text.contains("$ref") && !text.contains("null") && !text.contains("$schema"), "{text}");
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["required"], json!(["questions"]));
        let question = &schema["properties"]["questions"]["items"];
        assert_eq!(question["required"], json!(["prompt", "options"]));
        assert_eq!(question["properties"]["options"]["items"]["required"], json!(["label"]));
        assert_eq!(schema["properties"]["on_no_answer"]["enum"], json!(["use_default", "cancel", "continue"]));
    }

    #[test]
    fn a_misspelt_field_is_told_the_one_of_the_tool_that_is_meant() {
        let mut arguments = json!({ "questions": [{ "prompt": "Go?", "options": [{ "label": "Yes" }, { "label": "No", "desc": "x" }],
            "default": "Yes", "multiSelect": true }], "timeout": 5, "urgency": 1 });
        let faults = wanted(std::mem::take(arguments.as_object_mut().unwrap())).unwrap_err();
        let said = |pointer: &str| &faults.iter().find(|fault| fault.pointer == pointer).unwrap().message;
        assert!(said("/timeout").contains("`timeout_seconds`"), "{faults:?}");
        assert!(said("/questions/0/default").contains("`default_value`"), "{faults:?}");
        assert!(said("/questions/0/multiSelect").contains("`multi_select`"), "{faults:?}");
        assert!(said("/questions/0/options/1/desc").contains("label, description, value"), "{faults:?}");
        assert!(said("/urgency").contains("questions, title, timeout_seconds, on_no_answer"), "{faults:?}");
    }
}
