//! Who a request speaks for: tokens, sessions, sign-in.

pub mod failures;
pub mod session;
pub mod tokens;

pub use failures::Failures;
pub use tokens::Caller;
