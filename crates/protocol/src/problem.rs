//! Problems: what a refusal looks like on the wire (RFC 9457), and the one table of their codes.

use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::validate::Fault;

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:literal, $title:literal;)*) => {
        /// The code of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum ProblemCode {
            $($(#[$doc])* #[serde(rename = $code)] $name,)*
        }

        impl ProblemCode {
            /// Every code, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The HTTP status that goes with it.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// A short line that is the same for every problem of this code.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }
        }

        /// The page that explains a code, in Markdown: what it means, when it happens and what to do. Whoever serves
        /// problems serves it where their `type` points to.
        pub const fn page(code: ProblemCode) -> &'static str {
            match code { $(ProblemCode::$name => include_str!(concat!("../problems/", $code, ".md")),)* }
        }
    };
}

problems! {
    /// The body is no JSON.
    MalformedJson = "malformed_json", 400, "The body is not JSON";
    /// An object names a member twice.
    DuplicateKey = "duplicate_key", 400, "A JSON object names a member twice";
    /// The body nests deeper than 32.
    TooDeep = "too_deep", 400, "The body nests too deep";
    /// A query parameter is unknown or has a value that can't be read.
    BadQuery = "bad_query", 400, "A query parameter can't be read";
    /// A token stands in the query.
    TokenInQuery = "token_in_query", 400, "Tokens travel in the Authorization header alone";
    /// No token, or one that is not good.
    Unauthenticated = "unauthenticated", 401, "A valid token is needed";
    /// This kind of participant may not do this.
    WrongSender = "wrong_sender", 403, "This participant may not do this";
    /// The event's actor is not the sender.
    ActorMismatch = "actor_mismatch", 403, "The actor is not the sender";
    /// Unknown, or not visible to the sender.
    NotFound = "not_found", 404, "Not found";
    /// The path exists, the method on it does not.
    MethodNotAllowed = "method_not_allowed", 405, "This method is not allowed here";
    /// The ask is closed; the winning event is in `answer`.
    AlreadyClosed = "already_closed", 409, "The ask is closed already";
    /// The event id stands for something else.
    EventIdConflict = "event_id_conflict", 409, "This event id stands for another event";
    /// The ask id stands for something else.
    AskIdConflict = "ask_id_conflict", 409, "This ask id stands for another ask";
    /// The run id is another harness's.
    RunIdConflict = "run_id_conflict", 409, "This run id is taken";
    /// The run has ended.
    RunEnded = "run_ended", 409, "The run has ended";
    /// The cursor lies past the head of the log.
    CursorAhead = "cursor_ahead", 410, "The cursor lies past the end of the log";
    /// The cursor belongs to another history of the log.
    LogChanged = "log_changed", 410, "The log has another history now";
    /// The cursor is older than what is kept.
    CursorGone = "cursor_gone", 410, "The cursor is older than what is kept";
    /// The body is larger than 256 KiB.
    TooLarge = "too_large", 413, "The body is too large";
    /// The body is not plain `application/json`.
    UnsupportedMediaType = "unsupported_media_type", 415, "The body must be application/json";
    /// The request names a host that this server does not answer for.
    Misdirected = "misdirected", 421, "This server does not answer for that host";
    /// The event is refused; every fault is in `errors`.
    InvalidEvent = "invalid_event", 422, "The event has faults";
    /// The harness has asked as much as it may.
    OverBudget = "over_budget", 429, "The harness's budget is spent";
    /// Too many failed tokens or sign-ins.
    RateLimited = "rate_limited", 429, "Too many failed attempts";
    /// The store can't take writes.
    Unavailable = "unavailable", 503, "Chips can't write right now";
}

/// The page that explains the codes of single faults, in Markdown; it stands beside those of the problems as `faults`.
pub const FAULTS_PAGE: &str = include_str!("../problems/faults.md");

impl ProblemCode {
    /// The code with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }
}

/// A refusal, as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Problem {
    /// The page that explains the code.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// A short line that is the same for every problem of this code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What was wrong this time, and what to do.
    pub detail: String,
    /// What programs look at.
    pub code: ProblemCode,
    /// Every fault, for `invalid_event`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Fault>,
    /// The event that closed the ask, for `already_closed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::schema::QuestionAnsweredEvent>")]
    pub answer: Option<Box<Event>>,
}

impl Problem {
    /// A problem of this code, with what was wrong this time.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            type_uri: format!("/problems/{}", code.as_str()),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            code,
            errors: Vec::new(),
            answer: None,
        }
    }
}
