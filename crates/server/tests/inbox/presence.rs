//! Who looks at the inbox is not called on the phone at once.

use chips_core::notify::Channel;
use chips_server::workers::notify::webhook::new_key;
use reqwest::StatusCode;
use serde_json::json;

use crate::receiver::Receiver;
use crate::support::{App, Browser, Form, plain, until};

/// Kim hears of questions at this receiver.
async fn told_at(app: &App, receiver: &Receiver) {
    let keys = json!({ "key": new_key().unwrap() });
    app.tell(app.kim, Channel::Webhook, &receiver.url("/kim"), keys).await;
}

/// What a page in sight sends when it is touched.
async fn touch(browser: &Browser) -> StatusCode {
    let page = browser.get("/").await;
    let (_, rest) = page.body.split_once("data-token=\"").unwrap();
    let token = rest.split('"').next().unwrap();
    browser.post("/present", &[("token", token)]).await.status
}

#[tokio::test]
async fn n09_what_is_answered_within_the_grace_by_who_looks_is_not_pushed() {
    let receiver = Receiver::start().await;
    let (app, time) = App::by_hand_with(|config| config.allow_outbound = vec![receiver.origin()]).await;
    told_at(&app, &receiver).await;
    let kim = app.kim().await;
    assert_eq!(touch(&kim).await, StatusCode::NO_CONTENT);
    let answered = app.ask(plain()).await;
    time.pass_ms(29_000);
    let path = format!("/asks/{answered}");
    kim.submit(&kim.get(&path).await.form(&path), &[("q0", "0")]).await;
    // One that nobody answers is pushed when the grace is over, and not before: the first message is of this one.
    let open = app.ask(plain()).await;
    until("both are planned", async || app.store.next_notice().await.unwrap().map(drop)).await;
    assert!(receiver.received().is_empty());
    time.pass_ms(30_000);
    let said = receiver.wait_for(1).await.remove(0).json();
    assert_eq!(said["ask_id"], open.to_string());
}

#[tokio::test]
async fn n08_an_agent_a_page_in_the_background_and_a_colleague_are_nobody_who_looks() {
    let receiver = Receiver::start().await;
    let (app, _time) = App::by_hand_with(|config| config.allow_outbound = vec![receiver.origin()]).await;
    told_at(&app, &receiver).await;
    let kim = app.kim().await;
    // A page that is open in the background has its stream and asks for the list, and says nothing of a touch.
    let _stream = kim.open("/live", &[]).await;
    kim.get("/fragments/list").await;
    assert_eq!(touch(&app.signed_in(app.robin).await).await, StatusCode::NO_CONTENT);
    app.run("An agent that is at work").await;
    let ask_id = app.ask(plain()).await;
    // The clock stands still, so there is no grace that could pass.
    assert_eq!(receiver.wait_for(1).await.remove(0).json()["ask_id"], ask_id.to_string());
}

#[tokio::test]
async fn only_a_page_of_whoever_is_signed_in_says_that_they_look() {
    let app = App::start().await;
    let kim = app.kim().await;
    let page = kim.get("/").await;
    let (_, rest) = page.body.split_once("data-token=\"").unwrap();
    let token = rest.split('"').next().unwrap();
    let body = Some(format!("token={token}"));
    let foreign = kim.request(reqwest::Method::POST, "/present", &[("origin", "https://evil.example")], body).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    let robin = app.signed_in(app.robin).await;
    assert_eq!(robin.post("/present", &[("token", token)]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(app.browser().post("/present", &[("token", token)]).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(kim.post("/present", &[]).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(kim.post("/present", &[("token", token)]).await.status, StatusCode::NO_CONTENT);
    kim.submit(&Form { action: "/sign-out".into(), hidden: vec![("token".into(), token.into())] }, &[]).await;
    assert_eq!(kim.post("/present", &[("token", token)]).await.status, StatusCode::UNAUTHORIZED);
}
