//! What the endpoints take and return. Clients ignore fields that they don't know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{Answer, Event, ParticipantKind};
use crate::id::{AskId, HarnessId, ParticipantId, RunId, SpaceId, WorkspaceId};
use crate::time::Timestamp;
use crate::{limits, schema};

/// Where an ask stands. Closed once, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskState {
    /// Nobody has answered yet.
    Open,
    /// A person answered.
    Answered,
    /// The time-out passed.
    TimedOut,
    /// The harness answered its own question.
    Settled,
    /// The harness took the question back, or its run ended.
    Withdrawn,
}

impl AskState {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Open, Self::Answered, Self::TimedOut, Self::Settled, Self::Withdrawn];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::TimedOut => "timed_out",
            Self::Settled => "settled",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// How loudly people are told of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// A harness is stuck until somebody answers.
    TimeSensitive,
    /// Silence costs less: every question has a default.
    Active,
    /// Only the inbox shows it.
    Passive,
}

impl Tier {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TimeSensitive => "time_sensitive",
            Self::Active => "active",
            Self::Passive => "passive",
        }
    }
}

/// A participant with the name that people know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Named {
    /// Which of the four kinds.
    pub kind: ParticipantKind,
    /// The identifier, or `system`.
    pub id: ParticipantId,
    /// The name to show; an agent goes by its harness's, Chips itself by `Chips`.
    pub name: String,
}

/// A person's answer that came after the ask was closed. It decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LateAnswer {
    /// Who sent it.
    pub by: ParticipantId,
    /// When it arrived, by Chips' clock.
    pub at: Timestamp,
    /// What it said.
    pub answers: Vec<Answer>,
}

/// ASK: an ask as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ask {
    /// The ask.
    pub ask_id: AskId,
    /// Where it stands.
    pub state: AskState,
    /// How loudly people are told.
    pub tier: Tier,
    /// When Chips closes it by itself, or null where it waits until it is answered.
    pub deadline: Option<Timestamp>,
    /// Who asked.
    pub asker: Named,
    /// Who closed it, or null while it is open.
    pub answerer: Option<Named>,
    /// The lease of its run has lapsed: still answerable, but perhaps nobody waits any more.
    pub asker_gone: bool,
    /// False where nobody could be told.
    pub reachable: bool,
    /// The `question.ask`.
    #[schemars(with = "crate::schema::QuestionAskEvent")]
    pub ask: Event,
    /// The `question.answered` that closed it, or null.
    #[schemars(with = "Option<crate::schema::QuestionAnsweredEvent>")]
    pub answer: Option<Event>,
    /// For each question, the label of each value.
    pub option_labels: BTreeMap<String, BTreeMap<String, String>>,
    /// The last ten answers of persons that came too late.
    pub late_answers: Vec<LateAnswer>,
    /// When the answer first went out to the harness.
    pub delivered_at: Option<Timestamp>,
    /// When the harness said that it has acted on the answer.
    pub acknowledged_at: Option<Timestamp>,
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It may ask.
    Live,
    /// It has ended, and its open asks with it.
    Ended,
}

/// RUN: one piece of work of a harness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Run {
    /// The run.
    pub run_id: RunId,
    /// The harness whose work it is.
    pub harness_id: HarnessId,
    /// The space it belongs to, or null.
    pub space_id: Option<SpaceId>,
    /// What people call it, or null.
    pub title: Option<String>,
    /// Where to look at it (http or https), or null.
    pub url: Option<String>,
    /// What it is labelled with; empty where it has none.
    pub labels: BTreeMap<String, String>,
    /// The run that it is a part of, or null.
    pub parent_run_id: Option<RunId>,
    /// Whether it goes on.
    pub state: RunState,
    /// When it was opened.
    pub started_at: Timestamp,
    /// When it ended, or null.
    pub ended_at: Option<Timestamp>,
    /// How long the harness may be silent, in seconds, or null.
    pub lease_seconds: Option<serde_json::Number>,
    /// When the lease lapses unless it is renewed, or null.
    pub lease_until: Option<Timestamp>,
}

/// The body of `POST /v1/runs`, checked by [`crate::validate::new_run`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::absent_not_null)]
pub struct NewRun {
    /// Minted by the harness so that a retry is the same run; Chips mints one where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The space that the run's asks belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space_id: Option<SpaceId>,
    /// What people call it: at most 300 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::RUN_TITLE), regex(pattern = schema::exact()))]
    pub title: Option<String>,
    /// Where to look at it: http or https, at most 2,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::RUN_URL), regex(pattern = schema::web_address()))]
    pub url: Option<String>,
    /// At most 16 texts: keys of at most 63 characters, values of at most 255.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "run_labels")]
    pub labels: Option<BTreeMap<String, String>>,
    /// A run of the same harness that this one is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
    /// How long the harness may be silent before its asks say `asker_gone`: more than 0, at most 31,536,000 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = limits::SECONDS), extend("exclusiveMinimum" = 0))]
    pub lease_seconds: Option<serde_json::Number>,
}

/// The schema of a new run's labels.
fn run_labels(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": limits::RUN_LABELS,
        "propertyNames": { "minLength": 1, "maxLength": limits::RUN_LABEL_KEY, "pattern": schema::exact() },
        "additionalProperties": {
            "type": "string", "minLength": 1, "maxLength": limits::RUN_LABEL_VALUE, "pattern": schema::exact()
        },
    })
}

/// A page of `GET /v1/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EventsPage {
    /// Events in the order of their `seq`.
    #[schemars(with = "Vec<crate::schema::AnyEvent>")]
    pub events: Vec<Event>,
    /// The `seq` of the last event in the workspace's log, 0 where it is empty.
    pub head: u64,
    /// The history of the log that the numbers belong to.
    pub log: String,
}

/// A page of `GET /v1/asks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AsksPage {
    /// The asks.
    pub asks: Vec<Ask>,
    /// The `seq` of the last event in the workspace's log when this page was read.
    pub head: u64,
    /// What to send as `before` for the next page, or null.
    pub next: Option<String>,
}

/// A space's id and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SpaceName {
    /// The space.
    pub id: SpaceId,
    /// What people call it.
    pub name: String,
}

/// How much of a harness's budget is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Budget {
    /// Open asks now.
    pub open: u64,
    /// How many may be open, or null for no limit.
    pub open_limit: Option<u64>,
    /// Asks in the last 3,600 seconds.
    pub hour: u64,
    /// How many there may be, or null for no limit.
    pub hour_limit: Option<u64>,
}

/// `GET /v1/me`: who a token speaks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Me {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The participant.
    pub participant: Named,
    /// The spaces that it can see (a person) or open runs in (a harness).
    pub spaces: Vec<SpaceName>,
    /// For a harness: its budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}
