//! What stands before every page: the headers that hold a browser to this site, and the refusal of writes that another
//! site could have caused.

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;

use crate::http::origin::same_origin;
use crate::state::AppState;

use super::page;

/// Scripts, styles and connections of this site alone; no frame may hold a page, no form may post elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      manifest-src 'self'; worker-src 'self'; form-action 'self'; frame-ancestors 'none'; \
                      base-uri 'none'";

/// The headers that every answer to a browser has. A handler's own `Cache-Control` stands.
const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    // Not `no-referrer`: with that, browsers send `Origin: null` with our own forms. A sign-in link's secret still goes
    // to no other site.
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// Adds the headers.
pub(crate) fn secured(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, value);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The middleware around every page, form and asset of the inbox.
pub(crate) async fn guard(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let response = if safe || same_origin(request.headers(), state.config.public_url.as_ref()) {
        next.run(request).await
    } else {
        page::foreign(&state, request.headers())
    };
    secured(response)
}
