//! What people do in their chats with the bot: they connect one, tap an option, or write something.
//!
//! Telegram says who did it, and that counts: a button answers as the person whose chat it is, and as nobody in any other. What is
//! written answers nothing, for who knows which question it is about.

use std::time::Duration;

use axum::http::StatusCode;
use chips_core::notify::Channel;
use chips_store::{AskFilter, AsksQuery, Endpoint, Identity, NewEndpoint};
use futures::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::channels::language;
use crate::channels::message::shortened;
use crate::channels::tap::{LATEST, Tap};
use crate::channels::telegram::Button;
use crate::channels::telegram::bot::{Bot, Fault};
use crate::state::AppState;
use crate::taps;
use crate::words::{Words, fill};

/// Updates that are seen to at the same time.
const AT_ONCE: usize = 8;
/// How long to wait after an answer that came at once and says nothing; after Telegram could not be asked, at first and at most;
/// and where another server asks for the same bot: they take turns.
const WAIT_LEAST: Duration = Duration::from_secs(1);
const WAIT_FIRST: Duration = Duration::from_secs(2);
const WAIT_MOST: Duration = Duration::from_secs(60);
const WAIT_TURN: Duration = Duration::from_secs(30);
/// Characters of a note that Telegram shows over a chat.
const NOTE: usize = 200;
/// Characters of what a chat is called in the settings.
const NAME: usize = 60;
/// Open questions that are counted.
const COUNTED: usize = 100;

#[derive(Debug, Deserialize)]
struct Update {
    update_id: i64,
    message: Option<Written>,
    callback_query: Option<Tapped>,
}

#[derive(Debug, Deserialize)]
struct Written {
    message_id: i64,
    chat: Chat,
    from: Option<User>,
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Chat {
    id: i64,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    first_name: String,
    username: Option<String>,
    language_code: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Tapped {
    id: String,
    from: User,
    data: Option<String>,
}

impl User {
    /// What the chat with them is called.
    fn called(&self) -> String {
        let name = self.username.as_ref().map_or_else(|| self.first_name.clone(), |name| format!("@{name}"));
        shortened(if name.is_empty() { "Telegram" } else { &name }, NAME)
    }

    /// The language of somebody of whom no more is known.
    fn words(&self) -> &'static Words {
        Words::accepted(self.language_code.as_deref().unwrap_or_default())
    }
}

/// Takes what comes by the bot until the server stops. What was not seen to by then comes again after the next start.
pub async fn run(state: AppState) {
    if let Some(bot) = &state.bot {
        state.stopping.run_until_cancelled(listen(&state, bot)).await;
    }
}

async fn listen(state: &AppState, bot: &Bot) {
    let (mut offset, mut wait, mut shared) = (0, WAIT_FIRST, false);
    loop {
        let asked = tokio::time::Instant::now();
        match bot.updates(offset).await {
            Ok(updates) => {
                // Telegram waits until there is something. Whatever stands in its place and does not is not asked without a pause.
                if updates.is_empty() && asked.elapsed() < WAIT_LEAST {
                    tokio::time::sleep(WAIT_LEAST).await;
                }
                if wait > WAIT_FIRST {
                    tracing::info!("Telegram answers again");
                }
                wait = WAIT_FIRST;
                let next = updates.iter().filter_map(|update| update["update_id"].as_i64()).max();
                futures::stream::iter(updates).for_each_concurrent(AT_ONCE, |update| see_to(state, bot, update)).await;
                offset = next.map_or(offset, |last| last + 1);
            }
            Err(Fault::No(409, _)) => {
                // Where several servers share a store that is as it should be, and nobody need read it every minute.
                if !shared {
                    tracing::warn!(
                        "another server, or a webhook, takes what comes by this bot of Telegram; it is asked again in a while"
                    );
                }
                shared = true;
                tokio::time::sleep(WAIT_TURN).await;
            }
            Err(fault) => {
                if wait == WAIT_FIRST {
                    tracing::warn!(
                        why = fault.kind(),
                        "what comes by Telegram can't be had; it is tried again and again"
                    );
                }
                let asked = if let Fault::Later(_, seconds) = fault { seconds } else { 0 };
                tokio::time::sleep(wait.max(Duration::from_secs(asked.into()).min(WAIT_MOST))).await;
                wait = (wait * 2).min(WAIT_MOST);
            }
        }
    }
}

async fn see_to(state: &AppState, bot: &Bot, update: Value) {
    let reply = match serde_json::from_value(update) {
        Ok(Update { callback_query: Some(tapped), .. }) => {
            let (good, note) = tapped_by(state, &tapped).await;
            let note = shortened(&note, NOTE);
            bot.call(
                "answerCallbackQuery",
                &json!({ "callback_query_id": tapped.id, "text": note, "show_alert": !good }),
            )
            .await
        }
        // A group is many people: nobody is told anything there.
        Ok(Update { message: Some(written), .. }) if written.chat.kind == "private" => {
            let Some(text) = written_by(state, &written).await else { return };
            bot.call(
                "sendMessage",
                &json!({
                    "chat_id": written.chat.id,
                    "text": text,
                    "reply_parameters": { "message_id": written.message_id, "allow_sending_without_reply": true },
                    "link_preview_options": { "is_disabled": true },
                }),
            )
            .await
        }
        Ok(Update { update_id, .. }) => {
            tracing::debug!(update_id, "nothing that Chips takes came by Telegram");
            return;
        }
        // Not what is wrong with it: that would quote it.
        Err(_) => {
            tracing::warn!("something that came by Telegram can't be read, and is passed over");
            return;
        }
    };
    if let Err(fault) = reply {
        tracing::warn!(why = fault.kind(), "what became of a tap or a message could not be said by Telegram");
    }
}

/// The endpoint of whoever did something, and them, where it is theirs.
async fn whose(state: &AppState, user: &User) -> Result<Option<(Endpoint, Identity)>, chips_store::StoreError> {
    state.store.endpoint_at(Channel::Telegram, &user.id.to_string()).await
}

/// Somebody tapped a button: whether it did what they wanted, and a note on what became of it.
async fn tapped_by(state: &AppState, tapped: &Tapped) -> (bool, String) {
    let words = tapped.from.words();
    let Some(button) = tapped.data.as_deref().and_then(Button::of) else {
        return (false, words.message.unknown.to_owned());
    };
    let page = taps::page_of(state, button.ask_id);
    let (endpoint, person) = match whose(state, &tapped.from).await {
        // Another endpoint's button is one from before this chat was connected anew, or was never sent here.
        Ok(Some(found)) if found.0.endpoint_id == button.endpoint_id => found,
        Ok(_) => return (false, fill(words.message.ended, &[("page", &page)])),
        Err(fault) => return (false, taps::unavailable(&fault, words).1),
    };
    let words = language(&endpoint);
    let chips_core::Who::Person(id) = person.sender.who else { return (false, words.message.hidden.to_owned()) };
    // Who may answer is whose chat it is, for as long as it is: so a button is good for as long as the question is.
    let expires = match state.store.ask(&person, button.ask_id).await {
        Ok(ask) => ask.and_then(|ask| ask.deadline).unwrap_or(LATEST),
        Err(fault) => return (false, taps::unavailable(&fault, words).1),
    };
    let tap = Tap {
        workspace_id: person.sender.workspace_id,
        ask_id: button.ask_id,
        person: id,
        endpoint_id: button.endpoint_id,
        expires,
        option: button.option,
    };
    let (status, note) = taps::answer_as(state, &person, &tap, words).await;
    (status == StatusCode::OK, note)
}

/// Somebody wrote to the bot: what it says to that.
async fn written_by(state: &AppState, written: &Written) -> Option<String> {
    let from = written.from.as_ref()?;
    let text = written.text.as_deref().unwrap_or_default().trim();
    let start = text.strip_prefix("/start").filter(|rest| rest.is_empty() || rest.starts_with(' ')).map(str::trim);
    let found = match whose(state, from).await {
        Ok(found) => found,
        Err(fault) => return Some(taps::unavailable(&fault, from.words()).1),
    };
    let settings = format!("{}/settings", state.config.base_url());
    match (start, found) {
        (Some(link), found) if !link.is_empty() => Some(connect(state, from, link, found, &settings).await),
        (_, Some((endpoint, person))) => Some(which(state, &person, language(&endpoint)).await),
        // Whoever knows nothing of Chips gets one answer to the one thing that everybody sends first.
        (Some(_), None) => Some(fill(from.words().telegram.stranger, &[("page", &settings)])),
        (None, None) => None,
    }
}

/// Connects the chat with whoever made the link.
async fn connect(
    state: &AppState,
    from: &User,
    link: &str,
    found: Option<(Endpoint, Identity)>,
    settings: &str,
) -> String {
    let over = || fill(from.words().telegram.link_over, &[("page", settings)]);
    let address = from.id.to_string();
    let connect = async {
        let Some(link) = state.links.read(link).await? else { return Ok(over()) };
        let w = Words::of(&link.lang).unwrap_or(from.words());
        let read = |error: chips_store::StoreError| chips_store::WriteError::Unavailable {
            reason: error.to_string(),
            retry_after_s: 2,
        };
        let Some(person) = state.store.person(link.person).await.map_err(read)? else { return Ok(over()) };
        let endpoints = state.store.endpoints(&person).await.map_err(read)?;
        // One chat was connected by it already; it is said again to that one alone.
        let used = endpoints.iter().any(|known| {
            known.channel == Channel::Telegram && known.created_at >= link.made && known.address != address
        });
        if used {
            return Ok(over());
        }
        let before = found.filter(|(_, before)| before.sender.who != person.sender.who).map(|(_, before)| before);
        let endpoint = NewEndpoint {
            channel: Channel::Telegram,
            address,
            secret: json!({ "lang": w.lang }).to_string(),
            name: from.called(),
            session_id: None,
        };
        if state.store.add_endpoint(&person, endpoint).await?.is_none() {
            return Ok(w.fault_many.to_owned());
        }
        let mut text = fill(w.telegram.connected, &[("who", &shortened(&person.name, NAME))]);
        if let Some(before) = before {
            text.push('\n');
            text.push_str(&fill(w.telegram.instead, &[("who", &shortened(&before.name, NAME))]));
        }
        Ok(text)
    };
    connect.await.unwrap_or_else(|fault: chips_store::WriteError| taps::unavailable(&fault, from.words()).1)
}

/// What somebody wrote answers none of the questions that are open: they are asked which one they mean.
async fn which(state: &AppState, person: &Identity, w: &Words) -> String {
    let query = AsksQuery { filter: AskFilter::Open, limit: COUNTED, ..AsksQuery::default() };
    let open = match state.store.asks(person, &query).await {
        Ok(open) => open,
        Err(fault) => return taps::unavailable(&fault, w).1,
    };
    let count = format!("{}{}", open.asks.len(), if open.next.is_some() { "+" } else { "" });
    let page = match open.asks.as_slice() {
        [one] => taps::page_of(state, one.ask_id),
        _ => format!("{}/", state.config.base_url()),
    };
    fill(w.telegram.which.of(open.asks.len()), &[("n", &count), ("page", &page)])
}
