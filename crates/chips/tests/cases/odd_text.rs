//! Odd text: M25 to M28, H14.

use serde_json::{Value, json};

use crate::support::events::{chosen, typed};
use crate::support::scene::{Scene, seq};
use crate::support::{ask_with, new_id, question};

fn with(question: &Value, place: &str, text: &str) -> Value {
    let mut changed = question.clone();
    *changed.pointer_mut(place).unwrap() = json!(text);
    changed
}

fn options(pairs: &[(&str, &str)]) -> Value {
    pairs.iter().map(|(value, label)| json!({"value": value, "label": label})).collect()
}

#[test]
fn m25_a_zero_character_is_refused_wherever_it_stands() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let mut full = question("fence");
    full["default_value"] = json!("whatever");
    full["allow_free_text"] = json!(true);
    let places =
        ["/prompt", "/options/0/label", "/options/0/value", "/options/1/description", "/question_id", "/default_value"];
    for text in ["a\0b", "\0", "bell\u{7}", "escape\u{1b}[31m", "delete\u{7f}", "next\u{85}line"] {
        for place in places {
            let ask = scene.harness.event(&run, ask_with(&[with(&full, place, text)]));
            let refused = scene.harness.send(&ask);
            refused.expect_fault(&format!("/questions/0{place}"), "forbidden_character");
        }
        let mut ask = scene.harness.plain_ask(&run);
        ask["idempotency_key"] = json!(text);
        scene.harness.send(&ask).expect_fault("/idempotency_key", "forbidden_character");
    }
    assert_eq!(scene.harness.head(), 0);

    let ask = scene.asked(&scene.harness.event(&run, ask_with(&[full])));
    let answer = scene.person.answer(&ask, &[typed("fence", "tomorrow\0")]);
    scene.person.send(&answer).expect_fault("/answers/0/free_text", "forbidden_character");
    assert_eq!(scene.person.state(&ask), "open");
    // Tabs and line ends are text.
    scene.person.send(&scene.person.answer(&ask, &[typed("fence", "a\tb\r\nc")])).expect(201);
}

#[test]
fn m26_a_label_can_not_turn_its_reading_round_but_a_prompt_may_quote_it() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    for control in ['\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}'] {
        let text = format!("safe{control}eteled");
        for place in ["/options/0/label", "/options/0/value", "/question_id"] {
            let ask = scene.harness.event(&run, ask_with(&[with(&question("fence"), place, &text)]));
            scene.harness.send(&ask).expect_fault(&format!("/questions/0{place}"), "forbidden_character");
        }
        let ask = scene.harness.event(&run, ask_with(&[with(&question("fence"), "/prompt", &text)]));
        let stored = scene.asked(&ask);
        assert_eq!(stored["questions"][0]["prompt"], json!(text), "byte for byte");
    }
}

#[test]
fn m27_two_buttons_that_read_alike_are_refused_and_two_prompts_may_be_the_same() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let ask = |options: Value| {
        let mut question = question("fence");
        question["options"] = options;
        scene.harness.send(&scene.harness.event(&run, ask_with(&[question])))
    };
    ask(options(&[("a", "First"), ("a", "Second")])).expect_fault("/questions/0/options/1/value", "duplicate");
    for (one, two) in [
        ("Yes", "yes "),
        ("Yes", "Yes"),
        ("Yes", "Y\u{200b}es"),
        ("Yes please", "Yes \t please"),
        ("\u{ff39}es", "Yes"),
        ("stra\u{df}e", "STRASSE"),
        ("fi", "\u{fb01}"),
    ] {
        ask(options(&[("a", one), ("b", two)])).expect_fault("/questions/0/options/1/label", "duplicate");
    }
    assert_eq!(scene.harness.head(), 0);
    // Values are told apart by every byte: programs read them.
    ask(options(&[("a", "First"), ("A", "Second"), ("a ", "Third")])).expect(201);

    let twice = [question("fence"), question("fence")];
    let refused = scene.harness.send(&scene.harness.event(&run, ask_with(&twice)));
    refused.expect_fault("/questions/1/question_id", "duplicate");
    let same_prompt = [question("fence"), question("gate")];
    scene.harness.send(&scene.harness.event(&run, ask_with(&same_prompt))).expect(201);
}

#[test]
fn m28_any_text_may_be_a_value_and_comes_back_byte_for_byte() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    // "é" twice, composed and not: two values, though no two labels of one question.
    let odd = [
        "Yes, now",
        "__proto__",
        "'; DROP TABLE--",
        "{{7*7}}",
        "<script>",
        "constructor",
        "$(reboot)",
        "\u{e9}",
        "a\nb",
        "e\u{301}",
        "%00",
        "\u{1f469}\u{200d}\u{1f692}",
        "0",
        "null",
        "../../etc/passwd",
        " lead and trail ",
    ];
    for four in odd.chunks(4) {
        let mut question = question("__proto__");
        let pairs: Vec<_> = four.iter().map(|value| (*value, *value)).collect();
        question["options"] = options(&pairs);
        question["multi_select"] = json!(true);
        let ask = scene.asked(&scene.harness.event(&run, ask_with(&[question])));
        for (option, value) in ask["questions"][0]["options"].as_array().unwrap().iter().zip(four) {
            assert_eq!(option["value"].as_str(), Some(*value));
            assert_eq!(option["label"].as_str(), Some(*value));
        }
        let labels = scene.person.ask(&ask)["option_labels"]["__proto__"].clone();
        assert!(four.iter().all(|value| labels[*value].as_str() == Some(*value)), "{labels}");

        let answer = scene.person.send(&scene.person.answer(&ask, &[chosen("__proto__", four)])).expect(201);
        assert_eq!(answer["answers"], json!([{"question_id": "__proto__", "values": four}]));
        assert_eq!(scene.harness.ask(&ask)["answer"], answer);
    }
}

#[test]
fn text_is_counted_in_characters_and_may_fill_its_limit() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let limits = [
        ("/prompt", 4000),
        ("/options/0/label", 300),
        ("/options/0/value", 300),
        ("/options/1/description", 2000),
        ("/question_id", 100),
    ];
    for (place, limit) in limits {
        let ask = |count: usize| {
            let text = "\u{1f33b}".repeat(count);
            scene.harness.send(&scene.harness.event(&run, ask_with(&[with(&question("fence"), place, &text)])))
        };
        ask(limit + 1).expect_fault(&format!("/questions/0{place}"), "too_long");
        ask(limit).expect(201);
    }
    let with_key = |count: usize| {
        let mut ask = scene.harness.plain_ask(&run);
        let key = new_id("key");
        ask["idempotency_key"] = json!(format!("{key}{}", "k".repeat(count - key.len())));
        scene.harness.send(&ask)
    };
    with_key(256).expect_fault("/idempotency_key", "too_long");
    with_key(255).expect(201);

    let mut wordy = question("fence");
    wordy["allow_free_text"] = json!(true);
    let ask = scene.asked(&scene.harness.event(&run, ask_with(&[wordy])));
    let say = |count: usize| scene.person.send(&scene.person.answer(&ask, &[typed("fence", &"\u{e9}".repeat(count))]));
    say(10_001).expect_fault("/answers/0/free_text", "too_long");
    say(10_000).expect(201);
}

#[test]
fn h14_letters_of_two_scripts_that_look_alike_are_no_two_labels() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let mut question = question("fence");
    for (one, two) in [("Delete", "D\u{435}lete"), ("Accept", "\u{410}cc\u{435}pt"), ("PAY", "\u{420}\u{410}Y")] {
        question["options"] = options(&[("keep", one), ("drop", two)]);
        let refused = scene.harness.send(&scene.harness.event(&run, ask_with(std::slice::from_ref(&question))));
        refused.expect_fault("/questions/0/options/1/label", "duplicate");
    }
    question["options"] = options(&[("a", "\u{414}\u{430}"), ("b", "\u{41d}\u{435}\u{442}")]);
    let stored = scene.asked(&scene.harness.event(&run, ask_with(&[question])));
    assert_eq!(seq(&stored), 1, "a language of its own is fine");
}
