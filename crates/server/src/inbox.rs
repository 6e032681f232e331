//! The inbox: pages for people, server-rendered, which work without JavaScript.
//!
//! A page is a template and a handler. The script (`assets/chips.js`) makes the same pages live: it sends the same forms and
//! puts the same cards in place that the pages are made of, so there is one way to show a question. All words stand in
//! one table for each language, `words.rs`.

mod answer;
mod ask;
mod assets;
mod card;
mod form;
mod guard;
mod history;
mod html;
mod install;
mod list;
mod live;
mod page;
mod present;
mod rows;
mod runs;
mod settings;
mod sift;
mod sign_in;

use axum::Router;
use axum::http::HeaderMap;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};

use crate::state::AppState;

/// Every page, form and asset of the inbox, behind what guards them. `state` is the one that the router is served with.
pub fn router(state: AppState) -> Router<AppState> {
    Router::new()
        .route("/", get(list::show))
        .route("/asks/{ask_id}", get(ask::show).post(answer::submit))
        .route("/history", get(history::show))
        .route("/runs/{run_id}", get(runs::show))
        .route("/settings", get(settings::show))
        .route("/settings/device", post(settings::set_device))
        .route("/settings/told/ntfy", post(settings::told::add_ntfy))
        .route("/settings/told/webhook", post(settings::told::add_webhook))
        .route("/settings/told/web-push", get(settings::push::show).post(settings::push::add))
        .route("/settings/told/email", post(settings::email::add))
        .route("/settings/told/email/confirm", post(settings::email::confirm))
        .route("/settings/told/telegram", post(settings::telegram::link))
        .route("/settings/told/test", post(settings::told::test))
        .route("/settings/told/remove", post(settings::told::remove))
        .route("/settings/when", post(settings::told::set_when))
        .route("/settings/sessions/end", post(settings::end_one))
        .route("/settings/sessions/end-others", post(settings::end_others))
        .route("/sign-in", get(sign_in::show).post(sign_in::with_code))
        .route("/sign-in/{secret}", get(sign_in::show_link).post(sign_in::with_link))
        .route("/sign-out", post(settings::sign_out))
        .route("/fragments/list", get(list::fragment))
        .route("/fragments/asks/{ask_id}", get(ask::piece))
        .route("/live", get(live::stream))
        .route("/present", post(present::touched))
        .route("/seen", post(present::seen))
        .route("/assets/{name}", get(assets::serve))
        .route("/manifest.webmanifest", get(install::manifest))
        .route("/sw.js", get(install::serve_worker))
        .route("/offline", get(install::offline))
        .layer(from_fn_with_state(state, guard::guard))
}

/// The page for a path that does not exist.
pub fn not_found(state: &AppState, headers: &HeaderMap) -> Response {
    guard::secured(page::Visit::of(state, headers).not_found())
}
