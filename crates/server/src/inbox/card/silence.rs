//! What happens if nobody answers, in one plain sentence.

use chips_protocol::api::Ask;
use chips_protocol::{OnNoAnswer, Question, QuestionAsk};

use super::Viewer;
use crate::inbox::html::{self, Html, TimeAs};

/// Characters of a default after which it is cut in the sentence.
const WHAT: usize = 80;

/// What silence does to an open ask.
pub(crate) struct Silence {
    /// The sentence.
    pub says: Html,
    /// What it looks like: `waits`, `goes` or `gone`.
    pub kind: &'static str,
    /// How much of the time has passed: milliseconds gone, milliseconds in all.
    pub drain: Option<(i64, i64)>,
    /// The default is what silence takes, so it may be marked as running out.
    pub takes_default: bool,
}

impl Silence {
    /// What silence does to this ask.
    pub fn of(ask: &Ask, content: &QuestionAsk, viewer: &Viewer<'_>) -> Self {
        let w = viewer.w;
        let who = || ("who", Html::isolated(&ask.asker.name));
        let Some(deadline) = ask.deadline else {
            let pattern = if ask.asker_gone { w.asker_gone } else { w.waits_for_you };
            let kind = if ask.asker_gone { "gone" } else { "waits" };
            return Self { says: Html::phrase(pattern, &[who()]), kind, drain: None, takes_default: false };
        };
        let when = || ("when", html::time(deadline, viewer.now, TimeAs::Until, w.until));
        let on_no_answer = content.on_no_answer();
        let says = match (on_no_answer, content.questions.as_slice()) {
            (OnNoAnswer::UseDefault, [only]) => {
                Html::phrase(w.takes, &[who(), ("what", default(only, viewer)), when()])
            }
            (OnNoAnswer::UseDefault, _) => Html::phrase(w.takes_defaults, &[who(), when()]),
            (OnNoAnswer::Cancel, _) => Html::phrase(w.gives_up, &[who(), when()]),
            (OnNoAnswer::Continue, _) => Html::phrase(w.goes_on, &[who(), when()]),
        };
        let asked = ask.ask.envelope.ts.ms();
        let whole = (deadline.ms() - asked).max(1);
        Self {
            says,
            kind: "goes",
            drain: Some(((viewer.now.ms() - asked).clamp(0, whole), whole)),
            takes_default: on_no_answer == OnNoAnswer::UseDefault,
        }
    }
}

/// The default as people know it: the label of the option, or the text.
fn default(question: &Question, viewer: &Viewer<'_>) -> Html {
    let value = question.default_value.as_deref().unwrap_or_default();
    let label = question.option(value).map_or(value, |option| option.label.as_str());
    Html::quoted(&html::short(label, WHAT), viewer.w.quotes)
}
