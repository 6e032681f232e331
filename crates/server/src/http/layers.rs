//! What every request passes before a handler and every reply after it, in the contract's order: the host (421), a token in
//! the query (400), then the path (404) and the method (405), which the router knows.

use std::panic::AssertUnwindSafe;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chips_core::Who;
use chips_protocol::problem::ProblemCode;
use chips_store::Identity;
use futures::FutureExt;
use tokio::time::Instant;
use tracing::field::{Empty, display};
use tracing::{Instrument, Span};

use super::problem::PROBLEM_JSON;
use super::{ApiError, Peer, forwarded, query};
use crate::metrics::RouteClass;
use crate::request_id::REQUEST_ID;
use crate::simulation::Simulation;
use crate::state::AppState;

/// Names of parameters that people put tokens in.
const TOKEN_NAMES: [&str; 9] =
    ["token", "access_token", "api_key", "apikey", "api-key", "auth", "authorization", "bearer", "chips_token"];
/// How the tokens of Chips begin.
const TOKEN_PREFIXES: [&str; 2] = ["chips_hk_", "chips_uk_"];

/// Headers that go out with every reply that does not set them itself.
const SECURITY: [(HeaderName, HeaderValue); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// The layer around every route and fallback.
pub async fn outer(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let client = request
        .extensions()
        .get::<Peer>()
        .map(|peer| forwarded::client(peer.address.ip(), request.headers(), &state.config.trust_proxy));
    if let Some((peer, client)) = request.extensions_mut().get_mut::<Peer>().zip(client) {
        peer.client = client;
    }
    let id = state.requests.of(request.headers());
    // The route and never the path: a path can hold a sign-in link's secret, and a query anything.
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let matched = matched.as_ref().map(MatchedPath::as_str);
    let route = matched.unwrap_or("unmatched");
    let method = known_method(request.method());
    let class = RouteClass::of(method, matched, request.uri().query());
    let api = is_api(request.uri());
    let span = tracing::info_span!("request", request_id = %id, method, route, participant = Empty, ask_id = Empty, left = Empty);
    let mut line = Line { span: span.clone(), class, began, answer: None };
    let simulation = state.config.simulation.as_ref();
    let write = simulation.is_some() && api && *request.method() == Method::POST;
    let peer = write.then(|| request.extensions().get::<Peer>().cloned()).flatten();

    let reply = async {
        let refusal = wrong_host(&state, &request)
            .or_else(|| token_in_query(request.uri()))
            .or_else(|| simulation.filter(|_| write).and_then(Simulation::refuses));
        // Decided as the write comes: what a script says because of a write concerns those that come after it.
        let loses_reply = refusal.is_none() && write && simulation.is_some_and(Simulation::loses_reply);
        let response = match refusal {
            Some(refusal) => refusal.into_response(),
            None => match AssertUnwindSafe(next.run(request)).catch_unwind().await {
                Ok(response) => response,
                // The panic itself is told on standard error by its hook, within this span.
                Err(_) => {
                    tracing::error!("a handler panicked");
                    internal_error()
                }
            },
        };
        if loses_reply && let Some(peer) = &peer {
            peer.cut_off();
        }
        response
    };
    let mut response = reply.instrument(span).await;

    let error = response.extensions_mut().remove::<ApiError>();
    if let Some(error) = &error
        && state.config.public_url.is_some()
    {
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = Body::from(error.json(&state.config.base_url()));
    }
    let headers = response.headers_mut();
    for (name, value) in SECURITY {
        headers.entry(name).or_insert(value);
    }
    if api {
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    if let Some(simulation) = simulation {
        simulation.marks(headers, state.store.clock());
    }
    let status = response.status();
    let code = error.as_ref().map(|error| error.problem().code);
    state.metrics.request(method, route, class, status.as_u16(), began.elapsed().as_secs_f64());
    // Who asks whether the server is ready is answered, and not refused: that it is not is a figure of its own.
    if let Some(code) = code.filter(|_| route != "/readyz") {
        state.metrics.problem(code);
    }
    line.answer = Some((status, code));
    response
}

/// The line that each request has in the log, of a target of its own (`chips_server::access`): written when its answer begins, or when it is
/// dropped without one.
struct Line {
    span: Span,
    class: RouteClass,
    began: Instant,
    answer: Option<(StatusCode, Option<ProblemCode>)>,
}

impl Drop for Line {
    fn drop(&mut self) {
        let ms = (self.began.elapsed().as_secs_f64() * 10_000.0).round() / 10.0;
        let _within = self.span.enter();
        let Some((status, code)) = self.answer else {
            tracing::info!(target: "chips_server::access", ms, "the caller left before the answer");
            return;
        };
        let code = code.map(ProblemCode::as_str);
        let (failed, status) = (status.is_server_error(), status.as_u16());
        // A macro of `tracing` has its level from the start.
        macro_rules! answered {
            ($level:ident) => {
                tracing::$level!(target: "chips_server::access", status, ms, code, "answered")
            };
        }
        match failed {
            true => answered!(warn),
            false if self.class.is_routine() => answered!(debug),
            false => answered!(info),
        }
    }
}

/// Says in every line of the log that follows within this request whom it speaks for.
pub(crate) fn speaks_for(identity: &Identity) {
    let participant = match identity.sender.who {
        Who::Harness(id) => id.to_string(),
        Who::Person(id) => id.to_string(),
    };
    Span::current().record("participant", display(participant));
}

/// Whether a path belongs to the API, so that whatever goes wrong there is told as JSON.
fn is_api(uri: &Uri) -> bool {
    uri.path() == "/v1" || uri.path().starts_with("/v1/") || uri.path() == "/mcp"
}

/// Methods are the peer's text: those that are not known are counted together.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn wrong_host(state: &AppState, request: &Request) -> Option<ApiError> {
    let local = request.extensions().get::<Peer>().map(|peer| peer.local);
    let refuse = |detail: String| ApiError::new(ProblemCode::Misdirected, detail);
    let mut named = request.headers().get_all(header::HOST).iter();
    let host = match (named.next(), named.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        // RFC 9112, section 3.2, asks for 400 here.
        (None, _) => {
            return Some(
                refuse("the request has no `Host` header".to_owned()).status(StatusCode::BAD_REQUEST).closing(),
            );
        }
        (Some(_), Some(_)) => {
            return Some(
                refuse("the request has more than one `Host` header".to_owned())
                    .status(StatusCode::BAD_REQUEST)
                    .closing(),
            );
        }
    };
    // A target with an authority wins over the header (RFC 9112, section 3.2.2); whoever sends two names gets neither.
    let target = request.uri().authority().map(|authority| authority.as_str());
    [Some(host), target].into_iter().flatten().find(|named| !state.hosts.admits(named, local)).map(|named| {
        // It is the caller's text: what is no name of a host may be anything, a token that was put into the wrong place too.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']');
        let host = if named.len() <= 253 && named.bytes().all(plain) { named } else { "(not a name)" };
        tracing::debug!(host, "a request for another host");
        refuse(
            "start `chips serve` with `--allow-host NAME` to have it answer for another name than its listen address \
             and its public URL"
                .to_owned(),
        )
    })
}

fn token_in_query(uri: &Uri) -> Option<ApiError> {
    let is_token = |value: &str| TOKEN_PREFIXES.iter().any(|prefix| value.contains(prefix));
    let found = query::decoded(uri.query()?).any(|(name, value)| {
        let (name, value) = (name.unwrap_or_default(), value.unwrap_or_default());
        TOKEN_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)) || is_token(&name) || is_token(&value)
    });
    found.then(|| {
        ApiError::new(
            ProblemCode::TokenInQuery,
            "an address ends up in logs and histories: send the token as `Authorization: Bearer …`, and make a new one if \
             this one was real",
        )
    })
}

/// The answer to a panic. It has no code of the contract's: no input leads here.
fn internal_error() -> Response {
    let body = r#"{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"this is a fault in Chips; the log of the server says more"}"#;
    (StatusCode::INTERNAL_SERVER_ERROR, [(header::CONTENT_TYPE, PROBLEM_JSON)], body).into_response()
}

/// The answer to a path that does not exist, for whoever wants no page.
pub fn not_found() -> ApiError {
    ApiError::new(ProblemCode::NotFound, "there is nothing at this path; /openapi.json lists what there is")
}

/// Whether a request for a path that does not exist came from somebody who wants a page.
pub fn wants_page(uri: &Uri, headers: &HeaderMap) -> bool {
    !is_api(uri)
        && headers
            .get_all(header::ACCEPT)
            .iter()
            .any(|accept| accept.to_str().is_ok_and(|accept| accept.to_ascii_lowercase().contains("text/html")))
}

/// The answer to a method that a path does not have; the router adds `Allow`.
pub async fn method_not_allowed() -> ApiError {
    ApiError::new(ProblemCode::MethodNotAllowed, "this path does not have this method; `Allow` lists those it has")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use axum::Router;
    use axum::routing::get;
    use chips_store::{Options, Store, admin};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::config::Config;

    #[tokio::test]
    async fn a_request_that_is_dropped_has_its_line_too() {
        let dir = tempfile::tempdir().unwrap();
        admin::init(dir.path()).unwrap();
        let store = Store::open(dir.path(), Options::default()).unwrap();
        let state = AppState::new(Config::on("127.0.0.1:7070".parse().unwrap()), store).unwrap();
        let router = Router::new()
            .route("/never", get(std::future::pending::<()>))
            .layer(axum::middleware::from_fn_with_state(state.clone(), outer));
        let log = tempfile::NamedTempFile::new().unwrap();
        let file = log.reopen().unwrap();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(std::sync::Mutex::new(file)).finish();
        let request = Request::get("/never").header("host", "127.0.0.1:7070").body(Body::empty()).unwrap();
        {
            let _here = tracing::subscriber::set_default(subscriber);
            assert_eq!(router.oneshot(request).now_or_never().map(|answered| answered.is_ok()), None);
        }
        let text = std::fs::read_to_string(log.path()).unwrap();
        assert!(text.contains("the caller left before the answer") && text.contains("/never"), "{text}");
        state.store.close().await;
    }

    #[tokio::test]
    async fn a_panic_is_one_answer_and_the_next_request_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        admin::init(dir.path()).unwrap();
        let store = Store::open(dir.path(), Options::default()).unwrap();
        let state = AppState::new(Config::on("127.0.0.1:7070".parse().unwrap()), store).unwrap();
        async fn panicking() {
            panic!("on purpose")
        }
        let router = Router::new()
            .route("/panic", get(panicking))
            .route("/fine", get(async || "fine"))
            .layer(axum::middleware::from_fn_with_state(state.clone(), outer));
        let ask = |path: &str| Request::get(path).header("host", "127.0.0.1:7070").body(Body::empty()).unwrap();
        let response = router.clone().oneshot(ask("/panic")).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
        assert!(response.headers().contains_key(REQUEST_ID));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["status"], 500);
        assert!(!problem.to_string().contains("on purpose"));
        assert_eq!(router.oneshot(ask("/fine")).await.unwrap().status(), StatusCode::OK);
        state.store.close().await;
    }
}
