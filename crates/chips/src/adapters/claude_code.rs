//! Claude Code: a hook that answers `AskUserQuestion`, and permission prompts where that is wished.
//!
//! It fails open: where Chips can't be reached, refuses, or nobody answers in time, nothing is printed, and the normal
//! dialog opens in the terminal. What is answered there closes the question in Chips.

pub mod hook;
mod session;
pub mod settings;
mod terminal;
mod verdict;
mod waiting;

use std::path::Path;
use std::time::Duration;

use chips_client::protocol::api::{Ask, AskState, RunState};
use chips_client::protocol::{AskId, OnNoAnswer, Question, RunId};
use chips_client::{AskSpec, Client, Workplace};
use serde_json::Value;

use hook::{Event, Input, Verdict};
pub use session::{Session, Version};
pub use terminal::Decided;
pub use waiting::Waiting;

/// How long Chips is tried before the dialog in the terminal opens instead.
pub const REACH: Duration = Duration::from_secs(5);

/// How many runs one session may have had: a session that goes on after its end opens the next.
const RUNS: u8 = 20;

/// How the hook was told to ask.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Carry permission prompts too.
    pub permissions: bool,
    /// Answer before the tool is called in every mode, so that the terminal waits for Chips.
    pub exclusive: bool,
    /// Take the first option for the default.
    pub default_first: bool,
    /// How long to wait for an answer; for ever where it is left out.
    pub timeout: Option<Duration>,
    /// What happens then.
    pub on_no_answer: Option<OnNoAnswer>,
}

/// What is to be asked for this hook, or why nothing is.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// These questions.
    Ask(Vec<Question>),
    /// Nothing; there is nothing to say about it.
    Silent,
    /// Nothing; a person may want to know why.
    Leave(String),
    /// These were decided in the terminal: what is still open of them is closed.
    Close(Vec<Decided>),
    /// The turn is over: what the session still asks was decided in the terminal, but for the permission prompts of what goes
    /// on in the background, if anything does.
    Over,
    /// The session ends: what it asked is withdrawn.
    End,
}

/// What to do for a hook's input. A question is asked by one hook alone, by a rule that both can apply: see [`asks_before`].
pub fn plan(input: &Input, session: Session, options: &Options) -> Plan {
    let asks = input.tool_name == hook::ASK_TOOL;
    let before = asks_before(input, session, options);
    let questions = |questions: Result<Vec<Question>, String>| match questions {
        Ok(questions) => Plan::Ask(questions),
        Err(why) => Plan::Leave(why),
    };
    match input.event() {
        Some(Event::SessionEnd) => Plan::End,
        Some(Event::PreToolUse) if asks && before => questions(input.questions(options.default_first)),
        Some(Event::PermissionRequest) if asks && !before => questions(input.questions(options.default_first)),
        Some(Event::PermissionRequest) if !asks && options.permissions => questions(input.permission()),
        Some(Event::PostToolUse) if asks || options.permissions => {
            terminal::used(input).map_or(Plan::Silent, |decided| Plan::Close(vec![decided]))
        }
        Some(Event::PostToolBatch) => match terminal::through(input, options.permissions) {
            decided if decided.is_empty() => Plan::Silent,
            decided => Plan::Close(decided),
        },
        Some(Event::Stop) => Plan::Over,
        _ => Plan::Silent,
    }
}

/// Whether `PreToolUse` asks, with the terminal waiting, rather than `PermissionRequest` beside the open dialog. It does where
/// that is wished, where no dialog opens (nobody sits there, or the mode allows none), and in sessions that don't say enough
/// of themselves to know that one opens: those in another mode than `default`.
fn asks_before(input: &Input, session: Session, options: &Options) -> bool {
    options.exclusive
        || input.permission_mode == "dontAsk"
        || session.attended == Some(false)
        || (input.permission_mode != "default" && !session.is_live_beside())
}

/// Asks what the hook asks, and waits for as long as it takes. Dropped or interrupted, [`Asked::withdraw`] takes the question back.
pub struct Asked {
    client: Client,
    ask_id: AskId,
    run_id: RunId,
}

impl Asked {
    /// Opens the session's run if it is not open, and asks. A question that the session has open already is taken over, not asked
    /// twice: a session shows a question once at a time, so whoever asked it before waits for nothing.
    ///
    /// # Errors
    /// Chips can't be reached within [`REACH`], or refuses.
    pub async fn ask(
        client: &Client,
        input: &Input,
        questions: Vec<Question>,
        options: &Options,
    ) -> Result<Self, chips_client::Error> {
        let client = client.retry_for(Some(REACH));
        let run_id = open_run(&client, input).await?;
        let open = terminal::open(&client, run_id).await?;
        let same = |ask: &Ask| ask.ask.as_ask().is_some_and(|asked| asked.questions == questions);
        if let Some(ask) = open.into_iter().find(same) {
            return Ok(Self { client, ask_id: ask.ask_id, run_id });
        }
        let permission = questions.iter().any(|question| question.question_id == hook::PERMISSION);
        let mut spec = AskSpec::new(run_id, questions);
        if let Some(call) = input.tool_use_id.as_deref() {
            // One call, one ask: a hook that is started again for the same call takes up the same ask.
            spec = spec.ask_id(AskId::from_parts(0, digest(&["ask", &input.session_id, call])));
        }
        if let Some(timeout) = options.timeout {
            spec = spec.timeout_seconds(timeout.as_secs().max(1));
        }
        if let Some(policy) = options.on_no_answer.filter(|_| options.timeout.is_some()) {
            spec = spec.on_no_answer(if permission { OnNoAnswer::Continue } else { policy });
        }
        let written = client.ask(spec).await?;
        Ok(Self { client, ask_id: written.ask_id(), run_id })
    }

    /// The ask.
    pub const fn ask_id(&self) -> AskId {
        self.ask_id
    }

    /// Waits until it is closed.
    ///
    /// # Errors
    /// The token is good no more.
    pub async fn wait(&self) -> Result<Ask, chips_client::Error> {
        self.client.wait(self.ask_id).await
    }

    /// Takes the question back: the session that asked is gone.
    pub async fn withdraw(&self) {
        // Whatever stands in the way, there is nobody left to tell.
        let _ = self.client.withdraw((self.ask_id, self.run_id)).await;
    }

    /// Says that the answer has reached the harness. Nothing depends on it.
    pub async fn acknowledge(&self) {
        let _ = self.client.retry_for(Some(Duration::from_secs(2))).acknowledge(self.ask_id).await;
    }
}

/// What a closed ask says to a hook of Claude Code. Beside an open dialog, an ask that the harness itself has closed was
/// decided in that dialog, and there is nothing left to say.
pub fn verdict(ask: &Ask, event: Event) -> Verdict {
    if event == Event::PermissionRequest && ask.state == AskState::Settled {
        return Verdict::Nothing;
    }
    verdict::of(ask)
}

/// Closes what the session still asks of these.
///
/// # Errors
/// Chips can't be reached within [`REACH`], or refuses.
pub async fn close(client: &Client, input: &Input, decided: &[Decided]) -> Result<(), chips_client::Error> {
    let client = client.retry_for(Some(REACH));
    let Some(run_id) = live_run(&client, input).await? else { return Ok(()) };
    let open = terminal::open(&client, run_id).await?;
    for decided in decided {
        terminal::close(&client, &open, decided).await?;
    }
    Ok(())
}

/// Takes back what the session still asks at the end of a turn.
///
/// # Errors
/// Chips can't be reached within [`REACH`], or refuses.
pub async fn end_turn(client: &Client, input: &Input) -> Result<(), chips_client::Error> {
    let client = client.retry_for(Some(REACH));
    let Some(run_id) = live_run(&client, input).await? else { return Ok(()) };
    for ask in terminal::open(&client, run_id).await? {
        let permission = ask.ask.as_ask().is_some_and(|asked| asked.question(hook::PERMISSION).is_some());
        if !(permission && input.goes_on()) {
            terminal::withdraw(&client, &ask).await?;
        }
    }
    Ok(())
}

/// Ends the session's run, which withdraws what it still asks.
///
/// # Errors
/// Chips can't be reached within [`REACH`], or refuses.
pub async fn end_session(client: &Client, input: &Input) -> Result<(), chips_client::Error> {
    let client = client.retry_for(Some(REACH));
    match live_run(&client, input).await? {
        Some(run_id) => client.end_run(run_id).await.map(drop),
        None => Ok(()),
    }
}

/// The run of the session that has not ended.
async fn live_run(client: &Client, input: &Input) -> Result<Option<RunId>, chips_client::Error> {
    for nth in 0..RUNS {
        match client.run(run_id(input, nth)).await {
            Ok(run) if run.state == RunState::Live => return Ok(Some(run.run_id)),
            Ok(_) => {}
            Err(error) if error.problem().is_some_and(|problem| problem.status == 404) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

async fn open_run(client: &Client, input: &Input) -> Result<RunId, chips_client::Error> {
    let mut new = Workplace::of(Path::new(&input.cwd)).run();
    for nth in 0..RUNS {
        new.run_id = Some(run_id(input, nth));
        let run = client.open_run(new.clone()).await?;
        if run.state == RunState::Live {
            return Ok(run.run_id);
        }
    }
    new.run_id = None;
    client.open_run(new).await.map(|run| run.run_id)
}

/// A session's run is found again by whoever knows the session: its identifier is made of the session's.
fn run_id(input: &Input, nth: u8) -> RunId {
    RunId::from_parts(0, digest(&["run", &input.session_id, &nth.to_string()]))
}

/// 80 bits that stand for these texts.
fn digest(texts: &[&str]) -> u128 {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    hash.update(b"claude-code");
    for text in texts {
        hash.update([0]);
        hash.update(text.as_bytes());
    }
    hash.finalize().iter().take(10).fold(0, |bits, byte| (bits << 8) | u128::from(*byte))
}

/// Reads a hook's standard input.
///
/// # Errors
/// It is not what Claude Code writes.
pub fn read(bytes: &[u8]) -> anyhow::Result<Input> {
    let value: Value = serde_json::from_slice(bytes)?;
    Ok(serde_json::from_value(value)?)
}
