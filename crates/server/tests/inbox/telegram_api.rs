//! A stand-in for Telegram's Bot API (<https://core.telegram.org/bots/api>): it checks what it is asked as the real one does, and
//! remembers what each chat shows.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use chips_server::Config;
use chips_server::config::{Secret, Telegram};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::until;

pub const TOKEN: &str = "123456:ABC-DEF_ghi";

/// A message that a chat shows.
#[derive(Debug, Clone)]
pub struct Shown {
    pub id: i64,
    pub text: String,
    /// What its buttons say and carry.
    pub buttons: Vec<(String, String)>,
    pub silent: bool,
    pub reply_to: Option<i64>,
    pub edited: bool,
}

impl Shown {
    pub fn title(&self) -> &str {
        self.text.lines().next().unwrap()
    }
}

#[derive(Default)]
struct World {
    chats: BTreeMap<i64, Vec<Shown>>,
    /// Who has blocked the bot.
    blocked: BTreeSet<i64>,
    updates: Vec<Value>,
    /// Updates before this are confirmed.
    confirmed: i64,
    next: i64,
    /// What was said over a chat about a tap: the tap, the words, and whether it must be closed by hand.
    notes: Vec<(String, String, bool)>,
    /// What `sendMessage` answers next instead of doing it.
    refusals: Vec<(StatusCode, Value)>,
}

struct Shared {
    world: Mutex<World>,
    changes: watch::Sender<u64>,
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }
}

/// The stand-in, on a free port of this machine.
pub struct BotApi {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

impl BotApi {
    pub async fn start() -> Self {
        let shared = Arc::new(Shared { world: Mutex::default(), changes: watch::Sender::default() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/{bot}/{method}", post(called)).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, shared }
    }

    /// Has a server use this for its bot.
    pub fn configure(&self, config: &mut Config) {
        let api: url::Url = format!("http://{}", self.address).parse().unwrap();
        config.allow_outbound.push(api.clone());
        config.telegram = Some(Telegram { token: Secret::new(TOKEN), api });
    }

    /// What a chat shows, as soon as it is this much.
    pub async fn wait_for(&self, chat: i64, count: usize) -> Vec<Shown> {
        until("messages in a chat", async || Some(self.shown(chat)).filter(|shown| shown.len() >= count)).await
    }

    /// What a chat shows now.
    pub fn shown(&self, chat: i64) -> Vec<Shown> {
        self.shared.world().chats.get(&chat).cloned().unwrap_or_default()
    }

    /// The next calls of `sendMessage` are answered so.
    pub fn refuse(&self, refusals: &[(u16, Value)]) {
        let refusals =
            refusals.iter().rev().map(|(status, said)| (StatusCode::from_u16(*status).unwrap(), said.clone()));
        self.shared.world().refusals = refusals.collect();
    }

    /// A person deletes a message in their chat.
    pub fn delete(&self, chat: i64, message: i64) {
        if let Some(shown) = self.shared.world().chats.get_mut(&chat) {
            shown.retain(|shown| shown.id != message);
        }
    }

    pub fn block(&self, chat: i64, blocked: bool) {
        let blocks = &mut self.shared.world().blocked;
        if blocked {
            blocks.insert(chat)
        } else {
            blocks.remove(&chat)
        };
    }

    /// Something happens in a chat. Gives its number.
    pub fn happens(&self, mut update: Value) -> i64 {
        let mut world = self.shared.world();
        world.next += 1;
        let number = world.next;
        update["update_id"] = json!(number);
        world.updates.push(update);
        drop(world);
        self.shared.changes.send_modify(|count| *count += 1);
        number
    }

    /// Somebody writes in their private chat.
    pub fn writes(&self, user: i64, text: &str) -> i64 {
        self.happens(json!({ "message": {
            "message_id": 900,
            "date": 1,
            "chat": { "id": user, "type": "private" },
            "from": user_of(user),
            "text": text,
        } }))
    }

    /// Somebody taps a button, and is told what became of it: the words, and whether it did what they wanted.
    pub async fn taps(&self, user: i64, data: &str) -> (String, bool) {
        let id = format!("tap-{}", self.shared.world().next);
        self.happens(json!({ "callback_query": {
            "id": id,
            "from": user_of(user),
            "chat_instance": "1",
            "data": data,
        } }));
        until("a note about a tap", async || {
            let world = self.shared.world();
            world.notes.iter().find(|(tap, ..)| *tap == id).map(|(_, words, alert)| (words.clone(), !alert))
        })
        .await
    }

    /// Waits until the server has seen to an update and everything before.
    pub async fn seen_to(&self, number: i64) {
        until("an update is confirmed", async || (self.shared.world().confirmed > number).then_some(())).await;
    }
}

fn user_of(user: i64) -> Value {
    json!({ "id": user, "is_bot": false, "first_name": format!("U{user}"), "username": format!("u{user}"), "language_code": "en" })
}

async fn called(
    State(shared): State<Arc<Shared>>,
    Path((bot, method)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    if bot != format!("bot{TOKEN}") {
        return no(StatusCode::UNAUTHORIZED, "Unauthorized");
    }
    let said: Value = serde_json::from_slice(&body).unwrap();
    match method.as_str() {
        "getMe" => yes(json!({ "id": 123_456, "is_bot": true, "first_name": "Chips", "username": "chips_test_bot" })),
        "getUpdates" => updates(&shared, &said).await,
        "sendMessage" => send(&shared, &said),
        "editMessageText" => edit(&shared, &said),
        "answerCallbackQuery" => {
            let text = said["text"].as_str().unwrap();
            assert!(text.chars().count() <= 200, "{text}");
            let id = said["callback_query_id"].as_str().unwrap().to_owned();
            shared.world().notes.push((id, text.to_owned(), said["show_alert"].as_bool().unwrap()));
            yes(json!(true))
        }
        other => panic!("the Bot API has no method {other} that Chips needs"),
    }
}

fn yes(result: Value) -> Response {
    axum::Json(json!({ "ok": true, "result": result })).into_response()
}

fn no(status: StatusCode, description: &str) -> Response {
    let said = json!({ "ok": false, "error_code": status.as_u16(), "description": description });
    (status, axum::Json(said)).into_response()
}

async fn updates(shared: &Shared, said: &Value) -> Response {
    let (offset, limit) = (said["offset"].as_i64().unwrap(), said["limit"].as_u64().unwrap() as usize);
    assert!((1..=100).contains(&limit));
    assert_eq!(said["allowed_updates"], json!(["message", "callback_query"]));
    let waits = Duration::from_secs(said["timeout"].as_u64().unwrap());
    let mut changes = shared.changes.subscribe();
    let look = || {
        let mut world = shared.world();
        world.confirmed = world.confirmed.max(offset);
        world.updates.retain(|update| update["update_id"].as_i64() >= Some(offset));
        world.updates.iter().take(limit).cloned().collect::<Vec<Value>>()
    };
    let there = async {
        loop {
            let found = look();
            if !found.is_empty() {
                return found;
            }
            changes.changed().await.unwrap();
        }
    };
    // Telegram writes everything beyond ASCII as escapes.
    let found = tokio::time::timeout(waits, there).await.unwrap_or_default();
    // An update's number comes first.
    let numbered = |mut update: Value| {
        let number = update.as_object_mut().unwrap().remove("update_id").unwrap();
        format!("{{\"update_id\":{number},\n{}", &update.to_string()[1..])
    };
    let updates: Vec<String> = found.into_iter().map(numbered).collect();
    let text = format!("{{\"ok\":true,\"result\":[{}]}}", updates.join(","));
    let escaped: String = text
        .encode_utf16()
        .map(|unit| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
            _ => format!("\\u{unit:04x}"),
        })
        .collect();
    ([("content-type", "application/json")], Body::from(escaped)).into_response()
}

/// What both sending and changing check.
fn checked(said: &Value) -> (i64, String, Vec<(String, String)>) {
    let chat = said["chat_id"].as_i64().or_else(|| said["chat_id"].as_str()?.parse().ok()).unwrap();
    let text = said["text"].as_str().unwrap();
    let length = text.encode_utf16().count();
    assert!((1..=4096).contains(&length), "{length}");
    for entity in said["entities"].as_array().unwrap_or(&Vec::new()) {
        let (offset, long) = (entity["offset"].as_u64().unwrap(), entity["length"].as_u64().unwrap());
        assert!(long > 0 && (offset + long) as usize <= length, "{entity}");
    }
    let mut buttons = Vec::new();
    for row in said["reply_markup"]["inline_keyboard"].as_array().unwrap_or(&Vec::new()) {
        for button in row.as_array().unwrap() {
            let (text, data) = (button["text"].as_str().unwrap(), button["callback_data"].as_str().unwrap());
            assert!(!text.is_empty() && (1..=64).contains(&data.len()), "{button}");
            buttons.push((text.to_owned(), data.to_owned()));
        }
    }
    (chat, text.to_owned(), buttons)
}

fn send(shared: &Shared, said: &Value) -> Response {
    let (chat, text, buttons) = checked(said);
    let mut world = shared.world();
    if let Some((status, said)) = world.refusals.pop() {
        return (status, axum::Json(said)).into_response();
    }
    if world.blocked.contains(&chat) {
        return no(StatusCode::FORBIDDEN, "Forbidden: bot was blocked by the user");
    }
    world.next += 1;
    let id = world.next;
    world.chats.entry(chat).or_default().push(Shown {
        id,
        text,
        buttons,
        silent: said["disable_notification"] == json!(true),
        reply_to: said["reply_parameters"]["message_id"].as_i64(),
        edited: false,
    });
    yes(json!({ "message_id": id, "date": 1, "chat": { "id": chat, "type": "private" } }))
}

fn edit(shared: &Shared, said: &Value) -> Response {
    let (chat, text, buttons) = checked(said);
    let number = said["message_id"].as_i64().unwrap();
    let mut world = shared.world();
    let shown = world.chats.get_mut(&chat).and_then(|all| all.iter_mut().find(|shown| shown.id == number));
    match shown {
        None => no(StatusCode::BAD_REQUEST, "Bad Request: message to edit not found"),
        Some(shown) if shown.text == text && shown.buttons == buttons => no(
            StatusCode::BAD_REQUEST,
            "Bad Request: message is not modified: specified new message content is the same",
        ),
        Some(shown) => {
            (shown.text, shown.buttons, shown.edited) = (text, buttons, true);
            yes(json!({ "message_id": number }))
        }
    }
}
