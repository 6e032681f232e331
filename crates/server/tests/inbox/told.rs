//! Where and when a person is told, as they set it without JavaScript.

use chips_core::notify::{Channel, Preferences};
use chips_protocol::api::Tier;
use chips_server::channels::webhook::{Keys, new_key};
use reqwest::StatusCode;
use serde_json::json;

use crate::receiver::Receiver;
use crate::support::{App, Browser, Page, plain, until};

const NTFY: &str = "/settings/told/ntfy";
const WEBHOOK: &str = "/settings/told/webhook";
const WHEN: &str = "/settings/when";

/// Fills in a form of the settings and sends it.
async fn send(browser: &Browser, action: &str, fields: &[(&str, &str)]) -> Page {
    browser.submit(&browser.get("/settings").await.form(action), fields).await
}

#[tokio::test]
async fn a_topic_is_added_tried_out_and_removed() {
    let receiver = Receiver::start().await;
    let app = App::configured(|config| config.allow_outbound = vec![receiver.origin()]).await;
    let kim = app.kim().await;
    kim.get("/settings").await.says("Where you are told");
    let server = receiver.url("");
    let added = send(&kim, NTFY, &[("server", &server), ("topic", "chips-kim"), ("access", "tk_1")]).await;
    assert_eq!((added.status, added.location()), (StatusCode::SEE_OTHER, "/settings#told".to_owned()));
    let page = kim.get("/settings").await;
    page.says("chips-kim (127.0.0.1)");
    assert!(!page.body.contains("tk_1"), "a token is never shown again");

    receiver.answer_with(&[200, 403]);
    let accepted = kim.submit(&page.form("/settings/told/test"), &[]).await;
    accepted.says("The test message was accepted.");
    assert!(!accepted.text().to_lowercase().contains("delivered"));
    let refused = kim.submit(&page.form("/settings/told/test"), &[]).await;
    refused.says("The test message was not taken: 403 Forbidden");
    let received = receiver.wait_for(2).await.remove(0);
    assert_eq!((received.header("authorization"), &received.json()["topic"]), ("Bearer tk_1", &json!("chips-kim")));

    // What is asked from now on goes there.
    app.ask(plain()).await;
    receiver.wait_for(3).await;
    let removed = kim.submit(&page.form("/settings/told/remove"), &[]).await;
    assert_eq!(removed.location(), "/settings#told");
    assert!(app.store.endpoints(&app.identity(app.kim)).await.unwrap().is_empty());
    // A second time, from a page that is not up to date.
    assert_eq!(kim.submit(&page.form("/settings/told/remove"), &[]).await.status, StatusCode::NOT_FOUND);
    assert_eq!(kim.submit(&page.form("/settings/told/test"), &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_is_wrong_is_said_beside_its_field_and_what_was_typed_stays() {
    let app = App::start().await;
    let kim = app.kim().await;
    let long = "x".repeat(65);
    for (server, topic, access, fault, says) in [
        ("ntfy.sh", "kims", "", "ntfy-server", "Give the address of a server"),
        ("https://ntfy.sh/kims", "kims", "", "ntfy-server", "Give the address of a server"),
        ("http://ntfy.sh", "kims", "", "ntfy-server", "is not https"),
        ("https://127.0.0.1", "kims", "", "ntfy-server", "no public address"),
        ("https://ntfy.sh", "kim's", "", "ntfy-topic", "A topic has 1 to 64"),
        ("https://ntfy.sh", &long, "", "ntfy-topic", "A topic has 1 to 64"),
        ("https://ntfy.sh", "kims", "a b", "ntfy-access", "A token has no spaces"),
    ] {
        let page = send(&kim, NTFY, &[("server", server), ("topic", topic), ("access", access)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{server} {topic}");
        page.says(says);
        assert!(page.body.contains(&format!("aria-describedby=\"{fault}-fault\"")), "{server} {topic}");
        assert!(page.body.contains(&format!("id=\"{fault}-fault\"")), "{server} {topic}");
        assert!(page.body.contains(&format!("name=\"server\" type=\"url\" required value=\"{server}\"")), "{server}");
    }
    for (url, says) in [("example.com", "Give a whole address"), ("https://10.0.0.1/x", "no public address")] {
        let page = send(&kim, WEBHOOK, &[("url", url), ("name", "Mine & yours")]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        page.says(says);
        assert!(page.body.contains("Mine &#38; yours"), "{}", page.body);
    }
    assert!(app.store.endpoints(&app.identity(app.kim)).await.unwrap().is_empty());
    // What the form does not have is no fault of the person's.
    let odd = send(&kim, NTFY, &[("server", "https://ntfy.sh"), ("topic", "a"), ("access", ""), ("x", "y")]).await;
    assert_eq!(odd.status, StatusCode::UNPROCESSABLE_ENTITY);
    odd.says("That form does not fit");
}

#[tokio::test]
async fn a_webhook_s_key_is_shown_once_and_signs_what_is_sent() {
    let receiver = Receiver::start().await;
    let app = App::configured(|config| config.allow_outbound = vec![receiver.origin()]).await;
    let kim = app.kim().await;
    let url = receiver.url("/kim");
    let added = send(&kim, WEBHOOK, &[("url", &url), ("name", "")]).await;
    assert_eq!(added.status, StatusCode::OK);
    let (_, rest) = added.body.split_once("whsec_").unwrap();
    let key = format!("whsec_{}", rest.split('<').next().unwrap().replace("&#43;", "+"));
    let page = kim.get("/settings").await;
    assert!(!page.body.contains("whsec_"), "once");
    kim.submit(&page.form("/settings/told/test"), &[]).await.says("The test message was accepted.");
    let received = receiver.wait_for(1).await.remove(0);
    standardwebhooks::Webhook::new(&key).unwrap().verify(&received.body, &received.headers).unwrap();
    // A name is one line, as everywhere.
    let named = send(&kim, WEBHOOK, &[("url", &format!("{url}2")), ("name", "Pager\nof Robin")]).await;
    assert_eq!(named.status, StatusCode::UNPROCESSABLE_ENTITY);
    named.says("Give one line of at most 60 characters");
    // Another key would leave whoever checks with this one in the dark.
    let again = send(&kim, WEBHOOK, &[("url", &url), ("name", "")]).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    again.says("This webhook is there already.");
}

#[tokio::test]
async fn when_they_are_told_is_kept_and_faults_are_named() {
    let app = App::start().await;
    let kim = app.kim().await;
    let page = kim.get("/settings").await;
    for shown in ["name=\"zone\" required autocapitalize=\"off\" spellcheck=\"false\" value=\"UTC\"", "value=\"30\""] {
        assert!(page.body.contains(shown), "{shown}");
    }
    let space = app.space.to_string();
    let good = [
        ("zone", "Europe/Berlin"),
        ("from", "22:30"),
        ("to", "07:00"),
        ("all", "yes"),
        ("grace", "90"),
        ("reminders", "off"),
        ("use", "waits.ntfy"),
        ("use", "waits.webhook"),
        ("use", "waits.web_push"),
        ("use", "goes.web_push"),
        ("use", "goes.webhook"),
        ("mute", &space),
    ];
    let saved = kim.submit(&page.form(WHEN), &good).await;
    assert_eq!((saved.status, saved.location()), (StatusCode::SEE_OTHER, "/settings#when".to_owned()));
    let kept = app.store.preferences(app.kim).await.unwrap();
    assert_eq!(kept.zone, "Europe/Berlin");
    let quiet = kept.quiet.unwrap();
    assert_eq!(
        (quiet.from.to_string(), quiet.to.to_string(), quiet.time_sensitive),
        ("22:30".into(), "07:00".into(), true)
    );
    assert_eq!((kept.grace_seconds, kept.reminders), (90, false));
    assert_eq!(kept.not, [(Tier::Active, [Channel::Ntfy].into())].into());
    assert_eq!(kept.muted, [app.space].into());
    // The page shows what is kept, and sent as it is it changes nothing.
    let page = kim.get("/settings").await;
    for shown in
        ["value=\"22:30\"", "value=\"07:00\"", "value=\"goes.webhook\" checked", "value=\"goes.ntfy\">", "value=\"90\""]
    {
        assert!(page.body.contains(shown), "{shown}");
    }

    for (name, value, says) in [
        ("zone", "Mars/Olympus", "Chips knows no such time zone."),
        ("from", "", "Give both times"),
        ("to", "22:30", "Give both times"),
        ("grace", "601", "from 0 to 600"),
        ("grace", "soon", "from 0 to 600"),
    ] {
        let fields: Vec<(&str, &str)> =
            good.iter().map(|&(key, old)| (key, if key == name { value } else { old })).collect();
        let page = kim.submit(&page.form(WHEN), &fields).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{name}");
        page.says(says);
        assert!(page.body.contains(&format!("aria-describedby=\"{name}-fault\"")), "{name}");
        assert!(page.body.contains("value=\"Europe/Berlin\"") || name == "zone", "what was typed stays");
    }
    assert_eq!(app.store.preferences(app.kim).await.unwrap(), kept);
    assert_eq!(app.store.preferences(app.robin).await.unwrap(), Preferences::default());
}

#[tokio::test]
async fn nobody_changes_what_is_another_s() {
    let app = App::start().await;
    let theirs = app.tell(app.robin, Channel::Webhook, "https://example.com/robin", json!({ "key": "" })).await;
    let kim = app.kim().await;
    app.tell(app.kim, Channel::Webhook, "https://example.com/kim", json!({ "key": "" })).await;
    let form = kim.get("/settings").await.form("/settings/told/remove").with("endpoint", &theirs.to_string());
    for action in ["/settings/told/remove", "/settings/told/test"] {
        let form = kim.get("/settings").await.form(action).with("endpoint", &theirs.to_string());
        assert_eq!(kim.submit(&form, &[]).await.status, StatusCode::NOT_FOUND, "{action}");
    }
    assert_eq!(app.store.endpoints(&app.identity(app.robin)).await.unwrap().len(), 1);
    let form = form.with("token", "0123");
    assert_eq!(kim.submit(&form, &[]).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn n14_every_try_stands_in_the_question_s_story_and_that_nobody_was_told_on_its_card() {
    let receiver = Receiver::start().await;
    let (app, _time) = App::by_hand_with(|config| config.allow_outbound = vec![receiver.origin()]).await;
    app.tell(app.kim, Channel::Ntfy, &receiver.url("/kims-secret-topic"), json!({})).await;
    receiver.answer_with(&[403, 200, 200]);
    let kim = app.kim().await;
    let robin = app.signed_in(app.robin).await;
    let unheard = app.ask(plain()).await;
    until("nobody could be told", async || (!app.read(unheard).await.reachable).then_some(())).await;
    let page = kim.get(&format!("/asks/{unheard}")).await;
    page.says("Nobody could be told of this outside the inbox.");
    page.says("Phone (ntfy) refused the question: 403 Forbidden");
    kim.get("/").await.says("Nobody could be told of this outside the inbox.");

    let heard = app.ask(plain()).await;
    let path = format!("/asks/{heard}");
    receiver.wait_for(2).await;
    let told = async |words: &str| {
        let page = kim.get(&path).await;
        page.text().replace(' ', "").contains(&words.replace(' ', "")).then_some(page)
    };
    let page = until("the try is recorded", || told("Phone (ntfy) accepted the question")).await;
    assert!(!page.text().contains("Nobody could be told"));
    robin.submit(&robin.get(&path).await.form(&path), &[("q0", "0")]).await;
    until("the outcome is sent", || told("Phone (ntfy) accepted the outcome")).await;
    let text = kim.get(&path).await.text();
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words:?} is not in {text:?}"));
    assert!(at("accepted the question") < at("accepted the outcome"));
    assert!(!text.to_lowercase().contains("delivered"));
    // What Kim calls it and what it answers is Kim's; that it was accepted is everybody's who sees the question.
    let theirs = robin.get(&path).await;
    theirs.says("Kim (ntfy) accepted the question");
    assert!(!theirs.text().contains("Phone") && !theirs.body.contains("secret-topic"));
    let theirs = robin.get(&format!("/asks/{unheard}")).await;
    theirs.says("Kim (ntfy) refused the question");
    assert!(!theirs.text().contains("403"), "{}", theirs.text());
}

#[tokio::test]
async fn of_a_harness_s_webhook_people_see_the_host_alone() {
    let receiver = Receiver::start().await;
    let app = App::configured(|config| config.allow_outbound = vec![receiver.origin()]).await;
    let keys = serde_json::to_string(&Keys::one(new_key().unwrap())).unwrap();
    app.admin().add_webhook(app.harness, &receiver.url("/services/SECRETPATH?token=SECRETQUERY"), &keys).unwrap();
    receiver.answer_with(&[500]);
    let ask_id = app.ask(plain()).await;
    app.settle(ask_id, json!([{ "question_id": "when", "values": ["19"] }])).await;
    let kim = app.kim().await;
    let page = until("its story", async || {
        let page = kim.get(&format!("/asks/{ask_id}")).await;
        page.text().contains("could not take the answer").then_some(page)
    })
    .await;
    page.says("127.0.0.1 (webhook) could not take the answer");
    for secret in ["SECRET", "500", "services"] {
        assert!(!page.text().contains(secret), "{secret}: {}", page.text());
    }
}
