//! The inbox's pages, as a browser with JavaScript off gets them: M16, M26, M28, M29, H13, H19, H20.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::browser::{Browser, Form, forms, links, unescape};
use crate::support::events::chosen;
use crate::support::process::text;
use crate::support::scene::{Api, Scene, ask_path, seq};
use crate::support::{LIMIT, Request, ask_with, question, until};

/// A browser in which the scene's person is signed in.
fn signed_in(scene: &Scene) -> Browser {
    let mut browser = Browser::new(scene.serve.addr);
    browser.sign_in(&scene.folder.text("/sign_in_url"));
    browser
}

/// Where the page of an ask is.
fn page_path(ask: &Value) -> String {
    format!("/asks/{}", text(ask, "/ask_id"))
}

/// The form on an ask's page that answers it.
fn answer_form(browser: &mut Browser, ask: &Value) -> Form {
    let path = page_path(ask);
    let page = browser.visit(&path);
    assert_eq!(page.status, 200, "{}", page.text());
    let forms = forms(&page.text(), &path);
    let answers = forms.into_iter().find(|form| form.method == "post" && form.choices.len() >= 2);
    answers.unwrap_or_else(|| panic!("no form that answers: {}", page.text()))
}

/// The choice of a form that stands for the first option (0), the second (1) and so on.
fn choice(form: &Form, option: usize) -> (&str, &str) {
    let (name, value) = form.choices.get(option).unwrap_or_else(|| panic!("no option {option} in {form:?}"));
    (name, value)
}

/// The text field of a form that is for an answer.
fn text_field(form: &Form) -> &str {
    form.texts.first().unwrap_or_else(|| panic!("no text field in {form:?}"))
}

#[test]
fn an_option_tapped_with_javascript_off_is_the_answer() {
    let scene = Scene::new();
    let mut browser = signed_in(&scene);
    let ask = scene.open_ask();
    let list = browser.visit("/");
    assert!(unescape(&list.text()).contains("The fence is dry. Paint it today?"));

    let form = answer_form(&mut browser, &ask);
    let tapped = choice(&form, 1);
    let after = browser.submit(&form, &[tapped]);
    assert_eq!(after.status, 200, "{}", after.text());
    let closed = scene.harness.ask(&ask);
    assert_eq!(closed["state"], "answered");
    assert_eq!(closed["answer"]["answers"], json!([chosen("fence", &["leave"])]));
    assert_eq!(closed["answer"]["answered_by"], json!(scene.person.id));
    assert!(unescape(&browser.visit("/history").text()).contains("Leave it"));
    let list = browser.visit("/").text();
    assert!(forms(&list, "/").iter().all(|form| form.action != page_path(&ask)), "it can't be answered again: {list}");
}

#[test]
fn m16_an_answer_after_the_deadline_is_told_what_was_taken_and_loses_no_word() {
    let scene = Scene::new();
    let mut browser = signed_in(&scene);
    let mut fields = question("fence");
    fields["default_value"] = json!("leave");
    fields["allow_free_text"] = json!(true);
    let mut ask = scene.harness.event(&scene.harness.open_run(), ask_with(&[fields]));
    ask["timeout_seconds"] = json!(1.5);
    let ask = scene.asked(&ask);
    let form = answer_form(&mut browser, &ask);

    let closed = scene.person.closed(&ask);
    let answer = scene.person.answer(&ask, &[chosen("fence", &["paint"])]);
    let problem = scene.person.send(&answer).expect_problem(409, "already_closed");
    assert_eq!(problem["answer"], closed["answer"]);
    assert_eq!(problem["answer"]["answers"], json!([chosen("fence", &["leave"])]));

    let words = "Only the side towards the road & <nothing> else";
    let page = browser.submit(&form, &[(text_field(&form), words)]);
    let shown = unescape(&page.text());
    assert!(shown.contains(words), "what was typed is kept: {shown}");
    assert!(shown.contains("Leave it"), "what was taken is said: {shown}");
    assert!(!page.text().contains("<nothing>"));

    let late = scene.harness.ask(&ask)["late_answers"].clone();
    assert_eq!(late[0]["answers"], json!([chosen("fence", &["paint"])]));
    assert_eq!(late[1]["answers"][0]["free_text"], json!(words));
    assert_eq!(scene.harness.head(), seq(&ask) + 1, "no event comes of it");
}

#[test]
fn m26_what_turns_reading_round_is_shown_escaped() {
    let scene = Scene::new();
    let mut browser = signed_in(&scene);
    let mut fields = question("fence");
    fields["prompt"] = json!("Delete \u{202e}gpj.tnuocca\u{202c} now?");
    fields["options"][0]["description"] = json!("\u{2066}isolated\u{2069}");
    let ask = scene.asked(&scene.harness.event(&scene.harness.open_run(), ask_with(&[fields])));
    for path in ["/".to_owned(), page_path(&ask)] {
        let page = browser.visit(&path).text();
        // Chips' own words keep apart what the page's script puts into them.
        let page = unescape(&page).replace("\u{2068}{what}\u{2069}", "{what}");
        assert!(page.contains("gpj.tnuocca"), "{path}");
        assert!(page.contains("\\u{202e}") || page.to_lowercase().contains("u+202e"), "{path}: {page}");
        for hidden in ['\u{202e}', '\u{202c}', '\u{2066}', '\u{2069}'] {
            assert!(!page.contains(hidden), "{path}: {hidden:?} is shown raw");
        }
    }
}

#[test]
fn m28_text_that_means_something_elsewhere_is_shown_as_it_is() {
    let scene = Scene::new();
    let mut browser = signed_in(&scene);
    let odd = ["'; DROP TABLE--", "{{7*7}}", "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>"];
    let mut fields = question("fence");
    fields["prompt"] = json!("[x](https://evil.example) <b>bold</b> javascript:alert(1) &amp; `{% raw %}`");
    fields["options"] = odd.iter().map(|text| json!({"value": text, "label": text})).collect();
    fields["multi_select"] = json!(true);
    let run = scene.harness.open_run_with(&json!({"title": "<i>run</i> {{1+1}}"}));
    let ask = scene.asked(&scene.harness.event(&run, ask_with(std::slice::from_ref(&fields))));
    for path in ["/".to_owned(), page_path(&ask), format!("/runs/{run}")] {
        let raw = browser.visit(&path).text();
        assert!(!raw.contains("<script>alert"), "{path}");
        assert!(!raw.contains("<img src=x"), "{path}");
        assert!(!raw.contains("<i>run"), "{path}");
        assert!(!raw.contains("href=\"javascript:"), "{path}");
        // The address is a link, whose own text is all of it: nothing of it is hidden behind other words.
        let shown = unescape(&without_tags(&raw));
        assert!(shown.contains(fields["prompt"].as_str().unwrap()), "{path}: {shown}");
    }
    let shown = unescape(&browser.visit(&page_path(&ask)).text());
    for text in odd {
        assert!(shown.contains(text), "{text}: {shown}");
    }
}

/// The text between the tags of a page.
fn without_tags(html: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text
}

/// Everything that can be read of a workspace, by everybody in it.
fn whole_state(scene: &Scene) -> Value {
    let of = |api: &Api, path: &str| api.get(path).expect(200);
    let run = scene.person.log().first().map(|event| text(event, "/run_id"));
    json!([
        scene.harness.log(),
        scene.person.log(),
        of(&scene.person, "/v1/asks?limit=200")["asks"],
        of(&scene.harness, "/v1/me"),
        of(&scene.person, "/v1/me"),
        run.map(|run| of(&scene.person, &format!("/v1/runs/{run}"))),
        scene.folder.admin(&["person", "list"]),
        scene.folder.admin(&["harness", "list"]),
        scene.folder.admin(&["space", "list"]),
    ])
}

/// Fetches every page that can be reached by links from these, with GET and HEAD, and says which there were.
fn crawl(browser: &mut Browser, from: &[String]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<_> = from.to_vec();
    while let Some(path) = next.pop() {
        // A stream of events has no end; it is opened and left.
        if path.contains("stream") || path.contains("/live") || !seen.insert(path.clone()) {
            continue;
        }
        assert!(seen.len() < 400, "the crawl does not end: {seen:?}");
        let page = browser.get(&path);
        assert!(page.status < 500, "{path}: {}", page.text());
        let mut head = Request::new("HEAD", &path).header("User-Agent", "Slackbot-LinkExpanding 1.0");
        if !browser.cookies.is_empty() {
            let pairs: Vec<_> = browser.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            head = head.header("Cookie", &pairs.join("; "));
        }
        let head = head.send(browser.addr());
        assert_eq!((head.status, head.body.len()), (page.status, 0), "HEAD {path}");
        if let Some(to) = page.header("location") {
            next.push(Browser::path(to).to_owned());
        }
        if page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            next.extend(links(&page.text(), &path));
        }
    }
    seen
}

#[test]
fn m29_fetching_pages_changes_nothing_and_uses_no_link_up() {
    let scene = Scene::new();
    let (open, closed) = (scene.open_ask(), scene.open_ask());
    scene.person.send(&scene.person.answer(&closed, &[chosen("fence", &["paint"])])).expect(201);
    // That the answer went out to its harness is noted a little later; the rest stays as it is from then on.
    until(LIMIT, "the delivery to be noted", || (!scene.harness.ask(&closed)["delivered_at"].is_null()).then_some(()));
    let link = scene.folder.text("/sign_in_url");
    let fresh = text(&scene.folder.admin(&["person", "link", &scene.person.id]), "/sign_in_url");
    let from: Vec<_> = [
        Browser::path(&link).to_owned(),
        Browser::path(&fresh).to_owned(),
        "/".into(),
        "/history".into(),
        "/settings".into(),
        "/sign-in".into(),
        "/sign-out".into(),
        page_path(&open),
        page_path(&closed),
        format!("/runs/{}", text(&open, "/run_id")),
        format!("{}/answer", page_path(&open)),
        "/openapi.json".into(),
        "/schemas/question.ask.json".into(),
        "/schemas/question.answered.json".into(),
        "/healthz".into(),
        "/readyz".into(),
        "/robots.txt".into(),
        "/favicon.ico".into(),
    ]
    .into();

    let before = whole_state(&scene);
    let mut stranger = Browser::new(scene.serve.addr);
    crawl(&mut stranger, &from);
    crawl(&mut stranger, &from);
    assert_eq!(whole_state(&scene), before, "a stranger's fetches change nothing");

    // The link still signs in, and what is signed in then may look at everything without changing anything.
    let mut browser = Browser::new(scene.serve.addr);
    browser.sign_in(&link);
    let cookies = browser.cookies.clone();
    let before = whole_state(&scene);
    let mut again: Vec<_> = from.clone();
    again.remove(0);
    let seen = crawl(&mut browser, &again);
    assert!(seen.contains(&page_path(&closed)), "{seen:?}");
    assert_eq!(whole_state(&scene), before, "a person's fetches change nothing");
    assert!(cookies.iter().all(|(name, value)| browser.cookies.get(name) == Some(value)), "nor the session");
    assert_eq!(browser.visit("/settings").status, 200);
    Browser::new(scene.serve.addr).sign_in(&fresh);
}

#[test]
fn h13_a_form_that_says_what_the_page_did_not_offer_changes_nothing() {
    let scene = Scene::new();
    let mut browser = signed_in(&scene);
    let ask = scene.open_ask();
    let form = answer_form(&mut browser, &ask);
    let (name, offered) = choice(&form, 0);
    let (_, other) = choice(&form, 1);
    let fakes: [&[(&str, &str)]; 4] = [
        &[(name, "burn it")],
        &[(name, offered), (name, other)],
        &[(name, offered), ("answered_by", "usr_01K4ZQPX000000000000000003")],
        &[],
    ];
    for fake in fakes {
        let page = browser.submit(&form, fake);
        assert!(page.status < 500, "{fake:?}: {}", page.text());
        let now = scene.harness.ask(&ask);
        if fake.iter().any(|(name, _)| *name == "answered_by") && now["state"] == "answered" {
            // Ignored is as good as refused: the session says who answered.
            assert_eq!(now["answer"]["answered_by"], json!(scene.person.id));
            continue;
        }
        assert_eq!(now["state"], "open", "{fake:?}");
    }
}

#[test]
fn h19_a_signed_out_browser_has_nothing_left_to_show() {
    let scene = Scene::new();
    let mut browser = signed_in(&scene);
    let ask = scene.open_ask();
    for path in ["/".to_owned(), page_path(&ask), "/history".into(), "/settings".into()] {
        let page = browser.visit(&path);
        assert_eq!(page.status, 200, "{path}");
        assert!(page.header("cache-control").is_some_and(|value| value.contains("no-store")), "{path}");
    }
    let mut kept = browser.clone();
    let form = ["/settings", "/"]
        .iter()
        .find_map(|path| {
            let page = browser.visit(path).text();
            forms(&page, path).into_iter().find(|form| form.method == "post" && form.action.contains("sign-out"))
        })
        .expect("a form that signs out");
    browser.submit(&form, &[]);
    for window in [&mut browser, &mut kept] {
        let page = window.visit(&page_path(&ask));
        assert!(!unescape(&page.text()).contains("The fence is dry"), "{}", page.text());
    }
}

#[test]
fn h20_no_page_may_be_framed() {
    let scene = Scene::new();
    let mut browser = signed_in(&scene);
    let ask = scene.open_ask();
    for path in ["/".to_owned(), page_path(&ask), "/settings".into(), "/sign-in".into(), "/nothing-here".into()] {
        let page = browser.get(&path);
        let policy = page.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe-inline") && !policy.contains('*'), "{path}: {policy}");
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
}

#[test]
fn a_question_closed_elsewhere_locks_its_page() {
    let scene = Scene::new();
    let mut browser = signed_in(&scene);
    let ask = scene.open_ask();
    let form = answer_form(&mut browser, &ask);
    scene.harness.send(&scene.harness.answer(&ask, &[])).expect(201);
    let page = browser.submit(&form, &[choice(&form, 0)]);
    assert!(page.status < 500);
    let after = until(LIMIT, "the page of the closed ask", || {
        let page = browser.visit(&page_path(&ask));
        (page.status == 200).then(|| page.text())
    });
    assert!(unescape(&after).to_lowercase().contains("withdr"), "{after}");
    assert!(forms(&after, "/").iter().all(|form| form.action != page_path(&ask)), "nothing can be sent: {after}");
    assert_eq!(scene.harness.get(&ask_path(&ask)).expect(200)["state"], "withdrawn");
}
