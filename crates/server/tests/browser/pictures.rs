//! The inbox in pictures: what `docs/design.md` and the README show, and every page to look at before a change of its looks is
//! taken.
//!
//! `CHIPS_PICTURES=FOLDER cargo nextest run --workspace --test browser -E 'test(pictures)'` keeps them in that folder: the first
//! test those of the documentation, the second every page in three widths, light and dark.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chips_protocol::api::NewRun;
use serde_json::{Value, json};

use crate::axe::furnish;
use crate::screen::{Screen, Special};
use crate::support::{App, question};

/// Where the pictures go, and what holds the folder where nobody named one.
fn folder() -> (PathBuf, Option<tempfile::TempDir>) {
    match std::env::var_os("CHIPS_PICTURES") {
        Some(named) => {
            let named = PathBuf::from(named);
            std::fs::create_dir_all(&named).unwrap();
            (named, None)
        }
        None => {
            let made = tempfile::tempdir().unwrap();
            (made.path().to_owned(), Some(made))
        }
    }
}

impl Screen {
    /// Takes a picture of what is in sight, or of the whole page, and holds that it is one of this width.
    async fn picture(&self, to: &Path, (width, height): (u32, u32), scheme: &str, whole: bool) {
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.command("Emulation.setEmulatedMedia", json!({ "features": features })).await;
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.command("Emulation.setDeviceMetricsOverride", metrics).await;
        self.command("Emulation.setScrollbarsHidden", json!({ "hidden": true })).await;
        self.run("scrollTo(0, 0)").await;
        let options = json!({ "format": "png", "captureBeyondViewport": whole });
        let taken = self.command("Page.captureScreenshot", options).await;
        let png = STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
        assert_eq!(png.get(16..20), Some(&width.to_be_bytes()[..]), "a picture of {width} px: {}", to.display());
        std::fs::write(to, png).unwrap();
    }
}

/// A shop's morning: what waits and what goes on without anybody.
async fn shop(app: &App) {
    let mut admin = app.admin();
    let nightly = admin.add_harness(app.workspace_id, "nightly").unwrap().id;
    let triage = admin.add_harness(app.workspace_id, "Triage").unwrap().id;
    let titled = |title: &str| NewRun { title: Some(title.into()), ..NewRun::default() };
    let release = json!({ "questions": [{ "question_id": "go", "prompt": "The tests are green. Release 2.4.0 now?", "options": [
        { "value": "now", "label": "Release it", "description": "To everybody, at once." },
        { "value": "part", "label": "To a tenth first", "description": "The rest follows tomorrow at nine." },
    ] }] });
    app.ask_of(triage, titled("Release 2.4.0"), release).await;
    let day = question(
        "when",
        "The supplier can deliver on two days. Which should I confirm?",
        json!({ "allow_free_text": true }),
    );
    app.ask_of(app.harness, titled("Weekly restock"), json!({ "questions": [day] })).await;
    let keep = json!({ "questions": [{ "question_id": "keep", "prompt": "The disk is nearly full. What about the snapshots of May?", "options": [
        { "value": "keep", "label": "Keep them" }, { "value": "drop", "label": "Delete them" },
    ], "default_value": "keep" }], "timeout_seconds": 1500 });
    app.ask_of(nightly, titled("Backup"), keep).await;
}

#[tokio::test]
async fn the_pictures_of_the_documentation_can_be_taken_anew() {
    let (folder, _held) = folder();
    let app = App::start().await;
    shop(&app).await;
    let screen = Screen::with_undo(&app, 10).await;
    screen.open("/").await;
    screen
        .until("document.querySelectorAll('.card .chip').length >= 6 && document.querySelector('progress').value > 0")
        .await;
    for (width, height) in [(390, 844), (1280, 800)] {
        for scheme in ["light", "dark"] {
            let to = folder.join(format!("inbox-{width}-{scheme}.png"));
            screen.picture(&to, (width, height), scheme, false).await;
        }
    }
    screen.width(390).await;
    screen.click(".chip[value='1']").await;
    screen.read("Undo").await;
    screen.picture(&folder.join("undo-390-light.png"), (390, 844), "light", false).await;
}

/// Every page with what it looks like in each of its states: where it is, and what is done to it first.
async fn pages(app: &App) -> Vec<(&'static str, String, &'static str)> {
    let long =
        app.open_run(NewRun { title: Some("A title that goes on ".repeat(14)), ..NewRun::default() }).await.run_id;
    let arabic = json!({ "questions": [question("a", "أي يوم أؤكد؟ (PO-1182) https://xn--80ak6aa92e.example/a/long/way", json!({}))] });
    app.ask_in(long, arabic).await;
    let shown = furnish(app).await;
    let unfold = "document.querySelectorAll('details').forEach((more) => { more.open = true; })";
    let [settled, withdrawn, gone, answered] = &shown.closed;
    let ask = |id: &str| format!("/asks/{id}");
    vec![
        ("list", "/".into(), ""),
        ("list-filters", "/?state=going".into(), unfold),
        ("list-nothing", "/?state=gone".into(), ""),
        ("question", ask(&shown.several), ""),
        ("settled", ask(settled), ""),
        ("withdrawn", ask(withdrawn), ""),
        ("late", ask(gone), ""),
        ("answered", ask(answered), ""),
        ("history", "/history".into(), ""),
        ("history-filters", "/history?state=answered".into(), unfold),
        ("history-unreadable", "/history?state=nonsense".into(), ""),
        ("run", format!("/runs/{}", shown.run), ""),
        ("run-long", format!("/runs/{long}"), ""),
        ("settings", "/settings".into(), ""),
        ("not-found", "/nothing".into(), ""),
        ("offline", "/offline".into(), ""),
        ("sign-in-link", format!("/sign-in/{}", app.way_in(app.robin).secret), ""),
        ("sign-in-unknown", "/sign-in/nothing".into(), ""),
        ("undo", ask(&shown.tap), "document.querySelector('.chip').click()"),
    ]
}

#[tokio::test]
async fn every_page_can_be_looked_at() {
    let (folder, held) = folder();
    let app = App::start().await;
    let screen = Screen::special(&app, Special { undo: 20, ..Special::default() }).await;
    // Where nobody looks, one width shows that each page can be shown.
    let looks: &[(u32, &str)] = match held {
        Some(_) => &[(320, "dark")],
        None => &[(320, "light"), (390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")],
    };
    if held.is_none() {
        take(&screen, &folder, looks, "empty", "/", "").await;
    }
    for (name, path, act) in pages(&app).await {
        take(&screen, &folder, looks, name, &path, act).await;
    }
    if held.is_none() {
        for (name, path, act) in rare(&app).await {
            take(&screen, &folder, looks, name, &path, act).await;
        }
        let outside = Screen::start(&app, Special::default()).await;
        take(&outside, &folder, looks, "code", "/sign-in", "").await;
        let wrong = "const [code] = document.getElementsByName('code'); code.value = 'WRONG'; code.form.submit()";
        take(&outside, &folder, looks, "code-wrong", "/sign-in", wrong).await;
    }
}

/// Takes a page as it looks after something was done to it.
async fn take(screen: &Screen, folder: &Path, looks: &[(u32, &str)], name: &str, path: &str, act: &str) {
    screen.open(path).await;
    screen.see("main h1, main .card").await;
    screen.settle().await;
    assert_eq!(screen.run(act).await, Value::Null, "{name}");
    screen.see("main h1, main .card").await;
    for (width, scheme) in looks {
        let to = folder.join(format!("{name}-{width}-{scheme}.png"));
        screen.picture(&to, (*width, 800), scheme, true).await;
    }
}

/// States that are seldom seen, for whoever looks: they take many questions, or a form that was sent as no script sends it.
async fn rare(app: &App) -> Vec<(&'static str, String, &'static str)> {
    let words = |n: usize| "words that say all there is to say ".repeat(n);
    let wide = json!({ "questions": [question("wide", "ما رأيك في \u{202e}evil الطلب؟", json!({ "allow_free_text": true, "default_value": "1", "options": [
        { "value": "1", "label": words(8), "description": words(20) },
        { "value": "2", "label": "No", "description": "على \u{2066}الطلب" },
    ] }))], "timeout_seconds": 900 });
    let wide = app.ask(wide).await;
    let run = app.run("Stocktaking").await;
    for n in 0..205 {
        app.ask_in(run.run_id, json!({ "questions": [question("shelf", &format!("Shelf {n}?"), json!({}))] })).await;
    }
    let second = app.kim().await.get("/").await;
    let second = second.body.split("href=\"/?before=").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let ask = format!("/asks/{wide}");
    vec![
        ("second", format!("/?before={second}"), ""),
        ("wide", ask.clone(), ""),
        ("typed", ask.clone(), "document.querySelector('textarea').value = 'by rail, or'"),
        (
            "which",
            ask.clone(),
            "const form = document.querySelector('form.tap'), it = document.createElement('input'); form.elements.t0.value = 'by rail, or'; it.name = 'q0'; it.value = '0'; form.append(it); form.submit()",
        ),
        (
            "stale",
            ask,
            "const form = document.querySelector('form.tap'), it = document.createElement('input'); form.elements.token.value = 'x'; it.name = 'q0'; it.value = '0'; form.append(it); form.submit()",
        ),
        (
            "foreign",
            "/settings".into(),
            "const form = document.querySelector('form[action=\"/settings/device\"]'); form.elements.language.remove(); form.submit()",
        ),
        ("help", "/history".into(), "document.querySelector('#keys').showModal()"),
        (
            "settings-open",
            "/settings".into(),
            "document.querySelectorAll('details').forEach((more) => { more.open = true; })",
        ),
        (
            "push-on",
            "/settings".into(),
            "document.querySelectorAll('#push [data-when]').forEach((it) => { it.hidden = it.dataset.when !== 'on'; })",
        ),
        (
            "push-blocked",
            "/settings".into(),
            "document.querySelectorAll('#push [data-when]').forEach((it) => { it.hidden = it.dataset.when !== 'blocked'; })",
        ),
        (
            "push-gone",
            "/settings".into(),
            "document.querySelectorAll('#push [data-when]').forEach((it) => { it.hidden = it.dataset.when !== 'gone'; })",
        ),
        (
            "push-gone-list",
            "/?state=gone".into(),
            "const push = document.querySelector('#push'); push.hidden = false; push.querySelectorAll('[data-when]').forEach((it) => { it.hidden = false; })",
        ),
    ]
}
