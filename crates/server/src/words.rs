//! Every word that people read in the inbox, in one table for each language. A table is a value of one type, so a word that a
//! language lacks is an error of the compiler.
//!
//! A `{place}` is filled in with a name, a text or a time; a language may order them as it likes.

mod de;
mod en;
mod mail;
mod telegram;

use chips_protocol::api::AskState;
use serde::Serialize;

/// The tables, the language for everybody else first.
pub(crate) static LANGUAGES: [&Words; 2] = [&en::WORDS, &de::WORDS];

/// The keys of the keyboard, in the order of [`Words::keys`].
pub(crate) const KEYS: [&str; 6] = ["j  ↓", "k  ↑", "1 – 9", "Enter", "Esc", "?"];

/// The words of one language.
#[derive(Debug)]
pub(crate) struct Words {
    /// The language, as BCP 47 has it.
    pub lang: &'static str,
    /// What those who read it call it.
    pub language_name: &'static str,
    /// The marks around what somebody chose or wrote.
    pub quotes: (&'static str, &'static str),
    /// Between the entries of a list in a sentence.
    pub list_separator: &'static str,
    /// Seconds, minutes, hours and days, short, behind a number.
    pub units: [&'static str; 4],

    // The frame of every page
    pub open: &'static str,
    pub history: &'static str,
    pub settings: &'static str,
    pub main_navigation: &'static str,
    pub skip: &'static str,
    pub insecure: &'static str,

    // The shelves
    pub nothing_open_hint: &'static str,
    pub waiting_shelf: &'static str,
    pub going_shelf: &'static str,
    pub gone_shelf: &'static str,
    pub gone_hint: &'static str,
    pub closed_shelf: &'static str,
    pub more_open: &'static str,
    pub first_open: &'static str,
    pub filter: &'static str,
    pub any_space: &'static str,
    pub any_harness: &'static str,
    pub any_shelf: &'static str,
    pub show: &'static str,
    pub show_all: &'static str,
    pub nothing_sifted: &'static str,
    pub sift_unreadable: &'static str,

    // A card
    pub question_of: &'static str,
    pub read_all: &'static str,
    pub answer: &'static str,
    pub is_default: &'static str,
    pub several_allowed: &'static str,
    pub none_of_these: &'static str,
    pub something_else: &'static str,
    pub add_words: &'static str,
    pub send_partial: &'static str,
    pub kept_for: &'static str,
    pub also_typed: &'static str,
    pub kept_late: &'static str,
    /// Beside a text, where a tap on an option sends that instead
    pub tap_or_text: &'static str,
    /// Beside a text, where an option is chosen as well
    pub draft: &'static str,

    // What silence does; `{when}` is one of the two patterns for a deadline
    pub until: &'static str,
    pub waits_for_you: &'static str,
    pub takes: &'static str,
    pub takes_defaults: &'static str,
    pub gives_up: &'static str,
    pub goes_on: &'static str,
    pub asker_gone: &'static str,

    // How it ended
    pub you_answered: &'static str,
    pub answered: &'static str,
    pub you_answered_many: &'static str,
    pub answered_many: &'static str,
    pub settled: &'static str,
    pub settled_many: &'static str,
    pub timed_out_default: &'static str,
    pub timed_out_took: &'static str,
    pub timed_out_many: &'static str,
    pub timed_out_gives_up: &'static str,
    pub timed_out_goes_on: &'static str,
    pub withdrawn: &'static str,
    pub withdrawn_by_end: &'static str,
    pub no_entry: &'static str,
    pub none_chosen: &'static str,
    pub yours_late: &'static str,
    pub named_late: &'static str,
    pub others_late: &'static str,
    pub answered_label: &'static str,
    pub timed_out_label: &'static str,
    pub settled_label: &'static str,
    pub withdrawn_label: &'static str,

    // A question's story
    pub story: &'static str,
    pub story_asked: &'static str,
    pub story_seen: &'static str,
    pub story_seen_yours: &'static str,
    pub story_late: &'static str,
    pub story_late_yours: &'static str,
    pub story_late_others: &'static str,
    pub story_deadline: &'static str,
    pub story_delivered: &'static str,
    pub story_not_delivered: &'static str,
    pub story_acted: &'static str,
    pub nobody_told: &'static str,
    pub told_asked: &'static str,
    pub told_reminder: &'static str,
    pub told_last_call: &'static str,
    pub told_closed: &'static str,
    pub told_answered: &'static str,
    pub told_accepted: &'static str,
    pub told_refused: &'static str,
    pub told_failed: &'static str,
    pub told_timed_out: &'static str,
    pub told_gone: &'static str,
    pub back: &'static str,

    // Notices on a form
    pub choose_first: &'static str,
    pub choose_first_many: &'static str,
    pub none_and_some: &'static str,
    pub which_one: &'static str,
    pub which_one_many: &'static str,
    pub send_this: &'static str,
    pub send_text: &'static str,
    pub partial: Count,
    pub too_long: &'static str,
    pub bad_characters: &'static str,
    pub not_accepted: &'static str,
    pub other_sign_in: &'static str,
    pub too_late: &'static str,
    pub cannot_write: &'static str,

    // History and runs
    pub search: &'static str,
    pub search_hint: &'static str,
    pub all_states: &'static str,
    pub older: &'static str,
    pub newest: &'static str,
    pub nothing_closed: &'static str,
    pub nothing_found: &'static str,
    pub run: &'static str,
    pub run_live: &'static str,
    pub run_ended: &'static str,
    pub run_started: &'static str,
    pub run_ended_at: &'static str,
    pub run_part_of: &'static str,
    pub run_look: &'static str,
    pub run_open: &'static str,
    pub run_closed: &'static str,
    pub run_nothing: &'static str,
    pub untitled_run: &'static str,

    // Settings
    pub you: &'static str,
    pub your_spaces: &'static str,
    pub no_spaces: &'static str,
    pub owner: &'static str,
    pub your_devices: &'static str,
    pub this_device: &'static str,
    pub unknown_device: &'static str,
    pub signed_in_at: &'static str,
    pub last_used: &'static str,
    /// A browser and a system.
    pub device: &'static str,
    pub end_session: &'static str,
    pub end_others: &'static str,
    pub sign_out: &'static str,
    pub on_this_device: &'static str,
    pub language: &'static str,
    pub language_auto: &'static str,
    pub undo_time: &'static str,
    pub undo_hint: &'static str,
    pub undo_none: &'static str,
    pub undo_seconds: Count,
    pub keys_use: &'static str,
    pub keys_hint: &'static str,
    pub yes: &'static str,
    pub no: &'static str,
    pub save: &'static str,
    pub keys_title: &'static str,
    /// What each of [`KEYS`] does.
    pub keys: [&'static str; KEYS.len()],
    pub close: &'static str,

    // Where and when people are told
    pub where_told: &'static str,
    pub where_told_hint: &'static str,
    pub channel_web_push: &'static str,
    pub channel_ntfy: &'static str,
    pub channel_email: &'static str,
    pub channel_telegram: &'static str,
    pub channel_webhook: &'static str,
    pub endpoint_since: &'static str,
    pub endpoint_trouble: &'static str,
    pub endpoint_gone: &'static str,
    pub send_trial: &'static str,
    pub trial_accepted: &'static str,
    pub trial_timed_out: &'static str,
    pub trial_refused: &'static str,
    pub remove: &'static str,
    pub add: &'static str,
    pub push: &'static str,
    pub push_hint: &'static str,
    pub push_script: &'static str,
    pub push_insecure: &'static str,
    pub push_install: &'static str,
    pub push_unsupported: &'static str,
    pub push_blocked: &'static str,
    pub push_turn_on: &'static str,
    pub push_on: &'static str,
    pub push_gone: &'static str,
    pub push_renew: &'static str,
    pub push_leave: &'static str,
    pub push_mismatch: &'static str,
    pub add_ntfy: &'static str,
    pub ntfy_hint: &'static str,
    pub ntfy_server: &'static str,
    pub ntfy_topic: &'static str,
    pub ntfy_access: &'static str,
    pub ntfy_access_hint: &'static str,
    pub add_webhook: &'static str,
    pub webhook_hint: &'static str,
    pub webhook_url: &'static str,
    pub endpoint_name: &'static str,
    pub key_shown: &'static str,
    pub fault_server: &'static str,
    pub fault_topic: &'static str,
    pub fault_access: &'static str,
    pub fault_url: &'static str,
    pub fault_long: &'static str,
    pub fault_refused: &'static str,
    pub fault_known: &'static str,
    pub fault_many: &'static str,
    pub fault_name: &'static str,
    pub when_told: &'static str,
    pub zone: &'static str,
    pub zone_hint: &'static str,
    pub quiet: &'static str,
    pub quiet_hint: &'static str,
    pub quiet_from: &'static str,
    pub quiet_to: &'static str,
    pub quiet_all: &'static str,
    pub grace: &'static str,
    pub grace_hint: &'static str,
    pub reminders: &'static str,
    pub reminders_hint: &'static str,
    pub tier_waits: &'static str,
    pub tier_goes: &'static str,
    pub muted: &'static str,
    pub muted_hint: &'static str,
    pub fault_zone: &'static str,
    pub fault_quiet: &'static str,
    pub fault_grace: &'static str,

    // Signing in
    pub sign_in: &'static str,
    pub sign_in_as: &'static str,
    pub sign_in_as_hint: &'static str,
    pub sign_in_button: &'static str,
    pub code_label: &'static str,
    pub code_hint: &'static str,
    pub code_wrong: &'static str,
    pub code_empty: &'static str,
    pub code_instead: &'static str,
    pub code_lost: &'static str,
    pub link_used: &'static str,
    pub link_expired: &'static str,
    pub link_unknown: &'static str,
    pub other_browser: &'static str,
    pub form_stale: &'static str,
    pub too_many: &'static str,

    /// What an installed inbox is described as.
    pub product: &'static str,

    // Pages that say no
    pub not_found: &'static str,
    pub not_found_hint: &'static str,
    pub foreign: &'static str,
    pub foreign_hint: &'static str,
    pub bad_form: &'static str,
    pub bad_form_hint: &'static str,
    pub too_large: &'static str,
    pub too_large_hint: &'static str,
    pub signed_out: &'static str,
    pub signed_out_hint: &'static str,
    pub unavailable: &'static str,
    pub unavailable_hint: &'static str,
    pub offline: &'static str,
    pub offline_hint: &'static str,
    pub offline_unsent: &'static str,
    pub offline_retry: &'static str,
    pub to_inbox: &'static str,

    /// What is said outside the inbox.
    pub message: Message,
    /// What is said by e-mail, and of addresses in the settings.
    pub mail: mail::Mail,
    /// What is said on Telegram, and of chats in the settings.
    pub telegram: telegram::Telegram,
    /// What the service worker says by itself.
    pub worker_unsent: &'static str,
    /// What the script says as well.
    pub script: Script,
}

/// The words of messages, and of the answers to what is tapped beside them.
#[derive(Debug)]
pub(crate) struct Message {
    pub asks: &'static str,
    pub asks_in: &'static str,
    pub reminder: &'static str,
    pub last_call: &'static str,
    pub answered: &'static str,
    pub somebody: &'static str,
    pub timed_out: &'static str,
    pub settled: &'static str,
    pub withdrawn: &'static str,
    pub private: &'static str,
    pub nothing_left: &'static str,
    pub more: Count,
    pub nobody: &'static str,
    pub took_default: &'static str,
    pub none: &'static str,
    pub trial: &'static str,
    pub tapped: &'static str,
    pub too_late: &'static str,
    pub unknown: &'static str,
    pub ended: &'static str,
    pub hidden: &'static str,
    pub too_old: &'static str,
    pub misfit: &'static str,
    pub refused: &'static str,
    pub busy: &'static str,
}

/// A pattern with its places filled in. What is filled in is not looked through again.
pub(crate) fn fill(pattern: &str, places: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        text.push_str(places.iter().find(|(place, _)| *place == name).map_or("", |(_, value)| value));
        rest = after;
    }
    text + rest
}

/// The words that the script knows, some of them only it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Script {
    pub until: &'static str,
    pub due: &'static str,
    pub now: &'static str,
    pub send: &'static str,
    pub send_some: &'static str,
    pub sending: &'static str,
    pub unsent: &'static str,
    pub retry: &'static str,
    pub undo: &'static str,
    pub undo_in: &'static str,
    pub undo_said: &'static str,
    pub overtaken: &'static str,
    pub undone: &'static str,
    pub gone: &'static str,
    pub busy: &'static str,
    pub signed_out: &'static str,
    pub sign_in: &'static str,
    pub offline: &'static str,
    pub kept: &'static str,
    pub copy: &'static str,
    pub copied: &'static str,
    pub discard: &'static str,
    pub push_failed: &'static str,
    pub arrived: &'static str,
    pub closed: &'static str,
    pub waits: Count,
    pub also: Count,
}

/// A sentence with a number in it: for none, for one and for more, which is what the languages here tell apart.
#[derive(Debug, Serialize)]
pub(crate) struct Count(&'static str, &'static str, &'static str);

impl Count {
    /// The sentence for this number; `{n}` stands for it.
    pub const fn of(&self, n: usize) -> &'static str {
        match n {
            0 => self.0,
            1 => self.1,
            _ => self.2,
        }
    }
}

impl Words {
    /// What a closed state is called beside others.
    pub fn state(&self, state: AskState) -> &'static str {
        match state {
            AskState::Open => self.open,
            AskState::Answered => self.answered_label,
            AskState::TimedOut => self.timed_out_label,
            AskState::Settled => self.settled_label,
            AskState::Withdrawn => self.withdrawn_label,
        }
    }

    /// The script's words as a JSON object.
    pub fn script_json(&self) -> String {
        serde_json::to_string(&self.script).unwrap_or_default()
    }

    /// The table of a language by its tag.
    pub fn of(lang: &str) -> Option<&'static Self> {
        LANGUAGES.into_iter().find(|words| words.lang == lang)
    }

    /// The table that fits an `Accept-Language` best (RFC 9110, 12.5.4); the first one where none is named.
    pub fn accepted(header: &str) -> &'static Self {
        let mut best = (0, LANGUAGES[0]);
        for range in header.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let primary = parts.next().unwrap_or_default().split('-').next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(1000, thousandths);
            if let Some(words) = Self::of(&primary)
                && weight > best.0
            {
                best = (weight, words);
            }
        }
        best.1
    }
}

/// A weight (`0.8`) in thousandths; none where it can't be read.
fn thousandths(weight: &str) -> u32 {
    let (whole, part) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = format!("{part:0<3}");
    match (whole, digits.get(..3).and_then(|digits| digits.parse::<u32>().ok())) {
        ("0", Some(part)) => part,
        ("1", Some(_)) => 1000,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_is_never_worded_as_a_persons_decision() {
        for w in LANGUAGES {
            let (beginning, _) = w.timed_out_default.split_once('.').unwrap_or_default();
            for words in
                [w.timed_out_default, w.timed_out_took, w.timed_out_many, w.timed_out_gives_up, w.timed_out_goes_on]
            {
                assert!(words.starts_with(beginning) && !words.contains(w.answered_label), "{words}");
            }
        }
        assert!(en::WORDS.timed_out_many.starts_with("Not answered in time."));
        assert!(de::WORDS.timed_out_many.starts_with("Nicht rechtzeitig beantwortet."));
    }

    #[test]
    fn the_languages_fill_in_the_same_places() {
        // As they stand in the source: fields in the same order, each with its places.
        let places = |source: &str| -> Vec<Vec<String>> {
            let mut fields: Vec<Vec<String>> = Vec::new();
            for line in source.lines() {
                let name = line
                    .trim()
                    .split_once(": ")
                    .filter(|(name, _)| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
                if let Some((name, _)) = name {
                    fields.push(vec![name.to_owned()]);
                }
                let named =
                    line.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name.to_owned());
                if let Some(field) = fields.last_mut() {
                    field.extend(named.filter(|name| !name.is_empty()));
                }
            }
            fields.iter_mut().for_each(|field| field[1..].sort());
            fields
        };
        let (english, german) = (places(include_str!("words/en.rs")), places(include_str!("words/de.rs")));
        assert_eq!(english, german);
        assert!(english.len() > 150);
    }

    #[test]
    fn the_language_is_the_one_that_is_liked_best() {
        for (header, lang) in [
            ("", "en"),
            ("de", "de"),
            ("de-AT,en;q=0.5", "de"),
            ("en-GB, de;q=0.9", "en"),
            ("fr, de;q=0.3, en;q=0.2", "de"),
            ("DE;q=0.25,en;q=0.7", "en"),
            ("de;q=0, en;q=0.1", "en"),
            ("fr, es", "en"),
            ("de;q=x", "en"),
            ("*", "en"),
        ] {
            assert_eq!(Words::accepted(header).lang, lang, "{header:?}");
        }
    }

    #[test]
    fn places_are_filled_in_once() {
        assert_eq!(fill("{a} of {b}{c}.", &[("a", "{b}"), ("b", "two")]), "{b} of two.");
    }

    #[test]
    fn the_script_gets_plural_forms() {
        let words: serde_json::Value = serde_json::from_str(&de::WORDS.script_json()).unwrap_or_default();
        assert_eq!(
            words["waits"],
            serde_json::json!(["Nichts wartet auf dich", "1 Frage wartet auf dich", "{n} Fragen warten auf dich"])
        );
        assert!(words["signedOut"].is_string());
    }
}
