//! Closing an ask, from either side.

use chips_protocol::api::Ask;
use chips_protocol::{Answer, AskId, EventType, RunId};
use serde_json::json;

use crate::ask::Written;
use crate::client::{Client, json};
use crate::error::Error;

/// Names an ask. Its run is needed too; where only the ask is known, the client looks the run up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskRef {
    ask_id: AskId,
    run_id: Option<RunId>,
}

impl From<AskId> for AskRef {
    fn from(ask_id: AskId) -> Self {
        Self { ask_id, run_id: None }
    }
}

impl From<(AskId, RunId)> for AskRef {
    fn from((ask_id, run_id): (AskId, RunId)) -> Self {
        Self { ask_id, run_id: Some(run_id) }
    }
}

impl From<&Ask> for AskRef {
    fn from(ask: &Ask) -> Self {
        (ask.ask_id, ask.ask.envelope.run_id).into()
    }
}

impl Client {
    /// Answers an ask, as a person or as the harness that asked.
    ///
    /// # Errors
    /// `already_closed` with [the event that won](Error::winning_answer), `invalid_event` where the answers don't fit
    /// the questions, `not_found`, or what [`Error`] lists.
    pub async fn answer(&self, ask: impl Into<AskRef>, answers: Vec<Answer>) -> Result<Written, Error> {
        self.close(ask.into(), answers, false).await
    }

    /// Settles an ask of this harness: it was answered in the harness's own tools.
    ///
    /// # Errors
    /// As [`Client::answer`].
    pub async fn settle(&self, ask: impl Into<AskRef>, answers: Vec<Answer>) -> Result<Written, Error> {
        self.close(ask.into(), answers, false).await
    }

    /// Closes an ask of this harness because a time-out of its own has passed, with what it took instead (or nothing).
    ///
    /// # Errors
    /// As [`Client::answer`].
    pub async fn settle_timed_out(&self, ask: impl Into<AskRef>, answers: Vec<Answer>) -> Result<Written, Error> {
        self.close(ask.into(), answers, true).await
    }

    /// Takes an ask of this harness back.
    ///
    /// # Errors
    /// As [`Client::answer`].
    pub async fn withdraw(&self, ask: impl Into<AskRef>) -> Result<Written, Error> {
        self.close(ask.into(), Vec::new(), false).await
    }

    async fn close(&self, ask: AskRef, answers: Vec<Answer>, timed_out: bool) -> Result<Written, Error> {
        let run_id = match ask.run_id {
            Some(run_id) => run_id,
            None => self.ask_state(ask.ask_id).await?.ask.envelope.run_id,
        };
        let (_, mut event) = self.envelope(EventType::QuestionAnswered, run_id, None, None).await?;
        event.insert("ask_id".to_owned(), json!(ask.ask_id));
        event.insert("answers".to_owned(), json!(answers));
        if timed_out {
            event.insert("timed_out".to_owned(), json!(true));
        }
        self.write(json(&event)).await
    }

    /// Says that this harness has acted on the answer. The first time stands.
    ///
    /// # Errors
    /// `not_found`, or what [`Error`] lists.
    pub async fn acknowledge(&self, ask_id: AskId) -> Result<Ask, Error> {
        self.post(&format!("/v1/asks/{ask_id}/ack"), None).await
    }
}
