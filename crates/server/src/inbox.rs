//! The inbox: pages for people, server-rendered, which work without JavaScript.

use axum::Router;

use crate::app::AppState;

/// Every page, form and asset of the inbox.
pub fn router() -> Router<AppState> {
    Router::new()
}
