//! `chips answer`

pub mod form;
mod given;
pub mod session;
pub mod view;
pub mod words;

use std::process::ExitCode;

use anyhow::{Context, bail};
use chips_client::{Client, Error, TokenKind};
use chips_protocol::AskId;
use chips_protocol::api::{Ask, AskState};
use chips_protocol::problem::ProblemCode;

use crate::terminal::screen::{self, Screen};
use crate::terminal::text;
use crate::{args, config, exit, output, remote, runtime};

use given::Given;
use session::{LinkState, Outcome};

/// Answer a question, as a person
///
/// On a terminal it shows the question and lets you choose. With --value, --text or --none it answers at once, for
/// scripts. It speaks for a person: CHIPS_USER_TOKEN, or the token that `chips connect` kept.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips answer qst_01K4ZQPX000000000000000009",
    "chips answer qst_01K4ZQPX000000000000000009 --value 19",
    "chips answer qst_01K4ZQPX000000000000000009 --question day --value 19 --question note --text 'Call first'",
))]
pub struct Args {
    /// The question, as `chips inbox` lists it
    #[arg(value_name = "ASK_ID")]
    ask_id: AskId,
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    json: args::Json,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let connection = config::connection(TokenKind::Person)?;
    if args.given.is_empty() {
        if !screen::is_possible() {
            output::note("chips: this is no terminal to choose on; give the answer with --value, --text or --none");
            return Ok(exit::USAGE.into());
        }
        let link = LinkState::default();
        let client = remote::client_with(&connection, link.listener())?;
        return runtime::block_on(interactive(&args, &client, &link));
    }
    let client = remote::client(&connection)?;
    runtime::block_on(at_once(&args, &client))
}

/// The ask, for a person.
///
/// # Errors
/// When the token speaks for no person, or there is no such ask for them.
async fn ask_of_person(client: &Client, ask_id: AskId) -> anyhow::Result<Ask> {
    only_persons(client).await?;
    client.ask_state(ask_id).await.map_err(|error| match error.code() {
        Some(ProblemCode::NotFound) => anyhow::anyhow!("there is no {ask_id}, or you can't see it"),
        _ => error.into(),
    })
}

/// Refuses a token that speaks for no person, whatever it looks like.
///
/// # Errors
/// When it does, or the server can't be asked.
pub async fn only_persons(client: &Client) -> anyhow::Result<chips_protocol::api::Me> {
    let me = client.me().await?;
    if !words::is_person(&me.participant) {
        bail!("this token speaks for a {}; only a person answers", me.participant.kind.as_str());
    }
    Ok(me)
}

async fn at_once(args: &Args, client: &Client) -> anyhow::Result<ExitCode> {
    let ask = ask_of_person(client, args.ask_id).await?;
    if ask.state != AskState::Open {
        output::note(format_args!("chips: too late. {}", words::closed(&ask)));
        return Ok(exit::FAILED.into());
    }
    let content = ask.ask.as_ask().context("the ask holds no question")?;
    let answers = args.given.answers(&content.questions)?;
    match client.answer(&ask, answers).await {
        Ok(written) => answered(args, &ask, &written.event),
        Err(error) if error.winning_answer().is_some() => {
            let ask = client.ask_state(args.ask_id).await?;
            output::note(format_args!("chips: too late. {}", words::closed(&ask)));
            Ok(exit::FAILED.into())
        }
        Err(error) => {
            faults(&error);
            Err(error.into())
        }
    }
}

/// Every fault of a refusal on its own line, where there are several.
fn faults(error: &Error) {
    let faults = error.problem().map_or(&[][..], |problem| &problem.errors);
    if faults.len() > 1 {
        for fault in faults {
            let line = format!("{} {}: {}", fault.pointer, fault.code.as_str(), fault.message);
            output::note(format_args!("  {}", output::one_line(&line)));
        }
    }
}

async fn interactive(args: &Args, client: &Client, link: &LinkState) -> anyhow::Result<ExitCode> {
    let ask = ask_of_person(client, args.ask_id).await?;
    if ask.state != AskState::Open {
        output::note(format_args!("chips: too late. {}", words::closed(&ask)));
        return Ok(exit::FAILED.into());
    }
    let mut screen = Screen::enter()?;
    let outcome = session::run(&mut screen, client, link, &ask).await;
    drop(screen);
    match outcome? {
        Outcome::Answered(written) => answered(args, &ask, &written.event),
        Outcome::Closed { ask, drafts } => {
            output::note(format_args!("Closed meanwhile. {}", words::closed(&ask)));
            left_behind(&drafts);
            Ok(exit::FAILED.into())
        }
        Outcome::Left => {
            output::note("Not answered.");
            Ok(exit::FAILED.into())
        }
        Outcome::End(code) => Ok(code.into()),
    }
}

/// Prints what was typed and not sent, so that it can be copied.
pub fn left_behind(drafts: &[String]) {
    for draft in drafts {
        output::note(format_args!("You had typed, and it is not sent:\n{}", text::clean(draft)));
    }
}

fn answered(args: &Args, ask: &Ask, event: &chips_protocol::Event) -> anyhow::Result<ExitCode> {
    let answered = Ask { answer: Some(event.clone()), ..ask.clone() };
    let said = words::answer(&answered).unwrap_or_else(|| "none of these".to_owned());
    output::note(format_args!("Answered: {said}"));
    if args.json.json {
        output::json(event)?;
    }
    Ok(exit::DONE.into())
}
