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
use crate::state::AppState;
use crate::words::{Count, Words};

/// Open questions on one page.
const PAGE: usize = 200;
/// Pages behind the first whose questions are counted. Whoever has more of them is told so.
const COUNTED: usize = 9;
/// Whole cards on the first shelf; further down a card fills itself when it comes into view.
const WHOLE_FIRST: usize = 12;
/// Whole cards on each other shelf.
const WHOLE_OTHER: usize = 6;
/// Bytes that all cards of a page may take together, so that the page stays under 300 KB: cards that would take more of it
/// than is left fill themselves when they come into view.
const ROOM: usize = 270_000;
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
    /// How many wait and how many do not, of what is sifted, whichever page they are on.
    waits: usize,
    others: usize,
    /// There are more than were counted.
    uncounted: bool,
    sift: Option<SiftForm>,
    sifted: bool,
    /// What keeps the sifting on the next page.
    kept: String,
    only: Sift,
    waiting: Vec<Html>,
    going: Vec<Html>,
    gone: Vec<Html>,
    closed: Vec<Html>,
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
    let sifted = AsksQuery { space_id: sift.space, harness_id: sift.harness, ..every.clone() };
    // The list is as old as its head says: what was closed after it is left to the stream.
    let mut open = store.asks(identity, &AsksQuery { before, ..sifted.clone() }).await?;
    if sift.unreadable {
        (open.asks, open.next) = (Vec::new(), None);
    }
    // Further down the list, its head still says how many there are; those who ask, and how many there are in all, stand
    // beside what is sifted.
    let top = if paged && !sift.unreadable { Some(store.asks(identity, &sifted).await?) } else { None };
    let all = if sift.is_all() { None } else { Some(store.asks(identity, &every).await?) };
    let counts = count(store, identity, &sifted, top.as_ref().unwrap_or(&open)).await?;
    let total = match &all {
        None => counts.total(),
        Some(all) => count(store, identity, &every, all).await?.total(),
    };
    let closed = if paged || sift.part.is_some() {
        Vec::new()
    } else {
        just_closed(store, identity, person.visit.now, open.head).await?
    };
    let others = [&top, &all].into_iter().flatten().flat_map(|page| &page.asks);
    let runs = runs_of(store, identity, open.asks.iter().chain(&closed).chain(others)).await?;
    let spaces = store.me(identity).await?.spaces;
    let viewer = person.viewer_of(store, &closed).await?;
    let askers = askers_of(&all.as_ref().or(top.as_ref()).unwrap_or(&open).asks, &runs);
    // Where there is nothing to tell apart there is nothing to choose.
    let form = (!sift.is_all() || spaces.len() > 1 || askers.len() > 1)
        .then(|| SiftForm::new(viewer.w, sift, &spaces, askers, (!sift.is_all()).then_some("/")));
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

/// How many questions of a list stand on each shelf.
#[derive(Default)]
struct Counts {
    waiting: usize,
    going: usize,
    gone: usize,
    /// There are more than were counted.
    more: bool,
}

impl Counts {
    fn add(&mut self, page: &AsksPage) {
        for ask in &page.asks {
            match Shelf::of(ask) {
                Shelf::Waiting => self.waiting += 1,
                Shelf::Going => self.going += 1,
                Shelf::Gone | Shelf::Closed => self.gone += 1,
            }
        }
        self.more = page.next.is_some();
    }

    /// How many there are, as people are told.
    fn total(&self) -> String {
        format!("{}{}", self.waiting + self.going + self.gone, if self.more { "+" } else { "" })
    }
}

/// Counts a list of which the first page is known already.
async fn count(store: &Store, identity: &Identity, query: &AsksQuery, first: &AsksPage) -> Result<Counts, StoreError> {
    let mut counts = Counts::default();
    counts.add(first);
    let mut next: Option<Cursor> = first.next.as_deref().and_then(|cursor| cursor.parse().ok());
    for _ in 0..COUNTED {
        let Some(before) = next.take() else { break };
        let page = store.asks(identity, &AsksQuery { before: Some(before), ..query.clone() }).await?;
        counts.add(&page);
        next = page.next.and_then(|cursor| cursor.parse().ok());
    }
    Ok(counts)
}

impl List {
    /// The list of these open asks, in the order of the store, and of those that were closed just now.
    fn new(viewer: &Viewer<'_>, open: AsksPage, closed: &[Ask], runs: &HashMap<RunId, Run>, frame: Frame) -> Self {
        let mut shelves: HashMap<Shelf, Vec<&Ask>> = HashMap::new();
        for ask in open.asks.iter().filter(|ask| frame.sift.shows(Shelf::of(ask))) {
            shelves.entry(Shelf::of(ask)).or_default().push(ask);
        }
        let mut shelf = |shelf: Shelf| {
            let asks = shelves.remove(&shelf).unwrap_or_default();
            Cards::new(by_run(asks), runs, viewer)
        };
        let (mut waiting, mut going, mut gone) = (shelf(Shelf::Waiting), shelf(Shelf::Going), shelf(Shelf::Gone));
        let closed = Cards::new(closed.iter().collect(), runs, viewer);
        let taken: usize = [&waiting, &going, &gone, &closed].iter().map(|cards| cards.bytes()).sum();
        let mut room = ROOM.saturating_sub(taken);
        waiting.fill(WHOLE_FIRST, &mut room);
        going.fill(WHOLE_OTHER, &mut room);
        gone.fill(WHOLE_OTHER, &mut room);
        let words = &viewer.w.script;
        let Counts { waiting: waits, going: goes, gone: lost, more } = frame.counts;
        let (waits, others) = match frame.sift.part {
            None => (waits, goes + lost),
            Some(Shelf::Waiting) => (waits, 0),
            Some(Shelf::Going) => (0, goes),
            Some(_) => (0, lost),
        };
        Self {
            w: viewer.w,
            head: open.head,
            now_ms: viewer.now.ms(),
            total: frame.total,
            hero: counted(&words.waits, waits, more),
            also: counted(&words.also, others, more),
            waits,
            others,
            uncounted: more,
            sift: frame.form,
            sifted: !frame.sift.is_all(),
            kept: frame.sift.address(),
            only: frame.sift,
            waiting: waiting.html,
            going: going.html,
            gone: gone.html,
            closed: closed.html,
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

/// The cards of a shelf, as they stand in the page.
struct Cards<'a> {
    asks: Vec<&'a Ask>,
    runs: &'a HashMap<RunId, Run>,
    viewer: &'a Viewer<'a>,
    html: Vec<Html>,
}

impl<'a> Cards<'a> {
    /// The cards, none of them whole that is open.
    fn new(asks: Vec<&'a Ask>, runs: &'a HashMap<RunId, Run>, viewer: &'a Viewer<'a>) -> Self {
        let mut cards = Self { asks, runs, viewer, html: Vec::new() };
        cards.html = (0..cards.asks.len()).map(|at| cards.card(at, Detail::Stub)).collect();
        cards
    }

    /// Makes the first of them whole, as far as there is room.
    fn fill(&mut self, whole: usize, room: &mut usize) {
        for at in 0..whole.min(self.asks.len()) {
            let card = self.card(at, Detail::List);
            let Some(left) = (*room + self.html[at].bytes()).checked_sub(card.bytes()) else { continue };
            *room = left;
            self.html[at] = card;
        }
    }

    fn card(&self, at: usize, detail: Detail) -> Html {
        let ask = self.asks[at];
        let run_id = ask.ask.envelope.run_id;
        let mut card = Card::new(ask, self.runs.get(&run_id), self.viewer, detail, &Typed::default(), None);
        let before = at.checked_sub(1).and_then(|at| self.asks.get(at));
        card.again = card.shelf != Shelf::Closed && before.is_some_and(|before| before.ask.envelope.run_id == run_id);
        Html::rendered(&card)
    }

    fn bytes(&self) -> usize {
        self.html.iter().map(Html::bytes).sum()
    }
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
