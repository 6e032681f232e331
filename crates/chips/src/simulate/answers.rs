//! What a script says in answer, as answers to the questions that were asked.

use chips_protocol::{Answer, Question};

use super::script::{Choice, Given, Pick};

/// The answers to these questions.
///
/// # Errors
/// Nothing of what is given fits them: what there would be.
pub fn answers(given: &Given, questions: &[Question]) -> Result<Vec<Answer>, String> {
    match given {
        Given::Each(choice) => {
            // What is said and nobody takes would be a test of nothing.
            if choice.text.is_some() && !questions.iter().any(Question::free_text) {
                return Err(format!("no question takes free text; {}", offered(questions)));
            }
            for pick in &choice.picks {
                if !questions.iter().any(|question| picked(pick, question).is_some()) {
                    return Err(format!("no question has the option {pick}; {}", offered(questions)));
                }
            }
            let answers: Vec<_> = questions.iter().filter_map(|question| fitting(choice, question)).collect();
            match answers.is_empty() {
                true => Err(format!("no question takes that; {}", offered(questions))),
                false => Ok(answers),
            }
        }
        Given::ByQuestion(choices) => choices.iter().map(|(id, choice)| named(id, choice, questions)).collect(),
    }
}

/// The answer to a question that the choice fits; nothing where it does not.
fn fitting(choice: &Choice, question: &Question) -> Option<Answer> {
    let values: Vec<_> = choice.picks.iter().filter_map(|pick| picked(pick, question)).collect();
    let free_text = choice.text.clone().filter(|_| question.free_text());
    let none_of_these = choice.picks.is_empty() && choice.text.is_none() && question.multi();
    (!values.is_empty() || free_text.is_some() || none_of_these).then(|| Answer {
        question_id: question.question_id.clone(),
        values,
        free_text,
    })
}

fn named(id: &str, choice: &Choice, questions: &[Question]) -> Result<Answer, String> {
    let question = questions
        .iter()
        .find(|question| question.question_id == id)
        .ok_or_else(|| format!("there is no question `{id}`; {}", offered(questions)))?;
    let values = choice
        .picks
        .iter()
        .map(|pick| picked(pick, question).ok_or_else(|| format!("it has no such option; {}", offered(questions))))
        .collect::<Result<_, _>>()?;
    // Whether the question takes text, or several, the rules judge as they do for everybody.
    Ok(Answer { question_id: id.to_owned(), values, free_text: choice.text.clone() })
}

/// The value of an option that the question has.
fn picked(pick: &Pick, question: &Question) -> Option<String> {
    match pick {
        Pick::Value(value) => question.option(value).map(|option| option.value.clone()),
        Pick::Place(place) => question.options.get(place - 1).map(|option| option.value.clone()),
    }
}

fn offered(questions: &[Question]) -> String {
    let options = |question: &Question| {
        let values: Vec<_> = question.options.iter().map(|option| format!("`{}`", option.value)).collect();
        let text = if question.free_text() { " and free text" } else { "" };
        format!("`{}` has {}{text}", question.question_id, values.join(", "))
    };
    questions.iter().map(options).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use chips_protocol::QuestionOption;

    use super::*;

    fn question(id: &str, values: &[&str], multi: bool, text: bool) -> Question {
        let option =
            |value: &&str| QuestionOption { value: (*value).into(), label: (*value).into(), description: None };
        Question {
            question_id: id.to_owned(),
            prompt: "?".to_owned(),
            options: values.iter().map(option).collect(),
            multi_select: Some(multi),
            allow_free_text: Some(text),
            default_value: None,
        }
    }

    fn each(picks: &[Pick], text: Option<&str>) -> Given {
        Given::Each(Choice { picks: picks.to_vec(), text: text.map(str::to_owned) })
    }

    fn value(value: &str) -> Pick {
        Pick::Value(value.to_owned())
    }

    #[test]
    fn a_value_goes_to_every_question_that_has_it_and_a_place_to_every_one() {
        let questions = [question("a", &["yes", "no"], false, false), question("b", &["x", "y"], false, true)];
        let said = |given: Given| -> Vec<_> {
            answers(&given, &questions).unwrap().into_iter().map(|answer| (answer.question_id, answer.values)).collect()
        };
        assert_eq!(said(each(&[value("no")], None)), [("a".to_owned(), vec!["no".to_owned()])]);
        assert_eq!(said(each(&[Pick::Place(2)], None)).len(), 2);
        assert_eq!(said(each(&[], Some("soon"))), [("b".to_owned(), vec![])]);
    }

    #[test]
    fn nothing_of_several_is_an_answer_to_a_question_that_takes_several() {
        let none = answers(&each(&[], None), &[question("a", &["x", "y"], true, false)]).unwrap();
        assert!(none[0].values.is_empty() && none[0].free_text.is_none());
    }

    #[test]
    fn what_fits_no_question_is_told_with_what_would() {
        let questions = [question("ship", &["19", "26"], false, true)];
        let wrong = answers(&each(&[value("27")], None), &questions).unwrap_err();
        assert!(wrong.ends_with("`ship` has `19`, `26` and free text"), "{wrong}");
        let text = [question("ship", &["19", "26"], false, false)];
        let dropped = answers(&each(&[value("19")], Some("by boat")), &text).unwrap_err();
        assert!(dropped.starts_with("no question takes free text"), "{dropped}");
        let by = Given::ByQuestion(vec![("shop".to_owned(), Choice { picks: vec![Pick::Place(1)], text: None })]);
        assert!(answers(&by, &questions).unwrap_err().contains("no question `shop`"));
    }
}
