//! Reads a script: TOML, walked by hand so that each fault has its line and the name that was most likely meant.

use std::ops::Range;
use std::time::Duration;

use chips_protocol::{limits, text};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Act, Choice, Deed, Fault, Given, Pick, Script, Step, Takes};
use crate::args;

/// Who answers where a script names nobody.
const SOMEBODY: &str = "Script";
/// What is added to a name, so that nobody takes made-up answers for that person's.
const MADE_UP: &str = " (script)";
/// The most of anything that a script counts.
const MOST: u32 = 1_000;
/// The longest real time that a server is down.
const LONGEST_DOWN: Duration = Duration::from_secs(60);
/// The farthest that the clock is moved at once: as long as the longest time-out.
const FARTHEST: Duration = Duration::from_secs(31_536_000);

const TOP: [&str; 3] = ["start", "step", "otherwise"];
const STEP: [&str; 5] = ["prompt", "question_id", "title", "times", "do"];
const ACTS: [&str; 12] = [
    "leave",
    "ignore",
    "answer",
    "answer_late",
    "withdraw",
    "settle",
    "end_run",
    "advance",
    "cut",
    "lose_replies",
    "unavailable",
    "restart",
];
const BESIDE: [&str; 3] = ["by", "after", "text"];
const CHOICE: [&str; 2] = ["choose", "text"];

type Value<'v> = Spanned<DeValue<'v>>;

/// Reads a script.
///
/// # Errors
/// Every fault, in the order of the file.
pub fn read(text: &str) -> Result<Script, Vec<Fault>> {
    let mut reader = Reader { text, faults: Vec::new() };
    let script = match DeTable::parse(text) {
        Ok(table) => reader.script(table.get_ref()),
        Err(error) => {
            reader.fault(&error.span().unwrap_or_default(), error.message().replace('\n', ", "));
            Script::default()
        }
    };
    let mut faults = reader.faults;
    faults.sort_by_key(|fault| fault.line);
    if faults.is_empty() { Ok(script) } else { Err(faults) }
}

struct Reader<'t> {
    text: &'t str,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        self.text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1
    }

    fn fault(&mut self, span: &Range<usize>, message: impl Into<String>) {
        let fault = Fault { line: self.line(span), message: message.into() };
        self.faults.push(fault);
    }

    fn unknown(&mut self, span: &Range<usize>, what: &str, name: &str, known: &[&str]) {
        let meant = known.iter().min_by_key(|other| strsim::damerau_levenshtein(name, other)).copied();
        let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let meant = meant.unwrap_or_default();
        self.fault(span, format!("`{name}` is no {what}; did you mean `{meant}`? There are {list}"));
    }

    fn script(&mut self, table: &DeTable<'_>) -> Script {
        let mut script = Script::default();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "start" => {
                    script.start = self.acts(value);
                    for act in script.start.iter().filter(|act| act.deed.needs_an_ask()) {
                        let message = "`start` is done before anything is asked: `advance`, `lose_replies`, \
                                       `unavailable` and `restart` can stand here, the others in a step";
                        self.faults.push(Fault { line: act.line, message: message.to_owned() });
                    }
                }
                "otherwise" => script.otherwise = self.acts(value),
                "step" => match value.get_ref() {
                    DeValue::Array(steps) => script.steps = steps.iter().map(|step| self.step(step)).collect(),
                    _ => self.fault(&value.span(), "steps are written as `[[step]]`, one for each"),
                },
                name => self.unknown(&key.span(), "part of a script", name, &TOP),
            }
        }
        if script.steps.is_empty() && script.otherwise.is_empty() && self.faults.is_empty() {
            self.fault(&(0..0), "the script does nothing: write a `[[step]]`, or what to do `otherwise`");
        }
        script
    }

    fn step(&mut self, value: &Value<'_>) -> Step {
        let mut step =
            Step { line: self.line(&value.span()), takes: Takes::default(), times: Some(1), acts: Vec::new() };
        let DeValue::Table(table) = value.get_ref() else {
            self.fault(&value.span(), "steps are written as `[[step]]`, one for each");
            return step;
        };
        let mut has_acts = false;
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "prompt" => step.takes.prompt = self.words(value, "prompt"),
                "question_id" => step.takes.question_id = self.words(value, "question_id"),
                "title" => step.takes.title = self.words(value, "title"),
                "times" => step.times = self.times(value),
                "do" => {
                    step.acts = self.acts(value);
                    has_acts = true;
                }
                name => self.unknown(&key.span(), "part of a step", name, &STEP),
            }
        }
        if !has_acts {
            self.fault(
                &value.span(),
                "the step does nothing; say what, as in `do = \"ignore\"` or `do = { answer = 1 }`",
            );
        }
        step
    }

    fn times(&mut self, value: &Value<'_>) -> Option<u32> {
        match value.get_ref() {
            DeValue::String(text) if text.as_ref() == "always" => None,
            _ => match whole(value) {
                Some(times @ 1..=MOST) => Some(times),
                _ => {
                    self.fault(&value.span(), format!("`times` is a number from 1 to {MOST}, or \"always\""));
                    Some(1)
                }
            },
        }
    }

    fn words(&mut self, value: &Value<'_>, name: &str) -> Option<String> {
        match value.get_ref() {
            DeValue::String(words) if !text::is_blank(words) => Some(words.as_ref().to_owned()),
            _ => {
                self.fault(&value.span(), format!("`{name}` is a text, and not blank"));
                None
            }
        }
    }

    /// One act, or a list of them.
    fn acts(&mut self, value: &Value<'_>) -> Vec<Act> {
        match value.get_ref() {
            DeValue::Array(acts) if acts.is_empty() => {
                self.fault(&value.span(), "nothing is done; to leave an ask open, say \"leave\"");
                Vec::new()
            }
            DeValue::Array(acts) => acts.iter().flat_map(|act| self.act(act)).collect(),
            _ => self.act(value),
        }
    }

    fn act(&mut self, value: &Value<'_>) -> Vec<Act> {
        let line = self.line(&value.span());
        match value.get_ref() {
            DeValue::String(name) => self
                .deed(name, &value.span(), None, &Beside::default())
                .map(|deed| Act { line, deed })
                .into_iter()
                .collect(),
            DeValue::Table(table) => {
                let (mut named, mut beside) = (None, Beside::default());
                for (key, value) in table {
                    match key.get_ref().as_ref() {
                        "by" => beside.by = self.words(value, "by").map(|by| (by, key.span())),
                        "after" => {
                            beside.after = self.duration(value, "after", FARTHEST).map(|after| (after, key.span()))
                        }
                        "text" => beside.text = self.words(value, "text").map(|text| (text, key.span())),
                        name if ACTS.contains(&name) && named.is_none() => named = Some((name.to_owned(), value)),
                        name if ACTS.contains(&name) => {
                            self.fault(
                                &key.span(),
                                "one thing at a time: write a list, as in `do = [\"cut\", { answer = 1 }]`",
                            );
                        }
                        name => {
                            let known: Vec<_> = ACTS.into_iter().chain(BESIDE).collect();
                            self.unknown(&key.span(), "act, and no word beside one", name, &known);
                        }
                    }
                }
                let Some((name, given)) = named else {
                    if self.faults.is_empty() {
                        self.fault(&value.span(), "say what is done, as in `{ answer = 1 }`");
                    }
                    return Vec::new();
                };
                let Some(deed) = self.deed(&name, &given.span(), Some(given), &beside) else { return Vec::new() };
                let after = beside.after.map(|(after, _)| Act { line, deed: Deed::Advance(after) });
                after.into_iter().chain([Act { line, deed }]).collect()
            }
            _ => {
                self.fault(&value.span(), "an act is a word or a table, as in \"ignore\" or { answer = 1 }");
                Vec::new()
            }
        }
    }

    fn deed(&mut self, name: &str, span: &Range<usize>, given: Option<&Value<'_>>, beside: &Beside) -> Option<Deed> {
        let answers = matches!(name, "answer" | "answer_late" | "settle");
        let acts_by_itself = matches!(name, "answer" | "settle" | "withdraw" | "end_run");
        for (stands, word, span) in [
            (beside.by.is_none() || matches!(name, "answer" | "answer_late"), "by", beside.by.as_ref().map(|by| &by.1)),
            (beside.after.is_none() || acts_by_itself, "after", beside.after.as_ref().map(|after| &after.1)),
            (beside.text.is_none() || answers, "text", beside.text.as_ref().map(|text| &text.1)),
        ] {
            if let (false, Some(span)) = (stands, span) {
                self.fault(span, format!("`{word}` has no place beside `{name}`"));
            }
        }
        let by = match &beside.by {
            Some((by, _)) => format!("{by}{MADE_UP}"),
            None => SOMEBODY.to_owned(),
        };
        let needs = |reader: &mut Self, example: &str| {
            reader.fault(span, format!("`{name}` needs to know more, as in {example}"));
            None
        };
        match (name, given) {
            ("answer", Some(given)) => Some(Deed::Answer(self.given(given, beside), by)),
            ("answer_late", Some(given)) => Some(Deed::AnswerLate(self.given(given, beside), by)),
            ("settle", Some(given)) => Some(Deed::Settle(self.given(given, beside))),
            ("answer" | "answer_late" | "settle", None) => {
                needs(self, &format!("{{ {name} = 1 }} or {{ {name} = \"yes\" }}"))
            }
            ("advance", Some(given)) => self.duration(given, "advance", FARTHEST).map(Deed::Advance),
            ("advance", None) => needs(self, "{ advance = \"1h\" }"),
            ("cut", given) => self.count(given, name, 0).map(Deed::Cut),
            ("lose_replies", given) => self.count(given, name, 1).map(Deed::LoseReplies),
            ("unavailable", given) => self.count(given, name, 1).map(Deed::Unavailable),
            ("restart", None) => Some(Deed::Restart(Duration::ZERO)),
            ("restart", Some(given)) => self.duration(given, "restart", LONGEST_DOWN).map(Deed::Restart),
            ("leave" | "ignore" | "withdraw" | "end_run", given) => {
                let plain = given.is_none_or(|given| matches!(given.get_ref(), DeValue::Boolean(true)));
                if !plain {
                    self.fault(span, format!("`{name}` takes no value: write \"{name}\", or {name} = true in a table"));
                }
                Some(match name {
                    "leave" => Deed::Leave,
                    "ignore" => Deed::Ignore,
                    "withdraw" => Deed::Withdraw,
                    _ => Deed::EndRun,
                })
            }
            (name, _) => {
                self.unknown(span, "act", name, &ACTS);
                None
            }
        }
    }

    /// A count, or this where none is given.
    fn count(&mut self, given: Option<&Value<'_>>, name: &str, left_out: u32) -> Option<u32> {
        let Some(given) = given else { return Some(left_out) };
        let count = whole(given).filter(|count| (1..=MOST).contains(count));
        if count.is_none() {
            self.fault(&given.span(), format!("`{name}` takes a number from 1 to {MOST}"));
        }
        count
    }

    fn duration(&mut self, value: &Value<'_>, name: &str, longest: Duration) -> Option<Duration> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.as_ref(),
            _ => "",
        };
        let milliseconds = text.strip_suffix("ms").and_then(|digits| digits.parse().ok()).map(Duration::from_millis);
        let read = match milliseconds {
            Some(time) => Ok(time),
            None => args::duration(text),
        };
        match read {
            Ok(time) if !time.is_zero() && time <= longest => Some(time),
            Ok(_) => {
                self.fault(&value.span(), format!("`{name}` is more than nothing and at most {} s", longest.as_secs()));
                None
            }
            Err(what) => {
                self.fault(&value.span(), format!("`{name}` is a length of time in quotes: {what}, or 200ms"));
                None
            }
        }
    }

    fn given(&mut self, value: &Value<'_>, beside: &Beside) -> Given {
        let text = beside.text.as_ref().map(|(text, _)| text.clone());
        if let Some((text, span)) = &beside.text {
            self.check_text(text, span);
        }
        match value.get_ref() {
            DeValue::Table(table) => {
                if let Some((_, span)) = &beside.text {
                    self.fault(
                        span,
                        "with answers by question, the text goes to one of them: { note = { text = \"…\" } }",
                    );
                }
                if table.is_empty() {
                    self.fault(&value.span(), "no question is named; as in { answer = { delivery = \"19\" } }");
                }
                let answers = table.iter().map(|(key, value)| (key.get_ref().as_ref().to_owned(), self.choice(value)));
                Given::ByQuestion(answers.collect())
            }
            _ => Given::Each(Choice { picks: self.picks(value), text }),
        }
    }

    fn choice(&mut self, value: &Value<'_>) -> Choice {
        let DeValue::Table(table) = value.get_ref() else {
            return Choice { picks: self.picks(value), text: None };
        };
        let mut choice = Choice::default();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "choose" => choice.picks = self.picks(value),
                "text" => {
                    choice.text = self.words(value, "text");
                    if let Some(text) = choice.text.clone() {
                        self.check_text(&text, &value.span());
                    }
                }
                name => self.unknown(&key.span(), "part of an answer", name, &CHOICE),
            }
        }
        choice
    }

    fn check_text(&mut self, text: &str, span: &Range<usize>) {
        if text.chars().count() > limits::FREE_TEXT {
            self.fault(span, format!("a text has at most {} characters", limits::FREE_TEXT));
        }
    }

    fn picks(&mut self, value: &Value<'_>) -> Vec<Pick> {
        match value.get_ref() {
            DeValue::Array(picks) => picks.iter().filter_map(|pick| self.pick(pick)).collect(),
            _ => self.pick(value).into_iter().collect(),
        }
    }

    fn pick(&mut self, value: &Value<'_>) -> Option<Pick> {
        match value.get_ref() {
            DeValue::String(value) => Some(Pick::Value(value.as_ref().to_owned())),
            DeValue::Integer(_) if whole(value).is_some_and(|place| (1..=4).contains(&place)) => {
                whole(value).and_then(|place| usize::try_from(place).ok()).map(Pick::Place)
            }
            _ => {
                self.fault(
                    &value.span(),
                    "an option is named by its value in quotes, or by its place from 1 to 4; several stand in a list",
                );
                None
            }
        }
    }
}

/// What may stand beside an act, each with where it does.
#[derive(Default)]
struct Beside {
    by: Option<(String, Range<usize>)>,
    after: Option<(Duration, Range<usize>)>,
    text: Option<(String, Range<usize>)>,
}

/// The whole number that a value is.
fn whole(value: &Value<'_>) -> Option<u32> {
    match value.get_ref() {
        DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    }
}
