//! For whoever operates a server: is it up, can it take writes, and its figures.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use chips_protocol::problem::ProblemCode;
use chips_store::WriteError;

use crate::http::{ApiError, Peer};
use crate::metrics::OPENMETRICS;
use crate::state::AppState;

/// Headers that a proxy adds: a request with one of them comes from further away than its peer.
const FORWARDED: [&str; 5] = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/// How long the write may take that `/readyz` tries: longer than the store itself waits for a lock.
const READY_WITHIN: Duration = Duration::from_secs(8);

/// `GET /healthz`: the process serves.
pub async fn health() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the store takes writes, and the server is not about to end. It writes to find out, so it is back by itself once
/// writing goes on.
pub async fn ready(State(state): State<AppState>) -> Result<&'static str, ApiError> {
    if state.stopping.is_cancelled() {
        return Err(ApiError::new(ProblemCode::Unavailable, "this server is about to end").retry_after(5));
    }
    let because = |reason: &str, retry_after_s: u64| {
        let detail = format!("the store takes no writes: {reason}; `chips doctor` on its machine says how to mend it");
        ApiError::new(ProblemCode::Unavailable, detail).retry_after(retry_after_s)
    };
    match tokio::time::timeout(READY_WITHIN, state.store.ready()).await {
        Ok(Ok(())) => Ok("ready\n"),
        Ok(Err(WriteError::Unavailable { reason, retry_after_s })) => Err(because(&reason, retry_after_s)),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(because(
            &format!("one takes longer than {} s, so the disk hangs or is overloaded", READY_WITHIN.as_secs()),
            5,
        )),
    }
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
