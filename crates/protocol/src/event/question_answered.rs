//! `question.answered`: the chosen options or free text, or a note that the time-out passed.

use serde::{Deserialize, Serialize};

use crate::id::{AskId, ParticipantId};
use crate::time::Timestamp;
use crate::{limits, schema};

/// The content of a stored `question.answered`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::absent_not_null)]
pub struct QuestionAnswered {
    /// The ask that this closes.
    pub ask_id: AskId,
    /// One entry per question that was answered.
    #[serde(deserialize_with = "crate::object::each")]
    #[schemars(length(max = limits::QUESTIONS_MAX))]
    pub answers: Vec<Answer>,
    /// Who answered, or `system` on a time-out. Filled in by Chips from the credential that sent it.
    pub answered_by: ParticipantId,
    /// When it was answered. Stamped by Chips.
    pub answered_at: Timestamp,
    /// True when the default was taken, or the time-out passed, rather than a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::absent_not_null)]
pub struct Answer {
    /// The question that this answers.
    #[schemars(length(min = 1, max = limits::QUESTION_ID), regex(pattern = schema::exact()))]
    pub question_id: String,
    /// The chosen option values.
    #[schemars(length(max = limits::OPTIONS_MAX), extend("uniqueItems" = true), inner(length(min = 1, max = limits::VALUE), regex(pattern = schema::exact())))]
    pub values: Vec<String>,
    /// What the person typed instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::FREE_TEXT), regex(pattern = schema::prose()))]
    pub free_text: Option<String>,
}

/// What a client's write of a `question.answered` says: without who and when, which Chips fills in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerDraft {
    /// The ask to close.
    pub ask_id: AskId,
    /// One entry per question that is answered; empty withdraws (a harness only).
    pub answers: Vec<Answer>,
    /// The harness took its default because nobody answered it. Absent means false.
    pub timed_out: bool,
}

impl QuestionAnswered {
    /// Whether the time-out passed rather than somebody choosing; absent means no.
    pub fn timed_out(&self) -> bool {
        self.timed_out.unwrap_or(false)
    }
}
