//! `/v1/me`: who a token speaks for.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use chips_protocol::api::Me;

use crate::auth::Caller;
use crate::http::ApiError;
use crate::http::query::Params;
use crate::state::AppState;

/// `GET /v1/me`
pub async fn me(State(state): State<AppState>, caller: Caller, uri: Uri) -> Result<Json<Me>, ApiError> {
    Params::read(uri.query(), &[])?;
    Ok(Json(state.store.me(&caller.identity).await?))
}
