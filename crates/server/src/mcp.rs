//! `/mcp`: the MCP tools over Streamable HTTP, for whoever has a harness's token.

mod desk;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use chips_mcp::http::Refused;
use chips_protocol::problem::ProblemCode;

use crate::auth::Caller;
use crate::http::body::{self, BodyError};
use crate::http::origin::same_origin;
use crate::http::query::Params;
use crate::http::{ApiError, Peer};
use crate::state::AppState;
use desk::Hall;

/// `POST /mcp`: one JSON-RPC message.
pub async fn message(
    State(state): State<AppState>,
    caller: Caller,
    peer: Option<Extension<Peer>>,
    request: Request,
) -> Result<Response, BodyError> {
    let (parts, body) = request.into_parts();
    let (uri, headers) = (parts.uri.clone(), parts.headers.clone());
    let value = body::json(Request::from_parts(parts, body), state.config.limits.body).await?;
    Params::read(uri.query(), &[])?;
    may_speak(&state, &caller, &headers)?;
    let arrival = state.mcp.arrival(&headers, &value, caller.credential.secret(), now_s(&state)).map_err(refused)?;

    let mut message = axum::http::Request::new(value.to_string().into());
    *message.method_mut() = axum::http::Method::POST;
    *message.uri_mut() = uri;
    *message.headers_mut() = headers;
    // Whom it speaks for is known; nothing behind this needs the token.
    message.headers_mut().remove(header::AUTHORIZATION);
    let hall = Hall::new(state.clone(), caller, arrival.conversation.clone(), peer.map(|Extension(peer)| peer));
    Ok(state.mcp.answer(message, arrival, Arc::new(hall), state.stopping.clone()).await.map(Body::new))
}

/// `DELETE /mcp`: the session ends. What it asks stays open.
pub async fn end(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    Params::read(uri.query(), &[])?;
    may_speak(&state, &caller, &headers)?;
    state.mcp.end(&headers, caller.credential.secret(), now_s(&state)).map_err(refused)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Refuses a person, and the page of another site (the protocol asks for 403 where an `Origin` is a foreign one).
fn may_speak(state: &AppState, caller: &Caller, headers: &HeaderMap) -> Result<(), ApiError> {
    if !caller.is_harness() {
        return Err(ApiError::new(
            ProblemCode::WrongSender,
            "the MCP tools ask people, and only a harness asks: send a harness's token (`chips harness add` makes one)",
        ));
    }
    if headers.contains_key(header::ORIGIN) && !same_origin(headers, state.config.public_url.as_ref()) {
        return Err(ApiError::new(ProblemCode::WrongSender, "pages of other sites are not answered here"));
    }
    Ok(())
}

fn refused(refused: Refused) -> ApiError {
    match refused {
        Refused::NoSession => ApiError::new(
            ProblemCode::NotFound,
            "there is no such session for this token; open a new one with `initialize`",
        ),
        Refused::SessionNeeded => ApiError::bad_query("name the session in the header `Mcp-Session-Id`"),
        Refused::Batch => ApiError::new(ProblemCode::MalformedJson, "send one JSON-RPC message, not a list of them"),
    }
}

fn now_s(state: &AppState) -> u64 {
    u64::try_from(state.store.clock().now().ms() / 1000).unwrap_or_default()
}
