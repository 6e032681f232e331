//! What a visible page tells of itself: `POST /present`, that it was touched; `POST /seen`, which questions it shows.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chips_core::Who;
use chips_protocol::api::AskState;
use chips_protocol::{AskId, PersonId};

use super::form::Fields;
use super::page::{Person, Visit};
use crate::state::AppState;

/// Questions that one message may name: more than fit on any screen.
const MOST: usize = 100;

/// `POST /present`: 204. Nobody reads the answer; what is wrong is told by its status alone.
pub(crate) async fn touched(State(state): State<AppState>, request: Request) -> Response {
    match told(&state, request).await {
        Ok((person, _, fields)) => match fields.end() {
            Ok(()) => {
                state.presence.touched(person.signed.session.session_id);
                StatusCode::NO_CONTENT.into_response()
            }
            Err(_) => StatusCode::UNPROCESSABLE_ENTITY.into_response(),
        },
        Err(response) => response,
    }
}

/// `POST /seen`, with an `ask` for each question: 204. What is not open any more, or may not be seen, is passed over.
pub(crate) async fn seen(State(state): State<AppState>, request: Request) -> Response {
    let (person, id, mut fields) = match told(&state, request).await {
        Ok(told) => told,
        Err(response) => return response,
    };
    let asks: Result<Vec<AskId>, _> = fields.take_all("ask").iter().map(|ask| ask.parse()).collect();
    let (Ok(asks), Ok(())) = (asks, fields.end()) else { return StatusCode::UNPROCESSABLE_ENTITY.into_response() };
    if asks.len() > MOST {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    }
    for ask_id in asks {
        match state.store.ask(person.identity(), ask_id).await {
            Ok(Some(ask)) if ask.state == AskState::Open => {
                state.store.mark_seen(person.identity().sender.workspace_id, ask_id, id);
            }
            Ok(_) => {}
            Err(fault) => return person.visit.unreadable(&fault),
        }
    }
    StatusCode::NO_CONTENT.into_response()
}

/// Who tells something, and what stands beside the form's token.
async fn told(state: &AppState, request: Request) -> Result<(Person, PersonId, Fields), Response> {
    let headers = request.headers().clone();
    let visit = Visit::of(state, &headers);
    let mut fields = Fields::read(request, &visit).await?;
    let person = match Person::of(state, &headers).await {
        Ok(Some(person)) => person,
        Ok(None) => return Err(StatusCode::UNAUTHORIZED.into_response()),
        Err(fault) => return Err(visit.unreadable(&fault)),
    };
    let Ok(token) = fields.take("token") else { return Err(StatusCode::UNPROCESSABLE_ENTITY.into_response()) };
    let Who::Person(id) = person.identity().sender.who else { return Err(StatusCode::FORBIDDEN.into_response()) };
    // A page from before another sign-in says nothing of whoever is signed in now.
    if person.signed.holds(&token) { Ok((person, id, fields)) } else { Err(StatusCode::FORBIDDEN.into_response()) }
}
