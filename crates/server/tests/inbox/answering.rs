//! Answering, with JavaScript off: every kind of question, once, and nothing that was typed is lost.

use chips_protocol::AskId;
use chips_protocol::api::AskState;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{App, Browser, Form, Page, encode, plain, question, with_text};

/// Opens the question's page and takes its form.
async fn form(browser: &Browser, ask_id: AskId) -> Form {
    let path = format!("/asks/{ask_id}");
    browser.get(&path).await.form(&path)
}

/// Answers and holds that it was taken.
async fn answer(app: &App, browser: &Browser, ask: Value, fields: &[(&str, &str)]) -> Value {
    let ask_id = app.ask(ask).await;
    let done = browser.submit(&form(browser, ask_id).await, fields).await;
    assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, format!("/asks/{ask_id}")), "{}", done.text());
    let page = browser.get(&done.location()).await;
    page.says("You answered");
    let ask = app.read(ask_id).await;
    assert_eq!(ask.state, AskState::Answered);
    assert_eq!(ask.answerer.unwrap().name, "Kim");
    json!(ask.answer.unwrap().as_answered().unwrap().answers)
}

fn several() -> Value {
    json!({ "questions": [
        question("a", "Which day?", json!({})),
        question("b", "Which way?", json!({ "allow_free_text": true })),
        question("c", "What else?", json!({ "multi_select": true, "allow_free_text": true })),
        question("d", "Who pays?", json!({ "allow_free_text": true })),
    ] })
}

#[tokio::test]
async fn one_choice_is_one_tap() {
    let app = App::start().await;
    let kim = app.kim().await;
    let page = {
        let ask_id = app.ask(plain()).await;
        kim.get(&format!("/asks/{ask_id}")).await
    };
    assert!(page.body.contains("<button class=\"chip\" name=\"q0\" value=\"0\">"), "an option is a button by itself");
    let answers = answer(&app, &kim, plain(), &[("q0", "1")]).await;
    assert_eq!(answers, json!([{ "question_id": "when", "values": ["26"] }]));
}

#[tokio::test]
async fn free_text_is_sent_as_text_even_where_it_begins_like_an_option() {
    let app = App::start().await;
    let kim = app.kim().await;
    let answers =
        answer(&app, &kim, with_text(), &[("q0", "text"), ("t0", "19 days\r\nor 3 \u{1f468}\u{200d}\u{1f469}")]).await;
    assert_eq!(
        answers,
        json!([{ "question_id": "when", "values": [], "free_text": "19 days\nor 3 \u{1f468}\u{200d}\u{1f469}" }])
    );
}

#[tokio::test]
async fn free_text_opened_and_left_empty_sends_the_option() {
    let app = App::start().await;
    let kim = app.kim().await;
    let answers = answer(&app, &kim, with_text(), &[("q0", "0"), ("t0", "")]).await;
    assert_eq!(answers, json!([{ "question_id": "when", "values": ["19"] }]));
}

#[tokio::test]
async fn several_may_be_chosen_or_none_of_these() {
    let app = App::start().await;
    let kim = app.kim().await;
    let multi = || json!({ "questions": [question("what", "What?", json!({ "multi_select": true, "allow_free_text": true }))] });
    let answers = answer(&app, &kim, multi(), &[("q0", "1"), ("q0", "0"), ("t0", "and a bow")]).await;
    assert_eq!(answers, json!([{ "question_id": "what", "values": ["19", "26"], "free_text": "and a bow" }]));
    let answers = answer(&app, &kim, multi(), &[("q0", "none"), ("t0", "")]).await;
    assert_eq!(answers, json!([{ "question_id": "what", "values": [] }]));
}

#[tokio::test]
async fn each_text_stays_with_its_own_question() {
    let app = App::start().await;
    let kim = app.kim().await;
    let fields =
        [("q0", "0"), ("q1", "text"), ("t1", "by rail"), ("q2", "none"), ("t2", ""), ("q3", "text"), ("t3", "we do")];
    let answers = answer(&app, &kim, several(), &fields).await;
    assert_eq!(
        answers,
        json!([
            { "question_id": "a", "values": ["19"] },
            { "question_id": "b", "values": [], "free_text": "by rail" },
            { "question_id": "c", "values": [] },
            { "question_id": "d", "values": [], "free_text": "we do" },
        ])
    );
}

#[tokio::test]
async fn the_first_of_four_asks_once_whether_to_send_only_that() {
    let app = App::start().await;
    let kim = app.kim().await;
    let ask_id = app.ask(several()).await;
    let path = format!("/asks/{ask_id}");
    let first = form(&kim, ask_id).await;
    let asked = kim.submit(&first, &[("q0", "1"), ("t1", ""), ("t2", ""), ("t3", "")]).await;
    assert_eq!(asked.status, StatusCode::OK);
    asked.says("3 questions are not answered.");
    assert!(asked.body.contains("value=\"1\" checked"), "the choice is still there");
    assert!(asked.body.contains("name=\"partial\" value=\"yes\""));
    assert_eq!(app.read(ask_id).await.state, AskState::Open, "nothing is sent before the person says so");

    let again = asked.form(&path);
    assert_eq!(again.hidden("event"), first.hidden("event"), "it is the same attempt");
    let done = kim.submit(&again, &[("q0", "1"), ("t1", ""), ("t2", ""), ("t3", ""), ("partial", "yes")]).await;
    assert_eq!(done.location(), path);
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "a", "values": ["26"] }]));
    kim.get(&path).await.says("not answered");
}

#[tokio::test]
async fn nothing_chosen_explains_itself_and_loses_nothing() {
    let app = App::start().await;
    let kim = app.kim().await;
    let ask_id = app.ask(several()).await;
    let path = format!("/asks/{ask_id}");
    for fields in
        [&[][..], &[("t1", " \r\n"), ("t2", "\u{200b}")], &[("q1", "text"), ("t1", "")], &[("partial", "yes")]]
    {
        let page = kim.submit(&form(&kim, ask_id).await, fields).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{fields:?}");
        page.says("Nothing was answered yet.");
    }
    let contradiction = [("q2", "none"), ("q2", "0"), ("t3", "we do"), ("q3", "text")];
    let page = kim.submit(&form(&kim, ask_id).await, &contradiction).await;
    page.says("You chose “None of these” and something else as well.");
    page.says("we do");
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    page.form(&path);
}

#[tokio::test]
async fn p14_an_option_and_a_text_where_one_is_taken_ask_which_and_lose_neither() {
    let app = App::start().await;
    let kim = app.kim().await;
    let ask_id = app.ask(with_text()).await;
    let path = format!("/asks/{ask_id}");
    let both = [("q0", "1"), ("t0", "or by rail")];
    let page = kim.submit(&form(&kim, ask_id).await, &both).await;
    assert_eq!(page.status, StatusCode::OK);
    for words in ["so nothing was sent yet. Which one?", "or by rail", "Send “26 September”", "Send my text"] {
        page.says(words);
    }
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    let done = kim.submit(&page.form(&path), &both).await;
    done.says("You answered “26 September”");
    done.says("You chose an option, so this text was not sent: or by rail");
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "when", "values": ["26"] }]));

    // Of several questions too, and what was said of one of them is not asked for again beside the next question.
    let ask_id = app.ask(several()).await;
    let path = format!("/asks/{ask_id}");
    let both = [("q0", "0"), ("q1", "0"), ("t1", "or by rail")];
    let which = kim.submit(&form(&kim, ask_id).await, &both).await;
    which.says(
        "You chose an option and typed a text beside it. Only one of the two can be sent, so nothing was sent yet.",
    );
    let partial = kim.submit(&which.form(&path), &both).await;
    partial.says("2 questions are not answered.");
    partial.says("or by rail");
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    let done = kim.submit(&partial.form(&path), &[&both[..], &[("partial", "yes")]].concat()).await;
    done.says("You chose an option, so this text was not sent: or by rail");
    assert_eq!(
        app.answers(ask_id).await,
        json!([{ "question_id": "a", "values": ["19"] }, { "question_id": "b", "values": ["19"] }])
    );
}

#[tokio::test]
async fn a_text_that_is_too_long_or_holds_controls_is_shown_again() {
    let app = App::start().await;
    let kim = app.kim().await;
    let ask_id = app.ask(with_text()).await;
    let long = "ä".repeat(10_001);
    let page = kim.submit(&form(&kim, ask_id).await, &[("q0", "text"), ("t0", &long)]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("10,000 characters at most");
    assert!(page.body.contains(&long));
    let page = kim.submit(&form(&kim, ask_id).await, &[("q0", "text"), ("t0", "bell \u{7}")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("control characters");
    let longest = "\u{1f600}".repeat(10_000);
    let done = kim.submit(&form(&kim, ask_id).await, &[("q0", "text"), ("t0", &longest)]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    assert_eq!(app.answers(ask_id).await[0]["free_text"], json!(longest));
}

#[tokio::test]
async fn a_form_that_was_changed_is_refused_and_changes_nothing() {
    let app = App::start().await;
    let kim = app.kim().await;
    let ask_id = app.ask(with_text()).await;
    let made = form(&kim, ask_id).await;
    for fields in [
        &[("q0", "2")][..],
        &[("q0", "19")],
        &[("q0", "0"), ("q0", "1")],
        &[("q0", "0"), ("q0", "0")],
        &[("q0", "none")],
        &[("q0", "0"), ("answered_by", "usr_01K4ZQPX000000000000000003")],
        &[("q0", "0"), ("timed_out", "true")],
        &[("q0", "0"), ("q1", "0")],
        &[("q0", "0"), ("t0", ""), ("t0", "")],
        &[("q0", "0"), ("event", "evt_01K4ZQPX000000000000000077")],
        &[("q0", "0"), ("token", "x")],
        &[("q0", "0"), ("", "")],
    ] {
        let page = kim.submit(&made, fields).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{fields:?}");
        page.says("Nothing was changed.");
    }
    for (name, value) in [("event", "evt_x"), ("event", ""), ("key", ""), ("key", "\u{0}"), ("key", &*"k".repeat(256))]
    {
        let page = kim.submit(&made.clone().with(name, value), &[("q0", "0")]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{name}={value:?}");
    }
    let ask = app.read(ask_id).await;
    assert_eq!((ask.state, ask.late_answers.len()), (AskState::Open, 0));
}

#[tokio::test]
async fn a_form_sent_twice_answers_once() {
    let app = App::start().await;
    let kim = app.kim().await;
    let ask_id = app.ask(plain()).await;
    let form = form(&kim, ask_id).await;
    let head = app.head();
    // Two different options, at the same time and again: one answer, whichever came first.
    let (one, other) = tokio::join!(kim.submit(&form, &[("q0", "0")]), kim.submit(&form, &[("q0", "1")]));
    let again = kim.submit(&form, &[("q0", "1")]).await;
    for page in [&one, &other, &again] {
        assert_eq!((page.status, page.location()), (StatusCode::SEE_OTHER, format!("/asks/{ask_id}")));
    }
    assert_eq!(app.head(), head + 1);
    assert_eq!(app.read(ask_id).await.late_answers.len(), 0);
}

#[tokio::test]
async fn a_form_with_the_ids_of_another_answer_is_told_that_it_was_not_taken() {
    let app = App::start().await;
    let kim = app.kim().await;
    let (first, second) = (app.ask(plain()).await, app.ask(plain()).await);
    let answered = form(&kim, first).await;
    kim.submit(&answered, &[("q0", "0")]).await;
    for name in ["key", "event"] {
        let mixed = form(&kim, second).await.with(name, answered.hidden(name));
        let page = kim.submit(&mixed, &[("q0", "1")]).await;
        assert_eq!(page.status, StatusCode::CONFLICT, "{name}");
        // The form that comes back has ids of its own, so the question can be answered from it.
        assert_ne!(page.form(&format!("/asks/{second}")).hidden(name), answered.hidden(name));
    }
    assert_eq!(app.read(second).await.state, AskState::Open);
}

#[tokio::test]
async fn a_form_sent_again_with_other_words_keeps_them() {
    let app = App::start().await;
    let kim = app.kim().await;
    let ask_id = app.ask(with_text()).await;
    let form = form(&kim, ask_id).await;
    kim.submit(&form, &[("q0", "0")]).await;
    let page = kim.submit(&form, &[("q0", "text"), ("t0", "Neither of them")]).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    page.says("Neither of them");
}

#[tokio::test]
async fn an_answer_that_comes_too_late_says_what_was_taken_and_keeps_what_was_typed() {
    let (app, time) = App::by_hand().await;
    let kim = app.kim().await;
    let with_default = json!({ "allow_free_text": true, "default_value": "19" });
    let ask = json!({ "questions": [question("when", "Which day?", with_default)], "timeout_seconds": 60 });
    let ask_id = app.ask(ask).await;
    let form = form(&kim, ask_id).await;
    time.pass_ms(61_000);
    let typed = "Neither: they close on both days.\r\nAsk for the 20th.";
    let page = kim.submit(&form, &[("q0", "text"), ("t0", typed)]).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    page.says("Too late: this was closed before your answer came.");
    page.says("Not answered in time. The default, “19 September”, was taken.");
    page.says("What you sent, to be copied: Neither: they close on both days. Ask for the 20th.");
    assert!(page.body.contains("<textarea readonly"), "{}", page.body);
    assert!(page.forms().is_empty(), "there is nothing more to send");
    assert!(!page.text().contains("You answered"));

    let story = kim.get(&format!("/asks/{ask_id}")).await;
    story.says("It decided nothing; it is kept here.");
    assert_eq!(app.read(ask_id).await.late_answers.len(), 1);
}

#[tokio::test]
async fn a_question_that_somebody_else_answered_names_who_and_what() {
    let app = App::start().await;
    let (kim, robin) = (app.kim().await, app.signed_in(app.robin).await);
    let ask_id = app.ask(with_text()).await;
    let (kims, robins) = (form(&kim, ask_id).await, form(&robin, ask_id).await);
    robin.submit(&robins, &[("q0", "1"), ("t0", "")]).await;
    let page = kim.submit(&kims, &[("q0", "0"), ("t0", "half a thought")]).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    page.says("Robin answered “26 September”");
    page.says("half a thought");
    // What is not clear yet meets the same end, and loses nothing either.
    let page = kim.submit(&kims, &[("q0", "text"), ("t0", "")]).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    page.says("Robin answered “26 September”");
}

#[tokio::test]
async fn an_answer_after_the_session_ended_is_not_lost() {
    let app = App::start().await;
    let kim = app.kim().await;
    let ask_id = app.ask(with_text()).await;
    let form = form(&kim, ask_id).await;
    let leave = kim.get("/settings").await.form("/sign-out");
    kim.submit(&leave, &[]).await;
    let page = kim.submit(&form, &[("q0", "text"), ("t0", "on the 20th")]).await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    page.says("You are signed out");
    page.says("on the 20th");
    assert!(page.body.contains(&format!("/sign-in?next=/asks/{ask_id}")));
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
}

#[tokio::test]
async fn the_script_gets_the_card_alone() {
    let app = App::start().await;
    let kim = app.kim().await;
    let send = async |ask_id: AskId, fields: &[(&str, &str)]| -> Page {
        let form = form(&kim, ask_id).await;
        let mut all: Vec<(&str, &str)> = form.hidden.iter().map(|(name, value)| (&**name, &**value)).collect();
        all.extend(fields);
        let own = format!("http://{}", app.address);
        let headers = [("origin", own.as_str()), ("x-chips-piece", "list")];
        kim.request(Method::POST, &form.action, &headers, Some(encode(&all))).await
    };
    let ask_id = app.ask(plain()).await;
    let done = send(ask_id, &[("q0", "0")]).await;
    assert_eq!(done.status, StatusCode::OK);
    assert!(done.body.trim_start().starts_with("<article class=\"card answered"), "{}", done.body);
    assert!(done.body.contains(&format!("data-seq=\"{}\"", app.head())));
    let ask_id = app.ask(several()).await;
    let asked = send(ask_id, &[]).await;
    assert_eq!(asked.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(asked.body.trim_start().starts_with("<article class=\"card open"), "{}", asked.body);
}
