//! Reading asks and events.

use chips_protocol::api::{Ask, AskState, AsksPage, EventsPage};
use chips_protocol::{AskId, EventType, HarnessId, RunId, SpaceId};

use crate::client::Client;
use crate::error::Error;

/// Which asks, by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum States {
    One(AskState),
    Closed,
}

/// Which asks to list. Everything that can be seen, where nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AsksQuery {
    states: Option<States>,
    space_id: Option<SpaceId>,
    run_id: Option<RunId>,
    harness_id: Option<HarnessId>,
    label: Option<(String, String)>,
    text: Option<String>,
    limit: Option<u16>,
    before: Option<String>,
}

impl AsksQuery {
    /// Only asks in this state.
    #[must_use]
    pub fn state(mut self, state: AskState) -> Self {
        self.states = Some(States::One(state));
        self
    }

    /// Only asks that are closed, whichever way.
    #[must_use]
    pub fn closed(mut self) -> Self {
        self.states = Some(States::Closed);
        self
    }

    /// Only asks of this space.
    #[must_use]
    pub fn space(mut self, space_id: SpaceId) -> Self {
        self.space_id = Some(space_id);
        self
    }

    /// Only asks of this run.
    #[must_use]
    pub fn run(mut self, run_id: RunId) -> Self {
        self.run_id = Some(run_id);
        self
    }

    /// Only asks of this harness.
    #[must_use]
    pub fn harness(mut self, harness_id: HarnessId) -> Self {
        self.harness_id = Some(harness_id);
        self
    }

    /// Only asks of runs with this label.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.label = Some((key.into(), value.into()));
        self
    }

    /// Only asks with this text.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// At most this many, from 1 to 200; 50 where it is not said.
    #[must_use]
    pub fn limit(mut self, limit: u16) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The page after the one that said this is [`next`](AsksPage::next).
    #[must_use]
    pub fn before(mut self, cursor: impl Into<String>) -> Self {
        self.before = Some(cursor.into());
        self
    }

    fn pairs(&self) -> Vec<(&'static str, String)> {
        let states = self.states.map(|states| match states {
            States::One(state) => state.as_str().to_owned(),
            States::Closed => "closed".to_owned(),
        });
        [
            ("state", states),
            ("space_id", self.space_id.map(|id| id.to_string())),
            ("run_id", self.run_id.map(|id| id.to_string())),
            ("harness_id", self.harness_id.map(|id| id.to_string())),
            ("label", self.label.as_ref().map(|(key, value)| format!("{key}:{value}"))),
            ("q", self.text.clone()),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("before", self.before.clone()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }
}

/// Which events to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsQuery {
    after: Option<u64>,
    limit: Option<u16>,
    log: Option<String>,
    filter: Filter,
}

/// What events are narrowed to, in pages and streams alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub event_type: Option<EventType>,
    pub run_id: Option<RunId>,
    pub ask_id: Option<AskId>,
}

impl Filter {
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        [
            ("type", self.event_type.map(|event_type| event_type.as_str().to_owned())),
            ("run_id", self.run_id.map(|id| id.to_string())),
            ("ask_id", self.ask_id.map(|id| id.to_string())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

impl EventsQuery {
    /// Events with a higher `seq` than this; from the start of the log where it is not said.
    #[must_use]
    pub fn after(mut self, seq: u64) -> Self {
        self.after = Some(seq);
        self
    }

    /// At most this many, from 1 to 1,000; 100 where it is not said.
    #[must_use]
    pub fn limit(mut self, limit: u16) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The history of the log that `after` belongs to ([`EventsPage::log`]): where it has changed, the server says so
    /// rather than skip anything.
    #[must_use]
    pub fn log(mut self, log: impl Into<String>) -> Self {
        self.log = Some(log.into());
        self
    }

    /// Only events of this type.
    #[must_use]
    pub fn event_type(mut self, event_type: EventType) -> Self {
        self.filter.event_type = Some(event_type);
        self
    }

    /// Only events of this run.
    #[must_use]
    pub fn run(mut self, run_id: RunId) -> Self {
        self.filter.run_id = Some(run_id);
        self
    }

    /// Only events of this ask.
    #[must_use]
    pub fn ask(mut self, ask_id: AskId) -> Self {
        self.filter.ask_id = Some(ask_id);
        self
    }

    fn pairs(&self) -> Vec<(&'static str, String)> {
        [
            ("after", self.after.map(|seq| seq.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("log", self.log.clone()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .chain(self.filter.pairs())
        .collect()
    }
}

impl Client {
    /// One page of asks: the open ones most urgent first, others newest first.
    ///
    /// # Errors
    /// `bad_query`, or what [`Error`] lists.
    pub async fn asks(&self, query: &AsksQuery) -> Result<AsksPage, Error> {
        self.get("/v1/asks", &query.pairs()).await
    }

    /// An ask as it stands.
    ///
    /// # Errors
    /// `not_found`, or what [`Error`] lists.
    pub async fn ask_state(&self, ask_id: AskId) -> Result<Ask, Error> {
        self.get(&format!("/v1/asks/{ask_id}"), &[]).await
    }

    /// One page of events, in the order of their `seq`.
    ///
    /// # Errors
    /// `cursor_ahead`, `cursor_gone`, `log_changed`, `bad_query`, or what [`Error`] lists.
    pub async fn events(&self, query: &EventsQuery) -> Result<EventsPage, Error> {
        self.get("/v1/events", &query.pairs()).await
    }
}
