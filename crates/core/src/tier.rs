//! How loudly people are told of an ask.

use chips_protocol::QuestionAsk;
use chips_protocol::api::Tier;

/// `active` when every question has a default, since silence costs less then; else `time_sensitive`.
pub fn tier(ask: &QuestionAsk) -> Tier {
    if ask.questions.iter().all(|question| question.default_value.is_some()) {
        Tier::Active
    } else {
        Tier::TimeSensitive
    }
}
