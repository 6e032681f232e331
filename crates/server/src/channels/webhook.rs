//! Signed POSTs, as Standard Webhooks has them (<https://www.standardwebhooks.com>): of `question.answered` to an address
//! that a harness registered, and of questions to an address of a person's own.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chips_core::notify::{self, Outcome};
use chips_protocol::Timestamp;
use chips_store::clock::TimeSource;
use chips_store::{Endpoint, Notice};
use futures::FutureExt;
use futures::future::BoxFuture;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::Channel;
use super::message::Message;
use crate::outbound::Outbound;

/// What the receiver checks signatures with. While a key is changed there are several, and all sign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// `whsec_` and base64.
    pub key: String,
    /// The one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<OldKey>,
    /// Those from before that one that were promised to sign on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older: Vec<OldKey>,
}

/// A key that still signs beside the new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldKey {
    /// `whsec_` and base64.
    pub key: String,
    /// Until when, in milliseconds since 1970.
    pub until_ms: i64,
}

impl Keys {
    /// A single key.
    pub fn one(key: String) -> Self {
        Self { key, old: None, older: Vec::new() }
    }

    /// Puts a new key before the one that is there, which signs on until then. So does what was promised before, for as long as that was.
    pub fn rotate(self, key: String, now: Timestamp, until: Timestamp) -> Self {
        let promised = self.old.into_iter().chain(self.older).filter(|old| now.ms() < old.until_ms);
        Self { key, older: promised.collect(), old: Some(OldKey { key: self.key, until_ms: until.ms() }) }
    }
}

/// A channel of signed POSTs.
pub struct Webhook {
    channel: notify::Channel,
    outbound: Outbound,
}

/// A new key: `whsec_` and 24 random bytes in base64.
///
/// # Errors
/// The system gives no random bytes.
pub fn new_key() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{PREFIX}{}", STANDARD.encode(bytes)))
}

const PREFIX: &str = "whsec_";
/// The value of `webhook-signature`: for each key `v1,` and the base64 of the HMAC-SHA256 of id, time and body.
///
/// # Errors
/// A key is not one.
fn signatures(keys: &Keys, id: &str, now: Timestamp, body: &[u8]) -> Result<String, String> {
    let sign = |key: &String| {
        let secret = key.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
        let secret = secret.filter(|secret| !secret.is_empty()).ok_or("the endpoint's key is damaged")?;
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &secret));
        context.update(format!("{id}.{}.", seconds(now)).as_bytes());
        context.update(body);
        Ok(format!("v1,{}", STANDARD.encode(context.sign())))
    };
    let old = keys.old.iter().chain(&keys.older).filter(|old| now.ms() < old.until_ms).map(|old| &old.key);
    let signed = std::iter::once(&keys.key).chain(old).map(sign).collect::<Result<Vec<_>, String>>()?;
    Ok(signed.join(" "))
}

fn seconds(now: Timestamp) -> i64 {
    now.ms().div_euclid(1000)
}

impl Webhook {
    /// To an address of a person's own.
    pub fn personal(outbound: Outbound) -> Self {
        Self { channel: notify::Channel::Webhook, outbound }
    }

    /// To an address that a harness registered.
    pub fn of_harnesses(outbound: Outbound) -> Self {
        Self { channel: notify::Channel::HarnessWebhook, outbound }
    }

    async fn post(&self, endpoint: &Endpoint, (id, body): (String, Bytes)) -> Result<Outcome, String> {
        let url: Url = endpoint.address.parse().map_err(|_| "the address is no URL".to_owned())?;
        let keys: Keys =
            serde_json::from_str(&endpoint.secret).map_err(|_| "the endpoint's key is damaged".to_owned())?;
        // Receivers compare it with their own wall clock, so it is this machine's and not Chips' own.
        let now = TimeSource::System.wall();
        let signature = signatures(&keys, &id, now, &body)?;
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
        let headers = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (HeaderName::from_static("webhook-id"), value(&id)?),
            (HeaderName::from_static("webhook-timestamp"), HeaderValue::from(seconds(now))),
            (HeaderName::from_static("webhook-signature"), value(&signature)?),
        ]);
        Ok(match self.outbound.post(&url, headers, body).await {
            // Whoever has no such path now may be in the middle of a deployment; 410 alone says that it is for good.
            Ok(reply) => match reply.status.as_u16() {
                200..=299 => Outcome::Accepted,
                410 => Outcome::Gone(reply.said()),
                _ => reply.not_now(),
            },
            Err(error) => error.into(),
        })
    }
}

/// The id and the body: for a harness the stored `question.answered`, for a person what other channels show as text.
fn content(notice: &Notice, message: &Message) -> Result<(String, Bytes), String> {
    let told = |error: serde_json::Error| error.to_string();
    if notice.endpoint.channel == notify::Channel::HarnessWebhook {
        let event = notice.ask.answer.as_ref().ok_or("the ask has no answer")?;
        let body = serde_json::to_vec(event).map_err(told)?;
        return Ok((event.envelope.id.to_string(), body.into()));
    }
    let body = json!({
        "type": "question.notice",
        "kind": notice.kind.as_str(),
        "ask_id": notice.ask.ask_id,
        "state": notice.ask.state,
        "tier": notice.ask.tier,
        "title": message.title,
        "body": message.body,
        "url": message.url,
        "expires": message.expires,
        "ask": (!notice.private).then_some(&notice.ask),
    });
    Ok((format!("msg_{}", notice.no), serde_json::to_vec(&body).map_err(told)?.into()))
}

impl Channel for Webhook {
    fn channel(&self) -> notify::Channel {
        self.channel
    }

    fn send<'a>(&'a self, notice: &'a Notice, message: &'a Message) -> BoxFuture<'a, Outcome> {
        async move {
            let sent = match content(notice, message) {
                Ok(content) => self.post(&notice.endpoint, content).await,
                Err(fault) => Err(fault),
            };
            sent.unwrap_or_else(Outcome::Refused)
        }
        .boxed()
    }

    fn try_out<'a>(&'a self, endpoint: &'a Endpoint, message: &'a Message) -> BoxFuture<'a, Outcome> {
        let body = json!({
            "type": "question.notice",
            "kind": "test",
            "title": message.title,
            "body": message.body,
            "url": message.url,
        });
        // Whoever receives it takes the same id twice for the same message.
        let id = format!("test_{}", chips_store::secret::new_secret());
        async move { self.post(endpoint, (id, body.to_string().into())).await.unwrap_or_else(Outcome::Refused) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn signatures_are_those_of_the_standard() {
        // The example of the specification's own libraries.
        let keys = Keys::one("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let now = Timestamp::from_ms(1_614_265_330_999);
        let signed = signatures(&keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", now, br#"{"test": 2432232314}"#).unwrap();
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn while_a_key_is_changed_both_sign_and_a_damaged_one_is_told() {
        let (old, new) = (new_key().unwrap(), new_key().unwrap());
        let sign = |keys: &Keys, ms| signatures(keys, "evt_1", Timestamp::from_ms(ms), b"{}");
        let at = Timestamp::from_ms;
        let rotated = Keys::one(old.clone()).rotate(new.clone(), at(0), at(9_000));
        let (by_old, by_new) = (sign(&Keys::one(old), 8_999).unwrap(), sign(&Keys::one(new.clone()), 8_999).unwrap());
        assert_eq!(sign(&rotated, 8_999).unwrap(), format!("{by_new} {by_old}"));
        assert_eq!(sign(&rotated, 9_000), sign(&Keys::one(new.clone()), 9_000));
        // Changed once more meanwhile, each key signs on for as long as was said when it was changed.
        let newest = new_key().unwrap();
        let twice = rotated.clone().rotate(newest.clone(), at(5_000), at(12_000));
        let by_newest = |ms| sign(&Keys::one(newest.clone()), ms).unwrap();
        assert_eq!(sign(&twice, 8_999).unwrap(), format!("{} {by_new} {by_old}", by_newest(8_999)));
        let without = sign(&Keys::one(new.clone()), 11_999).unwrap();
        assert_eq!(sign(&twice, 11_999).unwrap(), format!("{} {without}", by_newest(11_999)));
        assert_eq!(sign(&twice, 12_000).unwrap(), by_newest(12_000));
        let late = rotated.clone().rotate(newest.clone(), at(9_000), at(9_000));
        assert_eq!((late.older.len(), sign(&late, 9_000).unwrap()), (0, by_newest(9_000)));
        let stored = serde_json::to_string(&rotated).unwrap();
        assert_eq!(serde_json::from_str::<Keys>(&stored).unwrap(), rotated);
        for damaged in ["", "whsec_", "whsec_!", "secret"] {
            assert!(sign(&Keys::one(damaged.to_owned()), 0).is_err(), "{damaged}");
        }
    }
}
