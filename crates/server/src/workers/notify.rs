//! Tells people outside the inbox, and harnesses by webhook: plans from the log what is to be said, sends what is due,
//! and records what the other side made of it.

use std::time::Duration;

use chips_core::notify::Kind;
use chips_store::{Notice, WriteError};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::watch;

use crate::state::AppState;

/// Messages under way at the same time, at most one for each endpoint.
const AT_ONCE: usize = 64;
/// How long to wait after the store could not be written.
const RETRY: Duration = Duration::from_secs(2);
/// How long messages under way may take once the server stops.
const DRAIN: Duration = Duration::from_secs(3);
/// The longest sleep by a clock that is moved by hand: nobody says when it is.
const LONGEST_SLEEP_BY_HAND: Duration = Duration::from_millis(50);
/// The longest sleep otherwise: a machine that was asleep is noticed in good time.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// Plans and sends until the server stops.
pub async fn run(state: AppState) {
    let mut appended = state.store.appended();
    let mut access = state.store.access_changes();
    let longest = if state.store.clock().is_manual() { LONGEST_SLEEP_BY_HAND } else { LONGEST_SLEEP };
    let mut under_way = FuturesUnordered::new();
    loop {
        let next = match round(&state, AT_ONCE - under_way.len()).await {
            Ok((notices, next)) => {
                let more = !notices.is_empty();
                notices.into_iter().for_each(|notice| under_way.push(send(&state, notice)));
                if more { Duration::ZERO } else { next.min(longest) }
            }
            Err(WriteError::Failed) => break,
            Err(error) => {
                tracing::warn!(%error, "what is to be told could not be planned; it is tried again");
                RETRY
            }
        };
        tokio::select! {
            () = state.stopping.cancelled() => break,
            // The next round looks for itself what has changed.
            changed = changed(&mut appended, &mut access) => if !changed { break },
            Some(()) = under_way.next() => {}
            () = tokio::time::sleep(next), if under_way.len() < AT_ONCE => {}
        }
    }
    // Whatever is not over by then is sent again after the next start.
    let rest = async { while under_way.next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN, rest).await;
}

/// Something was appended, or administration changed something. False where the store is gone.
async fn changed(appended: &mut watch::Receiver<u64>, access: &mut watch::Receiver<u64>) -> bool {
    tokio::select! {
        changed = appended.changed() => changed.is_ok(),
        changed = access.changed() => changed.is_ok(),
    }
}

/// Plans, claims at most so many messages, and tells how long it is until the next one is due.
async fn round(state: &AppState, room: usize) -> Result<(Vec<Notice>, Duration), WriteError> {
    let store = &state.store;
    store.plan_notices(&state.presence.in_sight()).await?;
    let unread =
        |error: chips_store::StoreError| WriteError::Unavailable { reason: error.to_string(), retry_after_s: 2 };
    let Some(due) = store.next_notice().await.map_err(unread)? else { return Ok((Vec::new(), LONGEST_SLEEP)) };
    let wait = due.ms().saturating_sub(store.clock().now().ms());
    if wait > 0 || room == 0 {
        return Ok((Vec::new(), Duration::from_millis(wait.max(0).unsigned_abs())));
    }
    let notices = store.claim_notices(room).await?;
    // Where all that is due waits for its endpoint, the end of a send wakes the loop.
    Ok((notices, RETRY))
}

async fn send(state: &AppState, notice: Notice) {
    let outcome = state.channels.send(&notice, &state.config.base_url()).await;
    state.metrics.told(notice.endpoint.channel, &outcome);
    // Neither where it went nor what the other side said: both can hold what only the person may know.
    tracing::info!(
        ask_id = %notice.ask.ask_id, channel = %notice.endpoint.channel, endpoint = notice.endpoint.endpoint_id,
        kind = notice.kind.as_str(), tries = notice.tries + 1, outcome = outcome.as_str(), "told"
    );
    if notice.kind == Kind::Answered && outcome.is_accepted() {
        state.store.mark_delivered(notice.workspace_id, notice.ask.ask_id);
    }
    // Not random for secrecy, only different from one message to the next.
    let jitter = f64::from(notice.no.wrapping_mul(0x9e37_79b9).rem_euclid(1000) as u16) / 1000.0;
    // The claim passes to the next sender where this can't be written.
    if let Err(error) = state.store.record_attempt(&notice, outcome, jitter).await {
        tracing::warn!(%error, ask_id = %notice.ask.ask_id, "what became of a message could not be recorded");
    }
}
