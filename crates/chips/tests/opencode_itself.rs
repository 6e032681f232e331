//! The adapter against the real OpenCode, where its npm package is installed: through the bridge, and through the plugin
//! in a server and in the terminal UI.
#![allow(clippy::unwrap_used)]

mod desk;
mod opencode;
mod pty;
mod serving;
mod stub;

use opencode::{Garden, bed};
use serde_json::json;
use serving::{until, until_within};

#[test]
fn through_the_bridge_the_first_answer_wins_on_either_side() {
    let Some(mut garden) = Garden::new() else { return };
    garden.start();
    let bridge = garden.bridge(&[]);
    let mut extras = bed();
    extras["question"] = json!("What else?");
    extras["multiple"] = json!(true);
    // Not the folder that the server was started in: a reply must name it.
    let session = garden.prompt("second", json!([bed(), extras]));
    let ask = garden.open_asks(1).remove(0);
    let run = format!("/v1/runs/{}", ask["ask"]["run_id"].as_str().unwrap());
    let (_, run) = garden.desk.server().api(&garden.desk.person, "GET", &run, None);
    assert_eq!((&run["title"], &run["labels"]["folder"]), (&json!("Plant the beds · second"), &json!(session.folder)));
    assert_eq!(ask["deadline"], json!(null), "it waits for as long as it takes");
    garden.desk.answer(json!({ "question_id": "q1", "values": ["Beans"], "free_text": "and dill" }));
    let heard = garden.model.wait_for("What else?");
    assert!(heard.contains("Beans, and dill") && heard.contains("Unanswered"), "{heard}");
    until("the receipt", || garden.closed(&ask)["acknowledged_at"].is_string().then_some(()));

    let session = garden.prompt("second", json!([bed()]));
    let ask = garden.open_asks(1).remove(0);
    let question = garden.question(&session)["id"].as_str().unwrap().to_owned();
    let body = json!({ "answers": [["Herbs, north"]] });
    assert_eq!(garden.api("POST", &format!("/question/{question}/reply"), &session.folder, Some(&body)).0, 200);
    let closed = garden.closed(&ask);
    let answer = json!([{ "question_id": "q0", "values": ["Herbs, north"] }]);
    assert_eq!((&closed["state"], &closed["answer"]["answers"]), (&json!("settled"), &answer));

    let session = garden.prompt("second", json!([bed()]));
    let ask = garden.open_asks(1).remove(0);
    let question = garden.question(&session)["id"].as_str().unwrap().to_owned();
    assert_eq!(garden.api("POST", &format!("/question/{question}/reject"), &session.folder, None).0, 200);
    assert_eq!(garden.closed(&ask)["state"], "withdrawn");

    let mut many = bed();
    many["options"] = json!(["a", "b", "c", "d", "e"].map(|label| json!({ "label": label, "description": "" })));
    let session = garden.prompt("second", json!([many]));
    garden.question(&session);
    bridge.err.wait_for("why", |said| said.contains("5 options").then_some(()));
    assert!(garden.open_asks(0).is_empty());
}

#[test]
fn through_the_bridge_many_questions_are_several_asks_of_one_run_and_a_restart_asks_nothing_twice() {
    let Some(mut garden) = Garden::new() else { return };
    garden.start();
    let bridge = garden.bridge(&[]);
    let questions: Vec<_> = (0..6)
        .map(|at| {
            let mut question = bed();
            question["question"] = json!(format!("Question {at}?"));
            question
        })
        .collect();
    let session = garden.prompt("first", json!(questions));
    let asks = garden.open_asks(2);
    assert_eq!(asks[0]["ask"]["run_id"], asks[1]["ask"]["run_id"]);
    bridge.terminate();

    // While no bridge runs one part is answered; the next bridge takes both up, and puts the answers together.
    for (ask, bridged) in asks.iter().zip([false, true]) {
        let _bridge = bridged.then(|| garden.bridge(&[]));
        let first = ask["ask"]["questions"][0]["question_id"].clone();
        let answer = json!({ "question_id": first, "values": ["Beans"] });
        let (status, said) = garden.desk.server().answer(&garden.desk.person, ask, answer);
        assert_eq!(status, 201, "{said}");
        if bridged {
            garden.question_closes(&session);
        } else {
            assert_eq!(garden.question(&session)["sessionID"], session.id.as_str());
        }
    }
    let heard = garden.model.wait_for("Question 4?");
    for answered in [0, 4] {
        assert!(heard.contains(&format!(r#"Question {answered}?\"=\"Beans"#)), "{heard}");
    }
    assert!(heard.contains(r#"Question 5?\"=\"Unanswered"#), "{heard}");
    assert_eq!(garden.desk.events("question.ask").len(), 2, "never a second card");

    // A question that is gone with its server is withdrawn once another server answers there.
    let bridge = garden.bridge(&[]);
    garden.prompt("first", json!([bed()]));
    let ask = garden.open_asks(1).remove(0);
    garden.stop();
    bridge.err.wait_for("the trouble", |said| said.contains("lost").then_some(()));
    assert_eq!(garden.open_asks(1)[0]["ask_id"], ask["ask_id"], "nobody knows yet");
}

#[test]
fn the_plugin_carries_questions_and_takes_them_back_when_opencode_ends() {
    let Some(mut garden) = Garden::new() else { return };
    garden.desk.machine.text(&["hook", "opencode", "--install"]);
    garden.start();
    let session = garden.prompt("second", json!([bed()]));
    let ask = garden.open_asks(1).remove(0);
    garden.desk.answer(json!({ "question_id": "q0", "values": [], "free_text": "The roof" }));
    garden.model.wait_for("The roof");
    garden.question_closes(&session);
    until("the receipt", || garden.closed(&ask)["acknowledged_at"].is_string().then_some(()));

    garden.prompt("second", json!([bed()]));
    let ask = garden.open_asks(1).remove(0);
    garden.stop();
    assert_eq!(garden.closed(&ask)["state"], "withdrawn");
}

#[test]
fn in_the_terminal_the_dialog_closes_when_the_answer_comes_from_chips() {
    let Some(garden) = Garden::new() else { return };
    garden.desk.machine.text(&["hook", "opencode", "--install"]);
    let mut terminal = garden.terminal(json!([bed()]));
    shows(&terminal, "Ask anything");
    terminal.press("Go on.");
    shows(&terminal, "Go on.");
    terminal.press(pty::ENTER);
    shows(&terminal, "Which bed first?");
    shows(&terminal, "Type your own answer");
    garden.open_asks(1);
    garden.desk.answer(json!({ "question_id": "q0", "values": ["Beans"] }));
    garden.model.wait_for("Beans");
    shows(&terminal, "So be it.");
    terminal.wait_until("the end of the dialog", |screen| !screen.contains("Type your own answer"));
}

/// Waits until the terminal has this on it; OpenCode takes its time to start.
fn shows(terminal: &pty::Tty, text: &str) {
    until_within(opencode::PATIENCE, text, || terminal.screen().contains(text).then_some(()));
}
