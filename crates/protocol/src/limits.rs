//! Every limit that the protocol sets. Lengths of text count Unicode scalar values.

/// A request's body, in bytes.
pub const BODY_BYTES: usize = 256 * 1024;
/// How deep a body may nest: an object in an object is two deep.
pub const DEPTH: usize = 32;

/// The fewest questions of an ask.
pub const QUESTIONS_MIN: usize = 1;
/// The most questions of an ask, and so the most entries of an answer.
pub const QUESTIONS_MAX: usize = 4;
/// The fewest options of a question.
pub const OPTIONS_MIN: usize = 2;
/// The most options of a question, and so the most values of an answer's entry.
pub const OPTIONS_MAX: usize = 4;

/// The length of a prompt.
pub const PROMPT: usize = 4_000;
/// The length of an option's description.
pub const DESCRIPTION: usize = 2_000;
/// The length of an option's label.
pub const LABEL: usize = 300;
/// The length of an option's value.
pub const VALUE: usize = 300;
/// The length of a question's id.
pub const QUESTION_ID: usize = 100;
/// The length of an idempotency key.
pub const IDEMPOTENCY_KEY: usize = 255;
/// The length of free text, and of a default that is free text.
pub const FREE_TEXT: usize = 10_000;

/// The longest time-out and the longest lease, in seconds: 365 days. The shortest is anything over 0.
pub const SECONDS: u32 = 31_536_000;
/// The length of the name of a workspace, a person, a harness or a space.
pub const NAME: usize = 100;
/// The largest `seq`: the largest whole number that every JSON reader holds exactly (RFC 8259, section 6).
pub const SEQ: u64 = (1 << 53) - 1;

/// The length of a run's title.
pub const RUN_TITLE: usize = 300;
/// The length of a run's URL.
pub const RUN_URL: usize = 2_000;
/// How many labels a run may have.
pub const RUN_LABELS: usize = 16;
/// The length of the key of a run's label.
pub const RUN_LABEL_KEY: usize = 63;
/// The length of the value of a run's label.
pub const RUN_LABEL_VALUE: usize = 255;

/// How many faults are told at once. An event that was meant well can't have as many; one made to have more gets
/// the first ones only.
pub const FAULTS: usize = 1_000;
