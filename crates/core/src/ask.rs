//! What is known of an ask and of a run, and how an event changes it.

use std::sync::Arc;

use chips_protocol::api::AskState;
use chips_protocol::{Content, Event, HarnessId, ParticipantKind, QuestionAsk, RunId, SpaceId, Timestamp};

/// What the rules need to know of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts {
    /// The run.
    pub run_id: RunId,
    /// The harness whose work it is.
    pub harness_id: HarnessId,
    /// The space it belongs to.
    pub space_id: Option<SpaceId>,
    /// Whether it has ended.
    pub ended: bool,
}

/// What the rules need to know of an ask: its `question.ask`, and the `question.answered` that closed it.
#[derive(Debug, Clone, PartialEq)]
pub struct AskFacts {
    /// The `question.ask` as stored.
    pub event: Arc<Event>,
    /// The harness that asked, itself or through an agent.
    pub harness_id: HarnessId,
    /// The winning `question.answered`, once there is one.
    pub closed_by: Option<Arc<Event>>,
}

impl AskFacts {
    /// The facts that follow from a stored `question.ask`; nothing for another event.
    pub fn opened(event: Arc<Event>, harness_id: HarnessId) -> Option<Self> {
        event.as_ask()?;
        Some(Self { event, harness_id, closed_by: None })
    }

    /// Applies a later event. The first `question.answered` of the ask closes it; everything else changes nothing.
    pub fn apply(&mut self, event: &Arc<Event>) {
        if let Content::QuestionAnswered(answered) = &event.content
            && self.closed_by.is_none()
            && answered.ask_id == self.event.content.ask_id()
        {
            self.closed_by = Some(Arc::clone(event));
        }
    }

    /// The content of the `question.ask`.
    pub fn ask(&self) -> Option<&QuestionAsk> {
        self.event.as_ask()
    }

    /// When Chips closes the ask by itself: the stored `ts` and the time-out, rounded up to the millisecond.
    pub fn deadline(&self) -> Option<Timestamp> {
        deadline(&self.event)
    }

    /// Whether the ask is open although its deadline has passed.
    pub fn overdue(&self, now: Timestamp) -> bool {
        self.closed_by.is_none() && self.deadline().is_some_and(|deadline| now >= deadline)
    }

    /// Where the ask stands.
    pub fn state(&self) -> AskState {
        state(self.closed_by.as_deref())
    }
}

/// When Chips closes the ask of a stored `question.ask` by itself; nothing where it waits until it is answered.
pub fn deadline(ask: &Event) -> Option<Timestamp> {
    Some(ask.envelope.ts.plus_ms(ask.as_ask()?.timeout_ms()?))
}

/// The state of an ask, from the event that closed it.
///
/// `timed_out` wins wherever the event says so. Without it, an event of `system` is the end of the run, which
/// withdraws; a person's answers; a harness (or agent) settles with answers and withdraws without.
pub fn state(closed_by: Option<&Event>) -> AskState {
    let Some((event, answered)) = closed_by.and_then(|event| Some((event, event.as_answered()?))) else {
        return AskState::Open;
    };
    if answered.timed_out() {
        return AskState::TimedOut;
    }
    match event.envelope.actor.kind {
        ParticipantKind::Person => AskState::Answered,
        ParticipantKind::System => AskState::Withdrawn,
        ParticipantKind::Harness | ParticipantKind::Agent if answered.answers.is_empty() => AskState::Withdrawn,
        ParticipantKind::Harness | ParticipantKind::Agent => AskState::Settled,
    }
}
