//! Reading a request's body: what it must be, how large, and in what time.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use chips_protocol::json::{self, JsonFault};
use chips_protocol::problem::ProblemCode;
use http_body_util::BodyExt;
use serde_json::Value;

use super::ApiError;

/// The largest body that is taken, in bytes.
pub const LIMIT: usize = 256 * 1024;
/// How much of a body that is too large is read all the same, so that its sender gets to read the answer.
const READ_ON: usize = 1024 * 1024;

/// Why a body was not taken.
#[derive(Debug)]
pub enum BodyError {
    /// It is refused.
    Refused(ApiError),
    /// It took too long: the connection ends.
    TooSlow,
}

impl From<ApiError> for BodyError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl IntoResponse for BodyError {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(error) => error.into_response(),
            Self::TooSlow => (
                StatusCode::REQUEST_TIMEOUT,
                [(header::CONNECTION, HeaderValue::from_static("close"))],
                "the body did not arrive in time\n",
            )
                .into_response(),
        }
    }
}

/// Reads a body of JSON.
///
/// # Errors
/// In this order: `unsupported_media_type`, `too_large`, and what a strict reader of JSON refuses. Or it took too long.
pub async fn json(request: Request, patience: Duration) -> Result<Value, BodyError> {
    media_type(request.headers())?;
    let bytes = read(request, patience).await?;
    json::read(&bytes).map_err(|fault| BodyError::Refused(not_json(&fault)))
}

/// Reads a body that means nothing, so that the connection can go on after it.
///
/// # Errors
/// `too_large`, or it took too long.
pub async fn ignored(request: Request, patience: Duration) -> Result<(), BodyError> {
    read(request, patience).await.map(drop)
}

fn not_json(fault: &JsonFault) -> ApiError {
    let code = match fault {
        JsonFault::Malformed { .. } => ProblemCode::MalformedJson,
        JsonFault::DuplicateKey { .. } => ProblemCode::DuplicateKey,
        JsonFault::TooDeep => ProblemCode::TooDeep,
    };
    ApiError::new(code, fault.to_string())
}

/// Holds the media type to `application/json` in UTF-8, not encoded.
fn media_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let refuse = |detail: &str| Err(ApiError::new(ProblemCode::UnsupportedMediaType, detail));
    if headers.contains_key(header::CONTENT_ENCODING) {
        return refuse("send the body as it is, without `Content-Encoding`");
    }
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (types.next(), types.next()) else {
        return refuse("send one `Content-Type: application/json`");
    };
    let text = value.to_str().unwrap_or_default();
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    if !essence.trim().eq_ignore_ascii_case("application/json") {
        return refuse("send the body as `Content-Type: application/json`");
    }
    for parameter in parameters.split(';') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = value.trim().trim_matches('"');
        if name.trim().eq_ignore_ascii_case("charset") && !value.eq_ignore_ascii_case("utf-8") {
            return refuse("the body must be in UTF-8");
        }
    }
    Ok(())
}

async fn read(request: Request, patience: Duration) -> Result<Bytes, BodyError> {
    let expects_continue = request.headers().contains_key(header::EXPECT);
    let body = request.into_body();
    if expects_continue && body.size_hint().lower() > LIMIT as u64 {
        // The sender waits for a word before it sends anything.
        return Err(too_large().into());
    }
    match tokio::time::timeout(patience, collect(body)).await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(BodyError::TooSlow),
    }
}

async fn collect(mut body: Body) -> Result<Bytes, ApiError> {
    let mut taken = BytesMut::new();
    let mut count = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            ApiError::new(
                ProblemCode::MalformedJson,
                format!("the body ended after {count} bytes, before the end that its header promised"),
            )
            .closing()
        })?;
        let Some(data) = frame.data_ref() else { continue };
        count += data.len();
        if count <= LIMIT {
            taken.extend_from_slice(data);
        } else if count > READ_ON {
            break;
        } else {
            taken = BytesMut::new();
        }
    }
    if count > LIMIT { Err(too_large()) } else { Ok(taken.freeze()) }
}

fn too_large() -> ApiError {
    ApiError::new(ProblemCode::TooLarge, format!("the body may have {LIMIT} bytes at most")).closing()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn taken(values: &[(header::HeaderName, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in values {
            headers.append(name, value.parse().unwrap());
        }
        media_type(&headers).is_ok()
    }

    #[test]
    fn json_in_utf_8_is_taken_however_it_is_spelt() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "application/json ; charset=utf-8; v=1",
            "application/json;",
        ] {
            assert!(taken(&[(header::CONTENT_TYPE, good)]), "{good}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for bad in [
            "",
            "text/plain",
            "application/problem+json",
            "application/jsonx",
            "application/json; charset=latin1",
            "application/json; charset=utf-16",
            "application/x-www-form-urlencoded",
            "application/json, text/plain",
        ] {
            assert!(!taken(&[(header::CONTENT_TYPE, bad)]), "{bad}");
        }
        assert!(!taken(&[]));
        let json = (header::CONTENT_TYPE, "application/json");
        assert!(!taken(&[json.clone(), json.clone()]));
        for encoding in ["gzip", "identity", ""] {
            assert!(!taken(&[json.clone(), (header::CONTENT_ENCODING, encoding)]), "{encoding}");
        }
    }
}
