//! Identifiers: a prefix and an upper-case ULID (<https://github.com/ulid/spec>).
//!
//! One macro makes a newtype for each kind, so that a run's identifier can't be passed where an ask's belongs.
//! Parsing is strict: the spelling that comes in is the only spelling of that identifier. Lower-case letters, the
//! letters I, L, O and U, a first character over 7 (it would overflow 128 bits) and any other length are refused.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;

/// Crockford's base 32, the alphabet of a ULID.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Why a text is no identifier of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an identifier of this kind is `{prefix}` and an upper-case ULID of 26 characters")]
pub struct BadId {
    /// The prefix that the wanted kind has, underscore included.
    pub prefix: &'static str,
}

fn parse_ulid(text: &str) -> Option<Ulid> {
    let bytes = text.as_bytes();
    if bytes.len() != 26 || !(b'0'..=b'7').contains(&bytes[0]) {
        return None;
    }
    let mut value: u128 = 0;
    for byte in bytes {
        let digit = ALPHABET.iter().position(|letter| letter == byte)?;
        value = (value << 5) | digit as u128;
    }
    Some(Ulid(value))
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// The prefix of this kind, underscore included.
            pub const PREFIX: &'static str = $prefix;

            /// The identifier with this ULID.
            pub const fn new(ulid: Ulid) -> Self {
                Self(ulid)
            }

            /// The identifier made of a time in milliseconds since 1970 and 80 bits of `random` (the upper 48 are dropped).
            pub const fn from_parts(unix_ms: u64, random: u128) -> Self {
                Self(Ulid::from_parts(unix_ms, random))
            }

            /// The ULID behind the prefix.
            pub const fn ulid(self) -> Ulid {
                self.0
            }

            /// The 16 bytes of the ULID, most significant first; sorts like the text.
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.0.to_be_bytes()
            }

            /// The identifier whose ULID has these 16 bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Ulid(u128::from_be_bytes(bytes)))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $prefix, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                text.strip_prefix($prefix)
                    .and_then(parse_ulid)
                    .map(Self)
                    .ok_or(BadId { prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::object::parse(deserializer)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": concat!("^", $prefix, "[0-7][0-9A-HJKMNP-TV-Z]{25}$"),
                    // Some engines let `$` stand before a last line feed.
                    "maxLength": $prefix.len() + 26,
                })
            }
        }
    )*};
}

ids! {
    /// A workspace: a tenant with one append-only log.
    WorkspaceId = "ws_";
    /// A space: a place in a workspace.
    SpaceId = "spc_";
    /// A person.
    PersonId = "usr_";
    /// A harness: a program that runs agents and asks for them.
    HarnessId = "hrn_";
    /// An agent, which speaks only through its harness.
    AgentId = "agt_";
    /// A run: one piece of work of a harness.
    RunId = "run_";
    /// An event.
    EventId = "evt_";
    /// An ask: the life of one `question.ask`.
    AskId = "qst_";
}

/// Who an event is attributed to: a person, a harness, an agent, or Chips itself (`system`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParticipantId {
    /// A person.
    Person(PersonId),
    /// A harness.
    Harness(HarnessId),
    /// One of a harness's agents.
    Agent(AgentId),
    /// Chips itself.
    System,
}

impl fmt::Display for ParticipantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person(id) => id.fmt(f),
            Self::Harness(id) => id.fmt(f),
            Self::Agent(id) => id.fmt(f),
            Self::System => f.write_str("system"),
        }
    }
}

impl FromStr for ParticipantId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        if text == "system" {
            return Ok(Self::System);
        }
        text.parse()
            .map(Self::Person)
            .or_else(|_| text.parse().map(Self::Harness))
            .or_else(|_| text.parse().map(Self::Agent))
            .map_err(|_: BadId| BadId { prefix: "usr_, hrn_ or agt_" })
    }
}

impl Serialize for ParticipantId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ParticipantId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::object::parse(deserializer)
    }
}

impl schemars::JsonSchema for ParticipantId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ParticipantId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "anyOf": [
                { "pattern": "^(usr|hrn|agt)_[0-7][0-9A-HJKMNP-TV-Z]{25}$", "maxLength": 30 },
                { "const": "system" },
            ],
        })
    }
}
