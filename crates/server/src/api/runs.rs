//! `/v1/runs`: opening a run, looking at it, ending it.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode, Uri};
use chips_core::{Refusal, Who};
use chips_protocol::api::Run;
use chips_protocol::problem::ProblemCode;
use chips_protocol::{RunId, validate};
use chips_store::LeaseOf;

use super::{Heard, identified};
use crate::auth::Caller;
use crate::http::ApiError;
use crate::http::body::{self, BodyError};
use crate::http::query::Params;
use crate::state::AppState;

/// `POST /v1/runs`: 201 where it was opened now, 200 where the same harness opened it before.
pub async fn open(
    State(state): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<Run>), BodyError> {
    let uri = request.uri().clone();
    let value = body::json(request, state.config.limits.body).await?;
    Params::read(uri.query(), &[])?;
    if let Who::Person(_) = caller.identity.sender.who {
        return Err(ApiError::new(
            ProblemCode::WrongSender,
            "a run is opened by the harness whose work it is, with a harness's token",
        )
        .into());
    }
    let run = validate::new_run(&value).map_err(|faults| ApiError::from(Refusal::Invalid(faults)))?;
    let named = run.run_id;
    let (run, opened) = state.store.open_run(caller.identity.sender, run).await.map_err(ApiError::from)?;
    if let (Some(run_id), false) = (named, opened) {
        Heard::of(&state, &caller.identity, &Method::POST).named(LeaseOf::Run(run_id));
    }
    Ok((if opened { StatusCode::CREATED } else { StatusCode::OK }, Json(run)))
}

/// `GET /v1/runs/RUN_ID`
pub async fn one(
    State(state): State<AppState>,
    caller: Caller,
    method: Method,
    uri: Uri,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<Run>, ApiError> {
    let run_id: RunId = identified(path)?;
    Params::read(uri.query(), &[])?;
    Heard::of(&state, &caller.identity, &method).named(LeaseOf::Run(run_id));
    state.store.run(&caller.identity, run_id).await?.map(Json).ok_or_else(ApiError::not_found)
}

/// `POST /v1/runs/RUN_ID/end`: its open asks close with it; twice is a no-op.
pub async fn end(
    State(state): State<AppState>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Run>, BodyError> {
    let uri = request.uri().clone();
    body::ignored(request, state.config.limits.body).await?;
    let run_id: RunId = identified(path)?;
    Params::read(uri.query(), &[])?;
    Ok(Json(state.store.end_run(caller.identity.sender, run_id).await.map_err(ApiError::from)?))
}
