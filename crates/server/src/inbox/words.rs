//! Every word that people read in the inbox, in one table: a second language is a second constant.
//!
//! A `{place}` is filled in with a name, a text or a time; a language may order them as it likes.

use chips_protocol::api::AskState;

/// The words of one language.
#[derive(Debug)]
pub(crate) struct Words {
    /// The language, as BCP 47 has it.
    pub lang: &'static str,
    /// The marks around what somebody chose or wrote.
    pub quotes: (&'static str, &'static str),
    /// Between the entries of a list in a sentence.
    pub list_separator: &'static str,

    // The frame of every page
    pub open: &'static str,
    pub history: &'static str,
    pub settings: &'static str,
    pub main_navigation: &'static str,
    pub skip: &'static str,
    pub insecure: &'static str,

    // The shelves
    pub waits: Count,
    pub nothing_waits: &'static str,
    pub nothing_open_hint: &'static str,
    pub waiting_shelf: &'static str,
    pub going_shelf: &'static str,
    pub gone_shelf: &'static str,
    pub gone_hint: &'static str,
    pub closed_shelf: &'static str,
    pub more_open: &'static str,
    pub first_open: &'static str,

    // A card
    pub question_of: &'static str,
    pub read_all: &'static str,
    pub answer: &'static str,
    pub is_default: &'static str,
    pub several_allowed: &'static str,
    pub none_of_these: &'static str,
    pub something_else: &'static str,
    pub add_words: &'static str,
    pub send: &'static str,
    pub send_partial: &'static str,
    pub kept: &'static str,
    pub kept_for: &'static str,
    pub also_typed: &'static str,

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
    pub others_late: &'static str,
    pub answered_label: &'static str,
    pub timed_out_label: &'static str,
    pub settled_label: &'static str,
    pub withdrawn_label: &'static str,

    // A question's story
    pub story: &'static str,
    pub story_asked: &'static str,
    pub story_deadline: &'static str,
    pub story_delivered: &'static str,
    pub story_not_delivered: &'static str,
    pub story_acted: &'static str,
    pub back: &'static str,

    // Notices on a form
    pub choose_first: &'static str,
    pub choose_first_many: &'static str,
    pub none_and_some: &'static str,
    pub which_one: &'static str,
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
    pub end_session: &'static str,
    pub end_others: &'static str,
    pub sign_out: &'static str,

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
    pub to_inbox: &'static str,

    /// What the script says, by the names it knows.
    pub script: &'static [(&'static str, &'static str)],
}

/// A sentence with a number in it, for one and for more.
#[derive(Debug)]
pub(crate) struct Count {
    one: &'static str,
    more: &'static str,
}

impl Count {
    /// The sentence for this number; `{n}` stands for it.
    pub fn of(&self, n: usize) -> &'static str {
        if n == 1 { self.one } else { self.more }
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
        let words: serde_json::Map<_, _> =
            self.script.iter().map(|(name, word)| ((*name).to_owned(), (*word).into())).collect();
        serde_json::Value::Object(words).to_string()
    }
}

/// English.
pub(crate) static ENGLISH: Words = Words {
    lang: "en",
    quotes: ("“", "”"),
    list_separator: ", ",

    open: "Open",
    history: "History",
    settings: "Settings",
    main_navigation: "Main",
    skip: "Skip to the questions",
    insecure: "This connection is not encrypted. Anyone on the network between you and Chips can read your questions, \
               and answer in your name.",

    waits: Count { one: "1 question waits for you", more: "{n} questions wait for you" },
    nothing_waits: "Nothing waits for you",
    nothing_open_hint: "When an agent needs you, its question appears here by itself.",
    waiting_shelf: "Waiting for you",
    going_shelf: "Goes on without you",
    gone_shelf: "Perhaps nobody waits any more",
    gone_hint: "Whoever asked has not been heard of for a while. You can still answer.",
    closed_shelf: "Closed just now",
    more_open: "Show more",
    first_open: "Back to the most urgent",

    question_of: "{n} of {all}",
    read_all: "Read all of it",
    answer: "Answer",
    is_default: "default",
    several_allowed: "Choose any number",
    none_of_these: "None of these",
    something_else: "Something else…",
    add_words: "Add a note…",
    send: "Send",
    send_partial: "Send only what is answered",
    kept: "What you typed was not sent. It is kept here:",
    kept_for: "Not sent, for “{what}”:",
    also_typed: "You chose an option, so this text was not sent:",

    until: "at {t}",
    waits_for_you: "{who} waits for you",
    takes: "{who} takes {what} {when}",
    takes_defaults: "{who} takes the defaults {when}",
    gives_up: "{who} gives up {when}",
    goes_on: "{who} goes on without an answer {when}",
    asker_gone: "{who} has not been heard of for a while",

    you_answered: "You answered {what}",
    answered: "{who} answered {what}",
    you_answered_many: "You answered",
    answered_many: "{who} answered",
    settled: "{who} settled it without you: {what}",
    settled_many: "{who} settled it without you",
    timed_out_default: "Not answered in time. {who} took the default, {what}.",
    timed_out_took: "Not answered in time. {who} took {what}.",
    timed_out_many: "Not answered in time. {who} took the defaults.",
    timed_out_gives_up: "Not answered in time. {who} gives up.",
    timed_out_goes_on: "Not answered in time. {who} goes on without an answer.",
    withdrawn: "Withdrawn by {who}",
    withdrawn_by_end: "Withdrawn: the run of {who} ended",
    no_entry: "not answered",
    none_chosen: "none of these",
    yours_late: "Your {what} came {gap} later. It decided nothing; it is kept here.",
    others_late: "Somebody else’s {what} came {gap} later. It decided nothing.",
    answered_label: "Answered",
    timed_out_label: "Timed out",
    settled_label: "Settled",
    withdrawn_label: "Withdrawn",

    story: "Its story",
    story_asked: "{who} asked",
    story_deadline: "The time runs out",
    story_delivered: "The answer reached {who}",
    story_not_delivered: "On its way to {who}",
    story_acted: "{who} acted on it",
    back: "All open questions",

    choose_first: "Nothing was chosen yet. Choose an option, then send.",
    choose_first_many: "Nothing was answered yet. Answer at least one question, then send.",
    none_and_some: "You chose “None of these” and something else as well. Leave one of the two.",
    which_one: "You chose an option and typed something. This question takes one of the two: leave the option, or choose \
                “Something else”.",
    partial: Count {
        one: "1 question is not answered. Whoever asked gets what you answered, and the rest stays unanswered for good.",
        more: "{n} questions are not answered. Whoever asked gets what you answered, and the rest stays unanswered for good.",
    },
    too_long: "That text is too long: 10,000 characters at most.",
    bad_characters: "That text has characters that can’t be sent (control characters).",
    not_accepted: "That answer does not fit the question.",
    other_sign_in: "This page was from an earlier sign-in, so nothing was sent. Look at it once more and send it again.",
    too_late: "Too late: this was closed before your answer came.",
    cannot_write: "Chips can’t write right now, so nothing was sent. Try again in a moment; what you typed is still here.",

    search: "Search",
    search_hint: "Search in what is closed",
    all_states: "All",
    older: "Older",
    newest: "Back to the newest",
    nothing_closed: "Nothing is closed yet. What you answer, and what is taken without you, stays here.",
    nothing_found: "Nothing fits.",
    run: "Run",
    run_live: "running",
    run_ended: "ended",
    run_started: "Started {when}",
    run_ended_at: "Ended {when}",
    run_part_of: "Part of another run",
    run_look: "Look at it",
    run_open: "Open",
    run_closed: "Closed",
    run_nothing: "This run has asked nothing yet.",
    untitled_run: "Untitled run",

    you: "You",
    your_spaces: "Spaces you are in",
    no_spaces: "none",
    owner: "owner",
    your_devices: "Where you are signed in",
    this_device: "this device",
    unknown_device: "Unknown browser",
    signed_in_at: "Signed in {when}",
    last_used: "last used {when}",
    end_session: "Sign it out",
    end_others: "Sign out everywhere else",
    sign_out: "Sign out",

    sign_in: "Sign in",
    sign_in_as: "Sign in as {who}?",
    sign_in_as_hint: "This browser stays signed in until you sign out, or have not used it for 14 days.",
    sign_in_button: "Sign in",
    code_label: "Your code",
    code_hint: "It stands beside your sign-in link, and is good for 15 minutes and one use.",
    code_wrong: "That code does not work: it is mistyped, used, or older than 15 minutes.",
    code_empty: "Type the code that stands beside your sign-in link.",
    code_instead: "Use a code instead",
    code_lost: "No code at hand? Whoever runs this server makes a new one with",
    link_used: "This link was used already. Each works once.",
    link_expired: "This link is too old. Each is good for 15 minutes.",
    link_unknown: "This link is not known here. Perhaps it was cut off when it was copied.",
    other_browser: "This form was not opened in this browser, so the link was left as it is. Type the code that stands \
                    beside it.",
    form_stale: "This form was open for too long, or this browser keeps no cookies. Send the code once more.",
    too_many: "Too many codes that do not work. Wait a little, then try again.",

    not_found: "There is nothing here",
    not_found_hint: "It does not exist, or it is not for you to see.",
    foreign: "That did not come from this page",
    foreign_hint: "The form was sent from another site, or your browser does not say from where. Nothing was changed.",
    bad_form: "That form does not fit",
    bad_form_hint: "It names something that this page does not ask for. Nothing was changed. Load the page again.",
    too_large: "That is too much text",
    too_large_hint: "Nothing was sent. Go back and shorten it: 10,000 characters for each question.",
    signed_out: "You are signed out",
    signed_out_hint: "Nothing was sent. Sign in, then send it again.",
    unavailable: "Chips can’t do that right now",
    unavailable_hint: "Nothing was changed. Try again in a moment.",
    to_inbox: "To the open questions",

    script: &[
        ("until", "in {t}"),
        ("due", "now"),
        ("now", "just now"),
        ("sending", "Sending…"),
        ("unsent", "Not sent yet. It is sent as soon as Chips can be reached."),
        ("retry", "Try now"),
        ("gone", "You can’t see this question any more."),
        ("busy", "Chips can’t write right now. It is tried again by itself."),
        ("signedOut", "You are signed out. What you typed stays on this device."),
        ("signIn", "Sign in"),
        ("offline", "No connection. Looking again…"),
        ("kept", "What you typed was not sent. It is kept here:"),
        ("copy", "Copy"),
        ("copied", "Copied"),
        ("discard", "Discard"),
        ("arrived", "New question: {what}"),
        ("closed", "Closed: {what}"),
        ("draft", "Your text stays here. The option you choose is sent instead."),
        ("waits1", "1 question waits for you"),
        ("waits", "{n} questions wait for you"),
        ("waits0", "Nothing waits for you"),
        ("sendSome", "Send {n} of {all}"),
        ("send", "Send"),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_is_never_worded_as_a_persons_decision() {
        for words in [
            ENGLISH.timed_out_default,
            ENGLISH.timed_out_took,
            ENGLISH.timed_out_many,
            ENGLISH.timed_out_gives_up,
            ENGLISH.timed_out_goes_on,
        ] {
            assert!(words.starts_with("Not answered in time."), "{words}");
        }
    }
}
