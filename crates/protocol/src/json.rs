//! Reading JSON strictly: what a lenient reader lets pass (duplicate keys, endless nesting) is refused here.

use serde_json::Value;

/// How deep a body may nest.
pub const MAX_DEPTH: usize = 32;

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
    let _ = bytes;
    todo!()
}
