//! `POST /present`: a page that is in sight says that it was touched.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chips_core::Who;

use super::form::Fields;
use super::page::{Person, Visit};
use crate::app::AppState;

/// `POST /present`: 204. Nobody reads the answer; what is wrong is told by its status alone.
pub(crate) async fn touched(State(state): State<AppState>, request: Request) -> Response {
    let headers = request.headers().clone();
    let visit = Visit::of(&state, &headers);
    let mut fields = match Fields::read(request, &visit).await {
        Ok(fields) => fields,
        Err(response) => return response,
    };
    let person = match Person::of(&state, &headers).await {
        Ok(Some(person)) => person,
        Ok(None) => return StatusCode::UNAUTHORIZED.into_response(),
        Err(fault) => return visit.unreadable(&fault),
    };
    // A page from before another sign-in says nothing of whoever is signed in now.
    let (Ok(token), Ok(())) = (fields.take("token"), fields.end()) else {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    };
    let Who::Person(id) = person.identity().sender.who else { return StatusCode::FORBIDDEN.into_response() };
    if !person.signed.holds(&token) {
        return StatusCode::FORBIDDEN.into_response();
    }
    state.presence.touched(id);
    StatusCode::NO_CONTENT.into_response()
}
