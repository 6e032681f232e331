//! axe-core looks at every page, light and dark, on a phone and at a desk, and finds nothing that keeps people out.
//!
//! axe-core comes from npm (`tests/axe`) and is put into the page by the browser's own tools, so that what the page itself may
//! run stays as strict as it is.

use std::path::Path;

use chips_core::notify::Channel;
use chips_server::config::{Smtp, SmtpTls, sender};
use serde_json::{Value, json};

use crate::screen::{Screen, Special};
use crate::support::{App, plain, question, with_text};
use crate::telegram_api::BotApi;

/// The rules of WCAG 2.2 at level AA, and what axe-core's makers advise beyond it.
const RULES: [&str; 6] = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/// axe-core, where npm could bring it; says so where not.
fn source() -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/axe/node_modules/axe-core/axe.min.js");
    let source = std::fs::read_to_string(path).ok();
    if source.is_none() {
        eprintln!("SKIPPED: axe-core is not here; `tests/npm/install tests/axe` brings it");
    }
    source
}

/// Looks at the page as it stands, in all its forms.
struct Look<'a> {
    screen: &'a Screen,
    source: String,
}

impl Look<'_> {
    async fn at(&self, what: &str) {
        for (scheme, width) in [("light", 390), ("dark", 390), ("dark", 1280), ("light", 1280)] {
            let features = json!([
                { "name": "prefers-color-scheme", "value": scheme },
                { "name": "prefers-reduced-motion", "value": "reduce" },
            ]);
            self.screen.command("Emulation.setEmulatedMedia", json!({ "features": features })).await;
            self.screen.width(width).await;
            let found = self.run().await;
            assert_eq!(found, json!([]), "{what}, {scheme}, {width} px: {found:#}");
        }
    }

    async fn run(&self) -> Value {
        self.evaluate(&self.source).await;
        let options = json!({ "runOnly": RULES, "resultTypes": ["violations"] });
        let look = format!(
            "axe.run(document, {options}).then(({{ violations, passes }}) => passes.length ? violations.map(({{ id, help, nodes }}) => \
             ({{ id, help, nodes: nodes.slice(0, 3).map(({{ html, failureSummary }}) => [html.slice(0, 300), failureSummary]) }})) : 'nothing was looked at')"
        );
        self.evaluate(&look).await
    }

    async fn evaluate(&self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let reply = self.screen.command("Runtime.evaluate", parameters).await;
        assert_eq!(reply.get("exceptionDetails"), None, "{reply}");
        reply["result"]["value"].clone()
    }
}

#[tokio::test]
async fn it_would_find_what_is_wrong() {
    let Some(source) = source() else { return };
    let app = App::start().await;
    let screen = Screen::start(&app, Special::default()).await;
    screen.open("/sign-in").await;
    screen.see("[name=code]").await;
    screen.run("document.querySelector('.lost').style.color = '#aaa'; document.documentElement.lang = ''").await;
    let found = Look { screen: &screen, source }.run().await;
    let rules: Vec<_> = found.as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    assert_eq!(rules, ["color-contrast", "html-has-lang"], "{found}");
}

#[tokio::test]
async fn whoever_signs_in_is_kept_out_by_nothing() {
    let Some(source) = source() else { return };
    let app = App::start().await;
    let screen = Screen::start(&app, Special::default()).await;
    let look = Look { screen: &screen, source };
    screen.open("/sign-in").await;
    screen.see("[name=code]").await;
    look.at("the sign-in").await;
    screen.write("[name=code]", "WRONG-CODE").await;
    screen.click("form .send").await;
    screen.see(".notice").await;
    look.at("a code that does not work").await;
    screen.open(&format!("/sign-in/{}", app.way_in(app.kim).secret)).await;
    screen.read("Sign in as Kim?").await;
    look.at("a sign-in link").await;
    screen.open("/sign-in/nothing").await;
    screen.see(".notice").await;
    look.at("a link that is not known").await;
    screen.open("/nothing/here").await;
    screen.read("There is nothing here").await;
    look.at("a path that leads nowhere").await;
    screen.open("/offline").await;
    screen.read("Chips can’t be reached").await;
    look.at("the page that stands in offline").await;
}

/// Questions of every kind, open and closed.
pub async fn furnish(app: &App) -> Furnished {
    let backups = app.admin().add_harness(app.workspace_id, "Backups").unwrap().id;
    let busy = app.run("Order 4711").await;
    let tap = app.ask_in(busy.run_id, with_text()).await;
    let several = json!({ "questions": [
        question("when", "Which day should I confirm?", json!({})),
        question("also", "And which others would do? See https://example.com/days.", json!({ "multi_select": true, "allow_free_text": true })),
        question("who", "Who takes it in?", json!({ "allow_free_text": true, "default_value": "19" })),
    ] });
    let several = app.ask_in(busy.run_id, several).await;
    let long = "A long story. ".repeat(60);
    app.ask(json!({ "questions": [question("long", &long, json!({}))] })).await;
    let timed = |seconds: u32| json!({ "questions": [question("keep", "Keep the snapshots?", json!({ "default_value": "19" }))], "timeout_seconds": seconds });
    app.ask_as(backups, timed(40)).await;
    app.ask_as(backups, timed(4000)).await;
    let cancels = json!({ "questions": [question("stop", "Stop here?", json!({ "multi_select": true }))], "timeout_seconds": 5000, "on_no_answer": "cancel" });
    app.ask(cancels).await;
    let settled = app.ask_in(busy.run_id, plain()).await;
    app.settle(settled, json!([{ "question_id": "when", "values": ["26"] }])).await;
    let withdrawn = app.ask_in(busy.run_id, plain()).await;
    app.settle(withdrawn, json!([])).await;
    let gone = app.ask(json!({ "questions": [question("when", "Gone by now?", json!({ "default_value": "19" }))], "timeout_seconds": 1 })).await;
    let answered = app.ask_in(busy.run_id, several_and_text()).await;
    let robin = app.signed_in(app.robin).await;
    let path = format!("/asks/{answered}");
    robin.submit(&robin.get(&path).await.form(&path), &[("q0", "1"), ("t0", "not before noon")]).await;
    app.closed(answered).await;
    app.closed(gone).await;
    Furnished {
        tap: tap.to_string(),
        several: several.to_string(),
        run: busy.run_id.to_string(),
        closed: [settled, withdrawn, gone, answered].map(|ask| ask.to_string()),
    }
}

fn several_and_text() -> Value {
    json!({ "questions": [question("when", "Which days?", json!({ "multi_select": true, "allow_free_text": true }))] })
}

/// What was furnished, by its ids.
pub struct Furnished {
    pub tap: String,
    pub several: String,
    pub run: String,
    pub closed: [String; 4],
}

#[tokio::test]
async fn whoever_looks_at_the_inbox_is_kept_out_by_nothing() {
    let Some(source) = source() else { return };
    let app = App::start().await;
    let screen = Screen::with_undo(&app, 20).await;
    let look = Look { screen: &screen, source };
    screen.read("Nothing waits for you").await;
    look.at("the empty inbox").await;
    let shown = furnish(&app).await;
    screen.open("/").await;
    screen.see(&format!("#{} .chip", shown.several)).await;
    look.at("the inbox").await;
    screen.click(".sift summary").await;
    look.at("the filters").await;
    screen.press("?").await;
    screen.see("dialog[open]").await;
    look.at("the help on keys").await;
    screen.press("\u{e00c}").await;
    screen.until("!document.querySelector('dialog[open]')").await;
    screen.click(&format!("#{} .chip[value='1']", shown.tap)).await;
    screen.read("Undo").await;
    look.at("a tap that can be undone").await;
}

#[tokio::test]
async fn whoever_looks_at_one_question_is_kept_out_by_nothing() {
    let Some(source) = source() else { return };
    let app = App::start().await;
    let shown = furnish(&app).await;
    let screen = Screen::kim(&app).await;
    let look = Look { screen: &screen, source };
    for ask_id in [&shown.tap, &shown.several].into_iter().chain(&shown.closed) {
        screen.open(&format!("/asks/{ask_id}")).await;
        screen.see(".card").await;
        look.at(&format!("the question {ask_id}")).await;
    }
    // An option chosen and a text beside it: one is said to be sent, the other kept.
    screen.open(&format!("/asks/{}", shown.several)).await;
    screen.write("[name=t2]", "Robin").await;
    screen.click("[data-q='2'] .chip").await;
    screen.see(".drafted").await;
    look.at("a question half answered").await;
}

#[tokio::test]
async fn whoever_looks_back_or_sets_something_is_kept_out_by_nothing() {
    let Some(source) = source() else { return };
    let app = App::start().await;
    let shown = furnish(&app).await;
    let _elsewhere = app.kim().await;
    let screen = Screen::kim(&app).await;
    let look = Look { screen: &screen, source };
    for path in [
        "/history",
        "/history?q=nothing",
        "/settings",
        &format!("/runs/{}", shown.run),
        "/?state=gone",
        "/history?state=timed_out",
    ] {
        screen.open(path).await;
        screen.see("main h1").await;
        look.at(path).await;
    }
    screen.open("/settings").await;
    screen.see("main h1").await;
    screen.run("document.querySelectorAll('details').forEach((more) => { more.open = true; })").await;
    look.at("the settings, unfolded").await;
}

#[tokio::test]
async fn whoever_says_where_they_are_told_is_kept_out_by_nothing() {
    let Some(source) = source() else { return };
    let api = BotApi::start().await;
    let app = App::configured(|config| {
        api.configure(config);
        config.smtp = Some(Smtp {
            host: "127.0.0.1".to_owned(),
            port: 9,
            tls: SmtpTls::None,
            insecure: false,
            username: None,
            password: None,
            from: Some(sender("chips@chips.test").unwrap()),
            authorities: None,
        });
    })
    .await;
    for (channel, address) in
        [(Channel::Ntfy, "https://ntfy.sh/x"), (Channel::Email, "kim@example.com"), (Channel::Telegram, "7001")]
    {
        app.tell(app.kim, channel, address, json!({})).await;
    }
    let screen = Screen::kim(&app).await;
    let look = Look { screen: &screen, source };
    let send = async |form: &str, fill: &str| {
        screen.open("/settings").await;
        screen
            .run(&format!(
                "const form = document.querySelector(`form[action='/settings/told/{form}']`); {fill}; form.submit()"
            ))
            .await;
    };
    send("telegram", "").await;
    screen.read("Or open it on another device").await;
    look.at("the link to a bot").await;
    send("email", "form.elements.address.value = 'nobody'").await;
    screen.read("Give one whole address").await;
    look.at("a fault in an address").await;
    send("test", "").await;
    screen.see("[role=status]").await;
    look.at("what became of a test message").await;
    send("webhook", "form.elements.url.value = 'https://example.com/hook'").await;
    screen.read("It is shown this once").await;
    look.at("a webhook's key").await;
}
