//! What a mail says: its subject, as text and as HTML that loads nothing, and how loudly.

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chips_core::notify::{Kind, on_the_wall};
use chips_protocol::api::{Ask, AskState, Tier};
use chips_protocol::{OnNoAnswer, Question, QuestionAsk, Timestamp};
use chips_store::Notice;

use super::super::message::{Message, one_line, plain, shortened};
use crate::words::{Words, fill};

/// Characters of a subject.
const SUBJECT: usize = 110;
/// Characters of an option's description.
const DESCRIPTION: usize = 400;
/// Characters of a default in a sentence.
const DEFAULT: usize = 80;

/// Bytes of an encoded word, which is 75 characters long at most (RFC 2047, 2).
const ENCODED: usize = 45;

/// How loudly a mail comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Somebody waits for the answer.
    High,
    /// As any other.
    Normal,
    /// It is only for the record.
    Low,
}

impl Urgency {
    /// The headers by which mail programs go (RFC 2156 has the first).
    pub(super) const fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::High => &[("Importance", "high"), ("X-Priority", "1")],
            Self::Normal => &[],
            Self::Low => &[("Importance", "low"), ("X-Priority", "5")],
        }
    }
}

/// A mail that is not addressed yet.
#[derive(Debug)]
pub(super) struct Mail {
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) html: String,
    pub(super) urgency: Urgency,
}

/// A mail's name, and that of the first one of its thread where that is another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) id: String,
    pub(super) first: Option<String>,
}

impl Thread {
    /// The same at each try, so that a mail that came twice can be told for one.
    pub(super) fn of(notice: &Notice, domain: &str) -> Self {
        let (ask, to, no) = (notice.ask.ask_id, notice.endpoint.endpoint_id, notice.no);
        let first = format!("<{ask}.{to}@{domain}>");
        match notice.kind {
            Kind::Asked => Self { id: first, first: None },
            _ => Self { id: format!("<{ask}.{to}.{no}@{domain}>"), first: Some(first) },
        }
    }

    /// Of a mail that belongs to no question.
    pub(super) fn none(domain: &str) -> Self {
        // Named apart from others, not hidden: where there is no randomness, the same name does no harm.
        let (one, other) = (getrandom::u64().unwrap_or_default(), getrandom::u64().unwrap_or_default());
        Self { id: format!("<{one:016x}{other:016x}@{domain}>"), first: None }
    }
}

/// The page that a mail is, as text and as HTML.
#[derive(Template, Default)]
#[template(path = "mail.html")]
struct Page {
    lang: &'static str,
    /// What mail programs show beside the subject.
    preview: String,
    title: String,
    /// Paragraphs before the questions.
    says: Vec<String>,
    questions: Vec<Asked>,
    /// What silence does.
    silence: Option<String>,
    /// To be typed elsewhere.
    code: Option<String>,
    /// A link, and what it says.
    button: Option<(String, &'static str)>,
    /// Paragraphs after all of it.
    rest: Vec<String>,
    why: String,
    settings: Option<(String, &'static str)>,
}

struct Asked {
    prompt: String,
    options: Vec<Chip>,
}

struct Chip {
    label: String,
    description: String,
    /// The word for a default, where it is one.
    mark: Option<&'static str>,
}

/// The mail of a notice.
pub(super) fn notice(notice: &Notice, message: &Message, w: &'static Words, base_url: &str) -> Mail {
    let ask = &notice.ask;
    let open = ask.state == AskState::Open;
    let content = ask.ask.as_ask().filter(|_| !notice.private);
    let questions = content.filter(|_| open).map(|content| content.questions.as_slice()).unwrap_or_default();
    let asked = questions.iter().map(|question| asked(question, w)).collect::<Vec<_>>();
    let page = Page {
        lang: w.lang,
        preview: one_line(&message.body),
        title: one_line(&message.title),
        // The outcome, or that there is something; a question stands below as a whole.
        says: if asked.is_empty() { vec![plain(&message.body)] } else { Vec::new() },
        questions: asked,
        silence: content.filter(|_| open).map(|content| silence(ask, content, &notice.zone, w)),
        button: Some((message.url.clone(), if open { w.mail.open } else { w.mail.look })),
        why: fill(w.mail.why, &[("address", &notice.endpoint.address)]),
        settings: Some((format!("{base_url}/settings"), w.mail.settings)),
        ..Page::default()
    };
    let urgency = match (notice.kind, ask.tier) {
        (Kind::Closed | Kind::Answered, _) => Urgency::Low,
        (_, Tier::TimeSensitive) => Urgency::High,
        _ => Urgency::Normal,
    };
    page.mail(subject(notice, w), urgency)
}

/// The subject as it stands in the header. Where a part of it looks like an encoded word (RFC 2047), mail programs would
/// decode what somebody wrote, and show what was escaped: then all of it is encoded.
pub(super) fn header(subject: &str) -> String {
    if !subject.contains("=?") {
        return subject.to_owned();
    }
    let mut words = vec![String::new()];
    for c in subject.chars() {
        if let Some(last) = words.last_mut() {
            if last.len() + c.len_utf8() <= ENCODED {
                last.push(c);
            } else {
                words.push(c.to_string());
            }
        }
    }
    let encoded = words.iter().map(|word| format!("=?utf-8?b?{}?=", STANDARD.encode(word)));
    encoded.collect::<Vec<_>>().join(" ")
}

/// The same for every mail of a thread: programs keep those together that read alike.
fn subject(notice: &Notice, w: &Words) -> String {
    let asker = one_line(&notice.ask.asker.name);
    let prompt = match notice.ask.ask.as_ask().and_then(|ask| ask.questions.first()) {
        Some(question) if !notice.private => one_line(&question.prompt),
        _ => String::new(),
    };
    let first = match prompt.is_empty() {
        true => fill(w.mail.subject_private, &[("who", &asker)]),
        false => fill(w.mail.subject, &[("who", &asker), ("what", &prompt)]),
    };
    let first = shortened(&first, SUBJECT);
    if notice.kind == Kind::Asked { first } else { format!("Re: {first}") }
}

fn asked(question: &Question, w: &'static Words) -> Asked {
    let default = question.default_value.as_deref();
    let chip = |option: &chips_protocol::QuestionOption| Chip {
        label: one_line(&option.label),
        description: option.description.as_deref().map(|text| shortened(&plain(text), DESCRIPTION)).unwrap_or_default(),
        mark: (default == Some(option.value.as_str())).then_some(w.is_default),
    };
    Asked { prompt: plain(&question.prompt), options: question.options.iter().map(chip).collect() }
}

/// What happens if nobody answers, in the words of the inbox; at a time that says all of itself, for mail is read late.
fn silence(ask: &Ask, content: &QuestionAsk, zone: &str, w: &Words) -> String {
    let asker = one_line(&ask.asker.name);
    let who = ("who", asker.as_str());
    let Some(deadline) = ask.deadline else { return fill(w.waits_for_you, &[who]) };
    let when = moment(deadline, zone, w);
    let when = ("when", when.as_str());
    let places = [who, when];
    let says = match (content.on_no_answer(), content.questions.as_slice()) {
        (OnNoAnswer::UseDefault, [only]) => {
            let value = only.default_value.as_deref().unwrap_or_default();
            let label = only.option(value).map_or(value, |option| option.label.as_str());
            let (open, close) = w.quotes;
            let what = format!("{open}{}{close}", shortened(&one_line(label), DEFAULT));
            fill(w.takes, &[who, when, ("what", &what)])
        }
        (OnNoAnswer::UseDefault, _) => fill(w.takes_defaults, &places),
        (OnNoAnswer::Cancel, _) => fill(w.gives_up, &places),
        (OnNoAnswer::Continue, _) => fill(w.goes_on, &places),
    };
    fill(w.mail.silence, &[("what", &says)])
}

fn moment(at: Timestamp, zone: &str, w: &Words) -> String {
    let (day, time) = on_the_wall(zone, at);
    fill(w.mail.moment, &[("day", &day), ("time", &time), ("zone", zone)])
}

/// A mail about no question.
pub(super) fn trial(address: &str, message: &Message, w: &'static Words, base_url: &str) -> Mail {
    let page = Page {
        lang: w.lang,
        preview: message.body.clone(),
        title: w.mail.trial.to_owned(),
        says: vec![message.body.clone()],
        why: fill(w.mail.why, &[("address", address)]),
        settings: Some((format!("{base_url}/settings"), w.mail.settings)),
        ..Page::default()
    };
    page.mail(w.mail.trial.to_owned(), Urgency::Normal)
}

/// The mail that asks whether an address is the person's.
pub(super) fn proof(address: &str, code: &str, name: &str, w: &'static Words, base_url: &str) -> Mail {
    let says = fill(w.mail.proof, &[("who", &one_line(name)), ("address", address), ("url", base_url)]);
    let page = Page {
        lang: w.lang,
        preview: says.clone(),
        title: w.mail.proof_title.to_owned(),
        says: vec![says],
        code: Some(code.to_owned()),
        rest: vec![w.mail.proof_rest.to_owned()],
        why: w.mail.proof_why.to_owned(),
        ..Page::default()
    };
    page.mail(w.mail.proof_title.to_owned(), Urgency::Normal)
}

impl Page {
    fn mail(&self, subject: String, urgency: Urgency) -> Mail {
        let html = self.render().unwrap_or_else(|fault| {
            tracing::error!(%fault, "a mail failed to render");
            String::new()
        });
        Mail { subject, text: self.text(), html, urgency }
    }

    fn text(&self) -> String {
        let mut parts = vec![self.title.clone()];
        parts.extend(self.says.iter().cloned());
        for Asked { prompt, options } in &self.questions {
            // Quoted, so that none of its lines reads as one of this mail's own.
            let mut lines: Vec<String> = prompt.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
            lines.push(String::new());
            for Chip { label, description, mark } in options {
                let mark = mark.map(|mark| format!(" ({mark})")).unwrap_or_default();
                lines.push(format!("  - {label}{mark}"));
                lines.extend(description.lines().map(|line| format!("    {line}")));
            }
            parts.push(lines.join("\n"));
        }
        parts.extend(self.silence.clone());
        parts.extend(self.code.clone());
        parts.extend(self.button.iter().map(|(url, says)| format!("{says}:\n{url}")));
        parts.extend(self.rest.iter().cloned());
        let settings = self.settings.iter().map(|(url, says)| format!("\n{says}: {url}")).collect::<String>();
        // The line before it is by which mail programs know what is no part of what was said (RFC 3676, 4.3).
        parts.push(format!("-- \n{}{settings}", self.why));
        parts.join("\n\n") + "\n"
    }
}
