//! `/settings`: who is signed in, and where; where and when they are told; and signing out.

pub(super) mod email;
pub(super) mod push;
pub(super) mod telegram;
pub(super) mod told;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use chips_store::{Session, WriteError};

use super::card::Who;
use super::form::Fields;
use super::html::{self, Html, TimeAs};
use super::page::{PageName, Person, Shell, Visit, page};
use crate::preferences::{Preferences, UNDO};
use crate::state::AppState;
use crate::words::LANGUAGES;
use told::{Happened, Told};

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    shell: Shell,
    token: String,
    who: Who,
    id: String,
    owner: bool,
    spaces: Vec<Html>,
    languages: Vec<Language>,
    times: Vec<UndoTime>,
    told: Told,
    devices: Vec<DeviceRow>,
}

struct Language {
    lang: &'static str,
    name: &'static str,
    chosen: bool,
}

struct UndoTime {
    seconds: usize,
    label: Html,
    chosen: bool,
}

struct DeviceRow {
    session_id: i64,
    name: Html,
    current: bool,
    began: Html,
    last_used: Html,
}

/// `GET /settings`
pub(crate) async fn show(State(state): State<AppState>, person: Person) -> Response {
    render(&state, &person, StatusCode::OK, Happened::default()).await
}

async fn render(state: &AppState, person: &Person, status: StatusCode, happened: Happened) -> Response {
    let identity = person.identity();
    let read = async {
        let preferences = match identity.sender.who {
            chips_core::Who::Person(id) => state.store.preferences(id).await?,
            chips_core::Who::Harness(_) => chips_core::notify::Preferences::default(),
        };
        let (me, sessions) = (state.store.me(identity).await?, state.store.sessions(identity).await?);
        Ok((me, sessions, state.store.endpoints(identity).await?, preferences))
    };
    let (me, sessions, endpoints, preferences) = match read.await {
        Ok(read) => read,
        Err(fault) => return person.visit.unreadable(&fault),
    };
    let id = me.participant.id.to_string();
    page(
        status,
        &SettingsPage {
            told: Told::new(state, person, &me, &endpoints, &preferences, happened),
            shell: person.shell(person.visit.w.settings, PageName::Settings),
            token: person.token.clone(),
            who: Who::called(&me.participant.name, &id),
            id,
            owner: person.identity().owner,
            spaces: me.spaces.iter().map(|space| Html::shown(&space.name)).collect(),
            languages: languages(&person.visit.preferences),
            times: UNDO.map(|seconds| undo_time(seconds, &person.visit)).into(),
            devices: sessions.iter().map(|session| device(session, person)).collect(),
        },
    )
}

fn languages(preferences: &Preferences) -> Vec<Language> {
    let chosen = preferences.language.map(|words| words.lang);
    let language = |words: &'static crate::words::Words| Language {
        lang: words.lang,
        name: words.language_name,
        chosen: chosen == Some(words.lang),
    };
    LANGUAGES.map(language).into()
}

fn undo_time(seconds: usize, visit: &Visit) -> UndoTime {
    let label = match seconds {
        0 => Html::text(visit.w.undo_none),
        n => Html::phrase(visit.w.undo_seconds.of(n), &[("n", Html::text(&n.to_string()))]),
    };
    UndoTime { seconds, label, chosen: visit.preferences.undo == seconds }
}

fn device(session: &Session, person: &Person) -> DeviceRow {
    let w = person.visit.w;
    let when =
        |pattern, moment, say| Html::phrase(pattern, &[("when", html::time(moment, person.visit.now, say, "{t}"))]);
    DeviceRow {
        session_id: session.session_id,
        name: push::device_name(&session.device.name, w),
        current: session.session_id == person.signed.session.session_id,
        began: when(w.signed_in_at, session.began, TimeAs::At),
        last_used: when(w.last_used, session.last_used, TimeAs::Ago),
    }
}

/// `POST /settings/device`: what holds on this device.
pub(crate) async fn set_device(State(state): State<AppState>, request: Request) -> Response {
    let headers = request.headers().clone();
    let (person, mut fields) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    let [language, undo, keys] = ["language", "undo", "keys"].map(|name| fields.take(name).unwrap_or_default());
    let (Some(preferences), Ok(())) = (Preferences::read(&language, &undo, &keys), fields.end()) else {
        return person.visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY);
    };
    let w = preferences.words(&headers);
    push::speak(&state, &person, w).await;
    let mut response = Redirect::to("/settings").into_response();
    response.headers_mut().append(header::SET_COOKIE, preferences.keep(person.visit.https));
    response
}

/// `POST /settings/sessions/end`: ends one of the person's sessions.
pub(crate) async fn end_one(State(state): State<AppState>, request: Request) -> Response {
    let (person, mut fields) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    let session_id = fields.take("session").ok().and_then(|id| id.parse::<i64>().ok());
    let (Some(session_id), Ok(())) = (session_id, fields.end()) else {
        return person.visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY);
    };
    match state.store.end_session(person.identity(), session_id).await {
        Ok(()) if session_id == person.signed.session.session_id => left(&person.visit),
        Ok(()) => Redirect::to("/settings").into_response(),
        Err(fault) => unwritten(&person.visit, &fault),
    }
}

/// `POST /settings/sessions/end-others`: ends all but this one.
pub(crate) async fn end_others(State(state): State<AppState>, request: Request) -> Response {
    let (person, fields) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    if fields.end().is_err() {
        return person.visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY);
    }
    let sessions = match state.store.sessions(person.identity()).await {
        Ok(sessions) => sessions,
        Err(fault) => return person.visit.unreadable(&fault),
    };
    let own = person.signed.session.session_id;
    for session in sessions.iter().filter(|session| session.session_id != own) {
        if let Err(fault) = state.store.end_session(person.identity(), session.session_id).await {
            return unwritten(&person.visit, &fault);
        }
    }
    Redirect::to("/settings").into_response()
}

/// `POST /sign-out`: ends this session.
pub(crate) async fn sign_out(State(state): State<AppState>, request: Request) -> Response {
    let (person, fields) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    if fields.end().is_err() {
        return person.visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY);
    }
    match state.store.end_session(person.identity(), person.signed.session.session_id).await {
        Ok(()) => left(&person.visit),
        Err(fault) => unwritten(&person.visit, &fault),
    }
}

/// Who sent the form, and its fields without the token, which was good.
async fn open(state: &AppState, request: Request) -> Result<(Person, Fields), Response> {
    let headers = request.headers().clone();
    let visit = Visit::of(state, &headers);
    let mut fields = Fields::read(request, &visit).await?;
    let person = match Person::of(state, &headers).await {
        Ok(Some(person)) => person,
        Ok(None) => return Err(Redirect::to("/sign-in").into_response()),
        Err(fault) => return Err(visit.unreadable(&fault)),
    };
    match fields.take("token") {
        Ok(token) if person.signed.holds(&token) => Ok((person, fields)),
        _ => Err(visit.bad_form(StatusCode::FORBIDDEN)),
    }
}

/// To the sign-in, without the cookie and without anything that this site keeps in the browser: drafts, answers that were not
/// sent, the worker. Browsers take the header over https and on loopback; elsewhere the script clears what there is.
fn left(visit: &Visit) -> Response {
    let mut response = Redirect::to("/sign-in").into_response();
    response.headers_mut().append(header::SET_COOKIE, visit.cookies.end());
    response.headers_mut().insert("clear-site-data", HeaderValue::from_static("\"storage\""));
    response
}

fn unwritten(visit: &Visit, fault: &WriteError) -> Response {
    tracing::warn!(%fault, "what was set could not be written");
    visit.unavailable(5)
}
