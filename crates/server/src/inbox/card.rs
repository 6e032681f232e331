//! One question as a card: what of an ask is shown, to whom, and how.

mod attempts;
mod form;
mod outcome;
mod silence;
mod story;

use std::collections::HashMap;

use askama::Template;
use askama::filters::HtmlSafe;
use chips_protocol::api::{Ask, AskState, Named, Run, Tier};
use chips_protocol::{OnNoAnswer, PersonId, QuestionAsk, Timestamp};
use chips_store::{Attempt, Identity, Sighting};
use sha2::{Digest, Sha256};

use super::html::{self, Html, TimeAs};
use crate::words::Words;

pub(crate) use form::{Notice, OpenForm, Typed, TypedQuestion};
pub(crate) use outcome::{Closed, sentence};
pub(crate) use silence::Silence;
use story::{Step, story};

/// Characters of a prompt after which a card in a list shows it folded.
const LONG_PROMPT: usize = 420;
/// Characters of a description, or of all labels together, after which a card in a list folds.
const LONG_DETAIL: usize = 240;
/// Characters of a prompt, and of a run's title, of which more would not be seen.
const STUB: usize = 100;
const TITLE: usize = 80;

/// Who looks at a card, when, and with which form token.
pub(crate) struct Viewer<'a> {
    /// The language.
    pub w: &'static Words,
    /// The person.
    pub identity: &'a Identity,
    /// Chips' clock.
    pub now: Timestamp,
    /// The session's form token.
    pub token: &'a str,
    /// What people are called of whom an ask says no more than the id; empty where nobody asked for it.
    pub names: HashMap<PersonId, String>,
}

/// How much of a card is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// In a list: long texts are folded.
    List,
    /// In a list, further down: only what is asked, until it comes into view.
    Stub,
    /// On a page of its own: everything, and the question's story.
    Page,
}

impl Detail {
    /// What the script calls `page` and `list`.
    pub fn of(view: &[u8]) -> Self {
        if view == b"page" { Self::Page } else { Self::List }
    }
}

/// Where in the inbox a card stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shelf {
    /// A harness does not go on before somebody answers, or gives up.
    Waiting,
    /// The harness takes its default at the deadline.
    Going,
    /// Whoever asked has not been heard of.
    Gone,
    /// Closed.
    Closed,
}

impl Shelf {
    /// Where an ask stands. A default without a deadline is never taken, so such an ask waits like any other.
    pub fn of(ask: &Ask) -> Self {
        let on_no_answer = ask.ask.as_ask().map(QuestionAsk::on_no_answer);
        match ask.state {
            AskState::Open if ask.asker_gone => Self::Gone,
            AskState::Open
                if ask.tier != Tier::TimeSensitive
                    && ask.deadline.is_some()
                    && on_no_answer != Some(OnNoAnswer::Cancel) =>
            {
                Self::Going
            }
            AskState::Open => Self::Waiting,
            _ => Self::Closed,
        }
    }

    /// The name that scripts and styles know it by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Going => "going",
            Self::Gone => "gone",
            Self::Closed => "closed",
        }
    }

    /// What people call it.
    pub const fn called(self, w: &Words) -> &'static str {
        match self {
            Self::Waiting => w.waiting_shelf,
            Self::Going => w.going_shelf,
            Self::Gone => w.gone_shelf,
            Self::Closed => w.closed_shelf,
        }
    }
}

/// A participant with the tile that stands for its picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Who {
    /// The name as it may be shown.
    pub name: Html,
    /// A letter for the tile.
    pub initial: String,
    /// One of six colours, the same for the same participant always.
    pub hue: u8,
}

impl Who {
    /// The tile and name of a participant.
    pub fn of(named: &Named) -> Self {
        Self::called(&named.name, &named.id.to_string())
    }

    /// The tile and name of whoever has this id.
    pub fn called(name: &str, id: &str) -> Self {
        let initial = name.chars().find(|c| c.is_alphanumeric()).map(|c| c.to_uppercase().collect());
        Self {
            name: Html::shown(name),
            initial: initial.unwrap_or_else(|| "?".to_owned()),
            hue: Sha256::digest(id)[0] % 6,
        }
    }
}

/// One question as it is shown.
#[derive(Template)]
#[template(path = "card.html")]
pub(crate) struct Card {
    w: &'static Words,
    ask_id: String,
    state: &'static str,
    /// The `seq` of the newest event that this card knows of.
    seq: u64,
    pub shelf: Shelf,
    /// Sorts like the inbox.
    order: String,
    run_id: String,
    deadline_ms: Option<i64>,
    who: Who,
    run_title: Option<Html>,
    asked: Html,
    detail: Detail,
    /// It follows a card of the same run.
    pub again: bool,
    body: Body,
    /// The viewer answered it.
    own: bool,
    /// It is open, and nobody could be told of it outside the inbox.
    untold: bool,
    story: Vec<Step>,
}

impl HtmlSafe for Card {}

/// What a card shows below the line that says who asks.
enum Body {
    Open(Box<OpenForm>),
    Stub(Html),
    Closed(Box<Closed>),
}

impl Card {
    /// The card of an ask. `typed` is what the person had typed or chosen, to be shown again; `notice` says why it was not sent.
    pub fn new(
        ask: &Ask,
        run: Option<&Run>,
        viewer: &Viewer<'_>,
        detail: Detail,
        typed: &Typed,
        notice: Option<Notice>,
    ) -> Self {
        let envelope = &ask.ask.envelope;
        let asked_seq = envelope.seq.unwrap_or_default();
        let seq = ask.answer.as_ref().and_then(|event| event.envelope.seq).unwrap_or(asked_seq);
        let rank = match ask.tier {
            Tier::TimeSensitive => 1,
            Tier::Active => 2,
            Tier::Passive => 3,
        };
        let deadline = ask.deadline.map_or(i64::MAX, Timestamp::ms);
        let content = ask.ask.as_ask();
        let body = match (ask.state, detail, content) {
            (AskState::Open, Detail::Stub, Some(content)) => Body::Stub(stub(content)),
            (AskState::Open, _, Some(content)) => {
                Body::Open(Box::new(OpenForm::new(ask, content, viewer, detail, typed, notice)))
            }
            _ => Body::Closed(Box::new(Closed::new(ask, viewer, detail, typed, notice))),
        };
        Self {
            w: viewer.w,
            ask_id: ask.ask_id.to_string(),
            state: ask.state.as_str(),
            seq,
            shelf: Shelf::of(ask),
            order: format!("{rank}{deadline:016x}{asked_seq:016x}"),
            run_id: envelope.run_id.to_string(),
            deadline_ms: ask.deadline.filter(|_| ask.state == AskState::Open).map(Timestamp::ms),
            who: Who::of(&ask.asker),
            run_title: run.and_then(|run| run.title.as_deref()).map(|title| Html::shown(&html::short(title, TITLE))),
            asked: html::time(envelope.ts, viewer.now, TimeAs::Ago, "{t}"),
            detail,
            again: false,
            body,
            own: ask.state == AskState::Answered
                && ask.answerer.as_ref().is_some_and(|by| outcome::is_viewer(by.id, viewer)),
            untold: ask.state == AskState::Open && !ask.reachable,
            story: if detail == Detail::Page { story(ask, viewer) } else { Vec::new() },
        }
    }

    /// The same with every try to tell somebody in its story, and with everybody who saw it.
    pub fn with_story(mut self, attempts: &[Attempt], seen: &[Sighting], viewer: &Viewer<'_>) -> Self {
        attempts::tell(&mut self.story, attempts, viewer);
        story::tell_seen(&mut self.story, seen, viewer);
        self
    }

    fn is_page(&self) -> bool {
        self.detail == Detail::Page
    }

    fn is_stub(&self) -> bool {
        matches!(self.body, Body::Stub(_))
    }
}

/// What an ask asks first, and how much more.
fn stub(content: &QuestionAsk) -> Html {
    let mut prompt = html::short(content.questions.first().map_or("", |question| &question.prompt), STUB);
    if content.questions.len() > 1 {
        prompt.push_str(&format!(" (+{})", content.questions.len() - 1));
    }
    Html::shown(&prompt)
}
