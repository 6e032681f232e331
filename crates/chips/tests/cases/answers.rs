//! What an answer may say, and who may say it: M12 to M15.

use serde_json::{Value, json};

use crate::support::events::{chosen, typed};
use crate::support::scene::{Scene, ask_path, seq};
use crate::support::{ask_with, new_id, question};

fn free_text(question_id: &str) -> Value {
    let mut question = question(question_id);
    question["allow_free_text"] = json!(true);
    question
}

fn multi(question_id: &str) -> Value {
    let mut question = free_text(question_id);
    question["multi_select"] = json!(true);
    question["options"].as_array_mut().unwrap().push(json!({"value": "ask again", "label": "Ask me again"}));
    question
}

fn open(scene: &Scene, questions: &[Value]) -> Value {
    let run = scene.harness.open_run();
    scene.asked(&scene.harness.event(&run, ask_with(questions)))
}

#[test]
fn m12_an_answer_that_says_nothing_is_refused_and_the_ask_stays_open() {
    let scene = Scene::new();
    let ask = open(&scene, &[free_text("fence")]);
    let nothing = [
        (chosen("fence", &[]), "/answers/0/values"),
        (typed("fence", ""), "/answers/0/free_text"),
        (typed("fence", "  \n"), "/answers/0/free_text"),
        (typed("fence", "\u{200b}"), "/answers/0/free_text"),
        (typed("fence", "\u{200b} \t\u{feff}\u{200d}"), "/answers/0/free_text"),
    ];
    for (entry, place) in nothing {
        let refused = scene.person.send(&scene.person.answer(&ask, std::slice::from_ref(&entry)));
        let faults = refused.expect_faults();
        assert!(faults.iter().any(|(pointer, _)| pointer == place), "{entry}: {faults:?}");
        assert_eq!(scene.person.state(&ask), "open", "{entry}");
    }
    scene.person.send(&scene.person.answer(&ask, &[])).expect_fault("/answers", "too_few");
    assert_eq!(scene.person.head(), seq(&ask));
    scene.person.send(&scene.person.answer(&ask, &[typed("fence", " ok ")])).expect(201);
}

#[test]
fn m13_one_answer_of_three_closes_the_ask() {
    let scene = Scene::new();
    let ask = open(&scene, &[question("fence"), question("gate"), question("shed")]);
    let answer = scene.person.send(&scene.person.answer(&ask, &[chosen("gate", &["leave"])])).expect(201);
    assert_eq!(answer["answers"], json!([{"question_id": "gate", "values": ["leave"]}]));

    let closed = scene.harness.ask(&ask);
    assert_eq!(closed["state"], "answered");
    assert_eq!(closed["answer"], answer);
    assert_eq!(closed["answerer"]["id"], json!(scene.person.id));
    let late = scene.person.answer(&ask, &[chosen("shed", &["paint"])]);
    scene.person.send(&late).expect_problem(409, "already_closed");
}

#[test]
fn m14_a_multi_select_question_keeps_two_values_and_what_was_typed() {
    let scene = Scene::new();
    let ask = open(&scene, &[multi("fence")]);
    let said = json!({"question_id": "fence", "values": ["leave", "paint"], "free_text": "after lunch"});
    let answer = scene.person.send(&scene.person.answer(&ask, std::slice::from_ref(&said))).expect(201);
    assert_eq!(answer["answers"], json!([said]));
    assert_eq!(scene.harness.ask(&ask)["answer"]["answers"], json!([said]));

    // "None of these" is an answer too, and a single select takes one of the two.
    let ask = open(&scene, &[multi("fence"), free_text("gate")]);
    let both = json!({"question_id": "gate", "values": ["paint"], "free_text": "today"});
    scene.person.send(&scene.person.answer(&ask, &[both])).expect_fault("/answers/0/free_text", "not_allowed");
    let twice = chosen("gate", &["paint", "leave"]);
    scene.person.send(&scene.person.answer(&ask, &[twice])).expect_fault("/answers/0/values", "too_many");
    scene.person.send(&scene.person.answer(&ask, &[chosen("fence", &[])])).expect(201);
}

#[test]
fn m15_another_harnesss_ask_is_not_found_whatever_is_done_to_it() {
    let scene = Scene::new();
    let ask = scene.open_ask();
    let other = scene.add_harness("another");
    let other_run = other.open_run();

    let mut unknown = ask.clone();
    unknown["ask_id"] = json!(new_id("qst"));
    let say = |to: &Value| other.send(&other.answer(to, &[chosen("fence", &["paint"])]));
    let (foreign, nobodys) = (say(&ask), say(&unknown));
    foreign.expect_problem(404, "not_found");
    assert_eq!(foreign.text(), nobodys.text(), "the two can't be told apart");

    // Nor with a run of its own, nor by reading or acknowledging it.
    let mut in_own_run = other.answer(&ask, &[chosen("fence", &["paint"])]);
    in_own_run["run_id"] = json!(other_run);
    other.send(&in_own_run).expect_problem(404, "not_found");
    other.get(&ask_path(&ask)).expect_problem(404, "not_found");
    other.post_empty(&format!("{}/ack", ask_path(&ask))).expect_problem(404, "not_found");
    assert_eq!(scene.harness.state(&ask), "open");
    assert_eq!(scene.harness.head(), seq(&ask));
}

#[test]
fn the_first_answer_wins_and_everybody_else_is_told_which_it_was() {
    let scene = Scene::new();
    let ask = open(&scene, &[free_text("fence")]);
    let people: Vec<_> = (0..8).map(|n| scene.add_person(&format!("person {n}"))).collect();
    let start = std::sync::Barrier::new(people.len());
    let answers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = people
            .iter()
            .map(|person| {
                let (ask, start) = (&ask, &start);
                scope.spawn(move || {
                    let answer = person.answer(ask, &[typed("fence", &person.id)]);
                    start.wait();
                    person.send(&answer)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    let won: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(won.len(), 1);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(answer.expect_problem(409, "already_closed")["answer"], won[0].json());
    }
    let closed = scene.harness.ask(&ask);
    assert_eq!(closed["answer"], won[0].json());
    assert_eq!(closed["late_answers"].as_array().unwrap().len(), 7);
    assert_eq!(scene.harness.head(), seq(&ask) + 1);
}

#[test]
fn settling_withdrawing_and_the_end_of_the_run_are_told_apart() {
    let scene = Scene::new();
    let harness = &scene.harness;
    let state = |ask: &Value| {
        let now = harness.ask(ask);
        (now["state"].clone(), now["answer"]["actor"]["kind"].clone(), now["answer"]["answered_by"].clone())
    };

    let settled = open(&scene, &[question("fence")]);
    harness.send(&harness.answer(&settled, &[chosen("fence", &["leave"])])).expect(201);
    assert_eq!(state(&settled), (json!("settled"), json!("harness"), json!(harness.id)));

    let withdrawn = open(&scene, &[question("fence")]);
    harness.send(&harness.answer(&withdrawn, &[])).expect(201);
    assert_eq!(state(&withdrawn), (json!("withdrawn"), json!("harness"), json!(harness.id)));

    let gave_up = open(&scene, &[question("fence")]);
    let mut took_default = harness.answer(&gave_up, &[chosen("fence", &["leave"])]);
    took_default["timed_out"] = json!(true);
    harness.send(&took_default).expect(201);
    assert_eq!(state(&gave_up), (json!("timed_out"), json!("harness"), json!(harness.id)));

    let ended = open(&scene, &[question("fence")]);
    harness.post_empty(&format!("/v1/runs/{}/end", ended["run_id"].as_str().unwrap())).expect(200);
    assert_eq!(state(&ended), (json!("withdrawn"), json!("system"), json!(harness.id)));
    assert_eq!(harness.ask(&ended)["answer"]["answers"], json!([]));
    assert_eq!(harness.ask(&ended)["answer"]["timed_out"], json!(false));

    let persons = open(&scene, &[question("fence")]);
    let mut claims = scene.person.answer(&persons, &[chosen("fence", &["leave"])]);
    claims["timed_out"] = json!(true);
    scene.person.send(&claims).expect_fault("/timed_out", "not_allowed");
}
