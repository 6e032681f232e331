//! The inbox without a pointer.

use chips_protocol::api::AskState;
use serde_json::json;

use crate::screen::Screen;
use crate::support::{App, plain, question, with_text};

#[tokio::test]
async fn keys_go_from_card_to_card_choose_and_send() {
    let app = App::start().await;
    let first = app
        .ask(json!({ "questions": [
        question("a", "Which day?", json!({})),
        question("b", "What else?", json!({ "multi_select": true })),
    ] }))
        .await;
    let second = app.ask(plain()).await;
    let screen = Screen::kim(&app).await;
    screen.see(&format!("#{second} .chip")).await;
    screen.settle().await;
    let at = async |id: &str| screen.until(&format!("document.activeElement.id === '{id}'")).await;
    screen.press("j").await;
    at(&first.to_string()).await;
    screen.press("j").await;
    at(&second.to_string()).await;
    screen.press("\u{e013}").await;
    at(&first.to_string()).await;
    screen.press("\u{e015}k").await;
    at(&first.to_string()).await;
    // A digit chooses and sends nothing where there is more to say.
    screen.press("2").await;
    screen.until("document.querySelector('[name=q0][value=\"1\"]').checked").await;
    assert_eq!(app.read(first).await.state, AskState::Open);
    screen.run("document.querySelector('[name=q1]').focus()").await;
    screen.press("1").await;
    screen.until("document.querySelector('[name=q1][value=\"0\"]').checked").await;
    // Arrows among radio buttons stay there.
    screen.run("document.querySelector('[name=q0]:checked').focus()").await;
    screen.press("\u{e013}").await;
    screen
        .until("document.querySelector('[name=q0][value=\"0\"]').checked && document.activeElement.name === 'q0'")
        .await;
    screen.press("\u{e007}").await;
    screen.read("You answered").await;
    assert_eq!(
        app.answers(first).await,
        json!([{ "question_id": "a", "values": ["19"] }, { "question_id": "b", "values": ["19"] }])
    );
    screen.settle().await;
    screen.run(&format!("document.getElementById('{second}').focus()")).await;
    screen.press("2").await;
    screen.read("You answered “26 September”").await;
}

#[tokio::test]
async fn keys_mean_nothing_in_a_text_and_are_listed_on_demand() {
    let app = App::start().await;
    let ask_id = app.ask(with_text()).await;
    let screen = Screen::kim(&app).await;
    screen.write("[name=t0]", "j?2k").await;
    screen.until("document.querySelector('[name=t0]').value === 'j?2k'").await;
    assert_eq!(screen.run("return document.querySelector('dialog[open]')").await, json!(null));
    screen.click("main h1").await;
    screen.press("?").await;
    screen.until("document.querySelector('dialog[open]')").await;
    screen.read("undo a tap that is not sent yet").await;
    // The list is in front: nothing behind it is chosen.
    screen.press("2").await;
    screen.press("\u{e00c}").await;
    screen.until("!document.querySelector('dialog[open]')").await;
    assert_eq!(app.read(ask_id).await.state, AskState::Open);

    screen.open("/settings").await;
    screen.run("document.querySelector('#use-keys').value = 'off'").await;
    screen.click("form[action='/settings/device'] .send").await;
    screen.until("!('keys' in document.body.dataset)").await;
    screen.open("/").await;
    screen.see(".chip").await;
    screen.settle().await;
    screen.run("document.querySelector('.card').focus()").await;
    screen.press("2?").await;
    screen.until("document.activeElement.matches('.card')").await;
    assert_eq!(screen.run("return document.querySelector('.sending, dialog')").await, json!(null));
}

#[tokio::test]
async fn who_types_on_while_the_field_closes_answers_nothing_else() {
    let app = App::start().await;
    let typed = app.ask(with_text()).await;
    let other = app.ask(json!({ "questions": [question("b", "And then?", json!({}))] })).await;
    let screen = Screen::kim(&app).await;
    screen.see(&format!("#{other} .chip")).await;
    screen.settle().await;
    let field = format!("#{typed} [name=t0]");
    screen.click(&field).await;
    screen.write(&field, "3 days").await;
    app.settle(typed, json!([{ "question_id": "when", "values": ["19"] }])).await;
    // A key after the other, as somebody types who does not look up.
    let gone = format!("return !document.querySelector('{}')", field.replace('\'', ""));
    while screen.run(&gone).await != json!(true) {
        screen.press("x").await;
    }
    for key in ["j", "1", "j", "2", "\u{e007}"] {
        screen.press(key).await;
    }
    screen.settle().await;
    assert_eq!(screen.run("return document.querySelectorAll('.sending, .state').length").await, json!(0));
    assert_eq!(app.read(other).await.state, AskState::Open);
    // After a pause keys are keys again.
    screen.run("window.paused = performance.now()").await;
    screen.until("performance.now() - window.paused > 2100").await;
    screen.run(&format!("document.getElementById('{other}').focus()")).await;
    screen.press("1").await;
    screen.read("You answered").await;
    assert_eq!(app.answers(other).await[0]["values"], json!(["19"]));
}
