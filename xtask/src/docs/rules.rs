//! The rules of the protocol in prose. Each that one event can break names a test vector that breaks it.

use chips_protocol::{
    AgentId, AskId, EventId, EventType, HarnessId, PersonId, RunId, SpaceId, WorkspaceId, limits as held,
};

use super::table::grouped;

/// A rule, the code of the fault that breaking it is, and a vector that breaks it.
pub struct Rule {
    pub text: &'static str,
    pub code: &'static str,
    pub vector: &'static str,
}

/// What a page says of an event type beside its fields.
pub struct About {
    pub direction: &'static str,
    pub sent_by: &'static str,
    pub rules: &'static [Rule],
    pub beyond_one_event: &'static [&'static str],
    pub write_vector: &'static str,
}

const fn rule(text: &'static str, code: &'static str, vector: &'static str) -> Rule {
    Rule { text, code, vector }
}

pub const OVERVIEW: &str = "\
# The protocol

Two events carry a question to people and the answer back. Both are one flat JSON object: the envelope that every event
has, and what this one says.

An event has two forms. The *stored* form is what the log holds and what readers get; the schemas give this form. A
*write* is what a client sends to `POST /v1/events`: it needs an `idempotency_key`, must not have a `seq`, and may leave
out what Chips fills in by itself (`ts`, `actor.harness_id`, `answered_by`, `answered_at`); whatever stands there is
replaced.

A write that is refused appends nothing and uses nothing up: mended, it may be sent with the same key. A write that was
accepted may be sent again with its key, its `id` or its `ask_id`, and is answered with the event stored the first time.

A refusal names every fault at once. The codes are explained in [faults](../problems/faults.md), and
[test vectors](../../vectors/) show each of them. The JSON Schemas (2020-12) are generated from the same types as these
pages: [question.ask](../../schemas/question.ask.json), [question.answered](../../schemas/question.answered.json).
";

pub const IDENTIFIERS: &str = "\
An identifier is its prefix and a [ULID](https://github.com/ulid/spec) of 26 upper-case characters, the first at most 7.
There is one spelling of each: what differs in a single character is another identifier, or none. Whoever is named first
mints it: a harness the `run_id`, `ask_id` and `id` that it sends, so that a retry is the same.";

/// Each prefix, and what it is a prefix of.
pub fn prefixes() -> [(&'static str, &'static str); 8] {
    [
        (WorkspaceId::PREFIX, "a workspace"),
        (SpaceId::PREFIX, "a space"),
        (PersonId::PREFIX, "a person"),
        (HarnessId::PREFIX, "a harness"),
        (AgentId::PREFIX, "one of a harness's agents"),
        (RunId::PREFIX, "a run"),
        (EventId::PREFIX, "an event"),
        (AskId::PREFIX, "an ask"),
    ]
}

/// Every limit, with what it limits.
pub fn limits() -> Vec<(&'static str, String)> {
    let characters = |count: usize| format!("{} characters", grouped(count as u64));
    vec![
        ("the body of a request", format!("{} bytes", grouped(held::BODY_BYTES as u64))),
        ("nesting of the body", format!("{} deep", held::DEPTH)),
        ("`idempotency_key`", characters(held::IDEMPOTENCY_KEY)),
        ("questions of an ask", format!("{} to {}", held::QUESTIONS_MIN, held::QUESTIONS_MAX)),
        ("options of a question", format!("{} to {}", held::OPTIONS_MIN, held::OPTIONS_MAX)),
        ("`question_id`", characters(held::QUESTION_ID)),
        ("`prompt`", characters(held::PROMPT)),
        ("an option's `value`", characters(held::VALUE)),
        ("an option's `label`", characters(held::LABEL)),
        ("an option's `description`", characters(held::DESCRIPTION)),
        ("`free_text`, and a `default_value` that is free text", characters(held::FREE_TEXT)),
        ("`timeout_seconds`", format!("more than 0, at most {}", grouped(u64::from(held::SECONDS)))),
        ("`seq`", format!("1 to {}", grouped(held::SEQ))),
        ("a run's `title`", characters(held::RUN_TITLE)),
        ("a run's `url`", characters(held::RUN_URL)),
        (
            "a run's `labels`",
            format!(
                "{}, keys of {} characters, values of {}",
                held::RUN_LABELS,
                held::RUN_LABEL_KEY,
                held::RUN_LABEL_VALUE
            ),
        ),
        ("a run's `lease_seconds`", format!("more than 0, at most {}", grouped(u64::from(held::SECONDS)))),
        ("faults told at once", grouped(held::FAULTS as u64)),
    ]
}

pub const SHARED: &[Rule] = &[
    rule(
        "The body is one JSON object; an array with its values is none.",
        "wrong_type",
        "document-array-of-an-events-values",
    ),
    rule(
        "It is JSON in UTF-8 without a byte-order mark, with numbers that a double can hold and whole surrogate pairs.",
        "malformed_json",
        "raw-byte-order-mark",
    ),
    rule("No object names a member twice, at any depth.", "duplicate_key", "raw-duplicate-key-in-an-unknown-field"),
    rule(
        "A field that is not known is refused, and the refusal names the known one that looks most like it.",
        "unknown_field",
        "unknown-field-misspelt-timeout",
    ),
    rule("A field that may be left out is left out, never `null`.", "wrong_type", "null-is-no-absence"),
    rule(
        "Numbers count by value: `60`, `60.0` and `6e1` are one number, `\"60\"` is none.",
        "wrong_type",
        "timeout-text",
    ),
    rule("The prefix of `actor.id` fits `actor.kind`.", "bad_id", "actor-id-of-another-kind"),
    rule("Only Chips acts as `system`.", "not_allowed", "actor-system-in-a-write"),
    rule("Only an agent has a `harness_id`.", "not_allowed", "stored-harness-id-of-a-person"),
    rule(
        "Times are RFC 3339 date-times with at most nine digits of a second; Chips writes UTC with milliseconds.",
        "unknown_value",
        "stored-times-that-are-none",
    ),
    rule("`seq` is Chips' to assign.", "not_allowed", "write-with-seq"),
    rule("Lengths count Unicode scalar values.", "too_long", "ask-too-long"),
    rule(
        "Prompts, labels, values, question ids, idempotency keys, free text and defaults of free text hold more than white space and invisible characters.",
        "empty",
        "ask-blank",
    ),
    rule(
        "No text has control characters (category Cc) other than tab, line feed and carriage return.",
        "forbidden_character",
        "nul-in-an-ask",
    ),
    rule(
        "Labels, values and question ids have no bidirectional controls (U+202A to U+202E, U+2066 to U+2069). Prompts, descriptions and free text may; whoever shows them shows them escaped.",
        "forbidden_character",
        "bidirectional-control-in-a-label",
    ),
];

const ASK: About = About {
    direction: "harness to Chips",
    sent_by: "a harness, or one of its agents",
    rules: &[
        rule("An ask has one to four questions, each with two to four options.", "too_many", "five-questions"),
        rule(
            "A `question_id` is unique in its ask. Two questions may have the same prompt.",
            "duplicate",
            "questions-twice",
        ),
        rule("A `value` is unique in its question, byte for byte.", "duplicate", "values-twice"),
        rule(
            "A `label` is unique in its question as people read it: after NFKC and folding of case, without invisible characters, with runs of white space as one space, and with letters of other scripts that look like Latin ones taken for those.",
            "duplicate",
            "labels-that-differ-in-script",
        ),
        rule(
            "A `default_value` is the `value` of one of the options, or any text where `allow_free_text` is true.",
            "not_an_option",
            "default-that-is-no-option",
        ),
        rule(
            "`timeout_seconds` is more than 0 and at most 31,536,000, fractions allowed. What is outside is refused, never replaced. Absent means: open until answered.",
            "out_of_range",
            "timeout-zero",
        ),
        rule(
            "`on_no_answer` of `use_default` needs a `default_value` on at least one question.",
            "no_default",
            "use-default-without-default",
        ),
    ],
    beyond_one_event: &[
        "The run is one of the sender's (`unknown_run`) and has not ended (problem `run_ended`).",
        "A `space_id`, where there is one, is the run's (`mismatch`); left out, Chips fills it in.",
        "An `ask_id` stands for one ask: the same questions, time-out, `on_no_answer` and run (problem `ask_id_conflict`).",
        "The deadline is the stored `ts` plus `timeout_seconds`, rounded up to the millisecond. Without `on_no_answer` it is \
         `use_default` where any question has a default, else `continue`.",
    ],
    write_vector: "write-ask",
};

const ANSWERED: About = About {
    direction: "Chips to harness",
    sent_by: "a person, the harness that asked or one of its agents, or Chips itself when the time-out passes or the run ends",
    rules: &[
        rule("Each question is answered at most once.", "duplicate", "answers-twice"),
        rule("No value stands twice in an entry.", "duplicate", "answer-values-twice"),
        rule("Free text, where there is any, has something to read.", "empty", "free-text-zero-width-space"),
    ],
    beyond_one_event: &[
        "A `question_id` is one of the ask's questions (`unknown_value`), and each of the `values` is one of its options' (`not_an_option`).",
        "More than one value only where the question is `multi_select` (`too_many`); free text only where it has `allow_free_text` (`not_allowed`).",
        "With single select an entry has one value or free text: neither is `too_few`, both are `not_allowed`. With `multi_select` \
         both may stand, and empty `values` say \"none of these\".",
        "A person answers at least one question (`too_few`). A harness that sends no entry withdraws its question.",
        "`timed_out: true` is taken only from the harness that asked (`not_allowed`).",
        "The run is the ask's (`mismatch`). An ask closes once: whoever comes later gets the problem `already_closed` with the winning event.",
    ],
    write_vector: "write-answered",
};

/// What the page of an event type says beside its fields.
pub fn about(event_type: EventType) -> About {
    match event_type {
        EventType::QuestionAsk => ASK,
        EventType::QuestionAnswered => ANSWERED,
    }
}
