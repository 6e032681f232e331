//! What was decided in the terminal while Chips asked too. Claude Code doesn't tell the hook that waits; it starts other
//! hooks afterwards, and from what they are given the ask is found again and closed.

use chips_client::protocol::api::{Ask, AskState};
use chips_client::protocol::{Answer, Question};
use chips_client::{AsksQuery, Client, Error};
use serde_json::Value;

use super::hook::{ALLOW, ASK_TOOL, Input, PERMISSION};

/// A question that is open no more in the terminal.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// As it was asked.
    pub questions: Vec<Question>,
    /// What was chosen; nothing where that can't be told, or nothing was.
    pub answers: Vec<Answer>,
}

/// What a `PostToolUse` says: the tool was used, so the person answered, or allowed it.
pub fn used(input: &Input) -> Option<Decided> {
    if input.tool_name == ASK_TOOL {
        let questions = input.questions(false).ok()?;
        let answers = chosen(&questions, input.tool_input.get("answers")?);
        return Some(Decided { questions, answers: answers.unwrap_or_default() });
    }
    let allowed = Answer { question_id: PERMISSION.to_owned(), values: vec![ALLOW.to_owned()], free_text: None };
    Some(Decided { questions: input.permission().ok()?, answers: vec![allowed] })
}

/// What a `PostToolBatch` says: these calls are through. How each came out is not told in a form to rely on.
pub fn through(input: &Input, permissions: bool) -> Vec<Decided> {
    let questions = |call: Input| {
        if call.tool_name == ASK_TOOL {
            call.questions(false).ok()
        } else {
            permissions.then(|| call.permission().ok()).flatten()
        }
    };
    let calls = input.calls().into_iter().filter_map(questions);
    calls.map(|questions| Decided { questions, answers: Vec::new() }).collect()
}

/// Closes what the run still asks of it: settled with the answers, withdrawn where there are none.
///
/// # Errors
/// Chips can't be reached, or refuses.
pub async fn close(client: &Client, open: &[Ask], decided: &Decided) -> Result<(), Error> {
    let same = |ask: &&Ask| ask.ask.as_ask().is_some_and(|asked| is_same(&asked.questions, &decided.questions));
    for ask in open.iter().filter(same) {
        let settled = client.settle(ask, decided.answers.clone()).await;
        match settled.map(drop) {
            Err(error) if !decided.answers.is_empty() && is_status(&error, 422) => withdraw(client, ask).await?,
            outcome => unless_closed(outcome)?,
        }
    }
    Ok(())
}

/// Takes an ask back, if it is open still.
///
/// # Errors
/// Chips can't be reached, or refuses.
pub async fn withdraw(client: &Client, ask: &Ask) -> Result<(), Error> {
    unless_closed(client.withdraw(ask).await.map(drop))
}

/// What the run asks now.
///
/// # Errors
/// Chips can't be reached, or refuses.
pub async fn open(client: &Client, run_id: chips_client::protocol::RunId) -> Result<Vec<Ask>, Error> {
    Ok(client.asks(&AsksQuery::default().state(AskState::Open).run(run_id)).await?.asks)
}

fn unless_closed(outcome: Result<(), Error>) -> Result<(), Error> {
    outcome.or_else(|error| if is_status(&error, 409) { Ok(()) } else { Err(error) })
}

fn is_status(error: &Error, status: u16) -> bool {
    error.problem().is_some_and(|problem| problem.status == status)
}

/// Whether these are the same questions, whatever was made their default. Claude Code orders the keys of a tool's input
/// anew from hook to hook, so what stands in a prompt as JSON is compared as that.
pub fn is_same(some: &[Question], others: &[Question]) -> bool {
    some.len() == others.len()
        && some.iter().zip(others).all(|(one, other)| {
            one.question_id == other.question_id
                && one.options == other.options
                && one.multi() == other.multi()
                && reads_alike(&one.prompt, &other.prompt)
        })
}

fn reads_alike(one: &str, other: &str) -> bool {
    let parts = |prompt: &str| {
        let (head, body) = prompt.split_once('\n')?;
        Some((head.to_owned(), serde_json::from_str::<Value>(body).ok()?))
    };
    one == other || parts(one).zip(parts(other)).is_some_and(|(one, other)| one == other)
}

/// The answers of an `AskUserQuestion`, by question text; nothing where one of them can't be told for sure.
fn chosen(questions: &[Question], answers: &Value) -> Option<Vec<Answer>> {
    let mut given = Vec::new();
    for question in questions {
        let Some(answer) = answers.get(&question.prompt) else { continue };
        let (values, free_text) = match answer {
            Value::String(text) if question.multi() => parted(question, text)?,
            Value::String(text) => of_texts(question, std::iter::once(text.as_str())),
            Value::Array(texts) => of_texts(question, texts.iter().filter_map(Value::as_str)),
            _ => return None,
        };
        given.push(Answer { question_id: question.question_id.clone(), values, free_text });
    }
    Some(given)
}

type Chosen = (Vec<String>, Option<String>);

fn of_texts<'a>(question: &Question, texts: impl Iterator<Item = &'a str>) -> Chosen {
    let (values, typed): (Vec<&str>, Vec<&str>) = texts.partition(|text| question.option(text).is_some());
    let typed = typed.join(", ");
    (values.into_iter().map(str::to_owned).collect(), (!typed.is_empty()).then_some(typed))
}

/// What between Claude Code's commas is whose: labels may hold commas themselves, and stand in quotation marks then (seen in
/// 2.1.332). The reading with the most labels is the one; where two have as many, there is none.
fn parted(question: &Question, text: &str) -> Option<Chosen> {
    let mut readings = Vec::new();
    read_on(question, text, Vec::new(), &mut readings);
    let whole = readings.iter().any(|(_, typed)| typed.is_none());
    readings.retain(|(_, typed)| typed.is_none() || !whole);
    let most = readings.iter().map(|(values, _)| values.len()).max()?;
    if !whole {
        readings.retain(|(values, _)| values.len() == most);
    }
    (readings.len() == 1).then(|| readings.pop()).flatten()
}

fn read_on(question: &Question, rest: &str, before: Vec<String>, readings: &mut Vec<Chosen>) {
    for option in question.options.iter().filter(|option| !before.contains(&option.value)) {
        for shown in [option.label.clone(), quoted(&option.label)] {
            let Some(after) = rest.strip_prefix(&shown) else { continue };
            let mut values = before.clone();
            values.push(option.value.clone());
            if after.is_empty() {
                readings.push((values, None));
            } else if let Some(after) = after.strip_prefix(", ") {
                read_on(question, after, values, readings);
            }
        }
    }
    if !rest.is_empty() {
        let typed = serde_json::from_str(rest).unwrap_or_else(|_| rest.to_owned());
        readings.push((before, Some(typed)));
    }
}

fn quoted(label: &str) -> String {
    Value::String(label.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use chips_client::protocol::QuestionOption;
    use serde_json::json;

    use super::*;

    fn question(labels: &[&str], multi: bool) -> Question {
        let option =
            |label: &&str| QuestionOption { value: (*label).to_owned(), label: (*label).to_owned(), description: None };
        Question {
            question_id: "q0".to_owned(),
            prompt: "Which extras?".to_owned(),
            options: labels.iter().map(option).collect(),
            multi_select: multi.then_some(true),
            allow_free_text: Some(true),
            default_value: None,
        }
    }

    fn told(labels: &[&str], multi: bool, answer: Value) -> Option<(Vec<String>, Option<String>)> {
        let answers = chosen(&[question(labels, multi)], &json!({ "Which extras?": answer }))?;
        answers.into_iter().next().map(|answer| (answer.values, answer.free_text))
    }

    fn words(values: &[&str], typed: Option<&str>) -> Option<(Vec<String>, Option<String>)> {
        Some((values.iter().map(|value| (*value).to_owned()).collect(), typed.map(str::to_owned)))
    }

    #[test]
    fn an_answer_of_the_terminal_is_an_option_or_what_was_typed() {
        assert_eq!(told(&["Rye", "Peas"], false, json!("Rye")), words(&["Rye"], None));
        assert_eq!(told(&["Rye", "Peas"], false, json!("Rye, later")), words(&[], Some("Rye, later")));
        assert_eq!(told(&["Rye", "Peas"], true, json!(["Peas", "dill"])), words(&["Peas"], Some("dill")));
        assert_eq!(told(&["Rye", "Peas"], false, json!(7)), None);
    }

    #[test]
    fn several_joined_by_commas_are_taken_apart_by_their_labels() {
        let labels = ["Search, full text", "Gift cards", "Newsletter"];
        let text = json!("Search, full text, Newsletter");
        assert_eq!(told(&labels, true, text), words(&["Search, full text", "Newsletter"], None));
        let text = json!("\"Search, full text\", Newsletter");
        assert_eq!(told(&labels, true, text), words(&["Search, full text", "Newsletter"], None));
        let text = json!(r#""Search, full text", "a \"list\", later""#);
        assert_eq!(told(&labels, true, text), words(&["Search, full text"], Some("a \"list\", later")));
        let text = json!("Gift cards, and a wish list, later");
        assert_eq!(told(&labels, true, text), words(&["Gift cards"], Some("and a wish list, later")));
        assert_eq!(told(&["A", "B", "A, B"], true, json!("A, B")), None, "it reads two ways");
    }

    #[test]
    fn questions_are_the_same_whatever_the_order_of_keys_and_the_default() {
        let one = question(&["Rye", "Peas"], false);
        let with_default = Question { default_value: Some("Rye".to_owned()), ..one.clone() };
        let same = |one: &Question, other: &Question| is_same(std::slice::from_ref(one), std::slice::from_ref(other));
        assert!(same(&one, &with_default));
        assert!(!same(&one, &question(&["Peas", "Rye"], false)));
        let asks = |prompt: &str| Question { prompt: prompt.to_owned(), ..one.clone() };
        let (some, other) = (asks("Use Write:\n{\"a\": 1, \"b\": 2}"), asks("Use Write:\n{\"b\": 2, \"a\": 1}"));
        assert!(same(&some, &other));
        assert!(!same(&some, &asks("Use Write:\n{\"a\": 1, \"b\": 3}")));
    }
}
