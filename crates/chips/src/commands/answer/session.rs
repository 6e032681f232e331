//! Answering one ask on the screen, until it is answered, closed by somebody else, or left.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chips_client::{Client, Error, LinkChange, Written};
use chips_protocol::Answer;
use chips_protocol::api::{Ask, AskState};
use crossterm::event::KeyCode;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::form::{Action, Form, Stage};
use super::view::{self, Around};
use crate::terminal::screen::{Input, Screen, is_control};

/// Whether the server can be reached, as the client's listener last heard; wakes whoever draws it.
#[derive(Debug, Clone, Default)]
pub struct LinkState(Arc<(Mutex<Option<String>>, Notify)>);

impl LinkState {
    /// What the client is given to tell of changes.
    pub fn listener(&self) -> impl Fn(LinkChange) + Send + Sync + 'static {
        let state = self.clone();
        move |change| {
            let lost = match change {
                LinkChange::Lost { reason, .. } => Some(reason),
                _ => None,
            };
            if let Ok(mut held) = state.0.0.lock() {
                *held = lost;
            }
            state.0.1.notify_one();
        }
    }

    /// Why the server can't be reached, where it can't.
    pub fn lost(&self) -> Option<String> {
        self.0.0.lock().ok()?.clone()
    }

    /// Waits for a change.
    pub async fn changed(&self) {
        self.0.1.notified().await;
    }
}

/// How it ended.
#[derive(Debug)]
pub enum Outcome {
    /// The person's answer won.
    Answered(Box<Written>),
    /// Somebody else, or the time, closed the ask. With what the person had typed.
    Closed {
        /// The ask as it stands.
        ask: Box<Ask>,
        /// What was typed and is not sent.
        drafts: Vec<String>,
    },
    /// The person left.
    Left,
    /// The process is to end, with this code.
    End(u8),
}

/// After what is on the screen has changed by itself or has just been opened, Enter does nothing for this long: it may
/// have been meant for what was there before.
pub const SETTLE: Duration = Duration::from_millis(400);

/// What comes back from the server.
type Sending<'c> = Pin<Box<dyn Future<Output = Result<Written, Error>> + 'c>>;

/// Lets the person answer.
///
/// # Errors
/// When the terminal fails, or Chips says that this ask is not to be seen by this person any more.
pub async fn run(screen: &mut Screen, client: &Client, link: &LinkState, ask: &Ask) -> anyhow::Result<Outcome> {
    let questions = ask.ask.as_ask().map_or(&[][..], |content| &content.questions);
    let mut form = Form::new(questions);
    let opened = Instant::now();
    let patient = client.retry_for(None);
    let mut closed = std::pin::pin!(client.wait(ask.ask_id));
    let mut is_closed: Option<Ask> = None;
    let mut sending: Option<Sending<'_>> = None;
    let mut problem: Option<String> = None;
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        // While an answer is under way its own outcome comes first: the ask may be closed by that answer.
        if sending.is_none()
            && let Some(ask) = is_closed.take()
        {
            return Ok(Outcome::Closed { ask: Box::new(ask), drafts: drafts(&form) });
        }
        let status = match (sending.is_some(), link.lost()) {
            (true, Some(_)) => {
                Some("Not sent yet: no connection. It is tried again until it goes through; q gives up.".into())
            }
            (true, None) => Some("Sending…".into()),
            (false, Some(reason)) => Some(format!("No connection ({reason}), trying again…")),
            (false, None) => problem.clone(),
        };
        let around = Around { left: ask.deadline.map(|deadline| client.time_left(deadline)), status };
        form.seen = screen.draw(&view::view(ask, &form, &around, Screen::size().0))?;
        tokio::select! {
            input = screen.next() => match input {
                Input::End(code) => return Ok(Outcome::End(code)),
                Input::Redraw => {}
                Input::Paste(pasted) if sending.is_none() => form.paste(&pasted),
                Input::Paste(_) => {}
                Input::Key(key) if sending.is_some() => {
                    // Only leaving is possible meanwhile; whether the answer went out is then not known.
                    if matches!(key.code, KeyCode::Esc | KeyCode::Char('q')) {
                        return Ok(Outcome::Left);
                    }
                }
                Input::Key(key) if is_control(key, 'd') && form.stage() != Stage::Typing => return Ok(Outcome::Left),
                Input::Key(key)
                    if key.code == KeyCode::Enter && form.stage() == Stage::Choosing && opened.elapsed() < SETTLE => {}
                Input::Key(key) => {
                    problem = None;
                    match form.key(key) {
                        Action::Stay => {}
                        Action::Leave => return Ok(Outcome::Left),
                        Action::Scroll(pages) => screen.scroll(pages),
                        Action::Send(answers) => sending = Some(send(&patient, ask, answers)),
                    }
                }
            },
            outcome = async { match &mut sending { Some(sending) => sending.await, None => std::future::pending().await } } => {
                sending = None;
                match outcome {
                    Ok(written) => return Ok(Outcome::Answered(Box::new(written))),
                    Err(error) if error.winning_answer().is_some() => {
                        let ask = Box::new(patient.ask_state(ask.ask_id).await?);
                        return Ok(Outcome::Closed { ask, drafts: drafts(&form) });
                    }
                    Err(error) => problem = Some(format!("Not sent: {error}")),
                }
            },
            ask = &mut closed, if is_closed.is_none() => {
                let ask = ask?;
                if ask.state != AskState::Open {
                    is_closed = Some(ask);
                }
            },
            _ = tick.tick() => {},
            () = link.changed() => {},
        }
    }
}

fn send<'c>(client: &'c Client, ask: &Ask, answers: Vec<Answer>) -> Sending<'c> {
    let ask = chips_client::AskRef::from(ask);
    Box::pin(client.answer(ask, answers))
}

fn drafts(form: &Form) -> Vec<String> {
    form.drafts().map(str::to_owned).collect()
}
