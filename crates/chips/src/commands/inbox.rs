//! `chips inbox`

mod list;

use std::process::ExitCode;
use std::time::Duration;

use chips_client::{AsksQuery, Client, Error, EventStream, StreamQuery, TokenKind};
use chips_protocol::api::{Ask, AskState, AsksPage};
use crossterm::event::KeyCode;
use tokio::time::Instant;

use crate::commands::answer::session::{self, LinkState, Outcome, SETTLE};
use crate::commands::answer::{left_behind, only_persons, words};
use crate::terminal::screen::{self, Input, Screen, is_control};
use crate::terminal::time;
use crate::{args, config, exit, output, remote, runtime};

use list::List;

/// The open questions, most urgent first, and live on a terminal
///
/// On a terminal, pick a question with the arrow keys (or j and k) and open it with Enter. Piped, it prints one line a
/// question: its id, who asks, how much time is left and the prompt, with tabs between. It speaks for a person:
/// CHIPS_USER_TOKEN, or the token that `chips connect` kept.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("chips inbox", "chips inbox | cut -f1", "chips inbox --json"))]
pub struct Args {
    #[command(flatten)]
    json: args::Json,
}

/// No more pages than this are read; nobody goes through more by hand.
const PAGES: usize = 5;

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let connection = config::connection(TokenKind::Person)?;
    if !args.json.json && output::is_terminal() && screen::is_possible() {
        let link = LinkState::default();
        let client = remote::client_with(&connection, link.listener())?;
        return runtime::block_on(interactive(&client, &link));
    }
    let client = remote::client(&connection)?;
    runtime::block_on(print(&args, &client))
}

/// The open asks, as many as are read, and whether there are more.
async fn open_asks(client: &Client) -> Result<(AsksPage, bool), Error> {
    let query = AsksQuery::default().state(AskState::Open).limit(200);
    let mut all = client.asks(&query).await?;
    for _ in 1..PAGES {
        let Some(cursor) = all.next.take() else { break };
        let page = client.asks(&query.clone().before(cursor)).await?;
        all.asks.extend(page.asks);
        all.next = page.next;
    }
    let more = all.next.is_some();
    Ok((all, more))
}

async fn print(args: &Args, client: &Client) -> anyhow::Result<ExitCode> {
    only_persons(client).await?;
    let (page, more) = open_asks(client).await?;
    if args.json.json {
        output::json(&page)?;
        return Ok(exit::DONE.into());
    }
    for ask in &page.asks {
        let left = left(client, ask).map_or_else(|| "-".to_owned(), time::left);
        output::line(format_args!("{}\t{}\t{left}\t{}", ask.ask_id, words::name(&ask.asker), list::prompt(ask)))?;
    }
    if page.asks.is_empty() {
        output::note("Nothing is open.");
    }
    if more {
        output::note(format_args!("chips: there are more; these are the {} most urgent", page.asks.len()));
    }
    Ok(exit::DONE.into())
}

fn left(client: &Client, ask: &Ask) -> Option<Duration> {
    ask.deadline.map(|deadline| client.time_left(deadline))
}

async fn interactive(client: &Client, link: &LinkState) -> anyhow::Result<ExitCode> {
    let name = only_persons(client).await?.participant.name;
    let mut screen = Screen::enter()?;
    let mut list = List::default();
    let mut said: Option<String> = None;
    let mut behind: Vec<String> = Vec::new();
    let end = loop {
        match pick(&mut screen, client, link, &mut list, &name, said.as_deref()).await? {
            Picked::Leave => break exit::DONE.into(),
            Picked::End(code) => break code.into(),
            Picked::Ask(ask) => match session::run(&mut screen, client, link, &ask).await? {
                Outcome::Answered(written) => {
                    let answered = Ask { answer: Some(written.event), ..*ask };
                    said = Some(format!("Answered: {}", words::answer(&answered).unwrap_or_default()));
                }
                Outcome::Closed { ask, drafts } => {
                    said = Some(format!("Closed meanwhile. {}", words::closed(&ask)));
                    behind.extend(drafts);
                }
                Outcome::Left => said = None,
                Outcome::End(code) => break code.into(),
            },
        }
    };
    drop(screen);
    left_behind(&behind);
    Ok(end)
}

enum Picked {
    Ask(Box<Ask>),
    Leave,
    End(u8),
}

/// Shows the list, live, until an ask is picked or the person leaves.
async fn pick(
    screen: &mut Screen,
    client: &Client,
    link: &LinkState,
    list: &mut List,
    name: &str,
    said: Option<&str>,
) -> anyhow::Result<Picked> {
    let patient = client.retry_for(None);
    // Begins where the first list was read: nothing falls between the two.
    let mut stream: Option<EventStream> = None;
    let mut reading = Some(Box::pin(open_asks(&patient)));
    // Something happened while the list was being read: it is read once more.
    let mut stale = false;
    let mut moved: Option<Instant> = None;
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        let lost = link.lost().map(|reason| format!("No connection ({reason}), trying again…"));
        let status = lost.as_deref().or(said);
        screen.draw(&list.view(name, status, Screen::size().0, |ask| left(client, ask)))?;
        tokio::select! {
            input = screen.next() => match input {
                Input::End(code) => return Ok(Picked::End(code)),
                Input::Redraw | Input::Paste(_) => {}
                Input::Key(key) if is_control(key, 'd') => return Ok(Picked::Leave),
                Input::Key(key) => match key.code {
                    KeyCode::Up | KeyCode::Char('k') => list.step(-1),
                    KeyCode::Down | KeyCode::Char('j') => list.step(1),
                    KeyCode::PageUp => list.step(-5),
                    KeyCode::PageDown => list.step(5),
                    KeyCode::Home | KeyCode::Char('g') => list.step(isize::MIN),
                    KeyCode::End | KeyCode::Char('G') => list.step(isize::MAX),
                    KeyCode::Esc | KeyCode::Char('q') => return Ok(Picked::Leave),
                    KeyCode::Enter | KeyCode::Right if moved.is_none_or(|moved| moved.elapsed() > SETTLE) => {
                        if let Some(ask) = list.current() {
                            return Ok(Picked::Ask(Box::new(ask.clone())));
                        }
                    }
                    _ => {}
                },
            },
            read = async { match &mut reading { Some(reading) => reading.await, None => std::future::pending().await } } => {
                let (page, more) = read?;
                stream.get_or_insert_with(|| client.stream(StreamQuery::default().after(page.head)));
                if list.take(page.asks, more) {
                    moved = Some(Instant::now());
                }
                reading = std::mem::take(&mut stale).then(|| Box::pin(open_asks(&patient)));
            },
            event = async { match &mut stream { Some(stream) => stream.next().await, None => std::future::pending().await } } => {
                match event {
                    Ok(_) => {}
                    // The log was restored from a copy: what is open now is read anew, and followed from there.
                    Err(error) if error.problem().is_some_and(|problem| problem.status == 410) => stream = None,
                    Err(error) => return Err(error.into()),
                }
                match &reading {
                    Some(_) => stale = true,
                    None => reading = Some(Box::pin(open_asks(&patient))),
                }
            },
            _ = tick.tick() => {},
            () = link.changed() => {},
        }
    }
}
