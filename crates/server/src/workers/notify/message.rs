//! What a message says, in words: the same on every channel.

use chips_core::notify::Kind;
use chips_protocol::api::{Ask, AskState};
use chips_protocol::{Answer, Question, Timestamp};
use chips_store::Notice;

use crate::inbox::words::{Words, fill};

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
    pub(crate) fn trial(base_url: &str, w: &Words) -> Self {
        Self {
            title: "Chips".to_owned(),
            body: w.message.trial.to_owned(),
            url: format!("{base_url}/settings"),
            actions: Vec::new(),
            expires: None,
        }
    }

    /// The message of a notice in a language, with links to the inbox at `base_url` (no slash at its end).
    pub(crate) fn of(notice: &Notice, base_url: &str, w: &Words) -> Self {
        let ask = &notice.ask;
        let url = format!("{base_url}/asks/{}", ask.ask_id);
        let asker = &ask.asker.name;
        let open = ask.state == AskState::Open;
        let title = match notice.kind {
            Kind::Closed | Kind::Answered => closed_title(ask, w),
            Kind::LastCall => fill(w.message.last_call, &[("who", asker)]),
            Kind::Reminder => fill(w.message.reminder, &[("who", asker)]),
            Kind::Asked => match notice.run_title.as_deref().filter(|_| !notice.private) {
                Some(run) => fill(w.message.asks_in, &[("who", asker), ("run", &shortened(run, 60))]),
                None => fill(w.message.asks, &[("who", asker)]),
            },
        };
        let questions = ask.ask.as_ask().map(|ask| ask.questions.as_slice()).unwrap_or_default();
        let body = match (notice.private, open) {
            (true, true) => w.message.private.to_owned(),
            (true, false) => w.message.nothing_left.to_owned(),
            (false, true) => asked(questions, w),
            (false, false) => outcome(ask, w),
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

fn asked(questions: &[Question], w: &Words) -> String {
    let Some(first) = questions.first() else { return String::new() };
    let mut text = shortened(&first.prompt, PROMPT);
    let more = questions.len() - 1;
    if more > 0 {
        text.push('\n');
        text.push_str(&fill(w.message.more.of(more), &[("n", &more.to_string())]));
    }
    text
}

pub(super) fn closed_title(ask: &Ask, w: &Words) -> String {
    let w = &w.message;
    let who = ask.answerer.as_ref().map_or(w.somebody, |answerer| answerer.name.as_str());
    let asker = &ask.asker.name;
    let pattern = match ask.state {
        AskState::Answered => w.answered,
        AskState::TimedOut => w.timed_out,
        AskState::Settled => w.settled,
        AskState::Withdrawn => w.withdrawn,
        AskState::Open => w.asks,
    };
    fill(pattern, &[("by", who), ("who", asker)])
}

/// What became of an ask that is closed. A default that was taken is never told as somebody's choice.
pub(super) fn outcome(ask: &Ask, w: &Words) -> String {
    let answers = ask.answer.as_ref().and_then(|event| event.as_answered()).map(|answered| answered.answers.as_slice());
    let taken: Vec<String> = answers.unwrap_or_default().iter().map(|answer| words(ask, answer, w)).collect();
    let taken = taken.join("; ");
    match (ask.state, taken.is_empty()) {
        (AskState::TimedOut, true) => w.message.nobody.to_owned(),
        (AskState::TimedOut, false) => fill(w.message.took_default, &[("what", &taken)]),
        (_, true) => w.message.nothing_left.to_owned(),
        (_, false) => taken,
    }
}

fn words(ask: &Ask, answer: &Answer, w: &Words) -> String {
    let (open, close) = w.quotes;
    let labels = ask.option_labels.get(&answer.question_id);
    let label = |value: &String| labels.and_then(|labels| labels.get(value)).unwrap_or(value).clone();
    let mut parts: Vec<String> = answer.values.iter().map(label).collect();
    parts.extend(answer.free_text.iter().map(|text| format!("{open}{text}{close}")));
    if parts.is_empty() { w.message.none.to_owned() } else { shortened(&parts.join(", "), ANSWER) }
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
