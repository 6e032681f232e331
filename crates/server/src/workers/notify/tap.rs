//! Answers that are tapped beside a message: a token in an address, good for one option of one question.
//!
//! The token is all that the tap proves, so it says everything: the question, the option, the person and the endpoint that the
//! message went to. Chips signs it and keeps nothing of it. It is worth nothing once the question is closed (the first answer
//! wins, as everywhere), once the endpoint is removed, once the person may not sign in any more, and when its time is over.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use chips_core::{Refusal, Who};
use chips_protocol::api::{Ask, AskState};
use chips_protocol::{AskId, Draft, EventId, PersonId, Timestamp, WorkspaceId, validate};
use chips_store::{Identity, Notice, Store, Submitted, WriteError};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::message;
use super::seal::Seal;
use crate::auth::session::Cookies;
use crate::preferences::Preferences;
use crate::state::AppState;
use crate::words::{Words, fill};

/// How long a tap is good for where its question has no deadline, and how long after a deadline it is kept as an answer that
/// came too late; in milliseconds.
const LONGEST_MS: i64 = 7 * 24 * 3600 * 1000;
/// Where a tap is good for as long as its question is open.
pub(super) const LATEST: Timestamp = Timestamp::from_ms(i64::MAX);

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
pub struct Taps(Seal);

impl Taps {
    /// With the key that this store keeps.
    pub fn new(store: Store) -> Self {
        Self(Seal::new(store, "taps", b"chips tap 1\n"))
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
            expires: notice.ask.deadline.unwrap_or_else(|| self.0.store().clock().now().plus_ms(LONGEST_MS)),
            option: u8::try_from(option).map_err(|error| error.to_string())?,
        };
        self.0.seal(&tap.bytes()).await.map_err(|error| error.to_string())
    }

    /// What a token stands for; nothing where Chips did not make it.
    ///
    /// # Errors
    /// The key can't be had.
    pub async fn read(&self, token: &str) -> Result<Option<Tap>, WriteError> {
        Ok(self.0.open(token).await?.as_deref().and_then(Tap::of))
    }
}

impl Tap {
    const LEN: usize = 16 + 16 + 16 + 8 + 8 + 1;

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::LEN);
        for id in [self.workspace_id.to_bytes(), self.ask_id.to_bytes(), self.person.to_bytes()] {
            bytes.extend_from_slice(&id);
        }
        for number in [self.endpoint_id, self.expires.ms()] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.push(self.option);
        bytes
    }

    fn of(said: &[u8]) -> Option<Self> {
        if said.len() != Self::LEN {
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
    let tap = match state.taps.read(token).await {
        Ok(Some(tap)) => tap,
        Ok(None) => return (StatusCode::NOT_FOUND, w.unknown.to_owned()),
        Err(fault) => return unavailable(&fault, words),
    };
    let person = match state.store.endpoint_of(tap.endpoint_id).await {
        Ok(found) => found.filter(|(_, person)| {
            person.sender.workspace_id == tap.workspace_id && person.sender.who == Who::Person(tap.person)
        }),
        Err(fault) => return unavailable(&fault, words),
    };
    let Some((_, person)) = person else {
        return (StatusCode::GONE, fill(w.ended, &[("page", &page_of(state, tap.ask_id))]));
    };
    crate::http::layers::speaks_for(&person);
    answer_as(state, &person, &tap, words).await
}

/// The page of an ask.
pub(super) fn page_of(state: &AppState, ask_id: AskId) -> String {
    format!("{}/asks/{ask_id}", state.config.base_url())
}

/// What is said where the store can't do its part.
pub(super) fn unavailable(fault: &dyn std::fmt::Display, words: &Words) -> (StatusCode, String) {
    tracing::warn!(%fault, "a tapped answer could not be written");
    (StatusCode::SERVICE_UNAVAILABLE, words.message.busy.to_owned())
}

/// Answers as the person who tapped, whom the caller knows by the tap's endpoint, and tells what became of it.
pub(super) async fn answer_as(state: &AppState, person: &Identity, tap: &Tap, words: &Words) -> (StatusCode, String) {
    let w = &words.message;
    let page = page_of(state, tap.ask_id);
    let ask = match find(state, person, tap).await {
        Ok(Some(ask)) => ask,
        Ok(None) => return (StatusCode::NOT_FOUND, w.hidden.to_owned()),
        Err(fault) => return unavailable(&fault, words),
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
    let ask = match find(state, person, tap).await {
        Ok(now) => now.unwrap_or(ask),
        Err(fault) => return unavailable(&fault, words),
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
        Err(fault) => unavailable(&fault, words),
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
    fn a_token_says_all_that_a_tap_stands_for() {
        let bytes = tap().bytes();
        assert_eq!((bytes.len(), Tap::of(&bytes)), (Tap::LEN, Some(tap())));
        assert_eq!((Tap::of(&bytes[1..]), Tap::of(&[bytes.as_slice(), b"0"].concat())), (None, None));
    }
}
