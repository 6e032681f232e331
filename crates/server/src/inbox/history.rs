//! `/history`: what is closed, the newest first, with search and the filters of the list.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use chips_protocol::api::AskState;
use chips_store::{AskFilter, AsksQuery, StoreError};
use serde::Deserialize;

use super::page::{PageName, Person, Shell, page};
use super::rows::Rows;
use super::sift::{Sift, SiftForm, SiftQuery};
use crate::state::AppState;

/// Rows on a page.
const PAGE: usize = 30;
/// Characters of a search.
const LONGEST_SEARCH: usize = 200;

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryPage {
    shell: Shell,
    query: String,
    sift: SiftForm,
    unreadable: bool,
    filtered: bool,
    rows: Rows,
    newest: Option<String>,
    older: Option<String>,
}

/// What may stand behind `/history`, beside the filters. Anything else is ignored.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct HistoryQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    before: Option<String>,
}

/// `GET /history?q=TEXT&space=ID&harness=ID&state=STATE&before=CURSOR`
pub(crate) async fn show(
    State(state): State<AppState>,
    person: Person,
    query: Result<Query<HistoryQuery>, QueryRejection>,
    sift: Result<Query<SiftQuery>, QueryRejection>,
) -> Response {
    let mut sift = Sift::read(sift);
    sift.unreadable |= query.is_err();
    let query = query.map(|query| query.0).unwrap_or_default();
    match read(&state, &person, &query, sift).await {
        Ok(history) => page(StatusCode::OK, &history),
        Err(fault) => person.visit.unreadable(&fault),
    }
}

async fn read(
    state: &AppState,
    person: &Person,
    query: &HistoryQuery,
    sift: Sift<AskState>,
) -> Result<HistoryPage, StoreError> {
    let (store, identity, w) = (&state.store, person.identity(), person.visit.w);
    let text: String = query.q.trim().chars().take(LONGEST_SEARCH).collect();
    let before = query.before.as_deref().and_then(|cursor| cursor.parse().ok());
    let paged = before.is_some();
    let wanted = AsksQuery {
        filter: sift.part.map_or(AskFilter::Closed, AskFilter::State),
        space_id: sift.space,
        harness_id: sift.harness,
        text: Some(text.clone()).filter(|text| !text.is_empty()),
        limit: PAGE,
        before,
        ..AsksQuery::default()
    };
    let (asks, next) = if sift.unreadable {
        (Vec::new(), None)
    } else {
        let found = store.asks(identity, &wanted).await?;
        (found.asks, found.next)
    };
    let (spaces, askers) = (store.me(identity).await?.spaces, store.askers(identity).await?);
    let filtered = !sift.is_all() || !text.is_empty();
    Ok(HistoryPage {
        shell: person.shell(w.history, PageName::History),
        sift: SiftForm::new(w, sift, &spaces, askers, filtered.then_some("/history")),
        unreadable: sift.unreadable,
        filtered,
        rows: Rows::new(&asks, &person.viewer()),
        newest: paged.then(|| href(&text, &sift, None)),
        older: next.map(|cursor| href(&text, &sift, Some(&cursor))),
        query: text,
    })
}

/// Another page of the same history.
fn href(text: &str, sift: &Sift<AskState>, before: Option<&str>) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in [("before", before), ("q", Some(text).filter(|text| !text.is_empty()))] {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    let query = query.finish() + &sift.address();
    match query.trim_start_matches('&') {
        "" => "/history".to_owned(),
        query => format!("/history?{query}"),
    }
}
