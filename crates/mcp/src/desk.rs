//! What the tools need of Chips.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chips_protocol::api::{Ask, AskState, Run};
use chips_protocol::problem::Problem;
use chips_protocol::{AskId, OnNoAnswer, Question, QuestionAsk};
use serde_json::Number;

use crate::memory::Handed;

/// The side of Chips where one conversation with a model asks.
pub trait Desk: Send + Sync + 'static {
    /// What tells this conversation from others, so that two calls of it with the same questions wait for each other.
    fn conversation(&self) -> u64;

    /// The ask of this conversation, if there is one, that [`Asking::is`] this one, in a run of its title.
    fn find(&self, asking: &Asking) -> impl Future<Output = Result<Option<Ask>, Trouble>> + Send;

    /// Asks anew, in the run that belongs to this title.
    fn ask(&self, asking: &Asking) -> impl Future<Output = Result<Ask, Trouble>> + Send;

    /// The ask as soon as it is closed, or as it stands once this time is up or Chips stops.
    fn wait(&self, ask_id: AskId, slice: Duration) -> impl Future<Output = Result<Ask, Trouble>> + Send;

    /// Takes the question back. One that was closed already comes back as it was closed.
    fn withdraw(&self, ask_id: AskId) -> impl Future<Output = Result<Ask, Trouble>> + Send;

    /// Notes that the outcome of this ask has gone out to the model.
    fn handed_over(&self, ask_id: AskId) -> impl Future<Output = ()> + Send;
}

/// Questions that a model wants answered; they keep the contract.
#[derive(Debug, Clone)]
pub struct Asking {
    /// What people call the work that the questions belong to, where the model says so.
    pub title: Option<String>,
    /// One to four.
    pub questions: Vec<Question>,
    /// How long to wait for an answer; for ever where it is left out.
    pub timeout_seconds: Option<Number>,
    /// What happens then.
    pub on_no_answer: Option<OnNoAnswer>,
    pub(crate) handed: Arc<Handed>,
}

impl Asking {
    /// Whether an ask is this very one, asked before: it is open, or it was closed and the model has not been told.
    ///
    /// The questions count, and what was said about silence: another time-out or another policy is another ask, so that
    /// none is dropped without a word. The title counts too; the run has it, see [`Asking::is_titled`].
    pub fn is(&self, ask: &Ask) -> bool {
        let wanted =
            ask.state == AskState::Open || (ask.acknowledged_at.is_none() && !self.handed.contains(ask.ask_id));
        wanted
            && ask.ask.as_ask().is_some_and(|asked| same(&asked.questions, &self.questions) && self.waits_like(asked))
    }

    /// Whether a run has the title of these questions; `unnamed` is what a run is called where the model names none.
    pub fn is_titled(&self, run: &Run, unnamed: Option<&str>) -> bool {
        self.title.as_deref().or(unnamed) == run.title.as_deref()
    }

    /// Whether an ask of the same questions has the same time-out, however its number is written, and the same policy.
    fn waits_like(&self, asked: &QuestionAsk) -> bool {
        let seconds = |number: &Option<Number>| number.as_ref().and_then(Number::as_f64).map(f64::to_bits);
        let wished = QuestionAsk { on_no_answer: self.on_no_answer, ..asked.clone() };
        seconds(&self.timeout_seconds) == seconds(&asked.timeout_seconds)
            && wished.on_no_answer() == asked.on_no_answer()
    }
}

/// Equal questions; what is absent counts as false.
fn same(one: &[Question], other: &[Question]) -> bool {
    let plain = |question: &Question| Question {
        multi_select: Some(question.multi()),
        allow_free_text: Some(question.free_text()),
        ..question.clone()
    };
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| plain(one) == plain(other))
}

/// Why Chips did not do what a tool is for.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// Chips refuses.
    Refused {
        /// What it says.
        problem: Box<Problem>,
        /// How long it wishes to be left alone, in seconds, where it says so.
        retry_after_s: Option<u64>,
    },
    /// Chips can't be reached, or it is not Chips that replies: where, and what happened.
    Unreachable(String),
}

#[cfg(test)]
#[path = "desk/tests.rs"]
mod tests;
