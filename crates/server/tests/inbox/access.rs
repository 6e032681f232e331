//! Who may see what, and which requests are not taken at all.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{App, encode, plain};
use chips_protocol::api::{AskState, NewRun};

const NOBODY: &str = "qst_01K4ZQPX000000000000000099";

#[tokio::test]
async fn who_is_not_signed_in_is_led_to_the_sign_in_and_back() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let browser = app.browser();
    for (path, leads) in [
        ("/".to_owned(), "/sign-in".to_owned()),
        (format!("/asks/{ask_id}"), format!("/sign-in?next=%2Fasks%2F{ask_id}")),
        ("/history?q=a+b".to_owned(), "/sign-in?next=%2Fhistory%3Fq%3Da%2Bb".to_owned()),
        ("/settings".to_owned(), "/sign-in?next=%2Fsettings".to_owned()),
    ] {
        let page = browser.get(&path).await;
        assert_eq!((page.status, page.location()), (StatusCode::SEE_OTHER, leads), "{path}");
    }
    for path in ["/live".to_owned(), "/fragments/list".to_owned(), format!("/fragments/asks/{ask_id}")] {
        assert_eq!(browser.get(&path).await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
}

#[tokio::test]
async fn what_may_not_be_seen_looks_like_what_does_not_exist() {
    let app = App::start().await;
    let mut hand = app.admin();
    let closed = hand.add_space(app.workspace_id, "Board", &[app.robin]).unwrap();
    let run = app.open_run(NewRun { space_id: Some(closed), ..NewRun::default() }).await;
    let hidden = app.ask_in(run.run_id, plain()).await;
    let kim = app.kim().await;
    let unknown = kim.get(&format!("/asks/{NOBODY}")).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    unknown.says("There is nothing here");
    for path in [
        format!("/asks/{hidden}"),
        format!("/runs/{}", run.run_id),
        "/asks/x".to_owned(),
        format!("/asks/{}", hidden.to_string().to_lowercase()),
        "/asks/%00".to_owned(),
        "/runs/x".to_owned(),
    ] {
        let page = kim.get(&path).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(page.text(), unknown.text(), "{path}");
    }
    assert_eq!(kim.get(&format!("/fragments/asks/{hidden}")).await.status, StatusCode::NOT_FOUND);
    assert!(!kim.get("/").await.body.contains(&hidden.to_string()));
    assert_eq!(app.signed_in(app.robin).await.get(&format!("/asks/{hidden}")).await.status, StatusCode::OK);

    let nowhere = kim.request(Method::GET, "/nowhere", &[("accept", "text/html")], None).await;
    assert_eq!((nowhere.status, nowhere.text()), (StatusCode::NOT_FOUND, unknown.text()));
    assert_eq!(nowhere.header("cache-control"), "no-store");
}

#[tokio::test]
async fn who_is_taken_out_of_a_space_between_page_and_answer_gets_the_404_page() {
    let app = App::start().await;
    let mut hand = app.admin();
    let space = hand.add_space(app.workspace_id, "Board", &[app.kim, app.robin]).unwrap();
    let run = app.open_run(NewRun { space_id: Some(space), ..NewRun::default() }).await;
    let ask_id = app.ask_in(run.run_id, plain()).await;
    let kim = app.kim().await;
    let path = format!("/asks/{ask_id}");
    let form = kim.get(&path).await.form(&path);
    hand.set_member(space, app.kim, false).unwrap();
    let page = kim.submit(&form, &[("q0", "0")]).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    page.says("There is nothing here");
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
}

#[tokio::test]
async fn a_form_that_another_site_sends_changes_nothing() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let kim = app.kim().await;
    let path = format!("/asks/{ask_id}");
    let answer = kim.get(&path).await.form(&path);
    let settings = kim.get("/settings").await;
    let way_in = app.way_in(app.kim);
    let link = format!("/sign-in/{}", way_in.secret);
    let link_form = kim.get(&link).await.form(&link);
    let own = format!("http://{}", app.address);
    let foreign: [&[(&str, &str)]; 8] = [
        &[],
        &[("origin", "null")],
        &[("origin", "https://evil.example")],
        &[("origin", "http://127.0.0.1:1")],
        &[("sec-fetch-site", "cross-site"), ("origin", &own)],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("sec-fetch-site", "same-origin"), ("origin", "null")],
    ];
    for headers in foreign {
        for (form, more) in [
            (&answer, &[("q0", "0")][..]),
            (&settings.form("/sign-out"), &[]),
            (&link_form, &[]),
            (&settings.form("/sign-out").with("code", "x"), &[]),
        ] {
            let fields: Vec<(&str, &str)> =
                form.hidden.iter().map(|(name, value)| (&**name, &**value)).chain(more.iter().copied()).collect();
            for action in [form.action.as_str(), "/sign-in", "/settings/sessions/end", "/settings/sessions/end-others"]
            {
                let page = kim.request(Method::POST, action, headers, Some(encode(&fields))).await;
                assert_eq!(page.status, StatusCode::FORBIDDEN, "{action} {headers:?}");
            }
        }
    }
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
    assert_eq!(kim.get("/settings").await.status, StatusCode::OK, "still signed in");

    let fetched = [("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "navigate")];
    let fields: Vec<(&str, &str)> = answer.hidden.iter().map(|(name, value)| (&**name, &**value)).collect();
    let body = encode(&[&fields[..], &[("q0", "0")]].concat());
    let page = kim.request(Method::POST, &path, &fetched, Some(body)).await;
    assert_eq!(page.status, StatusCode::SEE_OTHER, "fetch metadata alone will do");
}

#[tokio::test]
async fn a_form_of_another_session_is_not_taken() {
    let app = App::start().await;
    let ask_id =
        app.ask(json!({ "questions": [crate::support::question("a", "?", json!({"allow_free_text": true}))] })).await;
    let path = format!("/asks/{ask_id}");
    let robins = app.signed_in(app.robin).await.get(&path).await.form(&path);
    let kim = app.kim().await;
    for form in [robins.clone(), robins.clone().with("token", ""), robins.with("token", &"0".repeat(32))] {
        let page = kim.submit(&form, &[("q0", "text"), ("t0", "on the 20th, please")]).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN);
        page.says("This page was from an earlier sign-in");
        page.says("on the 20th, please");
        assert_ne!(page.form(&path).hidden("event"), form.hidden("event"), "what comes next is a new attempt");
    }
    let token = kim.get(&path).await.form(&path).hidden("token").to_owned();
    for (action, form) in [("/sign-out", vec![]), ("/settings/sessions/end-others", vec![])] {
        let page = kim.post(action, &form).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN, "{action} without a token");
        let doubled = kim.post(action, &[("token", &token), ("token", &token)]).await;
        assert_eq!(doubled.status, StatusCode::FORBIDDEN, "{action} with two");
        let more = kim.post(action, &[("token", &token), ("x", "")]).await;
        assert_eq!(more.status, StatusCode::UNPROCESSABLE_ENTITY, "{action} with more");
    }
    assert_eq!(kim.get("/settings").await.status, StatusCode::OK);
    assert_eq!(app.read(ask_id).await.state, AskState::Open);
}

#[tokio::test]
async fn pages_are_not_kept_and_can_not_be_framed() {
    let app = App::start().await;
    let ask_id = app.ask(plain()).await;
    let run_id = app.read(ask_id).await.ask.envelope.run_id;
    let kim = app.kim().await;
    let link = format!("/sign-in/{}", app.way_in(app.kim).secret);
    for path in [
        "/".to_owned(),
        format!("/asks/{ask_id}"),
        format!("/fragments/asks/{ask_id}"),
        "/fragments/list".to_owned(),
        "/history".to_owned(),
        format!("/runs/{run_id}"),
        "/settings".to_owned(),
        "/sign-in".to_owned(),
        link,
        format!("/asks/{NOBODY}"),
    ] {
        let page = kim.get(&path).await;
        assert_eq!(page.header("cache-control"), "no-store", "{path}");
        assert_eq!(page.header("x-frame-options"), "DENY", "{path}");
        assert_eq!(page.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(page.header("referrer-policy"), "same-origin", "{path}");
        let policy = page.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert!(!page.body.contains(" style=") && !page.body.contains("onclick"), "{path} has nothing inline");
    }
}

#[tokio::test]
async fn assets_are_kept_for_ever_under_a_name_that_changes_with_them() {
    let app = App::start().await;
    let page = app.browser().get("/sign-in").await;
    let paths: Vec<&str> = page.body.split('"').filter(|text| text.starts_with("/assets/")).collect();
    assert!(paths.len() >= 3, "{paths:?}");
    for path in paths {
        let asset = app.browser().get(path).await;
        assert_eq!(asset.status, StatusCode::OK, "{path}");
        assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable");
    }
    assert_eq!(app.browser().get("/assets/chips.000000000000.css").await.status, StatusCode::NOT_FOUND);
    assert_eq!(app.browser().get("/assets/..%2f..%2fCargo.toml").await.status, StatusCode::NOT_FOUND);
    let manifest = app.browser().get("/manifest.webmanifest").await;
    assert_eq!(manifest.header("content-type"), "application/manifest+json");
    let manifest: serde_json::Value = serde_json::from_str(&manifest.body).unwrap();
    for icon in manifest["icons"].as_array().unwrap() {
        assert_eq!(app.browser().get(icon["src"].as_str().unwrap()).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn an_unencrypted_connection_that_leaves_the_machine_says_what_that_costs() {
    let app = App::configured(|config| {
        config.insecure = true;
        config.allow_hosts = vec!["chips.lan".into()];
    })
    .await;
    let warning = "This connection is not encrypted";
    let lan = app.browser().request(Method::GET, "/sign-in", &[("host", "chips.lan")], None).await;
    assert!(lan.body.contains(warning));
    assert!(!app.browser().get("/sign-in").await.body.contains(warning), "loopback");
    let https = App::configured(|config| {
        config.public_url = Some("https://chips.example.com".parse().unwrap());
    })
    .await;
    let page = https.browser().request(Method::GET, "/sign-in", &[("host", "chips.example.com")], None).await;
    assert!(!page.body.contains(warning));
}

#[tokio::test]
async fn forms_are_forms() {
    let app = App::start().await;
    let kim = app.kim().await;
    let own = format!("http://{}", app.address);
    let with = |media_type: &'static str| [("origin", own.clone()), ("content-type", media_type.to_owned())];
    let latin = "application/x-www-form-urlencoded; charset=iso-8859-1";
    for media_type in ["application/json", "text/plain", "multipart/form-data; boundary=x", latin] {
        let headers = with(media_type);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let page = kim.request(Method::POST, "/sign-out", &headers, Some("{}".into())).await;
        assert_eq!(page.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{media_type}");
    }
    let packed = [("origin", own.as_str()), ("content-encoding", "gzip")];
    let page = kim.request(Method::POST, "/sign-out", &packed, Some("token=x".into())).await;
    assert_eq!(page.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let large = format!("token={}", "a".repeat(600 * 1024));
    let page = kim.request(Method::POST, "/sign-out", &[("origin", &own)], Some(large)).await;
    assert_eq!(page.status, StatusCode::PAYLOAD_TOO_LARGE);
    let bytes = kim.request(Method::POST, "/sign-out", &[("origin", &own)], Some("token=%FF".into())).await;
    assert_eq!(bytes.status, StatusCode::BAD_REQUEST);
    assert_eq!(kim.get("/").await.status, StatusCode::OK, "still signed in");
}
