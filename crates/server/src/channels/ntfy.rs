//! A topic on an ntfy server (<https://docs.ntfy.sh/publish/>), by its JSON API.
//!
//! Every message about a question has the question's id as its sequence id, so that what comes later replaces what is shown
//! (ntfy 2.16 and newer; older servers show one below the other). Taking back is such a message, silent, with the outcome.

use axum::http::{HeaderMap, HeaderValue, header};
use chips_core::notify::{self, Kind, Outcome};
use chips_protocol::api::{AskState, Tier};
use chips_store::{Endpoint, Notice};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::{Position, Url};

use super::Channel;
use super::message::Message;
use super::tap::Taps;
use crate::outbound::Outbound;

/// Buttons that ntfy has room for.
const BUTTONS: usize = 3;
/// Characters of a button.
const LABEL: usize = 40;
/// The longest name of a topic.
const TOPIC: usize = 64;

/// How a topic is reached: the secret of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// An access token, where the server asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// Why a topic has no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misnamed {
    /// The server is no URL of a host alone.
    Server,
    /// The topic has other characters than ntfy allows, or too many.
    Topic,
}

/// The address of a topic, `https://ntfy.sh/TOPIC`.
///
/// # Errors
/// See [`Misnamed`].
pub fn address(server: &str, topic: &str) -> Result<Url, Misnamed> {
    let server = Outbound::typed(server).ok_or(Misnamed::Server)?;
    let alone = server.path() == "/" && server.query().is_none() && server.fragment().is_none();
    if !alone {
        return Err(Misnamed::Server);
    }
    let plain = topic.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if topic.is_empty() || topic.len() > TOPIC || !plain {
        return Err(Misnamed::Topic);
    }
    server.join(topic).map_err(|_| Misnamed::Topic)
}

/// The server's root, where JSON is posted to, and the topic.
fn taken_apart(address: &str) -> Option<(Url, String)> {
    let url: Url = address.parse().ok()?;
    let topic = url.path().strip_prefix('/')?.to_owned();
    let root = format!("{}/", &url[..Position::BeforePath]).parse().ok()?;
    Some((root, topic))
}

/// The channel.
pub struct Ntfy {
    outbound: Outbound,
    taps: Taps,
    base_url: String,
}

impl Ntfy {
    /// Sends by `outbound`; what is tapped comes back to `base_url`.
    pub fn new(outbound: Outbound, taps: Taps, base_url: String) -> Self {
        Self { outbound, taps, base_url }
    }

    async fn content(&self, notice: &Notice, message: &Message) -> Result<Value, String> {
        let mut actions = Vec::new();
        for (option, label) in message.buttons(BUTTONS, LABEL).into_iter().enumerate() {
            let token = self.taps.token(notice, option).await?;
            actions.push(json!({
                "action": "http",
                "label": label,
                "url": format!("{}/a/{token}", self.base_url),
                "method": "POST",
                "clear": true,
            }));
        }
        Ok(json!({
            "title": message.title,
            "message": message.body,
            "priority": priority(notice),
            "tags": [tag(notice)],
            "click": message.url,
            "actions": actions,
            "sequence_id": notice.ask.ask_id,
        }))
    }

    async fn publish(&self, endpoint: &Endpoint, mut content: Value) -> Result<Outcome, String> {
        let (root, topic) = taken_apart(&endpoint.address).ok_or("the address is no topic's")?;
        let access: Access =
            serde_json::from_str(&endpoint.secret).map_err(|_| "the topic's token is damaged".to_owned())?;
        content["topic"] = json!(topic);
        let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        if let Some(token) = access.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| "the topic's token has characters that can't be sent".to_owned())?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let body = serde_json::to_vec(&content).map_err(|error| error.to_string())?;
        Ok(match self.outbound.post(&root, headers, body.into()).await {
            // Topics come into being by being named, so one that is not found is no topic that has gone: it is no ntfy.
            Ok(reply) if reply.status.as_u16() == 404 => Outcome::Refused(reply.said()),
            Ok(reply) => reply.outcome(),
            Err(error) => error.into(),
        })
    }
}

/// From 1, which makes no sound, to 5.
fn priority(notice: &Notice) -> u8 {
    match (notice.kind, notice.ask.tier) {
        (Kind::Closed | Kind::Answered, _) => 1,
        (_, Tier::TimeSensitive) => 4,
        (_, Tier::Active) => 3,
        (_, Tier::Passive) => 2,
    }
}

/// A short name of an emoji, which ntfy shows before the title.
fn tag(notice: &Notice) -> &'static str {
    match notice.ask.state {
        AskState::Open if notice.kind == Kind::LastCall => "hourglass_flowing_sand",
        AskState::Open => "question",
        AskState::Answered | AskState::Settled => "white_check_mark",
        AskState::TimedOut => "hourglass",
        AskState::Withdrawn => "heavy_multiplication_x",
    }
}

impl Channel for Ntfy {
    fn channel(&self) -> notify::Channel {
        notify::Channel::Ntfy
    }

    fn send<'a>(&'a self, notice: &'a Notice, message: &'a Message) -> BoxFuture<'a, Outcome> {
        async move {
            let sent = match self.content(notice, message).await {
                Ok(content) => self.publish(&notice.endpoint, content).await,
                // The buttons' key could not be had: the store is busy, and a later try has it.
                Err(fault) => Ok(Outcome::Failed(fault)),
            };
            sent.unwrap_or_else(Outcome::Refused)
        }
        .boxed()
    }

    fn try_out<'a>(&'a self, endpoint: &'a Endpoint, message: &'a Message) -> BoxFuture<'a, Outcome> {
        let content = json!({
            "title": message.title,
            "message": message.body,
            "priority": 3,
            "tags": ["wave"],
            "click": message.url,
        });
        async move { self.publish(endpoint, content).await.unwrap_or_else(Outcome::Refused) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_topic_has_an_address_on_a_server_and_is_found_again() {
        for (server, root) in [
            ("https://ntfy.sh", "https://ntfy.sh/"),
            ("https://ntfy.sh/", "https://ntfy.sh/"),
            ("http://127.0.0.1:2586", "http://127.0.0.1:2586/"),
        ] {
            let address = address(server, "chips-Kim_7f3k").unwrap();
            let (found, topic) = taken_apart(address.as_str()).unwrap();
            assert_eq!((found.as_str(), topic.as_str()), (root, "chips-Kim_7f3k"));
        }
        for server in ["", "ntfy.sh", "https://", "https://ntfy.sh/topic", "https://ntfy.sh/?a", "https://ntfy.sh/#a"] {
            assert_eq!(address(server, "a"), Err(Misnamed::Server), "{server:?}");
        }
        for topic in ["", "a b", "a/b", "..", "über", &"a".repeat(65)] {
            assert_eq!(address("https://ntfy.sh", topic), Err(Misnamed::Topic), "{topic:?}");
        }
    }
}
