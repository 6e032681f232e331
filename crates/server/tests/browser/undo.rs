//! A tap can be taken back before it is sent, and is never lost.

use chips_protocol::api::AskState;
use serde_json::json;

use crate::screen::{Screen, Special};
use crate::support::{App, plain, question, with_text};

#[tokio::test]
async fn a_tap_is_taken_back_by_its_button_or_by_escape() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let screen = Screen::with_undo(&app, 20).await;
    let head = app.head();
    screen.click(".chip[value='0']").await;
    screen
        .until("/^Sending “.19 September.” in \\d+ s$/.test(document.querySelector('.state span span').textContent)")
        .await;
    screen.until("document.querySelector('#said').textContent.includes('Sending “19 September”')").await;
    screen.settle().await;
    screen.click(".state button").await;
    screen.until("!document.querySelector('.state, .sending, .sent')").await;

    // By keyboard: the button that undoes it is next, and Escape does the same.
    screen.run("document.querySelector('.chip[value=\"1\"]').focus()").await;
    screen.press("\u{e007}").await;
    screen.until("document.activeElement.textContent === 'Undo'").await;
    screen.press("\u{e00c}").await;
    screen.until("!document.querySelector('.state, .sending') && document.activeElement.value === '1'").await;
    screen.until("document.querySelector('#said').textContent === 'Not sent: 26 September'").await;
    assert_eq!((app.read(ask_id).await.state, app.head()), (AskState::Open, head));
    assert_eq!(screen.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn p06_two_different_options_are_one_answer_or_none() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let screen = Screen::with_undo(&app, 2).await;
    screen.see(".chip").await;
    screen.settle().await;
    let head = app.head();
    let taps = "const [one, other] = document.querySelectorAll('.chip');
        one.click(); one.click();
        setTimeout(() => { other.click(); one.click(); window.done = true; }, 300)";
    screen.run(taps).await;
    screen.until("window.done").await;
    screen.read("You answered “19 September”").await;
    assert_eq!((app.head(), app.read(ask_id).await.late_answers.len()), (head + 1, 0));
}

#[tokio::test]
async fn a_page_that_is_left_or_hidden_sends_what_was_tapped() {
    let app = App::start().await;
    let screen = Screen::with_undo(&app, 20).await;
    let first = app.ask(plain()).await;
    screen.see(&format!("#{first} .chip")).await;
    screen.settle().await;
    screen.click(&format!("#{first} .chip[value='0']")).await;
    screen.see(".state button").await;
    screen.open("/history").await;
    assert_eq!(app.closed(first).await.state, AskState::Answered, "going to another page");

    screen.open("/").await;
    let second = app.ask(plain()).await;
    screen.see(&format!("#{second} .chip")).await;
    screen.settle().await;
    screen.click(&format!("#{second} .chip[value='0']")).await;
    screen.see(".state button").await;
    let hide = "Object.defineProperty(document, 'hidden', { value: true });
        document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
        return document.querySelectorAll('.state button').length";
    assert_eq!(screen.run(hide).await, json!(0), "it goes at once, not when the time to undo is over");
    assert_eq!(app.closed(second).await.state, AskState::Answered, "putting the phone away");

    screen.open("/").await;
    let third = app.ask(plain()).await;
    screen.see(&format!("#{third} .chip")).await;
    screen.settle().await;
    let keep = screen.driver.new_tab().await.unwrap();
    screen.click(&format!("#{third} .chip[value='0']")).await;
    screen.see(".state button").await;
    screen.driver.close_window().await.unwrap();
    assert_eq!(app.closed(third).await.state, AskState::Answered, "closing it");
    screen.driver.switch_to_window(keep).await.unwrap();
}

#[tokio::test]
async fn near_a_deadline_there_is_less_time_to_undo_or_none() {
    let (app, _time) = App::by_hand().await;
    let ask = |seconds: u32| json!({ "questions": [question("when", "Which day?", json!({ "default_value": "26" }))], "timeout_seconds": seconds });
    let screen = Screen::with_undo(&app, 20).await;
    let short = app.ask(ask(9)).await;
    screen.see(&format!("#{short} .chip")).await;
    screen.settle().await;
    // Chips' clock stands still, the page's goes on from it: it has less than these nine seconds.
    screen.run(&format!("document.querySelector('#{short} .chip').click()")).await;
    assert_eq!(screen.run("return document.querySelector('.state button')").await, json!(null));
    screen.read("You answered “19 September”").await;

    let longer = app.ask(ask(100)).await;
    screen.see(&format!("#{longer} .chip")).await;
    // As if it were a later moment: fifteen seconds before the deadline, by what the page itself says of the time left.
    screen.until(&format!("document.querySelector('#{longer} progress')?.value > 0")).await;
    screen.settle().await;
    let later = format!(
        "const card = document.getElementById('{longer}'), {{ max, value }} = card.querySelector('progress');
        card.dataset.deadline -= max - value - 15000; card.querySelector('.chip').click();
        return Number(/in (\\d+) s/.exec(card.querySelector('.state').textContent)[1])"
    );
    let seconds = screen.run(&later).await.as_i64().unwrap();
    assert!((1..=13).contains(&seconds), "two seconds before the deadline at the latest, but it says {seconds}");
}

#[tokio::test]
async fn who_was_faster_than_the_undo_is_named_and_the_tap_is_kept() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let screen = Screen::with_undo(&app, 20).await;
    screen.click(".chip[value='0']").await;
    screen.see(".state button").await;
    let robin = app.signed_in(app.robin).await;
    let path = format!("/asks/{ask_id}");
    robin.submit(&robin.get(&path).await.form(&path), &[("q0", "1")]).await;
    screen.read("Robin answered “26 September”").await;
    screen.read("Your “19 September” came").await;
    assert_eq!(app.read(ask_id).await.late_answers.len(), 1);
}

#[tokio::test]
async fn p14_a_tap_beside_a_typed_text_says_which_is_sent_and_keeps_the_text() {
    let app = App::start().await;
    let ask_id = app.ask(with_text()).await;
    let screen = Screen::with_undo(&app, 20).await;
    screen.write("[name=t0]", "by rail, or").await;
    screen.click(".chip[value='0']").await;
    screen.read("Sending “19 September” in").await;
    screen.settle().await;
    screen.click(".state button").await;
    screen.until("document.querySelector('[name=t0]').value === 'by rail, or'").await;
    screen.settle().await;
    screen.click(".chip[value='1']").await;
    screen.read("Sending “26 September” in").await;
    screen.run("dispatchEvent(new Event('pagehide'))").await;
    screen.read("You answered “26 September”").await;
    screen.until("document.querySelector('.kept textarea').value === 'by rail, or'").await;
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "when", "values": ["26"] }]));
}

#[tokio::test]
async fn p17_a_tap_without_a_connection_is_not_sent_yet_also_after_the_undo() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let cut = "const real = window.fetch; window.cut = true;
        window.fetch = (url, options) =>
            window.cut && options?.method === 'POST' ? Promise.reject(new TypeError('cut')) : real(url, options);";
    let screen = Screen::special(&app, Special { before: Some(cut), undo: 2, ..Special::default() }).await;
    let head = app.head();
    screen.click(".chip[value='0']").await;
    screen.read("Sending “19 September” in").await;
    screen.read("Not sent yet.").await;
    screen.run("window.cut = false; dispatchEvent(new Event('online'))").await;
    screen.read("You answered “19 September”").await;
    assert_eq!((app.head(), app.read(ask_id).await.state), (head + 1, AskState::Answered));
}

#[tokio::test]
async fn the_time_to_undo_is_a_setting() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let screen = Screen::with_undo(&app, 4).await;
    screen.open("/settings").await;
    screen.run("document.querySelector('#undo').value = '0'").await;
    screen.click("form[action='/settings/device'] .send").await;
    screen.until("document.body.dataset.undo === '0' && document.querySelector('#undo').value === '0'").await;
    screen.open(&format!("/asks/{ask_id}")).await;
    screen.click(".chip[value='1']").await;
    screen.read("You answered “26 September”").await;
}

#[tokio::test]
async fn while_a_tap_can_be_undone_the_other_options_show_that_they_cannot_be_chosen() {
    let app = App::start().await;
    let ask_id = app.ask(with_text()).await;
    let screen = Screen::with_undo(&app, 20).await;
    screen.click(".chip[value='0']").await;
    screen.see(".state button").await;
    screen
        .until("[...document.querySelectorAll('form button, form textarea')].every((it) => it.ariaDisabled === 'true')")
        .await;
    let looks = "const [one, other] = document.querySelectorAll('.chip');
        return [getComputedStyle(one).opacity, getComputedStyle(other).opacity < 1, one.matches('.sent'), other.matches('.sent')]";
    screen.until("getComputedStyle(document.querySelectorAll('.chip')[1]).opacity < 1").await;
    assert_eq!(screen.run(looks).await, json!(["1", true, true, false]));
    // A tap there points at what is under way.
    screen.settle().await;
    screen
        .run("document.querySelector('.box').dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 }))")
        .await;
    screen.until("document.querySelector('.state').getAnimations().length").await;
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    screen.click(".state button").await;
    screen.until("!document.querySelector('.sending, .sent, [aria-disabled]')").await;
}

#[tokio::test]
async fn a_tap_that_waits_when_its_person_answers_elsewhere_is_not_sent_and_says_so() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let screen = Screen::with_undo(&app, 20).await;
    screen.click(".chip[value='0']").await;
    screen.see(".state button").await;
    let phone = app.kim().await;
    let path = format!("/asks/{ask_id}");
    phone.submit(&phone.get(&path).await.form(&path), &[("q0", "1")]).await;
    screen.read("“19 September” was still waiting to be undone and was not sent: you had answered elsewhere.").await;
    screen.read("You answered “26 September”").await;
    assert!(!screen.run("return document.body.innerText").await.as_str().unwrap().contains("Too late"));
    assert_eq!(app.read(ask_id).await.late_answers.len(), 0);
}
