//! The classes of faults: those that schema and validator both refuse, and those that only the validator can know.

use chips_protocol::text::{fold, is_blank, read_alike};
use chips_protocol::{EventType, Fault, FaultCode, limits};
use serde_json::{Value, json};

use crate::common::{remove, set};

/// A fault that a schema can express, and how to make it.
pub struct Class {
    pub name: String,
    pub event_type: EventType,
    pub pointer: String,
    pub code: FaultCode,
    pub harm: Box<dyn Fn(&mut Value)>,
}

/// A fault that only the validator can know: why, how to tell it, and how to make it.
pub struct OnlyValidator {
    pub why: &'static str,
    pub event_type: EventType,
    pub code: FaultCode,
    pub is: fn(&Fault, &Value) -> bool,
    pub harm: fn(&mut Value),
}

/// The codes that only the log's keeper can give.
pub const NEEDS_THE_LOG: [FaultCode; 3] = [FaultCode::UnknownRun, FaultCode::UnknownSpace, FaultCode::Mismatch];

/// Everything that an event can be refused for although its schema takes it.
pub const ONLY_THE_VALIDATOR: &[OnlyValidator] = &[
    OnlyValidator {
        why: "a schema can't compare one question's id with another's",
        event_type: EventType::QuestionAsk,
        code: FaultCode::Duplicate,
        is: |fault, _| duplicate(fault, "/questions/", "/question_id"),
        harm: |event| {
            plain(event);
            let again = event["questions"][0].clone();
            event["questions"] = json!([again, again]);
        },
    },
    OnlyValidator {
        why: "a schema can't compare one option's value with another's",
        event_type: EventType::QuestionAsk,
        code: FaultCode::Duplicate,
        is: |fault, _| duplicate(fault, "/questions/", "/value"),
        harm: |event| {
            plain(event);
            set(event, "/questions/0/options/1/value", event["questions"][0]["options"][0]["value"].clone());
        },
    },
    OnlyValidator {
        why: "a schema can't tell that two labels read alike",
        event_type: EventType::QuestionAsk,
        code: FaultCode::Duplicate,
        is: |fault, _| duplicate(fault, "/questions/", "/label"),
        harm: |event| {
            set(event, "/questions/0/options/0/label", json!("Delete"));
            set(event, "/questions/0/options/1/label", json!(" D\u{435}LETE"));
            assert!(read_alike("Delete", " D\u{435}LETE") && fold("Delete") == "delete");
        },
    },
    OnlyValidator {
        why: "a schema can't compare a default with the options beside it",
        event_type: EventType::QuestionAsk,
        code: FaultCode::NotAnOption,
        is: |fault, _| fault.code == FaultCode::NotAnOption && fault.pointer.ends_with("/default_value"),
        harm: |event| {
            set(event, "/questions/0/allow_free_text", json!(false));
            set(event, "/questions/0/default_value", json!("no such option"));
        },
    },
    OnlyValidator {
        why: "a schema can't compare one entry's question with another's",
        event_type: EventType::QuestionAnswered,
        code: FaultCode::Duplicate,
        is: |fault, _| duplicate(fault, "/answers/", "/question_id"),
        harm: |event| {
            event["answers"] = json!([
                { "question_id": "a", "values": ["1"] },
                { "question_id": "a", "values": ["2"] },
            ]);
        },
    },
    OnlyValidator {
        why: "a portable pattern can't name the invisible characters beyond U+FFFF",
        event_type: EventType::QuestionAsk,
        code: FaultCode::Empty,
        is: |fault, event| {
            let text = event.pointer(&fault.pointer).and_then(Value::as_str).unwrap_or_default();
            fault.code == FaultCode::Empty && is_blank(text) && text.chars().any(|c| c > '\u{FFFF}')
        },
        harm: |event| set(event, "/questions/0/prompt", json!(" \u{E0020}\n")),
    },
    OnlyValidator {
        why: "a pattern can't count the days of a month or turn a time to UTC",
        event_type: EventType::QuestionAnswered,
        code: FaultCode::UnknownValue,
        is: |fault, _| fault.code == FaultCode::UnknownValue && ["/ts", "/answered_at"].contains(&&*fault.pointer),
        harm: |event| {
            set(event, "/ts", json!("2026-02-30T00:00:00Z"));
            set(event, "/answered_at", json!("0000-01-01T00:00:00+01:00"));
        },
    },
];

fn duplicate(fault: &Fault, start: &str, end: &str) -> bool {
    fault.code == FaultCode::Duplicate && fault.pointer.starts_with(start) && fault.pointer.ends_with(end)
}

/// Takes away what depends on other fields, so that one fault does not bring another.
fn plain(event: &mut Value) {
    event.as_object_mut().unwrap().shift_remove("on_no_answer");
    event["questions"][0].as_object_mut().unwrap().shift_remove("default_value");
}

fn plain_entry(event: &mut Value) {
    event["answers"] = json!([{ "question_id": "a", "values": ["1", "2"], "free_text": "b" }]);
}

const ASK: EventType = EventType::QuestionAsk;
const ANSWERED: EventType = EventType::QuestionAnswered;

const IDS: [(EventType, &str); 8] = [
    (ASK, "/id"),
    (ASK, "/workspace_id"),
    (ASK, "/space_id"),
    (ASK, "/run_id"),
    (ASK, "/ask_id"),
    (ANSWERED, "/id"),
    (ANSWERED, "/ask_id"),
    (ANSWERED, "/answered_by"),
];

/// Each text: where, its longest, whether it may be blank, and whether it may hold bidirectional controls.
const TEXTS: [(EventType, &str, usize, bool, bool); 10] = [
    (ASK, "/idempotency_key", limits::IDEMPOTENCY_KEY, false, true),
    (ASK, "/questions/0/question_id", limits::QUESTION_ID, false, false),
    (ASK, "/questions/0/prompt", limits::PROMPT, false, true),
    (ASK, "/questions/0/options/1/value", limits::VALUE, false, false),
    (ASK, "/questions/0/options/1/label", limits::LABEL, false, false),
    (ASK, "/questions/0/options/1/description", limits::DESCRIPTION, true, true),
    (ASK, "/questions/0/default_value", limits::FREE_TEXT, false, true),
    (ANSWERED, "/answers/0/question_id", limits::QUESTION_ID, false, false),
    (ANSWERED, "/answers/0/values/1", limits::VALUE, false, false),
    (ANSWERED, "/answers/0/free_text", limits::FREE_TEXT, false, true),
];

/// Fields that must be there.
const REQUIRED: [(EventType, &str); 23] = [
    (ASK, "/v"),
    (ASK, "/type"),
    (ASK, "/id"),
    (ASK, "/ts"),
    (ASK, "/workspace_id"),
    (ASK, "/run_id"),
    (ASK, "/actor"),
    (ASK, "/actor/kind"),
    (ASK, "/actor/id"),
    (ASK, "/ask_id"),
    (ASK, "/questions"),
    (ASK, "/questions/0/question_id"),
    (ASK, "/questions/0/prompt"),
    (ASK, "/questions/0/options"),
    (ASK, "/questions/0/options/1/value"),
    (ASK, "/questions/0/options/1/label"),
    (ANSWERED, "/type"),
    (ANSWERED, "/ask_id"),
    (ANSWERED, "/answers"),
    (ANSWERED, "/answered_by"),
    (ANSWERED, "/answered_at"),
    (ANSWERED, "/answers/0/question_id"),
    (ANSWERED, "/answers/0/values"),
];

/// Fields that may be left out, each with a value of its JSON type.
fn optional() -> Vec<(EventType, &'static str, Value)> {
    vec![
        (ASK, "/space_id", json!("spc_01K4ZQPX000000000000000002")),
        (ASK, "/seq", json!(1)),
        (ASK, "/idempotency_key", json!("k")),
        (ASK, "/questions/0/options/1/description", json!("d")),
        (ASK, "/questions/0/multi_select", json!(true)),
        (ASK, "/questions/0/allow_free_text", json!(true)),
        (ASK, "/questions/0/default_value", json!("x")),
        (ASK, "/timeout_seconds", json!(1)),
        (ASK, "/on_no_answer", json!("cancel")),
        (ANSWERED, "/timed_out", json!(true)),
        (ANSWERED, "/answers/0/free_text", json!("x")),
    ]
}

#[derive(Default)]
struct Classes(Vec<Class>);

impl Classes {
    /// A class whose harm is done to an event in which nothing depends on the harmed field.
    fn add(&mut self, event_type: EventType, pointer: &str, code: FaultCode, harm: impl Fn(&mut Value) + 'static) {
        let name = format!("{} at {} #{}", code.as_str(), pointer, self.0.len());
        let harm = move |event: &mut Value| {
            match event_type {
                EventType::QuestionAsk => plain(event),
                EventType::QuestionAnswered => plain_entry(event),
            }
            harm(event);
        };
        self.0.push(Class { name, event_type, pointer: pointer.to_owned(), code, harm: Box::new(harm) });
    }

    /// The value at the pointer becomes another.
    fn add_value(&mut self, event_type: EventType, pointer: &'static str, code: FaultCode, value: Value) {
        self.add(event_type, pointer, code, move |event| set(event, pointer, value.clone()));
    }
}

/// Every class of fault that a schema can express.
pub fn both() -> Vec<Class> {
    let mut classes = Classes::default();
    missing_and_of_another_type(&mut classes);
    identifiers_and_words(&mut classes);
    counts_and_numbers(&mut classes);
    texts(&mut classes);
    between_fields(&mut classes);
    classes.0
}

fn missing_and_of_another_type(classes: &mut Classes) {
    for (event_type, pointer) in REQUIRED {
        classes.add(event_type, pointer, FaultCode::Required, move |event| remove(event, pointer));
        for wrong in [json!(null), json!(true)] {
            classes.add_value(event_type, pointer, FaultCode::WrongType, wrong);
        }
    }
    for (event_type, pointer, right) in optional() {
        let other = if right.is_string() { json!(1) } else { json!("1") };
        for wrong in [json!(null), json!([right]), other] {
            classes.add_value(event_type, pointer, FaultCode::WrongType, wrong);
        }
    }
    for (event_type, pointer) in [
        (ASK, "/questions/0"),
        (ASK, "/questions/0/options/1"),
        (ASK, "/actor"),
        (ANSWERED, "/answers/0"),
        (ANSWERED, "/answers/0/values/1"),
    ] {
        for wrong in [json!(null), json!([]), json!(1)] {
            classes.add_value(event_type, pointer, FaultCode::WrongType, wrong);
        }
    }
    classes.add(ASK, "", FaultCode::WrongType, |event| {
        *event = event.as_object().unwrap().values().cloned().collect();
    });
    for (event_type, pointer) in [
        (ASK, "/timeout_second"),
        (ASK, "/answers"),
        (ASK, "/actor/name"),
        (ASK, "/questions/0/default"),
        (ASK, "/questions/0/options/0/id"),
        (ANSWERED, "/questions"),
        (ANSWERED, "/answers/0/value"),
    ] {
        classes.add_value(event_type, pointer, FaultCode::UnknownField, json!(1));
    }
}

fn identifiers_and_words(classes: &mut Classes) {
    for (event_type, pointer) in IDS {
        for wrong in [
            "",
            "01K4ZQPX000000000000000009",
            "xyz_01K4ZQPX000000000000000009",
            "qst_81K4ZQPX000000000000000009",
            "ws_01k4zqpx000000000000000009",
            "evt_01K4ZQPX00000000000000000I",
            "usr_01K4ZQPX00000000000000000L",
            "qst_01K4ZQPX00000000000000000O",
            "run_01K4ZQPX00000000000000000U",
            "spc_01K4ZQPX0000000000000000\u{FF19}",
            "qst_01K4ZQPX00000000000000000",
            "evt_01K4ZQPX0000000000000000099",
            "qst_01K4ZQPX000000000000000009\n",
        ] {
            classes.add_value(event_type, pointer, FaultCode::BadId, json!(wrong));
        }
    }
    for (kind, id) in [
        ("person", "hrn_01K4ZQPX000000000000000004"),
        ("person", "system"),
        ("harness", "agt_01K4ZQPX000000000000000004"),
        ("agent", "usr_01K4ZQPX000000000000000004"),
        ("system", "usr_01K4ZQPX000000000000000004"),
        ("system", "System"),
    ] {
        classes
            .add(ASK, "/actor/id", FaultCode::BadId, move |event| event["actor"] = json!({ "kind": kind, "id": id }));
    }
    classes.add(ASK, "/actor/harness_id", FaultCode::BadId, |event| {
        event["actor"] = json!({ "kind": "agent", "id": "agt_01K4ZQPX000000000000000004", "harness_id": "h" });
    });
    for version in [json!(0), json!(2), json!(-1), json!(1.5)] {
        classes.add_value(ASK, "/v", FaultCode::UnsupportedVersion, version);
    }
    for name in ["question.asked", "", "Question.ask", "question.ask\n"] {
        classes.add_value(ASK, "/type", FaultCode::UnknownType, json!(name));
    }
    classes.add(ASK, "/actor/kind", FaultCode::UnknownValue, |event| event["actor"]["kind"] = json!("robot"));
    for word in ["use_defualt", "", "Cancel"] {
        classes.add_value(ASK, "/on_no_answer", FaultCode::UnknownValue, json!(word));
    }
    for time in ["", "yesterday", "2026-09-02", "2026-13-02T14:22:05Z", "2026-09-02 14:22:05Z", "2026-09-02T14:22:05"] {
        classes.add_value(ANSWERED, "/ts", FaultCode::UnknownValue, json!(time));
        classes.add_value(ANSWERED, "/answered_at", FaultCode::UnknownValue, json!(time));
    }
}

fn counts_and_numbers(classes: &mut Classes) {
    classes.add_value(ASK, "/questions", FaultCode::TooFew, json!([]));
    classes.add(ASK, "/questions/0/options", FaultCode::TooFew, |event| {
        event["questions"][0]["options"].as_array_mut().unwrap().truncate(1);
    });
    classes.add(ASK, "/questions", FaultCode::TooMany, |event| {
        let questions = (0..5).map(|number| {
            let mut question = event["questions"][0].clone();
            question["question_id"] = json!(number.to_string());
            question
        });
        event["questions"] = questions.collect();
    });
    classes.add(ASK, "/questions/0/options", FaultCode::TooMany, |event| {
        event["questions"][0]["options"] =
            (0..5).map(|number| json!({ "value": number.to_string(), "label": number.to_string() })).collect();
    });
    classes.add(ANSWERED, "/answers", FaultCode::TooMany, |event| {
        event["answers"] = (0..5).map(|number| json!({ "question_id": number.to_string(), "values": [] })).collect();
    });
    classes.add(ANSWERED, "/answers/0/values", FaultCode::TooMany, |event| {
        event["answers"][0]["values"] = json!(["1", "2", "3", "4", "5"]);
    });
    for number in
        [json!(0), json!(-0.0), json!(-1), json!(31_536_000.5), json!(31_536_001), json!(1e308), json!(u64::MAX)]
    {
        classes.add_value(ASK, "/timeout_seconds", FaultCode::OutOfRange, number);
    }
    for number in [json!(0), json!(-1), json!(1.5), json!(limits::SEQ + 1), json!(1e300)] {
        classes.add_value(ASK, "/seq", FaultCode::OutOfRange, number);
    }
}

fn texts(classes: &mut Classes) {
    for (event_type, pointer, max, may_be_blank, may_turn) in TEXTS {
        let mut add = |code: FaultCode, text: String| {
            classes.add(event_type, pointer, code, move |event| {
                // A default that is no option's value is free text.
                if pointer.ends_with("default_value") {
                    event["questions"][0]["allow_free_text"] = json!(true);
                }
                set(event, pointer, json!(text));
            });
        };
        add(FaultCode::TooLong, "\u{1F600}".repeat(max + 1));
        if !may_be_blank {
            for blank in ["", " ", "  \n", "\u{200B}", "\u{FEFF}\u{3000}", "\u{2800}"] {
                add(FaultCode::Empty, blank.to_owned());
            }
        }
        for control in ['\0', '\u{1B}', '\u{7F}', '\u{85}'] {
            add(FaultCode::ForbiddenCharacter, format!("a{control}b"));
        }
        if !may_turn {
            for control in ['\u{202A}', '\u{202E}', '\u{2066}', '\u{2069}'] {
                add(FaultCode::ForbiddenCharacter, format!("{control}b"));
            }
        }
    }
}

fn between_fields(classes: &mut Classes) {
    for (kind, id) in [
        ("person", "usr_01K4ZQPX000000000000000003"),
        ("harness", "hrn_01K4ZQPX000000000000000004"),
        ("system", "system"),
    ] {
        classes.add(ASK, "/actor/harness_id", FaultCode::NotAllowed, move |event| {
            event["actor"] = json!({ "kind": kind, "id": id, "harness_id": "hrn_01K4ZQPX000000000000000004" });
        });
    }
    classes.add(ASK, "/on_no_answer", FaultCode::NoDefault, |event| {
        for question in event["questions"].as_array_mut().unwrap() {
            question.as_object_mut().unwrap().shift_remove("default_value");
        }
        set(event, "/on_no_answer", json!("use_default"));
    });
    classes.add(ANSWERED, "/answers/0/values/1", FaultCode::Duplicate, |event| {
        event["answers"][0]["values"] = json!(["1", "1"]);
    });
}
