//! Nothing is answered by accident, and nothing that others write gets out of its place.

use chips_protocol::api::AskState;
use serde_json::json;

use crate::screen::{Screen, Special};
use crate::support::{App, plain, question, with_text};

#[tokio::test]
async fn p08_a_new_card_takes_neither_the_focus_nor_a_key() {
    let app = App::start().await;
    let first = app.ask(with_text()).await;
    let screen = Screen::kim(&app).await;
    screen.write("[name=t0]", "3 d").await;
    let second =
        app.ask(json!({ "questions": [question("a", "Which?", json!({})), question("b", "And?", json!({}))] })).await;
    screen.see(&format!("#{second} .chip")).await;
    screen.until("/^New question: 1 of 2\\sWhich\\?/.test(document.querySelector('#said').textContent)").await;
    // Keys go where they went before.
    screen.driver.active_element().await.unwrap().send_keys("ays").await.unwrap();
    screen.until(&format!("document.querySelector('#{first} textarea').value === '3 days'")).await;
    assert_eq!(screen.run("return document.activeElement.name").await, json!("t0"));
    assert_eq!(app.read(second).await.state, AskState::Open);
}

#[tokio::test]
async fn p07_a_card_that_has_just_appeared_takes_no_tap() {
    let app = App::start().await;
    let screen = Screen::kim(&app).await;
    screen.read("Nothing waits for you").await;
    // A finger that comes down at the very moment.
    screen
        .run(
            "window.tapped = 0;
            const tap = { bubbles: true, cancelable: true, detail: 1 };
            new MutationObserver((_, observer) => {
                const chip = document.querySelector('.card.open .chip');
                if (!chip) return;
                observer.disconnect();
                chip.dispatchEvent(new MouseEvent('click', tap));
                window.tapped++;
            }).observe(document.querySelector('#list'), { childList: true, subtree: true });",
        )
        .await;
    let ask_id = app.ask(plain()).await;
    screen.until("window.tapped === 1").await;
    screen.settle().await;
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    screen.click(&format!("#{ask_id} .chip[value='1']")).await;
    screen.read("You answered “26 September”").await;
}

#[tokio::test]
async fn p07_a_tap_that_began_too_early_is_none_however_late_it_ends() {
    let app = App::start().await;
    let screen = Screen::kim(&app).await;
    screen.read("Nothing waits for you").await;
    // The finger comes down with the card and is lifted half a second later; what assists sends a click without a finger.
    screen
        .run(
            "window.taps = [];
            new MutationObserver((_, observer) => {
                const chip = document.querySelector('.card.open .chip');
                if (!chip) return;
                observer.disconnect();
                const tap = { bubbles: true, cancelable: true };
                chip.click();
                chip.dispatchEvent(new PointerEvent('pointerdown', tap));
                setTimeout(() => window.taps.push(chip.dispatchEvent(new MouseEvent('click', { ...tap, detail: 1 }))), 500);
            }).observe(document.querySelector('#list'), { childList: true, subtree: true });",
        )
        .await;
    let ask_id = app.ask(plain()).await;
    screen.until("window.taps.length").await;
    assert_eq!(
        screen.run("return [window.taps, document.querySelectorAll('.sending').length]").await,
        json!([[false], 0])
    );
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    // Later a click without a finger is as good as any.
    screen.run("document.querySelector('.card.open .chip').click()").await;
    screen.read("You answered “19 September”").await;
}

#[tokio::test]
async fn p07_a_card_that_moved_takes_no_tap() {
    let app = App::start().await;
    let timed = |seconds: u32| json!({ "questions": [question("when", "?", json!({ "default_value": "19" }))], "timeout_seconds": seconds });
    let below = app.ask(timed(1000)).await;
    let screen = Screen::kim(&app).await;
    let card = format!("#{below}");
    screen.see(&format!("{card} .chip")).await;
    screen.run("document.documentElement.style.overflowAnchor = 'none'").await;
    screen
        .run(&format!(
            "window.tapped = 0;
            const chip = document.querySelector('{card} .chip'), before = chip.getBoundingClientRect().top;
            const look = () => {{
                if (chip.getBoundingClientRect().top === before) return requestAnimationFrame(look);
                chip.dispatchEvent(new MouseEvent('click', {{ bubbles: true, cancelable: true, detail: 1 }}));
                window.tapped++;
            }};
            look();"
        ))
        .await;
    // More urgent, so it comes above.
    app.ask(timed(500)).await;
    screen.until("window.tapped === 1").await;
    screen.settle().await;
    assert_eq!(app.read(below).await.state, AskState::Open);
}

#[tokio::test]
async fn p07_a_card_that_the_undo_of_another_moves_takes_no_tap() {
    let app = App::start().await;
    app.ask(plain()).await;
    app.ask(plain()).await;
    let screen = Screen::with_undo(&app, 20).await;
    screen.width(390).await;
    screen.until("document.querySelectorAll('.card.open .chip').length === 4").await;
    screen.settle().await;
    // The tap that was meant for what stood there comes as soon as the lower card has moved.
    let tap = "window.lower = document.querySelectorAll('.card.open')[1];
        document.querySelector('.card.open .chip').click();
        const chip = window.lower.querySelector('.chip');
        chip.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, detail: 1 }));
        window.done = true;";
    screen.run(tap).await;
    screen.until("window.done && document.querySelectorAll('.sending').length === 1").await;
    screen.until("!window.lower.classList.contains('sending')").await;
}

#[tokio::test]
async fn a_click_that_only_brings_the_window_to_the_front_chooses_nothing() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    // The system gives the window the focus first, then the page the same press.
    let raise = "window.raise = false; window.pressed = 0;
        addEventListener('pointerdown', () => {
            if (!window.raise) return;
            window.raise = false;
            window.pressed++;
            dispatchEvent(new Event('focus'));
        }, true);";
    let screen = Screen::special(&app, Special { before: Some(raise), ..Special::default() }).await;
    screen.see(".chip").await;
    screen.run("window.raise = true").await;
    screen.click(".chip[value='0']").await;
    screen.until("window.pressed === 1").await;
    screen.settle().await;
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    screen.click(".chip[value='0']").await;
    screen.read("You answered “19 September”").await;
}

#[tokio::test]
async fn a_page_that_has_just_been_opened_takes_no_tap() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let early = "window.tapped = 0;
        addEventListener('DOMContentLoaded', () => {
            document.querySelector('.chip')?.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, detail: 1 }));
            window.tapped++;
        });";
    let screen = Screen::special(&app, Special { before: Some(early), ..Special::default() }).await;
    screen.see(".chip").await;
    screen.until("window.tapped === 1").await;
    screen.settle().await;
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
}

#[tokio::test]
async fn nobody_is_signed_in_by_looking() {
    let app = App::start().await;
    let way_in = app.way_in(app.kim);
    let screen = Screen::start(&app, Special::default()).await;
    screen.open(&format!("/sign-in/{}", way_in.secret)).await;
    screen.read("Sign in as Kim?").await;
    screen.open("/").await;
    screen.until("location.pathname === '/sign-in'").await;
    screen.write("[name=code]", &way_in.code.to_lowercase()).await;
    screen.click("form .send").await;
    screen.read("Nothing waits for you").await;
}
