//! Signing in: a link whose page has a button, or the short code beside it. No GET uses anything up, so whoever looks at a link
//! first (a mail scanner, a chat's preview) leaves it as it was.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use chips_store::{Proof, SignInState, SignedIn, secret};
use serde::Deserialize;

use super::form::Fields;
use super::html::Html;
use super::page::{PageName, Shell, Visit, own_path, page};
use crate::auth::failures::RetryAfter;
use crate::auth::session::{Before, device};
use crate::http::Peer;
use crate::metrics::TriedWith;
use crate::state::AppState;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    shell: Shell,
    token: String,
    next: &'a str,
    notice: Option<&'a str>,
    link: Option<Link<'a>>,
    code: &'a str,
}

struct Link<'a> {
    secret: &'a str,
    title: Html,
}

/// What may stand behind `/sign-in`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct SignInQuery {
    #[serde(default)]
    next: String,
}

/// A browser before it is signed in.
struct Door {
    visit: Visit,
    before: Before,
    next: String,
}

impl Door {
    fn of(state: &AppState, headers: &HeaderMap, next: &str) -> Self {
        let visit = Visit::of(state, headers);
        let before = visit.cookies.before(headers);
        Self { visit, before, next: own_path(next) }
    }

    /// The form for the code, and why it is asked for.
    fn code(&self, status: StatusCode, notice: Option<&str>, code: &str) -> Response {
        self.show(status, notice, None, code)
    }

    fn show(&self, status: StatusCode, notice: Option<&str>, link: Option<Link<'_>>, code: &str) -> Response {
        let shell = self.visit.shell(self.visit.w.sign_in, PageName::SignIn, None);
        let token = self.before.form_token();
        let mut response = page(status, &SignInPage { shell, token, next: &self.next, notice, link, code });
        response.headers_mut().append(header::SET_COOKIE, self.visit.cookies.keep_before(&self.before));
        response
    }

    /// The form again, to be sent after a while.
    fn slow_down(&self, RetryAfter(seconds): RetryAfter, code: &str) -> Response {
        let mut response = self.code(StatusCode::TOO_MANY_REQUESTS, Some(self.visit.w.too_many), code);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        response
    }

    /// The page for a link that signs nobody in.
    fn dead_link(&self, state: &SignInState) -> Response {
        let w = self.visit.w;
        let (status, notice) = match state {
            SignInState::Used => (StatusCode::GONE, w.link_used),
            SignInState::Expired => (StatusCode::GONE, w.link_expired),
            SignInState::Unknown | SignInState::Good { .. } => (StatusCode::NOT_FOUND, w.link_unknown),
        };
        self.code(status, Some(notice), "")
    }
}

/// `GET /sign-in?next=PATH`: the form for the code.
pub(crate) async fn show(
    State(state): State<AppState>,
    headers: HeaderMap,
    query: Result<Query<SignInQuery>, QueryRejection>,
) -> Response {
    let door = Door::of(&state, &headers, &query.map(|query| query.0.next).unwrap_or_default());
    match door.visit.cookies.signed(&state.store, &headers).await {
        Ok(Some(_)) => Redirect::to(&door.next).into_response(),
        Ok(None) => door.code(StatusCode::OK, None, ""),
        Err(fault) => door.visit.unreadable(&fault),
    }
}

/// `GET /sign-in/SECRET`: who would be signed in, and a button.
pub(crate) async fn show_link(
    State(state): State<AppState>,
    headers: HeaderMap,
    Path(secret): Path<String>,
    query: Result<Query<SignInQuery>, QueryRejection>,
) -> Response {
    let door = Door::of(&state, &headers, &query.map(|query| query.0.next).unwrap_or_default());
    match state.store.sign_in_state(secret::sha256(&secret)).await {
        Ok(SignInState::Good { name }) => {
            let title = Html::phrase(door.visit.w.sign_in_as, &[("who", Html::isolated(&name))]);
            door.show(StatusCode::OK, None, Some(Link { secret: &secret, title }), "")
        }
        Ok(dead) => {
            // Whoever opens one that was never made may be guessing; an old one is opened by people, and by what looks at their mail.
            if dead == SignInState::Unknown {
                state.metrics.sign_in_failed(TriedWith::Link);
            }
            door.dead_link(&dead)
        }
        Err(fault) => door.visit.unreadable(&fault),
    }
}

/// `POST /sign-in`: signs in with the code.
pub(crate) async fn with_code(State(state): State<AppState>, request: Request) -> Response {
    let peer = request.extensions().get::<Peer>().map(|peer| peer.client);
    let (door, mut fields, headers) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    let (Ok(token), Ok(code), Ok(())) = (fields.take("token"), fields.take("code"), fields.end()) else {
        return door.visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY);
    };
    let w = door.visit.w;
    if !door.before.holds(&token) {
        return door.code(StatusCode::FORBIDDEN, Some(w.form_stale), &code);
    }
    let canonical = secret::canonical_code(&code);
    if canonical.is_empty() {
        return door.code(StatusCode::UNPROCESSABLE_ENTITY, Some(w.code_empty), "");
    }
    // A code is short: it is asked first whether this peer may try, and a failure is counted.
    if let Some(Err(wait)) = peer.map(|peer| state.sign_in_failures.allowed(peer, door.visit.now)) {
        tracing::info!(peer = peer.map(tracing::field::display), "too many wrong codes");
        return door.slow_down(wait, &code);
    }
    match sign_in(&state, &door, &headers, Proof::Code(secret::sha256(&canonical))).await {
        Ok(response) => response,
        Err(Denied::Unwritten) => door.visit.unavailable(5),
        Err(Denied::No(_)) => match peer.map(|peer| state.sign_in_failures.failed(peer, door.visit.now)) {
            Some(Err(wait)) => door.slow_down(wait, &code),
            _ => door.code(StatusCode::UNPROCESSABLE_ENTITY, Some(w.code_wrong), &code),
        },
    }
}

/// `POST /sign-in/SECRET`: signs in with the link, once, and only from the browser that its page was opened in.
pub(crate) async fn with_link(State(state): State<AppState>, Path(secret): Path<String>, request: Request) -> Response {
    let (door, mut fields, headers) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    let (Ok(token), Ok(())) = (fields.take("token"), fields.end()) else {
        return door.visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY);
    };
    if !door.before.holds(&token) {
        return door.code(StatusCode::FORBIDDEN, Some(door.visit.w.other_browser), "");
    }
    match sign_in(&state, &door, &headers, Proof::Link(secret::sha256(&secret))).await {
        Ok(response) => response,
        Err(Denied::Unwritten) => door.visit.unavailable(5),
        Err(Denied::No(dead)) => door.dead_link(&dead),
    }
}

/// The form's fields, with where it leads taken out.
async fn open(state: &AppState, request: Request) -> Result<(Door, Fields, HeaderMap), Response> {
    let headers = request.headers().clone();
    let visit = Visit::of(state, &headers);
    let mut fields = Fields::read(request, &visit).await?;
    let next = fields.take_optional("next").map_err(|_| visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY))?;
    Ok((Door::of(state, &headers, &next.unwrap_or_default()), fields, headers))
}

enum Denied {
    No(SignInState),
    Unwritten,
}

async fn sign_in(state: &AppState, door: &Door, headers: &HeaderMap, proof: Proof) -> Result<Response, Denied> {
    let cookies = door.visit.cookies;
    let earlier = cookies.signed(&state.store, headers).await.ok().flatten();
    let with = match proof {
        Proof::Link(_) => TriedWith::Link,
        Proof::Code(_) => TriedWith::Code,
    };
    match state.store.sign_in(proof, device(headers)).await {
        Ok(SignedIn::Yes(secret, _)) => {
            // This browser's earlier session has no cookie any more; nobody should find it in a list for weeks.
            if let Some(earlier) = earlier
                && let Err(fault) = state.store.end_session(earlier.identity(), earlier.session.session_id).await
            {
                tracing::warn!(%fault, "the browser's earlier session stays until it is idle");
            }
            let mut response = Redirect::to(&door.next).into_response();
            response.headers_mut().append(header::SET_COOKIE, cookies.begin(&secret));
            response.headers_mut().append(header::SET_COOKIE, cookies.end_before());
            Ok(response)
        }
        Ok(SignedIn::No(dead)) => {
            state.metrics.sign_in_failed(with);
            Err(Denied::No(dead))
        }
        Err(fault) => {
            tracing::warn!(%fault, "a sign-in could not be written");
            Err(Denied::Unwritten)
        }
    }
}
