//! For whoever operates a server: is it up, can it take writes, and its figures.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use chips_protocol::problem::ProblemCode;

use crate::app::AppState;
use crate::http::{ApiError, Peer};
use crate::metrics::OPENMETRICS;

/// Headers that a proxy adds: a request with one of them comes from further away than its peer.
const FORWARDED: [&str; 5] = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/// `GET /healthz`: the process serves.
pub async fn health() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the store takes writes, and the server is not about to end.
pub async fn ready(State(state): State<AppState>) -> Result<&'static str, ApiError> {
    if state.stopping.is_cancelled() {
        return Err(ApiError::new(ProblemCode::Unavailable, "this server is about to end").retry_after(5));
    }
    state.store.ready().await?;
    Ok("ready\n")
}

/// `GET /metrics`: to loopback, or to all where the configuration says so.
pub async fn metrics(
    State(state): State<AppState>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let near = peer.is_some_and(|peer| peer.address.ip().to_canonical().is_loopback())
        && !FORWARDED.iter().any(|name| headers.contains_key(*name));
    if !near && !state.config.public_metrics {
        return Err(ApiError::new(
            ProblemCode::NotFound,
            "figures are served to this machine alone, unless the server is started with `--public-metrics`",
        ));
    }
    let stats = state.store.stats().await?;
    Ok(([(header::CONTENT_TYPE, OPENMETRICS)], state.metrics.text(&stats)).into_response())
}
