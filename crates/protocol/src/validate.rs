//! Checks an event by hand and names every fault at once, each with its place (RFC 6901) and a code.

mod answered;
mod ask;
mod checks;
mod event;
mod run;

pub(crate) use event::ENVELOPE;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::NewRun;
use crate::event::{Draft, Event};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        /// What is wrong at a place.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum FaultCode { $($(#[$doc])* #[serde(rename = $code)] $name,)* }

        impl FaultCode {
            /// Every code, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

codes! {
    /// A field that must be there is not.
    Required = "required";
    /// A field that nobody knows.
    UnknownField = "unknown_field";
    /// A value of another JSON type, `null` included.
    WrongType = "wrong_type";
    /// No identifier of the wanted kind.
    BadId = "bad_id";
    /// Another protocol version than 1.
    UnsupportedVersion = "unsupported_version";
    /// No event type of this protocol.
    UnknownType = "unknown_type";
    /// None of the words that may stand here.
    UnknownValue = "unknown_value";
    /// Fewer entries than needed.
    TooFew = "too_few";
    /// More entries than allowed.
    TooMany = "too_many";
    /// More characters than allowed.
    TooLong = "too_long";
    /// Blank.
    Empty = "empty";
    /// Stands twice where it must be unique.
    Duplicate = "duplicate";
    /// A number outside its limits.
    OutOfRange = "out_of_range";
    /// A value that no option of the question has.
    NotAnOption = "not_an_option";
    /// Well-formed, but not allowed here.
    NotAllowed = "not_allowed";
    /// `use_default` without any default.
    NoDefault = "no_default";
    /// A character that must not stand here.
    ForbiddenCharacter = "forbidden_character";
    /// No run of the sender.
    UnknownRun = "unknown_run";
    /// No space of the workspace.
    UnknownSpace = "unknown_space";
    /// Another value than the one that this must agree with.
    Mismatch = "mismatch";
}

/// One fault: where, what, and in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fault {
    /// The place, as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// What programs look at.
    pub code: FaultCode,
    /// What is wrong and what to do, for people.
    pub message: String,
}

impl Fault {
    /// A fault at a place.
    pub fn new(pointer: impl Into<String>, code: FaultCode, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), code, message: message.into() }
    }
}

/// Checks a client's write and returns it typed.
///
/// # Errors
/// Every fault that can be known without the log, in the order of the protocol's tables.
pub fn draft(value: &Value) -> Result<Draft, Vec<Fault>> {
    event::draft(value)
}

/// Checks an event in its stored form (as the log, a page or a stream gives it) and returns it typed.
///
/// # Errors
/// Every fault, in the order of the protocol's tables.
pub fn stored(value: &Value) -> Result<Event, Vec<Fault>> {
    event::stored(value)
}

/// Checks the body of `POST /v1/runs`.
///
/// # Errors
/// Every fault that can be known without the store, in the order of [`NewRun`]'s fields.
pub fn new_run(value: &Value) -> Result<NewRun, Vec<Fault>> {
    run::new_run(value)
}
