//! Where and when people are told, on a narrow screen.

use chips_core::notify::Channel;
use serde_json::json;

use crate::screen::Screen;
use crate::support::App;

#[tokio::test]
async fn what_is_set_of_messages_fits_a_narrow_screen_and_is_kept() {
    let app = App::start().await;
    let long = "https://ntfy.example.com/a-topic-with-a-name-that-is-as-long-as-ntfy-allows-it-to-be-0123";
    app.tell(app.kim, Channel::Ntfy, long, json!({})).await;
    let screen = Screen::kim(&app).await;
    screen.open("/settings").await;
    screen.width(320).await;
    screen.see("#told .devices").await;
    screen.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })").await;
    screen.fits().await;
    screen.run("document.querySelector('[name=from]').value = '22:30'").await;
    screen.run("document.querySelector('[name=to]').value = '07:00'").await;
    screen.run("document.querySelector('[value=\"goes.ntfy\"]').click()").await;
    screen.click("#when .send").await;
    screen.until("location.hash === '#when' && document.querySelector('[name=from]').value === '22:30'").await;
    screen.until("!document.querySelector('[value=\"goes.ntfy\"]').checked").await;
    screen.fits().await;
    assert_eq!(screen.complaints().await, Vec::<String>::new());
    let kept = app.store.preferences(app.kim).await.unwrap();
    assert_eq!(kept.quiet.map(|quiet| quiet.to.to_string()).as_deref(), Some("07:00"));

    // In German, and what is wrong stands beside its field.
    screen.command("Network.setUserAgentOverride", json!({ "userAgent": "x", "acceptLanguage": "de" })).await;
    screen.open("/settings").await;
    screen.read("Wo du es erfährst").await;
    screen.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })").await;
    screen.write("[name=topic]", "kim").await;
    screen.run("document.querySelector('[name=server]').value = 'https://10.0.0.1'").await;
    screen.click("[action='/settings/told/ntfy'] .send").await;
    screen.read("Dorthin sendet Chips nichts").await;
    screen.until("document.querySelector('[name=topic]').value === 'kim'").await;
    screen.fits().await;
}

#[tokio::test]
async fn what_came_of_a_form_is_in_sight_and_has_the_focus() {
    let app = App::start().await;
    app.tell(app.kim, Channel::Ntfy, "https://ntfy.invalid/topic", json!({})).await;
    let screen = Screen::kim(&app).await;
    let seen = "(() => {
        const it = document.activeElement, { top, bottom } = it.getBoundingClientRect();
        return it !== document.body && top >= 0 && bottom <= innerHeight - 60;
    })()";
    for (form, fill, of) in [
        ("webhook", "form.elements.url.value = 'https://example.com/hook'", "textarea[readonly]"),
        ("webhook", "form.elements.url.value = 'http://example.com/hook'", "[name=url]"),
        ("ntfy", "form.elements.topic.value = 'no topic'", "[name=topic]"),
        ("test", "", "[role=status]"),
    ] {
        screen.open("/settings").await;
        screen.width(390).await;
        screen
            .run(&format!(
                "const form = document.querySelector(`form[action='/settings/told/{form}']`); {fill}; form.submit()"
            ))
            .await;
        screen.until(&format!("document.activeElement.matches('{of}')")).await;
        screen.until(seen).await;
    }
}
