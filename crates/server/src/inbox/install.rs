//! What makes the inbox an app on a phone: the manifest, the service worker, and the page that it shows where Chips can't be
//! reached.
//!
//! The worker keeps the assets and that one page, under a name that changes with them. It never keeps a page of a person's, so
//! it has nothing stale to show, and nothing to forget at the sign-out.

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::assets;
use super::page::{PageName, Shell, Visit, page};
use crate::state::AppState;
use crate::words::Words;

/// `GET /manifest.webmanifest`: how the inbox is installed (W3C, Web Application Manifest). The colours are those of the
/// light page; in the dark each page's own `theme-color` counts.
pub(crate) async fn manifest(State(state): State<AppState>, headers: HeaderMap) -> Response {
    let w = Visit::of(&state, &headers).w;
    let icon = |icon: &assets::Asset, sizes, media_type, purpose| json!({ "src": icon.path, "sizes": sizes, "type": media_type, "purpose": purpose });
    let manifest = json!({
        "id": "/",
        "name": "Chips",
        "short_name": "Chips",
        "description": w.product,
        "lang": w.lang,
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": "#f4f2ed",
        "theme_color": "#f4f2ed",
        "categories": ["productivity"],
        "icons": [
            icon(&assets::ICON, "any", "image/svg+xml", "any"),
            icon(&assets::SMALL_ICON, "192x192", "image/png", "any"),
            icon(&assets::LARGE_ICON, "512x512", "image/png", "any"),
            icon(&assets::MASKABLE_ICON, "512x512", "image/png", "maskable"),
        ],
    });
    ([(header::CONTENT_TYPE, "application/manifest+json")], manifest.to_string()).into_response()
}

/// `GET /sw.js?LANGUAGE`: the service worker. A browser asks for it with each page's language, so a change of the language is
/// another worker.
pub(crate) async fn serve_worker(State(state): State<AppState>, query: RawQuery, headers: HeaderMap) -> Response {
    let worker = worker(words(&state, query, &headers));
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], worker).into_response()
}

/// `GET /offline?LANGUAGE`: the page that the worker keeps.
pub(crate) async fn offline(State(state): State<AppState>, query: RawQuery, headers: HeaderMap) -> Response {
    page(StatusCode::OK, &OfflinePage::new(words(&state, query, &headers)))
}

/// The words of the language that a query names; else those that the browser would get on a page.
fn words(state: &AppState, RawQuery(query): RawQuery, headers: &HeaderMap) -> &'static Words {
    query.and_then(|lang| Words::of(&lang)).unwrap_or_else(|| Visit::of(state, headers).w)
}

/// The worker for a language. It differs as soon as anything does that it keeps.
pub(crate) fn worker(w: &'static Words) -> String {
    let source = assets::squeeze::script(include_str!("../../assets/sw.js"));
    let files = [&assets::STYLE, &assets::SCRIPT, &assets::ICON].map(|asset| asset.path.as_str());
    let page = OfflinePage::new(w).render().unwrap_or_default();
    let hash = Sha256::new().chain_update(&source).chain_update(files.concat()).chain_update(page).finalize();
    let cache = format!("chips-{}", assets::hex(&hash[..6]));
    let offline = format!("/offline?{}", w.lang);
    let (unsent, picture) = (json!(w.worker_unsent), json!(assets::SMALL_ICON.path));
    let (cache, files, offline) = (json!(cache), json!(files), json!(offline));
    format!(
        "const unsent = {unsent}, icon = {picture}, cache = {cache}, files = {files}, offline = {offline};\n{source}"
    )
}

#[derive(Template)]
#[template(path = "offline.html")]
struct OfflinePage {
    shell: Shell,
}

impl OfflinePage {
    /// The same for everybody: what a person or a moment would add to it must not be kept.
    fn new(w: &'static Words) -> Self {
        Self { shell: Shell::for_nobody(w, w.offline, PageName::Offline) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::LANGUAGES;

    #[test]
    fn each_language_has_a_worker_and_a_page_of_its_own() {
        let [english, german] = LANGUAGES.map(worker);
        assert_eq!(english, worker(LANGUAGES[0]), "asked again it is the same, or each page would install it anew");
        let first = |worker: &str| worker.lines().next().unwrap_or_default().to_owned();
        assert_ne!(first(&english), first(&german));
        assert!(first(&german).ends_with(r#"offline = "/offline?de";"#), "{german}");
        assert!(first(&german).contains(&assets::STYLE.path) && first(&german).contains(&assets::SCRIPT.path));
    }
}
