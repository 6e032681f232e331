//! A server of one's own, actors that speak to it, and events to send.

mod actor;
mod app;
mod event;
#[path = "../../../../tests/postgres/home.rs"]
mod home;
mod raw;
mod receiver;
mod sse;

use std::future::Future;
use std::time::Duration;

pub use actor::{Actor, Reply, anonymous};
pub use app::{Setup, TestApp};
pub use event::{answer, ask, ask_id_of, fault, id, options, with};
pub use home::Home;
pub use raw::Raw;
pub use receiver::{Received, Receiver};
pub use sse::{Frame, Sse};

/// How long anything in a test may take before it counts as never.
pub const LIMIT: Duration = Duration::from_secs(60);

/// What this becomes, within the limit.
pub async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, what).await.expect("this took longer than the limit")
}

/// Looks again and again until this is something.
pub async fn until<T, F: Future<Output = Option<T>>>(mut look: impl FnMut() -> F) -> T {
    within(async {
        let mut ticks = tokio::time::interval(Duration::from_millis(10));
        loop {
            ticks.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    })
    .await
}
