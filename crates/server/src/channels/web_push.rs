//! A browser's push service (RFC 8030): the message is sealed for that one browser ([`mod@seal`], RFC 8291), and signed so that
//! the service knows this server again ([`vapid`], RFC 8292).
//!
//! What is sent is what the service worker shows: the options of a notification, as the Notifications API has them. Everything
//! about one question has the question's id as its tag and a topic made from it, so that what comes later takes the place of what
//! was there, on the device and where it still waits for the device. A taking back is such a message too, silent, with the
//! outcome: browsers demand that each message shows something.

pub mod seal;
pub mod vapid;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chips_core::notify::{self, Kind, Outcome};
use chips_protocol::api::Tier;
use chips_protocol::{AskId, Timestamp};
use chips_store::clock::TimeSource;
use chips_store::{Endpoint, Notice};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::{Position, Url};

use super::Channel;
use super::message::{Message, shortened};
use super::tap::Taps;
use crate::outbound::{Outbound, Reply};
use seal::{PLAINTEXT_MOST, seal};
use vapid::Vapid;

/// Buttons that browsers have room for.
const BUTTONS: usize = 2;
/// Characters of a button.
const LABEL: usize = 40;
/// Characters of a title.
const TITLE: usize = 120;
/// How long, in seconds, a push service keeps a question that has no deadline: as long as its buttons are good.
const LONGEST_S: i64 = 7 * 24 * 3600;
/// How long it keeps an outcome.
const OUTCOME_S: i64 = 24 * 3600;
/// How long it keeps a test message.
const TRIAL_S: i64 = 60;
/// The tag of a test message.
const TRIAL: &str = "test";
/// How the refusal of a push service begins that does not take this server's key.
pub const KEY_MISMATCH: &str = "key mismatch";

/// What a browser gave when it subscribed: the secret of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Its public key, base64url.
    pub p256dh: String,
    /// The secret that it shares with this server, base64url.
    pub auth: String,
    /// The language of whoever reads it.
    pub lang: String,
}

impl Subscription {
    /// Whether something can be sealed with its keys.
    pub fn is_good(&self) -> bool {
        self.seal(b"").is_ok()
    }

    fn seal(&self, plaintext: &[u8]) -> Result<Vec<u8>, String> {
        // Browsers leave the padding out, other clients do not.
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        let (key, auth) = decode(&self.p256dh).zip(decode(&self.auth)).ok_or("the browser's keys are damaged")?;
        seal(&key, &auth, plaintext).map_err(|error| error.to_string())
    }
}

/// The channel.
pub struct WebPush {
    outbound: Outbound,
    taps: Taps,
    vapid: Vapid,
}

/// What the push service is told beside the sealed message.
struct Envelope {
    ttl: i64,
    urgency: &'static str,
    topic: Option<String>,
}

impl WebPush {
    /// Sends by `outbound`, as the one who has the key.
    pub fn new(outbound: Outbound, taps: Taps, vapid: Vapid) -> Self {
        Self { outbound, taps, vapid }
    }

    /// The options of the notification.
    async fn content(&self, notice: &Notice, message: &Message) -> Result<Value, String> {
        let (mut actions, mut taps) = (Vec::new(), Vec::new());
        for (option, label) in message.buttons(BUTTONS, LABEL).into_iter().enumerate() {
            actions.push(json!({ "action": option.to_string(), "title": label }));
            taps.push(self.taps.token(notice, option).await?);
        }
        let calls = !matches!(notice.kind, Kind::Closed | Kind::Answered);
        Ok(json!({
            "title": shortened(&message.title, TITLE),
            "body": message.body,
            "tag": notice.ask.ask_id,
            "actions": actions,
            "silent": !calls,
            // What replaces another makes no sound unless it says so; a second try of the same message need not.
            "renotify": matches!(notice.kind, Kind::Reminder | Kind::LastCall),
            "requireInteraction": calls && notice.ask.tier == Tier::TimeSensitive,
            "timestamp": notice.ask.ask.envelope.ts.ms(),
            "data": { "no": notice.no, "url": path(&message.url), "taps": taps },
        }))
    }

    async fn push(&self, endpoint: &Endpoint, content: Value, envelope: Envelope) -> Result<Outcome, String> {
        let url: Url = endpoint.address.parse().map_err(|_| "the address is no URL".to_owned())?;
        let subscription: Subscription =
            serde_json::from_str(&endpoint.secret).map_err(|_| "the browser's keys are damaged".to_owned())?;
        let body = subscription.seal(&fitted(content, PLAINTEXT_MOST))?;
        // Push services compare it with their own wall clock, so it is this machine's and not Chips' own.
        let authorization = match self.vapid.authorization(&url, TimeSource::System.wall()).await {
            Ok(authorization) => authorization,
            // The store is busy, and a later try has the key.
            Err(fault) => return Ok(Outcome::Failed(fault)),
        };
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
        let mut headers = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
            (header::CONTENT_ENCODING, HeaderValue::from_static("aes128gcm")),
            (header::AUTHORIZATION, value(&authorization)?),
            (HeaderName::from_static("ttl"), HeaderValue::from(envelope.ttl)),
            (HeaderName::from_static("urgency"), HeaderValue::from_static(envelope.urgency)),
        ]);
        if let Some(topic) = envelope.topic {
            headers.insert(HeaderName::from_static("topic"), value(&topic)?);
        }
        Ok(match self.outbound.post(&url, headers, body.into()).await {
            Ok(reply) => outcome(&reply),
            Err(error) => error.into(),
        })
    }
}

/// What a push service means by its status.
fn outcome(reply: &Reply) -> Outcome {
    match reply.status.as_u16() {
        401 | 403 => Outcome::Refused(format!("{KEY_MISMATCH}: {}", reply.said())),
        // Apple's word for a subscription that was made with another key.
        400 if reply.said().contains("VapidPkHashMismatch") => {
            Outcome::Refused(format!("{KEY_MISMATCH}: {}", reply.said()))
        }
        _ => reply.outcome(),
    }
}

/// The path of a page of this site: the browser knows the host by which it reaches it.
fn path(url: &str) -> String {
    Url::parse(url).map_or_else(|_| "/".to_owned(), |url| url[Position::BeforePath..].to_owned())
}

/// Under which name the push service replaces a message that still waits: 32 characters that say nothing to it.
fn topic(ask_id: AskId) -> String {
    URL_SAFE_NO_PAD
        .encode(&Sha256::new().chain_update(b"chips topic\n").chain_update(ask_id.to_bytes()).finalize()[..24])
}

/// How long, in seconds, the message is worth keeping.
fn ttl(notice: &Notice, expires: Option<Timestamp>, now: Timestamp) -> i64 {
    match (notice.kind, expires) {
        (Kind::Closed | Kind::Answered, _) => OUTCOME_S,
        (_, Some(expires)) => (expires.ms() - now.ms()).div_euclid(1000).clamp(0, LONGEST_S),
        (_, None) => LONGEST_S,
    }
}

fn urgency(notice: &Notice) -> &'static str {
    match notice.ask.tier {
        Tier::TimeSensitive if notice.kind != Kind::Closed => "high",
        Tier::TimeSensitive | Tier::Active => "normal",
        Tier::Passive => "low",
    }
}

/// The notification as JSON of at most so many bytes: its longest texts are cut by characters until it fits.
fn fitted(mut content: Value, most: usize) -> Vec<u8> {
    loop {
        let bytes = content.to_string().into_bytes();
        let Some(excess) = bytes.len().checked_sub(most).filter(|excess| *excess > 0) else { return bytes };
        let length = |name: &str| content[name].as_str().map_or(0, |text| text.chars().count());
        let name = if length("body") >= length("title") { "body" } else { "title" };
        let (text, characters) = (content[name].as_str().unwrap_or_default().to_owned(), length(name));
        // Each character is a byte at least; the ellipsis is three.
        let left = characters.saturating_sub(excess.div_ceil(4) + 1);
        if left < 2 {
            content["actions"] = json!([]);
            content["data"]["taps"] = json!([]);
        }
        content[name] = json!(if left < 2 { String::new() } else { shortened(&text, left) });
    }
}

impl Channel for WebPush {
    fn channel(&self) -> notify::Channel {
        notify::Channel::WebPush
    }

    fn send<'a>(&'a self, notice: &'a Notice, message: &'a Message) -> BoxFuture<'a, Outcome> {
        async move {
            let envelope = Envelope {
                ttl: ttl(notice, message.expires, self.vapid.now()),
                urgency: urgency(notice),
                topic: Some(topic(notice.ask.ask_id)),
            };
            let sent = match self.content(notice, message).await {
                Ok(content) => self.push(&notice.endpoint, content, envelope).await,
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
            "body": message.body,
            "tag": TRIAL,
            "renotify": true,
            "data": { "no": 0, "url": path(&message.url), "taps": [] },
        });
        let envelope = Envelope { ttl: TRIAL_S, urgency: "high", topic: None };
        async move { self.push(endpoint, content, envelope).await.unwrap_or_else(Outcome::Refused) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use axum::http::StatusCode;
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_push_service_answers_is_what_people_read() {
        let outcome = |status: u16, body: &'static str| {
            let (status, body) = (StatusCode::from_u16(status).unwrap(), Bytes::from_static(body.as_bytes()));
            outcome(&Reply { status, headers: HeaderMap::new(), body })
        };
        for status in [200, 201, 202, 204] {
            assert_eq!(outcome(status, ""), Outcome::Accepted);
        }
        for (status, word) in
            [(404, "gone"), (410, "gone"), (400, "refused"), (413, "refused"), (429, "failed"), (503, "failed")]
        {
            assert_eq!(outcome(status, "").as_str(), word, "{status}");
        }
        for (status, body) in
            [(401, ""), (403, "{\"reason\":\"BadJwtToken\"}"), (400, "{\"reason\":\"VapidPkHashMismatch\"}")]
        {
            let refused = outcome(status, body);
            assert_eq!(refused.as_str(), "refused");
            assert!(refused.detail().starts_with(KEY_MISMATCH), "{refused:?}");
        }
    }

    #[test]
    fn a_topic_is_of_the_question_alone_and_fits_the_standard() {
        let (one, other) = (topic(AskId::from_parts(1, 1)), topic(AskId::from_parts(1, 2)));
        assert_eq!((one.len(), &one), (32, &topic(AskId::from_parts(1, 1))));
        assert!(one != other && one.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{one}");
    }

    proptest! {
        #[test]
        fn whatever_is_said_fits_and_stays_json(
            title in "\\PC{0,2000}", body in "(?s).{0,6000}", label in "\\PC{0,40}", most in 600_usize..4000,
        ) {
            let content = json!({
                "title": title, "body": body, "tag": "t", "actions": [{ "action": "0", "title": label }],
                "data": { "no": 1, "url": "/", "taps": ["x".repeat(110)] },
            });
            let bytes = fitted(content.clone(), most);
            prop_assert!(bytes.len() <= most, "{} > {most}", bytes.len());
            let said: Value = serde_json::from_slice(&bytes).unwrap();
            if content.to_string().len() <= most {
                prop_assert_eq!(said, content);
            }
        }
    }
}
