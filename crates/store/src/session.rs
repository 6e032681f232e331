//! A person's browser sessions, and how they begin.

use chips_protocol::Timestamp;

use crate::Identity;

/// How long a sign-in link or code is good, in milliseconds.
pub const SIGN_IN_MS: i64 = 15 * 60 * 1000;
/// How long a session may be idle, in milliseconds.
pub const IDLE_MS: i64 = 14 * 24 * 3600 * 1000;
/// How long a session may last at most, in milliseconds.
pub const LONGEST_MS: i64 = 30 * 24 * 3600 * 1000;

/// What a person shows to sign in. The link's secret or the short code beside it; using one uses up both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// The SHA-256 of the link's secret.
    Link([u8; 32]),
    /// The SHA-256 of the code in its canonical spelling ([`crate::secret::canonical_code`]).
    Code([u8; 32]),
}

/// What a sign-in link stands for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInState {
    /// It signs this person in.
    Good {
        /// What people call the person.
        name: String,
    },
    /// It was used.
    Used,
    /// It is too old.
    Expired,
    /// Nobody made it.
    Unknown,
}

/// What became of an attempt to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedIn {
    /// Signed in: the session's secret for the cookie, and whose session it is.
    Yes(String, Box<Session>),
    /// Not; the state says why (never `Good`).
    No(SignInState),
}

/// The device that a session belongs to, in words that a person knows it by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// Such as "Firefox on Linux".
    pub name: String,
}

/// A person's session in a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// A number that names it in settings; no secret.
    pub session_id: i64,
    /// Whose it is.
    pub identity: Identity,
    /// On which device.
    pub device: Device,
    /// When it began.
    pub began: Timestamp,
    /// When it was last used, within some minutes.
    pub last_used: Timestamp,
}
