//! The script of a simulation: what it may say, and what is said back where it says something else.
//!
//! Everything that can be known before an ask comes is checked here, each fault with its line.

mod read;

use std::time::Duration;

pub use read::read;

/// What a script says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Done before anything is asked.
    pub start: Vec<Act>,
    /// In the order of the file.
    pub steps: Vec<Step>,
    /// Done with an ask that no step takes.
    pub otherwise: Vec<Act>,
}

impl Script {
    /// Everybody who answers in it, each once.
    pub fn people(&self) -> Vec<&str> {
        let acts = self.start.iter().chain(self.steps.iter().flat_map(|step| &step.acts)).chain(&self.otherwise);
        let mut people: Vec<_> = acts.filter_map(|act| act.deed.by()).collect();
        people.sort_unstable();
        people.dedup();
        people
    }
}

/// Which asks, how many of them, and what is done with each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The line that it begins on, from 1.
    pub line: usize,
    /// Which asks it takes.
    pub takes: Takes,
    /// How many; nothing for all that come.
    pub times: Option<u32>,
    /// What is done, one after the other.
    pub acts: Vec<Act>,
}

/// Which asks a step takes: those of which all of this holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Takes {
    /// Stands in a prompt.
    pub prompt: Option<String>,
    /// Is the id of a question.
    pub question_id: Option<String>,
    /// Stands in the title of the run.
    pub title: Option<String>,
}

/// One thing that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// The line that says so, from 1.
    pub line: usize,
    /// What.
    pub deed: Deed,
}

/// What can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// The ask is left open.
    Leave,
    /// Nobody answers: the clock is moved until the time-out passes.
    Ignore,
    /// A person answers.
    Answer(Given, String),
    /// The time-out passes, then a person answers.
    AnswerLate(Given, String),
    /// The harness takes the ask back, from somewhere else.
    Withdraw,
    /// The harness answers its own ask, from somewhere else.
    Settle(Given),
    /// The harness ends the run, from somewhere else.
    EndRun,
    /// The clock is moved.
    Advance(Duration),
    /// Every connection breaks once a stream or a wait is open, and this many more as they come.
    Cut(u32),
    /// The connection breaks instead of the replies to this many writes, which are carried out.
    LoseReplies(u32),
    /// This many writes are refused with 503.
    Unavailable(u32),
    /// The server stops and starts again, after this much real time.
    Restart(Duration),
}

impl Deed {
    /// Who answers.
    fn by(&self) -> Option<&str> {
        match self {
            Self::Answer(_, by) | Self::AnswerLate(_, by) => Some(by),
            _ => None,
        }
    }

    /// Whether it is done with an ask, and so can't be done before there is one.
    fn needs_an_ask(&self) -> bool {
        !matches!(self, Self::Advance(_) | Self::LoseReplies(_) | Self::Unavailable(_) | Self::Restart(_))
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// The same for every question that it fits.
    Each(Choice),
    /// By the questions' ids.
    ByQuestion(Vec<(String, Choice)>),
}

/// What is answered to one question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Options.
    pub picks: Vec<Pick>,
    /// Free text.
    pub text: Option<String>,
}

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// By its value.
    Value(String),
    /// By its place, from 1.
    Place(usize),
}

impl std::fmt::Display for Pick {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(value) => write!(f, "`{value}`"),
            Self::Place(place) => write!(f, "number {place}"),
        }
    }
}

/// Something that a script can't say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it, and what to say instead.
    pub message: String,
}

#[cfg(test)]
mod tests;
