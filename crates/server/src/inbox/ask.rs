//! `/asks/ASK_ID`: one question, open or closed, and its story.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chips_protocol::AskId;
use chips_protocol::api::Ask;
use chips_protocol::text::shown;
use serde::Deserialize;

use super::card::{Card, Detail, Notice, Typed};
use super::html::{self, Html};
use super::page::{PageName, Person, Shell, page};
use super::sift::{Sift, SiftQuery};
use crate::state::AppState;

#[derive(Template)]
#[template(path = "ask.html")]
struct AskPage {
    shell: Shell,
    /// For those who go by headings; others see the question itself.
    heading: Html,
    card: Html,
}

/// `GET /asks/ASK_ID`
pub(crate) async fn show(State(state): State<AppState>, person: Person, Path(ask_id): Path<String>) -> Response {
    match find(&state, &person, &ask_id).await {
        Ok(ask) => respond(&state, &person, &ask, StatusCode::OK, &Typed::default(), None).await,
        Err(response) => response,
    }
}

/// How much of the card the script wants: `page` or `list`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PieceQuery {
    #[serde(default)]
    view: String,
}

/// `GET /fragments/asks/ASK_ID`: the card alone; 404 also where it is not among what the list is sifted for.
pub(crate) async fn piece(
    State(state): State<AppState>,
    mut person: Person,
    Path(ask_id): Path<String>,
    query: Result<Query<PieceQuery>, QueryRejection>,
    sift: Result<Query<SiftQuery>, QueryRejection>,
) -> Response {
    let sift: Sift = Sift::read(sift);
    let view = query.map(|query| query.0.view).unwrap_or_default();
    person.visit.piece = Some(Detail::of(view.as_bytes()));
    match find(&state, &person, &ask_id).await {
        Ok(ask) if !sift.is_all() => match state.store.run(person.identity(), ask.ask.envelope.run_id).await {
            Ok(run) if !sift.takes(run.as_ref()) => StatusCode::NOT_FOUND.into_response(),
            Ok(_) => respond(&state, &person, &ask, StatusCode::OK, &Typed::default(), None).await,
            Err(fault) => person.visit.unreadable(&fault),
        },
        Ok(ask) => respond(&state, &person, &ask, StatusCode::OK, &Typed::default(), None).await,
        Err(response) => response,
    }
}

async fn find(state: &AppState, person: &Person, ask_id: &str) -> Result<Ask, Response> {
    let Ok(ask_id) = ask_id.parse::<AskId>() else { return Err(person.visit.not_found()) };
    match state.store.ask(person.identity(), ask_id).await {
        Ok(Some(ask)) => Ok(ask),
        Ok(None) => Err(person.visit.not_found()),
        Err(fault) => Err(person.visit.unreadable(&fault)),
    }
}

/// The question as a page or, to the script, as a card.
pub(crate) async fn respond(
    state: &AppState,
    person: &Person,
    ask: &Ask,
    status: StatusCode,
    typed: &Typed,
    notice: Option<Notice>,
) -> Response {
    let run = match state.store.run(person.identity(), ask.ask.envelope.run_id).await {
        Ok(run) => run,
        Err(fault) => return person.visit.unreadable(&fault),
    };
    let detail = person.visit.piece.unwrap_or(Detail::Page);
    let viewer = match person.viewer_of(&state.store, [ask]).await {
        Ok(viewer) => viewer,
        Err(fault) => return person.visit.unreadable(&fault),
    };
    let mut card = Card::new(ask, run.as_ref(), &viewer, detail, typed, notice);
    if detail == Detail::Page {
        let (store, identity) = (&state.store, person.identity());
        match tokio::try_join!(store.attempts(identity, ask.ask_id), store.seen(identity, ask.ask_id)) {
            Ok((attempts, seen)) => {
                card = card.with_story(&attempts.unwrap_or_default(), &seen.unwrap_or_default(), &viewer);
            }
            Err(fault) => return person.visit.unreadable(&fault),
        }
    }
    if person.visit.piece.is_some() {
        return page(status, &card);
    }
    let prompt =
        ask.ask.as_ask().and_then(|content| content.questions.first()).map(|question| question.prompt.as_str());
    let title = html::short(prompt.unwrap_or_default(), 60).replace(['\r', '\n', '\t'], " ");
    let shell = person.shell(&shown(&title), PageName::Ask);
    page(status, &AskPage { shell, heading: Html::shown(&title), card: Html::rendered(&card) })
}
