//! Answers that are tapped beside a message: a token in an address, good for one option of one question.
//!
//! The token is all that the tap proves, so it says everything: the question, the option, the person and the endpoint that the
//! message went to. Chips signs it and keeps nothing of it. It is worth nothing once the question is closed (the first answer
//! wins, as everywhere), once the endpoint is removed, once the person may not sign in any more, and when its time is over.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chips_core::{Refusal, Who};
use chips_protocol::api::{Ask, AskState};
use chips_protocol::{AskId, Draft, EventId, PersonId, Timestamp, WorkspaceId, validate};
use chips_store::{Identity, Notice, Store, Submitted, WriteError, secret};
use ring::hmac;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::message;
use crate::auth::session::Cookies;
use crate::preferences::Preferences;
use crate::state::AppState;
use crate::words::{Words, fill};

/// How long a tap is good for where its question has no deadline, and how long after a deadline it is kept as an answer that
/// came too late; in milliseconds.
const LONGEST_MS: i64 = 7 * 24 * 3600 * 1000;
/// Under which name the store keeps the key.
const SECRET: &str = "taps";
/// Bytes of the signature that a token carries.
const MAC: usize = 16;
const PURPOSE: &[u8] = b"chips tap 1\n";

/// What a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tap {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The ask; its first question is the one that is answered.
    pub ask_id: AskId,
    /// Who answers.
    pub person: PersonId,
    /// The endpoint that the message went to.
    pub endpoint_id: i64,
    /// After this it answers nothing: the deadline, where there is one.
    pub expires: Timestamp,
    /// Which option, from 0.
    pub option: u8,
}

/// Makes and reads the tokens. Cheap to clone.
#[derive(Clone)]
pub struct Taps {
    store: Store,
    key: Arc<OnceCell<hmac::Key>>,
}

impl Taps {
    /// With the key that this store keeps.
    pub fn new(store: Store) -> Self {
        Self { store, key: Arc::default() }
    }

    async fn key(&self) -> Result<&hmac::Key, WriteError> {
        let keep = async || {
            let candidate = secret::new_secret().into_bytes();
            let kept = self.store.keep_secret(SECRET, candidate).await?;
            Ok(hmac::Key::new(hmac::HMAC_SHA256, &kept))
        };
        self.key.get_or_try_init(keep).await
    }

    /// The token for an option of the notice's question, for whoever the notice goes to.
    ///
    /// # Errors
    /// The key can't be had, or there is nobody to answer.
    pub async fn token(&self, notice: &Notice, option: usize) -> Result<String, String> {
        let chips_protocol::ParticipantId::Person(person) = notice.owner.id else {
            return Err("only a person can answer".to_owned());
        };
        let tap = Tap {
            workspace_id: notice.workspace_id,
            ask_id: notice.ask.ask_id,
            person,
            endpoint_id: notice.endpoint.endpoint_id,
            expires: notice.ask.deadline.unwrap_or_else(|| self.store.clock().now().plus_ms(LONGEST_MS)),
            option: u8::try_from(option).map_err(|error| error.to_string())?,
        };
        let key = self.key().await.map_err(|error| error.to_string())?;
        Ok(tap.signed(key))
    }

    /// What a token stands for; nothing where Chips did not make it.
    ///
    /// # Errors
    /// The key can't be had.
    pub async fn read(&self, token: &str) -> Result<Option<Tap>, WriteError> {
        Ok(Tap::of(token, self.key().await?))
    }
}

impl Tap {
    const LEN: usize = 16 + 16 + 16 + 8 + 8 + 1;

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::LEN + MAC);
        for id in [self.workspace_id.to_bytes(), self.ask_id.to_bytes(), self.person.to_bytes()] {
            bytes.extend_from_slice(&id);
        }
        for number in [self.endpoint_id, self.expires.ms()] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.push(self.option);
        bytes
    }

    fn mac(bytes: &[u8], key: &hmac::Key) -> hmac::Tag {
        let mut context = hmac::Context::with_key(key);
        context.update(PURPOSE);
        context.update(bytes);
        context.sign()
    }

    fn signed(&self, key: &hmac::Key) -> String {
        let mut bytes = self.bytes();
        let mac = Self::mac(&bytes, key);
        bytes.extend_from_slice(&mac.as_ref()[..MAC]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn of(token: &str, key: &hmac::Key) -> Option<Self> {
        use subtle::ConstantTimeEq;
        let bytes = URL_SAFE_NO_PAD.decode(token).ok().filter(|bytes| bytes.len() == Self::LEN + MAC)?;
        let (said, mac) = bytes.split_at(Self::LEN);
        let good: bool = Self::mac(said, key).as_ref()[..MAC].ct_eq(mac).into();
        if !good {
            return None;
        }
        let (ids, numbers) = said.split_at(48);
        let id = |at: usize| ids.get(at..at + 16)?.try_into().ok();
        let number = |at: usize| numbers.get(at..at + 8)?.try_into().ok().map(i64::from_be_bytes);
        Some(Self {
            workspace_id: WorkspaceId::from_bytes(id(0)?),
            ask_id: AskId::from_bytes(id(16)?),
            person: PersonId::from_bytes(id(32)?),
            endpoint_id: number(0)?,
            expires: Timestamp::from_ms(number(8)?),
            option: *numbers.last()?,
        })
    }

    /// The answer as a client would write it. The same tap is the same write, however often it comes.
    fn draft(&self, ask: &Ask) -> Option<Draft> {
        let question = ask.ask.as_ask()?.questions.first()?;
        let option = question.options.get(usize::from(self.option))?;
        let hash = Sha256::digest(self.bytes());
        let random = <[u8; 16]>::try_from(&hash[..16]).ok()?;
        let ms = u64::try_from(ask.ask.envelope.ts.ms()).unwrap_or_default();
        let id = EventId::from_parts(ms, u128::from_be_bytes(random));
        let event = json!({
            "v": 1,
            "type": "question.answered",
            "id": id,
            "workspace_id": self.workspace_id,
            "run_id": ask.ask.envelope.run_id,
            "idempotency_key": format!("tap-{}", id.ulid()),
            "actor": { "kind": "person", "id": self.person },
            "ask_id": self.ask_id,
            "answers": [{ "question_id": question.question_id, "values": [option.value] }],
        });
        validate::draft(&event)
            .inspect_err(
                |faults| tracing::warn!(faults = faults.len(), ask_id = %self.ask_id, "a tapped answer does not fit"),
            )
            .ok()
    }
}

/// Where taps come in. Only as a POST: what fetches addresses to look at them must answer nothing.
pub fn router() -> Router<AppState> {
    Router::new().route("/a/{token}", post(answer))
}

/// `POST /a/TOKEN`: answers as the person to whom the message went. What became of it is told in a line of text, in the language
/// of whatever sends the tap.
async fn answer(State(state): State<AppState>, Path(token): Path<String>, headers: HeaderMap) -> Response {
    let (status, text) = settle(&state, &token, Preferences::of(&headers).words(&headers)).await;
    // Whoever answers beside the messages alone uses their browser's session all the same: it must not end as idle.
    if status == StatusCode::OK
        && let Err(fault) = Cookies::new(state.config.https()).signed(&state.store, &headers).await
    {
        tracing::warn!(%fault, "that a session is in use could not be noted");
    }
    let mut response = (status, text + "\n").into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // An app that is a web page taps from another origin. There is nothing here but what the token gives.
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}

async fn settle(state: &AppState, token: &str, words: &Words) -> (StatusCode, String) {
    let w = &words.message;
    let unavailable = |fault: &dyn std::fmt::Display| {
        tracing::warn!(%fault, "a tapped answer could not be written");
        (StatusCode::SERVICE_UNAVAILABLE, w.busy.to_owned())
    };
    let tap = match state.taps.read(token).await {
        Ok(Some(tap)) => tap,
        Ok(None) => return (StatusCode::NOT_FOUND, w.unknown.to_owned()),
        Err(fault) => return unavailable(&fault),
    };
    let page = format!("{}/asks/{}", state.config.base_url(), tap.ask_id);
    let person = match state.store.endpoint_of(tap.endpoint_id).await {
        Ok(found) => found.filter(|(_, person)| {
            person.sender.workspace_id == tap.workspace_id && person.sender.who == Who::Person(tap.person)
        }),
        Err(fault) => return unavailable(&fault),
    };
    let Some((_, person)) = person else {
        return (StatusCode::GONE, fill(w.ended, &[("page", &page)]));
    };
    crate::http::layers::speaks_for(&person);
    let ask = match find(state, &person, &tap).await {
        Ok(Some(ask)) => ask,
        Ok(None) => return (StatusCode::NOT_FOUND, w.hidden.to_owned()),
        Err(fault) => return unavailable(&fault),
    };
    // What is tapped after the deadline is too late like an answer on the page, and kept beside the ask like one.
    let is_deadline = ask.deadline == Some(tap.expires);
    let ends = if is_deadline { tap.expires.plus_ms(LONGEST_MS) } else { tap.expires };
    if state.store.clock().now() >= ends {
        return if ask.state == AskState::Open {
            (StatusCode::GONE, fill(w.too_old, &[("page", &page)]))
        } else {
            too_late(&ask, words)
        };
    }
    let Some(draft) = tap.draft(&ask) else {
        return (StatusCode::CONFLICT, fill(w.misfit, &[("page", &page)]));
    };
    let written = state.store.submit(person.sender, draft).await;
    // As it stands now: somebody may have been faster.
    let ask = match find(state, &person, &tap).await {
        Ok(now) => now.unwrap_or(ask),
        Err(fault) => return unavailable(&fault),
    };
    match written {
        Ok(Submitted::Appended(_) | Submitted::Replayed { .. }) => {
            (StatusCode::OK, fill(w.tapped, &[("what", &message::outcome(&ask, words))]))
        }
        Err(WriteError::Refused(refusal)) => match *refusal {
            Refusal::AlreadyClosed(_) => too_late(&ask, words),
            Refusal::NotFound(_) => (StatusCode::NOT_FOUND, w.hidden.to_owned()),
            other => {
                tracing::warn!(code = other.code().as_str(), "a tapped answer was refused");
                (StatusCode::CONFLICT, fill(w.refused, &[("page", &page)]))
            }
        },
        Err(fault) => unavailable(&fault),
    }
}

async fn find(state: &AppState, person: &Identity, tap: &Tap) -> Result<Option<Ask>, chips_store::StoreError> {
    state.store.ask(person, tap.ask_id).await
}

fn too_late(ask: &Ask, words: &Words) -> (StatusCode, String) {
    let (title, what) = (message::closed_title(ask, words), message::outcome(ask, words));
    (StatusCode::CONFLICT, fill(words.message.too_late, &[("title", &title), ("what", &what)]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn tap() -> Tap {
        Tap {
            workspace_id: WorkspaceId::from_parts(1, 1),
            ask_id: AskId::from_parts(2, 2),
            person: PersonId::from_parts(3, 3),
            endpoint_id: 4,
            expires: Timestamp::from_ms(1_790_000_000_000),
            option: 1,
        }
    }

    #[test]
    fn a_token_says_what_was_signed_and_nothing_else() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        let token = tap().signed(&key);
        assert_eq!(Tap::of(&token, &key), Some(tap()));
        assert!(token.len() < 128, "it stands in an address");
        let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        for at in 0..bytes.len() {
            let mut bent = bytes.clone();
            bent[at] ^= 1;
            assert_eq!(Tap::of(&URL_SAFE_NO_PAD.encode(bent), &key), None, "byte {at}");
        }
        for bad in ["", "AAAA", &token[1..], &format!("{token}AAAA"), &format!("{token}=")] {
            assert_eq!(Tap::of(bad, &key), None, "{bad}");
        }
        assert_eq!(Tap::of(&token, &hmac::Key::new(hmac::HMAC_SHA256, b"other")), None);
    }
}
