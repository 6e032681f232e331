#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, from_value, json, to_value};

use super::*;

fn question(id: &str, multi: bool, free_text: bool) -> Question {
    let option = |value: &str| json!({ "value": value, "label": value.to_uppercase() });
    from_value(json!({
        "question_id": id, "prompt": "?", "options": [option("a"), option("b"), option("c")],
        "multi_select": multi, "allow_free_text": free_text,
    }))
    .unwrap()
}

fn form(kinds: &[(bool, bool)]) -> Form {
    let names = ["one", "two", "three", "four"];
    let questions: Vec<_> =
        kinds.iter().zip(names).map(|(&(multi, free_text), id)| question(id, multi, free_text)).collect();
    Form::new(&questions)
}

/// Presses keys: a letter for each, `⏎` Enter, `⎋` Esc, `↑ ↓ ← →`, `⌫` Backspace. The last action that is none of
/// [`Action::Stay`], or that.
fn press(form: &mut Form, keys: &str) -> Action {
    let mut last = Action::Stay;
    for key in keys.chars() {
        let code = match key {
            '⏎' => KeyCode::Enter,
            '⎋' => KeyCode::Esc,
            '↑' => KeyCode::Up,
            '↓' => KeyCode::Down,
            '←' => KeyCode::Left,
            '→' => KeyCode::Right,
            '⌫' => KeyCode::Backspace,
            letter => KeyCode::Char(letter),
        };
        let action = form.key(KeyEvent::new(code, KeyModifiers::NONE));
        if action != Action::Stay {
            last = action;
        }
    }
    last
}

fn sent(action: &Action) -> Value {
    match action {
        Action::Send(answers) => to_value(answers).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn one(values: &[&str]) -> Value {
    json!([{ "question_id": "one", "values": values }])
}

fn one_text(text: &str) -> Value {
    json!([{ "question_id": "one", "values": [], "free_text": text }])
}

#[test]
fn moving_and_digits_choose_and_only_enter_sends() {
    let mut form = form(&[(false, true)]);
    assert_eq!(press(&mut form, "↓↓↑321 jk"), Action::Stay);
    assert_eq!(sent(&press(&mut form, "2⏎")), one(&["b"]));
}

#[test]
fn a_digit_without_an_option_does_nothing() {
    let mut form = form(&[(false, false)]);
    assert_eq!(sent(&press(&mut form, "2456789t⏎")), one(&["b"]));
}

#[test]
fn digits_and_letters_that_are_typed_are_text() {
    let mut form = form(&[(false, true)]);
    assert_eq!(sent(&press(&mut form, "t3 days, quite⏎")), one_text("3 days, quite"));
}

#[test]
fn a_text_that_was_opened_and_left_empty_is_no_answer() {
    let mut form = form(&[(false, true)]);
    assert_eq!(press(&mut form, "t⏎"), Action::Stay);
    assert!(form.message().is_some());
    assert_eq!(press(&mut form, "t  ⏎"), Action::Stay);
    assert_eq!(sent(&press(&mut form, "1⏎")), one(&["a"]));
}

#[test]
fn a_typed_draft_stays_when_an_option_is_chosen_and_is_not_sent() {
    let mut form = form(&[(false, true)]);
    press(&mut form, "tdraft⎋");
    assert_eq!(form.stage(), Stage::Choosing);
    assert_eq!(form.drafts().collect::<Vec<_>>(), ["draft"]);
    assert_eq!(sent(&press(&mut form, "2⏎")), one(&["b"]));
}

#[test]
fn leaving_with_a_draft_is_asked_about_once() {
    let mut form = form(&[(false, true)]);
    assert_eq!(press(&mut form.clone(), "q"), Action::Leave);
    press(&mut form, "tdraft⎋");
    assert_eq!(press(&mut form, "⎋"), Action::Stay);
    assert_eq!(press(&mut form, "1⎋"), Action::Stay, "another key in between starts over");
    assert_eq!(press(&mut form, "⎋"), Action::Leave);
}

#[test]
fn several_options_and_a_text_go_together() {
    let mut form = form(&[(true, true)]);
    assert_eq!(press(&mut form, "1↓↓ talso⏎"), Action::Stay);
    let expected = json!([{ "question_id": "one", "values": ["a", "c"], "free_text": "also" }]);
    assert_eq!(sent(&press(&mut form, "⏎")), expected);
}

#[test]
fn none_of_these_is_asked_about_once() {
    let mut form = form(&[(true, false)]);
    assert_eq!(press(&mut form, "⏎"), Action::Stay);
    assert_eq!(press(&mut form, "11⏎"), Action::Stay, "chosen and unchosen again");
    assert_eq!(sent(&press(&mut form, "⏎")), one(&[]));
}

#[test]
fn each_text_stays_with_its_question() {
    let mut form = form(&[(false, true), (false, true), (true, true), (false, true)]);
    press(&mut form, "1⏎tsecond⏎2⏎tfourth⏎");
    assert_eq!(form.stage(), Stage::Review);
    assert_eq!(
        sent(&press(&mut form, "⏎")),
        json!([
            { "question_id": "one", "values": ["a"] },
            { "question_id": "two", "values": [], "free_text": "second" },
            { "question_id": "three", "values": ["b"] },
            { "question_id": "four", "values": [], "free_text": "fourth" },
        ])
    );
}

#[test]
fn what_is_answered_is_shown_before_a_part_of_it_is_sent() {
    let mut form = form(&[(false, false), (false, false)]);
    assert_eq!(press(&mut form, "→→⏎"), Action::Stay);
    assert_eq!(form.message(), Some("No question is answered yet; go back with ←."));
    assert_eq!(press(&mut form, "←←2⏎→"), Action::Stay);
    assert_eq!(form.stage(), Stage::Review);
    assert_eq!(sent(&press(&mut form, "⏎")), one(&["b"]));
}

#[test]
fn an_answer_can_be_changed_from_the_review() {
    let mut form = form(&[(false, false), (true, false)]);
    press(&mut form, "1⏎2⏎");
    press(&mut form, "1");
    assert_eq!((form.at(), form.stage()), (0, Stage::Choosing));
    press(&mut form, "3⏎");
    let expected = json!([{ "question_id": "one", "values": ["c"] }, { "question_id": "two", "values": ["b"] }]);
    assert_eq!(sent(&press(&mut form, "⏎⏎")), expected);
}

#[test]
fn what_is_not_on_the_screen_is_not_sent() {
    let mut form = form(&[(false, false)]);
    form.seen = false;
    assert_eq!(press(&mut form, "⏎"), Action::Stay);
    assert!(!form.scrolled());
    form.seen = true;
    assert_eq!(sent(&press(&mut form, "⏎")), one(&["a"]));
}

#[test]
fn a_paste_goes_into_a_text_and_nowhere_else() {
    let mut form = form(&[(false, true)]);
    form.paste("2\r");
    assert!(form.message().unwrap().contains("press t"));
    press(&mut form, "t");
    form.paste("2\r\nlines");
    assert_eq!(sent(&press(&mut form, "⏎")), one_text("2\nlines"));
}

#[test]
fn a_text_that_is_too_long_stays_to_be_cut() {
    let mut form = form(&[(false, true)]);
    press(&mut form, "t");
    form.paste(&"x".repeat(limits::FREE_TEXT + 1));
    assert_eq!(press(&mut form, "⏎"), Action::Stay);
    assert_eq!(form.stage(), Stage::Typing);
    assert_eq!(sent(&press(&mut form, "⌫⏎")), one_text(&"x".repeat(limits::FREE_TEXT)));
}

proptest! {
    /// Whatever is pressed, what is sent is an answer that the protocol takes.
    #[test]
    fn any_keys_send_only_what_fits_the_questions(
        kinds in proptest::collection::vec(any::<(bool, bool)>(), 1..=4),
        keys in proptest::collection::vec(proptest::sample::select("⏎⏎⏎⎋↑↓←→⌫ 1234tqjkx".chars().collect::<Vec<_>>()), 0..60),
    ) {
        let mut form = form(&kinds);
        for key in keys {
            let Action::Send(answers) = press(&mut form, &key.to_string()) else { continue };
            prop_assert!(!answers.is_empty());
            for answer in answers {
                let part = form.parts().iter().find(|part| part.question.question_id == answer.question_id).unwrap();
                let text = answer.free_text.as_deref();
                prop_assert!(text.is_none_or(|text| part.question.free_text() && !is_blank(text)));
                prop_assert!(answer.values.iter().all(|value| part.question.option(value).is_some()));
                if !part.question.multi() {
                    prop_assert_eq!(answer.values.len() + usize::from(text.is_some()), 1);
                }
            }
        }
    }
}
