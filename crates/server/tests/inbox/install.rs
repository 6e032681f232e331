//! What installs the inbox: the manifest, the worker, and what they may do.

use reqwest::StatusCode;
use serde_json::Value;

use crate::support::App;

#[tokio::test]
async fn the_manifest_names_the_product_and_icons_that_are_there() {
    let app = App::start().await;
    let page = app.browser().get("/manifest.webmanifest").await;
    assert_eq!(
        (page.status, &page.headers["content-type"]),
        (StatusCode::OK, &"application/manifest+json".parse().unwrap())
    );
    let manifest: Value = serde_json::from_str(&page.body).unwrap();
    for (name, value) in
        [("name", "Chips"), ("id", "/"), ("start_url", "/"), ("scope", "/"), ("display", "standalone"), ("lang", "en")]
    {
        assert_eq!(manifest[name], value, "{name}");
    }
    let icons = manifest["icons"].as_array().unwrap();
    let with = |name: &str, value: &str| icons.iter().filter(|icon| icon[name] == value).count();
    assert_eq!((with("purpose", "maskable"), with("sizes", "192x192"), with("sizes", "512x512")), (1, 1, 2));
    for icon in icons {
        let reply = app.browser().head(icon["src"].as_str().unwrap()).await;
        assert_eq!(
            (reply.status, reply.headers["content-type"].to_str().unwrap()),
            (StatusCode::OK, icon["type"].as_str().unwrap())
        );
    }
    let german =
        app.browser().request(reqwest::Method::GET, "/manifest.webmanifest", &[("accept-language", "de")], None).await;
    assert!(german.body.contains("antwortest"), "{}", german.body);
}

#[tokio::test]
async fn the_worker_is_asked_for_anew_and_the_pages_let_it_in() {
    let app = App::start().await;
    let worker = app.browser().get("/sw.js?de").await;
    assert_eq!(worker.status, StatusCode::OK);
    assert_eq!(worker.headers["content-type"], "text/javascript; charset=utf-8");
    assert_eq!(worker.headers["cache-control"], "no-store");
    assert!(worker.body.contains("offline = \"/offline?de\""), "{}", worker.body);
    let page = app.browser().get("/sign-in").await;
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none';") && policy.contains("worker-src 'self'"), "{policy}");
    // A language that is not there is the browser's own, and no text of anybody's gets into the script.
    let other = app.browser().get("/sw.js?%22%3Balert(1)%2F%2F").await;
    assert!(other.body.contains("offline = \"/offline?en\"") && !other.body.contains("alert"), "{}", other.body);
}

#[tokio::test]
async fn the_page_that_stands_in_is_the_same_for_everybody_at_any_time() {
    let app = App::start().await;
    let (kim, nobody) = (app.kim().await.get("/offline?de").await, app.browser().get("/offline?de").await);
    assert_eq!((nobody.status, &kim.body), (StatusCode::OK, &nobody.body));
    assert!(nobody.body.contains("Chips ist nicht zu erreichen") && !nobody.body.contains("Kim"), "{}", nobody.body);
    assert!(!nobody.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn signing_out_has_the_browser_forget_what_it_keeps() {
    let app = App::start().await;
    let kim = app.kim().await;
    let settings = kim.get("/settings").await;
    assert!(!settings.headers.contains_key("clear-site-data"));
    let left = kim.submit(&settings.form("/sign-out"), &[]).await;
    assert_eq!(
        (left.location().as_str(), &left.headers["clear-site-data"]),
        ("/sign-in", &"\"storage\"".parse().unwrap())
    );
}
