//! `/live`: tells the inbox that something happened. It carries no content: the page fetches the card, which is judged by who
//! may see it then.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use chips_core::ask::state;
use chips_protocol::api::AskState;
use chips_store::{EventsQuery, Identity, Record};
use futures::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::page::Person;
use crate::http::{Doubts, Peer};
use crate::metrics::Counted;
use crate::state::AppState;
use crate::stream::HEADERS;

/// How often it is asked whether the session still holds.
const CHECK: Duration = Duration::from_secs(3);
/// Events in one piece of the stream.
const BATCH: usize = 200;

/// Where to begin.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct LiveQuery {
    #[serde(default)]
    after: Option<u64>,
}

/// `GET /live?after=SEQ`: Server-Sent Events.
///
/// - `hello`, first: `{"now": milliseconds, "head": SEQ, "log": ID, "resync": bool}`; `resync` where the reader's place is not
///   in this log any more.
/// - `ask`, with the `seq` as its id: `{"seq", "ask_id", "state"}`.
/// - `beat`, every 15 s, beside a comment: `{"now"}`.
///
/// Resumes from `Last-Event-ID`, which wins over `after`; else from the head. Ends when the session ends, when what the
/// person may see changes, and when the server stops.
pub(crate) async fn stream(
    State(state): State<AppState>,
    person: Person,
    peer: Option<axum::Extension<Peer>>,
    headers: HeaderMap,
    query: Result<Query<LiveQuery>, QueryRejection>,
) -> Response {
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse::<u64>().ok());
    let wanted = resumed.or(query.ok().and_then(|query| query.0.after));
    if let Some(seen) = wanted {
        // Where the log can't be read up to it, the reader says so: the page begins anew.
        let _ = state.store.head_for(person.identity().sender.workspace_id, seen).await;
    }
    let reader = Reader::new(state, &person, wanted, peer.map(|axum::Extension(peer)| peer));
    let body = Body::from_stream(stream::unfold(reader, |mut reader| async move {
        let piece = reader.next().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), reader))
    }));
    (HEADERS, body).into_response()
}

/// One open stream.
struct Reader {
    state: AppState,
    identity: Identity,
    session_sha256: [u8; 32],
    head: watch::Receiver<u64>,
    access: watch::Receiver<u64>,
    seen: u64,
    /// Said first, once.
    hello: Option<Bytes>,
    beat: Interval,
    check: Interval,
    doubts: Doubts,
    _counted: Counted,
}

/// What woke the reader.
enum Woken {
    Head,
    Beat,
    Check,
    End,
}

impl Reader {
    fn new(state: AppState, person: &Person, wanted: Option<u64>, peer: Option<Peer>) -> Self {
        let identity = person.identity().clone();
        let head = state.store.head(identity.sender.workspace_id);
        let access = state.store.access_changes();
        let newest = *head.borrow();
        let resync = wanted.is_some_and(|wanted| wanted > newest);
        let hello = json!({
            "now": state.store.clock().now().ms(),
            "head": newest,
            "log": state.store.log_id(),
            "resync": resync,
        });
        Self {
            seen: wanted.unwrap_or(newest).min(newest),
            hello: Some(Bytes::from(format!("retry: 2000\nevent: hello\ndata: {hello}\n\n"))),
            session_sha256: person.signed.sha256(),
            identity,
            head,
            access,
            beat: every(state.config.limits.comment),
            check: every(CHECK),
            doubts: Doubts::about(peer),
            _counted: state.metrics.stream(),
            state,
        }
    }

    /// The next piece; nothing where the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(hello) = self.hello.take() {
            return Some(hello);
        }
        loop {
            // Before anything is read: whoever lost the right to see it since does not hear of it.
            if self.access.has_changed().unwrap_or(true) && !self.holds().await {
                return None;
            }
            if let Some(piece) = self.read().await? {
                return Some(piece);
            }
            match self.woken().await {
                Woken::Head => {}
                Woken::Beat => {
                    let now = self.state.store.clock().now().ms();
                    return Some(Bytes::from(format!(": still here\nevent: beat\ndata: {{\"now\":{now}}}\n\n")));
                }
                Woken::Check => {
                    if !self.holds().await {
                        return None;
                    }
                }
                Woken::End => return None,
            }
        }
    }

    /// Whether the session still holds and sees what it saw. Where it does not, the page comes back and begins anew.
    async fn holds(&mut self) -> bool {
        self.access.mark_unchanged();
        match self.state.store.session(self.session_sha256).await {
            Ok(session) => session.is_some_and(|session| session.identity == self.identity),
            Err(fault) => {
                tracing::error!(%fault, "a live view of the inbox ends");
                false
            }
        }
    }

    /// What the log has after the last event seen; `Some(None)` where there is nothing that the person may see.
    async fn read(&mut self) -> Option<Option<Bytes>> {
        let newest = *self.head.borrow_and_update();
        while self.seen < newest {
            let query = EventsQuery { after: self.seen, limit: BATCH, ..EventsQuery::default() };
            let batch = match self.state.store.events(&self.identity, &query).await {
                Ok(batch) => batch,
                Err(fault) => {
                    tracing::error!(%fault, "a live view of the inbox ends");
                    return None;
                }
            };
            self.seen = batch.through.max(self.seen + 1);
            if !batch.records.is_empty() {
                return Some(Some(batch.records.iter().map(|record| tell(record)).collect::<String>().into()));
            }
        }
        Some(None)
    }

    async fn woken(&mut self) -> Woken {
        let stopping = self.state.stopping.clone();
        tokio::select! {
            () = stopping.cancelled() => Woken::End,
            changed = self.head.changed() => if changed.is_ok() { Woken::Head } else { Woken::End },
            changed = self.access.changed() => if changed.is_ok() { Woken::Check } else { Woken::End },
            _ = self.check.tick() => Woken::Check,
            _ = self.beat.tick() => Woken::Beat,
            () = self.doubts.arise() => Woken::Beat,
        }
    }
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// An event in the words of the stream.
fn tell(record: &Record) -> String {
    let now = match record.event.as_answered() {
        None => AskState::Open,
        Some(_) => state(Some(&record.event)),
    };
    let data = json!({ "seq": record.seq, "ask_id": record.event.content.ask_id(), "state": now });
    format!("id: {}\nevent: ask\ndata: {data}\n\n", record.seq)
}
