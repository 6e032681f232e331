//! A chat on Telegram: how it is connected, what it shows of a question over its whole life, and whose taps count.

use chips_core::notify::Channel;
use chips_protocol::AskId;
use chips_protocol::api::{AskState, NewRun};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{App, Browser, Page, plain, question, until};
use crate::telegram_api::{BotApi, Shown};

/// Kim's chat, and somebody else's.
const KIM: i64 = 7001;
const OTHER: i64 = 7002;

async fn app(api: &BotApi) -> App {
    App::configured(|config| api.configure(config)).await
}

/// A chat of a person's, as it is after it was connected.
async fn chat(app: &App, person: chips_protocol::PersonId, chat: i64) -> i64 {
    app.tell(person, Channel::Telegram, &chat.to_string(), json!({ "lang": "en" })).await
}

async fn outcomes(app: &App, ask_id: AskId) -> Vec<(String, String)> {
    let attempts = app.store.attempts(&app.identity(app.kim), ask_id).await.unwrap().unwrap();
    attempts.into_iter().map(|attempt| (attempt.kind.as_str().to_owned(), attempt.outcome)).collect()
}

/// The only message of a chat, once it is changed.
async fn changed(api: &BotApi, chat: i64) -> Shown {
    until("the message is changed", async || api.shown(chat).into_iter().find(|shown| shown.edited)).await
}

/// Makes a link in the settings, and gives what stands behind `start=`.
async fn link(browser: &Browser) -> String {
    let settings = browser.get("/settings").await;
    let page = browser.submit(&settings.form("/settings/told/telegram"), &[]).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.body);
    let (_, rest) = page.body.split_once("href=\"https://t.me/chips_test_bot?start=").unwrap();
    let text = rest.split('"').next().unwrap().to_owned();
    // As Telegram takes it.
    assert!(
        text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
        "{text}"
    );
    text
}

#[tokio::test]
async fn a_question_is_a_message_with_its_options_and_is_changed_to_its_outcome() {
    let api = BotApi::start().await;
    let app = app(&api).await;
    chat(&app, app.kim, KIM).await;
    let ask_id = app.ask(plain()).await;
    let first = api.wait_for(KIM, 1).await.remove(0);
    let page = app.url(&format!("/asks/{ask_id}"));
    assert_eq!(
        first.text,
        format!("Purchasing asks · Weekly restock\nWhich day should I confirm?\n\n{page}"),
        "who, what and where, and nothing else"
    );
    assert_eq!(
        first.buttons.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(),
        ["19 September", "26 September"]
    );
    assert!(!first.silent);

    assert_eq!(api.taps(KIM, &first.buttons[1].1).await, ("Answered: 26 September".to_owned(), true));
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "when", "values": ["26"] }]));
    assert_eq!(app.read(ask_id).await.answerer.unwrap().name, "Kim");
    let over = changed(&api, KIM).await;
    assert_eq!(over.text, format!("Kim answered Purchasing\n26 September\n\n{page}"));
    assert_eq!(
        (over.id, over.buttons.len(), api.shown(KIM).len()),
        (first.id, 0, 1),
        "the message itself, and no other"
    );

    // What Telegram calls a message is of no use to people.
    let kim = app.kim().await;
    until("the story tells of it", async || {
        let page = kim.get(&format!("/asks/{ask_id}")).await;
        page.text().matches("(Telegram)").count().eq(&2).then_some(page)
    })
    .await;
    let page = kim.get(&format!("/asks/{ask_id}")).await;
    assert!(!page.text().contains(&format!(": {}", first.id)), "{}", page.text());
}

#[tokio::test]
async fn every_message_about_a_question_is_changed_when_it_closes_wherever_that_is() {
    let api = BotApi::start().await;
    let (app, time) = App::by_hand_with(|config| api.configure(config)).await;
    chat(&app, app.kim, KIM).await;
    chat(&app, app.robin, OTHER).await;
    let asked = question("when", "Which day?", json!({ "default_value": "19" }));
    let ask_id = app.ask(json!({ "questions": [asked], "timeout_seconds": 3600 })).await;
    api.wait_for(KIM, 1).await;
    api.wait_for(OTHER, 1).await;
    until("both are recorded", async || (outcomes(&app, ask_id).await.len() == 2).then_some(())).await;
    time.pass_ms(5 * 60_000 + 1_000);
    let shown = api.wait_for(KIM, 2).await;
    assert_eq!(shown[1].title(), "Purchasing still waits");
    assert_eq!((shown[1].reply_to, shown[1].buttons.len()), (Some(shown[0].id), 2), "it hangs on the first");
    api.wait_for(OTHER, 2).await;
    until("all are recorded", async || (outcomes(&app, ask_id).await.len() == 4).then_some(())).await;

    time.pass_ms(55 * 60_000);
    for chat in [KIM, OTHER] {
        let shown = until("all are changed", async || {
            Some(api.shown(chat)).filter(|shown| shown.iter().all(|shown| shown.edited))
        })
        .await;
        for shown in shown {
            let body = shown.text.lines().nth(1).unwrap();
            assert_eq!(shown.title(), "Purchasing goes on without an answer");
            assert_eq!(body, "Nobody answered in time. Default: 19 September", "never worded as somebody's choice");
            assert_eq!(shown.buttons.len(), 0);
        }
    }
}

#[tokio::test]
async fn n12_the_first_tap_counts_and_every_other_is_told_what_became_of_it() {
    let api = BotApi::start().await;
    let (app, time) = App::by_hand_with(|config| api.configure(config)).await;
    chat(&app, app.kim, KIM).await;
    let ask_id = app.ask(plain()).await;
    let first = api.wait_for(KIM, 1).await.remove(0);
    for _ in 0..2 {
        let (note, good) = api.taps(KIM, &first.buttons[0].1).await;
        assert_eq!((note.as_str(), good), ("Answered: 19 September", true), "a tap that comes twice is one");
    }
    let (note, good) = api.taps(KIM, &first.buttons[1].1).await;
    assert_eq!((note.as_str(), good), ("Too late. Kim answered Purchasing: 19 September", false));
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "when", "values": ["19"] }]));

    // Long after the deadline it is kept beside the question, and decides nothing.
    let closes = app.ask(json!({ "questions": plain()["questions"], "timeout_seconds": 3600 })).await;
    let second = api.wait_for(KIM, 2).await.remove(1);
    time.pass_ms(24 * 3_600_000);
    app.closed(closes).await;
    let (note, good) = api.taps(KIM, &second.buttons[0].1).await;
    assert_eq!(note, "Too late. Purchasing goes on without an answer: Nobody answered in time.");
    assert!(!good);
    let kept = app.read(closes).await;
    assert_eq!((kept.state, kept.late_answers.len()), (AskState::TimedOut, 1));

    // Without a deadline a button is good for as long as the question is.
    let stays = app.ask(plain()).await;
    let third = api.wait_for(KIM, 3).await.remove(2);
    time.pass_ms(30 * 24 * 3_600_000);
    assert_eq!(api.taps(KIM, &third.buttons[0].1).await, ("Answered: 19 September".to_owned(), true));
    assert_eq!(app.read(stays).await.state, AskState::Answered);
}

#[tokio::test]
async fn n13_a_private_space_s_question_is_sent_without_words_and_buttons() {
    let api = BotApi::start().await;
    let app = app(&api).await;
    chat(&app, app.kim, KIM).await;
    app.admin().set_private(app.space, true).unwrap();
    let run =
        app.open_run(NewRun { space_id: Some(app.space), title: Some("Payroll".into()), ..NewRun::default() }).await;
    let ask_id = app.ask_in(run.run_id, plain()).await;
    let shown = api.wait_for(KIM, 1).await.remove(0);
    assert_eq!(
        shown.text,
        format!("Purchasing asks\nA question waits in the inbox.\n\n{}", app.url(&format!("/asks/{ask_id}")))
    );
    assert_eq!(shown.buttons.len(), 0);
}

#[tokio::test]
async fn n15_what_is_written_answers_nothing_and_is_asked_which_question_is_meant() {
    let api = BotApi::start().await;
    let app = app(&api).await;
    chat(&app, app.kim, KIM).await;
    let asks = [app.ask(plain()).await, app.ask(plain()).await];
    api.wait_for(KIM, 2).await;
    for (count, written) in ["y", "1", "19 September", "/answer 19"].into_iter().enumerate() {
        api.writes(KIM, written);
        let said = api.wait_for(KIM, 3 + count).await.remove(2 + count);
        let wanted = "2 questions are open. Which one do you mean? What you write here answers none of them.";
        assert!(said.text.starts_with(wanted), "{written:?}: {}", said.text);
        assert_eq!(said.reply_to, Some(900));
    }
    for ask_id in asks {
        assert_eq!(app.read(ask_id).await.state, AskState::Open);
    }
    // With one open nothing is guessed either.
    app.settle(asks[0], json!([])).await;
    api.writes(KIM, "yes");
    let said = api.wait_for(KIM, 7).await.remove(6);
    assert!(said.text.starts_with("One question is open. What you write here does not answer it."), "{}", said.text);
    assert!(said.text.ends_with(&app.url(&format!("/asks/{}", asks[1]))), "{}", said.text);
    assert_eq!(app.read(asks[1]).await.state, AskState::Open);
}

#[tokio::test]
async fn n16_a_tap_counts_only_from_whose_chat_it_is() {
    let api = BotApi::start().await;
    let app = app(&api).await;
    let endpoint = chat(&app, app.kim, KIM).await;
    let ask_id = app.ask(plain()).await;
    let data = api.wait_for(KIM, 1).await[0].buttons[0].1.clone();
    let refused = async |user: i64, data: &str| {
        let (note, good) = api.taps(user, data).await;
        assert!(!good, "{user} {data}: {note}");
        assert_eq!(app.read(ask_id).await.state, AskState::Open, "{user} {data}");
        note
    };
    // Somebody who is nobody here, with the very button.
    assert!(refused(OTHER, &data).await.contains("Sign in instead"));
    // A member, with a button of another's chat, and one that makes up their own.
    let theirs = chat(&app, app.robin, OTHER).await;
    refused(OTHER, &data).await;
    // What is no button of Chips', or stands for no option.
    for bad in [
        "",
        "x",
        "1.1.1",
        &data.replace(&ask_id.to_string(), "qst_01J00000000000000000000000"),
        &format!("{ask_id}.{endpoint}.9"),
    ] {
        refused(KIM, bad).await;
    }
    // The chat was removed.
    app.store.remove_endpoint(&app.identity(app.kim), endpoint).await.unwrap();
    refused(KIM, &data).await;

    // A question that Robin may not see stays out of their reach, though they write the button themselves.
    let closed = app.admin().add_space(app.workspace_id, "Payroll", &[app.kim]).unwrap();
    let run = app.open_run(NewRun { space_id: Some(closed), ..NewRun::default() }).await;
    let hidden = app.ask_in(run.run_id, plain()).await;
    let (note, good) = api.taps(OTHER, &format!("{hidden}.{theirs}.0")).await;
    assert_eq!((note.as_str(), good), ("You can’t see this question any more.", false));
    assert_eq!(app.read(hidden).await.state, AskState::Open);

    // Robin may not sign in any more.
    app.admin().disable(chips_protocol::ParticipantId::Person(app.robin)).unwrap();
    refused(OTHER, &format!("{ask_id}.{theirs}.0")).await;
}

#[tokio::test]
async fn n17_long_labels_of_any_script_fit_and_stay_told_apart() {
    let api = BotApi::start().await;
    let app = app(&api).await;
    chat(&app, app.kim, KIM).await;
    let labelled = |labels: [String; 4]| {
        let options: Vec<Value> = (0..4).map(|n| json!({ "value": n.to_string(), "label": labels[n] })).collect();
        json!({ "questions": [{ "question_id": "q", "prompt": "Который? 👨‍👩‍👧‍👦", "options": options }] })
    };
    app.ask(labelled(std::array::from_fn(|n| format!("{n} {}", "Развернуть ".repeat(20))))).await;
    let shown = api.wait_for(KIM, 1).await.remove(0);
    assert_eq!(shown.buttons.len(), 4);
    assert!(api.taps(KIM, &shown.buttons[3].1).await.1);
    // What would look alike is no choice: it is made in the inbox.
    app.ask(labelled(std::array::from_fn(|n| format!("{} {n}", "Развернуть ".repeat(20))))).await;
    assert_eq!(api.wait_for(KIM, 2).await[1].buttons.len(), 0);
}

#[tokio::test]
async fn a_chat_is_connected_by_a_link_that_is_good_once_and_for_a_while() {
    let api = BotApi::start().await;
    let (app, time) = App::by_hand_with(|config| api.configure(config)).await;
    let kim = app.kim().await;
    let text = link(&kim).await;
    api.writes(KIM, &format!("/start {text}"));
    let said = api.wait_for(KIM, 1).await.remove(0);
    assert_eq!(
        said.text,
        "Connected. Kim is told of questions here from now on, and what is tapped here is Kim’s answer."
    );
    kim.get("/settings").await.says("@u7001 Telegram");
    app.ask(plain()).await;
    assert_eq!(api.wait_for(KIM, 2).await[1].buttons.len(), 2);

    // Another chat gets nothing by the same link; the same one is told so again and stays one.
    api.writes(OTHER, &format!("/start {text}"));
    let said = api.wait_for(OTHER, 1).await.remove(0);
    assert!(said.text.starts_with("This link is not good any more."), "{}", said.text);
    api.writes(KIM, &format!("/start {text}"));
    assert!(api.wait_for(KIM, 3).await[2].text.starts_with("Connected."));
    assert_eq!(app.store.endpoints(&app.identity(app.kim)).await.unwrap().len(), 1);

    let late = link(&kim).await;
    time.pass_ms(15 * 60_000);
    let mut bent = link(&kim).await;
    bent.replace_range(0..1, if bent.starts_with('A') { "B" } else { "A" });
    for (count, text) in [late.as_str(), &bent, "x", "%00"].into_iter().enumerate() {
        api.writes(OTHER, &format!("/start {text}"));
        let said = api.wait_for(OTHER, 2 + count).await.remove(1 + count);
        assert!(said.text.starts_with("This link is not good any more."), "{text}: {}", said.text);
    }
    assert_eq!(app.store.endpoints(&app.identity(app.kim)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_chat_is_one_person_s_the_last_who_connected_it() {
    let api = BotApi::start().await;
    let app = app(&api).await;
    let robin = app.signed_in(app.robin).await;
    chat(&app, app.kim, KIM).await;
    let german = robin.get("/settings").await;
    robin.submit(&german.form("/settings/device"), &[("language", "de"), ("undo", "4"), ("keys", "on")]).await;
    api.writes(KIM, &format!("/start {}", link(&robin).await));
    let said = api.wait_for(KIM, 1).await.remove(0);
    assert!(said.text.starts_with("Verbunden. Robin erfährt ab jetzt hier von Fragen"), "{}", said.text);
    assert!(said.text.ends_with("Kim erfährt hier nichts mehr."), "{}", said.text);
    assert_eq!(app.store.endpoints(&app.identity(app.kim)).await.unwrap().len(), 0);
    let ask_id = app.ask(plain()).await;
    let shown = api.wait_for(KIM, 2).await.remove(1);
    assert!(shown.title().starts_with("Purchasing fragt"), "{}", shown.text);
    assert!(api.taps(KIM, &shown.buttons[0].1).await.1);
    assert_eq!(app.read(ask_id).await.answerer.unwrap().name, "Robin");
}

#[tokio::test]
async fn strangers_and_groups_hear_next_to_nothing() {
    let api = BotApi::start().await;
    let app = app(&api).await;
    chat(&app, app.kim, KIM).await;
    app.ask(plain()).await;
    api.wait_for(KIM, 1).await;
    api.writes(OTHER, "/start");
    let said = api.wait_for(OTHER, 1).await.remove(0);
    assert_eq!(
        said.text,
        format!(
            "Nobody is told of anything here. To connect this chat, make a link in your settings: {}",
            app.url("/settings")
        )
    );
    api.writes(OTHER, "What is open?");
    let text = link(&app.kim().await).await;
    api.happens(json!({ "message": { "message_id": 1, "chat": { "id": -100, "type": "supergroup" },
        "from": { "id": KIM, "first_name": "Kim" }, "text": format!("/start {text}") } }));
    // Kinds of updates that are not asked for, and one whose shape is unknown.
    api.happens(json!({ "poll": { "id": "1" } }));
    api.happens(json!({ "message": "what is this?" }));
    let last = api.happens(json!({ "message": { "message_id": 2, "chat": { "id": KIM, "type": "private" },
        "from": { "id": KIM, "first_name": "Kim" }, "photo": [] } }));
    api.seen_to(last).await;
    assert_eq!((api.shown(OTHER).len(), api.shown(-100).len()), (1, 0));
    // A picture is something that is written, too.
    assert!(api.wait_for(KIM, 2).await[1].text.starts_with("One question is open."));
}

#[tokio::test]
async fn who_blocks_the_bot_is_told_nothing_until_they_connect_again() {
    let api = BotApi::start().await;
    let app = app(&api).await;
    chat(&app, app.kim, KIM).await;
    api.block(KIM, true);
    let ask_id = app.ask(plain()).await;
    until("it is gone", async || (outcomes(&app, ask_id).await == [("asked".into(), "gone".into())]).then_some(()))
        .await;
    assert!(!app.read(ask_id).await.reachable, "nobody was reached");
    let kim = app.kim().await;
    assert!(app.store.endpoints(&app.identity(app.kim)).await.unwrap()[0].disabled);
    api.block(KIM, false);
    api.writes(KIM, &format!("/start {}", link(&kim).await));
    assert!(api.wait_for(KIM, 1).await[0].text.starts_with("Connected."));
    app.ask(plain()).await;
    assert_eq!(api.wait_for(KIM, 2).await[1].buttons.len(), 2);
}

#[tokio::test]
async fn what_telegram_can_not_take_now_is_sent_later_and_one_message_that_is_gone_holds_up_none() {
    let api = BotApi::start().await;
    let (app, time) = App::by_hand_with(|config| api.configure(config)).await;
    chat(&app, app.kim, KIM).await;
    let busy = json!({ "ok": false, "error_code": 429, "description": "Too Many Requests: retry after 40", "parameters": { "retry_after": 40 } });
    api.refuse(&[(429, busy), (502, json!("no JSON of the Bot API"))]);
    let ask_id = app.ask(plain()).await;
    until("it is tried", async || (outcomes(&app, ask_id).await.len() == 1).then_some(())).await;
    time.pass_ms(30_000);
    let other = app.ask(plain()).await;
    until("the other is tried", async || (!outcomes(&app, other).await.is_empty()).then_some(())).await;
    assert_eq!(outcomes(&app, ask_id).await.len(), 1, "it is left alone for as long as it asks");
    time.pass_ms(60_000);
    let shown = api.wait_for(KIM, 2).await;
    let about = |ask_id: AskId| shown.iter().find(|shown| shown.text.contains(&ask_id.to_string())).unwrap().clone();
    assert!(api.taps(KIM, &about(ask_id).buttons[0].1).await.1);
    until("it is changed", async || api.shown(KIM).iter().find(|shown| shown.edited).map(|_| ())).await;
    let outcomes = outcomes(&app, ask_id).await;
    assert_eq!(outcomes[0], ("asked".into(), "failed".into()));
}

#[tokio::test]
async fn what_happens_while_nobody_serves_is_seen_to_after_the_start_and_what_is_too_long_is_passed_over() {
    let api = BotApi::start().await;
    let mut app = app(&api).await;
    chat(&app, app.kim, KIM).await;
    let ask_id = app.ask(plain()).await;
    let data = api.wait_for(KIM, 1).await[0].buttons[0].1.clone();
    until("it is recorded", async || (outcomes(&app, ask_id).await.len() == 1).then_some(())).await;
    app.stop().await;
    // Longer than what is read of an answer, for everybody who writes in no Latin script.
    for _ in 0..3 {
        api.writes(KIM, &"я".repeat(15_000));
    }
    let number = api.happens(json!({ "callback_query": {
        "id": "tapped", "from": { "id": KIM, "first_name": "Kim" }, "chat_instance": "1", "data": data } }));
    app.reopen().await;
    app.serve_again_with(|config| api.configure(config)).await;
    api.seen_to(number).await;
    assert_eq!(app.answers(ask_id).await, json!([{ "question_id": "when", "values": ["19"] }]));
    assert!(changed(&api, KIM).await.title().contains("Kim answered"));
}

#[tokio::test]
async fn a_bot_that_can_not_be_asked_is_said_in_the_settings() {
    let api = BotApi::start().await;
    let app = App::configured(|config| {
        api.configure(config);
        config.telegram.as_mut().unwrap().token = chips_server::config::Secret::new("99:wrong");
    })
    .await;
    let kim = app.kim().await;
    let page: Page = kim.submit(&kim.get("/settings").await.form("/settings/told/telegram"), &[]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("Telegram could not be asked: Unauthorized");
    assert!(!page.body.contains("99:wrong"));
    // Where the server has no bot there is nothing to connect.
    let without = App::start().await;
    let page = without.kim().await.get("/settings").await;
    assert!(!page.body.contains("/settings/told/telegram"));
}

#[tokio::test]
async fn a_message_that_its_person_deleted_is_told_as_such_and_the_others_are_changed() {
    let api = BotApi::start().await;
    let (app, time) = App::by_hand_with(|config| api.configure(config)).await;
    chat(&app, app.kim, KIM).await;
    let ask_id = app.ask(plain()).await;
    let first = api.wait_for(KIM, 1).await.remove(0);
    until("it is recorded", async || (outcomes(&app, ask_id).await.len() == 1).then_some(())).await;
    time.pass_ms(5 * 60_000 + 1_000);
    api.wait_for(KIM, 2).await;
    until("the reminder is recorded", async || (outcomes(&app, ask_id).await.len() == 2).then_some(())).await;
    api.delete(KIM, first.id);
    app.settle(ask_id, json!([{ "question_id": "when", "values": ["19"] }])).await;
    assert_eq!(changed(&api, KIM).await.title(), "Purchasing settled its question");
    let told = until("the outcome is recorded", async || {
        let outcomes = outcomes(&app, ask_id).await;
        (outcomes.len() == 3).then_some(outcomes)
    })
    .await;
    assert_eq!(told[2], ("closed".into(), "refused".into()));
}
