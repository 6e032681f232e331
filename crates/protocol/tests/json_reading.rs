//! Reading JSON strictly: what comes in is taken for what it says, or refused with its place.
#![allow(clippy::unwrap_used)]

use chips_protocol::json::{JsonFault, MAX_DEPTH, read};
use proptest::prelude::*;
use serde_json::Value;

fn malformed_at(bytes: &[u8]) -> (usize, usize) {
    match read(bytes) {
        Err(JsonFault::Malformed { line, column, .. }) => (line, column),
        other => panic!("{:?} was read as {other:?}", String::from_utf8_lossy(bytes)),
    }
}

fn duplicate_key(text: &str) -> String {
    match read(text.as_bytes()) {
        Err(JsonFault::DuplicateKey { key, .. }) => key,
        other => panic!("{text} was read as {other:?}"),
    }
}

#[test]
fn members_keep_their_order() {
    let value = read(br#" {"z": [1, 2.5, -3, true, null, "\u0053hip"], "a": {}} "#).unwrap();
    assert_eq!(value.to_string(), r#"{"z":[1,2.5,-3,true,null,"Ship"],"a":{}}"#);
}

#[test]
fn a_key_that_stands_twice_is_refused_at_any_depth() {
    assert_eq!(duplicate_key(r#"{"a":1,"a":1}"#), "a");
    assert_eq!(duplicate_key(r#"{"questions":[{"options":[{"value":"1","label":"x","value":"2"}]}]}"#), "value");
    assert_eq!(duplicate_key(r#"{"unknown":{"deeper":[{"b":{},"b":{}}]}}"#), "b");
    assert_eq!(duplicate_key(r#"{"a":1,"\u0061":2}"#), "a");
    assert_eq!(duplicate_key(r#"{"":1,"":2}"#), "");
}

#[test]
fn a_duplicate_key_is_told_with_its_place() {
    let fault = read(b"{\n  \"a\": 1,\n  \"a\": 2\n}").unwrap_err();
    assert_eq!(fault, JsonFault::DuplicateKey { key: "a".into(), line: 3, column: 5 });
}

#[test]
fn nesting_ends_at_its_limit() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(nested(MAX_DEPTH).as_bytes()).is_ok());
    assert_eq!(read(nested(MAX_DEPTH + 1).as_bytes()), Err(JsonFault::TooDeep));
    let objects = format!("{}1{}", r#"{"a":"#.repeat(MAX_DEPTH + 1), "}".repeat(MAX_DEPTH + 1));
    assert_eq!(read(objects.as_bytes()), Err(JsonFault::TooDeep));
}

#[test]
fn endless_nesting_is_refused_without_a_look_at_the_rest() {
    assert_eq!(read("[".repeat(100_000).as_bytes()), Err(JsonFault::TooDeep));
    assert_eq!(read(r#"{"a":"#.repeat(100_000).as_bytes()), Err(JsonFault::TooDeep));
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    assert_eq!(malformed_at(b""), (1, 1));
    assert_eq!(malformed_at(b"{\"a\": 1}\n x"), (2, 2));
    assert_eq!(malformed_at(b"{\n\"a\": nul}"), (2, 9));
    assert_eq!(malformed_at("\u{FEFF}{}".as_bytes()), (1, 1));
    assert_eq!(malformed_at(b"{\"a\": NaN}"), (1, 7));
    for text in [
        &b"{\"a\": 1e400}"[..],
        b"{\"a\": -1e400}",
        b"{\"a\": Infinity}",
        b"{\"a\": \"\\ud800\"}",
        b"{\"a\": \"\\udc00\\ud800\"}",
        b"{\"a\": \"\xFF\"}",
        b"{\"a\": \"line\nfeed\"}",
        b"{\"a\": \"\0\"}",
        b"{\"a\": 01}",
        b"{\"a\": .5}",
        b"{\"a\": 1,}",
        b"{'a': 1}",
        b"{} {}",
        b"{\"a\": 1} // note",
        b"\xFE\xFF\0{\0}",
    ] {
        let (line, column) = malformed_at(text);
        assert!(line >= 1 && column >= 1);
    }
}

#[test]
fn the_message_names_the_place_once() {
    let message = read(b"{\"a\": 1e400}").unwrap_err().to_string();
    assert_eq!(message.matches("line").count(), 1, "{message}");
}

#[test]
fn numbers_are_read_by_value() {
    assert_eq!(read(b"6e1").unwrap().as_f64(), Some(60.0));
    assert_eq!(read(b"18446744073709551615").unwrap().as_u64(), Some(u64::MAX));
    assert_eq!(read(b"1e308").unwrap().as_f64(), Some(1e308));
    assert_eq!(read(b"-0.0").unwrap().as_f64(), Some(0.0));
}

/// Any JSON value, with keys that are apt to meet.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((".{0,2}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_the_bytes_reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes);
    }

    #[test]
    fn whatever_is_nearly_json_reading_never_panics(text in r#"[\[\]{}",:0-9eE.\\u d8truefalsn\n -]{0,200}"#) {
        let _ = read(text.as_bytes());
    }

    #[test]
    fn what_was_written_reads_back(value in any_json()) {
        prop_assert_eq!(read(value.to_string().as_bytes()), Ok(value));
    }

    #[test]
    fn what_is_read_is_what_a_lenient_reader_reads(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(value) = read(&bytes) {
            prop_assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), value);
        }
    }
}
