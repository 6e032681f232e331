//! A client for Chips, where AI agents ask people.
//!
//! A harness opens a run, asks, and waits; a person answers; the harness goes on. This crate does the parts that are
//! easy to get wrong: a write is repeated byte for byte until its outcome is known, a wait outlives restarts of the
//! server and dead networks, and a stream resumes where it was cut, without a gap and without a repeat.
//!
//! ```no_run
//! use chips_client::{AskSpec, Client};
//! use chips_client::protocol::api::{AskState, NewRun};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new("http://127.0.0.1:7070", &std::env::var("CHIPS_TOKEN")?)?;
//! let run = client.open_run(NewRun { title: Some("Ship order 4711".into()), ..NewRun::default() }).await?;
//!
//! let asked = client
//!     .ask(
//!         AskSpec::one(run.run_id, "Ship on the 19th or the 26th?", [("19", "19 September"), ("26", "26 September")])
//!             .default_value("19")
//!             .timeout_seconds(3600),
//!     )
//!     .await?;
//!
//! let ask = client.wait(asked.ask_id()).await?;
//! if let (AskState::Answered, Some(answer)) = (ask.state, ask.answer.as_ref().and_then(|event| event.as_answered())) {
//!     println!("{:?}", answer.answers[0].values);
//! }
//! client.end_run(run.run_id).await?;
//! # Ok(()) }
//! ```
//!
//! # What is repeated, and for how long
//!
//! A call that gets no reply, half a reply, or a 502, 503 or 504 is sent again after a pause that doubles each time,
//! with jitter, and is no shorter than the server's `Retry-After`. Plain calls give up after
//! [`ClientBuilder::retry_for`]; [`Client::wait`] and [`Client::stream`] never do. A refusal is Chips' own word and
//! ends a call at once: see [`Error::problem`].
//!
//! Dropping a future stops its work; nothing goes on in the background.

mod address;
mod answer;
mod ask;
mod backoff;
mod call;
mod client;
mod clock;
mod error;
mod link;
pub mod mint;
mod read;
mod sse;
mod stream;
mod tls;
mod token;
mod workplace;

pub use chips_protocol as protocol;

/// Parts of this client that an adapter needs too, to speak to the server of a harness.
pub mod parts {
    pub use crate::backoff::{Backoff, Pauses};
    pub use crate::call::in_words;
    pub use crate::mint::fraction;
    pub use crate::sse::{Malformed, Message, Parser};
    pub use crate::tls::config as tls_config;
}

pub use address::{Address, BadAddress};
pub use answer::AskRef;
pub use ask::{AskSpec, PreparedAsk, Written};
pub use client::{Client, ClientBuilder};
pub use error::{Error, SetupError};
pub use link::LinkChange;
pub use read::{AsksQuery, EventsQuery};
pub use stream::{EventStream, StreamQuery, Streamed};
pub use token::{BadToken, Token, TokenKind};
pub use workplace::Workplace;

/// The page of this crate, whose example must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
