//! A topic of ntfy: what is published to it, and what is tapped there.

use chips_core::notify::Channel;
use chips_protocol::api::{AskState, NewRun};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::receiver::{Received, Receiver};
use crate::support::{App, Page, plain, question, until};

async fn app(receiver: &Receiver) -> App {
    App::configured(|config| config.allow_outbound = vec![receiver.origin()]).await
}

async fn topic(app: &App, receiver: &Receiver) -> i64 {
    app.tell(app.kim, Channel::Ntfy, &receiver.url("/chips-kim"), json!({ "token": "tk_secret" })).await
}

/// What ntfy's server checks of a message that is published as JSON, and what it was.
fn published(received: &Received) -> Value {
    assert_eq!(received.path, "/", "JSON goes to the root of the server");
    let said = received.json();
    assert_eq!(said["topic"], "chips-kim");
    assert!((1..=5).contains(&said["priority"].as_u64().unwrap()), "{said}");
    assert!(said["title"].is_string() && said["message"].is_string() && said["tags"][0].is_string(), "{said}");
    let id = said["sequence_id"].as_str().unwrap();
    assert!(id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{id}");
    let actions = said["actions"].as_array().unwrap();
    assert!(actions.len() <= 3);
    for action in actions {
        assert_eq!((&action["action"], &action["method"]), (&json!("http"), &json!("POST")));
        assert!(!action["label"].as_str().unwrap().is_empty() && action["url"].as_str().unwrap().len() < 400);
    }
    said
}

/// Taps a button, as ntfy's app does it: a POST to its address and nothing else.
async fn tap(app: &App, said: &Value, button: usize) -> Page {
    let url = said["actions"][button]["url"].as_str().unwrap();
    app.browser().request(Method::POST, url.strip_prefix(&app.url("")).unwrap(), &[], None).await
}

#[tokio::test]
async fn a_question_is_published_with_its_options_and_replaced_by_its_outcome() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    topic(&app, &receiver).await;
    let ask_id = app.ask(plain()).await;
    let first = receiver.wait_for(1).await.remove(0);
    assert_eq!(first.header("authorization"), "Bearer tk_secret");
    let said = published(&first);
    assert_eq!(said["title"], "Purchasing asks · Weekly restock");
    assert_eq!(said["message"], "Which day should I confirm?");
    assert_eq!(said["priority"], 4, "nothing goes on without an answer");
    assert_eq!(said["click"], app.url(&format!("/asks/{ask_id}")));
    assert_eq!(said["sequence_id"], ask_id.to_string());
    assert_eq!(
        (&said["actions"][0]["label"], &said["actions"][1]["label"]),
        (&json!("19 September"), &json!("26 September"))
    );

    let answered = tap(&app, &said, 1).await;
    assert_eq!((answered.status, answered.body.as_str()), (StatusCode::OK, "Answered: 26 September\n"));
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "when", "values": ["26"] }]));
    let ask = app.read(ask_id).await;
    assert_eq!((ask.state, ask.answerer.unwrap().name.as_str()), (AskState::Answered, "Kim"));

    let over = published(&receiver.wait_for(2).await[1]);
    assert_eq!((&over["sequence_id"], &over["priority"]), (&json!(ask_id), &json!(1)));
    assert_eq!((&over["title"], &over["message"]), (&json!("Kim answered Purchasing"), &json!("26 September")));
    assert_eq!(over["actions"], json!([]));
}

#[tokio::test]
async fn n01_what_goes_on_by_itself_is_published_less_loudly_and_what_does_not_fit_has_no_buttons() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    topic(&app, &receiver).await;
    let options: Vec<Value> =
        (0..4).map(|n| json!({ "value": n.to_string(), "label": format!("Option {n}") })).collect();
    let many = question("many", "Which of four?", json!({ "options": options, "default_value": "0" }));
    app.ask(json!({ "questions": [many], "timeout_seconds": 600 })).await;
    let said = published(&receiver.wait_for(1).await[0]);
    assert_eq!((&said["priority"], &said["actions"]), (&json!(3), &json!([])));
}

#[tokio::test]
async fn n02_n03_n04_each_question_is_a_notification_of_its_own_and_taken_back_everywhere_by_its_own_name() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let topics = ["chips-phone", "chips-tablet", "chips-watch"];
    for topic in topics {
        app.tell(app.kim, Channel::Ntfy, &receiver.url(&format!("/{topic}")), json!({})).await;
    }
    let asks = [app.ask(plain()).await, app.ask(plain()).await, app.ask(plain()).await];
    let all = receiver.wait_for(9).await;
    // Which topic, which question, and how loudly.
    let said = |received: &Received| {
        let said = received.json();
        (said["topic"].clone(), said["sequence_id"].clone(), said["priority"].clone())
    };
    for topic in topics {
        for ask_id in asks {
            let wanted = (json!(topic), json!(ask_id), json!(4));
            assert_eq!(all.iter().filter(|received| said(received) == wanted).count(), 1, "{wanted:?}");
        }
    }
    let first = all.iter().map(Received::json).find(|said| said["sequence_id"] == json!(asks[0])).unwrap();
    assert_eq!(tap(&app, &first, 0).await.status, StatusCode::OK);
    let later = app.ask(plain()).await;
    let all = receiver.wait_for(9 + 3 + 3).await;
    let quiet: Vec<_> = all.iter().map(said).filter(|(_, _, priority)| *priority == json!(1)).collect();
    assert_eq!(quiet.len(), 3, "{quiet:?}");
    for topic in topics {
        assert!(quiet.contains(&(json!(topic), json!(asks[0]), json!(1))), "{quiet:?}");
        assert!(all.iter().map(said).any(|told| told == (json!(topic), json!(later), json!(4))));
    }
}

#[tokio::test]
async fn n12_the_first_tap_counts_and_every_other_is_told_what_became_of_it() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let endpoint = topic(&app, &receiver).await;
    let ask_id = app.ask(plain()).await;
    let said = published(&receiver.wait_for(1).await[0]);

    // To look at the address answers nothing.
    let url = said["actions"][0]["url"].as_str().unwrap();
    let looked = app.browser().get(url.strip_prefix(&app.url("")).unwrap()).await;
    assert_eq!((looked.status, app.read(ask_id).await.state), (StatusCode::METHOD_NOT_ALLOWED, AskState::Open));

    for _ in 0..2 {
        let twice = tap(&app, &said, 0).await;
        assert_eq!((twice.status, twice.body.as_str()), (StatusCode::OK, "Answered: 19 September\n"));
        assert_eq!(twice.header("access-control-allow-origin"), "*");
    }
    let other = tap(&app, &said, 1).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(other.body, "Too late. Kim answered Purchasing: 19 September\n");
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "when", "values": ["19"] }]));

    // Another question, and its topic is removed before the tap.
    let left = app.ask(plain()).await;
    let all: Vec<Value> = receiver.wait_for(3).await.iter().map(published).collect();
    let said = all.into_iter().find(|said| said["sequence_id"] == json!(left)).unwrap();
    app.store.remove_endpoint(&app.identity(app.kim), endpoint).await.unwrap();
    let gone = tap(&app, &said, 0).await;
    assert_eq!(gone.status, StatusCode::GONE);
    assert!(gone.body.contains(&format!("Sign in instead: {}", app.url(&format!("/asks/{left}")))), "{}", gone.body);
    assert_eq!(app.read(left).await.state, AskState::Open);
    assert_eq!(app.browser().request(Method::POST, "/a/AAAA", &[], None).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn n12_a_tap_after_the_time_is_told_so() {
    let receiver = Receiver::start().await;
    let (app, time) = App::by_hand_with(|config| config.allow_outbound = vec![receiver.origin()]).await;
    topic(&app, &receiver).await;
    let day = 24 * 3600;
    let closes = app.ask(json!({ "questions": plain()["questions"], "timeout_seconds": day })).await;
    let stays = app.ask(plain()).await;
    let said: Vec<Value> = receiver.wait_for(2).await.iter().map(published).collect();
    let about =
        |ask_id: chips_protocol::AskId| said.iter().find(|said| said["sequence_id"] == json!(ask_id)).unwrap().clone();
    time.pass_ms(day * 1000);
    app.closed(closes).await;
    let late = tap(&app, &about(closes), 0).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert_eq!(late.body, "Too late. Purchasing goes on without an answer: Nobody answered in time.\n");
    // It is kept like one from the page, once, and decides nothing.
    assert_eq!(tap(&app, &about(closes), 0).await.status, StatusCode::CONFLICT);
    let kept = app.read(closes).await;
    assert_eq!((kept.state, kept.late_answers.len()), (AskState::TimedOut, 1));
    assert_eq!(kept.late_answers[0].answers[0].values, ["19"]);
    let kim = app.kim().await;
    kim.get(&format!("/asks/{closes}")).await.says("Too late, from you: “19 September”. It did not count");
    time.pass_ms(6 * day * 1000);
    let old = tap(&app, &about(stays), 0).await;
    assert_eq!(old.status, StatusCode::GONE, "{}", old.body);
    assert!(old.body.starts_with("This button is too old. Answer in the inbox instead: http://"), "{}", old.body);
    assert_eq!(app.read(stays).await.state, AskState::Open);
    // A week after the deadline it is too old even for that.
    time.pass_ms(day * 1000);
    assert_eq!(tap(&app, &about(closes), 1).await.status, StatusCode::CONFLICT);
    assert_eq!(app.read(closes).await.late_answers.len(), 1);
}

#[tokio::test]
async fn no_label_and_no_answer_makes_a_line_of_its_own() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    topic(&app, &receiver).await;
    let mut question = question("when", "Ship?\r\nToday.\u{202e}x", json!({ "allow_free_text": true }));
    question["options"][0]["label"] = json!("Yes\n\nRobin answered: No");
    let ask_id = app.ask(json!({ "questions": [question] })).await;
    let said = published(&receiver.wait_for(1).await[0]);
    assert_eq!(said["message"], "Ship?\nToday.\\u{202e}x", "a prompt has its lines, and what turns it round is shown");
    assert_eq!(said["actions"][0]["label"], "Yes Robin answered: No");
    app.settle(ask_id, json!([{ "question_id": "when", "values": [], "free_text": "No\r\nRobin answered: Yes" }]))
        .await;
    let closed = published(&receiver.wait_for(2).await[1]);
    assert_eq!(closed["message"], "“No Robin answered: Yes”");
}

#[tokio::test]
async fn n12_who_may_not_sign_in_any_more_answers_nothing() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    topic(&app, &receiver).await;
    let ask_id = app.ask(plain()).await;
    let said = published(&receiver.wait_for(1).await[0]);
    app.admin().disable(chips_protocol::ParticipantId::Person(app.kim)).unwrap();
    assert_eq!(tap(&app, &said, 0).await.status, StatusCode::GONE);
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
}

#[tokio::test]
async fn n13_a_private_space_s_question_is_published_without_words_and_buttons() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    topic(&app, &receiver).await;
    app.admin().set_private(app.space, true).unwrap();
    let run =
        app.open_run(NewRun { space_id: Some(app.space), title: Some("Payroll".into()), ..NewRun::default() }).await;
    app.ask_in(run.run_id, plain()).await;
    let first = receiver.wait_for(1).await.remove(0);
    let said = published(&first);
    assert_eq!((&said["message"], &said["actions"]), (&json!("A question waits in the inbox."), &json!([])));
    let text = String::from_utf8(first.body.to_vec()).unwrap();
    for word in ["Which day", "September", "Payroll"] {
        assert!(!text.contains(word), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_is_no_ntfy_is_told_and_one_that_is_busy_is_tried_again() {
    let receiver = Receiver::start().await;
    let (app, time) = App::by_hand_with(|config| config.allow_outbound = vec![receiver.origin()]).await;
    topic(&app, &receiver).await;
    receiver.answer_with(&[429, 200, 404]);
    let ask_id = app.ask(plain()).await;
    let outcomes = async |ask_id| -> Vec<String> {
        let attempts = app.store.attempts(&app.identity(app.kim), ask_id).await.unwrap().unwrap();
        attempts.into_iter().map(|attempt| attempt.outcome).collect()
    };
    until("it was tried", async || (outcomes(ask_id).await == ["failed"]).then_some(())).await;
    time.pass_ms(6_000);
    until("it was tried again", async || (outcomes(ask_id).await == ["failed", "accepted"]).then_some(())).await;
    let other = app.ask(plain()).await;
    until("it was refused", async || (outcomes(other).await == ["refused"]).then_some(())).await;
    let endpoints = app.store.endpoints(&app.identity(app.kim)).await.unwrap();
    assert_eq!((endpoints[0].disabled, endpoints[0].trouble.as_deref()), (false, Some("404 Not Found")));
}

#[tokio::test]
async fn messages_speak_the_language_that_was_chosen_last() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let kim = app.kim().await;
    let add = kim.get("/settings").await.form("/settings/told/ntfy");
    let server = receiver.origin();
    kim.submit(&add, &[("server", server.as_str()), ("topic", "chips-kim"), ("access", "tk_secret")]).await;
    app.ask(plain()).await;
    assert_eq!(published(&receiver.wait_for(1).await[0])["title"], "Purchasing asks · Weekly restock");
    let device = kim.get("/settings").await.form("/settings/device");
    kim.submit(&device, &[("language", "de"), ("undo", "4"), ("keys", "on")]).await;
    app.ask(plain()).await;
    let second = receiver.wait_for(2).await.remove(1);
    assert_eq!(published(&second)["title"], "Purchasing fragt · Weekly restock");
    assert_eq!(second.header("authorization"), "Bearer tk_secret", "and nothing else has changed");
    assert_eq!(app.store.endpoints(&app.identity(app.kim)).await.unwrap().len(), 1);
}
