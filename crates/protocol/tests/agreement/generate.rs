//! Events made at random: good ones, and good ones with something changed anywhere.

use chips_protocol::{EventType, limits};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};

/// A good event in its stored form, any field that may be left out there or not.
pub fn good(event_type: EventType) -> BoxedStrategy<Value> {
    let content = match event_type {
        EventType::QuestionAsk => ask().boxed(),
        EventType::QuestionAnswered => answered().boxed(),
    };
    (envelope(event_type), content)
        .prop_map(|(mut envelope, content)| {
            envelope.extend(content);
            Value::Object(envelope)
        })
        .boxed()
}

/// Makes an object of members that may be absent.
fn object(members: Vec<(&str, Option<Value>)>) -> Map<String, Value> {
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn maybe(value: impl Strategy<Value = impl Into<Value> + std::fmt::Debug>) -> impl Strategy<Value = Option<Value>> {
    prop::option::of(value.prop_map(Into::into))
}

fn id(prefix: &'static str) -> impl Strategy<Value = Value> {
    "[0-7][0-9A-HJKMNP-TV-Z]{25}".prop_map(move |ulid| json!(format!("{prefix}{ulid}")))
}

fn time() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0_i64..4_102_444_800_000).prop_map(|ms| json!(chips_protocol::Timestamp::from_ms(ms).to_string())),
        Just(json!("2024-02-29T23:59:60z")),
        Just(json!("0000-01-01t00:00:00.123456789Z")),
        Just(json!("2026-09-02T14:22:05+02:00")),
        Just(json!("2026-09-02T14:22:05.5-23:59")),
    ]
}

fn envelope(event_type: EventType) -> impl Strategy<Value = Map<String, Value>> {
    (
        (prop_oneof![Just(json!(1)), Just(json!(1.0))], id("evt_"), time(), id("ws_"), prop::option::of(id("spc_"))),
        (id("run_"), prop::option::of(seq()), maybe(prose(limits::IDEMPOTENCY_KEY)), actor()),
    )
        .prop_map(move |((v, id, ts, workspace_id, space_id), (run_id, seq, key, actor))| {
            object(vec![
                ("v", Some(v)),
                ("type", Some(json!(event_type.as_str()))),
                ("id", Some(id)),
                ("ts", Some(ts)),
                ("workspace_id", Some(workspace_id)),
                ("space_id", space_id),
                ("actor", Some(actor)),
                ("run_id", Some(run_id)),
                ("seq", seq),
                ("idempotency_key", key),
            ])
        })
}

fn seq() -> impl Strategy<Value = Value> {
    prop_oneof![(1..=limits::SEQ).prop_map(Value::from), Just(json!(7.0)), Just(json!(limits::SEQ))]
}

fn actor() -> impl Strategy<Value = Value> {
    prop_oneof![
        id("usr_").prop_map(|id| json!({ "kind": "person", "id": id })),
        id("hrn_").prop_map(|id| json!({ "kind": "harness", "id": id })),
        id("agt_").prop_map(|id| json!({ "kind": "agent", "id": id })),
        (id("agt_"), id("hrn_")).prop_map(|(id, harness)| json!({ "kind": "agent", "id": id, "harness_id": harness })),
        Just(json!({ "kind": "system", "id": "system" })),
    ]
}

/// A text with something to see in it, of letters that are apt to make trouble.
fn prose(max: usize) -> impl Strategy<Value = String> {
    text("[a-zA-Z \n\t\r\u{A0}\u{200B}\u{202E}\u{2066}é漢\u{1F600}\u{E0041}'\"<>{}\\\\/]{0,40}", max)
}

/// The same without bidirectional controls.
fn exact(max: usize) -> impl Strategy<Value = String> {
    text("[a-zA-Z \n\t\r\u{A0}\u{200B}é漢\u{1F600}\u{E0041}'\"<>{}\\\\/]{0,40}", max)
}

fn text(pattern: &'static str, max: usize) -> impl Strategy<Value = String> {
    (pattern, "[a-zA-Z0-9é漢\u{1F600}]", 0..60_u8).prop_map(move |(rest, seen, length)| {
        let text = format!("{rest}{seen}{rest}");
        // Now and then one that fills the limit.
        if length == 0 { text.chars().cycle().take(max).collect() } else { text.chars().take(max).collect() }
    })
}

fn seconds() -> impl Strategy<Value = Value> {
    prop_oneof![
        (1..=limits::SECONDS).prop_map(Value::from),
        (f64::MIN_POSITIVE..f64::from(limits::SECONDS)).prop_map(Value::from),
        Just(json!(60.0)),
        Just(json!(limits::SECONDS)),
        Just(json!(5e-324)),
    ]
}

fn ask() -> impl Strategy<Value = Map<String, Value>> {
    let questions = prop::collection::vec(question(), limits::QUESTIONS_MIN..=limits::QUESTIONS_MAX);
    let on_no_answer = prop::option::of(prop::sample::select(vec!["use_default", "cancel", "continue"]));
    (id("qst_"), questions, prop::option::of(seconds()), on_no_answer).prop_map(
        |(ask_id, mut questions, timeout_seconds, on_no_answer)| {
            for (index, question) in questions.iter_mut().enumerate() {
                let id = distinct(index, question["question_id"].as_str().unwrap(), limits::QUESTION_ID);
                question["question_id"] = id.into();
            }
            let defaulted = questions.iter().any(|question| question.get("default_value").is_some());
            let on_no_answer = on_no_answer.filter(|choice| *choice != "use_default" || defaulted);
            object(vec![
                ("ask_id", Some(ask_id)),
                ("questions", Some(questions.into())),
                ("timeout_seconds", timeout_seconds),
                ("on_no_answer", on_no_answer.map(Value::from)),
            ])
        },
    )
}

/// A text that starts with its number, and so is like no other of its list.
fn distinct(index: usize, text: &str, max: usize) -> String {
    format!("{index}{text}").chars().take(max).collect()
}

fn question() -> impl Strategy<Value = Value> {
    let options = prop::collection::vec(option(), limits::OPTIONS_MIN..=limits::OPTIONS_MAX);
    let booleans = (maybe(any::<bool>()), maybe(any::<bool>()));
    let default = prop::option::of((any::<Index>(), prose(limits::FREE_TEXT), any::<bool>()));
    (exact(limits::QUESTION_ID), prose(limits::PROMPT), options, booleans, default).prop_map(
        |(question_id, prompt, mut options, (multi_select, allow_free_text), default)| {
            for (index, option) in options.iter_mut().enumerate() {
                option["value"] = distinct(index, option["value"].as_str().unwrap(), limits::VALUE).into();
                option["label"] = distinct(index, option["label"].as_str().unwrap(), limits::LABEL).into();
            }
            let default = default.map(|(chosen, text, free)| {
                if free && allow_free_text == Some(json!(true)) {
                    json!(text)
                } else {
                    options[chosen.index(options.len())]["value"].clone()
                }
            });
            Value::Object(object(vec![
                ("question_id", Some(question_id.into())),
                ("prompt", Some(prompt.into())),
                ("options", Some(options.into())),
                ("multi_select", multi_select),
                ("allow_free_text", allow_free_text),
                ("default_value", default),
            ]))
        },
    )
}

fn option() -> impl Strategy<Value = Value> {
    let description = maybe(prop_oneof![Just(String::new()), prose(limits::DESCRIPTION)]);
    (exact(limits::VALUE), exact(limits::LABEL), description).prop_map(|(value, label, description)| {
        Value::Object(object(vec![
            ("value", Some(value.into())),
            ("label", Some(label.into())),
            ("description", description),
        ]))
    })
}

fn answered() -> impl Strategy<Value = Map<String, Value>> {
    let answers = prop::collection::vec(answer(), 0..=limits::QUESTIONS_MAX);
    let answered_by = prop_oneof![id("usr_"), id("hrn_"), id("agt_"), Just(json!("system"))];
    (id("qst_"), answers, answered_by, time(), maybe(any::<bool>())).prop_map(
        |(ask_id, mut answers, answered_by, answered_at, timed_out)| {
            for (index, answer) in answers.iter_mut().enumerate() {
                let id = distinct(index, answer["question_id"].as_str().unwrap(), limits::QUESTION_ID);
                answer["question_id"] = id.into();
            }
            object(vec![
                ("ask_id", Some(ask_id)),
                ("answers", Some(answers.into())),
                ("answered_by", Some(answered_by)),
                ("answered_at", Some(answered_at)),
                ("timed_out", timed_out),
            ])
        },
    )
}

fn answer() -> impl Strategy<Value = Value> {
    let values = prop::collection::vec(exact(limits::VALUE), 0..=limits::OPTIONS_MAX);
    (exact(limits::QUESTION_ID), values, maybe(prose(limits::FREE_TEXT))).prop_map(
        |(question_id, values, free_text)| {
            let values: Vec<String> =
                values.iter().enumerate().map(|(index, value)| distinct(index, value, limits::VALUE)).collect();
            Value::Object(object(vec![
                ("question_id", Some(question_id.into())),
                ("values", Some(values.into())),
                ("free_text", free_text),
            ]))
        },
    )
}

/// One change to an event, at a place that `at` chooses.
#[derive(Debug, Clone)]
enum Change {
    /// The value there becomes another.
    Replace(Value),
    /// The member or item goes.
    Remove,
    /// A member or an item comes.
    Add(String, Value),
    /// The last item of a list stands there once more.
    Repeat,
    /// A text gets something before or behind it.
    Grow(String, bool),
    /// A text stands there many times over.
    Stretch(usize),
    /// The value becomes that of another place.
    Copy(Index),
}

/// A good event with one to three changes at places anywhere in it.
pub fn changed(event_type: EventType) -> impl Strategy<Value = Value> {
    let changes = prop::collection::vec((any::<Index>(), change()), 1..=3);
    (good(event_type), changes).prop_map(|(mut event, changes)| {
        for (at, change) in changes {
            apply(&mut event, at, change);
        }
        event
    })
}

fn change() -> impl Strategy<Value = Change> {
    let name = prop_oneof![
        Just("default_value".to_owned()),
        Just("on_no_answer".to_owned()),
        Just("harness_id".to_owned()),
        Just("free_text".to_owned()),
        Just("timed_out".to_owned()),
        "[a-z_~/]{0,12}",
    ];
    prop_oneof![
        value().prop_map(Change::Replace),
        Just(Change::Remove),
        (name, value()).prop_map(|(name, value)| Change::Add(name, value)),
        Just(Change::Repeat),
        (fragment(), any::<bool>()).prop_map(|(text, before)| Change::Grow(text, before)),
        (2_usize..20_000).prop_map(Change::Stretch),
        any::<Index>().prop_map(Change::Copy),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![
            Just(json!(0)),
            Just(json!(-1)),
            Just(json!(1.5)),
            Just(json!(1e308)),
            Just(json!(2)),
            Just(json!(-0.0))
        ],
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        fragment().prop_map(Value::from),
        prop::sample::select(vec!["use_default", "cancel", "person", "agent", "system", "question.ask"])
            .prop_map(Value::from),
        id("usr_"),
        id("evt_"),
        time(),
        Just(json!([])),
        Just(json!({})),
        Just(json!(["a", "a"])),
    ]
}

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            " ",
            "\n",
            "\0",
            "\u{1B}",
            "\u{85}",
            "\u{7F}",
            "\u{200B}",
            "\u{2028}",
            "\u{202E}",
            "\u{2069}",
            "\u{E0020}",
            "\u{FEFF}",
            "\u{3164}",
            "\u{FF19}",
            "Z",
            "2026-02-30T00:00:00Z",
            "2026-09-02T24:00:00Z",
            "yesterday",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ]
}

/// The JSON pointers of every value in a document, its own first.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                places(value, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

fn apply(event: &mut Value, at: Index, change: Change) {
    let mut all = Vec::new();
    places(event, "", &mut all);
    let place = &all[at.index(all.len())];
    let other = match change {
        Change::Copy(other) => event.pointer(&all[other.index(all.len())]).cloned(),
        _ => None,
    };
    if let Change::Remove = change {
        let Some((parent, name)) = place.rsplit_once('/') else { return };
        match event.pointer_mut(parent).unwrap() {
            Value::Object(members) => drop(members.shift_remove(&name.replace("~1", "/").replace("~0", "~"))),
            Value::Array(items) => drop(items.remove(name.parse().unwrap())),
            _ => {}
        }
        return;
    }
    let target = event.pointer_mut(place).unwrap();
    match (change, &mut *target) {
        (Change::Replace(value), target) => *target = value,
        (Change::Add(name, value), Value::Object(members)) => drop(members.insert(name, value)),
        (Change::Add(_, value), Value::Array(items)) => items.push(value),
        (Change::Repeat, Value::Array(items)) => items.extend(items.last().cloned()),
        (Change::Grow(more, true), Value::String(text)) => text.insert_str(0, &more),
        (Change::Grow(more, false), Value::String(text)) => text.push_str(&more),
        (Change::Stretch(length), Value::String(text)) => *text = text.chars().cycle().take(length).collect(),
        (Change::Copy(_), target) => *target = other.unwrap_or_default(),
        _ => {}
    }
}
