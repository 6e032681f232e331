//! The Bot API of Telegram (<https://core.telegram.org/bots/api>), as far as Chips speaks it.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use chips_core::notify::Outcome;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use url::Url;

use crate::config::{Secret, Telegram};
use crate::outbound::{Outbound, OutboundError, REPLY_LIMIT};

/// How long, in seconds, Telegram keeps a request for updates waiting: less than the longest that anything outbound takes.
const POLL_S: u32 = 15;
/// Updates that are taken at once.
const AT_ONCE: u32 = 20;

/// What Telegram answers to a call.
#[derive(Debug, Deserialize)]
struct Said {
    ok: bool,
    result: Option<Value>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Debug, Default, Deserialize)]
struct Parameters {
    retry_after: Option<u32>,
}

/// Why a call did nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Telegram says no, with a status and a word for it.
    No(u16, String),
    /// It asks to be left alone for so many seconds.
    Later(String, u32),
    /// What it answered is longer than what is read of it, or is no answer of the Bot API.
    Unread(String, Box<[u8]>),
    /// It was not reached.
    Unreached(OutboundError),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::No(_, said) | Self::Later(said, _) | Self::Unread(said, _) => f.write_str(said),
            Self::Unreached(error) => error.fmt(f),
        }
    }
}

impl Fault {
    /// What may stand in a log: nothing of what was said.
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::No(401 | 404, _) => "it knows no bot by telegram.token".to_owned(),
            Self::No(status, _) => format!("it answered {status}"),
            Self::Later(_, seconds) => format!("it asks to be left alone for {seconds} s"),
            Self::Unread(..) => "it answered something that is not of the Bot API".to_owned(),
            Self::Unreached(_) => "it could not be reached".to_owned(),
        }
    }

    /// What it means for a message that was to be sent.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            // The person has left the bot, or is no more.
            Self::No(403, said) => Outcome::Gone(said),
            Self::No(400, said) if said.contains("chat not found") => Outcome::Gone(said),
            // Another bot's token, until the operator has mended it.
            Self::No(401 | 404, said) => Outcome::Failed(said),
            Self::No(500.., said) | Self::Unread(said, _) => Outcome::Failed(said),
            Self::No(_, said) => Outcome::Refused(said),
            Self::Later(said, seconds) => Outcome::Later(said, seconds),
            Self::Unreached(error) => error.into(),
        }
    }

    /// A message that is to be changed is as it should be already.
    pub(crate) fn is_so_already(&self) -> bool {
        matches!(self, Self::No(400, said) if said.contains("message is not modified"))
    }

    /// A message that is to be changed is there no longer: its person has deleted it.
    pub(crate) fn is_deleted(&self) -> bool {
        let words = ["message to edit not found", "MESSAGE_ID_INVALID"];
        matches!(self, Self::No(400, said) if words.iter().any(|word| said.contains(word)))
    }
}

/// The operator's bot. Cheap to clone.
#[derive(Clone)]
pub struct Bot {
    outbound: Outbound,
    api: Url,
    token: Secret,
    name: Arc<OnceCell<String>>,
}

impl Bot {
    /// Speaks for the bot that the operator named.
    pub fn new(outbound: Outbound, telegram: &Telegram) -> Self {
        let Telegram { token, api } = telegram.clone();
        Self { outbound, api, token, name: Arc::default() }
    }

    /// Calls a method, and gives its result.
    pub(crate) async fn call(&self, method: &str, parameters: &Value) -> Result<Value, Fault> {
        let mut url = self.api.clone();
        url.set_path(&format!("/bot{}/{method}", self.token.reveal()));
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let body = parameters.to_string().into_bytes();
        let reply = self.outbound.post(&url, headers, body.into()).await.map_err(Fault::Unreached)?;
        match serde_json::from_slice(&reply.body) {
            Ok(Said { ok: true, result: Some(result), .. }) => Ok(result),
            Ok(Said { parameters: Parameters { retry_after: Some(seconds) }, description, .. }) => {
                Err(Fault::Later(description, seconds))
            }
            Ok(Said { description, .. }) => Err(Fault::No(reply.status.as_u16(), description)),
            Err(_) if reply.body.len() < REPLY_LIMIT => Err(Fault::Unread(reply.said(), Box::default())),
            Err(_) => Err(Fault::Unread("it answered more than is read".to_owned(), reply.body.as_ref().into())),
        }
    }

    /// What the bot is called, without the `@`. It is asked for once.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn name(&self) -> Result<&str, Fault> {
        let ask = async || {
            let me = self.call("getMe", &json!({})).await?;
            let name = me["username"].as_str().ok_or_else(|| Fault::No(200, "this is no bot".to_owned()))?;
            Ok(name.to_owned())
        };
        self.name.get_or_try_init(ask).await.map(String::as_str)
    }

    /// What has happened since the update before `offset`, as soon as there is something; perhaps nothing after a while. Telegram
    /// forgets what came before.
    pub(crate) async fn updates(&self, offset: i64) -> Result<Vec<Value>, Fault> {
        let ask = |limit: u32| {
            json!({
                "offset": offset,
                "limit": limit,
                "timeout": POLL_S,
                "allowed_updates": ["message", "callback_query"],
            })
        };
        match self.call("getUpdates", &ask(AT_ONCE)).await {
            // Together they are too long.
            Err(Fault::Unread(_, cut)) if !cut.is_empty() => match self.call("getUpdates", &ask(1)).await {
                // One alone is: nothing of what Chips sent is, so it is passed over.
                Err(Fault::Unread(said, cut)) => match first_number(&cut) {
                    Some(number) => Ok(vec![json!({ "update_id": number })]),
                    None => Err(Fault::Unread(said, cut)),
                },
                other => other.and_then(list),
            },
            other => other.and_then(list),
        }
    }
}

fn list(result: Value) -> Result<Vec<Value>, Fault> {
    match result {
        Value::Array(updates) => Ok(updates),
        _ => Err(Fault::No(200, "its updates are no list".to_owned())),
    }
}

/// The number of the first update of an answer that is cut off.
fn first_number(cut: &[u8]) -> Option<i64> {
    let text = String::from_utf8_lossy(cut);
    let (_, rest) = text.split_once("\"update_id\"")?;
    let rest = rest.trim_start_matches([':', ' ']);
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_telegram_says_is_told_apart() {
        let no = |status, said: &str| Fault::No(status, said.to_owned()).outcome();
        assert_eq!(no(403, "Forbidden: bot was blocked by the user").as_str(), "gone");
        assert_eq!(no(400, "Bad Request: chat not found").as_str(), "gone");
        assert_eq!(no(400, "Bad Request: message text is empty").as_str(), "refused");
        assert_eq!(no(401, "Unauthorized").as_str(), "failed");
        assert_eq!(no(502, "Bad Gateway").as_str(), "failed");
        assert_eq!(Fault::Later("Too Many Requests".to_owned(), 7).outcome().rest_ms(), 7_000);
        assert!(Fault::No(400, "Bad Request: message is not modified: …".to_owned()).is_so_already());
        assert!(!Fault::No(403, "message is not modified".to_owned()).is_so_already());
        assert!(Fault::No(400, "Bad Request: message to edit not found".to_owned()).is_deleted());
    }

    #[test]
    fn the_number_of_an_update_is_found_in_what_was_cut_off() {
        assert_eq!(first_number(br#"{"ok":true,"result":[{"update_id":7012,"message":{"te"#), Some(7012));
        assert_eq!(first_number(br#"{"ok":true,"result":[{"update_id": 7012}"#), Some(7012));
        for none in [&b""[..], b"{\"ok\":true,\"result\":[{\"update_id\":70", b"\"update_id\":x,", b"<html>"] {
            assert_eq!(first_number(none), None);
        }
    }
}
