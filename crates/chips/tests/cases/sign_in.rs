//! How a session begins, and what cannot begin or borrow one: H08 to H11.

use crate::support::browser::{Browser, forms, unescape};
use crate::support::process::text;
use crate::support::scene::Scene;
use crate::support::{Folder, Request, Serve};

/// The form of the page behind a sign-in link.
fn link_form(browser: &mut Browser, link: &str) -> crate::support::browser::Form {
    let path = Browser::path(link).to_owned();
    let page = browser.visit(&path);
    assert_eq!(page.status, 200, "{}", page.text());
    forms(&page.text(), &path).into_iter().find(|form| form.method == "post").expect("a button that POSTs")
}

/// Whether the browser is signed in: its first page is the inbox and not a way to sign in.
fn signed_in(browser: &mut Browser) -> bool {
    browser.get("/settings").status == 200
}

#[test]
fn h08_a_form_from_another_site_changes_nothing() {
    let scene = Scene::new();
    let mut browser = Browser::new(scene.serve.addr);
    browser.sign_in(&scene.folder.text("/sign_in_url"));
    let ask = scene.open_ask();
    let path = format!("/asks/{}", text(&ask, "/ask_id"));
    let page = browser.visit(&path);
    let form = forms(&page.text(), &path)
        .into_iter()
        .find(|form| form.method == "post" && form.choices.len() >= 2)
        .unwrap_or_else(|| panic!("no form that answers: {}", page.text()));
    let tapped = &form.choices[0];
    let own = format!("http://{}", scene.serve.addr);
    let from: [&[(&str, &str)]; 6] = [
        &[("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")],
        &[("Origin", "https://evil.example")],
        &[("Origin", "null")],
        &[("Origin", "null"), ("Sec-Fetch-Site", "cross-site")],
        &[("Origin", own.as_str()), ("Sec-Fetch-Site", "cross-site")],
        &[],
    ];
    for headers in from {
        let answer = browser.submit_with(&form, &[(&tapped.0, &tapped.1)], headers);
        assert_eq!(answer.status, 403, "{headers:?}: {}", answer.text());
        assert_eq!(scene.harness.state(&ask), "open", "{headers:?}");
    }
    // A session is no credential of the API, whose calls need no form.
    let cookie: Vec<_> = browser.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let answer = scene.person.answer(&ask, &[crate::support::events::chosen("fence", &["paint"])]);
    let by_cookie = Request::post_json("/v1/events", answer.to_string()).header("Cookie", &cookie.join("; "));
    by_cookie.send(scene.serve.addr).expect_problem(401, "unauthenticated");
    // No other site may read either.
    let preflight = Request::new("OPTIONS", "/v1/events").header("Origin", "https://evil.example");
    assert!(preflight.send(scene.serve.addr).header("access-control-allow-origin").is_none());
    browser.submit(&form, &[(&tapped.0, &tapped.1)]);
    assert_eq!(scene.harness.state(&ask), "answered");
}

#[test]
fn h09_a_link_that_scanners_opened_still_signs_in() {
    let scene = Scene::new();
    let link = scene.folder.text("/sign_in_url");
    let path = Browser::path(&link);
    for _ in 0..3 {
        assert_eq!(Request::new("HEAD", path).send(scene.serve.addr).status, 200);
        let page = Request::get(path).send(scene.serve.addr);
        assert_eq!(page.status, 200);
        assert!(page.header("set-cookie").is_none_or(|cookie| !cookie.to_lowercase().contains("session")));
        assert!(page.header("cache-control").is_some_and(|value| value.contains("no-store")));
        assert!(page.header("referrer-policy").is_some_and(|value| value == "no-referrer" || value == "same-origin"));
    }
    Browser::new(scene.serve.addr).sign_in(&link);
}

#[test]
fn h10_a_link_signs_in_once_even_when_two_press_at_the_same_time() {
    let scene = Scene::new();
    for round in 0..5 {
        let link = text(&scene.folder.admin(&["person", "link", &scene.person.id]), "/sign_in_url");
        let start = std::sync::Barrier::new(2);
        let signed: Vec<bool> = std::thread::scope(|scope| {
            let windows: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut browser = Browser::new(scene.serve.addr);
                        let form = link_form(&mut browser, &link);
                        start.wait();
                        browser.submit_only(&form, &[]);
                        signed_in(&mut browser)
                    })
                })
                .collect();
            windows.into_iter().map(|window| window.join().unwrap()).collect()
        });
        assert_eq!(signed.iter().filter(|signed| **signed).count(), 1, "round {round}: {signed:?}");

        let mut third = Browser::new(scene.serve.addr);
        let page = third.visit(Browser::path(&link));
        assert!(unescape(&page.text()).to_lowercase().contains("used"), "{}", page.text());
        assert!(!signed_in(&mut third));
    }
}

#[test]
fn h10_the_short_code_beside_the_link_signs_in_and_uses_both_up() {
    let scene = Scene::new();
    let (link, code) = (scene.folder.text("/sign_in_url"), scene.folder.text("/sign_in_code"));
    let enter = |code: &str| {
        let mut browser = Browser::new(scene.serve.addr);
        let page = browser.visit("/sign-in");
        let form = forms(&page.text(), "/sign-in")
            .into_iter()
            .find(|form| form.method == "post" && !form.texts.is_empty())
            .unwrap_or_else(|| panic!("no field for a code: {}", page.text()));
        browser.submit(&form, &[(&form.texts[0], code)]);
        signed_in(&mut browser)
    };
    assert!(!enter("AAAA-AAAA"));
    assert!(enter(&format!(" {} ", code.to_lowercase().replace('-', " "))), "as people type it");
    assert!(!enter(&code), "once");
    let mut browser = Browser::new(scene.serve.addr);
    let page = browser.visit(Browser::path(&link));
    assert!(unescape(&page.text()).to_lowercase().contains("used"), "{}", page.text());
}

#[test]
fn h10_a_link_is_good_for_a_quarter_of_an_hour() {
    let clock = super::clock::WallClock::new();
    let folder = Folder::new();
    // Later by the clock of the machine, which a start takes up.
    clock.jump("+16m");
    let mut command = Serve::command(&folder, "127.0.0.1:0");
    clock.govern(&mut command);
    let scene = Scene::of(folder, Serve::spawn(command));
    let mut browser = Browser::new(scene.serve.addr);
    let page = browser.visit(Browser::path(&scene.folder.text("/sign_in_url")));
    let shown = unescape(&page.text()).to_lowercase();
    assert!(shown.contains("expired") || shown.contains("too old"), "{shown}");
    assert!(forms(&page.text(), "/").iter().all(|form| form.fields.iter().all(|(_, value)| value.len() < 40)));
    assert!(!signed_in(&mut browser));
}

#[test]
fn h11_signing_in_leads_to_this_site_only() {
    let scene = Scene::new();
    let targets = [
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "https://evil.example/",
        "/%0d%0aSet-Cookie:%20x=1",
        "/\r\nSet-Cookie: x=1",
        "///evil.example",
        "/.//evil.example",
        "%2f%2fevil.example",
        "/\t/evil.example",
    ];
    for target in targets {
        let encoded: String = url::form_urlencoded::byte_serialize(target.as_bytes()).collect();
        let made = scene.folder.admin(&["person", "link", &scene.person.id]);
        let path = format!("{}?next={encoded}", Browser::path(&text(&made, "/sign_in_url")));
        let mut browser = Browser::new(scene.serve.addr);
        let page = browser.visit(&path);
        let form = forms(&page.text(), &path).into_iter().find(|form| form.method == "post").expect("a button");
        assert!(form.action.starts_with('/') && !form.action.starts_with("//"), "{target}: {form:?}");
        let after = browser.submit_only(&form, &[("next", target)]);
        assert!(!browser.cookies.contains_key("x"), "{target}");
        let to = after.header("location").unwrap_or("/");
        let base = url::Url::parse(&scene.serve.url()).unwrap();
        let resolved = base.join(to).unwrap();
        assert_eq!(resolved.origin(), base.origin(), "{target} leads to {to}");
    }
}
