//! `chips ask`

mod content;
mod result;

use std::cell::Cell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use chips_client::{AskSpec, Client, Error, TokenKind, mint};
use chips_protocol::api::{Ask, AskState, NewRun};
use chips_protocol::problem::ProblemCode;
use chips_protocol::{AskId, Event, Fault, OnNoAnswer, QuestionAsk, QuestionOption, RunId, SpaceId};
use serde_json::Number;

use crate::terminal::time;
use crate::{args, config, exit, output, remote, runtime};

/// Ask people a question and wait for the answer
///
/// Prints the chosen values, one a line, and then a text that was typed. What goes on is told on standard error. It
/// waits through restarts of the server and dead networks; Ctrl-C stops the waiting and leaves the question open, and
/// the same --ask-id takes it up again, with the question or alone. Exit codes: 0 answered (or the default was taken),
/// 1 refused or failed, 2 wrong usage, 3 the time ran out with nothing taken, 4 withdrawn, 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips ask 'Deploy now?' -o yes=Yes -o no='Not yet'",
    "chips ask 'Ship on which day?' -o 19='19 September' -o 26='26 September' --default 19 --timeout 1h",
    "chips ask 'What is missing?' -o nothing=Nothing -o docs=Docs --multi --free-text --json",
    "chips ask --file ask.json --timeout 2d",
    "chips ask --ask-id qst_01K4ZQPX000000000000000009",
))]
pub struct Args {
    /// What is asked
    #[arg(value_name = "PROMPT", required_unless_present_any = ["file", "ask_id"])]
    prompt: Option<String>,
    /// An option: what comes back and what the person taps; two to four times. Without `=` both are the same
    #[arg(short, long = "option", value_name = "VALUE=LABEL", value_parser = content::option,
        allow_hyphen_values = true, requires = "prompt")]
    option: Vec<QuestionOption>,
    /// Let the person choose more than one option
    #[arg(long, requires = "prompt")]
    multi: bool,
    /// Let the person type an answer
    #[arg(long, requires = "prompt")]
    free_text: bool,
    /// What is taken if nobody answers: an option's value, or any text with --free-text
    #[arg(long, value_name = "VALUE", requires = "prompt", allow_hyphen_values = true)]
    default: Option<String>,
    /// How long to wait: 90, 90s, 15m, 1h30m, 2d. Without it: until somebody answers
    #[arg(long, value_name = "TIME", value_parser = time::timeout, allow_hyphen_values = true)]
    timeout: Option<Number>,
    /// What you will do if the time runs out; without it the default is taken where there is one
    #[arg(long, value_name = "POLICY")]
    on_no_answer: Option<Policy>,
    /// The space whose people are asked
    #[arg(long, value_name = "SPACE_ID")]
    space: Option<SpaceId>,
    /// The run that the question belongs to [env: CHIPS_RUN]. Without it one is opened, and ended after the answer
    #[arg(long, value_name = "RUN_ID")]
    run: Option<RunId>,
    /// The question's id: asked again with the same one, it is the same question. Alone, it takes up the waiting
    #[arg(long, value_name = "ASK_ID")]
    ask_id: Option<AskId>,
    /// A file with `questions` (and `ask_id`, `timeout_seconds`, `on_no_answer`) as JSON; `-` is standard input
    #[arg(long, value_name = "ASK.json", conflicts_with_all = ["prompt", "option", "multi", "free_text", "default"])]
    file: Option<PathBuf>,
    /// Print the `question.answered`; needed where a value holds a line feed
    #[command(flatten)]
    json: args::Json,
}

/// What the harness will do if nobody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum Policy {
    /// Take the default
    #[value(alias = "use-default")]
    UseDefault,
    /// Give the work up
    Cancel,
    /// Go on without an answer
    Continue,
}

impl From<Policy> for OnNoAnswer {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::UseDefault => Self::UseDefault,
            Policy::Cancel => Self::Cancel,
            Policy::Continue => Self::Continue,
        }
    }
}

/// What is to be waited for.
enum Job {
    /// A question that is asked, or asked once more.
    Ask { content: QuestionAsk, ask_id: AskId, run_id: RunId, own_run: bool },
    /// A question that was asked before.
    TakeUp(AskId),
}

/// How far it has come, for whoever interrupts it.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Nothing,
    Asking(AskId),
    Open(AskId),
    Closed,
}

/// How long the server may take to be there: it may be starting beside this command.
const BEGIN_WITHIN: Duration = Duration::from_secs(30);

/// How long the run that was opened for one question is tried to be ended; the answer is printed by then.
const TIDY_UP: Duration = Duration::from_secs(5);

/// Runs it.
pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    if args.run.is_none() {
        args.run = run_from_environment()?;
    }
    let job = match job(&args)? {
        Ok(job) => job,
        Err(code) => return Ok(code.into()),
    };
    let client = remote::client(&config::connection(TokenKind::Harness)?)?;
    runtime::block_on(async {
        let stage = Cell::new(Stage::Nothing);
        tokio::select! {
            // An interrupt wins over whatever is ready at the same moment.
            biased;
            interrupt = tokio::signal::ctrl_c() => {
                interrupt.context("can't listen for Ctrl-C")?;
                interrupted(&args, stage.get());
                Ok(exit::INTERRUPTED.into())
            }
            code = ask(&args, &client, job, &stage) => code,
        }
    })
}

fn run_from_environment() -> anyhow::Result<Option<RunId>> {
    match std::env::var("CHIPS_RUN") {
        Ok(run) if !run.trim().is_empty() => Ok(Some(run.trim().parse().context("CHIPS_RUN")?)),
        _ => Ok(None),
    }
}

/// What the arguments ask for; an exit code where that is told already.
fn job(args: &Args) -> anyhow::Result<Result<Job, exit::Code>> {
    let usage = |message: &str| {
        output::note(format_args!("chips: {message}; see `chips ask --help`"));
        Ok(Err(exit::USAGE))
    };
    let mut object = match (&args.prompt, &args.file, args.ask_id) {
        (Some(prompt), ..) => {
            if !(2..=4).contains(&args.option.len()) {
                return usage("a question has two to four options, each given with -o VALUE=LABEL");
            }
            content::from_arguments(&content::Asked {
                prompt,
                options: &args.option,
                multi: args.multi,
                free_text: args.free_text,
                default: args.default.as_deref(),
            })
        }
        (None, Some(path), _) => content::from_file(path)?,
        (None, None, Some(ask_id)) => {
            if args.timeout.is_some() || args.on_no_answer.is_some() || args.space.is_some() {
                return usage(
                    "--ask-id alone takes up a question as it was asked; the other arguments need the question",
                );
            }
            return Ok(Ok(Job::TakeUp(ask_id)));
        }
        (None, None, None) => return usage("there is nothing to ask"),
    };
    let beside = content::Beside { timeout: args.timeout.clone(), on_no_answer: args.on_no_answer.map(Into::into) };
    beside.put(&mut object);
    if args.ask_id.is_some() || !object.contains_key("ask_id") {
        let ask_id = args.ask_id.map_or_else(mint::ask_id, Ok)?;
        object.insert("ask_id".to_owned(), ask_id.to_string().into());
    }
    let content = match content::check(object) {
        Ok(content) => content,
        Err(faults) => {
            tell(args, &faults);
            return Ok(Err(exit::FAILED));
        }
    };
    if !args.json.json && !result::fits_lines(&content) {
        return usage("an option's value holds a line feed, so one value a line can't be told apart: add --json");
    }
    let ask_id = content.ask_id;
    let run_id = args.run.unwrap_or(RunId::new(ask_id.ulid()));
    Ok(Ok(Job::Ask { content, ask_id, run_id, own_run: args.run.is_none() }))
}

/// Every fault of what was to be asked.
fn tell(args: &Args, faults: &[Fault]) {
    match &args.file {
        Some(path) => output::note(format_args!("chips: {} can't be asked:", content::name(path))),
        None => output::note("chips: this can't be asked:"),
    }
    for fault in faults {
        let place = if args.file.is_some() { fault.pointer.clone() } else { content::place(&fault.pointer) };
        let line = format!("{place}: {} ({})", fault.message, fault.code.as_str());
        output::note(format_args!("  {}", output::one_line(&line)));
    }
}

async fn ask(args: &Args, client: &Client, job: Job, stage: &Cell<Stage>) -> anyhow::Result<ExitCode> {
    // The server has to be there to begin with; after that it may come and go.
    client.retry_for(Some(BEGIN_WITHIN)).me().await?;
    let patient = client.retry_for(None);
    let mut untold = Untold::default();
    let (ask_id, own_run) = match job {
        Job::TakeUp(ask_id) => {
            let ask = patient.ask_state(ask_id).await.map_err(|error| match error.code() {
                Some(ProblemCode::NotFound) => anyhow::anyhow!("this harness has asked no {ask_id}"),
                _ => error.into(),
            })?;
            let content = ask.ask.as_ask().context("the ask holds no question")?;
            if !args.json.json && !result::fits_lines(content) {
                output::note("chips: a value of this question holds a line feed: add --json");
                return Ok(exit::USAGE.into());
            }
            stage.set(Stage::Open(ask_id));
            waiting(args, client, &ask.ask, true);
            untold.look(&ask);
            (ask_id, ask.ask.envelope.run_id.ulid() == ask_id.ulid())
        }
        Job::Ask { content, ask_id, run_id, own_run } => {
            stage.set(Stage::Asking(ask_id));
            let written = post(args, &patient, content, run_id, own_run).await?;
            stage.set(Stage::Open(ask_id));
            waiting(args, client, &written.event, written.replayed);
            untold.look(&patient.ask_state(ask_id).await.map_err(|error| left_open(args, ask_id, error))?);
            (ask_id, own_run)
        }
    };
    let ask = client.wait_and(ask_id, |ask| untold.look(ask)).await.map_err(|error| left_open(args, ask_id, error))?;
    stage.set(Stage::Closed);
    let printed = result::print(&ask, args.json.json);
    if own_run && let Err(error) = client.retry_for(Some(TIDY_UP)).end_run(ask.ask.envelope.run_id).await {
        let error = output::one_line(&error.to_string());
        output::note(format_args!("chips: the run {} is not ended: {error}", ask.ask.envelope.run_id));
    }
    printed?;
    Ok(result::code(&ask).into())
}

/// Says once that nobody could be told of the question: whoever waits should not do so in the dark.
#[derive(Debug, Default)]
struct Untold {
    said: bool,
}

impl Untold {
    fn look(&mut self, ask: &Ask) {
        if ask.state == AskState::Open && !ask.reachable && !std::mem::replace(&mut self.said, true) {
            output::note("chips: nobody could be told of it so far; it stands in the inbox of those who may see it");
        }
    }
}

/// Why the waiting ended though the question is open.
fn left_open(args: &Args, ask_id: AskId, error: Error) -> anyhow::Error {
    let again = again_command(args, ask_id);
    match error.code() {
        Some(ProblemCode::Unauthenticated) => anyhow::Error::from(error).context(format!(
            "the token is good no more, and the question stays open; with a new token (CHIPS_TOKEN, or `chips connect`) \
             this takes it up again: {again}"
        )),
        _ => error.into(),
    }
}

/// Opens the run where it is the question's own, and asks.
async fn post(
    args: &Args,
    client: &Client,
    content: QuestionAsk,
    run_id: RunId,
    own_run: bool,
) -> anyhow::Result<chips_client::Written> {
    if own_run {
        client.open_run(NewRun { run_id: Some(run_id), space_id: args.space, ..NewRun::default() }).await?;
    }
    let mut spec = AskSpec::from_content(run_id, content);
    if let Some(space_id) = args.space {
        spec = spec.space_id(space_id);
    }
    match client.ask(spec).await {
        Ok(written) => Ok(written),
        Err(error) => {
            let taken = error.code() == Some(ProblemCode::AskIdConflict);
            if own_run && !taken {
                // Nothing was asked in it.
                let _ = client.retry_for(Some(TIDY_UP)).end_run(run_id).await;
            }
            Err(refused(args, error))
        }
    }
}

/// A refusal, with every fault told and what to do.
fn refused(args: &Args, error: Error) -> anyhow::Error {
    let faults = error.problem().map_or(&[][..], |problem| &problem.errors);
    if faults.len() > 1 {
        tell(args, faults);
    }
    match error.code() {
        Some(ProblemCode::AskIdConflict) => anyhow::Error::from(error).context(
            "--ask-id names a question that says something else; alone, without a question, it takes that one up",
        ),
        _ => error.into(),
    }
}

/// Says what is waited for, where it can be answered, and how to take it up again.
fn waiting(args: &Args, client: &Client, event: &Event, again: bool) {
    let Some(content) = event.as_ask() else { return };
    let place = client.address().at(&format!("/asks/{}", content.ask_id));
    output::note(format_args!("chips: {} {place}", if again { "taken up:" } else { "asked:" }));
    let deadline = content.timeout_ms().map(|ms| event.envelope.ts.plus_ms(ms));
    let limit = match deadline.map(|deadline| client.time_left(deadline)) {
        Some(left) if content.on_no_answer() == OnNoAnswer::UseDefault => {
            format!("for at most {}, then the default is taken", time::left(left))
        }
        Some(left) => format!("for at most {}", time::left(left)),
        None => "until somebody answers".to_owned(),
    };
    output::note(format_args!(
        "chips: waiting {limit}; take it up again with: {}",
        again_command(args, content.ask_id)
    ));
}

/// The command that takes the question up again.
fn again_command(args: &Args, ask_id: AskId) -> String {
    let json = if args.json.json { " --json" } else { "" };
    format!("chips ask --ask-id {ask_id}{json}")
}

fn interrupted(args: &Args, stage: Stage) {
    match stage {
        Stage::Nothing => output::note("\nchips: interrupted; nothing was asked"),
        Stage::Asking(ask_id) => output::note(format_args!(
            "\nchips: interrupted; whether the question was asked is not known. If it was, this takes it up: {}",
            again_command(args, ask_id)
        )),
        Stage::Open(ask_id) => output::note(format_args!(
            "\nchips: interrupted; the question stays open. Take it up again with: {}",
            again_command(args, ask_id)
        )),
        Stage::Closed => output::note("\nchips: interrupted; the question is closed"),
    }
}
