//! Why a write is refused. Nothing of the refused write is appended.

use std::sync::Arc;

use chips_protocol::problem::{Problem, ProblemCode};
use chips_protocol::{Event, Fault};

use crate::budget::OverBudget;

/// Why a write is refused, as the contract's codes have it.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// This kind of participant may not do this.
    WrongSender(&'static str),
    /// The actor is not the sender or one of its agents.
    ActorMismatch,
    /// Unknown, or not visible to the sender.
    NotFound(&'static str),
    /// Faults, each with its place.
    Invalid(Vec<Fault>),
    /// The ask is closed, by this event.
    AlreadyClosed(Arc<Event>),
    /// The event id stands for something else.
    EventIdConflict,
    /// The ask id stands for something else.
    AskIdConflict,
    /// The run id is another harness's.
    RunIdConflict,
    /// The run has ended.
    RunEnded,
    /// The harness has asked as much as it may.
    OverBudget(OverBudget),
}

impl Refusal {
    /// The code on the wire.
    pub const fn code(&self) -> ProblemCode {
        match self {
            Self::WrongSender(_) => ProblemCode::WrongSender,
            Self::ActorMismatch => ProblemCode::ActorMismatch,
            Self::NotFound(_) => ProblemCode::NotFound,
            Self::Invalid(_) => ProblemCode::InvalidEvent,
            Self::AlreadyClosed(_) => ProblemCode::AlreadyClosed,
            Self::EventIdConflict => ProblemCode::EventIdConflict,
            Self::AskIdConflict => ProblemCode::AskIdConflict,
            Self::RunIdConflict => ProblemCode::RunIdConflict,
            Self::RunEnded => ProblemCode::RunEnded,
            Self::OverBudget(_) => ProblemCode::OverBudget,
        }
    }

    /// Whole seconds for `Retry-After`, where the refusal passes by itself.
    pub const fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::OverBudget(over) => Some(over.retry_after_s),
            _ => None,
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let code = refusal.code();
        match refusal {
            Refusal::WrongSender(detail) | Refusal::NotFound(detail) => Self::new(code, detail),
            Refusal::ActorMismatch => Self::new(
                code,
                "`actor` must be the participant that the token belongs to or, for a harness, one of its own agents",
            ),
            Refusal::Invalid(errors) => {
                let detail = match errors.as_slice() {
                    [only] if only.pointer.is_empty() => only.message.clone(),
                    [only] => format!("{}: {}", only.pointer, only.message),
                    many => format!("{} faults; each is in `errors` with its place", many.len()),
                };
                Self { errors, ..Self::new(code, detail) }
            }
            Refusal::AlreadyClosed(event) => Self {
                answer: Some(Box::new(Event::clone(&event))),
                ..Self::new(code, "the first answer has won; it is in `answer`")
            },
            Refusal::EventIdConflict => Self::new(
                code,
                "another event with this `id` is in the log; repeat that one unchanged, or mint a new `id`",
            ),
            Refusal::AskIdConflict => Self::new(
                code,
                "another ask with this `ask_id` is in the log; repeat that one unchanged, or mint a new `ask_id`",
            ),
            Refusal::RunIdConflict => Self::new(code, "this `run_id` is taken; mint a new one"),
            Refusal::RunEnded => Self::new(code, "the run has ended and takes no more asks; open a new run"),
            Refusal::OverBudget(over) => Self::new(
                code,
                if over.hourly {
                    format!(
                        "this harness may ask {} times an hour; try again in {} s, or have the operator raise it with `chips harness budget`",
                        over.limit, over.retry_after_s
                    )
                } else {
                    format!(
                        "this harness may have {} open asks; answer, settle or withdraw some, or have the operator raise it with `chips harness budget`",
                        over.limit
                    )
                },
            ),
        }
    }
}
