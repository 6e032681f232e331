//! Nothing is answered by accident, and nothing that others write gets out of its place.

use chips_protocol::api::AskState;
use serde_json::json;

use crate::screen::{Screen, Special};
use crate::support::{App, plain, question, with_text};

#[tokio::test]
async fn a_new_card_takes_neither_the_focus_nor_a_key() {
    let app = App::start().await;
    let first = app.ask(with_text()).await;
    let screen = Screen::kim(&app).await;
    screen.write("[name=t0]", "3 d").await;
    let second = app.ask(plain()).await;
    screen.see(&format!("#{second} .chip")).await;
    screen.until("document.querySelector('#said').textContent.includes('New question')").await;
    // Keys go where they went before.
    screen.driver.active_element().await.unwrap().send_keys("ays").await.unwrap();
    screen.until(&format!("document.querySelector('#{first} textarea').value === '3 days'")).await;
    assert_eq!(screen.run("return document.activeElement.name").await, json!("t0"));
    assert_eq!(app.read(second).await.state, AskState::Open);
}

#[tokio::test]
async fn a_card_that_has_just_appeared_takes_no_tap() {
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
async fn a_card_that_moved_takes_no_tap() {
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
async fn hostile_texts_run_nothing_and_ask_for_nothing() {
    let app = App::start().await;
    let prompt = "<script>window.hit = 1</script><img src=https://evil.example/x onerror='window.hit = 2'> \
                  [x](https://evil.example) javascript:window.hit=3 \u{202e}reverse";
    let ask = json!({ "questions": [question("a", prompt, json!({ "options": [
        { "value": "1", "label": "\"><svg onload=window.hit=4>", "description": "<style>*{display:none}</style>" },
        { "value": "2", "label": "مرحبا (Hello) 19" },
    ] }))] });
    let screen = Screen::kim(&app).await;
    let ask_id = app.ask(ask).await;
    screen.see(&format!("#{ask_id}")).await;
    screen.read("<script>window.hit = 1</script><img src=https://evil.example/x onerror='window.hit = 2'>").await;
    screen.read("\\u{202e}reverse").await;
    screen.open(&format!("/asks/{ask_id}")).await;
    screen.read("\"><svg onload=window.hit=4>").await;
    assert_eq!(screen.run("return window.hit ?? null").await, json!(null));
    let outside = "return performance.getEntriesByType('resource').map((entry) => entry.name)
        .filter((name) => new URL(name).origin !== location.origin)";
    assert_eq!(screen.run(outside).await, json!([]));
    assert_eq!(screen.complaints().await, Vec::<String>::new(), "nothing had to be blocked");
}

#[tokio::test]
async fn long_texts_fit_a_narrow_phone() {
    let app = App::start().await;
    let long = |length: usize| "word ".repeat(length / 5);
    let ask = json!({ "questions": [question("a", &long(4000), json!({ "allow_free_text": true, "options": [
        { "value": "1", "label": format!("{}1", "x".repeat(299)), "description": long(2000) },
        { "value": "2", "label": format!("{}2", "x".repeat(299)), "description": "y".repeat(2000) },
    ] }))] });
    let ask_id = app.ask(ask).await;
    let screen = Screen::kim(&app).await;
    let narrow = json!({ "width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": true });
    screen.driver.cdp().send_raw("Emulation.setDeviceMetricsOverride", narrow).await.unwrap();
    for path in ["/".to_owned(), format!("/asks/{ask_id}")] {
        screen.open(&path).await;
        screen.see(".card .chip").await;
        let wider = screen.run("return document.documentElement.scrollWidth - innerWidth").await;
        assert!(wider.as_i64().unwrap() <= 0, "{path} scrolls sideways by {wider}");
        let small = "return [...document.querySelectorAll('button, a, input:not([type=hidden]), textarea')]
            .map((it) => [it, it.getBoundingClientRect()]).filter(([, box]) => box.width && box.height)
            .filter(([it, box]) => it.className !== 'skip' && (box.height < 44 || box.width < 44)).map(([it]) => it.outerHTML)";
        assert_eq!(screen.run(small).await, json!([]), "{path}: everything to tap is large enough");
    }
    // Folded in the list, whole after a tap.
    screen.open("/").await;
    screen.click(".all").await;
    screen.until("!document.querySelector('.folded')").await;
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
