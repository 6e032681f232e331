//! Drops what is older than is kept, at the start and then every hour, in steps that leave the writer time for others.

use std::time::Duration;

use chips_store::{DropPlace, WriteError};

use crate::state::AppState;

/// Between two rounds.
const EVERY: Duration = Duration::from_secs(3_600);
/// Between two steps of a round.
const BREATH: Duration = Duration::from_millis(10);
/// How long to wait after the store could not be written.
const RETRY: Duration = Duration::from_secs(30);

/// Drops until the server stops; at once where everything is kept.
pub async fn run(state: AppState) {
    let Some(keep) = state.config.retain else { return };
    let stopping = state.stopping.clone();
    let rounds = async {
        loop {
            let pause = match round(&state, keep).await {
                Ok(0) => EVERY,
                Ok(events) => {
                    tracing::info!(events, "dropped events that are older than is kept");
                    EVERY
                }
                Err(WriteError::Failed) => return,
                Err(error) => {
                    tracing::warn!(%error, "old events could not be dropped; it is tried again");
                    RETRY
                }
            };
            tokio::time::sleep(pause).await;
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = rounds => {}
    }
}

/// Drops everything that is too old now. Gives how many events that were.
async fn round(state: &AppState, keep: Duration) -> Result<u64, WriteError> {
    let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    let before = state.store.clock().now().plus_ms(-keep_ms);
    let mut dropped = 0;
    let mut place = Some(DropPlace::default());
    while let Some(at) = place {
        let (events, next) = state.store.drop_older(before, at).await?;
        dropped += events;
        place = next;
        tokio::time::sleep(BREATH).await;
    }
    Ok(dropped)
}
