//! A browser that is told by its push service: who hears what, how loudly, and until when.

use chips_core::notify::Channel;
use chips_protocol::api::{AskState, NewRun};
use chips_protocol::{AskId, ParticipantId};
use chips_store::clock::ManualTime;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::push_service::{Opened, PUSH, Subscriber};
use crate::receiver::Receiver;
use crate::support::{App, Browser, Page, plain, question, until};

const DAY_MS: i64 = 24 * 3600 * 1000;

async fn app(receiver: &Receiver) -> App {
    App::configured(|config| config.allow_outbound = vec![receiver.origin()]).await
}

async fn by_hand(receiver: &Receiver) -> (App, ManualTime) {
    App::by_hand_with(|config| config.allow_outbound = vec![receiver.origin()]).await
}

/// Opens the `n`th message that the push service was sent.
async fn opened(receiver: &Receiver, subscriber: &Subscriber, n: usize) -> Opened {
    subscriber.open(&receiver.wait_for(n + 1).await[n], &receiver.origin())
}

/// Taps a button of a notification, as the worker does it.
async fn tap(browser: &Browser, said: &Value, button: usize) -> Page {
    let token = said["data"]["taps"][button].as_str().unwrap();
    browser.request(Method::POST, &format!("/a/{token}"), &[], None).await
}

async fn outcomes(app: &App, ask_id: AskId) -> Vec<String> {
    let attempts = app.store.attempts(&app.identity(app.kim), ask_id).await.unwrap().unwrap();
    attempts.into_iter().map(|attempt| attempt.outcome).collect()
}

async fn with_outcomes(app: &App, ask_id: AskId, wanted: &[&str]) {
    until(&format!("{wanted:?}"), async || (outcomes(app, ask_id).await == wanted).then_some(())).await;
}

/// How many endpoints Kim has.
async fn places(app: &App) -> usize {
    app.store.endpoints(&app.identity(app.kim)).await.unwrap().len()
}

#[tokio::test]
async fn n01_a_question_reaches_the_browser_sealed_signed_and_as_loud_as_silence_would_cost() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let (kim, phone) = (app.kim().await, Subscriber::new());
    phone.on(&kim, &receiver.url("/push/kim")).await;
    let ask_id = app.ask(plain()).await;
    let first = opened(&receiver, &phone, 0).await;
    let said = &first.message;
    assert_eq!((first.urgency.as_str(), first.ttl), ("high", 7 * 24 * 3600));
    assert_eq!(
        (&said["title"], &said["body"]),
        (&json!("Purchasing asks · Weekly restock"), &json!("Which day should I confirm?"))
    );
    assert_eq!((&said["tag"], &said["data"]["url"]), (&json!(ask_id), &json!(format!("/asks/{ask_id}"))));
    let buttons = json!([{ "action": "0", "title": "19 September" }, { "action": "1", "title": "26 September" }]);
    assert_eq!(
        (&said["actions"], &said["silent"], &said["requireInteraction"]),
        (&buttons, &json!(false), &json!(true))
    );
    assert_eq!(first.subject, "mailto:chips@localhost", "push services want somebody named");
    let offer: Value = serde_json::from_str(&kim.get(PUSH).await.body).unwrap();
    assert_eq!((&offer["key"], &offer["address"]), (&json!(first.key), &json!(receiver.url("/push/kim"))));

    let options: Vec<Value> =
        (0..3).map(|n| json!({ "value": n.to_string(), "label": format!("Option {n}") })).collect();
    let three = question("many", "Which of three?", json!({ "options": options, "default_value": "0" }));
    app.ask(json!({ "questions": [three], "timeout_seconds": 600 })).await;
    let second = opened(&receiver, &phone, 1).await;
    assert_eq!((second.urgency.as_str(), &second.message["actions"]), ("normal", &json!([])), "half a choice is none");
    assert!(second.ttl <= 600 && second.ttl > 500, "{}", second.ttl);
    assert_ne!(first.topic, second.topic);
}

#[tokio::test]
async fn n02_n03_n04_three_questions_are_three_notifications_and_each_is_taken_back_by_its_own_name() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let devices: Vec<Subscriber> = (0..3).map(|_| Subscriber::new()).collect();
    for (n, device) in devices.iter().enumerate() {
        device.on(&app.kim().await, &receiver.url(&format!("/push/{n}"))).await;
    }
    let asks = [app.ask(plain()).await, app.ask(plain()).await, app.ask(plain()).await];
    let all = async |count: usize| -> Vec<(usize, Opened)> {
        let received = receiver.wait_for(count).await;
        let opened = received.iter().map(|received| {
            let n: usize = received.path.strip_prefix("/push/").unwrap().parse().unwrap();
            (n, devices[n].open(received, &receiver.origin()))
        });
        opened.collect()
    };
    let told = all(9).await;
    for n in 0..3 {
        for ask_id in asks {
            let of = told.iter().filter(|(device, said)| *device == n && said.message["tag"] == json!(ask_id));
            assert_eq!(of.count(), 1, "device {n}, {ask_id}");
        }
    }
    let (_, first) = told.iter().find(|(_, said)| said.message["tag"] == json!(asks[0])).unwrap();
    let answered = tap(&app.browser(), &first.message, 1).await;
    assert_eq!((answered.status, answered.body.as_str()), (StatusCode::OK, "Answered: 26 September\n"));
    let later = app.ask(plain()).await;
    let all = all(15).await;
    let back: Vec<_> = all.iter().filter(|(_, said)| said.message["silent"] == json!(true)).collect();
    assert_eq!(back.len(), 3, "one on each device");
    for (_, said) in back {
        assert_eq!(
            (&said.message["tag"], &said.topic),
            (&json!(asks[0]), &first.topic),
            "it takes the place of its own"
        );
        assert_eq!(
            (&said.message["title"], &said.message["body"]),
            (&json!("Kim answered Purchasing"), &json!("26 September"))
        );
        assert_eq!((&said.message["actions"], said.urgency.as_str()), (&json!([]), "normal"));
        assert!(said.message["data"]["no"].as_i64() > first.message["data"]["no"].as_i64(), "it is known to be newer");
    }
    assert_eq!(all.iter().filter(|(_, said)| said.message["tag"] == json!(later)).count(), 3);
}

#[tokio::test]
async fn n05_the_same_browser_twice_is_told_once_and_belongs_to_whoever_signed_in_last() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let (kim, browser) = (app.kim().await, Subscriber::new());
    let address = receiver.url("/push/one");
    browser.on(&kim, &address).await;
    browser.on(&kim, &address).await;
    assert_eq!(places(&app).await, 1);
    app.ask(plain()).await;
    let first = opened(&receiver, &browser, 0).await;
    // The browser's push service gives it another address: what was sent before is still good and taken back.
    let renewed = Subscriber::new();
    renewed.on(&kim, &receiver.url("/push/two")).await;
    assert_eq!(places(&app).await, 1, "a session has one browser");
    assert_eq!(tap(&app.browser(), &first.message, 0).await.body, "Answered: 19 September\n");
    let over = opened(&receiver, &renewed, 1).await;
    assert_eq!(over.message["tag"], first.message["tag"]);
    assert_eq!(receiver.received()[1].path, "/push/two");

    // Robin signs in with it, and turns messages on.
    let robin = app.signed_in(app.robin).await;
    renewed.on(&robin, &receiver.url("/push/two")).await;
    assert_eq!(places(&app).await, 0);
    app.ask(plain()).await;
    receiver.wait_for(3).await;
    let told = app.store.endpoints(&app.identity(app.robin)).await.unwrap();
    assert_eq!((told.len(), told[0].address.as_str()), (1, receiver.url("/push/two").as_str()));
}

#[tokio::test]
async fn n06_what_the_push_service_answers_is_told_and_what_may_pass_is_tried_again() {
    let receiver = Receiver::start().await;
    let (app, time) = by_hand(&receiver).await;
    let (kim, browser) = (app.kim().await, Subscriber::new());
    browser.on(&kim, &receiver.url("/push/kim")).await;
    receiver.answer_with(&[201, 403, 500, 201, 410]);
    let accepted = app.ask(plain()).await;
    with_outcomes(&app, accepted, &["accepted"]).await;
    kim.get(&format!("/asks/{accepted}")).await.says("(browser) accepted the question");

    let mismatched = app.ask(plain()).await;
    with_outcomes(&app, mismatched, &["refused"]).await;
    kim.get(&format!("/asks/{mismatched}")).await.says("(browser) refused the question: key mismatch: 403 Forbidden");
    kim.get("/settings").await.says("Key mismatch: the push service does not take this server’s key (403 Forbidden).");

    let retried = app.ask(plain()).await;
    with_outcomes(&app, retried, &["failed"]).await;
    time.pass_ms(6_000);
    with_outcomes(&app, retried, &["failed", "accepted"]).await;
    let twice = receiver.wait_for(4).await;
    let [first, second] = [2, 3].map(|n: usize| browser.open(&twice[n], &receiver.origin()));
    assert_eq!(first.message["data"]["no"], second.message["data"]["no"], "the same message");
    assert_eq!((first.topic, &second.message["renotify"]), (second.topic, &json!(false)), "it takes its own place");

    let gone = app.ask(plain()).await;
    with_outcomes(&app, gone, &["gone"]).await;
    assert_eq!(places(&app).await, 0, "it is deleted");
    until("nobody could be told", async || (!app.read(gone).await.reachable).then_some(())).await;
    let offer: Value = serde_json::from_str(&kim.get(PUSH).await.body).unwrap();
    assert_eq!(offer["address"], Value::Null, "so the page offers to renew it");
}

#[tokio::test]
async fn n06_a_push_service_that_asks_for_time_gets_it() {
    let receiver = Receiver::start().await;
    let (app, time) = by_hand(&receiver).await;
    Subscriber::new().on(&app.kim().await, &receiver.url("/patient")).await;
    let ask_id = app.ask(plain()).await;
    with_outcomes(&app, ask_id, &["failed"]).await;
    let due = app.store.next_notice().await.unwrap().unwrap().ms() - app.store.clock().now().ms();
    assert!((890_000..=900_000).contains(&due), "{due}");
    time.pass_ms(901_000);
    with_outcomes(&app, ask_id, &["failed", "failed"]).await;
}

#[tokio::test]
async fn n06_a_push_service_that_says_nothing_is_left_and_tried_again() {
    let receiver = Receiver::start().await;
    let (app, time) = by_hand(&receiver).await;
    Subscriber::new().on(&app.kim().await, &receiver.url("/silent")).await;
    let ask_id = app.ask(plain()).await;
    with_outcomes(&app, ask_id, &["timed_out"]).await;
    time.pass_ms(6_000);
    receiver.wait_for(2).await;
}

#[tokio::test]
async fn n08_n09_who_looks_at_the_inbox_is_not_called_and_who_does_not_is_called_at_once() {
    let receiver = Receiver::start().await;
    let (app, time) = by_hand(&receiver).await;
    let (kim, phone) = (app.kim().await, Subscriber::new());
    phone.on(&kim, &receiver.url("/push/kim")).await;
    app.run("An agent that is connected").await;
    let at_once = app.ask(plain()).await;
    assert_eq!(opened(&receiver, &phone, 0).await.message["tag"], json!(at_once));

    let page = kim.get("/").await;
    let (_, rest) = page.body.split_once("data-token=\"").unwrap();
    kim.post("/present", &[("token", rest.split('"').next().unwrap())]).await;
    let answered = app.ask(plain()).await;
    time.pass_ms(20_000);
    let path = format!("/asks/{answered}");
    kim.submit(&kim.get(&path).await.form(&path), &[("q0", "0")]).await;
    let open = app.ask(plain()).await;
    time.pass_ms(31_000);
    assert_eq!(opened(&receiver, &phone, 1).await.message["tag"], json!(open), "the other one was never pushed");
}

#[tokio::test]
async fn n10_nothing_is_kept_past_the_deadline_and_nobody_is_reminded_after_it() {
    let receiver = Receiver::start().await;
    let (app, time) = by_hand(&receiver).await;
    let phone = Subscriber::new();
    phone.on(&app.kim().await, &receiver.url("/push/kim")).await;
    let ask_id = app.ask(json!({ "questions": plain()["questions"], "timeout_seconds": 600 })).await;
    let first = opened(&receiver, &phone, 0).await;
    assert!((599..=600).contains(&first.ttl), "{}", first.ttl);
    with_outcomes(&app, ask_id, &["accepted"]).await;
    time.pass_ms(5 * 60_000 + 500);
    let reminder = opened(&receiver, &phone, 1).await;
    assert!(reminder.ttl < 300, "{}", reminder.ttl);
    assert_eq!(
        (&reminder.message["title"], &reminder.message["renotify"]),
        (&json!("Purchasing still waits"), &json!(true))
    );
    assert_eq!(
        (&reminder.message["tag"], reminder.topic),
        (&json!(ask_id), first.topic),
        "it takes the question's place"
    );
    with_outcomes(&app, ask_id, &["accepted", "accepted"]).await;
    time.pass_ms(20 * 60_000);
    let over = opened(&receiver, &phone, 2).await;
    assert_eq!(over.message["body"], "Nobody answered in time.");
    with_outcomes(&app, ask_id, &["accepted"; 3]).await;
    time.pass_ms(DAY_MS);
    assert_eq!(app.store.next_notice().await.unwrap(), None);
}

#[tokio::test]
async fn n12_the_first_tap_counts_and_every_other_is_told_what_became_of_it() {
    let receiver = Receiver::start().await;
    let (app, time) = by_hand(&receiver).await;
    let (kim, phone) = (app.kim().await, Subscriber::new());
    phone.on(&kim, &receiver.url("/push/kim")).await;
    let ask_id = app.ask(plain()).await;
    let said = opened(&receiver, &phone, 0).await.message;
    for _ in 0..2 {
        let twice = tap(&kim, &said, 0).await;
        assert_eq!((twice.status, twice.body.as_str()), (StatusCode::OK, "Answered: 19 September\n"));
    }
    let other = tap(&kim, &said, 1).await;
    assert_eq!(
        (other.status, other.body.as_str()),
        (StatusCode::CONFLICT, "Too late. Kim answered Purchasing: 19 September\n")
    );
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "when", "values": ["19"] }]));
    // In the language of the browser that taps.
    let token = said["data"]["taps"][1].as_str().unwrap();
    let german = [("accept-language", "de")];
    let other = kim.request(Method::POST, &format!("/a/{token}"), &german, None).await;
    assert_eq!(other.body, "Zu spät. Kim hat Purchasing geantwortet: 19 September\n");

    // A day later.
    let closes = app.ask(json!({ "questions": plain()["questions"], "timeout_seconds": 3600 })).await;
    let said = opened(&receiver, &phone, 2).await.message;
    time.pass_ms(DAY_MS);
    app.closed(closes).await;
    let late = tap(&kim, &said, 0).await;
    assert_eq!(
        (late.status, late.body.as_str()),
        (StatusCode::CONFLICT, "Too late. Purchasing goes on without an answer: Nobody answered in time.\n")
    );

    // After the sign-out.
    let left = app.ask(plain()).await;
    let said = until("it is pushed", async || {
        let all = receiver.received();
        let mut said = all.iter().map(|received| phone.open(received, &receiver.origin()).message);
        said.find(|said| said["tag"] == json!(left))
    })
    .await;
    kim.submit(&kim.get("/settings").await.form("/sign-out"), &[]).await;
    let gone = tap(&kim, &said, 0).await;
    assert_eq!(gone.status, StatusCode::GONE);
    assert!(gone.body.contains("Sign in instead"), "{}", gone.body);
    assert_eq!(app.read(left).await.state, AskState::Open);
}

#[tokio::test]
async fn n13_of_a_private_space_nothing_is_in_the_message() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let phone = Subscriber::new();
    phone.on(&app.kim().await, &receiver.url("/push/kim")).await;
    app.admin().set_private(app.space, true).unwrap();
    let run =
        app.open_run(NewRun { space_id: Some(app.space), title: Some("Payroll".into()), ..NewRun::default() }).await;
    let ask_id = app.ask_in(run.run_id, plain()).await;
    let open = opened(&receiver, &phone, 0).await.message;
    assert_eq!((&open["body"], &open["actions"]), (&json!("A question waits in the inbox."), &json!([])));
    app.settle(ask_id, json!([{ "question_id": "when", "values": ["26"] }])).await;
    let over = opened(&receiver, &phone, 1).await.message;
    for said in [open, over] {
        let text = said.to_string();
        assert!(!["Which day", "September", "Payroll"].iter().any(|word| text.contains(word)), "{text}");
    }
}

#[tokio::test]
async fn n14_where_no_browser_is_reached_the_question_says_so_and_stays() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let kim = app.kim().await;
    receiver.answer_with(&[400, 413]);
    for device in ["one", "two"] {
        Subscriber::new().on(&app.kim().await, &receiver.url(&format!("/push/{device}"))).await;
    }
    let ask_id = app.ask(plain()).await;
    until("nobody could be told", async || (!app.read(ask_id).await.reachable).then_some(())).await;
    assert_eq!(outcomes(&app, ask_id).await, ["refused", "refused"]);
    let page = kim.get("/").await;
    page.says("Which day should I confirm?");
    page.says("Nobody could be told of this outside the inbox.");
}

#[tokio::test]
async fn n18_nothing_is_pushed_to_a_browser_after_its_session() {
    let receiver = Receiver::start().await;
    let (app, time) = by_hand(&receiver).await;
    let (desk, elsewhere, robin) = (app.kim().await, app.kim().await, app.signed_in(app.robin).await);
    Subscriber::new().on(&desk, &receiver.url("/push/signed-out")).await;
    Subscriber::new().on(&elsewhere, &receiver.url("/push/ended")).await;
    Subscriber::new().on(&robin, &receiver.url("/push/disabled")).await;
    desk.submit(&desk.get("/settings").await.form("/sign-out"), &[]).await;
    assert_eq!(places(&app).await, 1);
    let desk = app.kim().await;
    Subscriber::new().on(&desk, &receiver.url("/push/idle")).await;
    desk.submit(&desk.get("/settings").await.form("/settings/sessions/end-others"), &[]).await;
    assert_eq!(places(&app).await, 1);
    app.admin().disable(ParticipantId::Person(app.robin)).unwrap();
    time.pass_ms(14 * DAY_MS + 1);
    assert_eq!(places(&app).await, 0, "fourteen days without a visit");

    let phone = Subscriber::new();
    app.tell(app.kim, Channel::WebPush, &receiver.url("/push/other"), phone.secret("en")).await;
    let ask_id = app.ask(plain()).await;
    assert_eq!(opened(&receiver, &phone, 0).await.message["tag"], json!(ask_id));
    app.settle(ask_id, json!([])).await;
    receiver.wait_for(2).await;
    assert!(receiver.received().iter().all(|received| received.path == "/push/other"));
}

#[tokio::test]
async fn what_waits_for_a_browser_is_not_sent_once_its_session_has_ended() {
    let receiver = Receiver::start().await;
    let (app, time) = by_hand(&receiver).await;
    let kim = app.kim().await;
    Subscriber::new().on(&kim, &receiver.url("/push/kim")).await;
    receiver.answer_with(&[503]);
    let ask_id = app.ask(plain()).await;
    with_outcomes(&app, ask_id, &["failed"]).await;
    kim.submit(&kim.get("/settings").await.form("/sign-out"), &[]).await;
    time.pass_ms(60_000);
    assert_eq!(app.store.next_notice().await.unwrap(), None);
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn the_key_is_made_once_and_the_token_names_who_runs_the_server() {
    let receiver = Receiver::start().await;
    let mut app = app(&receiver).await;
    let key = async |app: &App| -> Value {
        serde_json::from_str::<Value>(&app.kim().await.get(PUSH).await.body).unwrap()["key"].clone()
    };
    let before = key(&app).await;
    app.stop().await;
    app.reopen().await;
    app.serve_again().await;
    assert_eq!(key(&app).await, before);
    let other = App::configured(|config| {
        config.allow_outbound = vec![receiver.origin()];
        config.public_url = Some("https://chips.example.com".parse().unwrap());
    })
    .await;
    let phone = Subscriber::new();
    other.tell(other.kim, Channel::WebPush, &receiver.url("/push/kim"), phone.secret("en")).await;
    other.ask(plain()).await;
    let said = opened(&receiver, &phone, 0).await;
    assert_eq!(said.subject, "https://chips.example.com");
    assert_ne!(json!(said.key), before);
}

#[tokio::test]
async fn messages_speak_the_language_that_was_chosen_for_the_browser() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let (kim, phone) = (app.kim().await, Subscriber::new());
    phone.on(&kim, &receiver.url("/push/kim")).await;
    let form = kim.get("/settings").await.form("/settings/device");
    kim.submit(&form, &[("language", "de"), ("undo", "4"), ("keys", "on")]).await;
    let ask_id =
        app.ask(json!({ "questions": [question("a", "Eins?", json!({})), question("b", "Zwei?", json!({}))] })).await;
    let said = opened(&receiver, &phone, 0).await.message;
    assert_eq!(
        (&said["title"], &said["body"]),
        (&json!("Purchasing fragt · Weekly restock"), &json!("Eins?\nund eine weitere Frage"))
    );
    app.settle(ask_id, json!([])).await;
    assert_eq!(opened(&receiver, &phone, 1).await.message["title"], "Purchasing hat die Frage zurückgezogen");
}

#[tokio::test]
async fn the_longest_question_fits() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let phone = Subscriber::new();
    phone.on(&app.kim().await, &receiver.url("/push/kim")).await;
    let label = |mark: char| format!("{mark}{}", "👩‍👩‍👧‍👦".repeat(40));
    let options = json!([{ "value": "a", "label": label('a') }, { "value": "b", "label": label('b') }]);
    let run = app.run(&"𝕣".repeat(200)).await;
    let asked = question("when", &"🦀\n\"".repeat(1300), json!({ "options": options }));
    app.ask_in(run.run_id, json!({ "questions": [asked] })).await;
    let said = opened(&receiver, &phone, 0).await.message;
    assert!(said["body"].as_str().unwrap().ends_with('…'));
    assert_eq!(said["data"]["taps"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_browser_is_added_by_itself_alone_and_what_is_wrong_is_told() {
    let receiver = Receiver::start().await;
    let app = App::start().await;
    let (kim, phone) = (app.kim().await, Subscriber::new());
    for (address, says) in [
        ("", "Give a whole address"),
        ("http://example.com/push", "is not https"),
        ("https://127.0.0.1/push", "no public address"),
        ("https://[::ffff:10.0.0.1]/push", "no public address"),
        (&receiver.url("/push"), "is not https"),
    ] {
        let refused = phone.subscribe(&kim, address).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{address}");
        assert!(refused.body.contains(says), "{address}: {}", refused.body);
    }
    let offer: Value = serde_json::from_str(&kim.get(PUSH).await.body).unwrap();
    let token = offer["token"].as_str().unwrap();
    let [(_, p256dh), (_, auth)] = phone.keys();
    let fields = |token: &str, p256dh: &str, auth: &str| {
        let fields = [("token", token), ("endpoint", "https://push.example.com/1"), ("p256dh", p256dh), ("auth", auth)];
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    };
    let post = async |body: String, origin: &str| {
        kim.request(Method::POST, PUSH, &[("origin", origin)], Some(body)).await.status
    };
    let own = app.url("");
    assert_eq!(post(fields(token, &p256dh, "AAAA"), &own).await, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(post(fields(token, &p256dh[4..], &auth), &own).await, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(post(fields("0123", &p256dh, &auth), &own).await, StatusCode::FORBIDDEN);
    assert_eq!(post(fields(token, &p256dh, &auth), "https://evil.example").await, StatusCode::FORBIDDEN);
    assert_eq!(places(&app).await, 0);
    assert_eq!(post(fields(token, &p256dh, &auth), &own).await, StatusCode::NO_CONTENT);
    assert_eq!(places(&app).await, 1);
    assert_eq!(app.browser().get(PUSH).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_test_message_reaches_the_browser_and_the_settings_say_which_one_it_is() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let (kim, phone) = (app.kim().await, Subscriber::new());
    phone.on(&kim, &receiver.url("/push/kim")).await;
    let page = kim.get("/settings").await;
    page.says("Firefox on Linux");
    let accepted = kim.submit(&page.form("/settings/told/test"), &[]).await;
    accepted.says("The test message was accepted.");
    let said = opened(&receiver, &phone, 0).await;
    assert_eq!((&said.message["tag"], &said.message["data"]["url"]), (&json!("test"), &json!("/settings")));
    assert_eq!((said.ttl, said.topic), (60, None));
    kim.submit(&page.form("/settings/told/remove"), &[]).await;
    assert_eq!(places(&app).await, 0);
}

#[tokio::test]
async fn who_answers_beside_the_messages_alone_stays_signed_in() {
    let receiver = Receiver::start().await;
    let (app, time) = by_hand(&receiver).await;
    let (kim, phone) = (app.kim().await, Subscriber::new());
    phone.on(&kim, &receiver.url("/push/kim")).await;
    time.pass_ms(13 * DAY_MS);
    app.ask(plain()).await;
    let said = opened(&receiver, &phone, 0).await.message;
    assert_eq!(tap(&kim, &said, 0).await.status, StatusCode::OK);
    time.pass_ms(13 * DAY_MS);
    until("the session lives on", async || (places(&app).await == 1).then_some(())).await;
}
