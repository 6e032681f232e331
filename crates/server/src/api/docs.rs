//! What explains the API: schemas, problems and the description of the endpoints. Public, and the same for everybody.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use chips_protocol::problem::{self, ProblemCode};
use chips_protocol::{EventType, schema};

use super::openapi;
use crate::http::ApiError;

fn nothing_there() -> ApiError {
    ApiError::new(ProblemCode::NotFound, "there is nothing at this path; /openapi.json lists what there is")
}

fn with_type(media_type: &'static str, text: impl Into<String>) -> Response {
    ([(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-cache")], text.into()).into_response()
}

/// `GET /schemas/question.ask.json` and the like: the JSON Schema of an event type in its stored form.
pub async fn schema(path: Result<Path<String>, PathRejection>) -> Result<Response, ApiError> {
    let Path(file) = path.map_err(|_| nothing_there())?;
    let event_type = EventType::ALL.into_iter().find(|known| schema::file_name(*known) == file);
    let schema = schema::of(event_type.ok_or_else(nothing_there)?);
    Ok(with_type("application/schema+json", format!("{schema:#}\n")))
}

/// `GET /problems/CODE`: what the `type` of a problem names.
pub async fn problem(path: Result<Path<String>, PathRejection>) -> Result<Response, ApiError> {
    let Path(name) = path.map_err(|_| nothing_there())?;
    let code = ProblemCode::ALL.iter().find(|code| code.as_str() == name).ok_or_else(nothing_there)?;
    Ok(with_type("text/markdown; charset=utf-8", problem::page(*code)))
}

/// `GET /openapi.json`
pub async fn openapi() -> Response {
    with_type("application/json", openapi::text())
}
