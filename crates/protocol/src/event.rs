//! The envelope that every event carries, and the one table of event types.
//!
//! An event is flat on the wire (envelope and content in one object) and apart here. [`Event`] is the stored form:
//! what the log holds and what readers get. [`Draft`] is what a client's write says once it has been checked: the
//! stored form without what Chips writes itself.

mod question_answered;
mod question_ask;
mod wire;

pub use question_answered::{Answer, AnswerDraft, QuestionAnswered};
pub use question_ask::{OnNoAnswer, Question, QuestionAsk, QuestionOption};

pub(crate) use wire::VERSION;

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, AskId, EventId, HarnessId, ParticipantId, PersonId, RunId, SpaceId, WorkspaceId};
use crate::time::Timestamp;
use crate::{limits, schema};

/// The event types of this protocol version. The text of each is the `type` on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub enum EventType {
    /// A harness asks.
    #[serde(rename = "question.ask")]
    QuestionAsk,
    /// The chosen options or free text, or a note that the time-out passed.
    #[serde(rename = "question.answered")]
    QuestionAnswered,
}

impl EventType {
    /// All types, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::QuestionAsk, Self::QuestionAnswered];

    /// The `type` on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QuestionAsk => "question.ask",
            Self::QuestionAnswered => "question.answered",
        }
    }

    /// The type with this name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// The four kinds of participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParticipantKind {
    /// A person.
    Person,
    /// A harness.
    Harness,
    /// One of a harness's agents.
    Agent,
    /// Chips itself.
    System,
}

impl ParticipantKind {
    /// The four kinds, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Person, Self::Harness, Self::Agent, Self::System];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Harness => "harness",
            Self::Agent => "agent",
            Self::System => "system",
        }
    }
}

/// A participant that can act: kind and identifier in one, so that the two can't disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Participant {
    /// A person.
    Person(PersonId),
    /// A harness.
    Harness(HarnessId),
    /// An agent, and the harness it speaks through where that is known (always, in a stored event).
    Agent(AgentId, Option<HarnessId>),
    /// Chips itself.
    System,
}

impl Participant {
    /// Which of the four kinds.
    pub const fn kind(self) -> ParticipantKind {
        match self {
            Self::Person(_) => ParticipantKind::Person,
            Self::Harness(_) => ParticipantKind::Harness,
            Self::Agent(..) => ParticipantKind::Agent,
            Self::System => ParticipantKind::System,
        }
    }

    /// The identifier alone.
    pub const fn id(self) -> ParticipantId {
        match self {
            Self::Person(id) => ParticipantId::Person(id),
            Self::Harness(id) => ParticipantId::Harness(id),
            Self::Agent(id, _) => ParticipantId::Agent(id),
            Self::System => ParticipantId::System,
        }
    }

    /// The actor on the wire.
    pub const fn actor(self) -> Actor {
        let harness_id = match self {
            Self::Agent(_, harness) => harness,
            _ => None,
        };
        Actor { kind: self.kind(), id: self.id(), harness_id }
    }
}

/// The participant an event is attributed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::absent_not_null, extend("allOf" = schema::actor_rules()))]
pub struct Actor {
    /// Whether a person, a harness, one of a harness's agents or Chips itself acted.
    pub kind: ParticipantKind,
    /// The participant id, or `system` for Chips.
    pub id: ParticipantId,
    /// For an agent: the harness it speaks through. Filled in by Chips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness_id: Option<HarnessId>,
}

/// What every stored event carries beside its content.
#[derive(Debug, Clone, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(transform = schema::absent_not_null)]
pub struct Envelope {
    /// The event's own id. Stable across a retry of the same event.
    pub id: EventId,
    /// When it happened, by Chips' clock. What a sender writes here is replaced.
    pub ts: Timestamp,
    /// The workspace whose log holds the event.
    pub workspace_id: WorkspaceId,
    /// The space, when the event belongs to one.
    #[schemars(default)]
    pub space_id: Option<SpaceId>,
    /// The participant that the event is attributed to.
    pub actor: Actor,
    /// The run the event belongs to; both question events have one.
    pub run_id: RunId,
    /// The place in the workspace's log, from 1 and without gaps; absent only in an event that was never appended.
    #[schemars(default, range(min = 1, max = limits::SEQ))]
    pub seq: Option<u64>,
    /// The sender's key for this write; the same key again is a replay. Chips' own events have none.
    #[schemars(default, length(min = 1, max = limits::IDEMPOTENCY_KEY), regex(pattern = schema::prose()))]
    pub idempotency_key: Option<String>,
}

/// What an event says, by type.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// `question.ask`
    QuestionAsk(QuestionAsk),
    /// `question.answered`
    QuestionAnswered(QuestionAnswered),
}

impl Content {
    /// The type of the event with this content.
    pub const fn event_type(&self) -> EventType {
        match self {
            Self::QuestionAsk(_) => EventType::QuestionAsk,
            Self::QuestionAnswered(_) => EventType::QuestionAnswered,
        }
    }

    /// The ask that the event belongs to.
    pub const fn ask_id(&self) -> AskId {
        match self {
            Self::QuestionAsk(ask) => ask.ask_id,
            Self::QuestionAnswered(answered) => answered.ask_id,
        }
    }
}

/// An event in its stored form. Serializes to one flat JSON object, `v` and `type` first.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What every event carries.
    pub envelope: Envelope,
    /// What this one says.
    pub content: Content,
}

impl Event {
    /// The content of a `question.ask`, or nothing for another type.
    pub const fn as_ask(&self) -> Option<&QuestionAsk> {
        match &self.content {
            Content::QuestionAsk(ask) => Some(ask),
            Content::QuestionAnswered(_) => None,
        }
    }

    /// The content of a `question.answered`, or nothing for another type.
    pub const fn as_answered(&self) -> Option<&QuestionAnswered> {
        match &self.content {
            Content::QuestionAnswered(answered) => Some(answered),
            Content::QuestionAsk(_) => None,
        }
    }
}

/// A checked write of a client: the stored form without `ts`, `seq`, `actor.harness_id`, `answered_by` and
/// `answered_at`, which Chips writes itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The event's own id, minted by the sender.
    pub id: EventId,
    /// The workspace that the sender means.
    pub workspace_id: WorkspaceId,
    /// The space that the sender named, if any; Chips fills in the run's.
    pub space_id: Option<SpaceId>,
    /// The run.
    pub run_id: RunId,
    /// The sender's key for this write.
    pub idempotency_key: String,
    /// Who the sender says acted: a person, a harness or an agent (without its harness).
    pub actor: Participant,
    /// What the event says.
    pub content: DraftContent,
}

/// What a checked write says, by type.
#[derive(Debug, Clone, PartialEq)]
pub enum DraftContent {
    /// `question.ask`
    QuestionAsk(QuestionAsk),
    /// `question.answered`
    QuestionAnswered(AnswerDraft),
}

impl DraftContent {
    /// The type of the event that this would become.
    pub const fn event_type(&self) -> EventType {
        match self {
            Self::QuestionAsk(_) => EventType::QuestionAsk,
            Self::QuestionAnswered(_) => EventType::QuestionAnswered,
        }
    }

    /// The ask that it belongs to.
    pub const fn ask_id(&self) -> AskId {
        match self {
            Self::QuestionAsk(ask) => ask.ask_id,
            Self::QuestionAnswered(answer) => answer.ask_id,
        }
    }
}
