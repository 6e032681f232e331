//! Answers that are tapped beside a message, wherever that stands.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use chips_core::{Refusal, Who};
use chips_protocol::AskId;
use chips_protocol::api::{Ask, AskState};
use chips_store::{Identity, Submitted, WriteError};

use crate::auth::session::Cookies;
use crate::channels::message::{closed_title, outcome};
use crate::channels::tap::{LONGEST_MS, Tap};
use crate::preferences::Preferences;
use crate::state::AppState;
use crate::words::{Words, fill};

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
pub(crate) fn page_of(state: &AppState, ask_id: AskId) -> String {
    format!("{}/asks/{ask_id}", state.config.base_url())
}

/// What is said where the store can't do its part.
pub(crate) fn unavailable(fault: &dyn std::fmt::Display, words: &Words) -> (StatusCode, String) {
    tracing::warn!(%fault, "a tapped answer could not be written");
    (StatusCode::SERVICE_UNAVAILABLE, words.message.busy.to_owned())
}

/// Answers as the person who tapped, whom the caller knows by the tap's endpoint, and tells what became of it.
pub(crate) async fn answer_as(state: &AppState, person: &Identity, tap: &Tap, words: &Words) -> (StatusCode, String) {
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
            (StatusCode::OK, fill(w.tapped, &[("what", &outcome(&ask, words))]))
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
    let (title, what) = (closed_title(ask, words), outcome(ask, words));
    (StatusCode::CONFLICT, fill(words.message.too_late, &[("title", &title), ("what", &what)]))
}
