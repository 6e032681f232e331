//! Closes asks whose deadline has passed: one task, one ordered set, through the same group commit as every write.

use std::collections::BTreeSet;
use std::time::Duration;

use chips_protocol::{AskId, Timestamp, WorkspaceId};
use chips_store::{DeadlineChange, WriteError};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument;

use crate::state::AppState;

/// Closes that are under way at the same time: enough to fill a group commit, and no more than its queue likes.
const AT_ONCE: usize = 1024;
/// How long to wait before a close that could not be written is tried again, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(5);
/// The longest sleep by a clock that is moved by hand: nobody says when it is.
const LONGEST_SLEEP_BY_HAND: Duration = Duration::from_millis(50);
/// The longest sleep otherwise: a machine that was asleep is noticed in good time.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

type Due = (Timestamp, WorkspaceId, AskId);

/// Fires every deadline of the store until the server stops. Closes that are under way then are waited for.
pub async fn run(state: AppState) {
    let Some(mut changes) = state.store.deadlines() else { return };
    let clock = state.store.clock();
    let longest = if clock.is_manual() { LONGEST_SLEEP_BY_HAND } else { LONGEST_SLEEP };
    let mut waiting: BTreeSet<Due> = BTreeSet::new();
    let mut firing = FuturesUnordered::new();
    let mut pause = Pause::default();
    // In a simulation the clock is moved, and whoever moved it waits for what was due by then.
    let mut moves = clock.moves();
    let mut news = Vec::with_capacity(AT_ONCE);

    loop {
        // Before the time is looked at: what is due after a move is due by the time looked at after it.
        let moved = moves.as_mut().map(|moves| *moves.borrow_and_update());
        let now = clock.now();
        let mut next = pause.left(Instant::now());
        if next.is_none() {
            while firing.len() < AT_ONCE
                && let Some(due) = waiting.first().copied().filter(|(deadline, ..)| *deadline <= now)
            {
                waiting.remove(&due);
                firing.push(fire(&state, due));
            }
            // With all places taken, the next thing to happen is that one becomes free.
            next = waiting.first().filter(|_| firing.len() < AT_ONCE).map(|(deadline, ..)| {
                Duration::from_millis(u64::try_from(deadline.ms() - now.ms()).unwrap_or(0)).min(longest)
            });
            if let (Some(moved), Some(simulation)) = (moved, &state.config.simulation)
                && firing.is_empty()
                && changes.is_empty()
            {
                simulation.has_fired(moved);
            }
        }
        tokio::select! {
            () = state.stopping.cancelled() => break,
            count = changes.recv_many(&mut news, AT_ONCE) => {
                if count == 0 {
                    break;
                }
                for change in news.drain(..) {
                    match change {
                        DeadlineChange::Opened(deadline, workspace_id, ask_id) => {
                            waiting.insert((deadline, workspace_id, ask_id));
                        }
                        DeadlineChange::Closed(deadline, workspace_id, ask_id) => {
                            waiting.remove(&(deadline, workspace_id, ask_id));
                        }
                    }
                }
            }
            Some((due, outcome)) = firing.next() => match outcome {
                Ok(closed) => {
                    pause = Pause::default();
                    if closed {
                        let late_ms = clock.now().ms() - due.0.ms();
                        state.metrics.fired(late_ms);
                        tracing::info!(ask_id = %due.2, late_ms, "closed at its deadline");
                    }
                }
                Err(WriteError::Failed) => break,
                Err(error) => {
                    tracing::warn!(%error, ask_id = %due.2, "a deadline could not be written; it is tried again");
                    waiting.insert(due);
                    pause.longer(Instant::now());
                }
            },
            () = sleep(next) => {}
            () = moved_on(moves.as_mut()) => {}
        }
    }
    while firing.next().await.is_some() {}
}

async fn fire(state: &AppState, due: Due) -> (Due, Result<bool, WriteError>) {
    let (_, workspace_id, ask_id) = due;
    // What the writer has to say of it names the ask.
    let span = tracing::info_span!("deadline", %ask_id);
    (due, state.store.expire(workspace_id, ask_id).instrument(span).await)
}

/// Waits until the clock is moved, where it can be.
async fn moved_on(moves: Option<&mut watch::Receiver<i64>>) {
    // An error says that nobody is left to move it.
    if let Some(moves) = moves
        && moves.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

async fn sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Holds the firing back while the store can't take writes: longer each time, until one succeeds.
#[derive(Debug, Default)]
struct Pause {
    until: Option<Instant>,
    length: Duration,
}

impl Pause {
    /// How much of it is left; nothing where it is over.
    fn left(&self, now: Instant) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    /// A close could not be written. Those that failed with it, while the pause was on already, do not lengthen it.
    fn longer(&mut self, now: Instant) {
        if self.left(now).is_none() {
            self.length = (self.length * 2).clamp(RETRY_FIRST, RETRY_LONGEST);
            self.until = Some(now + self.length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_each_round_of_failures_and_not_with_each_failure() {
        let mut pause = Pause::default();
        let mut now = Instant::now();
        assert_eq!(pause.left(now), None);
        let mut lengths = Vec::new();
        for _ in 0..8 {
            pause.longer(now);
            pause.longer(now);
            lengths.push(pause.left(now).map_or(0, |left| left.as_millis()));
            now += RETRY_LONGEST;
            assert_eq!(pause.left(now), None);
        }
        assert_eq!(lengths, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }
}
