//! The three tools.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chips_protocol::AskId;
use chips_protocol::api::{Ask, AskState};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use crate::desk::{Asking, Desk, Trouble};
use crate::input::{self, AskPerson, Which};
use crate::memory::{Memory, Receipts};
use crate::outcome::{self, Call, Outcome};
use crate::pace::{GRACE, Link, Pace};

const ASK: &str = "ask_person";
const WAIT: &str = "wait_for_answer";
const WITHDRAW: &str = "withdraw_question";

const INSTRUCTIONS: &str = "Chips asks people for you. Use ask_person when a decision is theirs and not yours: which of \
    several ways to take, whether to do what can't be undone, what they prefer. People answer on their phone or computer, \
    sometimes hours later; a result with status \"pending\" means: go on waiting with wait_for_answer. Never take silence \
    for consent. Never ask for passwords, keys or other secrets. What a person types comes back marked as data.";

/// What a client is shown.
static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let output = Arc::new(input::schema::<Outcome>());
    let tool = |name: &'static str, title: &str, description: &'static str, input: JsonObject| {
        // They change nothing in the client's world: a client that asks before each call would have a person confirm
        // that a person is asked.
        let hints = ToolAnnotations::from_raw(Some(title.to_owned()), Some(true), Some(false), Some(true), Some(false));
        Tool::new(name, description, input)
            .with_title(title)
            .with_raw_output_schema(output.clone())
            .with_annotations(hints)
    };
    vec![
        tool(
            ASK,
            "Ask a person",
            "Ask a person one to four multiple-choice questions and wait for the answer. Use it when a decision is theirs: \
             which way to take, whether to do something that can't be undone, what they prefer. It returns the answer, or \
             status \"pending\" with an ask_id: then call wait_for_answer. The very same call made again while \
             its questions are open is the same ask, never a second one; other questions, another title, timeout_seconds \
             or on_no_answer make another ask. Never ask for passwords, keys or other secrets: answers are kept \
             in a log.",
            input::schema::<AskPerson>(),
        ),
        tool(
            WAIT,
            "Wait for a person's answer",
            "Go on waiting for the answer to a question that ask_person returned as \"pending\". It returns the answer as \
             soon as there is one, or \"pending\" again: call it again then. A question that is answered already returns \
             at once.",
            input::schema::<Which>(),
        ),
        tool(
            WITHDRAW,
            "Take a question back",
            "Take a question back that no longer matters, so that nobody is asked in vain. One that was answered meanwhile \
             returns its answer instead.",
            input::schema::<Which>(),
        ),
    ]
});

/// The handler of one connection or, over HTTP, of one request.
pub(crate) struct Tools<D> {
    pub desk: Arc<D>,
    pub memory: Arc<Memory>,
    pub pace: Pace,
    pub link: Link,
    /// The client's name where its request does not tell it: over HTTP, the session's.
    pub client: Option<String>,
    /// Where outcomes on their way out are noted.
    pub receipts: Receipts,
    /// Cancelled when there is nobody to wait for: calls return what they know.
    pub closed: CancellationToken,
}

impl<D> Clone for Tools<D> {
    fn clone(&self) -> Self {
        Self {
            desk: self.desk.clone(),
            memory: self.memory.clone(),
            pace: self.pace,
            link: self.link,
            client: self.client.clone(),
            receipts: self.receipts.clone(),
            closed: self.closed.clone(),
        }
    }
}

impl<D: Desk> Tools<D> {
    async fn ask_person(&self, arguments: JsonObject, context: &RequestContext<RoleServer>) -> CallToolResult {
        let wanted = match input::wanted(arguments) {
            Ok(wanted) => wanted,
            Err(faults) => return outcome::faulty(ASK, &faults),
        };
        let asking = Asking {
            title: wanted.title,
            questions: wanted.questions,
            timeout_seconds: wanted.timeout_seconds,
            on_no_answer: wanted.on_no_answer,
            handed: self.memory.handed.clone(),
        };
        let began = Instant::now();
        let slice = self.slice(context);
        match within(slice + GRACE, self.find_or_ask(&asking)).await {
            Ok(ask) if ask.state != AskState::Open => self.closed(&ask, context),
            // The question stands: that Chips can't be reached while it is waited for leaves it as it is.
            Ok(ask) => match self.wait(ask.ask_id, slice.saturating_sub(began.elapsed()), context).await {
                Err(Trouble::Unreachable(reason)) => {
                    tracing::warn!(%reason, ask_id = %ask.ask_id, "Chips can't be reached");
                    Outcome::of(&ask).unheard().result()
                }
                Err(trouble) => outcome::trouble(&trouble, Call::Wait),
                Ok(ask) => self.closed(&ask, context),
            },
            Err(trouble) => outcome::trouble(&trouble, Call::Ask),
        }
    }

    async fn wait_for_answer(&self, ask_id: AskId, context: &RequestContext<RoleServer>) -> CallToolResult {
        match self.wait(ask_id, self.slice(context), context).await {
            Ok(ask) => self.closed(&ask, context),
            Err(trouble) => outcome::trouble(&trouble, Call::Wait),
        }
    }

    /// How long this call waits.
    fn slice(&self, context: &RequestContext<RoleServer>) -> Duration {
        self.pace.slice(&self.client(context), context.meta.get_progress_token().is_some(), self.link)
    }

    async fn find_or_ask(&self, asking: &Asking) -> Result<Ask, Trouble> {
        let _alone = self.memory.asking(self.desk.conversation()).await;
        if let Some(ask) = self.desk.find(asking).await? {
            tracing::debug!(ask_id = %ask.ask_id, "asked before");
            return Ok(ask);
        }
        self.desk.ask(asking).await
    }

    /// Waits for one slice, with a beat where the client counts them.
    async fn wait(&self, ask_id: AskId, slice: Duration, context: &RequestContext<RoleServer>) -> Result<Ask, Trouble> {
        let token = context.meta.get_progress_token();
        let began = Instant::now();
        let mut beats = interval_at(began + self.pace.beat, self.pace.beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let waiting = within(slice + GRACE, self.desk.wait(ask_id, slice));
        tokio::pin!(waiting);
        loop {
            tokio::select! {
                waited = &mut waiting => return waited,
                _ = beats.tick(), if token.is_some() => {
                    let Some(token) = token.clone() else { continue };
                    let so_far = began.elapsed();
                    let beat = ProgressNotificationParam::new(token, so_far.as_secs_f64())
                        .with_message(format!("Waiting for a person to answer ({})", in_words(so_far)));
                    if let Err(error) = context.peer.notify_progress(beat).await {
                        tracing::debug!(%error, "a progress notification did not go out");
                    }
                }
                // The call was cancelled, or the client has gone: nobody hears the result, and the question stays open.
                () = context.ct.cancelled() => return within(GRACE, self.desk.wait(ask_id, Duration::ZERO)).await,
                () = self.closed.cancelled() => return within(GRACE, self.desk.wait(ask_id, Duration::ZERO)).await,
            }
        }
    }

    async fn withdraw(&self, ask_id: AskId, context: &RequestContext<RoleServer>) -> CallToolResult {
        match within(self.slice(context) + GRACE, self.desk.withdraw(ask_id)).await {
            Ok(ask) => {
                self.note(&ask, context);
                Outcome::of(&ask).of_withdrawing().result()
            }
            Err(trouble) => outcome::trouble(&trouble, Call::Withdraw),
        }
    }

    /// The result of an ask as it stands; an outcome is noted as on its way out.
    fn closed(&self, ask: &Ask, context: &RequestContext<RoleServer>) -> CallToolResult {
        self.note(ask, context);
        Outcome::of(ask).result()
    }

    fn note(&self, ask: &Ask, context: &RequestContext<RoleServer>) {
        if ask.state != AskState::Open && !context.ct.is_cancelled() {
            self.receipts.note(context.id.clone(), ask.ask_id);
        }
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> String {
        let told = match &self.client {
            Some(name) => Some(name.clone()),
            None => context.client_info().map(|client| client.name),
        };
        told.unwrap_or_default()
    }
}

/// What Chips says within this time.
async fn within<T>(limit: Duration, said: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
    match timeout(limit, said).await {
        Ok(said) => said,
        Err(_) => Err(Trouble::Unreachable(format!("no reply within {} s", limit.as_secs()))),
    }
}

/// A length of time as people say it.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s so far"),
        seconds @ 60..3600 => format!("{} min so far", seconds / 60),
        seconds => format!("{} h {} min so far", seconds / 3600, seconds % 3600 / 60),
    }
}

impl<D: Desk> ServerHandler for Tools<D> {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("chips", env!("CARGO_PKG_VERSION")).with_title("Chips"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        TOOLS.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = match &*request.name {
            ASK => self.ask_person(arguments, &context).await,
            name @ (WAIT | WITHDRAW) => match input::which(arguments) {
                Err(faults) => outcome::faulty(name, &faults),
                Ok(ask_id) if name == WAIT => self.wait_for_answer(ask_id, &context).await,
                Ok(ask_id) => self.withdraw(ask_id, &context).await,
            },
            name => {
                let known = TOOLS.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>().join(", ");
                let said = format!("there is no tool {name:?}; there are {known}");
                return Err(ErrorData::invalid_params(said, None));
            }
        };
        Ok(result.into())
    }
}
