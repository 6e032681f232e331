//! What follows from hearing of a harness: its lease is renewed, and answers that go out to it are delivered.

use std::time::Duration;

use axum::http::Method;
use chips_core::Who;
use chips_protocol::api::Ask;
use chips_protocol::{AskId, Event, RunId};
use chips_store::{Identity, LeaseOf};

use crate::state::AppState;

/// The longest time between two renewals while a request waits.
const RENEW_AT_MOST: Duration = Duration::from_secs(10);
/// The shortest: a lease that is shorter than a few of these can't be kept by waiting.
const RENEW_AT_LEAST: Duration = Duration::from_millis(200);

/// What a request of this method may note about whoever sent it. Nothing for a person, who has no leases and gets no answers
/// delivered, and nothing for HEAD, which has no effect.
#[derive(Clone)]
pub struct Heard {
    state: AppState,
    harness: Option<Identity>,
}

impl Heard {
    /// Whoever sent this request.
    pub fn of(state: &AppState, identity: &Identity, method: &Method) -> Self {
        let harness =
            (matches!(identity.sender.who, Who::Harness(_)) && method != Method::HEAD).then(|| identity.clone());
        Self { state: state.clone(), harness }
    }

    /// The request names this run or one of its asks.
    pub fn named(&self, of: LeaseOf) {
        if let Some(harness) = &self.harness {
            self.state.store.renew_lease(harness.sender, of);
        }
    }

    /// The request names what these filters name.
    pub fn filtered_by(&self, run_id: Option<RunId>, ask_id: Option<AskId>) {
        run_id.map(LeaseOf::Run).into_iter().chain(ask_id.map(LeaseOf::Ask)).for_each(|of| self.named(of));
    }

    /// The reply carries this event.
    pub fn gets(&self, event: &Event) {
        if let (Some(harness), Some(answered)) = (&self.harness, event.as_answered()) {
            self.state.store.mark_delivered(harness.sender.workspace_id, answered.ask_id);
        }
    }

    /// The reply carries this ask.
    pub fn gets_ask(&self, ask: &Ask) {
        if let (Some(answer), None) = (&ask.answer, ask.delivered_at) {
            self.gets(answer);
        }
    }

    /// How often a request that waits has to renew this lease; nothing where there is none to renew.
    pub async fn renewal(&self, of: LeaseOf) -> Option<Duration> {
        let harness = self.harness.as_ref()?;
        let store = &self.state.store;
        let run_id = match of {
            LeaseOf::Run(run_id) => run_id,
            LeaseOf::Ask(ask_id) => store.ask(harness, ask_id).await.ok()??.ask.envelope.run_id,
        };
        let seconds = store.run(harness, run_id).await.ok()??.lease_seconds?.as_f64()?;
        let third = Duration::try_from_secs_f64(seconds / 3.0).unwrap_or(RENEW_AT_MOST);
        Some(third.clamp(RENEW_AT_LEAST, RENEW_AT_MOST))
    }
}
