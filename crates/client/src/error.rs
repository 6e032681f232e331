//! What can go wrong.

use std::time::Duration;

use chips_protocol::problem::{Problem, ProblemCode};
use chips_protocol::{Event, Fault};

use crate::address::BadAddress;
use crate::mint::NoRandomness;
use crate::token::BadToken;

/// Why no client can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The address can't be one of a server.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// The token can't be one.
    #[error(transparent)]
    Token(#[from] BadToken),
    /// TLS can't be spoken: the machine trusts no certificate authority, say.
    #[error(
        "can't speak TLS: {0}; install the package ca-certificates, or name a file of certificates in SSL_CERT_FILE"
    )]
    Tls(String),
    /// The HTTP client can't be built.
    #[error("can't set up HTTP: {0}")]
    Http(String),
}

/// Why a call did not do what it was for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Chips refused; nothing was written. The text has Chips' own detail and the code; where there are several faults,
    /// [`Error::faults`] has each with its place.
    #[error("{}", in_words(problem))]
    Refused {
        /// What Chips says.
        problem: Box<Problem>,
        /// How long Chips wishes to be left alone, where it says so.
        retry_after: Option<Duration>,
    },
    /// The server did not reply, for as long as it was tried. Whether a write has arrived is not known; sent again
    /// with the same bytes, it does no harm.
    #[error("can't reach {server}: {reason}")]
    Unreachable {
        /// The server's address.
        server: String,
        /// What happened the last time.
        reason: String,
    },
    /// Something replied, but not as Chips does: another server, a proxy, a sign-in page of a network.
    #[error("{server} does not answer like Chips: {detail}")]
    NotChips {
        /// The server's address.
        server: String,
        /// The HTTP status.
        status: u16,
        /// What was wrong with the reply.
        detail: String,
    },
    /// No identifier could be minted.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

fn in_words(problem: &Problem) -> String {
    let what = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
    format!("{what} ({})", problem.code.as_str())
}

impl Error {
    /// What Chips says, where it is Chips that refused.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            _ => None,
        }
    }

    /// The code of the refusal, where it is Chips that refused.
    pub fn code(&self) -> Option<ProblemCode> {
        self.problem().map(|problem| problem.code)
    }

    /// What was wrong with what was sent, each fault with its place; empty where it was something else.
    pub fn faults(&self) -> &[Fault] {
        self.problem().map_or(&[], |problem| &problem.errors)
    }

    /// The `question.answered` that had closed the ask, where it was closed already.
    pub fn winning_answer(&self) -> Option<&Event> {
        self.problem()?.answer.as_deref()
    }
}
