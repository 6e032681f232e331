//! Questions as rows of a list, for history and runs.

use askama::Template;
use askama::filters::HtmlSafe;
use chips_protocol::api::{Ask, AskState};

use super::card::{Silence, Viewer, Who, sentence};
use super::html::{self, Html, TimeAs};

/// Characters of a prompt in a row.
const PROMPT: usize = 200;
/// Characters of a choice in a row.
const WHAT: usize = 80;

/// Some questions, one a row.
#[derive(Template, Default)]
#[template(path = "rows.html")]
pub(crate) struct Rows {
    rows: Vec<Row>,
}

impl HtmlSafe for Rows {}

struct Row {
    ask_id: String,
    state: &'static str,
    who: Who,
    prompt: Html,
    says: Html,
    when: Html,
}

impl Rows {
    /// Rows in the order of the asks.
    pub fn new(asks: &[Ask], viewer: &Viewer<'_>) -> Self {
        Self { rows: asks.iter().filter_map(|ask| row(ask, viewer)).collect() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn row(ask: &Ask, viewer: &Viewer<'_>) -> Option<Row> {
    let content = ask.ask.as_ask()?;
    let mut prompt = html::short(&content.questions.first()?.prompt, PROMPT);
    if content.questions.len() > 1 {
        prompt.push_str(&format!(" (+{})", content.questions.len() - 1));
    }
    let at = ask.answer.as_ref().unwrap_or(&ask.ask).envelope.ts;
    Some(Row {
        ask_id: ask.ask_id.to_string(),
        state: ask.state.as_str(),
        who: Who::of(&ask.asker),
        prompt: Html::shown(&prompt),
        says: if ask.state == AskState::Open {
            Silence::of(ask, content, viewer).says
        } else {
            sentence(ask, viewer, WHAT, true)
        },
        when: html::time(at, viewer.now, TimeAs::At, "{t}"),
    })
}
