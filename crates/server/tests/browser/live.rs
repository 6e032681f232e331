//! Several people, several pages, and a connection that comes and goes.

use chips_protocol::api::AskState;
use serde_json::json;

use crate::screen::{Screen, Special};
use crate::support::{App, plain, question, with_text};

#[tokio::test]
async fn p01_what_has_no_deadline_is_still_open_after_three_days() {
    let (app, time) = App::by_hand().await;
    let ask_id = app.ask(plain()).await;
    let screen = Screen::kim(&app).await;
    screen.read("1 question waits for you").await;
    let head = app.head();
    time.pass_ms(3 * 24 * 60 * 60 * 1000);
    screen.open("/").await;
    screen.read("1 question waits for you").await;
    screen.see(".card.open .chip").await;
    assert_eq!((app.read(ask_id).await.state, app.head()), (AskState::Open, head), "nothing was invented");
    screen.click(".chip[value='0']").await;
    screen.read("You answered “19 September”").await;
}

#[tokio::test]
async fn what_was_told_of_and_could_not_be_fetched_is_fetched_again() {
    let app = App::start().await;
    let first = app.ask(plain()).await;
    let screen = Screen::kim(&app).await;
    screen.see(&format!("#{first} .chip")).await;
    let lost = "window.lost = 0;
        const real = window.fetch;
        window.fetch = (url, ...more) => {
            if (!`${url}`.startsWith('/fragments/asks/') || window.lost >= 2) return real(url, ...more);
            window.lost++;
            return Promise.reject(new TypeError('the network is away'));
        };";
    screen.run(lost).await;
    let second = app.ask(plain()).await;
    app.settle(first, json!([])).await;
    screen.until("window.lost === 2").await;
    screen.see(&format!("#{second} .chip")).await;
    screen.until(&format!("document.getElementById('{first}')?.dataset.state !== 'open'")).await;
}

#[tokio::test]
async fn p24_two_hundred_open_questions_are_in_order_and_fill_themselves_on_the_way_down() {
    let app = App::start().await;
    let busy = app.run("Busy").await;
    let ask = |n: usize| json!({ "questions": [question("q", &format!("Number {n}?"), json!({ "default_value": "19" }))], "timeout_seconds": 10_000 - n });
    for n in 0..200 {
        let ask = if n % 4 == 0 {
            ask(n)
        } else {
            json!({ "questions": [question("q", &format!("Number {n}?"), json!({}))] })
        };
        if n % 50 == 1 {
            app.ask_in(busy.run_id, ask).await
        } else {
            app.ask(ask).await
        };
    }
    let screen = Screen::kim(&app).await;
    screen.read("150 questions wait for you").await;
    screen.read("50 more go on without you").await;
    screen.until("document.title.startsWith('(200) ')").await;
    let prompts =
        screen.run("return [...document.querySelectorAll('.card.open .prompt')].map((it) => it.innerText)").await;
    let prompts: Vec<&str> = prompts.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(prompts[..5], ["Number 1?", "Number 51?", "Number 101?", "Number 151?", "Number 2?"]);
    assert_eq!(prompts[150..152], ["Number 196?", "Number 192?"]);
    assert_eq!(screen.run("return document.querySelectorAll('.again').length").await, json!(3), "one run lies stacked");
    // The last that waits is only a name until it comes into view.
    let last = "[...document.querySelectorAll('[data-shelf=waiting] .card')].at(-1)";
    screen.until(&format!("'stub' in {last}.dataset")).await;
    screen.run(&format!("{last}.scrollIntoView()")).await;
    screen.until(&format!("{last}.querySelector('.chip')")).await;
    screen.settle().await;
    screen.run(&format!("{last}.querySelector('.chip').click()")).await;
    screen.read("You answered “19 September”").await;
}

#[tokio::test]
async fn what_is_sifted_stays_sifted() {
    let app = App::start().await;
    let backups = app.admin().add_harness(app.workspace_id, "Backups").unwrap().id;
    let shop = app.ask(plain()).await;
    let screen = Screen::kim(&app).await;
    screen.see(&format!("#{shop}")).await;
    assert_eq!(screen.run("return document.querySelector('.sift')").await, json!(null), "nothing to tell apart");
    let other = app.ask_as(backups, plain()).await;
    screen.see(&format!("#{other}")).await;
    screen.open("/").await;
    screen.width(320).await;
    screen.see(".sift").await;
    screen.until("document.querySelector('.sift').clientHeight <= 48").await;
    screen.click(".sift summary").await;
    screen.fits().await;
    screen.run(&format!("document.querySelector('[name=harness]').value = '{backups}'")).await;
    screen.click(".sift button").await;
    screen
        .until(&format!("location.search.includes('{backups}') && document.querySelectorAll('.card').length === 1"))
        .await;
    screen.until("document.title.startsWith('(2) ')").await;
    screen.until("document.querySelector('.sift summary').innerText === 'Filter: Backups'").await;
    // What comes is sifted too.
    let hidden = app.ask(plain()).await;
    let shown = app.ask_as(backups, plain()).await;
    screen.see(&format!("#{shown}")).await;
    assert_eq!(screen.run(&format!("return document.getElementById('{hidden}')")).await, json!(null));
    screen.driver.refresh().await.unwrap();
    screen.see(&format!("#{shown}")).await;
    screen.until("document.querySelectorAll('.card').length === 2").await;
    screen.open("/?state=going").await;
    screen.read("No open question fits.").await;
    screen.click(".sift a").await;
    screen.until("document.querySelectorAll('.card').length === 4").await;
}

#[tokio::test]
async fn past_two_hundred_the_title_and_the_badges_still_say_how_many_there_are() {
    let app = App::start().await;
    let run = app.run("Stocktaking").await;
    let mut last = None;
    for n in 0..201 {
        last = Some(
            app.ask_in(run.run_id, json!({ "questions": [question("q", &format!("Shelf {n}?"), json!({}))] })).await,
        );
    }
    let last = last.unwrap();
    let before = "window.badges = []; Navigator.prototype.setAppBadge = async (n) => { window.badges.push(n); };";
    let screen = Screen::special(&app, Special { before: Some(before), ..Special::default() }).await;
    screen.until("document.title === '(201) Open · Chips' && window.badges.at(-1) === 201").await;
    screen.until("document.querySelector('[data-count]').textContent === '201'").await;
    screen.read("201 questions wait for you").await;
    screen.until("document.querySelectorAll('.card.open').length === 200").await;
    // What comes counts at once, and so does what is closed on another page.
    let more = app.ask(plain()).await;
    screen.until("document.title === '(202) Open · Chips' && window.badges.at(-1) === 202").await;
    app.settle(last, json!([])).await;
    screen.until("document.title === '(201) Open · Chips' && window.badges.at(-1) === 201").await;
    app.settle(more, json!([])).await;
    screen.until("document.title === '(200) Open · Chips' && window.badges.at(-1) === 200").await;
}

#[tokio::test]
async fn p03_a_question_answered_elsewhere_locks_and_names_who_and_what() {
    let app = App::start().await;
    let ask_id = app.ask(with_text()).await;
    let screen = Screen::kim(&app).await;
    screen.write("[name=t0]", "half a thought").await;
    let robin = app.signed_in(app.robin).await;
    let path = format!("/asks/{ask_id}");
    robin.submit(&robin.get(&path).await.form(&path), &[("q0", "1"), ("t0", "")]).await;
    screen.read("Robin answered “26 September”").await;
    screen.until("document.querySelector('.kept textarea').value === 'half a thought'").await;
    let forms = screen.run("return document.querySelectorAll('.card form').length").await;
    assert_eq!(forms, json!(0), "nothing is left to tap");
    screen.until("document.querySelector('#said').textContent.includes('Robin answered')").await;
    screen.until("!document.querySelector('.sending, .state')").await;

    // Kept until it is thrown away, on the question's own page too.
    screen.open(&path).await;
    screen.until("document.querySelector('.kept textarea')?.value === 'half a thought'").await;
}

#[tokio::test]
async fn p02_a_question_that_times_out_while_somebody_types_keeps_the_text() {
    let (app, time) = App::by_hand().await;
    let with_default = json!({ "allow_free_text": true, "default_value": "19" });
    let ask = json!({ "questions": [question("when", "Which day?", with_default)], "timeout_seconds": 600 });
    let ask_id = app.ask(ask).await;
    let screen = Screen::kim(&app).await;
    let typed = "word ".repeat(100);
    screen.write("[name=t0]", &typed).await;
    time.pass_ms(600_000);
    screen.read("Not answered in time. The default, “19 September”, was taken.").await;
    let kept =
        screen.run("const area = document.querySelector('.kept textarea'); return [area.value, area.readOnly]").await;
    assert_eq!(kept, json!([typed, true]));
    assert_eq!(app.read(ask_id).await.state, AskState::TimedOut);
}

#[tokio::test]
async fn p22_a_question_that_is_withdrawn_says_so() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let screen = Screen::kim(&app).await;
    screen.see(".chip").await;
    app.settle(ask_id, json!([])).await;
    screen.read("Withdrawn by Purchasing").await;
    let text = screen.run("return document.querySelector('.card').innerText").await;
    assert!(!text.as_str().unwrap().contains("in time") && !text.as_str().unwrap().contains("answered"), "{text}");
}

#[tokio::test]
async fn p21_the_time_left_is_right_after_a_tab_was_frozen_and_whatever_the_device_says() {
    let (app, time) = App::by_hand().await;
    let ask = json!({ "questions": [question("when", "?", json!({ "default_value": "19" }))], "timeout_seconds": 600 });
    app.ask(ask).await;
    // This device's clock is ten minutes slow and stands still.
    let slow = "const real = Date.now() - 600000; Date.now = () => real;";
    let screen = Screen::special(&app, Special { before: Some(slow), ..Special::default() }).await;
    screen.until("/^in (10:00|9:[45]\\d)$/.test(document.querySelector('.silence time').textContent)").await;
    time.pass_ms(300_000);
    // What a browser does to a tab in the background and to a phone that sleeps.
    screen.command("Page.setWebLifecycleState", json!({ "state": "frozen" })).await;
    screen.command("Page.setWebLifecycleState", json!({ "state": "active" })).await;
    screen.until("/^in (5:00|4:[45]\\d)$/.test(document.querySelector('.silence time').textContent)").await;
}

#[tokio::test]
async fn p04_an_old_list_never_brings_a_closed_question_back() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let other = app.ask(plain()).await;
    // Lists come whole, and are held back until they are let go.
    let hold = "const real = window.fetch; window.held = []; window.arrived = 0;
        window.fetch = async (url, ...rest) => {
            if (!String(url).startsWith('/fragments/list')) return real(url, ...rest);
            const response = await real('/fragments/list', ...rest);
            const copy = new Response(await response.text(), response);
            window.arrived++;
            await new Promise((letGo) => window.held.push(letGo));
            return copy;
        };";
    let screen = Screen::special(&app, Special { before: Some(hold), ..Special::default() }).await;
    screen.see(".card.open").await;
    screen.run("window.dispatchEvent(new Event('online'))").await;
    screen.until("window.arrived > 0").await;
    app.settle(ask_id, json!([])).await;
    screen.until(&format!("document.getElementById('{ask_id}').dataset.state === 'withdrawn'")).await;
    screen.run("window.held.forEach((letGo) => letGo())").await;
    screen.settle().await;
    let states = format!("return ['{ask_id}', '{other}'].map((id) => document.getElementById(id).dataset.state)");
    assert_eq!(screen.run(&states).await, json!(["withdrawn", "open"]));
    screen.until("document.title.startsWith('(1) ')").await;
}

#[tokio::test]
async fn p17_without_a_connection_it_is_not_sent_yet_and_then_sent_once() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let cut = "const real = window.fetch; window.cut = false; window.tried = 0;
        window.fetch = (url, options) => {
            if (options?.method === 'POST') window.tried++;
            return window.cut ? Promise.reject(new TypeError('cut')) : real(url, options);
        };";
    let screen = Screen::special(&app, Special { before: Some(cut), ..Special::default() }).await;
    screen.see(".chip").await;
    screen.run("window.cut = true").await;
    screen.click(".chip[value='0']").await;
    screen.read("Not sent yet.").await;
    screen.until("window.tried > 1").await;
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    let head = app.head();
    screen.run("window.cut = false; window.dispatchEvent(new Event('online'))").await;
    screen.read("You answered “19 September”").await;
    assert_eq!(app.head(), head + 1);

    // Back only after the question was closed: too late, with what was taken.
    let other = app.ask(plain()).await;
    screen.see(&format!("#{other} .chip")).await;
    screen.settle().await;
    screen.run("window.cut = true").await;
    screen.click(&format!("#{other} .chip[value='0']")).await;
    screen.read("Not sent yet.").await;
    app.settle(other, json!([{ "question_id": "when", "values": ["26"] }])).await;
    screen.run("window.cut = false; window.dispatchEvent(new Event('online'))").await;
    screen.read("Too late: this was closed before your answer came.").await;
    screen.read("Purchasing settled it without you: “26 September”").await;
    screen.until("!document.querySelector('.sending')").await;
}

#[tokio::test]
async fn where_a_proxy_holds_the_stream_back_the_list_is_asked_for() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let silent =
        "window.EventSource = class { constructor() { this.readyState = 1; } addEventListener() {} close() {} };";
    let screen = Screen::special(&app, Special { before: Some(silent), ..Special::default() }).await;
    screen.see(".card.open").await;
    let other = app.ask(plain()).await;
    screen.see(&format!("#{other} .chip")).await;
    app.settle(ask_id, json!([])).await;
    screen.read("Withdrawn by Purchasing").await;
}

#[tokio::test]
async fn a_session_that_was_ended_elsewhere_shows_nothing_more() {
    let app = App::start().await;
    app.ask(json!({ "questions": [question("when", "A secret?", json!({}))] })).await;
    let screen = Screen::kim(&app).await;
    screen.read("A secret?").await;
    let elsewhere = app.kim().await;
    elsewhere.submit(&elsewhere.get("/settings").await.form("/settings/sessions/end-others"), &[]).await;
    screen.until("location.pathname === '/sign-in'").await;
    screen.run("history.back()").await;
    screen.see("[name=code]").await;
    let text = screen.run("return document.body.innerText").await;
    assert!(!text.as_str().unwrap().contains("A secret?"), "{text}");
}

#[tokio::test]
async fn back_after_signing_out_shows_nothing() {
    let app = App::start().await;
    app.ask(json!({ "questions": [question("when", "A secret?", json!({}))] })).await;
    let screen = Screen::kim(&app).await;
    screen.read("A secret?").await;
    screen.open("/settings").await;
    screen.click("form[data-sign-out] button").await;
    screen.see("[name=code]").await;
    for _ in 0..3 {
        screen.run("history.back()").await;
        screen.see("[name=code], [data-page='notice'], [data-page='sign-in']").await;
        let text = screen.run("return document.body.innerText").await;
        assert!(!text.as_str().unwrap().contains("A secret?"), "{text}");
    }
}
