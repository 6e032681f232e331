//! Everything between a socket and a handler: the accept loop, the layers that every request passes, the reading of bodies,
//! and how a refusal looks.

pub mod accept;
pub mod body;
pub mod forwarded;
pub mod guard;
pub mod hosts;
pub mod layers;
pub(crate) mod origin;
pub mod peer;
pub mod problem;
pub mod query;

pub(crate) use peer::Doubts;
pub use peer::Peer;
pub use problem::ApiError;
