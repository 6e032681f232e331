//! Reading JSON strictly: what a lenient reader lets pass (duplicate keys, endless nesting) is refused here.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How deep a body may nest.
pub const MAX_DEPTH: usize = crate::limits::DEPTH;

/// Why a text can't be taken as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// It is no JSON (RFC 8259), or holds a number or a surrogate that can't be represented.
    #[error("{message} at line {line}, column {column}")]
    Malformed {
        /// What is wrong.
        message: String,
        /// From 1.
        line: usize,
        /// From 1, in bytes.
        column: usize,
    },
    /// An object names a member twice, at any depth.
    #[error("the key {key:?} stands twice in one object, at line {line}, column {column}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// From 1.
        line: usize,
        /// From 1, in bytes.
        column: usize,
    },
    /// It nests deeper than [`MAX_DEPTH`].
    #[error("the body nests deeper than {MAX_DEPTH}")]
    TooDeep,
}

/// Reads one JSON document. Members keep their order.
///
/// # Errors
/// See [`JsonFault`]. Work and memory stay proportional to the input, whatever it is.
pub fn read(bytes: &[u8]) -> Result<Value, JsonFault> {
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(JsonFault::Malformed {
            message: "a byte-order mark must not stand before JSON".into(),
            line: 1,
            column: 1,
        });
    }
    let refusal = Cell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    Strict { depth: 0, refusal: &refusal }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| fault(&error, refusal.take()))
}

/// What this reader refuses although it is JSON.
enum Refusal {
    TooDeep,
    DuplicateKey(String),
}

fn fault(error: &serde_json::Error, refusal: Option<Refusal>) -> JsonFault {
    let (line, column) = (error.line().max(1), error.column().max(1));
    match refusal {
        Some(Refusal::TooDeep) => JsonFault::TooDeep,
        Some(Refusal::DuplicateKey(key)) => JsonFault::DuplicateKey { key, line, column },
        None => {
            let mut message = error.to_string();
            if let Some(at) = message.rfind(" at line ") {
                message.truncate(at);
            }
            JsonFault::Malformed { message, line, column }
        }
    }
}

/// Reads one value at a depth. `serde`'s errors carry text alone, so the reason for a refusal travels beside them.
#[derive(Clone, Copy)]
struct Strict<'r> {
    depth: usize,
    refusal: &'r Cell<Option<Refusal>>,
}

impl Strict<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            self.refusal.set(Some(Refusal::TooDeep));
            return Err(E::custom("too deep"));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if object.contains_key(&key) {
                self.refusal.set(Some(Refusal::DuplicateKey(key)));
                return Err(A::Error::custom("duplicate key"));
            }
            object.insert(key, members.next_value_seed(inner)?);
        }
        Ok(Value::Object(object))
    }
}
