//! What a message says, in words: the same on every channel.

use std::collections::BTreeSet;

use chips_core::notify::Kind;
use chips_protocol::api::{Ask, AskState};
use chips_protocol::text::shown;
use chips_protocol::{Answer, Question, Timestamp};
use chips_store::Notice;

use crate::words::{Words, fill};

/// Characters of a prompt that go out.
const PROMPT: usize = 240;
/// Characters of an answer that go out.
const ANSWER: usize = 120;
/// Options that fit beside a message where a channel has the most room for them; more are only in the inbox.
const ACTIONS: usize = 4;

/// A message in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// One line: who asks.
    pub title: String,
    /// The question, or what became of it; nothing of either where the space is private.
    pub body: String,
    /// The page of exactly this question.
    pub url: String,
    /// What the options to tap say: of a single question that is answered by one tap, and only where it is still open. All of them
    /// or none; a channel with room for fewer shows none ([`Message::buttons`]).
    pub options: Vec<String>,
    /// After this moment nobody needs it any more.
    pub expires: Option<Timestamp>,
}

impl Message {
    /// What the buttons of a channel say that has room for so many, of so many characters: one for each option, in order. None,
    /// where not all of them fit, or where two of them can't be told apart: half a choice is none.
    pub fn buttons(&self, most: usize, characters: usize) -> Vec<String> {
        let labels: Vec<String> = self.options.iter().map(|label| shortened(label, characters)).collect();
        let distinct: BTreeSet<&String> = labels.iter().collect();
        if labels.len() <= most && distinct.len() == labels.len() { labels } else { Vec::new() }
    }

    /// A message about no question, to see whether messages are taken at all.
    pub(crate) fn trial(base_url: &str, w: &Words) -> Self {
        Self {
            title: "Chips".to_owned(),
            body: w.message.trial.to_owned(),
            url: format!("{base_url}/settings"),
            options: Vec::new(),
            expires: None,
        }
    }

    /// The message of a notice in a language, with links to the inbox at `base_url` (no slash at its end).
    pub(crate) fn of(notice: &Notice, base_url: &str, w: &Words) -> Self {
        let ask = &notice.ask;
        let url = format!("{base_url}/asks/{}", ask.ask_id);
        let asker = &one_line(&ask.asker.name);
        let open = ask.state == AskState::Open;
        let title = match notice.kind {
            Kind::Closed | Kind::Answered => closed_title(ask, w),
            Kind::LastCall => fill(w.message.last_call, &[("who", asker)]),
            Kind::Reminder => fill(w.message.reminder, &[("who", asker)]),
            Kind::Asked => match notice.run_title.as_deref().filter(|_| !notice.private) {
                Some(run) => fill(w.message.asks_in, &[("who", asker), ("run", &shortened(&one_line(run), 60))]),
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
        let options = match questions {
            [question] if open && !notice.private && is_one_tap(question) => {
                question.options.iter().map(|option| one_line(&option.label)).collect()
            }
            _ => Vec::new(),
        };
        Self { title, body, url, options, expires: ask.deadline.filter(|_| open) }
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

pub(crate) fn closed_title(ask: &Ask, w: &Words) -> String {
    let w = &w.message;
    let who = ask.answerer.as_ref().map_or_else(|| w.somebody.to_owned(), |answerer| one_line(&answerer.name));
    let asker = &one_line(&ask.asker.name);
    let pattern = match ask.state {
        AskState::Answered => w.answered,
        AskState::TimedOut => w.timed_out,
        AskState::Settled => w.settled,
        AskState::Withdrawn => w.withdrawn,
        AskState::Open => w.asks,
    };
    fill(pattern, &[("by", &who), ("who", asker)])
}

/// What became of an ask that is closed. A default that was taken is never told as somebody's choice.
pub(crate) fn outcome(ask: &Ask, w: &Words) -> String {
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
    if parts.is_empty() { w.message.none.to_owned() } else { shortened(&one_line(&parts.join(", ")), ANSWER) }
}

/// Somebody's text: what would steer whoever shows it stands escaped, and its line ends are those of text.
pub(super) fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace(['\r', '\u{2028}', '\u{2029}'], "\n");
    shown(&text).trim().to_owned()
}

/// The same on one line: so that a name or a label never reads as a line of its own.
pub(super) fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As [`plain`], cut with an ellipsis.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let plain = plain(text);
    if plain.chars().count() <= most {
        return plain;
    }
    let cut: String = plain.chars().take(most - 1).collect();
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buttons_show_the_whole_choice_or_none() {
        let of = |labels: &[&str]| Message {
            title: String::new(),
            body: String::new(),
            url: String::new(),
            options: labels.iter().map(|label| (*label).to_owned()).collect(),
            expires: None,
        };
        assert_eq!(of(&["Yes", "No"]).buttons(2, 8), ["Yes", "No"]);
        assert_eq!(of(&["Yes", "No", "Later"]).buttons(2, 8), [""; 0]);
        assert_eq!(of(&["Deploy to production", "Deploy to staging"]).buttons(2, 40).len(), 2);
        assert_eq!(of(&["Deploy to production", "Deploy to staging"]).buttons(2, 8), [""; 0], "told apart by nobody");
    }

    #[test]
    fn what_steers_is_shown_and_what_is_one_line_stays_one() {
        assert_eq!(plain(" a\r\nb\rc\u{2028}d\u{202e}e\u{1b}[2J "), "a\nb\nc\nd\\u{202e}e\\u{1b}[2J");
        assert_eq!(one_line("Yes\n  - No\u{2029}\r\n  - Maybe\t!"), "Yes - No - Maybe !");
        assert_eq!(shortened("abcd\n", 4), "abcd");
        assert_eq!(shortened("ab cde", 4), "ab…");
    }
}
