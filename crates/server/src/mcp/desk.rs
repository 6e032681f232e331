//! The server's own side of the MCP tools: what a request to the API would do, done here.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use axum::http::Method;
use chips_mcp::http::Conversation;
use chips_mcp::{Asking, Desk, Trouble};
use chips_protocol::api::{Ask, NewRun, Run, RunState};
use chips_protocol::problem::ProblemCode;
use chips_protocol::{AskId, EventId, RunId, Timestamp};
use chips_store::{AskFilter, AsksQuery, LeaseOf};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tracing::{Instrument, Span};

use crate::api::{Heard, asks, events};
use crate::auth::Caller;
use crate::http::{ApiError, Peer};
use crate::state::AppState;

/// How long a conversation may be silent before its questions say that the asker is gone, in seconds. Between two calls a
/// model may work for a while.
const LEASE_S: u64 = 900;
/// Open asks that are looked through for a question that was asked before.
const OPEN: usize = 200;
/// Closed ones: an outcome that was not told is among the newest.
const CLOSED: usize = 50;
/// How many runs one session may have for one title: one that goes on after its run was ended opens the next.
const RUNS: u8 = 20;

/// Where one conversation asks.
pub(super) struct Hall {
    state: AppState,
    caller: Caller,
    conversation: Conversation,
    peer: Option<Peer>,
    /// The request's: a call goes on in a task of its own.
    span: Span,
}

impl Hall {
    pub fn new(state: AppState, caller: Caller, conversation: Conversation, peer: Option<Peer>) -> Self {
        Self { state, caller, conversation, peer, span: Span::current() }
    }

    /// The label that the conversation's runs are found by.
    fn label(&self) -> (&'static str, &str) {
        match &self.conversation {
            Conversation::Session(session) => ("session", session.tag()),
            Conversation::Client(_) => ("client", self.client()),
        }
    }

    fn client(&self) -> &str {
        match self.conversation.client() {
            "" => "unnamed",
            name => name,
        }
    }

    fn new_run(&self, title: Option<&str>, run_id: Option<RunId>) -> NewRun {
        let labels = [("client", self.client()), ("via", "mcp"), self.label()];
        NewRun {
            run_id,
            title: title.map(str::to_owned),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            lease_seconds: Some(LEASE_S.into()),
            ..NewRun::default()
        }
    }

    /// The run to ask in. A session has one for each title; where there is no session each ask has its own, and the run's
    /// ULID is the ask's.
    async fn run(&self, title: Option<&str>, ask_id: AskId) -> Result<RunId, ApiError> {
        let Conversation::Session(session) = &self.conversation else {
            return Ok(self.open(title, Some(RunId::new(ask_id.ulid()))).await?.run_id);
        };
        for nth in 0..RUNS {
            let run_id = self.session_run(session.id(), title, nth);
            let run = self.open(title, Some(run_id)).await?;
            if run.state == RunState::Live {
                return Ok(run.run_id);
            }
        }
        Ok(self.open(title, None).await?.run_id)
    }

    async fn open(&self, title: Option<&str>, run_id: Option<RunId>) -> Result<Run, ApiError> {
        let (run, opened) = self.state.store.open_run(self.caller.identity.sender, self.new_run(title, run_id)).await?;
        if !opened {
            Heard::of(&self.state, &self.caller.identity, &Method::POST).named(LeaseOf::Run(run.run_id));
        }
        Ok(run)
    }

    fn session_run(&self, session: &str, title: Option<&str>, nth: u8) -> RunId {
        let harness = format!("{:?}", self.caller.identity.sender.who);
        let hash = [harness.as_str(), session, title.unwrap_or_default()]
            .into_iter()
            .fold(Sha256::new().chain_update(b"mcp run"), |hash, text| hash.chain_update([0]).chain_update(text))
            .chain_update([0, nth])
            .finalize();
        RunId::from_parts(0, hash.iter().take(10).fold(0, |bits, byte| (bits << 8) | u128::from(*byte)))
    }

    /// Whether an ask belongs to this conversation: sessions have their label to themselves, a client's name is shared by
    /// its sessions too.
    fn owns(&self, ask: &Ask) -> bool {
        match self.conversation {
            Conversation::Session(_) => true,
            Conversation::Client(_) => ask.ask.envelope.run_id.ulid() == ask.ask_id.ulid(),
        }
    }

    async fn write(&self, event: Value) -> Result<(), ApiError> {
        events::write(&self.state, &self.caller, &event).await.map(drop)
    }

    async fn envelope(&self, event_type: &str, run_id: RunId, ask_id: AskId) -> Result<Value, ApiError> {
        let me = self.state.store.me(&self.caller.identity).await?;
        let (ms, random) = self.parts()?;
        Ok(json!({
            "v": 1,
            "type": event_type,
            "id": EventId::from_parts(ms, random),
            "workspace_id": me.workspace_id,
            "actor": { "kind": me.participant.kind, "id": me.participant.id },
            "run_id": run_id,
            "ask_id": ask_id,
            "idempotency_key": format!("{random:032x}"),
        }))
    }

    fn parts(&self) -> Result<(u64, u128), ApiError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            tracing::error!(%error, "the system gives no random bytes");
            ApiError::new(ProblemCode::Unavailable, "no identifier can be made right now; try again").retry_after(1)
        })?;
        let now: Timestamp = self.state.store.clock().now();
        Ok((u64::try_from(now.ms()).unwrap_or_default(), u128::from_be_bytes(bytes)))
    }

    async fn look(&self, ask_id: AskId) -> Result<Ask, ApiError> {
        let ask = self.state.store.ask(&self.caller.identity, ask_id).await?.ok_or_else(ApiError::not_found)?;
        Heard::of(&self.state, &self.caller.identity, &Method::POST).gets_ask(&ask);
        Ok(ask)
    }

    async fn search(&self, asking: &Asking) -> Result<Option<Ask>, ApiError> {
        let (key, value) = self.label();
        for (filter, limit) in [(AskFilter::Open, OPEN), (AskFilter::Closed, CLOSED)] {
            let query =
                AsksQuery { filter, label: Some((key.to_owned(), value.to_owned())), limit, ..AsksQuery::default() };
            let page = self.state.store.asks(&self.caller.identity, &query).await?;
            for ask in page.asks.into_iter().filter(|ask| self.owns(ask) && asking.is(ask)) {
                let run = self.state.store.run(&self.caller.identity, ask.ask.envelope.run_id).await?;
                if run.is_some_and(|run| asking.is_titled(&run, None)) {
                    return Ok(Some(ask));
                }
            }
        }
        Ok(None)
    }

    async fn put(&self, asking: &Asking) -> Result<Ask, ApiError> {
        let (ms, random) = self.parts()?;
        let ask_id = AskId::from_parts(ms, random);
        let run_id = self.run(asking.title.as_deref(), ask_id).await?;
        let mut event = self.envelope("question.ask", run_id, ask_id).await?;
        event["questions"] = json!(asking.questions);
        if let Some(seconds) = &asking.timeout_seconds {
            event["timeout_seconds"] = json!(seconds);
        }
        if let Some(policy) = asking.on_no_answer {
            event["on_no_answer"] = json!(policy);
        }
        self.write(event).await?;
        self.look(ask_id).await
    }

    async fn take_back(&self, ask_id: AskId) -> Result<Ask, ApiError> {
        let ask = self.look(ask_id).await?;
        let mut event = self.envelope("question.answered", ask.ask.envelope.run_id, ask_id).await?;
        event["answers"] = json!([]);
        match self.write(event).await {
            Err(error) if error.problem().code != ProblemCode::AlreadyClosed => Err(error),
            _ => self.look(ask_id).await,
        }
    }
}

fn trouble(error: ApiError) -> Trouble {
    Trouble::Refused { problem: Box::new(error.problem().clone()), retry_after_s: error.retry_after_s() }
}

impl Desk for Hall {
    fn conversation(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.caller.identity.sender.who.hash(&mut hasher);
        self.label().hash(&mut hasher);
        hasher.finish()
    }

    async fn find(&self, asking: &Asking) -> Result<Option<Ask>, Trouble> {
        self.search(asking).instrument(self.span.clone()).await.map_err(trouble)
    }

    async fn ask(&self, asking: &Asking) -> Result<Ask, Trouble> {
        self.put(asking).instrument(self.span.clone()).await.map_err(trouble)
    }

    async fn wait(&self, ask_id: AskId, slice: Duration) -> Result<Ask, Trouble> {
        let heard = Heard::of(&self.state, &self.caller.identity, &Method::POST);
        heard.named(LeaseOf::Ask(ask_id));
        let waited = asks::closed_or_later(&self.state, self.caller.clone(), ask_id, slice, &heard, self.peer.as_ref());
        let ask = waited.instrument(self.span.clone()).await.map_err(trouble)?;
        heard.gets_ask(&ask);
        Ok(ask)
    }

    async fn withdraw(&self, ask_id: AskId) -> Result<Ask, Trouble> {
        self.take_back(ask_id).instrument(self.span.clone()).await.map_err(trouble)
    }

    async fn handed_over(&self, ask_id: AskId) {
        let sender = self.caller.identity.sender;
        let noted = match self.state.store.acknowledge(sender, ask_id).await {
            Ok(ask) if matches!(self.conversation, Conversation::Client(_)) && self.owns(&ask) => {
                self.state.store.end_run(sender, ask.ask.envelope.run_id).await.map(drop)
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = noted {
            tracing::warn!(parent: &self.span, %error, %ask_id, "that an outcome was told could not be noted");
        }
    }
}
