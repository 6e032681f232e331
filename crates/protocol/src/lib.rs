//! The words of Chips on the wire, and nothing else: identifiers, times, the two question events, the
//! faults that a checker finds in them, what the endpoints take and return, and the problems they answer with.
//!
//! This crate does no I/O and knows no clock. Whoever speaks to Chips, in either direction, can build on it.

pub mod api;
pub mod event;
pub mod id;
pub mod json;
pub mod limits;
mod object;
pub mod problem;
pub mod schema;
pub mod text;
pub mod time;
pub mod validate;

pub use event::{
    Actor, Answer, AnswerDraft, Content, Draft, DraftContent, Envelope, Event, EventType, OnNoAnswer, Participant,
    ParticipantKind, Question, QuestionAnswered, QuestionAsk, QuestionOption,
};
pub use id::{AgentId, AskId, EventId, HarnessId, ParticipantId, PersonId, RunId, SpaceId, WorkspaceId};
pub use time::Timestamp;
pub use validate::{Fault, FaultCode};
