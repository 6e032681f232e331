//! The list of open asks: what is in it, where the cursor is, and how it looks.

use std::time::Duration;

use chips_protocol::AskId;
use chips_protocol::api::Ask;

use crate::commands::answer::view::{hints, title, usable};
use crate::commands::answer::words;
use crate::terminal::screen::View;
use crate::terminal::style::{Line, Style};
use crate::terminal::{text, time};

/// The list.
#[derive(Debug, Clone, Default)]
pub struct List {
    asks: Vec<Ask>,
    /// The ask that the cursor is on. It stays on it, wherever that moves.
    at: Option<AskId>,
    /// The list has been read once.
    loaded: bool,
    /// There are more open asks than are listed.
    more: bool,
}

impl List {
    /// Takes the open asks as they are now. Where the one that the cursor was on is gone, the cursor goes to the one
    /// that took its place; says whether that happened.
    pub fn take(&mut self, asks: Vec<Ask>, more: bool) -> bool {
        let index = self.index();
        self.asks = asks;
        self.more = more;
        self.loaded = true;
        let gone = self.at.is_some_and(|at| !self.asks.iter().any(|ask| ask.ask_id == at));
        if gone || self.at.is_none() {
            let index = index.min(self.asks.len().saturating_sub(1));
            self.at = self.asks.get(index).map(|ask| ask.ask_id);
        }
        gone
    }

    /// The ask that the cursor is on.
    pub fn current(&self) -> Option<&Ask> {
        self.asks.iter().find(|ask| Some(ask.ask_id) == self.at)
    }

    fn index(&self) -> usize {
        self.asks.iter().position(|ask| Some(ask.ask_id) == self.at).unwrap_or(0)
    }

    /// Moves the cursor by this many asks.
    pub fn step(&mut self, by: isize) {
        let index = self.index().saturating_add_signed(by).min(self.asks.len().saturating_sub(1));
        self.at = self.asks.get(index).map(|ask| ask.ask_id);
    }

    /// Draws the list for a person called `name`. `left` says how much time is left until a deadline.
    pub fn view(
        &self,
        name: &str,
        status: Option<&str>,
        columns: usize,
        left: impl Fn(&Ask) -> Option<Duration>,
    ) -> View {
        let width = usable(columns);
        let count = match (self.loaded, self.asks.len()) {
            (false, _) => String::new(),
            (true, 0) => "nothing open ".to_owned(),
            (true, _) if self.more => format!("{}+ open ", self.asks.len()),
            (true, open) => format!("{open} open "),
        };
        let head = Line::styled(Style::Strong, " Inbox").and(Style::Dim, format!(" · {}", text::one_line(name)));
        let mut view = View { head: title(head, Style::Dim, &count, width), ..View::default() };
        if self.asks.is_empty() {
            let line =
                if self.loaded { " Nobody asks anything right now. New questions show up here." } else { " …" };
            for line in text::wrap(line.trim_start(), width.saturating_sub(2)) {
                view.body.push(Line::styled(Style::Dim, format!(" {line}")));
            }
        }
        for ask in &self.asks {
            let from = view.body.len();
            let here = Some(ask.ask_id) == self.at;
            entry(&mut view.body, ask, here, left(ask), width);
            if here {
                view.focus = from..view.body.len();
            }
        }
        if let Some(status) = status {
            for line in text::wrap(status, width.saturating_sub(2)) {
                view.foot.push(Line::styled(Style::Warn, format!(" {line}")));
            }
        }
        let key = |key: &str, does| (key.to_owned(), does);
        view.foot.push(match self.asks.is_empty() {
            true => hints(&[key("q", "leave")], width),
            false => hints(&[key("↑↓ jk", "move"), key("Enter", "open"), key("q", "leave")], width),
        });
        view
    }
}

/// Less time than this is shown with a warning.
const HURRY: Duration = Duration::from_secs(60);

/// Two lines and a gap: the prompt, and who asks what kind of question.
fn entry(body: &mut Vec<Line>, ask: &Ask, here: bool, left: Option<Duration>, width: usize) {
    let style = if here { Style::Accent } else { Style::Plain };
    let (left_style, left) = match left {
        None => (Style::Dim, String::new()),
        Some(left) if left <= HURRY => (Style::Warn, time::left(left)),
        Some(left) => (Style::Dim, time::left(left)),
    };
    let mark = if here { " ❯ " } else { "   " };
    let first = Line::styled(style, mark).and(if here { Style::Accent } else { Style::Strong }, prompt(ask));
    body.push(first.and_right(left_style, &format!("{left} "), width));
    body.push(Line::styled(Style::Plain, "   ").and(Style::Dim, about(ask)).cut(width));
    body.push(Line::new());
}

/// The first prompt, on one line.
pub fn prompt(ask: &Ask) -> String {
    let first = ask.ask.as_ask().and_then(|content| content.questions.first());
    first.map(|question| text::one_line(&question.prompt)).unwrap_or_default()
}

fn about(ask: &Ask) -> String {
    let mut parts = vec![words::name(&ask.asker)];
    let content = ask.ask.as_ask();
    if let Some(content) = content {
        if content.questions.len() > 1 {
            parts.push(format!("{} questions", content.questions.len()));
        }
        if content.questions.iter().all(|question| question.default_value.is_some()) {
            parts.push("has a default".to_owned());
        }
    }
    if ask.asker_gone {
        parts.push("asker gone".to_owned());
    }
    parts.join(" · ")
}
