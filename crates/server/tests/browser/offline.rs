//! The inbox as an app: installed, without a connection, and back again.

use std::net::SocketAddr;

use chips_protocol::api::AskState;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::screen::{Screen, Special};
use crate::support::{App, plain, question};

/// A browser in which Kim is signed in and the worker has taken the pages over.
async fn installed(app: &App) -> Screen {
    let screen = Screen::kim(app).await;
    screen.until("navigator.serviceWorker.controller?.scriptURL.endsWith('/sw.js?en')").await;
    screen
}

#[tokio::test]
async fn a_browser_may_install_it() {
    let app = App::start().await;
    let screen = installed(&app).await;
    let manifest = screen.command("Page.getAppManifest", json!({})).await;
    assert_eq!(manifest["errors"], json!([]), "{manifest}");
    let text: Value = serde_json::from_str(manifest["data"].as_str().unwrap()).unwrap();
    assert_eq!((&text["display"], &text["start_url"]), (&json!("standalone"), &json!("/")));
    let errors = screen.command("Page.getInstallabilityErrors", json!({})).await;
    assert_eq!(errors["installabilityErrors"], json!([]));
    // Each icon is a picture of the size that it says.
    let sizes = "return Promise.all([...arguments[0]].map(async (icon) => {
        const picture = new Image();
        picture.src = icon.src;
        await picture.decode();
        return icon.sizes === 'any' || icon.sizes === `${picture.naturalWidth}x${picture.naturalHeight}`;
    }))";
    let icons = screen.driver.execute(sizes, vec![text["icons"].clone()]).await.unwrap().json().clone();
    assert_eq!(icons, json!([true, true, true, true]));
    assert_eq!(screen.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn without_a_connection_a_page_of_our_own_stands_in_and_goes_by_itself() {
    let mut app = App::start().await;
    app.ask(plain()).await;
    let screen = installed(&app).await;
    screen.read("Which day should I confirm?").await;
    app.stop().await;
    screen.driver.refresh().await.unwrap();
    screen.read("Chips can’t be reached").await;
    let shown =
        screen.run("return [document.body.innerText, getComputedStyle(document.body).margin, location.pathname]").await;
    assert!(!shown[0].as_str().unwrap().contains("Which day"), "nothing that may have changed meanwhile: {shown}");
    assert_eq!((&shown[1], &shown[2]), (&json!("0px"), &json!("/")), "it looks like the product, at the same address");
    screen.width(320).await;
    screen.fits().await;

    // Behind a tunnel somebody answers, though Chips does not.
    let gateway = tokio::spawn(bad_gateway(app.address));
    screen.open("/history").await;
    screen.read("Chips can’t be reached").await;
    gateway.abort();
    let _ = gateway.await;

    app.reopen().await;
    app.serve_again().await;
    screen.until("document.body.dataset.page === 'history'").await;
    screen.open("/").await;
    screen.read("Which day should I confirm?").await;
}

/// What stands before Chips, while Chips is gone.
async fn bad_gateway(address: SocketAddr) {
    let listener = TcpListener::bind(address).await.unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        let reply = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\nConnection: close\r\n\r\n502";
        let _ = stream.write_all(reply.as_bytes()).await;
    }
}

#[tokio::test]
async fn p17_a_tap_without_a_connection_outlives_the_page_and_is_sent_once() {
    let mut app = App::start().await;
    let (ask_id, other) =
        (app.ask(plain()).await, app.ask(json!({ "questions": [question("when", "And then?", json!({}))] })).await);
    let screen = installed(&app).await;
    screen.see(&format!("#{other} .chip")).await;
    app.stop().await;
    screen.read("No connection. Looking again…").await;
    screen.click(&format!("#{ask_id} .chip[value='0']")).await;
    screen.read("Not sent yet.").await;
    screen.click(&format!("#{other} .chip[value='0']")).await;
    screen.until("document.querySelectorAll('.card .state').length === 2").await;
    screen.driver.refresh().await.unwrap();
    screen.read("Not sent yet").await;
    screen.until("document.querySelectorAll('[data-unsent] .chip').length === 2").await;
    for words in ["Which day should I confirm?", "And then?", "19 September"] {
        screen.read(words).await;
    }

    // Meanwhile one of the two is settled by the harness: for that one the answer comes too late.
    app.reopen().await;
    app.settle(other, json!([{ "question_id": "when", "values": ["26"] }])).await;
    let head = app.head();
    app.serve_again().await;
    screen.read("You answered “19 September”").await;
    screen.read("Too late: this was closed before your answer came.").await;
    screen.read("Purchasing settled it without you: “26 September”").await;
    screen.until("localStorage['chips-outbox'] === '{}'").await;
    assert_eq!((app.read(ask_id).await.state, app.head()), (AskState::Answered, head + 1));
    screen.driver.refresh().await.unwrap();
    screen.read("Nothing waits for you").await;
    screen.settle().await;
    assert_eq!(app.head(), head + 1);
}

#[tokio::test]
async fn p17_what_a_tab_leaves_unsent_is_shown_and_sent_by_another() {
    let mut app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let screen = installed(&app).await;
    let chip = format!("#{ask_id} .chip[value='1']");
    screen.see(&chip).await;
    let first = screen.driver.window().await.unwrap();
    let second = screen.driver.new_tab().await.unwrap();
    screen.driver.switch_to_window(second).await.unwrap();
    screen.open("/").await;
    screen.see(&chip).await;
    app.stop().await;
    screen.read("No connection. Looking again…").await;
    // The first click brings the tab to the front.
    screen.click("main h1").await;
    screen.run("window.clicked = performance.now()").await;
    screen.until("performance.now() - window.clicked > 300").await;
    screen.click(&chip).await;
    screen.read("Not sent yet.").await;
    screen.driver.close_window().await.unwrap();
    screen.driver.switch_to_window(first).await.unwrap();
    screen.read("Not sent yet.").await;
    screen.until(&format!("document.getElementById('{ask_id}').classList.contains('sending')")).await;

    app.reopen().await;
    let head = app.head();
    app.serve_again().await;
    screen.read("You answered “26 September”").await;
    screen.until("localStorage['chips-outbox'] === '{}'").await;
    screen.settle().await;
    assert_eq!((app.read(ask_id).await.state, app.head()), (AskState::Answered, head + 1), "one answer");
}

#[tokio::test]
async fn the_worker_keeps_nothing_of_a_person_and_signing_out_clears_the_rest() {
    let app = App::start().await;
    app.ask(json!({ "questions": [question("when", "A secret?", json!({ "allow_free_text": true }))] })).await;
    let badge = "navigator.clearAppBadge = async () => { window.cleared = true; };";
    let screen = Screen::special(&app, Special { before: Some(badge), ..Special::default() }).await;
    screen.until("navigator.serviceWorker.controller").await;
    assert_eq!(screen.run("return window.cleared").await, json!(null));
    screen.write("[name=t0]", "a draft").await;
    for path in ["/history", "/settings", "/"] {
        screen.open(path).await;
        screen.see("nav").await;
    }
    let kept = "return (async () => {
        const kept = [];
        for (const name of await caches.keys()) {
            const cache = await caches.open(name);
            for (const request of await cache.keys()) kept.push([new URL(request.url).pathname, await (await cache.match(request)).text()]);
        }
        return kept;
    })()";
    let look = |kept: Value| {
        for entry in kept.as_array().unwrap() {
            let (path, text) = (entry[0].as_str().unwrap(), entry[1].as_str().unwrap());
            assert!(path.starts_with("/assets/") || path == "/offline", "{path}");
            assert!(!text.contains("A secret?") && !text.contains("Kim") && !text.contains("usr_"), "{path}: {text}");
        }
        kept.as_array().unwrap().len()
    };
    assert_eq!(look(screen.run(kept).await), 4);
    screen.until("localStorage.length > 0").await;
    screen.open("/settings").await;
    screen.click("form[data-sign-out] button").await;
    screen.see("[name=code]").await;
    screen.until("localStorage.length === 0 && window.cleared").await;
    look(screen.run(kept).await);
}

#[tokio::test]
async fn a_tap_that_met_the_end_of_the_session_is_sent_after_signing_in_again() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let hold = "const real = window.fetch;
        window.fetch = async (url, options) => {
            while (options?.method === 'POST' && sessionStorage.held) await new Promise((go) => setTimeout(go, 20));
            return real(url, options);
        };";
    let screen = Screen::special(&app, Special { before: Some(hold), ..Special::default() }).await;
    screen.run("sessionStorage.held = 1").await;
    screen.click(".chip[value='0']").await;
    screen.see(".sending").await;
    let elsewhere = app.kim().await;
    elsewhere.submit(&elsewhere.get("/settings").await.form("/settings/sessions/end-others"), &[]).await;
    screen.run("delete sessionStorage.held").await;
    screen.until("location.pathname === '/sign-in' || document.querySelector('.state a')").await;
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    screen.open("/sign-in").await;
    screen.write("[name=code]", &app.way_in(app.kim).code).await;
    screen.click("form .send").await;
    screen.read("You answered “19 September”").await;
    screen.until("localStorage['chips-outbox'] === '{}'").await;
    assert_eq!(app.closed(ask_id).await.state, AskState::Answered);

    // Where somebody else signs in, nothing of it is left.
    let other = app.ask(plain()).await;
    screen.see(&format!("#{other} .chip")).await;
    let entry = format!("JSON.stringify({{ '{other}': ['{}', 'token=x', 'A', 'B'] }})", app.robin);
    screen.run(&format!("localStorage['chips-outbox'] = {entry}")).await;
    screen.open("/history").await;
    screen.until("localStorage['chips-outbox'] === '{}'").await;
    assert_eq!(app.read(other).await.state, AskState::Open);
}

#[tokio::test]
async fn the_page_that_stands_in_speaks_the_language_that_was_chosen() {
    let mut app = App::start().await;
    let screen = installed(&app).await;
    screen.open("/settings").await;
    screen.run("document.querySelector('#language').value = 'de'").await;
    screen.click("form[action='/settings/device'] .send").await;
    screen
        .until(
            "document.documentElement.lang === 'de' && navigator.serviceWorker.controller?.scriptURL.endsWith('?de')",
        )
        .await;
    // The other is thrown away.
    screen.until("caches.keys().then((names) => { window.kept = names.length; }) && window.kept === 1").await;
    app.stop().await;
    screen.driver.refresh().await.unwrap();
    screen.read("Chips ist nicht zu erreichen").await;
    assert_eq!(screen.run("return document.documentElement.lang").await, json!("de"));
}

#[tokio::test]
async fn where_browsers_allow_no_worker_the_inbox_does_without() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let without = "Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined });";
    let screen = Screen::special(&app, Special { before: Some(without), ..Special::default() }).await;
    screen.see(".chip").await;
    screen.click(".chip[value='0']").await;
    screen.read("You answered “19 September”").await;
    assert_eq!(app.closed(ask_id).await.state, AskState::Answered);
    assert_eq!(screen.complaints().await, Vec::<String>::new());
}
