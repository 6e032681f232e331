//! Asking, and waiting for the answer.

use std::time::Duration;

use bytes::Bytes;
use chips_protocol::api::{Ask, AskState};
use chips_protocol::{
    AgentId, AskId, Event, EventId, EventType, OnNoAnswer, Question, QuestionAsk, QuestionOption, RunId, SpaceId,
};
use serde_json::{Map, Number, Value, json};

use crate::backoff::Backoff;
use crate::call::{Patience, header};
use crate::client::{Client, json};
use crate::error::Error;
use crate::{clock, mint};

/// What a harness asks. What is left out is minted ([`AskSpec::ask_id`]) or left to Chips.
#[derive(Debug, Clone)]
pub struct AskSpec {
    run_id: RunId,
    ask_id: Option<AskId>,
    space_id: Option<SpaceId>,
    agent: Option<AgentId>,
    questions: Vec<Question>,
    timeout_seconds: Option<Number>,
    on_no_answer: Option<OnNoAnswer>,
}

impl AskSpec {
    /// Asks these questions, one to four, in this run.
    pub fn new(run_id: RunId, questions: Vec<Question>) -> Self {
        Self { run_id, ask_id: None, space_id: None, agent: None, questions, timeout_seconds: None, on_no_answer: None }
    }

    /// Asks one question, whose id is `question`, with these options: value and label of each.
    pub fn one<V: Into<String>, L: Into<String>>(
        run_id: RunId,
        prompt: impl Into<String>,
        options: impl IntoIterator<Item = (V, L)>,
    ) -> Self {
        let options = options
            .into_iter()
            .map(|(value, label)| QuestionOption { value: value.into(), label: label.into(), description: None })
            .collect();
        let question = Question {
            question_id: "question".to_owned(),
            prompt: prompt.into(),
            options,
            multi_select: None,
            allow_free_text: None,
            default_value: None,
        };
        Self::new(run_id, vec![question])
    }

    /// The content of a `question.ask`, as it stands in a file, say.
    pub fn from_content(run_id: RunId, content: QuestionAsk) -> Self {
        Self {
            ask_id: Some(content.ask_id),
            timeout_seconds: content.timeout_seconds,
            on_no_answer: content.on_no_answer,
            ..Self::new(run_id, content.questions)
        }
    }

    /// The ask's identifier. A harness that writes it down before it asks can take the ask up again after a crash.
    #[must_use]
    pub fn ask_id(mut self, ask_id: AskId) -> Self {
        self.ask_id = Some(ask_id);
        self
    }

    /// The space, where it is to be checked against the run's.
    #[must_use]
    pub fn space_id(mut self, space_id: SpaceId) -> Self {
        self.space_id = Some(space_id);
        self
    }

    /// The agent that asks, through this harness.
    #[must_use]
    pub fn agent(mut self, agent: AgentId) -> Self {
        self.agent = Some(agent);
        self
    }

    /// What is taken for the last question if nobody answers.
    #[must_use]
    pub fn default_value(mut self, value: impl Into<String>) -> Self {
        if let Some(question) = self.questions.last_mut() {
            question.default_value = Some(value.into());
        }
        self
    }

    /// Lets the person type an answer to the last question.
    #[must_use]
    pub fn allow_free_text(mut self) -> Self {
        if let Some(question) = self.questions.last_mut() {
            question.allow_free_text = Some(true);
        }
        self
    }

    /// Lets the person choose several options of the last question.
    #[must_use]
    pub fn multi_select(mut self) -> Self {
        if let Some(question) = self.questions.last_mut() {
            question.multi_select = Some(true);
        }
        self
    }

    /// How long to wait for an answer, in seconds: more than 0, at most 31,536,000. Without it: until answered.
    #[must_use]
    pub fn timeout_seconds(mut self, seconds: impl Into<Number>) -> Self {
        self.timeout_seconds = Some(seconds.into());
        self
    }

    /// What the harness will do if the time-out passes.
    #[must_use]
    pub fn on_no_answer(mut self, policy: OnNoAnswer) -> Self {
        self.on_no_answer = Some(policy);
        self
    }
}

/// A `question.ask` that is ready to be sent, byte for byte the same each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedAsk {
    ask_id: AskId,
    run_id: RunId,
    event_id: EventId,
    body: Bytes,
}

impl PreparedAsk {
    /// The ask.
    pub const fn ask_id(&self) -> AskId {
        self.ask_id
    }

    /// The run.
    pub const fn run_id(&self) -> RunId {
        self.run_id
    }

    /// The event.
    pub const fn event_id(&self) -> EventId {
        self.event_id
    }

    /// The event as it is sent: JSON.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// What a write has come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The event in the log.
    pub event: Event,
    /// It was in the log already; nothing was appended.
    pub replayed: bool,
    /// It was in the log already, under this key, and says something else than what was sent now.
    pub differs: bool,
}

impl Written {
    /// The ask that the event belongs to.
    pub fn ask_id(&self) -> AskId {
        self.event.content.ask_id()
    }
}

impl Client {
    /// Asks: mints what is missing, sends the event, and sends the same bytes again until the outcome is known.
    ///
    /// Asked again with the same [`AskSpec::ask_id`] and the same questions, it is the same ask, even when it is
    /// closed by now or its run has ended.
    ///
    /// # Errors
    /// `invalid_event` with every fault, `ask_id_conflict`, `run_ended`, `over_budget`, or what [`Error`] lists.
    pub async fn ask(&self, spec: AskSpec) -> Result<Written, Error> {
        self.send(&self.prepare(spec).await?).await
    }

    /// The event that [`Client::ask`] would send. Whoever keeps it can send it in another process, safely.
    ///
    /// # Errors
    /// When `GET /v1/me` fails, which names the workspace and the harness.
    pub async fn prepare(&self, spec: AskSpec) -> Result<PreparedAsk, Error> {
        let ask_id = match spec.ask_id {
            Some(ask_id) => ask_id,
            None => mint::ask_id()?,
        };
        let (event_id, mut event) =
            self.envelope(EventType::QuestionAsk, spec.run_id, spec.space_id, spec.agent).await?;
        event.insert("ask_id".to_owned(), json!(ask_id));
        event.insert("questions".to_owned(), json!(spec.questions));
        if let Some(seconds) = spec.timeout_seconds {
            event.insert("timeout_seconds".to_owned(), Value::Number(seconds));
        }
        if let Some(policy) = spec.on_no_answer {
            event.insert("on_no_answer".to_owned(), json!(policy));
        }
        Ok(PreparedAsk { ask_id, run_id: spec.run_id, event_id, body: json(&event) })
    }

    /// Sends an event that [`Client::prepare`] made.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub async fn send(&self, prepared: &PreparedAsk) -> Result<Written, Error> {
        self.write(prepared.body.clone()).await
    }

    /// What every event of this client carries, its key included.
    pub(crate) async fn envelope(
        &self,
        event_type: EventType,
        run_id: RunId,
        space_id: Option<SpaceId>,
        agent: Option<AgentId>,
    ) -> Result<(EventId, Map<String, Value>), Error> {
        let me = self.identity().await?;
        let event_id = mint::event_id()?;
        let mut event = Map::new();
        event.insert("v".to_owned(), json!(1));
        event.insert("type".to_owned(), json!(event_type));
        event.insert("id".to_owned(), json!(event_id));
        event.insert("workspace_id".to_owned(), json!(me.workspace_id));
        if let Some(space_id) = space_id {
            event.insert("space_id".to_owned(), json!(space_id));
        }
        let actor = match agent {
            Some(agent) => json!({ "kind": "agent", "id": agent }),
            None => json!({ "kind": me.participant.kind, "id": me.participant.id }),
        };
        event.insert("actor".to_owned(), actor);
        event.insert("run_id".to_owned(), json!(run_id));
        event.insert("idempotency_key".to_owned(), json!(mint::idempotency_key()?));
        Ok((event_id, event))
    }

    pub(crate) async fn write(&self, body: Bytes) -> Result<Written, Error> {
        let (event, headers) =
            self.call::<Event>(&self.post_request("/v1/events", Some(body)), self.patience()).await?;
        let says = |name| header(&headers, name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Ok(Written { event, replayed: says("idempotency-replayed"), differs: says("idempotency-body-differs") })
    }

    /// Waits until an ask is closed, however long that takes: over restarts of the server, dead networks and whatever
    /// a proxy says meanwhile. Only Chips itself ends it with an error. Put a [`tokio::time::timeout`] round it for
    /// an end of your own; the ask stays open then.
    ///
    /// # Errors
    /// `not_found` where there is no such ask for this token, `unauthenticated` where the token is good no more.
    pub async fn wait(&self, ask_id: AskId) -> Result<Ask, Error> {
        self.wait_and(ask_id, |_| {}).await
    }

    /// As [`Client::wait`], and shows the ask each time it was found open: whether its [`Ask::reachable`] says that nobody
    /// could be told, say. That is about twice a minute.
    ///
    /// # Errors
    /// As [`Client::wait`].
    pub async fn wait_and(&self, ask_id: AskId, mut open: impl FnMut(&Ask)) -> Result<Ask, Error> {
        let poll = self.settings().poll;
        let reply_within = self.settings().reply_within.min(SLACK);
        let path = format!("/v1/asks/{ask_id}");
        let long = self.get_request(&path, &[("wait", poll.as_secs().to_string())], poll + reply_within);
        // Where the connection was lost, what counts first is whether it is back, and what has happened meanwhile.
        let quick = self.get_request(&path, &[], reply_within);
        let mut backoff = Backoff::new(self.settings().pauses);
        loop {
            let began = clock::now();
            let (ask, _, was_quick) = self.call_or::<Ask>(&long, &quick, Patience::Endless).await?;
            if ask.state != AskState::Open {
                return Ok(ask);
            }
            open(&ask);
            // A server that stops answers its waiters at once; they must not all come back at once.
            if !was_quick && clock::now().duration_since(began) < poll.min(HASTY) {
                tokio::time::sleep(backoff.next(None, mint::fraction())).await;
            } else {
                backoff.reset();
            }
        }
    }
}

/// How much longer than the poll itself its reply may take.
const SLACK: Duration = Duration::from_secs(10);

/// A poll that comes back open before this was not waited for.
const HASTY: Duration = Duration::from_secs(1);
