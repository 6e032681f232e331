//! Who looks at the inbox is not called on the phone at once.

use chips_core::notify::Channel;
use chips_server::channels::webhook::new_key;
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
async fn a_page_whose_session_was_ended_is_nobody_who_looks() {
    let receiver = Receiver::start().await;
    let (app, _time) = App::by_hand_with(|config| config.allow_outbound = vec![receiver.origin()]).await;
    told_at(&app, &receiver).await;
    // Signed out there, and ended from another browser. The clock stands still, so there is no grace that could pass.
    for (nth, action) in [(1, "/sign-out"), (2, "/settings/sessions/end-others")] {
        let (here, there) = (app.kim().await, app.kim().await);
        assert_eq!(touch(&here).await, StatusCode::NO_CONTENT);
        let ends = if nth == 1 { &here } else { &there };
        ends.submit(&ends.get("/settings").await.form(action), &[]).await;
        let asked = app.ask(plain()).await;
        assert_eq!(receiver.wait_for(nth).await.remove(nth - 1).json()["ask_id"], asked.to_string(), "{action}");
    }
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

/// The token that a page's script sends along.
async fn token(browser: &Browser) -> String {
    let page = browser.get("/").await;
    let (_, rest) = page.body.split_once("data-token=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_story_says_who_saw_it_each_once_and_in_their_order() {
    let (app, time) = App::by_hand().await;
    let ask_id = app.ask(plain()).await;
    let (kim, robin) = (app.kim().await, app.signed_in(app.robin).await);
    let path = format!("/asks/{ask_id}");
    // Loading a page, its list and its stream is not seeing it.
    kim.get(&path).await;
    kim.get("/fragments/list").await;
    let _stream = kim.open("/live", &[]).await;
    assert!(!kim.get(&path).await.text().contains("saw it"));

    let id = ask_id.to_string();
    for (browser, wait) in [(&robin, 1_000), (&kim, 60_000), (&robin, 0)] {
        let token = token(browser).await;
        assert_eq!(browser.post("/seen", &[("token", &token), ("ask", &id)]).await.status, StatusCode::NO_CONTENT);
        time.pass_ms(wait);
    }
    let seen = until("both have seen it", async || {
        let seen = app.store.seen(&app.identity(app.kim), ask_id).await.unwrap().unwrap();
        (seen.len() == 2).then_some(seen)
    })
    .await;
    assert_eq!(seen.iter().map(|seen| seen.by.name.as_str()).collect::<Vec<_>>(), ["Robin", "Kim"]);
    assert_eq!(seen[1].at.ms() - seen[0].at.ms(), 1_000, "the first time stands");
    let story = kim.get(&path).await.text();
    let places = ["Purchasing asked", "Robin saw it", "You saw it"].map(|words| story.find(words).expect(words));
    assert!(places.is_sorted(), "{story}");
    assert_eq!(story.matches("Robin saw it").count(), 1);
    robin.get(&path).await.says("Kim saw it");
}

#[tokio::test]
async fn only_an_open_question_that_one_may_see_is_seen() {
    let app = App::start().await;
    let kim = app.kim().await;
    let token = token(&kim).await;
    let closed = app.ask(plain()).await;
    app.settle(closed, json!([])).await;
    let open = app.ask(plain()).await;
    let (closed, open) = (closed.to_string(), open.to_string());
    let robin = app.signed_in(app.robin).await;
    assert_eq!(robin.post("/seen", &[("token", &token), ("ask", &open)]).await.status, StatusCode::FORBIDDEN);
    // Neither does another site's page say so, whatever it knows, nor one without the session's token.
    for origin in ["https://evil.example", "null"] {
        let body = Some(format!("token={token}&ask={open}"));
        let foreign = kim.request(reqwest::Method::POST, "/seen", &[("origin", origin)], body).await;
        assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{origin}");
    }
    assert_eq!(kim.post("/seen", &[("token", "forged"), ("ask", &open)]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(kim.post("/seen", &[("ask", &open)]).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        app.browser().post("/seen", &[("token", &token), ("ask", &open)]).await.status,
        StatusCode::UNAUTHORIZED
    );
    for bad in [&[("ask", "x")][..], &[("q", "1")]] {
        let fields = [&[("token", token.as_str())], bad].concat();
        assert_eq!(kim.post("/seen", &fields).await.status, StatusCode::UNPROCESSABLE_ENTITY, "{bad:?}");
    }
    let unknown = "qst_01K4ZQPX000000000000000009";
    let fields = [("token", token.as_str()), ("ask", &closed), ("ask", unknown), ("ask", &open)];
    assert_eq!(kim.post("/seen", &fields).await.status, StatusCode::NO_CONTENT);
    let viewer = app.identity(app.kim);
    let seen = async |ask: &str| app.store.seen(&viewer, ask.parse().unwrap()).await.unwrap();
    let first = until("the open one is seen", async || seen(&open).await.filter(|seen| !seen.is_empty())).await;
    assert_eq!(first.len(), 1, "by Kim alone");
    assert_eq!(seen(&closed).await, Some(Vec::new()));
    assert_eq!(seen(unknown).await, None);
}

#[tokio::test]
async fn an_answer_that_came_too_late_stands_in_the_story_with_its_name() {
    let (app, time) = App::by_hand().await;
    let ask_id = app.ask(json!({ "questions": [crate::support::question("when", "Which?", json!({ "default_value": "19" }))], "timeout_seconds": 60 })).await;
    let (kim, robin) = (app.kim().await, app.signed_in(app.robin).await);
    let path = format!("/asks/{ask_id}");
    let (form, theirs) = (kim.get(&path).await.form(&path), robin.get(&path).await.form(&path));
    time.pass_ms(61_000);
    assert_eq!(kim.submit(&form, &[("q0", "0")]).await.status, StatusCode::CONFLICT);
    assert_eq!(robin.submit(&theirs, &[("q0", "1")]).await.status, StatusCode::CONFLICT);
    let page = kim.get(&path).await;
    for says in [
        "Not answered in time. The default, “19 September”, was taken.",
        "Too late, from you: “19 September”. It did not count",
        "Too late, from Robin: “26 September”. It did not count",
    ] {
        page.says(says);
    }
    kim.get("/").await.says("Robin answered “26 September” 1 s later. It decided nothing.");
}
