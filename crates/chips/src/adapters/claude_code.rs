//! Claude Code: a hook that answers `AskUserQuestion`, and permission prompts where that is wished.
//!
//! It fails open: where Chips can't be reached, refuses, or nobody answers in time, nothing is printed, and the normal
//! dialog opens in the terminal.

pub mod hook;
pub mod settings;
mod verdict;

use std::path::Path;
use std::time::Duration;

use chips_client::protocol::api::{Ask, AskState, RunState};
use chips_client::protocol::{AskId, OnNoAnswer, Question, RunId};
use chips_client::{AskSpec, AsksQuery, Client, Workplace};
use serde_json::Value;

use hook::{Event, Input, Verdict};

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
    /// The session ends: what it asked is withdrawn.
    End,
}

/// What to do for a hook's input. In `default` mode the dialog in the terminal and Chips are both live (the
/// `PermissionRequest` hook runs beside the dialog); in other modes only `PreToolUse` comes.
pub fn plan(input: &Input, options: &Options) -> Plan {
    let asks = input.tool_name == hook::ASK_TOOL;
    let questions = |questions: Result<Vec<Question>, String>| match questions {
        Ok(questions) => Plan::Ask(questions),
        Err(why) => Plan::Leave(why),
    };
    match input.event() {
        Some(Event::SessionEnd) => Plan::End,
        Some(Event::PreToolUse) if asks && (options.exclusive || input.permission_mode != "default") => {
            questions(input.questions(options.default_first))
        }
        Some(Event::PermissionRequest) if asks && !options.exclusive => {
            questions(input.questions(options.default_first))
        }
        Some(Event::PermissionRequest) if !asks && options.permissions => questions(input.permission()),
        _ => Plan::Silent,
    }
}

/// Asks what the hook asks, and waits for as long as it takes. Dropped or interrupted, [`Asked::withdraw`] takes the question back.
pub struct Asked {
    client: Client,
    ask_id: AskId,
    run_id: RunId,
    /// Whether this call opened the ask; one that it only joined is another's to withdraw.
    own: bool,
}

impl Asked {
    /// Opens the session's run if it is not open, and asks. A question that the session has open already is joined, not asked twice.
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
        if let Some(ask) = already_open(&client, run_id, &questions).await? {
            return Ok(Self { client, ask_id: ask.ask_id, run_id, own: false });
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
        Ok(Self { client, ask_id: written.ask_id(), run_id, own: true })
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
        if self.own {
            // Whatever stands in the way, there is nobody left to tell.
            let _ = self.client.withdraw((self.ask_id, self.run_id)).await;
        }
    }

    /// Says that the answer has reached the harness. Nothing depends on it.
    pub async fn acknowledge(&self) {
        let _ = self.client.retry_for(Some(Duration::from_secs(2))).acknowledge(self.ask_id).await;
    }
}

/// What a closed ask says to Claude Code.
pub fn verdict(ask: &Ask) -> Verdict {
    verdict::of(ask)
}

/// Ends the session's run, which withdraws what it still asks.
///
/// # Errors
/// Chips can't be reached within [`REACH`], or refuses.
pub async fn end_session(client: &Client, input: &Input) -> Result<(), chips_client::Error> {
    let client = client.retry_for(Some(REACH));
    for nth in 0..RUNS {
        match client.run(run_id(input, nth)).await {
            Ok(run) if run.state == RunState::Live => return client.end_run(run.run_id).await.map(drop),
            Ok(_) => {}
            Err(error) if error.problem().is_some_and(|problem| problem.status == 404) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
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

async fn already_open(
    client: &Client,
    run_id: RunId,
    questions: &[Question],
) -> Result<Option<Ask>, chips_client::Error> {
    let page = client.asks(&AsksQuery::default().state(AskState::Open).run(run_id)).await?;
    let same = |ask: &Ask| ask.ask.as_ask().is_some_and(|asked| asked.questions == questions);
    Ok(page.asks.into_iter().find(same))
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
