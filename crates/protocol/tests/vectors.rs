//! Every test vector, and that the vectors between them show every fault that one document can have.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chips_protocol::json::{JsonFault, read};
use chips_protocol::{Fault, FaultCode, validate};
use common::brief;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    description: String,
    form: Form,
    #[serde(default, deserialize_with = "present")]
    input: Option<Value>,
    raw: Option<String>,
    raw_base64: Option<String>,
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
    errors: Option<Vec<Expected>>,
    json_fault: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    pointer: String,
    code: String,
}

#[derive(Deserialize, PartialEq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Form {
    Write,
    Stored,
    Run,
    Raw,
}

/// A member that is null is there.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The vectors of a folder by their names.
fn vectors(folder: &str) -> Vec<(String, Vector)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 20);
    paths
        .iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let vector: Vector = serde_json::from_slice(&std::fs::read(path).unwrap())
                .unwrap_or_else(|error| panic!("{name} is no vector: {error}"));
            assert!(!vector.description.is_empty(), "{name}");
            assert_eq!(vector.input.is_some(), vector.form != Form::Raw, "{name}");
            (name, vector)
        })
        .collect()
}

impl Vector {
    fn faults(&self) -> Vec<Fault> {
        let input = self.input.as_ref().unwrap();
        match self.form {
            Form::Write => validate::draft(input).err(),
            Form::Stored => validate::stored(input).err(),
            Form::Run => validate::new_run(input).err(),
            Form::Raw => None,
        }
        .unwrap_or_default()
    }

    fn bytes(&self) -> Vec<u8> {
        match (&self.raw, &self.raw_base64) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(text)) => BASE64_STANDARD.decode(text).unwrap(),
            _ => panic!("a raw vector has its bytes once"),
        }
    }
}

#[test]
fn valid_vectors_are_taken() {
    for (name, vector) in vectors("valid") {
        assert!(vector.errors.is_none() && vector.json_fault.is_none(), "{name}");
        if vector.form == Form::Raw {
            assert_eq!(read(&vector.bytes()).unwrap(), vector.value.unwrap(), "{name}");
        } else {
            assert_eq!(vector.faults(), [], "{name}");
        }
    }
}

#[test]
fn what_is_taken_as_stored_reads_and_prints_as_one_event() {
    for (name, vector) in vectors("valid").into_iter().filter(|(_, vector)| vector.form == Form::Stored) {
        let event = validate::stored(&vector.input.unwrap()).unwrap();
        let printed = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<chips_protocol::Event>(&printed).unwrap(), event, "{name}");
        assert_eq!(validate::stored(&read(printed.as_bytes()).unwrap()), Ok(event), "{name}");
    }
}

#[test]
fn invalid_vectors_are_refused_with_exactly_their_faults() {
    for (name, vector) in vectors("invalid").into_iter().filter(|(_, vector)| vector.form != Form::Raw) {
        let expected: Vec<_> =
            vector.errors.iter().flatten().map(|fault| (fault.pointer.as_str(), fault.code.as_str())).collect();
        assert!(!expected.is_empty(), "{name}");
        let faults = vector.faults();
        assert_eq!(brief(&faults), expected, "{name}");
        for fault in &faults {
            assert!(fault.message.len() > 10 && !fault.message.contains('\0'), "{name}: {fault:?}");
        }
    }
}

#[test]
fn invalid_bytes_are_refused_for_their_reason() {
    for (name, vector) in vectors("invalid").into_iter().filter(|(_, vector)| vector.form == Form::Raw) {
        let fault = read(&vector.bytes()).unwrap_err();
        let (code, place) = match fault {
            JsonFault::Malformed { line, column, .. } => ("malformed_json", Some((line, column))),
            JsonFault::DuplicateKey { line, column, .. } => ("duplicate_key", Some((line, column))),
            JsonFault::TooDeep => ("too_deep", None),
        };
        assert_eq!(vector.json_fault.as_deref(), Some(code), "{name}");
        if let Some(expected) = vector.line.zip(vector.column) {
            assert_eq!(place, Some(expected), "{name}");
        }
    }
}

#[test]
fn every_fault_that_one_document_can_have_is_shown() {
    let shown: BTreeSet<String> = vectors("invalid")
        .into_iter()
        .flat_map(|(_, vector)| {
            let codes = vector.errors.into_iter().flatten().map(|fault| fault.code);
            codes.chain(vector.json_fault).collect::<Vec<_>>()
        })
        .collect();
    let needs_the_log = [FaultCode::UnknownRun, FaultCode::UnknownSpace, FaultCode::Mismatch];
    let every: BTreeSet<String> = FaultCode::ALL
        .iter()
        .filter(|code| !needs_the_log.contains(code))
        .map(|code| code.as_str().to_owned())
        .chain(["malformed_json", "duplicate_key", "too_deep"].map(str::to_owned))
        .collect();
    assert_eq!(shown, every);
}
