//! The form on an open card.

use chips_protocol::api::Ask;
use chips_protocol::{EventId, Question, QuestionAsk};
use chips_store::secret;

use super::{Detail, LONG_DETAIL, LONG_PROMPT, Silence, Viewer};
use crate::inbox::html::{self, Html};
use crate::words::Words;

/// Characters of a prompt after which it is set like a text.
const LONG_TEXT: usize = 280;
/// Characters of a label after which it has a chip's whole width.
const LONG_LABEL: usize = 60;

/// What a person had chosen and typed, question by question. Empty for a card that nobody has touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Typed {
    /// For each question of the ask, in its order.
    pub questions: Vec<TypedQuestion>,
    /// The ids that the form carried, to be carried again: the same attempt stays the same write.
    pub attempt: Option<(String, String)>,
    /// The person was told that of an option and a text one is sent, and says which.
    pub which: bool,
}

/// What was chosen and typed for one question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TypedQuestion {
    /// Indices of options.
    pub chosen: Vec<usize>,
    /// "None of these".
    pub none: bool,
    /// The free text is meant.
    pub own_words: bool,
    /// The free text, line feeds as `\n`.
    pub text: String,
}

/// Why a form was not sent, or what the person should know before it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Nothing was chosen or typed.
    Empty,
    /// "None of these" and something else.
    NoneAndSome,
    /// An option and free text, where one of the two is taken.
    WhichOne,
    /// This many questions are not answered; send only the others?
    Partial(usize),
    /// A text is too long.
    TooLong,
    /// A text has control characters.
    BadCharacters,
    /// The rules refuse it otherwise.
    NotAccepted,
    /// The page was from an earlier sign-in.
    OtherSignIn,
    /// The ask was closed before.
    TooLate,
    /// The store can't write.
    CannotWrite,
}

impl Notice {
    /// What it says. `several` where the ask has several questions.
    pub fn says(self, w: &Words, several: bool) -> Html {
        match self {
            Self::Empty if several => Html::text(w.choose_first_many),
            Self::Empty => Html::text(w.choose_first),
            Self::NoneAndSome => Html::text(w.none_and_some),
            Self::WhichOne if several => Html::text(w.which_one_many),
            Self::WhichOne => Html::text(w.which_one),
            Self::Partial(left) => Html::phrase(w.partial.of(left), &[("n", Html::text(&left.to_string()))]),
            Self::TooLong => Html::text(w.too_long),
            Self::BadCharacters => Html::text(w.bad_characters),
            Self::NotAccepted => Html::text(w.not_accepted),
            Self::OtherSignIn => Html::text(w.other_sign_in),
            Self::TooLate => Html::text(w.too_late),
            Self::CannotWrite => Html::text(w.cannot_write),
        }
    }
}

/// The form on an open card.
pub(crate) struct OpenForm {
    pub token: String,
    pub event: String,
    pub key: String,
    /// One question with one choice: each option is a button, and a tap answers.
    pub tap: bool,
    pub questions: Vec<QuestionView>,
    pub silence: Silence,
    pub notice: Option<Html>,
    /// The person is asked whether to send only what is answered.
    pub partial: bool,
    /// An option and a text were given where one is taken: what comes next says which.
    pub which: bool,
    /// The option that was tapped beside a text: its index, and what its button says.
    pub tapped: Option<(usize, Html)>,
    /// Something is folded.
    pub long: bool,
}

/// A question of the form.
pub(crate) struct QuestionView {
    pub index: usize,
    /// "2 of 4", where there are several.
    pub number: Option<Html>,
    pub prompt: Html,
    /// The prompt is more of a text than a question, and is set like one.
    pub long: bool,
    pub multi: bool,
    pub free_text: bool,
    pub options: Vec<OptionView>,
    pub none: bool,
    pub own_words: bool,
    pub text: String,
}

/// An option of a question.
pub(crate) struct OptionView {
    pub index: usize,
    pub label: Html,
    /// The label is more than a few words.
    pub long: bool,
    /// Label or description are texts: what stands beside them goes below on a phone.
    pub wide: bool,
    pub description: Option<Html>,
    /// It is the default of an ask that takes its defaults.
    pub is_default: bool,
    pub chosen: bool,
}

impl OpenForm {
    pub(super) fn new(
        ask: &Ask,
        content: &QuestionAsk,
        viewer: &Viewer<'_>,
        detail: Detail,
        typed: &Typed,
        notice: Option<Notice>,
    ) -> Self {
        let several = content.questions.len() > 1;
        let (event, key) = typed.attempt.clone().unwrap_or_else(|| attempt(viewer));
        let silence = Silence::of(ask, content, viewer);
        let questions = content
            .questions
            .iter()
            .enumerate()
            .map(|(index, question)| {
                let number = several.then(|| {
                    Html::phrase(
                        viewer.w.question_of,
                        &[
                            ("n", Html::text(&(index + 1).to_string())),
                            ("all", Html::text(&content.questions.len().to_string())),
                        ],
                    )
                });
                QuestionView::new(index, number, question, typed.questions.get(index))
            })
            .collect();
        let tap = !several && content.questions.iter().all(|question| !question.multi());
        let asks_which = notice == Some(Notice::WhichOne);
        let tapped = (asks_which && tap).then(|| {
            let (typed, question) = (typed.questions.first()?, content.questions.first()?);
            let index = *typed.chosen.first()?;
            let label = html::short(&question.options.get(index)?.label, LONG_LABEL);
            Some((index, Html::phrase(viewer.w.send_this, &[("what", Html::quoted(&label, viewer.w.quotes))])))
        });
        Self {
            token: viewer.token.to_owned(),
            event,
            key,
            tap,
            questions,
            silence,
            notice: notice.map(|notice| notice.says(viewer.w, several)),
            partial: matches!(notice, Some(Notice::Partial(_))),
            which: asks_which || typed.which,
            tapped: tapped.flatten(),
            long: detail == Detail::List && content.questions.iter().any(is_long),
        }
    }
}

impl QuestionView {
    pub(super) fn new(index: usize, number: Option<Html>, question: &Question, typed: Option<&TypedQuestion>) -> Self {
        let empty = TypedQuestion::default();
        let typed = typed.unwrap_or(&empty);
        Self {
            index,
            number,
            prompt: html::linked(&question.prompt),
            long: question.prompt.chars().count() > LONG_TEXT,
            multi: question.multi(),
            free_text: question.free_text(),
            options: question
                .options
                .iter()
                .enumerate()
                .map(|(at, option)| OptionView {
                    index: at,
                    label: Html::shown(&option.label),
                    long: option.label.chars().count() > LONG_LABEL,
                    wide: option.label.chars().count() > LONG_LABEL
                        || option.description.as_deref().is_some_and(|text| text.chars().count() > 2 * LONG_LABEL),
                    description: option.description.as_deref().filter(|text| !text.is_empty()).map(Html::shown),
                    is_default: question.default_value.as_ref() == Some(&option.value),
                    chosen: typed.chosen.contains(&at),
                })
                .collect(),
            none: typed.none,
            own_words: typed.own_words,
            text: typed.text.clone(),
        }
    }

    /// Whether two options stand side by side where there is room.
    pub fn is_even(&self) -> bool {
        self.options.len().is_multiple_of(2) && self.options.iter().all(|option| !option.long)
    }
}

/// New ids for a write that may be attempted several times.
fn attempt(viewer: &Viewer<'_>) -> (String, String) {
    let random = secret::sha256(&secret::new_secret());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&random[..16]);
    let ms = u64::try_from(viewer.now.ms()).unwrap_or_default();
    let id = EventId::from_parts(ms, u128::from_be_bytes(bytes));
    (id.to_string(), format!("inbox-{}", id.ulid()))
}

fn is_long(question: &Question) -> bool {
    let characters = |text: &str| text.chars().count();
    let labels: usize = question.options.iter().map(|option| characters(&option.label)).sum();
    characters(&question.prompt) > LONG_PROMPT
        || question.prompt.lines().count() > 9
        || labels > 2 * LONG_DETAIL
        || question.options.iter().any(|option| option.description.as_deref().map_or(0, characters) > LONG_DETAIL)
}
