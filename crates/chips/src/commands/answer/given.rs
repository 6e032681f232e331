//! The answer as arguments give it: `--question` names the question that the `--value`, `--text` and `--none` after it
//! are for.

use anyhow::bail;
use chips_protocol::{Answer, Question};
use clap::{Arg, ArgAction, ArgMatches, Command};

/// What the arguments say, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Question(String),
    Value(String),
    Text(String),
    None,
}

/// The answer as arguments give it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given(Vec<Piece>);

impl clap::Args for Given {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new("question")
                    .long("question")
                    .value_name("QUESTION_ID")
                    .action(ArgAction::Append)
                    .help("The question that what follows answers; needed where there are several"),
            )
            .arg(
                Arg::new("value")
                    .long("value")
                    .short('v')
                    .value_name("VALUE")
                    .action(ArgAction::Append)
                    .allow_hyphen_values(true)
                    .help("Choose the option with this value; again for a further one, where several may be chosen"),
            )
            .arg(
                Arg::new("text")
                    .long("text")
                    .short('t')
                    .value_name("TEXT")
                    .action(ArgAction::Append)
                    .allow_hyphen_values(true)
                    .help("Answer with a text of your own, where that is allowed"),
            )
            .arg(
                Arg::new("none")
                    .long("none")
                    .action(ArgAction::Append)
                    .num_args(0)
                    .default_missing_value("none")
                    .help("Choose none of the options, where several may be chosen"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut pieces: Vec<(usize, Piece)> = Vec::new();
        for name in ["question", "value", "text", "none"] {
            let make = |text: String| match name {
                "question" => Piece::Question(text),
                "value" => Piece::Value(text),
                "text" => Piece::Text(text),
                _ => Piece::None,
            };
            let places = matches.indices_of(name).into_iter().flatten();
            let values = matches.get_many::<String>(name).into_iter().flatten();
            pieces.extend(places.zip(values.cloned().map(make)));
        }
        pieces.sort_by_key(|(place, _)| *place);
        Ok(Self(pieces.into_iter().map(|(_, piece)| piece).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Given {
    /// Whether no answer was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The answer to these questions.
    ///
    /// # Errors
    /// When it does not fit them, in words that name what would.
    pub fn answers(&self, questions: &[Question]) -> anyhow::Result<Vec<Answer>> {
        let mut answers: Vec<Answer> = Vec::new();
        let mut current = match questions {
            [only] => Some(only),
            _ => None,
        };
        let ids = || questions.iter().map(|question| question.question_id.as_str()).collect::<Vec<_>>().join(", ");
        for piece in &self.0 {
            if let Piece::Question(id) = piece {
                let Some(question) = questions.iter().find(|question| question.question_id == *id) else {
                    bail!("no question is called {id:?}; there is: {}", ids());
                };
                current = Some(question);
                continue;
            }
            let Some(question) = current else {
                bail!(
                    "there are {} questions; say which before its answer, with --question: {}",
                    questions.len(),
                    ids()
                );
            };
            let at =
                answers.iter().position(|answer| answer.question_id == question.question_id).unwrap_or_else(|| {
                    answers.push(Answer {
                        question_id: question.question_id.clone(),
                        values: Vec::new(),
                        free_text: None,
                    });
                    answers.len() - 1
                });
            match piece {
                Piece::Value(value) if question.option(value).is_some() => answers[at].values.push(value.clone()),
                Piece::Value(value) => bail!("{}", not_an_option(question, value)),
                Piece::Text(_) if answers[at].free_text.is_some() => bail!("--text stands twice for one question"),
                Piece::Text(text) => answers[at].free_text = Some(text.clone()),
                Piece::None if !question.multi() => bail!("--none answers only a question with several choices"),
                Piece::None | Piece::Question(_) => {}
            }
        }
        if answers.is_empty() {
            bail!("--question alone answers nothing; add --value, --text or --none");
        }
        Ok(answers)
    }
}

fn not_an_option(question: &Question, value: &str) -> String {
    if let Some(option) = question.options.iter().find(|option| option.label == value) {
        return format!(
            "{value:?} is what people see; the option's value is {:?}: --value {}",
            option.value, option.value
        );
    }
    let values = question.options.iter().map(|option| format!("{:?}", option.value)).collect::<Vec<_>>().join(", ");
    let text = if question.free_text() { "; a text of your own goes in --text" } else { "" };
    format!("no option has the value {value:?}; there is: {values}{text}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::{Args, FromArgMatches};
    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    fn questions() -> Vec<Question> {
        let option = |value: &str| json!({ "value": value, "label": value.to_uppercase() });
        let one = json!({ "question_id": "day", "prompt": "Which?", "options": [option("19"), option("-26")] });
        let many = json!({
            "question_id": "extras", "prompt": "What else?", "options": [option("a"), option("b")],
            "multi_select": true, "allow_free_text": true,
        });
        from_value(json!([one, many])).unwrap()
    }

    fn answers(arguments: &[&str], questions: &[Question]) -> Result<Value, String> {
        let command = Given::augment_args(Command::new("answer"));
        let matches = command.try_get_matches_from([&["answer"], arguments].concat()).unwrap();
        let given = Given::from_arg_matches(&matches).unwrap();
        given.answers(questions).map(|answers| to_value(answers).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn each_piece_goes_to_the_question_before_it() {
        let arguments = [
            "--question",
            "extras",
            "--value",
            "b",
            "--text",
            "c",
            "--question",
            "day",
            "-v",
            "-26",
            "--question=extras",
            "-v",
            "a",
        ];
        assert_eq!(
            answers(&arguments, &questions()),
            Ok(json!([
                { "question_id": "extras", "values": ["b", "a"], "free_text": "c" },
                { "question_id": "day", "values": ["-26"] },
            ]))
        );
        assert_eq!(answers(&["-v", "19"], &questions()[..1]), Ok(json!([{ "question_id": "day", "values": ["19"] }])));
        assert_eq!(answers(&["--none"], &questions()[1..]), Ok(json!([{ "question_id": "extras", "values": [] }])));
    }

    #[test]
    fn what_does_not_fit_is_told_with_what_would() {
        let all = questions();
        for (arguments, asked, part) in [
            (&["-v", "19"][..], &all[..], "--question: day, extras"),
            (&["--question", "dya", "-v", "19"], &all, "no question is called \"dya\"; there is: day, extras"),
            (&["-v", "20"], &all[..1], "there is: \"19\", \"-26\""),
            (&["-v", "c"], &all[1..], "--text"),
            (&["-v", "A"], &all[1..], "the option's value is \"a\""),
            (&["--none"], &all[..1], "several choices"),
            (&["-t", "x", "-t", "y"], &all[1..], "twice"),
            (&["--question", "day"], &all, "answers nothing"),
        ] {
            let error = answers(arguments, asked).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
