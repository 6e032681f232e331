//! A page says that it is looked at, and only then.

use serde_json::json;

use crate::screen::{Screen, Special};
use crate::support::{App, plain, until};

/// Counts what a page says of itself, and lets it be hidden.
const WATCHED: &str = "
    window.said = 0;
    const send = navigator.sendBeacon.bind(navigator);
    navigator.sendBeacon = (url, body) => { said += 1; return window.sent = send(url, body); };
    Object.defineProperty(document, 'hidden', { get: () => Boolean(window.away) });
";

#[tokio::test]
async fn a_page_that_is_touched_says_so_at_most_every_half_minute_and_a_hidden_one_never() {
    let app = App::start().await;
    let screen = Screen::special(&app, Special { before: Some(WATCHED), ..Special::default() }).await;
    screen.open("/").await;
    screen.see("#list").await;
    let said = "return window.said";
    assert_eq!(screen.run(said).await, json!(0), "to be open is not to be looked at");
    screen.run("window.away = true; dispatchEvent(new Event('keydown'))").await;
    assert_eq!(screen.run(said).await, json!(0));
    screen
        .run("window.away = false; dispatchEvent(new Event('pointerdown')); dispatchEvent(new Event('keydown'))")
        .await;
    assert_eq!(screen.run(said).await, json!(1));
    screen.until("window.sent").await;
    let status =
        "performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/present'))?.responseStatus";
    screen.until(&format!("{status} === 204")).await;
}

#[tokio::test]
async fn a_question_is_seen_once_a_visible_page_shows_it() {
    let app = App::start().await;
    let screen = Screen::special(
        &app,
        Special {
            before: Some("Object.defineProperty(document, 'hidden', { get: () => !window.near, configurable: true });"),
            ..Special::default()
        },
    )
    .await;
    let mut asks = Vec::new();
    for _ in 0..8 {
        asks.push(app.ask(plain()).await);
    }
    let viewer = app.identity(app.kim);
    let seen = async |ask| app.store.seen(&viewer, ask).await.unwrap().unwrap();
    screen.open("/").await;
    screen.see(".card.open").await;
    screen.run("window.since = performance.now()").await;
    screen.until("performance.now() - since > 2500").await;
    for ask in &asks {
        assert_eq!(seen(*ask).await, [], "a page in the background shows nothing to anybody");
    }
    screen.run("window.near = true").await;
    let first = until("the first one is seen", async || seen(asks[0]).await.pop()).await;
    assert_eq!(first.by.name, "Kim");
    assert_eq!(seen(asks[7]).await, [], "it lies further down");
    screen.run(&format!("document.getElementById('{}').scrollIntoView()", asks[7])).await;
    until("the last one is seen", async || seen(asks[7]).await.pop()).await;
    screen.open(&format!("/asks/{}", asks[0])).await;
    screen.read("You saw it").await;
    assert_eq!(screen.complaints().await, Vec::<String>::new());
}
