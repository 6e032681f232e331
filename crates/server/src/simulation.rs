//! What a simulation does to a server that is otherwise real: it moves the clock, breaks connections, refuses writes and
//! loses replies. A server that people answer on has none of it: no route, no header, no branch that is taken.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use chips_protocol::problem::ProblemCode;
use chips_store::Clock;
use chips_store::clock::TimeAhead;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::http::ApiError;

/// A header of every reply, so that nobody takes a simulation for the real thing.
const MARK: HeaderName = HeaderName::from_static("chips-simulation");
/// What a writer is told to wait where a write is refused, in seconds.
const RETRY_S: u64 = 1;

/// What is told of a simulation.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Something is being played at this moment: what is told is about to change.
    pub busy: bool,
    /// What `GET /simulate` says.
    pub told: Map<String, Value>,
}

/// The hold that a simulation has on its server. Clones are the same one; it stays over a restart of the server.
#[derive(Debug, Clone)]
pub struct Simulation(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    time: TimeAhead,
    /// How far ahead the clock was when nothing that was due was left.
    fired: watch::Sender<i64>,
    /// Cancelled to cut every connection that there is; another one takes its place.
    cut: Mutex<CancellationToken>,
    turned_away: AtomicU32,
    refused: AtomicU32,
    lost: AtomicU32,
    report: watch::Sender<Report>,
}

impl Simulation {
    /// A simulation that moves these clocks. The server's store must run by them.
    pub fn new(time: TimeAhead) -> Self {
        Self(Arc::new(Inner {
            time,
            fired: watch::Sender::new(0),
            cut: Mutex::default(),
            turned_away: AtomicU32::new(0),
            refused: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            report: watch::Sender::new(Report::default()),
        }))
    }

    /// Lets this much time pass at once, and waits until every deadline that it brought about has fired.
    pub async fn advance(&self, by: Duration) {
        let mut fired = self.0.fired.subscribe();
        let ahead = self.0.time.advance(by);
        // The sender is in `self`: this can't fail.
        let _ = fired.wait_for(|fired| *fired >= ahead).await;
    }

    /// How far ahead the clock was moved.
    pub fn ahead(&self) -> Duration {
        Duration::from_millis(self.0.time.ms().unsigned_abs())
    }

    /// Breaks every connection that there is, and as many again as they come.
    pub fn cut(&self, again: u32) {
        self.0.turned_away.store(again, Ordering::SeqCst);
        let mut cut = self.0.cut.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *cut).cancel();
    }

    /// Has the next writes refused with 503, before they are read.
    pub fn refuse_writes(&self, count: u32) {
        self.0.refused.store(count, Ordering::SeqCst);
    }

    /// Has the connection break instead of the reply to the next writes, which are carried out.
    pub fn lose_replies(&self, count: u32) {
        self.0.lost.store(count, Ordering::SeqCst);
    }

    /// How many replies are still to be lost, and how many writes to be refused.
    pub fn left(&self) -> (u32, u32) {
        (self.0.lost.load(Ordering::SeqCst), self.0.refused.load(Ordering::SeqCst))
    }

    /// Changes what is told.
    pub fn report(&self, change: impl FnOnce(&mut Report)) {
        self.0.report.send_modify(change);
    }

    /// Waits until nothing is being played, for as long as this. False where something still is.
    pub async fn idle(&self, within: Duration) -> bool {
        let mut report = self.0.report.subscribe();
        // The sender is in `self`: only the time can end the wait early.
        tokio::time::timeout(within, report.wait_for(|report| !report.busy)).await.is_ok()
    }

    /// Nothing that was due while the clock was this far ahead is left.
    pub(crate) fn has_fired(&self, ahead_ms: i64) {
        self.0.fired.send_if_modified(|fired| {
            let later = ahead_ms > *fired;
            *fired = ahead_ms.max(*fired);
            later
        });
    }

    /// What is told of it now.
    pub(crate) fn told(&self) -> Map<String, Value> {
        self.0.report.borrow().told.clone()
    }

    /// What cuts a connection that was accepted now.
    pub(crate) fn cut_off(&self) -> CancellationToken {
        self.0.cut.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a new connection is broken at once.
    pub(crate) fn turns_away(&self) -> bool {
        one_less(&self.0.turned_away)
    }

    /// The refusal of a write, where it is to be refused.
    pub(crate) fn refuses(&self) -> Option<ApiError> {
        one_less(&self.0.refused).then(|| {
            ApiError::new(ProblemCode::Unavailable, "nothing was written: the simulation's script has writes refused")
                .retry_after(RETRY_S)
        })
    }

    /// Whether the reply to a write that was carried out is to be lost.
    pub(crate) fn loses_reply(&self) -> bool {
        one_less(&self.0.lost)
    }

    /// Marks a reply, and gives it the date of Chips' clock: clients reckon with it how long is left.
    pub(crate) fn marks(&self, headers: &mut HeaderMap, clock: &Clock) {
        headers.insert(MARK, HeaderValue::from_static("true"));
        let now = UNIX_EPOCH + Duration::from_millis(clock.now().ms().unsigned_abs());
        if let Ok(date) = HeaderValue::from_str(&httpdate::fmt_http_date(now)) {
            headers.insert(header::DATE, date);
        }
    }
}

/// Takes one from a count; false where none is left.
fn one_less(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

/// Waits until a connection is to be cut; for ever outside a simulation.
pub(crate) async fn cut(cut: Option<CancellationToken>) {
    match cut {
        Some(cut) => cut.cancelled().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_used_up_once() {
        let simulation = Simulation::new(TimeAhead::default());
        assert!(!simulation.turns_away() && !simulation.loses_reply() && simulation.refuses().is_none());
        simulation.lose_replies(2);
        assert_eq!([(); 3].map(|()| simulation.loses_reply()), [true, true, false]);
    }

    #[test]
    fn a_cut_breaks_what_is_there_and_not_what_comes_after_it() {
        let simulation = Simulation::new(TimeAhead::default());
        let before = simulation.cut_off();
        simulation.cut(1);
        assert!(before.is_cancelled() && !simulation.cut_off().is_cancelled());
        assert_eq!([(); 2].map(|()| simulation.turns_away()), [true, false]);
    }

    #[tokio::test]
    async fn whoever_moves_the_clock_waits_for_what_was_due() {
        let simulation = Simulation::new(TimeAhead::default());
        let moved = simulation.advance(Duration::from_secs(3_600));
        tokio::pin!(moved);
        assert!(futures::poll!(moved.as_mut()).is_pending());
        simulation.has_fired(1);
        assert!(futures::poll!(moved.as_mut()).is_pending(), "it has fired for an earlier moment");
        simulation.has_fired(3_600_000);
        moved.await;
        assert_eq!(simulation.ahead(), Duration::from_secs(3_600));
    }
}
