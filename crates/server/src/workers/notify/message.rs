//! What a message says, in words: the same on every channel.

use chips_core::notify::Kind;
use chips_protocol::api::{Ask, AskState};
use chips_protocol::{Answer, Question, Timestamp};
use chips_store::Notice;

/// Characters of a prompt that go out.
const PROMPT: usize = 240;
/// Characters of an answer that go out.
const ANSWER: usize = 120;
/// Options that fit beside a message where a channel has the most room for them; more are only in the inbox.
const ACTIONS: usize = 3;

/// An option that can be tapped beside the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The question.
    pub question_id: String,
    /// The value that it chooses.
    pub value: String,
    /// What it says.
    pub label: String,
}

/// A message in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// One line: who asks.
    pub title: String,
    /// The question, or what became of it; nothing of either where the space is private.
    pub body: String,
    /// The page of exactly this question.
    pub url: String,
    /// Options to tap: of a single question that is answered by one tap, and only where it is still open. All of them or
    /// none; a channel with room for fewer shows none ([`Message::actions_up_to`]).
    pub actions: Vec<Action>,
    /// After this moment nobody needs it any more.
    pub expires: Option<Timestamp>,
}

impl Message {
    /// All options, where there are no more than a channel has room for: half a choice is none.
    pub fn actions_up_to(&self, most: usize) -> &[Action] {
        if self.actions.len() <= most { &self.actions } else { &[] }
    }

    /// A message about no question, to see whether messages are taken at all.
    pub fn trial(base_url: &str) -> Self {
        Self {
            title: "Chips".to_owned(),
            body: "A test message. Nothing is to be done.".to_owned(),
            url: format!("{base_url}/settings"),
            actions: Vec::new(),
            expires: None,
        }
    }

    /// The message of a notice, with links to the inbox at `base_url` (no slash at its end).
    pub fn of(notice: &Notice, base_url: &str) -> Self {
        let ask = &notice.ask;
        let url = format!("{base_url}/asks/{}", ask.ask_id);
        let asker = &ask.asker.name;
        let open = ask.state == AskState::Open;
        let title = match notice.kind {
            Kind::Closed | Kind::Answered => closed_title(ask),
            Kind::LastCall => format!("Last call: {asker} goes on soon"),
            Kind::Reminder => format!("{asker} still waits"),
            Kind::Asked => match notice.run_title.as_deref().filter(|_| !notice.private) {
                Some(run) => format!("{asker} asks · {}", shortened(run, 60)),
                None => format!("{asker} asks"),
            },
        };
        let questions = ask.ask.as_ask().map(|ask| ask.questions.as_slice()).unwrap_or_default();
        let body = match (notice.private, open) {
            (true, true) => "A question waits in the inbox.".to_owned(),
            (true, false) => "Nothing is left to do.".to_owned(),
            (false, true) => asked(questions),
            (false, false) => outcome(ask),
        };
        let actions = match questions {
            [question] if open && !notice.private && is_one_tap(question) => question
                .options
                .iter()
                .map(|option| Action {
                    question_id: question.question_id.clone(),
                    value: option.value.clone(),
                    label: option.label.clone(),
                })
                .collect(),
            _ => Vec::new(),
        };
        Self { title, body, url, actions, expires: ask.deadline.filter(|_| open) }
    }
}

/// Whether one tap answers the question and every option fits beside the message.
fn is_one_tap(question: &Question) -> bool {
    question.multi_select != Some(true) && question.options.len() <= ACTIONS
}

fn asked(questions: &[Question]) -> String {
    let Some(first) = questions.first() else { return String::new() };
    let mut text = shortened(&first.prompt, PROMPT);
    match questions.len() {
        0 | 1 => {}
        2 => text.push_str("\nand one more question"),
        more => text.push_str(&format!("\nand {} more questions", more - 1)),
    }
    text
}

pub(super) fn closed_title(ask: &Ask) -> String {
    let who = ask.answerer.as_ref().map_or("Somebody", |answerer| answerer.name.as_str());
    let asker = &ask.asker.name;
    match ask.state {
        AskState::Answered => format!("{who} answered {asker}"),
        AskState::TimedOut => format!("{asker} goes on without an answer"),
        AskState::Settled => format!("{asker} settled its question"),
        AskState::Withdrawn => format!("{asker} withdrew its question"),
        AskState::Open => format!("{asker} asks"),
    }
}

/// What became of an ask that is closed. A default that was taken is never told as somebody's choice.
pub(super) fn outcome(ask: &Ask) -> String {
    let answers = ask.answer.as_ref().and_then(|event| event.as_answered()).map(|answered| answered.answers.as_slice());
    let taken: Vec<String> = answers.unwrap_or_default().iter().map(|answer| words(ask, answer)).collect();
    let taken = taken.join("; ");
    match (ask.state, taken.is_empty()) {
        (AskState::TimedOut, true) => "Nobody answered in time.".to_owned(),
        (AskState::TimedOut, false) => format!("Nobody answered in time. Default: {taken}"),
        (_, true) => "Nothing is left to do.".to_owned(),
        (_, false) => taken,
    }
}

fn words(ask: &Ask, answer: &Answer) -> String {
    let labels = ask.option_labels.get(&answer.question_id);
    let label = |value: &String| labels.and_then(|labels| labels.get(value)).unwrap_or(value).clone();
    let mut parts: Vec<String> = answer.values.iter().map(label).collect();
    parts.extend(answer.free_text.iter().map(|text| format!("“{text}”")));
    if parts.is_empty() { "none of these".to_owned() } else { shortened(&parts.join(", "), ANSWER) }
}

/// A text on few lines, without characters that steer whoever shows it, cut with an ellipsis.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let plain: String = text
        .chars()
        .map(|c| {
            if c == '\n' {
                c
            } else if c.is_control() {
                ' '
            } else {
                c
            }
        })
        .filter(|c| !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}'))
        .collect();
    let plain = plain.trim();
    if plain.chars().count() <= most {
        return plain.to_owned();
    }
    let cut: String = plain.chars().take(most - 1).collect();
    format!("{}…", cut.trim_end())
}
