//! The API under `/v1`, and what is public beside it: one file per resource. Handlers parse, call the store and answer;
//! there are no rules here.

pub mod asks;
mod describe;
pub mod docs;
pub mod events;
mod heard;
pub mod me;
pub mod openapi;
pub mod operate;
pub mod runs;
pub(crate) mod simulate;

use std::str::FromStr;

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::routing::{MethodRouter, get, post};

use crate::http::ApiError;
use crate::mcp;
use crate::state::AppState;
pub(crate) use heard::Heard;

/// Every path with its methods: what the router is built from, and what `openapi.json` is held against.
pub fn routes() -> Vec<(&'static str, MethodRouter<AppState>)> {
    vec![
        ("/v1/events", get(events::page).post(events::append)),
        ("/v1/events/stream", get(events::stream)),
        ("/v1/asks", get(asks::list)),
        ("/v1/asks/{ask_id}", get(asks::one)),
        ("/v1/asks/{ask_id}/ack", post(asks::acknowledge)),
        ("/v1/runs", post(runs::open)),
        ("/v1/runs/{run_id}", get(runs::one)),
        ("/v1/runs/{run_id}/end", post(runs::end)),
        ("/v1/me", get(me::me)),
        ("/mcp", post(mcp::message).delete(mcp::end)),
        ("/schemas/{file}", get(docs::schema)),
        ("/problems/{code}", get(docs::problem)),
        ("/openapi.json", get(docs::openapi)),
        ("/healthz", get(operate::health)),
        ("/readyz", get(operate::ready)),
        ("/metrics", get(operate::metrics)),
    ]
}

/// All of [`routes`].
pub fn router() -> Router<AppState> {
    routes().into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods))
}

/// The identifier in a path; one that is none names nothing.
fn identified<T: FromStr>(segment: Result<Path<String>, PathRejection>) -> Result<T, ApiError> {
    segment.ok().and_then(|Path(text)| text.parse().ok()).ok_or_else(ApiError::not_found)
}
