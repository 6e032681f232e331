//! The stream of events: it takes a wake-up, which carries no data, and reads the log after its last `seq`. Nothing falls
//! between the backlog and the live end, and a slow reader needs no buffer: nothing is read before the connection
//! has room for it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, header};
use bytes::{BufMut, Bytes, BytesMut};
use chips_store::{EventsQuery, LeaseOf, Record};
use futures::Stream;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::api::Heard;
use crate::auth::Caller;
use crate::http::{Doubts, Peer};
use crate::metrics::Counted;
use crate::state::AppState;

/// The headers of a stream.
pub const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
];

/// What a stream begins with: when to come back after a cut, in milliseconds.
const BEGINNING: &[u8] = b"retry: 1000\n\n";
/// What keeps proxies from taking a quiet stream for a dead one.
const COMMENT: &[u8] = b":\n\n";
/// Bytes after which a piece of the stream goes out, though there is more.
const PIECE: usize = 32 * 1024;
/// A credential can end by itself, without anybody's doing: it is looked up again every so many comments.
const COMMENTS_A_LOOK: u32 = 4;

/// A reader of the log that stays.
pub struct Follow {
    state: AppState,
    caller: Caller,
    heard: Heard,
    query: EventsQuery,
    head: watch::Receiver<u64>,
    access: watch::Receiver<u64>,
    read: VecDeque<Arc<Record>>,
    comments: Interval,
    commented: u32,
    renewal: Option<(Interval, LeaseOf)>,
    doubts: Doubts,
    begun: bool,
    /// The request's: what goes out does so after it was answered.
    span: tracing::Span,
    _counted: Counted,
}

/// Why a stream has something to do.
enum Wake {
    Stop,
    Head,
    Access,
    Comment,
    Doubt,
    Renew,
}

impl Follow {
    /// Follows the log from `query.after`. `head` was taken before that was decided.
    pub(crate) async fn new(
        state: AppState,
        caller: Caller,
        heard: Heard,
        query: EventsQuery,
        head: watch::Receiver<u64>,
        peer: Option<Peer>,
    ) -> Self {
        let of = query.run_id.map(LeaseOf::Run).or(query.ask_id.map(LeaseOf::Ask));
        let renewal = match of {
            Some(of) => heard.renewal(of).await.map(|every| (ticks(every), of)),
            None => None,
        };
        Self {
            access: state.store.access_changes(),
            comments: ticks(state.config.limits.comment),
            commented: 0,
            _counted: state.metrics.stream(),
            read: VecDeque::new(),
            doubts: Doubts::about(peer),
            begun: false,
            span: tracing::Span::current(),
            state,
            caller,
            heard,
            query,
            head,
            renewal,
        }
    }

    /// The stream's bytes, made as they are asked for.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        futures::stream::unfold(self, |mut follow| async {
            let piece = follow.next().await?;
            Some((Ok(piece), follow))
        })
    }

    /// The next piece; nothing once the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.begun {
            self.begun = true;
            return Some(Bytes::from_static(BEGINNING));
        }
        loop {
            if self.state.stopping.is_cancelled() {
                return None;
            }
            // Before anything goes out: whoever lost the right to see it since it was read does not get it.
            if self.access.has_changed().unwrap_or(true) && !self.look_up().await {
                return None;
            }
            if let Some(piece) = self.piece() {
                return Some(piece);
            }
            if self.query.after < *self.head.borrow_and_update() {
                match self.state.store.events(&self.caller.identity, &self.query).await {
                    // It fell behind what is kept. The client resumes, and is told so with 410.
                    Ok(batch) if batch.kept_from > self.query.after + 1 => return None,
                    // A read always gets on; one that did not is waited after rather than repeated at once.
                    Ok(batch) if batch.through > self.query.after => {
                        self.query.after = batch.through;
                        self.read = batch.records.into();
                        continue;
                    }
                    Ok(_) => {}
                    // The client comes back and resumes, or learns then what is wrong.
                    Err(error) => {
                        tracing::error!(parent: &self.span, %error, "a stream ends");
                        return None;
                    }
                }
            }
            match self.wake().await {
                Wake::Stop => return None,
                Wake::Head => {}
                Wake::Access => {
                    if !self.look_up().await {
                        return None;
                    }
                }
                Wake::Comment => {
                    self.commented += 1;
                    if self.commented.is_multiple_of(COMMENTS_A_LOOK) && !self.look_up().await {
                        return None;
                    }
                    return Some(Bytes::from_static(COMMENT));
                }
                Wake::Doubt => return Some(Bytes::from_static(COMMENT)),
                Wake::Renew => {
                    if let Some((_, of)) = self.renewal {
                        self.heard.named(of);
                    }
                }
            }
        }
    }

    async fn wake(&mut self) -> Wake {
        let Self { state, head, access, comments, renewal, doubts, .. } = self;
        let renew = async {
            match renewal {
                Some((ticks, _)) => drop(ticks.tick().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = state.stopping.cancelled() => Wake::Stop,
            // The sender is gone with the store.
            changed = head.changed() => if changed.is_ok() { Wake::Head } else { Wake::Stop },
            changed = access.changed() => if changed.is_ok() { Wake::Access } else { Wake::Stop },
            _ = comments.tick() => Wake::Comment,
            () = renew => Wake::Renew,
            () = doubts.arise() => Wake::Doubt,
        }
    }

    /// Looks the credential up again, and forgets what was read for it. False where it is gone.
    async fn look_up(&mut self) -> bool {
        self.access.mark_unchanged();
        if let Some(next) = self.read.front() {
            self.query.after = next.seq - 1;
            self.read.clear();
        }
        match self.caller.credential.identity(&self.state).await {
            Ok(Some(identity)) => {
                self.caller.identity = identity;
                true
            }
            Ok(None) => false,
            Err(error) => {
                tracing::error!(parent: &self.span, %error, "a stream ends");
                false
            }
        }
    }

    /// What was read and has not gone out, up to a handful.
    fn piece(&mut self) -> Option<Bytes> {
        let mut text = BytesMut::new();
        while text.len() < PIECE
            && let Some(record) = self.read.pop_front()
        {
            frame(&mut text, &record);
            self.heard.gets(&record.event);
        }
        (!text.is_empty()).then(|| text.freeze())
    }
}

/// Ticks that begin one period from now and never come in a burst.
fn ticks(every: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// One event as Server-Sent Events have it. The JSON stands on one line: JSON escapes every line break within a text.
fn frame(text: &mut BytesMut, record: &Record) {
    text.reserve(record.json.len() + 64);
    text.put_slice(b"id: ");
    text.put_slice(record.seq.to_string().as_bytes());
    text.put_slice(b"\nevent: ");
    text.put_slice(record.event.content.event_type().as_str().as_bytes());
    text.put_slice(b"\ndata: ");
    text.put_slice(&record.json);
    text.put_slice(b"\n\n");
}
