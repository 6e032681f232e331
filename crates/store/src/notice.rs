//! Telling people outside the inbox, and harnesses by webhook.
//!
//! What is to be said is a consumer of the log with a cursor of its own ([`Store::plan_notices`]); whoever sends claims
//! what is due ([`Store::claim_notices`]), speaks to the network without the store, and records what the other side made
//! of it ([`Store::record_attempt`]). A message whose sender died is claimed again.
//!
//! [`Store::plan_notices`]: crate::Store::plan_notices
//! [`Store::claim_notices`]: crate::Store::claim_notices
//! [`Store::record_attempt`]: crate::Store::record_attempt

use chips_core::notify::{Channel, Kind};
use chips_protocol::api::{Ask, Named};
use chips_protocol::{Timestamp, WorkspaceId};

/// How long a message that was claimed is not given to another sender, in milliseconds. Longer than any send takes.
pub const CLAIM_MS: i64 = 60_000;

/// Endpoints that one person or harness may have.
pub const ENDPOINTS_MOST: i64 = 50;

/// An address that is to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEndpoint {
    /// The way to it.
    pub channel: Channel,
    /// The address: a URL, for [`Channel::Email`] a mail address, for [`Channel::Telegram`] the number of a chat.
    pub address: String,
    /// What the channel needs to speak to it, as JSON of the channel's own.
    pub secret: String,
    /// What its owner knows it by.
    pub name: String,
    /// The session that it ends with.
    pub session_id: Option<i64>,
}

/// An address at which a person or a harness is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A number that names it in settings; no secret.
    pub endpoint_id: i64,
    /// The way to it.
    pub channel: Channel,
    /// The address.
    pub address: String,
    /// What the channel needs to speak to it, as JSON of the channel's own.
    pub secret: String,
    /// What its owner knows it by.
    pub name: String,
    /// The session that it ends with.
    pub session_id: Option<i64>,
    /// When it was added.
    pub created_at: Timestamp,
    /// Whether nothing is sent to it any more: the other side said that it is gone.
    pub disabled: bool,
    /// What the other side said last, where it did not accept.
    pub trouble: Option<String>,
}

/// A message that is due, with all that its text is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Names the message; the same at each try.
    pub no: i64,
    /// Why it is sent.
    pub kind: Kind,
    /// Where to.
    pub endpoint: Endpoint,
    /// Whose endpoint it is.
    pub owner: Named,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The ask as it stands now.
    pub ask: Ask,
    /// What the run is called.
    pub run_title: Option<String>,
    /// Whether no word of the question may leave: it was asked in a private space.
    pub private: bool,
    /// The owner's time zone, by its name in the IANA database.
    pub zone: String,
    /// How often it was tried before.
    pub tries: u32,
    /// What the other side calls the messages about the ask that it took here, the first one first, where it said so
    /// ([`chips_core::notify::Outcome::AcceptedAs`]): these can be changed.
    pub earlier: Vec<String>,
}

/// One try to send a message, as the other side took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The channel.
    pub channel: Channel,
    /// What the endpoint's owner knows it by.
    pub name: String,
    /// Whose endpoint it is; a harness has none.
    pub person: Option<Named>,
    /// Why it was sent.
    pub kind: Kind,
    /// When.
    pub at: Timestamp,
    /// `accepted`, `gone`, `refused`, `failed` or `timed_out` ([`chips_core::notify::Outcome::as_str`]).
    pub outcome: String,
    /// What the other side said; of a message that it took, its name for it.
    pub detail: String,
}

/// That a person has seen an ask: a visible page of the inbox showed it to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// Who.
    pub by: Named,
    /// When first.
    pub at: Timestamp,
}
