//! When a write says the same as one that is in the log (CONTRACT: replay).
//!
//! Equal means: in all but `idempotency_key`, `seq`, for an ask also `id`, and what Chips writes. Absent equals
//! false for booleans, numbers compare by value, strings byte for byte; the order of keys has no say because the
//! typed forms are compared. Where texts of the stored event were erased, each of these is equal to any: what it was is
//! nowhere, and whoever repeats a write must get the stored event and not a conflict.

use chips_protocol::{
    Answer, Content, Draft, DraftContent, Event, Participant, Question, QuestionAsk, QuestionOption, RunId,
};

use crate::erase::says_erased;

/// How texts of a stored event compare with those of a write.
#[derive(Clone, Copy)]
struct Texts {
    /// Texts of the event were erased.
    erased: bool,
}

/// Whether the draft says the same as the stored event, the event `id` included. `erased`: texts of the stored one were.
pub fn same_event(stored: &Event, draft: &Draft, erased: bool) -> bool {
    stored.envelope.id == draft.id && !differs(stored, draft, erased)
}

/// Whether a write that replays a key says something else than the event it replays. `erased`: texts of the stored one were.
pub fn differs(stored: &Event, draft: &Draft, erased: bool) -> bool {
    let texts = Texts { erased };
    let envelope = &stored.envelope;
    let placed = envelope.workspace_id == draft.workspace_id
        && envelope.run_id == draft.run_id
        // Chips fills a space in that was left out, so leaving it out again is no difference.
        && draft.space_id.is_none_or(|space| envelope.space_id == Some(space))
        && same_actor(stored, draft.actor);
    let same = match (&stored.content, &draft.content) {
        (Content::QuestionAsk(ask), DraftContent::QuestionAsk(again)) => {
            ask.ask_id == again.ask_id && texts.same_questions(ask, again)
        }
        (Content::QuestionAnswered(answered), DraftContent::QuestionAnswered(again)) => {
            envelope.id == draft.id
                && answered.ask_id == again.ask_id
                && texts.same_answers(&answered.answers, &again.answers)
                && answered.timed_out() == again.timed_out
        }
        _ => false,
    };
    !(placed && same)
}

/// Whether an ask is the stored one again: equal questions, time-out, `on_no_answer` and run. `erased`: texts of the stored
/// one were.
pub fn same_ask(stored: &Event, ask: &QuestionAsk, run_id: RunId, erased: bool) -> bool {
    let texts = Texts { erased };
    stored.envelope.run_id == run_id && stored.as_ask().is_some_and(|first| texts.same_questions(first, ask))
}

fn same_actor(stored: &Event, actor: Participant) -> bool {
    let written = &stored.envelope.actor;
    written.kind == actor.kind() && written.id == actor.id()
}

/// Whether each of the first is the same as that of the others in its place, and there are as many.
fn each<T>(first: &[T], again: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    first.len() == again.len() && first.iter().zip(again).all(|(one, two)| same(one, two))
}

impl Texts {
    fn same(self, first: &str, again: &str) -> bool {
        first == again || (self.erased && says_erased(first))
    }

    fn same_optional(self, first: Option<&String>, again: Option<&String>) -> bool {
        match (first, again) {
            (Some(first), Some(again)) => self.same(first, again),
            (None, None) => true,
            _ => false,
        }
    }

    fn same_answers(self, first: &[Answer], again: &[Answer]) -> bool {
        each(first, again, |one, two| {
            self.same(&one.question_id, &two.question_id)
                && each(&one.values, &two.values, |one, two| self.same(one, two))
                && self.same_optional(one.free_text.as_ref(), two.free_text.as_ref())
        })
    }

    fn same_options(self, first: &[QuestionOption], again: &[QuestionOption]) -> bool {
        each(first, again, |one, two| {
            self.same(&one.value, &two.value)
                && self.same(&one.label, &two.label)
                && self.same_optional(one.description.as_ref(), two.description.as_ref())
        })
    }

    fn same_questions(self, first: &QuestionAsk, again: &QuestionAsk) -> bool {
        let number = |ask: &QuestionAsk| ask.timeout_seconds.as_ref().and_then(serde_json::Number::as_f64);
        let question = |one: &Question, two: &Question| {
            self.same(&one.question_id, &two.question_id)
                && self.same(&one.prompt, &two.prompt)
                && self.same_options(&one.options, &two.options)
                && one.multi() == two.multi()
                && one.free_text() == two.free_text()
                && self.same_optional(one.default_value.as_ref(), two.default_value.as_ref())
        };
        first.on_no_answer == again.on_no_answer
            && number(first) == number(again)
            && each(&first.questions, &again.questions, question)
    }
}
