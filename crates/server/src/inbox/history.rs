//! `/history`: what is closed, the newest first, with search.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use chips_protocol::api::AskState;
use chips_store::{AskFilter, AsksQuery};
use serde::Deserialize;

use super::page::{PageName, Person, Shell, page};
use super::rows::Rows;
use crate::app::AppState;

/// Rows on a page.
const PAGE: usize = 30;
/// Characters of a search.
const LONGEST_SEARCH: usize = 200;
/// The states that a closed question can be in.
const CLOSED: [AskState; 4] = [AskState::Answered, AskState::TimedOut, AskState::Settled, AskState::Withdrawn];

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryPage {
    shell: Shell,
    query: String,
    state: Option<&'static str>,
    filters: Vec<Filter>,
    filtered: bool,
    rows: Rows,
    paged: bool,
    newest: String,
    older: Option<String>,
}

struct Filter {
    href: String,
    label: &'static str,
    current: bool,
}

/// What may stand behind `/history`. What can't be read is ignored.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct HistoryQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    before: Option<String>,
}

/// `GET /history?q=TEXT&state=STATE&before=CURSOR`
pub(crate) async fn show(
    State(state): State<AppState>,
    person: Person,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> Response {
    let query = query.map(|query| query.0).unwrap_or_default();
    let text: String = query.q.trim().chars().take(LONGEST_SEARCH).collect();
    let only = AskState::from_name(&query.state).filter(|state| CLOSED.contains(state));
    let before = query.before.as_deref().and_then(|cursor| cursor.parse().ok());
    let paged = before.is_some();
    let wanted = AsksQuery {
        filter: only.map_or(AskFilter::Closed, AskFilter::State),
        text: Some(text.clone()).filter(|text| !text.is_empty()),
        limit: PAGE,
        before,
        ..AsksQuery::default()
    };
    let asks = match state.store.asks(person.identity(), &wanted).await {
        Ok(asks) => asks,
        Err(fault) => return person.visit.unreadable(&fault),
    };
    let w = person.visit.w;
    let filters = std::iter::once(None)
        .chain(CLOSED.map(Some))
        .map(|state| Filter {
            href: href(&text, state, None),
            label: state.map_or(w.all_states, |state| w.state(state)),
            current: state == only,
        })
        .collect();
    page(
        StatusCode::OK,
        &HistoryPage {
            shell: person.shell(w.history, PageName::History),
            state: only.map(AskState::as_str),
            filters,
            filtered: only.is_some() || !text.is_empty(),
            rows: Rows::new(&asks.asks, &person.viewer()),
            paged,
            newest: href(&text, only, None),
            older: asks.next.map(|cursor| href(&text, only, Some(&cursor))),
            query: text,
        },
    )
}

fn href(text: &str, state: Option<AskState>, before: Option<&str>) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let pairs =
        [("q", Some(text).filter(|text| !text.is_empty())), ("state", state.map(AskState::as_str)), ("before", before)];
    for (name, value) in pairs {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    match query.finish() {
        query if query.is_empty() => "/history".to_owned(),
        query => format!("/history?{query}"),
    }
}
