//! Who may see what.

use std::collections::BTreeSet;

use chips_protocol::{HarnessId, Participant, PersonId, SpaceId, WorkspaceId};

/// Whom a credential speaks for. An agent has none: it speaks through its harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// A person.
    Person(PersonId),
    /// A harness, all its agents included.
    Harness(HarnessId),
}

/// The credential behind a request: what keys, replays and rights are bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sender {
    /// The credential's workspace.
    pub workspace_id: WorkspaceId,
    /// The credential's participant.
    pub who: Who,
}

impl Sender {
    /// Whether the sender may write as this actor: as itself or, a harness, as one of its agents. Whose an agent
    /// is, only the store knows.
    pub fn may_act_as(&self, actor: Participant) -> bool {
        match (self.who, actor) {
            (Who::Person(own), Participant::Person(id)) => own == id,
            (Who::Harness(own), Participant::Harness(id)) => own == id,
            (Who::Harness(_), Participant::Agent(..)) => true,
            _ => false,
        }
    }
}

/// What a participant of one workspace may see: a harness what belongs to its own runs; a person, owners too, what
/// is in the spaces they are in and what is in no space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// A harness.
    Harness(HarnessId),
    /// A person, and the spaces they are in (open ones and those they are a member of).
    Person(PersonId, BTreeSet<SpaceId>),
}

impl Access {
    /// Whether something of this harness in this space is visible.
    pub fn sees(&self, harness_id: HarnessId, space_id: Option<SpaceId>) -> bool {
        match self {
            Self::Harness(own) => *own == harness_id,
            Self::Person(_, spaces) => space_id.is_none_or(|space| spaces.contains(&space)),
        }
    }

    /// Whom the access belongs to.
    pub const fn who(&self) -> Who {
        match self {
            Self::Harness(id) => Who::Harness(*id),
            Self::Person(id, _) => Who::Person(*id),
        }
    }
}
