//! `/runs/RUN_ID`: one piece of work, and what it asked.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use chips_protocol::RunId;
use chips_protocol::api::{Run, RunState};
use chips_protocol::text::shown;
use chips_store::{AskFilter, AsksQuery};
use serde::Deserialize;

use super::card::Who;
use super::html::{self, Html, TimeAs};
use super::page::{PageName, Person, Shell, page};
use super::rows::Rows;
use crate::state::AppState;

/// Open questions that are shown.
const OPEN: usize = 200;
/// Closed questions on a page.
const CLOSED: usize = 30;

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    shell: Shell,
    title: Html,
    /// Whether the title fills a phone at the size of the others.
    long: bool,
    state: &'static str,
    who: Option<Who>,
    started: Html,
    ended: Option<Html>,
    labels: Vec<(Html, Html)>,
    url: Option<Link>,
    parent: Option<String>,
    open: Rows,
    closed: Rows,
    older: Option<String>,
}

/// A link to somewhere else, with the host in sight.
struct Link {
    href: String,
    host: String,
}

/// What may stand behind a run's path.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RunQuery {
    #[serde(default)]
    before: Option<String>,
}

/// `GET /runs/RUN_ID`
pub(crate) async fn show(
    State(state): State<AppState>,
    person: Person,
    Path(run_id): Path<String>,
    query: Result<Query<RunQuery>, QueryRejection>,
) -> Response {
    let visit = &person.visit;
    let Ok(run_id) = run_id.parse::<RunId>() else { return visit.not_found() };
    let before = query.ok().and_then(|query| query.0.before).and_then(|cursor| cursor.parse().ok());
    let paged = before.is_some();
    let of_run = AsksQuery { run_id: Some(run_id), ..AsksQuery::default() };
    let open = AsksQuery { filter: AskFilter::Open, limit: OPEN, ..of_run.clone() };
    let closed = AsksQuery { filter: AskFilter::Closed, limit: CLOSED, before, ..of_run };
    let store = &state.store;
    let read = async {
        let Some(run) = store.run(person.identity(), run_id).await? else { return Ok(None) };
        let open = if paged { Vec::new() } else { store.asks(person.identity(), &open).await?.asks };
        Ok(Some((run, open, store.asks(person.identity(), &closed).await?)))
    };
    let (run, open, closed) = match read.await {
        Ok(Some(read)) => read,
        Ok(None) => return visit.not_found(),
        Err(fault) => return visit.unreadable(&fault),
    };
    let w = visit.w;
    let viewer = person.viewer();
    let title = run.title.as_deref().unwrap_or(w.untitled_run);
    let at = |pattern, moment| Html::phrase(pattern, &[("when", html::time(moment, visit.now, TimeAs::At, "{t}"))]);
    page(
        StatusCode::OK,
        &RunPage {
            shell: person.shell(&shown(title), PageName::Run),
            title: Html::shown(title),
            long: title.chars().count() > 80,
            state: if run.state == RunState::Live { "live" } else { "ended" },
            who: open.iter().chain(&closed.asks).next().map(|ask| Who::of(&ask.asker)),
            started: at(w.run_started, run.started_at),
            ended: run.ended_at.map(|moment| at(w.run_ended_at, moment)),
            labels: run.labels.iter().map(|(key, value)| (Html::shown(key), Html::shown(value))).collect(),
            url: link(&run),
            parent: run.parent_run_id.map(|id| id.to_string()),
            open: Rows::new(&open, &viewer),
            closed: Rows::new(&closed.asks, &viewer),
            older: closed.next.map(|cursor| {
                let query =
                    url::form_urlencoded::Serializer::new(String::new()).append_pair("before", &cursor).finish();
                format!("/runs/{run_id}?{query}")
            }),
        },
    )
}

/// The run's own page elsewhere: http and https alone, whatever was stored.
fn link(run: &Run) -> Option<Link> {
    let url = url::Url::parse(run.url.as_deref()?).ok()?;
    let host = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https"))?.to_owned();
    Some(Link { href: url.into(), host })
}
