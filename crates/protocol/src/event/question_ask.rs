//! `question.ask`: one to four questions with tappable options, a default, and a time-out.

use serde::{Deserialize, Serialize};

use crate::id::AskId;
use crate::{limits, schema};

/// The content of a `question.ask`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::absent_not_null, transform = schema::default_rule)]
pub struct QuestionAsk {
    /// Minted by the harness, so a retry is the same ask.
    pub ask_id: AskId,
    /// One to four questions.
    #[serde(deserialize_with = "crate::object::each")]
    #[schemars(length(min = limits::QUESTIONS_MIN, max = limits::QUESTIONS_MAX))]
    pub questions: Vec<Question>,
    /// How long to wait for an answer, in seconds: more than 0, at most 31,536,000. Absent: until answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = limits::SECONDS), extend("exclusiveMinimum" = 0))]
    pub timeout_seconds: Option<serde_json::Number>,
    /// What the harness will do if the time-out passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_no_answer: Option<OnNoAnswer>,
}

/// One question of an ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::absent_not_null)]
pub struct Question {
    /// Stable, so answers land on the right question; unique in the ask.
    #[schemars(length(min = 1, max = limits::QUESTION_ID), regex(pattern = schema::exact()))]
    pub question_id: String,
    /// What is being asked.
    #[schemars(length(min = 1, max = limits::PROMPT), regex(pattern = schema::prose()))]
    pub prompt: String,
    /// Two to four options.
    #[serde(deserialize_with = "crate::object::each")]
    #[schemars(length(min = limits::OPTIONS_MIN, max = limits::OPTIONS_MAX))]
    pub options: Vec<QuestionOption>,
    /// Whether more than one option may be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_select: Option<bool>,
    /// Whether the person may type instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_free_text: Option<bool>,
    /// What the harness will take if nobody answers. Its presence lowers the notification tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::FREE_TEXT), regex(pattern = schema::prose()))]
    pub default_value: Option<String>,
}

/// One option of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::absent_not_null)]
pub struct QuestionOption {
    /// What comes back in `question.answered`; unique in the question.
    #[schemars(length(min = 1, max = limits::VALUE), regex(pattern = schema::exact()))]
    pub value: String,
    /// What the person taps; unique in the question, after folding.
    #[schemars(length(min = 1, max = limits::LABEL), regex(pattern = schema::exact()))]
    pub label: String,
    /// What choosing it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DESCRIPTION), regex(pattern = schema::plain()))]
    pub description: Option<String>,
}

/// What the harness will do if the time-out passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnNoAnswer {
    /// Take the default of each question that has one.
    UseDefault,
    /// Give the work up.
    Cancel,
    /// Go on without an answer.
    Continue,
}

impl OnNoAnswer {
    /// The three choices, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::UseDefault, Self::Cancel, Self::Continue];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UseDefault => "use_default",
            Self::Cancel => "cancel",
            Self::Continue => "continue",
        }
    }
}

impl QuestionAsk {
    /// The time-out in whole milliseconds, rounded up; nothing where the ask waits until it is answered.
    ///
    /// The number is bounded by validation; one that is not (a file edited by hand) is held within bounds here.
    pub fn timeout_ms(&self) -> Option<i64> {
        const LIMIT_MS: f64 = limits::SECONDS as f64 * 1000.0;
        let number = self.timeout_seconds.as_ref()?;
        if let Some(whole) = number.as_u64() {
            return Some(whole.min(u64::from(limits::SECONDS)) as i64 * 1000);
        }
        let ms = (number.as_f64()? * 1000.0).ceil();
        Some(if ms.is_finite() { ms.clamp(1.0, LIMIT_MS) as i64 } else { LIMIT_MS as i64 })
    }

    /// What happens when the time-out passes: what the harness said, else `use_default` where any question has a
    /// default, else `continue`.
    pub fn on_no_answer(&self) -> OnNoAnswer {
        self.on_no_answer.unwrap_or_else(|| {
            if self.questions.iter().any(|question| question.default_value.is_some()) {
                OnNoAnswer::UseDefault
            } else {
                OnNoAnswer::Continue
            }
        })
    }

    /// The question with this id.
    pub fn question(&self, question_id: &str) -> Option<&Question> {
        self.questions.iter().find(|question| question.question_id == question_id)
    }
}

impl Question {
    /// Whether more than one option may be chosen; absent means no.
    pub fn multi(&self) -> bool {
        self.multi_select.unwrap_or(false)
    }

    /// Whether the person may type instead; absent means no.
    pub fn free_text(&self) -> bool {
        self.allow_free_text.unwrap_or(false)
    }

    /// The option with this value.
    pub fn option(&self, value: &str) -> Option<&QuestionOption> {
        self.options.iter().find(|option| option.value == value)
    }
}
