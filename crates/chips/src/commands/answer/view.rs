//! How the form looks: lines for a terminal of a given width.

use std::time::Duration;

use chips_protocol::api::Ask;

use super::form::{Choice, Form, Part, Stage};
use super::words;
use crate::terminal::screen::View;
use crate::terminal::style::{Line, Style};
use crate::terminal::{text, time};

/// No line is longer, however wide the terminal: longer ones are hard to read.
const WIDEST: usize = 100;

/// Where the text of an option begins.
const INDENT: usize = 6;

/// Less time than this is shown with a warning.
const HURRY: Duration = Duration::from_secs(60);

/// What is known beside the form.
#[derive(Debug, Clone, Default)]
pub struct Around {
    /// How much time is left, where there is a deadline.
    pub left: Option<Duration>,
    /// What is going on: sending, no connection.
    pub status: Option<String>,
}

/// The columns that a view uses on a terminal with this many.
pub fn usable(columns: usize) -> usize {
    columns.clamp(10, WIDEST)
}

/// Draws the form.
pub fn view(ask: &Ask, form: &Form, around: &Around, columns: usize) -> View {
    let width = usable(columns);
    let mut view = View { head: head(ask, around, width), scrolled: form.scrolled(), ..View::default() };
    match form.stage() {
        Stage::Review => review(form, width, &mut view),
        Stage::Choosing | Stage::Typing => question(ask, form, width, &mut view),
    }
    view.foot = foot(form, around, width);
    view
}

/// The top of a screen: a title, something at the right edge, a rule.
pub fn title(left: Line, right: Style, text: &str, width: usize) -> Vec<Line> {
    vec![left.and_right(right, text, width), Line::styled(Style::Dim, "─".repeat(width))]
}

fn head(ask: &Ask, around: &Around, width: usize) -> Vec<Line> {
    let (style, left) = match around.left {
        None => (Style::Dim, "no time limit".to_owned()),
        Some(left) if left.is_zero() => (Style::Warn, "time is up".to_owned()),
        Some(left) if left <= HURRY => (Style::Warn, format!("{} left", time::left(left))),
        Some(left) => (Style::Dim, format!("{} left", time::left(left))),
    };
    let asker = Line::new().and(Style::Strong, format!(" {}", words::name(&ask.asker))).and(Style::Plain, " asks");
    title(asker, style, &format!("{left} "), width)
}

fn question(ask: &Ask, form: &Form, width: usize, view: &mut View) {
    let Some(part) = form.parts().get(form.at()) else { return };
    let body = &mut view.body;
    if form.parts().len() > 1 {
        let place = format!(" Question {} of {}", form.at() + 1, form.parts().len());
        body.push(Line::styled(Style::Dim, place));
    }
    paragraph(body, Style::Strong, &part.question.prompt, 1, width);
    body.push(Line::new());
    for index in 0..part.question.options.len() {
        let from = body.len();
        option(body, part, index, width);
        if part.row == index {
            view.focus = from..body.len();
        }
    }
    if part.question.free_text() {
        let from = body.len();
        typed(view, part, form.stage() == Stage::Typing, width);
        if part.on_text() {
            // The line that is typed in must be seen; a long text may be taller than the screen.
            let at = view.cursor.map_or(from, |(line, _)| line);
            view.focus = at..at + 1;
        }
    }
    if form.at() + 1 == form.parts().len() {
        view.body.push(Line::new());
        if let Some(silence) = words::silence(ask) {
            paragraph(&mut view.body, Style::Dim, &silence, 1, width);
        }
        if ask.asker_gone {
            let gone = format!("{} has gone away; perhaps nobody waits for this any more.", words::name(&ask.asker));
            paragraph(&mut view.body, Style::Warn, &gone, 1, width);
        }
    }
}

fn paragraph(body: &mut Vec<Line>, style: Style, text: &str, indent: usize, width: usize) {
    for line in text::wrap(text, width.saturating_sub(indent + 1)) {
        body.push(Line::styled(Style::Plain, " ".repeat(indent)).and(style, line));
    }
}

fn option(body: &mut Vec<Line>, part: &Part, index: usize, width: usize) {
    let Some(option) = part.question.options.get(index) else { return };
    let here = part.row == index;
    let style = if here { Style::Accent } else { Style::Plain };
    let mark = match (part.question.multi(), part.choice()) {
        (true, _) if part.marks.get(index) == Some(&true) => "[x] ",
        (true, _) => "[ ] ",
        (false, Some(Choice::Option(chosen))) if chosen == index => "✓ ",
        (false, _) => "",
    };
    let indent = INDENT + text::width(mark);
    let is_default = part.question.default_value.as_deref() == Some(&option.value);
    let label = if is_default { format!("{} (default)", option.label) } else { option.label.clone() };
    for (number, line) in text::wrap(&label, width.saturating_sub(indent + 1)).into_iter().enumerate() {
        let start = match number {
            0 => format!(" {} {}  {mark}", if here { "❯" } else { " " }, index + 1),
            _ => " ".repeat(indent),
        };
        body.push(Line::styled(style, start).and(style, line));
    }
    if let Some(description) = &option.description {
        paragraph(body, Style::Dim, description, indent, width);
    }
}

/// The row for free text, at the end of the body; sets the cursor while the person types.
fn typed(view: &mut View, part: &Part, typing: bool, width: usize) {
    let here = part.on_text();
    let style = if here { Style::Accent } else { Style::Plain };
    let start = format!(" {} t  ", if here { "❯" } else { " " });
    if !typing && !part.has_text() {
        let invite = if part.question.multi() { "Add an answer of your own…" } else { "Type an answer…" };
        view.body.push(Line::styled(style, start).and(if here { style } else { Style::Dim }, invite));
        return;
    }
    let (lines, (row, column)) = part.text.lines(width.saturating_sub(INDENT + 1));
    if typing {
        view.cursor = Some((view.body.len() + row, INDENT + column));
    }
    let chosen = !part.question.multi() && part.choice() == Some(Choice::Text);
    for (number, line) in lines.into_iter().enumerate() {
        let start = if number == 0 { start.clone() } else { " ".repeat(INDENT) };
        let mark = if number == 0 && chosen && !typing { "✓ " } else { "" };
        view.body.push(Line::styled(style, start).and(style, mark).and(Style::Plain, line));
    }
}

fn review(form: &Form, width: usize, view: &mut View) {
    view.body.push(Line::styled(Style::Strong, " Is this your answer?"));
    view.body.push(Line::new());
    for (index, part) in form.parts().iter().enumerate() {
        let prompt = text::one_line(&part.question.prompt);
        view.body.push(Line::styled(Style::Plain, format!("   {}  {prompt}", index + 1)).cut(width));
        match part.answer() {
            Some(answer) => {
                let chosen = words::chosen(&part.question, &answer.values, answer.free_text.as_deref());
                paragraph(&mut view.body, Style::Accent, &chosen, INDENT, width);
            }
            None => view.body.push(Line::styled(Style::Warn, "      not answered")),
        }
    }
}

fn foot(form: &Form, around: &Around, width: usize) -> Vec<Line> {
    let note = match (&around.status, form.message()) {
        (_, Some(message)) => Line::styled(Style::Warn, format!(" {message}")),
        (Some(status), None) => Line::styled(Style::Warn, format!(" {}", text::one_line(status))),
        (None, None) => Line::new(),
    };
    let mut lines = Vec::new();
    for line in text::wrap(note.text().trim_start(), width.saturating_sub(2)) {
        lines.push(Line::styled(Style::Warn, format!(" {line}")));
    }
    lines.push(hints(&keys(form), width));
    lines
}

/// What the keys do, as many as fit.
pub fn hints(keys: &[(String, &str)], width: usize) -> Line {
    let mut line = Line::new();
    for (index, (key, does)) in keys.iter().enumerate() {
        let gap = if index == 0 { " " } else { " · " };
        let next =
            line.clone().and(Style::Dim, gap).and(Style::Strong, key.clone()).and(Style::Dim, format!(" {does}"));
        if next.width() > width {
            break;
        }
        line = next;
    }
    line
}

fn keys(form: &Form) -> Vec<(String, &'static str)> {
    let key = |key: &str, does| (key.to_owned(), does);
    let several = form.parts().len() > 1;
    match form.stage() {
        Stage::Typing => vec![key("Enter", "take this"), key("Esc", "back"), key("Alt-Enter", "new line")],
        Stage::Review => {
            let some = form.answers().len();
            let all = some == form.parts().len();
            let send = if all { "send" } else { "send only what is answered" };
            vec![key("Enter", send), key("←", "back"), key("q", "leave")]
        }
        Stage::Choosing => {
            let Some(part) = form.parts().get(form.at()) else { return Vec::new() };
            let numbers = format!("↑↓ 1–{}", part.question.options.len());
            let mut keys = Vec::new();
            if part.question.multi() {
                keys.push(key("↑↓", "move"));
                keys.push(key("Space", "choose"));
            } else {
                keys.push((numbers, "choose"));
            }
            keys.push(key("Enter", if several { "next" } else { "send" }));
            keys.push(key("q", "leave"));
            if part.question.free_text() {
                keys.push(key("t", "type"));
            }
            if several {
                keys.push(key("←→", "questions"));
            }
            keys
        }
    }
}
