//! How a refusal looks: `application/problem+json` (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chips_core::Refusal;
use chips_protocol::problem::{Problem, ProblemCode};
use chips_store::{StoreError, WriteError};

use crate::auth::failures::RetryAfter;

/// What a problem's media type is.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// What a reader is told to wait when the store can't be read, in seconds.
const RETRY_READ_S: u64 = 1;

/// A refusal with the headers that go with it.
#[derive(Debug, Clone)]
pub struct ApiError {
    problem: Box<Problem>,
    retry_after_s: Option<u64>,
    /// Close the connection after this: what is left of the request is not read.
    close: bool,
}

impl ApiError {
    /// A refusal with this code, and what was wrong this time.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self { problem: Box::new(Problem::new(code, detail)), retry_after_s: None, close: false }
    }

    /// Unknown, or not visible to whoever asks: nobody learns which.
    pub fn not_found() -> Self {
        Self::new(ProblemCode::NotFound, "there is nothing here that this token may see")
    }

    /// A query parameter that can't be taken.
    pub fn bad_query(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::BadQuery, detail)
    }

    /// The same for every wrong token.
    pub fn unauthenticated() -> Self {
        Self::new(
            ProblemCode::Unauthenticated,
            "send a valid token as `Authorization: Bearer chips_…`; `chips harness rotate` or `chips person rotate` makes a new one",
        )
    }

    /// Too many failed attempts.
    pub fn rate_limited(RetryAfter(seconds): RetryAfter) -> Self {
        Self::new(ProblemCode::RateLimited, format!("too many failed attempts from here; try again in {seconds} s"))
            .retry_after(seconds)
    }

    /// The same with a `Retry-After`, in seconds.
    pub fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after_s: Some(seconds), ..self }
    }

    /// The same with another status than the code's usual one, where a standard asks for it.
    pub fn status(mut self, status: StatusCode) -> Self {
        self.problem.status = status.as_u16();
        self
    }

    /// The same, and the connection ends after it.
    pub fn closing(self) -> Self {
        Self { close: true, ..self }
    }

    /// What is told.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// How long to wait before another attempt, in seconds, where that is said.
    pub fn retry_after_s(&self) -> Option<u64> {
        self.retry_after_s
    }

    /// The body, with the problem's page at this address.
    pub(crate) fn json(&self, base_url: &str) -> Vec<u8> {
        let problem =
            Problem { type_uri: format!("{base_url}{}", self.problem.type_uri), ..Problem::clone(&self.problem) };
        // Strings, numbers and a stored event: nothing in it can fail to serialize.
        serde_json::to_vec(&problem).unwrap_or_default()
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self { problem: Box::new(problem), retry_after_s: None, close: false }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let retry_after_s = refusal.retry_after_s();
        Self { retry_after_s, ..Problem::from(refusal).into() }
    }
}

impl From<WriteError> for ApiError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(refusal) => (*refusal).into(),
            WriteError::Unavailable { reason, retry_after_s } => {
                tracing::warn!(?reason, "the store can't take writes");
                Self::new(
                    ProblemCode::Unavailable,
                    format!("nothing was written; send the same again in {retry_after_s} s"),
                )
                .retry_after(retry_after_s)
            }
            WriteError::Failed => Self::new(
                ProblemCode::Unavailable,
                "the store has failed and it is unknown whether this was written; send the same again, with the same \
                 `idempotency_key`, once Chips is back",
            )
            .retry_after(5),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "can't answer");
        Self::new(ProblemCode::Unavailable, "the store can't be read right now; try again").retry_after(RETRY_READ_S)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(self.json("")));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.close {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        // The outermost layer knows the public URL and writes the body anew with it.
        response.extensions_mut().insert(self);
        response
    }
}
