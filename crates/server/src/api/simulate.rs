//! `/simulate`: how a test reads a simulation and moves its clock.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use crate::http::ApiError;
use crate::http::body::{self, BodyError};
use crate::http::problem::PROBLEM_JSON;
use crate::simulation::Simulation;
use crate::state::AppState;

/// The longest that a report is held back while a step is being played.
const REPORT_WITHIN: Duration = Duration::from_secs(15);
/// The farthest that the clock is moved at once, in seconds: as long as the longest time-out.
const FARTHEST_S: f64 = 31_536_000.0;

/// The routes that only a simulation has.
pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/simulate", get(report)).route("/simulate/clock", post(advance))
}

/// `GET /simulate`: what was played and what is left, once no step is being played.
async fn report(State(state): State<AppState>) -> Result<Json<Value>, ApiError> {
    let simulation = simulation(&state)?;
    // A step that is still being played when the time is up is told as it stands.
    simulation.idle(REPORT_WITHIN).await;
    let told = simulation.told();
    let mut reply = now(&state, simulation);
    reply.extend(told);
    Ok(Json(Value::Object(reply)))
}

/// `POST /simulate/clock` `{"advance_seconds": N}`: the reply comes once every deadline up to then has fired.
async fn advance(State(state): State<AppState>, request: Request) -> Result<Response, BodyError> {
    let body = body::json(request, state.config.limits.body).await?;
    let simulation = simulation(&state)?;
    let seconds = match body.as_object() {
        Some(fields) if fields.len() == 1 => fields.get("advance_seconds").and_then(Value::as_f64),
        _ => None,
    };
    let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0 && *seconds <= FARTHEST_S) else {
        let detail =
            r#"send {"advance_seconds": N} with a number over 0 and up to 31536000; the clock goes forward alone"#;
        let problem =
            json!({ "type": "about:blank", "title": "Unprocessable Content", "status": 422, "detail": detail });
        let head = [(header::CONTENT_TYPE, PROBLEM_JSON)];
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, head, problem.to_string()).into_response());
    };
    simulation.advance(Duration::from_secs_f64(seconds)).await;
    Ok(Json(Value::Object(now(&state, simulation))).into_response())
}

fn simulation(state: &AppState) -> Result<&Simulation, ApiError> {
    state.config.simulation.as_ref().ok_or_else(ApiError::not_found)
}

fn now(state: &AppState, simulation: &Simulation) -> Map<String, Value> {
    let mut now = Map::new();
    now.insert("now".to_owned(), json!(state.store.clock().now()));
    now.insert("ahead_seconds".to_owned(), json!(simulation.ahead().as_secs_f64()));
    now
}
