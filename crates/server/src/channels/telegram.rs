//! A private chat with the operator's bot on Telegram.
//!
//! A question is a message with its options as buttons; what becomes of it is written into that very message. What is
//! tapped or typed comes back by the bot (`workers/telegram.rs`), so that nobody need reach this server.

pub mod bot;
pub mod link;

use chips_core::notify::{self, Kind, Outcome};
use chips_protocol::AskId;
use chips_store::{Endpoint, Notice};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::Channel;
use super::message::Message;
use bot::{Bot, Fault};

/// Buttons that a message has room for: as many as a question has options.
const BUTTONS: usize = 4;
/// Characters of a button.
const LABEL: usize = 60;

/// What a button stands for: an option, from 0, of an ask's first question. It says nothing of who taps it: Telegram does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Button {
    pub ask_id: AskId,
    pub endpoint_id: i64,
    pub option: u8,
}

impl Button {
    /// As Telegram carries it, in 64 bytes at most.
    fn data(&self) -> String {
        format!("{}.{}.{}", self.ask_id, self.endpoint_id, self.option)
    }

    pub fn of(data: &str) -> Option<Self> {
        let mut parts = data.splitn(3, '.');
        Some(Self {
            ask_id: parts.next()?.parse().ok()?,
            endpoint_id: parts.next()?.parse().ok()?,
            option: parts.next()?.parse().ok()?,
        })
    }
}

/// The channel.
pub struct Telegram {
    bot: Bot,
}

impl Telegram {
    /// Sends as this bot.
    pub fn new(bot: Bot) -> Self {
        Self { bot }
    }

    async fn post(&self, chat: &str, message: &Message, more: Value) -> Outcome {
        let mut parameters = said(chat, message);
        merge(&mut parameters, more);
        match self.bot.call("sendMessage", &parameters).await {
            Ok(sent) => match sent["message_id"].as_i64() {
                Some(number) => Outcome::AcceptedAs(number.to_string()),
                None => Outcome::Accepted,
            },
            Err(fault) => fault.outcome(),
        }
    }

    /// Writes the outcome into what was shown of the question.
    async fn change(&self, notice: &Notice, message: &Message) -> Outcome {
        let mut deleted = None;
        for earlier in &notice.earlier {
            let Ok(number) = earlier.parse::<i64>() else { continue };
            let mut parameters = said(&notice.endpoint.address, message);
            merge(&mut parameters, json!({ "message_id": number }));
            match self.bot.call("editMessageText", &parameters).await {
                Ok(_) => {}
                Err(fault) if fault.is_so_already() => {}
                // The others are changed all the same.
                Err(fault) if fault.is_deleted() => deleted = Some(fault),
                Err(fault) => return fault.outcome(),
            }
        }
        deleted.map_or(Outcome::Accepted, Fault::outcome)
    }
}

/// The message as Telegram takes it: the title in bold, the rest below. It is no markup, so nothing in it can be mistaken for any.
fn said(chat: &str, message: &Message) -> Value {
    let Message { title, body, url, .. } = message;
    json!({
        "chat_id": chat,
        "text": format!("{title}\n{body}\n\n{url}"),
        // Telegram counts in UTF-16.
        "entities": [{ "type": "bold", "offset": 0, "length": title.encode_utf16().count() }],
        "link_preview_options": { "is_disabled": true },
    })
}

fn merge(parameters: &mut Value, more: Value) {
    if let (Some(parameters), Value::Object(more)) = (parameters.as_object_mut(), more) {
        parameters.extend(more);
    }
}

fn buttons(notice: &Notice, message: &Message) -> Value {
    let (ask_id, endpoint_id) = (notice.ask.ask_id, notice.endpoint.endpoint_id);
    let rows = (0_u8..).zip(message.buttons(BUTTONS, LABEL)).map(
        |(option, label)| json!([{ "text": label, "callback_data": Button { ask_id, endpoint_id, option }.data() }]),
    );
    json!({ "inline_keyboard": rows.collect::<Vec<_>>() })
}

impl Channel for Telegram {
    fn channel(&self) -> notify::Channel {
        notify::Channel::Telegram
    }

    fn send<'a>(&'a self, notice: &'a Notice, message: &'a Message) -> BoxFuture<'a, Outcome> {
        async move {
            let over = matches!(notice.kind, Kind::Closed | Kind::Answered);
            if over && !notice.earlier.is_empty() {
                return self.change(notice, message).await;
            }
            let mut more = json!({ "disable_notification": over, "reply_markup": buttons(notice, message) });
            if let Some(first) = notice.earlier.first().and_then(|earlier| earlier.parse::<i64>().ok()) {
                more["reply_parameters"] = json!({ "message_id": first, "allow_sending_without_reply": true });
            }
            self.post(&notice.endpoint.address, message, more).await
        }
        .boxed()
    }

    fn try_out<'a>(&'a self, endpoint: &'a Endpoint, message: &'a Message) -> BoxFuture<'a, Outcome> {
        self.post(&endpoint.address, message, json!({})).boxed()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn n17_what_a_button_carries_stays_within_64_bytes_whatever_its_label() {
        for (endpoint_id, option) in [(1, 0), (i64::MAX, u8::MAX), (i64::MIN, 3)] {
            let button = Button { ask_id: AskId::from_parts(u64::MAX >> 16, u128::MAX >> 48), endpoint_id, option };
            assert!(button.data().len() <= 64, "{}", button.data());
            assert_eq!(Button::of(&button.data()), Some(button));
        }
        for bad in ["", "x", "a.b.c", "evt_01J0000000000000000000000.1.0", "1.1.1.1"] {
            assert_eq!(Button::of(bad), None, "{bad}");
        }
    }
}
