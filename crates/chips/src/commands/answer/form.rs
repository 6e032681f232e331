//! The form that a person answers on: what keys do to it, and what it comes to. No terminal, no clock, no network.

use chips_protocol::text::is_blank;
use chips_protocol::{Answer, Question, limits};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::terminal::editor::Editor;

/// What a key leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing beyond the form.
    Stay,
    /// The person leaves without an answer.
    Leave,
    /// The body is scrolled by pages.
    Scroll(isize),
    /// This is the answer.
    Send(Vec<Answer>),
}

/// What the form is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The person moves among the options of a question.
    Choosing,
    /// The person types.
    Typing,
    /// All questions have been gone through; what will be sent is shown.
    Review,
}

/// What a person has chosen for a question of which one option is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The option at this index.
    Option(usize),
    /// What was typed.
    Text,
}

/// One question, and what the person has done about it so far.
#[derive(Debug, Clone)]
pub struct Part {
    /// The question.
    pub question: Question,
    /// The row that the cursor is on: an option's index, or the one after the last for the text.
    pub row: usize,
    /// For each option of a multi-select question, whether it is chosen.
    pub marks: Vec<bool>,
    /// What has been typed. It is kept, whatever is chosen.
    pub text: Editor,
    /// What was chosen, where one option is taken.
    choice: Option<Choice>,
    /// A multi-select question was gone through, whatever is chosen.
    done: bool,
}

/// The form.
#[derive(Debug, Clone)]
pub struct Form {
    parts: Vec<Part>,
    at: usize,
    stage: Stage,
    /// What the person is told of the last key.
    message: Option<&'static str>,
    /// What Enter (or Esc) does only when it is pressed again.
    asked: Option<Asked>,
    /// The row that the cursor is on can be seen.
    pub seen: bool,
    scrolled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    SendNone,
    Leave,
}

impl Part {
    fn new(question: Question) -> Self {
        let marks = vec![false; question.options.len()];
        Self { question, row: 0, marks, text: Editor::default(), choice: None, done: false }
    }

    /// Rows: the options, and the text where it is allowed.
    fn rows(&self) -> usize {
        self.question.options.len() + usize::from(self.question.free_text())
    }

    /// Whether the cursor is on the text.
    pub fn on_text(&self) -> bool {
        self.row == self.question.options.len()
    }

    /// Whether something is typed that could be sent.
    pub fn has_text(&self) -> bool {
        !is_blank(self.text.text())
    }

    /// What was chosen, where one option is taken.
    pub fn choice(&self) -> Option<Choice> {
        self.choice
    }

    /// What this question's entry would be; nothing where it was not answered.
    pub fn answer(&self) -> Option<Answer> {
        let typed = || Some(self.text.text().to_owned());
        let value = |index: usize| self.question.options.get(index).map(|option| option.value.clone());
        let (values, free_text) = if self.question.multi() {
            if !self.done {
                return None;
            }
            let marked = self.marks.iter().enumerate().filter(|(_, marked)| **marked);
            (marked.filter_map(|(index, _)| value(index)).collect(), if self.has_text() { typed() } else { None })
        } else {
            match self.choice? {
                Choice::Option(index) => (vec![value(index)?], None),
                Choice::Text if self.has_text() => (Vec::new(), typed()),
                Choice::Text => return None,
            }
        };
        Some(Answer { question_id: self.question.question_id.clone(), values, free_text })
    }
}

impl Form {
    /// A form for these questions.
    pub fn new(questions: &[Question]) -> Self {
        Self {
            parts: questions.iter().cloned().map(Part::new).collect(),
            at: 0,
            stage: Stage::Choosing,
            message: None,
            asked: None,
            seen: true,
            // A long prompt is read from its start.
            scrolled: true,
        }
    }

    /// All questions.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The index of the question that is shown.
    pub fn at(&self) -> usize {
        self.at
    }

    /// What the form is at.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// What the person is told of the last key.
    pub fn message(&self) -> Option<&'static str> {
        self.message
    }

    /// Whether the person has scrolled away from the cursor.
    pub fn scrolled(&self) -> bool {
        self.scrolled && self.stage == Stage::Choosing
    }

    /// What has been typed, whether or not it would be sent.
    pub fn drafts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter(|part| part.has_text()).map(|part| part.text.text())
    }

    fn part(&mut self) -> &mut Part {
        &mut self.parts[self.at]
    }

    /// Acts on pasted text: it goes into the text field, or nowhere.
    pub fn paste(&mut self, pasted: &str) {
        self.message = None;
        if self.stage == Stage::Typing {
            self.part().text.insert(pasted);
        } else {
            self.message = Some("Pasted text goes into an answer that you type; press t first.");
        }
    }

    /// Acts on a key.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        self.message = None;
        let asked = self.asked.take();
        match self.stage {
            Stage::Typing => self.typing(key),
            Stage::Choosing => self.choosing(key, asked),
            Stage::Review => self.review(key, asked),
        }
    }

    fn typing(&mut self, key: KeyEvent) -> Action {
        let plain = !key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc | KeyCode::Up | KeyCode::Down | KeyCode::Tab | KeyCode::BackTab => {
                self.stage = Stage::Choosing;
            }
            KeyCode::Enter if plain => return self.take_text(),
            _ => {
                self.part().text.key(key);
            }
        }
        Action::Stay
    }

    /// Enter in the text field.
    fn take_text(&mut self) -> Action {
        let part = self.part();
        if part.text.text().chars().count() > limits::FREE_TEXT {
            self.message = Some("That is more than the 10,000 characters that an answer may have.");
            return Action::Stay;
        }
        let (has_text, multi) = (part.has_text(), part.question.multi());
        if has_text && !multi {
            part.choice = Some(Choice::Text);
        }
        self.stage = Stage::Choosing;
        if !has_text {
            self.message = Some("Nothing is typed; choose an option, or type t again.");
            Action::Stay
        } else if multi {
            self.message = Some("Enter once more takes this and what is chosen above.");
            Action::Stay
        } else {
            self.advance()
        }
    }

    fn choosing(&mut self, key: KeyEvent, asked: Option<Asked>) -> Action {
        let last = self.part().rows() - 1;
        let row = self.part().row;
        if key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::CONTROL) {
            return Action::Stay;
        }
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.move_to(row.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.move_to((row + 1).min(last)),
            KeyCode::Home => self.move_to(0),
            KeyCode::End => self.move_to(last),
            KeyCode::PageUp => return self.scroll(-1),
            KeyCode::PageDown => return self.scroll(1),
            KeyCode::Char(digit @ '1'..='9') => return self.digit(digit),
            KeyCode::Char(' ') => self.toggle(),
            KeyCode::Char('t') if self.part().question.free_text() => self.type_text(),
            KeyCode::Tab | KeyCode::Right if self.parts.len() > 1 => return self.next_page(),
            KeyCode::BackTab | KeyCode::Left => self.go_to(self.at.saturating_sub(1)),
            KeyCode::Enter => return self.enter(asked),
            KeyCode::Esc | KeyCode::Char('q') => return self.leave(asked),
            _ => {}
        }
        Action::Stay
    }

    fn scroll(&mut self, pages: isize) -> Action {
        self.scrolled = true;
        Action::Scroll(pages)
    }

    fn move_to(&mut self, row: usize) {
        self.scrolled = false;
        self.part().row = row;
    }

    fn digit(&mut self, digit: char) -> Action {
        let index = usize::from(digit as u8 - b'1');
        if index < self.part().question.options.len() {
            self.move_to(index);
            self.toggle_mark(index);
        }
        Action::Stay
    }

    fn toggle(&mut self) {
        let row = self.part().row;
        self.move_to(row);
        if self.part().on_text() {
            self.type_text();
        } else if self.part().question.multi() {
            self.toggle_mark(row);
        } else {
            self.message = Some("Enter takes the option that the cursor is on.");
        }
    }

    fn toggle_mark(&mut self, index: usize) {
        let part = self.part();
        if part.question.multi() {
            part.marks[index] = !part.marks[index];
            // What was gone through before has changed.
            part.done = false;
        }
    }

    fn type_text(&mut self) {
        let row = self.part().question.options.len();
        self.move_to(row);
        self.stage = Stage::Typing;
    }

    /// Enter on a question.
    fn enter(&mut self, asked: Option<Asked>) -> Action {
        if !self.seen {
            self.scrolled = false;
            self.message = Some("This is what Enter takes; press it again.");
            return Action::Stay;
        }
        let part = self.part();
        if part.question.multi() {
            let nothing = !part.marks.contains(&true) && !part.has_text();
            if part.on_text() && !part.has_text() {
                self.type_text();
                return Action::Stay;
            }
            if nothing && asked != Some(Asked::SendNone) {
                self.asked = Some(Asked::SendNone);
                self.message = Some("Nothing is chosen. Enter once more answers “none of these”.");
                return Action::Stay;
            }
            self.part().done = true;
            return self.advance();
        }
        if part.on_text() {
            self.type_text();
            return Action::Stay;
        }
        part.choice = Some(Choice::Option(part.row));
        self.advance()
    }

    /// A question was answered: what comes next.
    fn advance(&mut self) -> Action {
        if self.parts.len() == 1 {
            return Action::Send(self.answers());
        }
        self.next_page()
    }

    fn next_page(&mut self) -> Action {
        if self.at + 1 < self.parts.len() {
            self.go_to(self.at + 1);
        } else {
            self.stage = Stage::Review;
        }
        Action::Stay
    }

    fn go_to(&mut self, at: usize) {
        if at != self.at {
            self.at = at;
            self.scrolled = true;
        }
        self.stage = Stage::Choosing;
    }

    fn review(&mut self, key: KeyEvent, asked: Option<Asked>) -> Action {
        match key.code {
            KeyCode::Enter => {
                let answers = self.answers();
                if answers.is_empty() {
                    self.message = Some("No question is answered yet; go back with ←.");
                    return Action::Stay;
                }
                return Action::Send(answers);
            }
            KeyCode::Char(digit @ '1'..='9') => {
                let index = usize::from(digit as u8 - b'1');
                if index < self.parts.len() {
                    self.at = index;
                    self.stage = Stage::Choosing;
                }
            }
            KeyCode::BackTab | KeyCode::Left | KeyCode::Up | KeyCode::Char('k') => self.stage = Stage::Choosing,
            KeyCode::Esc | KeyCode::Char('q') => return self.leave(asked),
            _ => {}
        }
        Action::Stay
    }

    fn leave(&mut self, asked: Option<Asked>) -> Action {
        if asked == Some(Asked::Leave) || self.drafts().next().is_none() {
            return Action::Leave;
        }
        self.asked = Some(Asked::Leave);
        self.message = Some("What you typed is not sent. Once more leaves it behind.");
        Action::Stay
    }

    /// One entry for each question that was answered.
    pub fn answers(&self) -> Vec<Answer> {
        self.parts.iter().filter_map(Part::answer).collect()
    }
}

#[cfg(test)]
mod tests;
