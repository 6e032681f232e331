//! Signing in: a link is used by its button alone, once, and only in the browser that opened it.

use chips_server::config::trusted_proxy;
use chips_store::SignInState;
use reqwest::{Method, StatusCode};

use crate::support::{App, Browser, Page, encode, link_sha256, until};

/// Presses the button on a link's page.
async fn press(browser: &Browser, page: &Page) -> Page {
    browser.submit(&page.form(&page.path), &[]).await
}

#[tokio::test]
async fn whoever_looks_at_a_link_leaves_it_as_it_was() {
    let app = App::start().await;
    let way_in = app.way_in(app.kim);
    let path = format!("/sign-in/{}", way_in.secret);
    for method in [Method::HEAD, Method::GET, Method::GET, Method::GET] {
        let page = app.browser().request(method, &path, &[("user-agent", "preview-bot")], None).await;
        assert_eq!(page.status, StatusCode::OK);
    }
    let state = app.store.sign_in_state(link_sha256(&way_in)).await.unwrap();
    assert_eq!(state, SignInState::Good { name: "Kim".into() });

    let browser = app.browser();
    let page = browser.get(&path).await;
    page.says("Sign in as Kim ?");
    assert_eq!(press(&browser, &page).await.location(), "/");
    assert_eq!(browser.get("/").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_link_works_once() {
    let app = App::start().await;
    let way_in = app.way_in(app.kim);
    let path = format!("/sign-in/{}", way_in.secret);
    let (one, other) = (app.browser(), app.browser());
    let (page, page_of_other) = (one.get(&path).await, other.get(&path).await);
    let (first, second) = tokio::join!(press(&one, &page), press(&other, &page_of_other));
    let mut statuses = [first.status, second.status];
    statuses.sort();
    assert_eq!(statuses, [StatusCode::SEE_OTHER, StatusCode::GONE], "one of two at the same time");

    let again = app.browser().get(&path).await;
    assert_eq!(again.status, StatusCode::GONE);
    again.says("This link was used already.");
    again.form("/sign-in");
    // The code beside it is used up with it.
    let browser = app.browser();
    let form = browser.get("/sign-in").await.form("/sign-in");
    let refused = browser.submit(&form, &[("code", &way_in.code)]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.says("That code does not work");
}

#[tokio::test]
async fn a_link_is_good_for_fifteen_minutes() {
    let (app, time) = App::by_hand().await;
    let path = format!("/sign-in/{}", app.way_in(app.kim).secret);
    let browser = app.browser();
    let page = browser.get(&path).await;
    assert_eq!(page.status, StatusCode::OK);
    time.pass_ms(16 * 60 * 1000);
    let late = press(&browser, &page).await;
    assert_eq!(late.status, StatusCode::GONE);
    late.says("This link is too old.");
    late.form("/sign-in");
    assert_eq!(browser.get("/").await.location(), "/sign-in");
}

#[tokio::test]
async fn a_link_that_nobody_made_explains_itself_and_asks_for_the_code() {
    let app = App::start().await;
    for path in ["/sign-in/x", "/sign-in/%00", "/sign-in/%3Cscript%3E"] {
        let page = app.browser().get(path).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
        page.says("This link is not known here.");
        page.form("/sign-in");
        assert!(!page.body.contains("<script>"), "{}", page.body);
    }
}

#[tokio::test]
async fn a_form_from_another_browser_asks_for_the_code_and_leaves_the_link() {
    let app = App::start().await;
    let way_in = app.way_in(app.kim);
    let path = format!("/sign-in/{}", way_in.secret);
    let form = app.browser().get(&path).await.form(&path);
    for browser in [app.browser(), {
        let other = app.browser();
        other.get("/sign-in").await;
        other
    }] {
        let refused = browser.submit(&form, &[]).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        refused.says("This form was not opened in this browser");
        refused.form("/sign-in");
    }
    let state = app.store.sign_in_state(link_sha256(&way_in)).await.unwrap();
    assert!(matches!(state, SignInState::Good { .. }), "{state:?}");
}

#[tokio::test]
async fn the_short_code_signs_in_however_it_is_typed() {
    let app = App::start().await;
    let code = app.way_in(app.kim).code;
    let typed = format!(" {} ", code.to_lowercase().replace('-', " "));
    let browser = app.browser();
    let page = browser.get("/sign-in?next=/settings").await;
    let done = browser.submit(&page.form("/sign-in"), &[("code", &typed)]).await;
    assert_eq!((done.status, done.location().as_str()), (StatusCode::SEE_OTHER, "/settings"));
    browser.get("/settings").await.says("Kim");
}

#[tokio::test]
async fn a_wrong_code_says_so_and_guessing_is_slowed_down() {
    let app = App::start().await;
    let browser = app.browser();
    let form = browser.get("/sign-in").await.form("/sign-in");
    let empty = browser.submit(&form, &[("code", "  ")]).await;
    assert_eq!(empty.status, StatusCode::UNPROCESSABLE_ENTITY);
    empty.says("Type the code");
    let wrong = browser.submit(&form, &[("code", "AAAA-AAAA")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.body.contains("value=\"AAAA-AAAA\""), "what was typed is still there");

    let mut slowed = None;
    for _ in 0..60 {
        let page = browser.submit(&form, &[("code", "BBBB-BBBB")]).await;
        if page.status == StatusCode::TOO_MANY_REQUESTS {
            slowed = Some(page);
            break;
        }
    }
    let slowed = slowed.expect("guessing is slowed down");
    slowed.says("Wait a little");
    assert!(slowed.header("retry-after").parse::<u64>().unwrap() > 0);
    // A good code has to wait too: nobody learns from the answer which one is good.
    let good = browser.submit(&form, &[("code", &app.way_in(app.kim).code)]).await;
    assert_eq!(good.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn the_way_back_stays_on_this_site() {
    let app = App::start().await;
    for (next, leads) in [
        ("/history?q=a", "/history?q=a"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("\\/evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("https://evil.example/", "/"),
        ("/x\r\nSet-Cookie: evil=1", "/"),
        ("/..//evil.example", "/"),
    ] {
        let browser = app.browser();
        let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
        let page = browser.get(&format!("/sign-in?{query}")).await;
        // What the page carries, and what a form says by itself.
        let code = app.way_in(app.kim).code;
        let done = browser.submit(&page.form("/sign-in"), &[("code", &code)]).await;
        assert_eq!(done.location(), leads, "{next:?}");
        assert!(!browser.cookies().contains("evil"));

        let browser = app.browser();
        let form = browser.get("/sign-in").await.form("/sign-in").with("next", next);
        let code = app.way_in(app.kim).code;
        let done = browser.submit(&form, &[("code", &code)]).await;
        assert_eq!(done.location(), leads, "{next:?}");
        let signed_in = browser.get(&format!("/sign-in?{query}")).await;
        assert_eq!(signed_in.location(), leads, "{next:?}");
    }
}

#[tokio::test]
async fn cookies_are_held_to_the_host_under_https_and_have_another_name_without() {
    let app = App::start().await;
    let browser = app.kim().await;
    assert!(browser.cookies().starts_with("chips="), "{}", browser.cookies());

    let app = App::configured(|config| config.public_url = Some("https://chips.example.com".parse().unwrap())).await;
    let browser = app.browser();
    let path = format!("/sign-in/{}", app.way_in(app.kim).secret);
    let done = press(&browser, &browser.get(&path).await).await;
    let set: Vec<&str> = done.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect();
    let session = set.iter().find(|cookie| cookie.starts_with("__Host-chips=")).unwrap();
    for flag in ["; Path=/", "; Secure", "; HttpOnly", "; SameSite=Lax"] {
        assert!(session.contains(flag), "{session}");
    }
    assert!(!session.contains("Domain"), "{session}");
    // A cookie of the other name is no session there.
    let plain = browser.cookies().replace("__Host-chips", "chips");
    let page = app.browser().request(Method::GET, "/", &[("cookie", &plain)], None).await;
    assert_eq!(page.location(), "/sign-in");
}

#[tokio::test]
async fn signing_in_again_ends_this_browsers_earlier_session() {
    let app = App::start().await;
    let browser = app.kim().await;
    let earlier = browser.twin();
    let path = format!("/sign-in/{}", app.way_in(app.robin).secret);
    press(&browser, &browser.get(&path).await).await;
    browser.get("/settings").await.says("Robin");
    assert_eq!(earlier.get("/settings").await.location(), "/sign-in?next=%2Fsettings");
}

#[tokio::test]
async fn sessions_are_listed_by_device_and_can_be_ended() {
    let app = App::start().await;
    let (here, there) = (app.kim().await, app.kim().await);
    let strangers = app.signed_in(app.robin).await;
    let page = here.get("/settings").await;
    page.says("Kim");
    page.says("Firefox on Linux");
    page.says("this device");
    let end = page.form("/settings/sessions/end");

    // Somebody else's form can't end it.
    let foreign = strangers.get("/settings").await.form("/sign-out").hidden("token").to_owned();
    let refused = strangers.submit(&end.clone().with("token", &foreign), &[]).await;
    assert_eq!(refused.location(), "/settings");
    assert_eq!(there.get("/").await.status, StatusCode::OK, "the number of another person's session ends nothing");

    assert_eq!(here.submit(&end, &[]).await.location(), "/settings");
    assert_eq!(there.get("/").await.location(), "/sign-in");
    assert_eq!(here.get("/").await.status, StatusCode::OK);

    let (second, third) = (app.kim().await, app.kim().await);
    let page = here.get("/settings").await;
    here.submit(&page.form("/settings/sessions/end-others"), &[]).await;
    for browser in [&second, &third] {
        assert_eq!(browser.get("/").await.location(), "/sign-in");
    }
    assert_eq!(here.get("/").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_session_ends_after_fourteen_days_unused_and_thirty_at_most() {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let (app, time) = App::by_hand().await;
    let (used, idle) = (app.kim().await, app.kim().await);
    let listed = async || used.get("/settings").await.body.matches("action=\"/settings/sessions/end\"").count();
    time.pass_ms(14 * DAY_MS - 1);
    assert_eq!(listed().await, 1, "the other device stands in the list");
    // That one was used is written by and by.
    let now = app.store.clock().now();
    until("the use is noted", async || {
        let sessions = app.store.sessions(&app.identity(app.kim)).await.unwrap();
        sessions.iter().any(|session| session.last_used == now).then_some(())
    })
    .await;
    time.pass_ms(1);
    assert_eq!(idle.get("/").await.location(), "/sign-in", "fourteen days without a use");
    assert_eq!(listed().await, 0);
    for _ in 0..3 {
        time.pass_ms(5 * DAY_MS);
        assert_eq!(used.get("/").await.status, StatusCode::OK);
        let now = app.store.clock().now();
        until("the use is noted", async || {
            let sessions = app.store.sessions(&app.identity(app.kim)).await.unwrap();
            sessions.iter().any(|session| session.last_used == now).then_some(())
        })
        .await;
    }
    time.pass_ms(DAY_MS);
    assert_eq!(used.get("/").await.location(), "/sign-in", "thirty days, however often it was used");
}

#[tokio::test]
async fn after_signing_out_nothing_is_shown() {
    let app = App::start().await;
    let browser = app.kim().await;
    let stolen = browser.twin();
    let page = browser.get("/settings").await;
    let left = browser.submit(&page.form("/sign-out"), &[]).await;
    assert_eq!(left.location(), "/sign-in");
    assert!(left.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(browser.cookies(), "");
    for path in ["/", "/history", "/settings"] {
        assert!(stolen.get(path).await.location().starts_with("/sign-in"), "the session itself has ended");
    }
}

/// Types so many wrong codes, as whoever the proxy says; true where it became too many.
async fn guess(app: &App, forwarded: &str, times: usize) -> bool {
    let browser = app.browser();
    let form = browser.get("/sign-in").await.form("/sign-in");
    let token = form.hidden("token").to_owned();
    let headers = [("origin", app.url("")), ("x-forwarded-for", forwarded.to_owned())];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    for _ in 0..times {
        let body = Some(encode(&[("token", &token), ("code", "BBBB-BBBB")]));
        let page = browser.request(Method::POST, "/sign-in", &headers, body).await;
        if page.status == StatusCode::TOO_MANY_REQUESTS {
            return true;
        }
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", page.body);
    }
    false
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_guesser_is_slowed_down_alone() {
    let (app, _time) =
        App::by_hand_with(|config| config.trust_proxy = vec![trusted_proxy("127.0.0.0/8").unwrap()]).await;
    assert!(guess(&app, "198.51.100.1", 31).await);
    // What the guesser itself wrote stands left of what the proxy adds.
    assert!(guess(&app, "192.0.2.77, 198.51.100.1", 1).await);
    assert!(!guess(&app, "198.51.100.2", 1).await, "another person behind the same proxy is not held up");
    assert!(!guess(&app, "2001:db8::1", 30).await);
    assert!(guess(&app, "2001:db8::2", 1).await, "one subscriber");
}

#[tokio::test]
async fn nobody_else_gets_away_with_a_forged_header() {
    let (app, _time) =
        App::by_hand_with(|config| config.trust_proxy = vec![trusted_proxy("10.0.0.0/8").unwrap()]).await;
    for n in 0..30 {
        assert!(!guess(&app, &format!("198.51.100.{n}"), 1).await);
    }
    assert!(guess(&app, "198.51.100.99", 1).await);
}
