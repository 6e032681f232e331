#![allow(clippy::unwrap_used)]

use super::*;

fn faults(text: &str) -> Vec<(usize, String)> {
    read(text).unwrap_err().into_iter().map(|fault| (fault.line, fault.message)).collect()
}

/// The deeds of the only step.
fn deeds(acts: &str) -> Vec<Deed> {
    let script = read(&format!("[[step]]\ndo = {acts}\n")).unwrap_or_else(|faults| panic!("{acts}: {faults:?}"));
    script.steps[0].acts.iter().map(|act| act.deed.clone()).collect()
}

fn each(picks: &[Pick]) -> Given {
    Given::Each(Choice { picks: picks.to_vec(), text: None })
}

#[test]
fn a_step_says_which_asks_it_takes_how_many_and_what_is_done() {
    let script = read(
        r#"
otherwise = "ignore"

[[step]]
prompt = "ship"
question_id = "delivery"
title = "Restock"
times = "always"
do = [
  "cut",
  { answer = "19", by = "Ada" },
]

[[step]]
times = 2
do = "leave"
"#,
    )
    .unwrap();
    let [first, second] = &script.steps[..] else { panic!("{script:?}") };
    assert_eq!((first.line, first.times, second.line, second.times), (4, None, 14, Some(2)));
    assert_eq!(first.takes.prompt.as_deref(), Some("ship"));
    assert_eq!(first.acts[1].line, 11);
    assert_eq!(first.acts[1].deed, Deed::Answer(each(&[Pick::Value("19".into())]), "Ada (script)".into()));
    assert_eq!(second.acts[0].deed, Deed::Leave);
    assert_eq!(script.otherwise[0].deed, Deed::Ignore);
    assert_eq!(script.people(), ["Ada (script)"]);
}

#[test]
fn every_act_is_read() {
    let script = || "Script".to_owned();
    let text = |text: &str| Given::Each(Choice { picks: vec![], text: Some(text.into()) });
    for (acts, expected) in [
        (r#""leave""#, Deed::Leave),
        (r#""ignore""#, Deed::Ignore),
        ("{ withdraw = true }", Deed::Withdraw),
        (r#""end_run""#, Deed::EndRun),
        ("{ answer = 2 }", Deed::Answer(each(&[Pick::Place(2)]), script())),
        (r#"{ answer = ["a", 1] }"#, Deed::Answer(each(&[Pick::Value("a".into()), Pick::Place(1)]), script())),
        (r#"{ answer = [], text = "Neither" }"#, Deed::Answer(text("Neither"), script())),
        (r#"{ answer_late = "a" }"#, Deed::AnswerLate(each(&[Pick::Value("a".into())]), script())),
        (r#"{ settle = "a" }"#, Deed::Settle(each(&[Pick::Value("a".into())]))),
        (r#"{ advance = "1h30m" }"#, Deed::Advance(Duration::from_secs(5_400))),
        (r#""cut""#, Deed::Cut(0)),
        ("{ cut = 3 }", Deed::Cut(3)),
        (r#""lose_replies""#, Deed::LoseReplies(1)),
        ("{ unavailable = 2 }", Deed::Unavailable(2)),
        (r#""restart""#, Deed::Restart(Duration::ZERO)),
        (r#"{ restart = "200ms" }"#, Deed::Restart(Duration::from_millis(200))),
    ] {
        assert_eq!(deeds(acts), [expected], "{acts}");
    }
    let by_question = Given::ByQuestion(vec![
        ("a".into(), Choice { picks: vec![Pick::Value("x".into())], text: None }),
        ("b".into(), Choice { picks: vec![Pick::Place(1)], text: Some("and more".into()) }),
    ]);
    let acts = r#"{ answer = { a = "x", b = { choose = 1, text = "and more" } } }"#;
    assert_eq!(deeds(acts), [Deed::Answer(by_question, script())]);
    let after = deeds(r#"{ answer = 1, after = "5m" }"#);
    assert_eq!(after, [Deed::Advance(Duration::from_secs(300)), Deed::Answer(each(&[Pick::Place(1)]), script())]);
}

#[test]
fn a_misspelt_name_is_told_with_its_line_and_the_one_that_was_meant() {
    for (text, line, part) in [
        ("otherwize = \"ignore\"\n", 1, "did you mean `otherwise`?"),
        ("\n[[step]]\npromt = \"x\"\ndo = \"leave\"\n", 3, "did you mean `prompt`?"),
        ("[[step]]\ndo = \"ignor\"\n", 2, "did you mean `ignore`?"),
        ("[[step]]\ndo = [\n  \"cut\",\n  { anser = 1 },\n]\n", 4, "did you mean `answer`?"),
        ("[[step]]\ndo = { answer = { a = { chose = 1 } } }\n", 2, "did you mean `choose`?"),
    ] {
        let faults = faults(text);
        assert!(faults.len() == 1 && faults[0].0 == line && faults[0].1.contains(part), "{text}: {faults:?}");
    }
}

#[test]
fn what_can_t_be_done_is_refused_with_what_could() {
    for (text, part) in [
        ("", "the script does nothing"),
        ("[[step]]\nprompt = \"x\"\n", "the step does nothing"),
        ("[[step]]\ndo = []\n", "say \"leave\""),
        ("[[step]]\ndo = \"answer\"\n", "{ answer = 1 }"),
        ("[[step]]\ndo = \"advance\"\n", "{ advance = \"1h\" }"),
        ("[[step]]\ndo = { advance = \"soon\" }\n", "like 90s, 15m"),
        ("[[step]]\ndo = { advance = \"0s\" }\n", "more than nothing"),
        ("[[step]]\ndo = { advance = 60 }\n", "in quotes"),
        ("[[step]]\ndo = { restart = \"2h\" }\n", "at most 60 s"),
        ("[[step]]\ndo = { answer = 5 }\n", "from 1 to 4"),
        ("[[step]]\ndo = { answer = {} }\n", "no question is named"),
        ("[[step]]\ndo = { answer = 1, answer_late = 1 }\n", "one thing at a time"),
        ("[[step]]\ndo = { withdraw = true, by = \"Ada\" }\n", "no place beside `withdraw`"),
        ("[[step]]\ndo = { answer_late = 1, after = \"1h\" }\n", "no place beside `answer_late`"),
        ("[[step]]\ndo = { by = \"Ada\" }\n", "say what is done"),
        ("[[step]]\ndo = { ignore = 3 }\n", "takes no value"),
        ("[[step]]\ndo = { cut = 0 }\n", "from 1 to 1000"),
        ("[[step]]\ntimes = 0\ndo = \"leave\"\n", "or \"always\""),
        ("[[step]]\nprompt = \" \"\ndo = \"leave\"\n", "not blank"),
        ("step = 1\n", "`[[step]]`"),
        ("start = \"ignore\"\n", "before anything is asked"),
        ("[[step]\n", ""),
        ("[[step]]\ndo = \"leave\"\ndo = \"leave\"\n", "duplicate"),
    ] {
        let faults = faults(text);
        assert!(faults.iter().any(|(_, message)| message.contains(part)), "{text}: {faults:?}");
    }
}

#[test]
fn all_faults_are_told_in_the_order_of_the_lines() {
    let faults = faults("[[step]]\ndo = \"ignor\"\ntimes = 0\n[[step]]\nwhat = 1\n");
    let lines: Vec<_> = faults.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3, 4, 5], "{faults:?}");
}
