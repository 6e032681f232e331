//! `/`: the open questions on their shelves, the most urgent first, and what was closed just now.

use std::collections::HashMap;

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chips_protocol::api::{Ask, AsksPage, Run};
use chips_protocol::{EventType, RunId, Timestamp};
use chips_store::query::Cursor;
use chips_store::{AskFilter, AsksQuery, EventsQuery, Identity, Store, StoreError};
use futures::future::try_join_all;
use serde::Deserialize;

use super::card::{Card, Detail, Shelf, Typed, Viewer};
use super::html::Html;
use super::page::{PageName, Person, Shell, page};
use super::sift::{Sift, SiftForm, SiftQuery, askers_of};
use super::words::{Count, Words};
use crate::state::AppState;

/// Open questions on one page.
const PAGE: usize = 200;
/// Whole cards on the first shelf; further down a card fills itself when it comes into view.
const WHOLE_FIRST: usize = 12;
/// Whole cards on each other shelf.
const WHOLE_OTHER: usize = 6;
/// How long a closed question stays under "Closed just now", in milliseconds.
const JUST_NOW_MS: i64 = 60 * 60 * 1000;
/// How many closed questions stand there at most.
const JUST_NOW: usize = 5;
/// Events that are looked through for them.
const LOOK_BACK: u64 = 400;

/// The list, as it stands in the page and as the script fetches it.
#[derive(Template)]
#[template(path = "list.html")]
struct List {
    w: &'static Words,
    head: u64,
    now_ms: i64,
    /// How many are open in all, sifted or not.
    total: String,
    hero: Html,
    also: Html,
    sift: Option<SiftForm>,
    sifted: bool,
    /// What keeps the sifting on the next page.
    kept: String,
    only: Sift,
    waiting: Vec<Card>,
    going: Vec<Card>,
    gone: Vec<Card>,
    closed: Vec<Card>,
    more: Option<String>,
    paged: bool,
}

#[derive(Template)]
#[template(path = "inbox.html")]
struct InboxPage {
    shell: Shell,
    list: Html,
}

/// What may stand behind `/`, beside what it is sifted for. Anything else is ignored: people follow links that others decorated.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ListQuery {
    #[serde(default)]
    before: Option<String>,
    /// The newest `seq` that the script has; nothing is sent where nothing is newer.
    #[serde(default)]
    head: Option<String>,
}

/// `GET /`
pub(crate) async fn show(
    State(state): State<AppState>,
    person: Person,
    query: Result<Query<ListQuery>, QueryRejection>,
    sift: Result<Query<SiftQuery>, QueryRejection>,
) -> Response {
    let query = query.map(|query| query.0).unwrap_or_default();
    let sift = Sift::read(sift);
    match read(&state.store, &person, query.before.as_deref(), sift).await {
        Ok(list) => {
            let some = list.total != "0";
            let title = if some { format!("({}) {}", list.total, person.visit.w.open) } else { String::new() };
            let mut shell = person.shell(&title, PageName::List);
            shell.count = some.then(|| list.total.clone());
            page(StatusCode::OK, &InboxPage { shell, list: Html::rendered(&list) })
        }
        Err(fault) => person.visit.unreadable(&fault),
    }
}

/// `GET /fragments/list`: the list alone, or 204 where the script has everything already.
pub(crate) async fn fragment(
    State(state): State<AppState>,
    person: Person,
    query: Result<Query<ListQuery>, QueryRejection>,
    sift: Result<Query<SiftQuery>, QueryRejection>,
) -> Response {
    let query = query.map(|query| query.0).unwrap_or_default();
    let sift = Sift::read(sift);
    let head = *state.store.head(person.identity().sender.workspace_id).borrow();
    if query.head.as_deref() == Some(head.to_string().as_str()) {
        return (StatusCode::NO_CONTENT, [("x-chips-now", person.visit.now.ms().to_string())]).into_response();
    }
    match read(&state.store, &person, query.before.as_deref(), sift).await {
        Ok(list) => page(StatusCode::OK, &list),
        Err(fault) => person.visit.unreadable(&fault),
    }
}

async fn read(store: &Store, person: &Person, before: Option<&str>, sift: Sift) -> Result<List, StoreError> {
    let before: Option<Cursor> = before.and_then(|cursor| cursor.parse().ok());
    let paged = before.is_some();
    let identity = person.identity();
    let every = AsksQuery { filter: AskFilter::Open, limit: PAGE, ..AsksQuery::default() };
    let query = AsksQuery { space_id: sift.space, harness_id: sift.harness, before, ..every.clone() };
    // The list is as old as its head says: what was closed after it is left to the stream.
    let mut open = store.asks(identity, &query).await?;
    // Those who ask, and how many there are in all, stand beside what is sifted.
    let all = if query == every && !sift.unreadable { None } else { Some(store.asks(identity, &every).await?) };
    if sift.unreadable {
        (open.asks, open.next) = (Vec::new(), None);
    }
    let closed = if paged || sift.part.is_some() {
        Vec::new()
    } else {
        just_closed(store, identity, person.visit.now, open.head).await?
    };
    let all_asks = all.as_ref().map(|all| all.asks.as_slice()).unwrap_or_default();
    let runs = runs_of(store, identity, open.asks.iter().chain(&closed).chain(all_asks)).await?;
    let spaces = store.me(identity).await?.spaces;
    let viewer = person.viewer_of(store, &closed).await?;
    let every = all.as_ref().unwrap_or(&open);
    let total = format!("{}{}", every.asks.len(), if every.next.is_some() { "+" } else { "" });
    let askers = askers_of(&every.asks, &runs);
    // Where there is nothing to tell apart there is nothing to choose.
    let form = (!sift.is_all() || spaces.len() > 1 || askers.len() > 1)
        .then(|| SiftForm::new(viewer.w, sift, &spaces, askers, (!sift.is_all()).then_some("/")));
    // Further down the list, its head still says how many there are in all.
    let counts = Counts::of(if sift.is_all() { every } else { &open });
    let closed: Vec<Ask> = closed.into_iter().filter(|ask| sift.takes(runs.get(&ask.ask.envelope.run_id))).collect();
    Ok(List::new(&viewer, open, &closed, &runs, Frame { paged, sift, form, total, counts }))
}

/// What stands around the cards.
struct Frame {
    paged: bool,
    sift: Sift,
    form: Option<SiftForm>,
    total: String,
    counts: Counts,
}

/// How many of a page's questions wait, and how many go on by themselves.
struct Counts {
    waiting: usize,
    also: usize,
    /// There are more on the next page.
    more: bool,
}

impl Counts {
    fn of(page: &AsksPage) -> Self {
        let waiting = page.asks.iter().filter(|ask| Shelf::of(ask) == Shelf::Waiting).count();
        Self { waiting, also: page.asks.len() - waiting, more: page.next.is_some() }
    }
}

impl List {
    /// The list of these open asks, in the order of the store, and of those that were closed just now.
    fn new(viewer: &Viewer<'_>, open: AsksPage, closed: &[Ask], runs: &HashMap<RunId, Run>, frame: Frame) -> Self {
        let mut shelves: HashMap<Shelf, Vec<&Ask>> = HashMap::new();
        for ask in open.asks.iter().filter(|ask| frame.sift.shows(Shelf::of(ask))) {
            shelves.entry(Shelf::of(ask)).or_default().push(ask);
        }
        let mut shelf = |shelf: Shelf, whole: usize| {
            let asks = shelves.remove(&shelf).unwrap_or_default();
            cards(&by_run(asks), runs, viewer, whole)
        };
        let waiting = shelf(Shelf::Waiting, WHOLE_FIRST);
        let (going, gone) = (shelf(Shelf::Going, WHOLE_OTHER), shelf(Shelf::Gone, WHOLE_OTHER));
        let words = &viewer.w.script;
        let shown = frame.counts;
        let counts = match frame.sift.part {
            Some(Shelf::Waiting) => Counts { also: 0, ..shown },
            Some(_) => Counts { waiting: 0, also: going.len() + gone.len(), ..shown },
            None => shown,
        };
        Self {
            w: viewer.w,
            head: open.head,
            now_ms: viewer.now.ms(),
            total: frame.total,
            hero: counted(&words.waits, counts.waiting, counts.more),
            also: counted(&words.also, counts.also, counts.more),
            sift: frame.form,
            sifted: !frame.sift.is_all(),
            kept: frame.sift.address(),
            only: frame.sift,
            waiting,
            going,
            gone,
            closed: cards(&closed.iter().collect::<Vec<_>>(), runs, viewer, JUST_NOW),
            more: open.next,
            paged: frame.paged,
        }
    }
}

/// A sentence with a number.
fn counted(sentences: &Count, n: usize, more: bool) -> Html {
    let said = format!("{n}{}", if more { "+" } else { "" });
    Html::phrase(sentences.of(n), &[("n", Html::text(&said))])
}

/// The same asks with those of one run beside each other, where the most urgent of them stands.
fn by_run(asks: Vec<&Ask>) -> Vec<&Ask> {
    let mut groups: Vec<(RunId, Vec<&Ask>)> = Vec::new();
    let mut places: HashMap<RunId, usize> = HashMap::new();
    for ask in asks {
        let run_id = ask.ask.envelope.run_id;
        let place = *places.entry(run_id).or_insert_with(|| {
            groups.push((run_id, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(ask);
    }
    groups.into_iter().flat_map(|(_, asks)| asks).collect()
}

fn cards(asks: &[&Ask], runs: &HashMap<RunId, Run>, viewer: &Viewer<'_>, whole: usize) -> Vec<Card> {
    let mut cards: Vec<Card> = Vec::with_capacity(asks.len());
    for (at, ask) in asks.iter().enumerate() {
        let detail = if at < whole { Detail::List } else { Detail::Stub };
        let run = runs.get(&ask.ask.envelope.run_id);
        let mut card = Card::new(ask, run, viewer, detail, &Typed::default(), None);
        card.again = card.shelf != Shelf::Closed && cards.last().is_some_and(|last| last.run_id == card.run_id);
        cards.push(card);
    }
    cards
}

/// The asks that were closed last, the newest first.
async fn just_closed(store: &Store, viewer: &Identity, now: Timestamp, head: u64) -> Result<Vec<Ask>, StoreError> {
    let query = EventsQuery {
        after: head.saturating_sub(LOOK_BACK),
        limit: 1000,
        event_type: Some(EventType::QuestionAnswered),
        ..EventsQuery::default()
    };
    let batch = store.events(viewer, &query).await?;
    let recent = batch
        .records
        .iter()
        .rev()
        .filter(|record| record.seq <= head && record.event.envelope.ts.plus_ms(JUST_NOW_MS) >= now)
        .take(JUST_NOW);
    let asks = try_join_all(recent.map(|record| store.ask(viewer, record.event.content.ask_id()))).await?;
    Ok(asks.into_iter().flatten().collect())
}

/// The runs of these asks.
pub(crate) async fn runs_of<'a>(
    store: &Store,
    viewer: &Identity,
    asks: impl Iterator<Item = &'a Ask>,
) -> Result<HashMap<RunId, Run>, StoreError> {
    let mut ids: Vec<RunId> = asks.map(|ask| ask.ask.envelope.run_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let runs = try_join_all(ids.into_iter().map(|run_id| store.run(viewer, run_id))).await?;
    Ok(runs.into_iter().flatten().map(|run| (run.run_id, run)).collect())
}
