//! How an ask ended, in words: by whom, with what, and what came too late.

use chips_core::Who as Credential;
use chips_protocol::api::{Ask, AskState, LateAnswer};
use chips_protocol::{Answer, ParticipantId, ParticipantKind, Question, QuestionAsk, Timestamp};

use super::form::QuestionView;
use super::{Detail, Notice, Typed, TypedQuestion, Viewer};
use crate::inbox::html::{self, Html, TimeAs};

/// Characters of a choice after which a list cuts it.
const WHAT: usize = 120;

/// A closed ask.
pub(crate) struct Closed {
    /// What is said above it: that an answer came too late.
    pub notice: Option<Html>,
    /// Who did what.
    pub says: Html,
    /// When.
    pub when: Option<Html>,
    /// The question asked, or each of several with what was answered.
    pub entries: Vec<Entry>,
    /// What came too late.
    pub late: Vec<Html>,
    /// What the person typed and did not send.
    pub kept: Vec<Kept>,
    /// Why it was not sent.
    pub kept_why: &'static str,
}

/// A question of a closed ask.
pub(crate) struct Entry {
    pub question: QuestionView,
    /// The prompt, cut for a list.
    pub prompt: Html,
    /// What was answered, where there are several questions.
    pub what: Option<Html>,
    /// No option was chosen and nothing typed: what that means.
    pub empty: Option<Html>,
    /// The answer's own words.
    pub own_words: Option<Html>,
}

/// A text that was typed and not sent.
pub(crate) struct Kept {
    pub label: Html,
    pub text: String,
}

impl Closed {
    pub(super) fn new(ask: &Ask, viewer: &Viewer<'_>, detail: Detail, typed: &Typed, notice: Option<Notice>) -> Self {
        let characters = if detail == Detail::Page { usize::MAX } else { WHAT };
        let answered = ask.answer.as_ref().and_then(|event| event.as_answered());
        let answers = answered.map(|answered| answered.answers.as_slice()).unwrap_or_default();
        let questions = ask.ask.as_ask().map(|content| content.questions.as_slice()).unwrap_or_default();
        let several = questions.len() > 1;
        let entries = questions
            .iter()
            .enumerate()
            .map(|(index, question)| {
                let answer = answers.iter().find(|answer| answer.question_id == question.question_id);
                let mut view = QuestionView::new(index, None, question, None);
                for (option, known) in view.options.iter_mut().zip(&question.options) {
                    option.chosen = answer.is_some_and(|answer| answer.values.contains(&known.value));
                }
                let what = match answer {
                    Some(answer) => what(question, answer, viewer, characters),
                    None => Html::text(viewer.w.no_entry),
                };
                let bare = answer.is_none_or(|answer| answer.values.is_empty() && answer.free_text.is_none());
                Entry {
                    empty: (several && bare).then(|| what.clone()),
                    what: several.then_some(what),
                    prompt: Html::shown(&html::short(&question.prompt, 2 * WHAT)),
                    own_words: answer.and_then(|answer| answer.free_text.as_deref()).map(Html::shown),
                    question: view,
                }
            })
            .collect();
        let kept = typed
            .questions
            .iter()
            .zip(questions)
            .filter(|(typed, _)| !typed.text.trim().is_empty())
            .map(|(typed, question)| Kept { label: kept_label(question, several, viewer), text: typed.text.clone() })
            .collect();
        // What came too late was sent, and stands there as what it is.
        let came_late = |typed: &TypedQuestion| {
            let texts =
                ask.late_answers.iter().flat_map(|late| &late.answers).filter_map(|late| late.free_text.as_deref());
            texts.into_iter().any(|text| text == typed.text.trim())
        };
        let sent = !several && typed.questions.first().is_some_and(came_late);
        Self {
            notice: notice.map(|notice| notice.says(viewer.w, several)),
            says: sentence(ask, viewer, characters, false),
            when: answered.map(|answered| html::time(answered.answered_at, viewer.now, TimeAs::At, "{t}")),
            entries,
            late: late_answers(ask, viewer, characters),
            kept,
            kept_why: match notice {
                Some(Notice::TooLate) if sent => viewer.w.kept_late,
                Some(Notice::TooLate) => viewer.w.script.kept,
                _ => viewer.w.also_typed,
            },
        }
    }
}

fn kept_label(question: &Question, several: bool, viewer: &Viewer<'_>) -> Html {
    if several {
        let prompt = Html::isolated(&html::short(&question.prompt, 80));
        Html::phrase(viewer.w.kept_for, &[("what", prompt)])
    } else {
        Html::text(viewer.w.script.kept)
    }
}

/// Who closed the ask and with what, in one sentence. Choices are cut after so many characters. The answers to several
/// questions stand in it only where it stands alone (`all`).
pub(crate) fn sentence(ask: &Ask, viewer: &Viewer<'_>, characters: usize, all: bool) -> Html {
    let w = viewer.w;
    let (Some(event), Some(content)) = (&ask.answer, ask.ask.as_ask()) else { return Html::default() };
    let Some(answered) = event.as_answered() else { return Html::default() };
    let who = || match &ask.answerer {
        Some(named) if named.kind != ParticipantKind::System => Html::isolated(&named.name),
        _ => Html::isolated(&ask.asker.name),
    };
    // A time-out is Chips' own event; what it says is what the asker does then.
    let asker = || ("who", Html::isolated(&ask.asker.name));
    let only = match content.questions.as_slice() {
        [question] => answered.answers.first().map(|answer| (question, answer)),
        _ => None,
    };
    let whats = || {
        let answers = answered.answers.iter();
        let whats =
            answers.filter_map(|answer| Some(what(content.question(&answer.question_id)?, answer, viewer, characters)));
        Html::joined(whats, w.list_separator)
    };
    let said = (only.is_some() || (all && !answered.answers.is_empty())).then(|| ("what", whats()));
    match (ask.state, said) {
        (AskState::Open, _) => Html::default(),
        (AskState::Answered, Some(said)) if is_viewer(answered.answered_by, viewer) => {
            Html::phrase(w.you_answered, &[said])
        }
        (AskState::Answered, None) if is_viewer(answered.answered_by, viewer) => Html::text(w.you_answered_many),
        (AskState::Answered, Some(said)) => Html::phrase(w.answered, &[("who", who()), said]),
        (AskState::Answered, None) => Html::phrase(w.answered_many, &[("who", who())]),
        (AskState::Settled, Some(said)) => Html::phrase(w.settled, &[asker(), said]),
        (AskState::Settled, None) => Html::phrase(w.settled_many, &[asker()]),
        (AskState::TimedOut, Some(said)) => {
            let default = only.is_some_and(|(question, answer)| is_default(question, answer));
            Html::phrase(if default { w.timed_out_default } else { w.timed_out_took }, &[asker(), said])
        }
        (AskState::TimedOut, None) if !answered.answers.is_empty() => Html::phrase(w.timed_out_many, &[asker()]),
        (AskState::TimedOut, None) if gives_up(content) => Html::phrase(w.timed_out_gives_up, &[asker()]),
        (AskState::TimedOut, None) => Html::phrase(w.timed_out_goes_on, &[asker()]),
        (AskState::Withdrawn, _) if event.envelope.actor.kind == ParticipantKind::System => {
            Html::phrase(w.withdrawn_by_end, &[asker()])
        }
        (AskState::Withdrawn, _) => Html::phrase(w.withdrawn, &[asker()]),
    }
}

fn gives_up(content: &QuestionAsk) -> bool {
    content.on_no_answer() == chips_protocol::OnNoAnswer::Cancel
}

fn is_default(question: &Question, answer: &Answer) -> bool {
    match (&question.default_value, answer.values.as_slice(), &answer.free_text) {
        (Some(default), [value], None) => default == value,
        (Some(default), [], Some(text)) => default == text,
        _ => false,
    }
}

pub(super) fn is_viewer(by: ParticipantId, viewer: &Viewer<'_>) -> bool {
    matches!((by, viewer.identity.sender.who), (ParticipantId::Person(by), Credential::Person(own)) if by == own)
}

/// An answer to one question in words: the labels of what was chosen and the free text, in quotation marks.
fn what(question: &Question, answer: &Answer, viewer: &Viewer<'_>, characters: usize) -> Html {
    let labels = answer.values.iter().map(|value| question.option(value).map_or(value, |option| &option.label));
    let texts =
        labels.chain(&answer.free_text).map(|text| Html::quoted(&html::short(text, characters), viewer.w.quotes));
    if answer.values.is_empty() && answer.free_text.is_none() {
        return Html::text(viewer.w.none_chosen);
    }
    Html::joined(texts, viewer.w.list_separator)
}

/// What came too late, each with how much.
fn late_answers(ask: &Ask, viewer: &Viewer<'_>, characters: usize) -> Vec<Html> {
    let (Some(content), Some(closed)) = (ask.ask.as_ask(), ask.answer.as_ref()) else { return Vec::new() };
    let w = viewer.w;
    ask.late_answers
        .iter()
        .map(|late| {
            let gap = Html::text(&duration(late.at.ms() - closed.envelope.ts.ms(), w.units));
            let patterns = (w.yours_late, w.named_late, w.others_late);
            told_late(ask, content, late, patterns, ("gap", gap), viewer, characters)
        })
        .collect()
}

/// What came too late, for the story: by whom, with what, and when.
pub(super) fn late(ask: &Ask, viewer: &Viewer<'_>) -> Vec<(Html, Timestamp)> {
    let Some(content) = ask.ask.as_ask() else { return Vec::new() };
    let w = viewer.w;
    let patterns = (w.story_late_yours, w.story_late, w.story_late_others);
    let told = |late| told_late(ask, content, late, patterns, ("", Html::default()), viewer, usize::MAX);
    ask.late_answers.iter().map(|late| (told(late), late.at)).collect()
}

/// An answer that came too late in the sentence for the viewer's own, for one by somebody with a name, or for another.
fn told_late(
    ask: &Ask,
    content: &QuestionAsk,
    LateAnswer { by, answers, .. }: &LateAnswer,
    (yours, named, others): (&'static str, &'static str, &'static str),
    more: (&'static str, Html),
    viewer: &Viewer<'_>,
    characters: usize,
) -> Html {
    let said = answers
        .iter()
        .filter_map(|answer| Some(what(content.question(&answer.question_id)?, answer, viewer, characters)));
    let said = ("what", Html::joined(said, viewer.w.list_separator));
    let answerer = ask.answerer.as_ref().filter(|named| named.id == *by).map(|named| named.name.as_str());
    let name = answerer.or_else(|| match by {
        ParticipantId::Person(id) => viewer.names.get(id).map(String::as_str),
        _ => None,
    });
    match name {
        _ if is_viewer(*by, viewer) => Html::phrase(yours, &[said, more]),
        Some(name) => Html::phrase(named, &[("who", Html::isolated(name)), said, more]),
        None => Html::phrase(others, &[said, more]),
    }
}

/// A length of time, at least a second, with two units at most: `6 s`, `3 min 20 s`, `2 d 4 h`.
fn duration(ms: i64, [s, min, h, d]: [&str; 4]) -> String {
    let seconds = (ms.max(1) + 999) / 1000;
    let (whole, unit, rest, small) = match seconds {
        0..60 => (seconds, s, 0, ""),
        60..3600 => (seconds / 60, min, seconds % 60, s),
        3600..86_400 => (seconds / 3600, h, seconds % 3600 / 60, min),
        _ => (seconds / 86_400, d, seconds % 86_400 / 3600, h),
    };
    if rest == 0 { format!("{whole} {unit}") } else { format!("{whole} {unit} {rest} {small}") }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn gaps_read_like_people_say_them() {
        for (ms, text) in [
            (0, "1 s"),
            (-5, "1 s"),
            (1, "1 s"),
            (6_000, "6 s"),
            (60_000, "1 min"),
            (200_000, "3 min 20 s"),
            (7_260_000, "2 h 1 min"),
            (187_200_000, "2 d 4 h"),
        ] {
            assert_eq!(duration(ms, ["s", "min", "h", "d"]), text);
        }
    }
}
