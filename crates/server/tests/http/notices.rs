//! What leaves the server for addresses that somebody gave: signed, once, and to nobody who must not be reached.

use chips_core::notify::Channel;
use chips_server::channels::webhook::{Keys, new_key};
use chips_store::{Identity, NewEndpoint, secret};
use serde_json::{Value, json};

use crate::support::{Actor, Received, Receiver, Setup, TestApp, answer, ask, ask_id_of, id, until, with};

/// The key that receivers check with, in these tests.
const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

async fn identity(app: &TestApp, actor: &Actor) -> Identity {
    app.store.authenticate(secret::sha256(&actor.token)).await.unwrap().unwrap()
}

async fn register(app: &TestApp, actor: &Actor, channel: Channel, url: &str) -> i64 {
    let keys = Keys::one(KEY.to_owned());
    let endpoint = NewEndpoint {
        channel,
        address: url.to_owned(),
        secret: serde_json::to_string(&keys).unwrap(),
        name: "Hook".to_owned(),
        session_id: None,
    };
    app.store.add_endpoint(&identity(app, actor).await, endpoint).await.unwrap().unwrap()
}

async fn allowing(receiver: &Receiver, mut setup: Setup) -> TestApp {
    setup.config.allow_outbound = vec![receiver.origin()];
    TestApp::with(setup).await
}

async fn asked(app: &TestApp) -> Value {
    app.harness.send(&ask(&app.harness, app.harness.run().await)).await.expect(201)
}

async fn answered(app: &TestApp, asked: &Value) -> Value {
    app.person.send(&answer(&app.person, asked, "26")).await.expect(201)
}

/// Checks a signature with the libraries' own code, at the time that it names.
fn check(received: &Received) {
    let hook = standardwebhooks::Webhook::new(KEY).unwrap();
    hook.verify(&received.body, &received.headers).unwrap();
}

async fn attempts(app: &TestApp, ask_id: &str) -> Vec<String> {
    let viewer = identity(app, &app.person).await;
    let attempts = app.store.attempts(&viewer, ask_id.parse().unwrap()).await.unwrap().unwrap();
    attempts.into_iter().map(|attempt| attempt.outcome).collect()
}

#[tokio::test]
async fn n19_an_answer_is_posted_until_it_is_taken_each_time_under_the_same_id() {
    let receiver = Receiver::start().await;
    let (setup, time) = Setup::by_hand();
    let app = allowing(&receiver, setup).await;
    register(&app, &app.harness, Channel::HarnessWebhook, &receiver.url("/hook")).await;
    receiver.answer_with(&[500, 503, 404]);
    let asked = asked(&app).await;
    let event = answered(&app, &asked).await;
    for (nth, gap) in [5, 300, 1_800].into_iter().enumerate() {
        receiver.wait_for(nth + 1).await;
        until(async || (attempts(&app, &ask_id_of(&asked)).await.len() > nth).then_some(())).await;
        time.pass_ms(gap * 1_200);
    }
    let received = receiver.wait_for(4).await;
    until(async || (attempts(&app, &ask_id_of(&asked)).await.len() == 4).then_some(())).await;
    assert_eq!(attempts(&app, &ask_id_of(&asked)).await, ["failed", "failed", "failed", "accepted"]);
    for one in &received {
        assert_eq!((one.header("webhook-id"), one.json()), (event["id"].as_str().unwrap(), event.clone()));
        check(one);
    }
    // The harness has it now.
    let seen = app.person.get(&format!("/v1/asks/{}", ask_id_of(&asked))).await.expect(200);
    assert!(seen["delivered_at"].is_string(), "{seen}");
}

#[tokio::test]
async fn n19_a_redirect_is_not_followed_and_one_that_never_answers_delays_nobody_else() {
    let receiver = Receiver::start().await;
    let app = allowing(&receiver, Setup::default()).await;
    for path in ["/silent", "/redirect", "/hook"] {
        register(&app, &app.harness, Channel::HarnessWebhook, &receiver.url(path)).await;
    }
    let asks = [asked(&app).await, asked(&app).await];
    for asked in &asks {
        answered(&app, asked).await;
    }
    let paths = until(async || {
        let paths: Vec<String> = receiver.received().into_iter().map(|received| received.path).collect();
        let count = |wanted: &str| paths.iter().filter(|path| *path == wanted).count();
        (count("/hook") == 2 && count("/redirect") >= 1 && count("/silent") == 1).then_some(paths.clone())
    })
    .await;
    assert!(!paths.iter().any(|path| path == "/elsewhere"), "{paths:?}");
}

#[tokio::test]
async fn n20_nothing_is_sent_to_this_machine_or_its_network_however_it_is_spelled() {
    let receiver = Receiver::start().await;
    let app = TestApp::start().await;
    let port = receiver.address.port();
    let hosts =
        ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "localhost", "0.0.0.0"];
    for host in hosts {
        register(&app, &app.harness, Channel::HarnessWebhook, &format!("https://{host}:{port}/")).await;
    }
    register(&app, &app.harness, Channel::HarnessWebhook, &receiver.url("/")).await;
    let asked = asked(&app).await;
    answered(&app, &asked).await;
    let outcomes = until(async || {
        let outcomes = attempts(&app, &ask_id_of(&asked)).await;
        (outcomes.len() == hosts.len() + 1).then_some(outcomes)
    })
    .await;
    assert!(outcomes.iter().all(|outcome| outcome == "refused"), "{outcomes:?}");
    assert!(receiver.received().is_empty());
}

#[tokio::test]
async fn a_person_s_webhook_hears_of_the_question_and_of_its_end() {
    let receiver = Receiver::start().await;
    let app = allowing(&receiver, Setup::default()).await;
    register(&app, &app.person, Channel::Webhook, &receiver.url("/me")).await;
    let asked = asked(&app).await;
    let first = receiver.wait_for(1).await.remove(0);
    check(&first);
    let said = first.json();
    assert_eq!((&said["kind"], &said["ask_id"], &said["tier"]), (&json!("asked"), &asked["ask_id"], &json!("active")));
    assert_eq!(said["url"], format!("http://{}/asks/{}", app.address, ask_id_of(&asked)));
    assert!(said["title"].as_str().unwrap().ends_with(" asks") && !said["body"].as_str().unwrap().is_empty(), "{said}");
    answered(&app, &asked).await;
    let said = receiver.wait_for(2).await.remove(1).json();
    assert_eq!((&said["kind"], &said["state"]), (&json!("closed"), &json!("answered")));
    assert!(said["title"].as_str().unwrap().contains(" answered "), "{said}");
}

#[tokio::test]
async fn n13_a_private_space_s_message_carries_no_word_of_the_question() {
    let receiver = Receiver::start().await;
    let app = allowing(&receiver, Setup::default()).await;
    app.admin().set_private(app.closed_space, true).unwrap();
    register(&app, &app.person, Channel::Webhook, &receiver.url("/me")).await;
    let run = app.harness.run_in(app.closed_space).await;
    let sent = ask(&app.harness, run);
    let asked = app.harness.send(&sent).await.expect(201);
    let open = receiver.wait_for(1).await.remove(0);
    answered(&app, &asked).await;
    let closed = receiver.wait_for(2).await.remove(1);
    for message in [open, closed] {
        let text = String::from_utf8(message.body.to_vec()).unwrap();
        let question = &sent["questions"][0];
        for word in [&question["prompt"], &question["options"][0]["label"], &question["options"][1]["label"]] {
            assert!(!text.contains(word.as_str().unwrap()), "{text}");
        }
    }
}

#[tokio::test]
async fn n07_what_waited_at_the_end_of_the_server_is_sent_once_after_the_start_and_its_buttons_still_answer() {
    let receiver = Receiver::start().await;
    let (setup, time) = Setup::by_hand();
    let mut app = allowing(&receiver, setup).await;
    let endpoint = NewEndpoint {
        channel: Channel::Ntfy,
        address: receiver.url("/topic"),
        secret: "{}".to_owned(),
        name: "Topic".to_owned(),
        session_id: None,
    };
    app.store.add_endpoint(&identity(&app, &app.person).await, endpoint).await.unwrap().unwrap();
    receiver.answer_with(&[503]);
    let asked = asked(&app).await;
    until(async || (attempts(&app, &ask_id_of(&asked)).await == ["failed"]).then_some(())).await;
    let before = receiver.received().remove(0).json()["actions"][1]["url"].as_str().unwrap().to_owned();
    app.restart(|| ()).await;
    time.pass_ms(6_000);
    receiver.wait_for(2).await;
    until(async || (attempts(&app, &ask_id_of(&asked)).await == ["failed", "accepted"]).then_some(())).await;
    // The button that went out before the end, at the address of now.
    let (_, token) = before.split_once("/a/").unwrap();
    let reply = app.person.post_empty(&format!("/a/{token}")).await;
    assert_eq!((reply.status, reply.text.as_str()), (200, "Answered: 26 September\n"));
    assert_eq!(receiver.wait_for(3).await.len(), 3, "the question twice, because it was not taken, and its outcome");
}

#[tokio::test]
async fn n14_a_harness_learns_that_nobody_could_be_told_and_the_question_stays() {
    let receiver = Receiver::start().await;
    let app = allowing(&receiver, Setup::default()).await;
    register(&app, &app.person, Channel::Webhook, &receiver.url("/me")).await;
    receiver.answer_with(&[410]);
    let asked = asked(&app).await;
    let path = format!("/v1/asks/{}", ask_id_of(&asked));
    let seen = until(async || {
        let seen = app.harness.get(&path).await.expect(200);
        (seen["reachable"] == false).then_some(seen)
    })
    .await;
    assert_eq!(seen["state"], "open");
    answered(&app, &asked).await;
    assert_eq!(app.harness.get(&path).await.expect(200)["state"], "answered");
}

#[tokio::test]
async fn a_time_out_is_never_told_as_somebody_s_choice() {
    let receiver = Receiver::start().await;
    let (setup, time) = Setup::by_hand();
    let app = allowing(&receiver, setup).await;
    register(&app, &app.person, Channel::Webhook, &receiver.url("/me")).await;
    let sent = with(&ask(&app.harness, app.harness.run().await), "/timeout_seconds", 60);
    let asked = app.harness.send(&sent).await.expect(201);
    receiver.wait_for(1).await;
    // What was sent and not recorded within a minute is sent again: the clock must not jump between the two.
    until(async || (attempts(&app, &ask_id_of(&asked)).await == ["accepted"]).then_some(())).await;
    time.pass_ms(60_000);
    let said = receiver.wait_for(2).await.remove(1).json();
    assert_eq!(said["state"], "timed_out");
    let body = said["body"].as_str().unwrap();
    assert!(body.starts_with("Nobody answered in time. Default: "), "{said}");
    assert!(said["title"].as_str().unwrap().ends_with(" goes on without an answer"), "{said}");
}

#[tokio::test]
async fn keys_are_long_enough_and_never_the_same() {
    assert_ne!(new_key().unwrap(), new_key().unwrap());
    assert!(standardwebhooks::Webhook::new(&new_key().unwrap()).is_ok());
    assert_ne!(id("key-"), id("key-"));
}
