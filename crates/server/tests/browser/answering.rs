//! Answering in a browser.

use chips_protocol::api::AskState;
use serde_json::json;

use crate::screen::{Screen, Special};
use crate::support::{App, plain, question, until, with_text};

fn several() -> serde_json::Value {
    json!({ "questions": [
        question("a", "Which day?", json!({})),
        question("b", "Which way?", json!({ "allow_free_text": true })),
        question("c", "What else?", json!({ "multi_select": true })),
        question("d", "Who pays?", json!({ "allow_free_text": true })),
    ] })
}

#[tokio::test]
async fn p05_one_tap_answers_and_the_question_stays_closed() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let screen = Screen::kim(&app).await;
    screen.until("document.title.startsWith('(1) ')").await;
    screen.click(".chip[value='1']").await;
    screen.read("You answered “26 September”").await;
    screen.read("Nothing waits for you").await;
    screen.until("!document.title.startsWith('(')").await;
    let ask = app.read(ask_id).await;
    assert_eq!((ask.state, ask.answerer.unwrap().name), (AskState::Answered, "Kim".into()));

    // Left and opened again it is shown closed.
    screen.open(&format!("/asks/{ask_id}")).await;
    screen.read("You answered “26 September”").await;
    assert_eq!(screen.run("return document.forms.length").await, json!(0));
    screen.open("/").await;
    screen.read("Nothing waits for you").await;
    screen.see("[data-shelf=closed] .card").await;
    assert_eq!(screen.run("return document.title").await, json!("Chips"));
    assert_eq!(screen.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn p06_two_options_tapped_at_once_are_one_answer() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let screen = Screen::kim(&app).await;
    screen.see(".chip[value='0']").await;
    screen.settle().await;
    let head = app.head();
    screen.run("document.querySelectorAll('.chip').forEach((chip) => { chip.click(); chip.click(); })").await;
    screen.read("You answered “19 September”").await;
    assert_eq!(app.head(), head + 1);
    assert_eq!(app.read(ask_id).await.late_answers.len(), 0);
}

#[tokio::test]
async fn p15_nothing_but_send_sends_and_each_text_goes_with_its_question() {
    let app = App::start().await;
    let ask_id = app.ask(several()).await;
    let screen = Screen::kim(&app).await;
    screen.write("[name=q0][value='0']", " \u{e015}\u{e013}\u{e015}").await;
    screen.until("document.querySelector('[name=q0][value=\"1\"]').checked").await;
    screen.click(".chip:has([name=q2][value='0'])").await;
    screen.click(".chip:has([name=q2][value=none])").await;
    screen.until("!document.querySelector('[name=q2][value=\"0\"]').checked").await;
    screen.click(".chip:has([name=q2][value='1'])").await;
    screen.until("!document.querySelector('[name=q2][value=none]').checked").await;
    screen.write("[name=t1]", "3 days").await;
    screen.until("document.querySelector('[name=q1][value=text]').checked").await;
    screen.write("[name=t3]", "we do").await;
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    screen.until("document.querySelector('form > .send').textContent === 'Send'").await;
    screen.click("form > .send").await;
    screen.read("You answered").await;
    assert_eq!(
        app.answers(ask_id).await,
        json!([
            { "question_id": "a", "values": ["26"] },
            { "question_id": "b", "values": [], "free_text": "3 days" },
            { "question_id": "c", "values": ["26"] },
            { "question_id": "d", "values": [], "free_text": "we do" },
        ])
    );
}

#[tokio::test]
async fn p16_the_first_of_four_asks_once_whether_to_send_only_that() {
    let app = App::start().await;
    let ask_id = app.ask(several()).await;
    let screen = Screen::kim(&app).await;
    screen.click(".chip:has([name=q0][value='1'])").await;
    screen.until("document.querySelector('form > .send').textContent === 'Send 1 of 4'").await;
    screen.click("form > .send").await;
    screen.read("3 questions are not answered.").await;
    screen.until("document.querySelector('[name=q0][value=\"1\"]').checked").await;
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    screen.settle().await;
    screen.click("form > .send").await;
    screen.read("You answered").await;
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "a", "values": ["26"] }]));
}

#[tokio::test]
async fn p14_a_text_beside_a_choice_stays_a_draft_and_the_card_says_what_is_sent() {
    let app = App::start().await;
    let ask_id = app.ask(several()).await;
    let screen = Screen::kim(&app).await;
    screen.write("[name=t1]", "by rail, or").await;
    screen.write("[name=t3]", "nobody yet").await;
    screen.driver.refresh().await.unwrap();
    screen.until("document.querySelector('[name=t1]')?.value === 'by rail, or'").await;
    screen.until("document.querySelector('[name=t3]').value === 'nobody yet'").await;
    // Chosen after the text, the option is what is meant; a reload forgets the choice, and does not turn it round.
    screen.click(".chip:has([name=q1][value='1'])").await;
    screen.driver.refresh().await.unwrap();
    screen.until("document.querySelector('[name=t1]')?.value === 'by rail, or'").await;
    assert_eq!(screen.run("return document.querySelector('[name=q1]:checked')").await, json!(null));

    screen.click(".chip:has([name=q1][value='0'])").await;
    screen.read("Your text stays here. The option you choose is sent instead.").await;
    screen.until("document.querySelector('[name=t1]').value === 'by rail, or'").await;
    for question in ["q0", "q2"] {
        screen.click(&format!(".chip:has([name={question}][value='0'])")).await;
    }
    screen.click("form > .send").await;
    screen.read("You answered").await;
    assert_eq!(app.answers(ask_id).await[1], json!({ "question_id": "b", "values": ["19"] }));
    // The text that was not sent is there to be copied; the one that was sent is not.
    screen.until("document.querySelector('.kept textarea').value === 'by rail, or'").await;
    assert_eq!(screen.run("return document.querySelectorAll('.kept textarea').length").await, json!(1));
    screen.settle().await;
    screen.run("[...document.querySelectorAll('.kept button')].at(-1).click()").await;
    screen.open(&format!("/asks/{ask_id}")).await;
    screen.read("You answered").await;
    assert_eq!(screen.run("return document.querySelector('.kept')").await, json!(null));
}

#[tokio::test]
async fn p09_enter_sends_a_text_but_never_while_a_word_is_composed() {
    let app = App::start().await;
    let ask_id = app.ask(with_text()).await;
    let screen = Screen::kim(&app).await;
    screen.write("[name=t0]", "3").await;
    let composing = "const area = document.querySelector('[name=t0]');
        const press = (more) => area.dispatchEvent(
            new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true, ...more }));
        return [press({ isComposing: true }), press({ keyCode: 229 }), press({ shiftKey: true })]";
    assert_eq!(screen.run(composing).await, json!([true, true, true]), "left to the input method and to the text");
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    screen.write("[name=t0]", " days\u{e007}").await;
    screen.read("You answered “3 days”").await;
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "when", "values": [], "free_text": "3 days" }]));
    assert_eq!(
        screen.run("return localStorage.getItem('chips-drafts')").await,
        json!("{}"),
        "what was sent is no draft"
    );
}

#[tokio::test]
async fn p10_digits_in_a_text_are_text() {
    let app = App::start().await;
    let options: Vec<_> = (1..=4).map(|n| json!({ "value": n.to_string(), "label": format!("Plan {n}") })).collect();
    let ask = json!({ "questions": [{ "question_id": "plan", "prompt": "Which?", "options": options, "allow_free_text": true }] });
    let ask_id = app.ask(ask).await;
    let screen = Screen::kim(&app).await;
    screen.write("[name=t0]", "3 days").await;
    screen.until("document.querySelector('[name=t0]').value === '3 days'").await;
    assert_eq!(screen.run("return document.querySelector('.sent, .sending, :checked')").await, json!(null));
    screen.press("\u{e007}").await;
    screen.read("You answered “3 days”").await;
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "plan", "values": [], "free_text": "3 days" }]));
}

#[tokio::test]
async fn p11_arrows_through_the_options_send_nothing() {
    let app = App::start().await;
    let ask_id = app.ask(several()).await;
    let screen = Screen::kim(&app).await;
    let head = app.head();
    screen.write("[name=q0][value='0']", " \u{e015}\u{e013}\u{e015}\u{e015}\u{e013}").await;
    screen.until("document.querySelector('[name=q0]:checked')").await;
    screen.until("document.activeElement.name === 'q0'").await;
    assert_eq!((app.read(ask_id).await.state, app.head()), (AskState::Open, head));
    // What a screen reader finds: groups with their question as the name, and real radio buttons and checkboxes.
    let shape = "return [...document.querySelectorAll('fieldset')].map((q) =>
        [q.querySelector('legend').innerText.includes('Wh'), q.querySelectorAll('input[type=radio], input[type=checkbox]').length])";
    assert_eq!(screen.run(shape).await, json!([[true, 2], [true, 3], [true, 3], [true, 3]]));
}

#[tokio::test]
async fn p12_where_several_may_be_chosen_nothing_goes_before_send() {
    let app = App::start().await;
    let ask_id = app.ask(json!({ "questions": [question("what", "What?", json!({ "multi_select": true }))] })).await;
    let screen = Screen::with_undo(&app, 2).await;
    // Not by its colour alone, which forced colours take away.
    let marked =
        "return [...document.querySelectorAll('.tick .i')].map((it) => getComputedStyle(it).visibility === 'visible')";
    screen.see(".chip").await;
    assert_eq!(screen.run(marked).await, json!([false, false, false]), "nothing looks chosen");
    screen.click(".chip:has([value='0'])").await;
    screen.until("document.querySelector('.chip:has(:checked)')").await;
    assert_eq!(screen.run(marked).await, json!([true, false, false]));
    assert_eq!(
        screen.run("return document.querySelector('.sending, .state')").await,
        json!(null),
        "nothing is on its way"
    );
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    screen.click(".chip:has([value='1'])").await;
    screen.click("form > .send").await;
    screen.read("You answered “19 September”, “26 September”").await;
    let other = app.ask(json!({ "questions": [question("what", "What?", json!({ "multi_select": true }))] })).await;
    screen.see(&format!("#{other}")).await;
    screen.settle().await;
    screen.click(&format!("#{other} .none")).await;
    screen.click(&format!("#{other} form > .send")).await;
    screen.read("You answered none of these").await;
    assert_eq!(app.answers(other).await, json!([{ "question_id": "what", "values": [] }]));
}

#[tokio::test]
async fn p13_a_text_field_left_empty_does_not_stand_in_the_way_of_an_option() {
    let app = App::start().await;
    let ask_id = app.ask(with_text()).await;
    let screen = Screen::kim(&app).await;
    screen.click("[name=t0]").await;
    screen.press("  ").await;
    screen.click(".chip[value='1']").await;
    screen.read("You answered “26 September”").await;
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "when", "values": ["26"] }]));
}

#[tokio::test]
async fn p23_with_scripts_off_everything_can_be_answered() {
    let app = App::start().await;
    let tapped = app.ask(plain()).await;
    let typed = app.ask(with_text()).await;
    let partly = app.ask(several()).await;
    let screen = Screen::special(&app, Special { no_scripts: true, ..Special::default() }).await;
    let click = async |css: &str| screen.click(css).await;
    click(&format!("#{tapped} .chip[value='0']")).await;
    screen.read("You answered “19 September”").await;

    screen.open("/").await;
    let area = screen.driver.find(thirtyfour::By::Css(format!("#{typed} textarea"))).await.unwrap();
    area.send_keys("3 days").await.unwrap();
    click(&format!("#{typed} .round")).await;
    screen.read("You answered “3 days”").await;

    // P14 without scripts: as soon as there is a text it is said what each tap sends, and who gives both is asked which it is.
    let both = app.ask(with_text()).await;
    let path = format!("/asks/{both}");
    let says = "The arrow sends your text. An option that you tap is sent instead of it.";
    screen.open(&path).await;
    let hint = screen.see(".drafted").await;
    assert_eq!(hint.text().await.unwrap(), "", "where nothing is typed nothing is said");
    screen.write("[name=t0]", "by rail, or").await;
    screen.read(says).await;
    click(".chip[value='1']").await;
    screen.read("Only one of the two can be sent, so nothing was sent yet. Which one?").await;
    assert_eq!(app.read(both).await.state, AskState::Open);
    screen.read("Send “26 September”").await;
    click(".which [value=text]").await;
    screen.read("You answered “by rail, or”").await;
    assert_eq!(app.answers(both).await, json!([{ "question_id": "when", "values": [], "free_text": "by rail, or" }]));

    screen.open(&format!("/asks/{partly}")).await;
    screen.write("[name=t1]", "by road").await;
    click(".chip:has([name=q1][value='0'])").await;
    screen.read("Your text stays here. The option you choose is sent instead.").await;
    click(".pick:has([name=q1][value=text])").await;
    screen.until("!document.querySelector('.drafted').checkVisibility()").await;
    screen.open(&format!("/asks/{partly}")).await;
    click(".chip:has([name=q0][value='1'])").await;
    click(".chip:has([name=q2][value='0'])").await;
    click("form > .send").await;
    screen.read("2 questions are not answered.").await;
    click("form > .send").await;
    until("the answer arrives", || async { (app.read(partly).await.state == AskState::Answered).then_some(()) }).await;
    assert_eq!(
        app.answers(partly).await,
        json!([{ "question_id": "a", "values": ["26"] }, { "question_id": "c", "values": ["19"] }])
    );
    screen.open("/history").await;
    screen.read("You answered “3 days”").await;
}

#[tokio::test]
async fn what_is_typed_in_one_tab_is_in_every_other_and_no_tab_writes_over_it() {
    let app = App::start().await;
    app.ask(with_text()).await;
    let screen = Screen::kim(&app).await;
    screen.see("[name=t0]").await;
    let first = screen.driver.window().await.unwrap();
    let second = screen.driver.new_tab().await.unwrap();
    screen.driver.switch_to_window(second.clone()).await.unwrap();
    screen.open("/").await;
    screen.see("[name=t0]").await;

    screen.driver.switch_to_window(first.clone()).await.unwrap();
    screen.write("[name=t0]", "Not before the stocktaking").await;
    screen.driver.switch_to_window(second).await.unwrap();
    screen.until("document.querySelector('[name=t0]').value === 'Not before the stocktaking'").await;
    screen.write("[name=t0]", ", please").await;
    screen.driver.switch_to_window(first).await.unwrap();
    screen.until("document.querySelector('[name=t0]').value === 'Not before the stocktaking, please'").await;
    screen.driver.refresh().await.unwrap();
    screen.until("document.querySelector('[name=t0]')?.value === 'Not before the stocktaking, please'").await;
}
