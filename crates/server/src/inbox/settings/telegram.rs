//! A chat on Telegram in "Where you are told": it is the person's once they have opened, in Telegram, a link that is made here.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::told::{Happened, again, misfit, person_id};
use super::{open, render, unwritten};
use crate::state::AppState;
use crate::words::fill;

/// The form, where the server has a bot.
#[derive(Debug, Default, Clone)]
pub(super) struct TelegramForm {
    /// The link that was just made.
    pub link: Option<String>,
    pub fault: Option<String>,
}

impl TelegramForm {
    /// The form as this server shows it; nothing where it has no bot.
    pub(super) fn shown(state: &AppState, kept: Option<Self>) -> Option<Self> {
        state.bot.as_ref().map(|_| kept.unwrap_or_default())
    }
}

/// `POST /settings/told/telegram`: makes a link.
pub(crate) async fn link(State(state): State<AppState>, request: Request) -> Response {
    let (person, fields) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    let (Some(id), Some(bot), Ok(())) = (person_id(&person), &state.bot, fields.end()) else {
        return misfit(&person);
    };
    let w = person.visit.w;
    let name = match bot.name().await {
        Ok(name) => name,
        Err(fault) => {
            let fault = Some(fill(w.telegram.fault_bot, &[("what", &fault.to_string())]));
            return again(&state, &person, Happened::with_telegram(TelegramForm { fault, link: None })).await;
        }
    };
    match state.links.make(id, w.lang).await {
        Ok(text) => {
            let link = Some(format!("https://t.me/{name}?start={text}"));
            let happened = Happened::with_telegram(TelegramForm { link, fault: None });
            render(&state, &person, StatusCode::OK, happened).await
        }
        Err(fault) => unwritten(&person.visit, &fault),
    }
}
