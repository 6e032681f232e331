//! A page says that it is looked at, and only then.

use serde_json::json;

use crate::screen::{Screen, Special};
use crate::support::App;

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
