//! An e-mail address in "Where you are told": it is the person's once they have typed the code that was sent there.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use chips_core::notify::{Channel, Outcome};
use chips_store::NewEndpoint;
use serde_json::json;

use super::told::{ENDPOINTS, Field, Happened, again, cut, misfit, person_id};
use super::{open, unwritten};
use crate::channels::email;
use crate::channels::email::proof::Unproven;
use crate::inbox::page::Person;
use crate::state::AppState;
use crate::words::fill;

/// The form, where the server sends mail.
#[derive(Debug, Default, Clone)]
pub(super) struct EmailForm {
    pub address: Field,
    pub code: Field,
    /// What is said of the address that waits for its code.
    pub waits: Option<String>,
    pub open: bool,
}

impl EmailForm {
    /// The form as this server shows it; nothing where it sends no mail.
    pub(super) fn shown(state: &AppState, person: &Person, kept: Option<Self>) -> Option<Self> {
        if !state.channels.has(Channel::Email) {
            return None;
        }
        let mut form = kept.unwrap_or_default();
        let pending = person_id(person).and_then(|id| state.proofs.pending(id, person.visit.now));
        form.waits = pending.map(|address| fill(person.visit.w.mail.waits, &[("address", &address)]));
        form.open |= form.waits.is_some();
        Some(form)
    }
}

async fn faulty(state: &AppState, person: &Person, mut form: EmailForm) -> Response {
    form.open = true;
    again(state, person, Happened::with_email(form)).await
}

/// `POST /settings/told/email`: sends a code to an address.
pub(crate) async fn add(State(state): State<AppState>, request: Request) -> Response {
    let (person, mut fields) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    let (Ok(typed), Ok(())) = (fields.take("address"), fields.end()) else { return misfit(&person) };
    let (Some(id), Some(mailer)) = (person_id(&person), &state.mailer) else { return misfit(&person) };
    let (w, now) = (person.visit.w, person.visit.now);
    let mut form = EmailForm { address: Field::of(typed.trim().to_owned()), ..EmailForm::default() };
    let Some(address) = email::address(&form.address.text) else {
        form.address.blame(w.mail.fault_address);
        return faulty(&state, &person, form).await;
    };
    let known = match state.store.endpoints(person.identity()).await {
        Ok(known) => known,
        Err(fault) => return person.visit.unreadable(&fault),
    };
    let is_it = |address: &str| known.iter().any(|known| known.address == address && !known.disabled);
    if is_it(&address) {
        form.address.blame(w.mail.fault_known);
        return faulty(&state, &person, form).await;
    }
    let Some(code) = state.proofs.begin(id, &address, now) else {
        form.address.blame(w.mail.fault_mails);
        return faulty(&state, &person, form).await;
    };
    let name = &person.identity().name;
    let outcome = mailer.ask_for_proof(&address, &email::proof::in_groups(&code), name, w).await;
    state.metrics.told(Channel::Email, &outcome);
    match outcome {
        Outcome::Accepted => Redirect::to(ENDPOINTS).into_response(),
        // It may have been taken all the same, but then its code is of no use: another is sent.
        other => {
            state.proofs.forget(id);
            let fault = match &other {
                Outcome::TimedOut => w.mail.fault_unsent_in_time.to_owned(),
                other => fill(w.mail.fault_unsent, &[("what", other.detail())]),
            };
            form.address.blame(&fault);
            faulty(&state, &person, form).await
        }
    }
}

/// `POST /settings/told/email/confirm`: takes the code, and adds the address that it proves.
pub(crate) async fn confirm(State(state): State<AppState>, request: Request) -> Response {
    let (person, mut fields) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    let (Ok(typed), Ok(())) = (fields.take("code"), fields.end()) else { return misfit(&person) };
    let Some(id) = person_id(&person) else { return misfit(&person) };
    let w = person.visit.w;
    let mut form = EmailForm::default();
    let address = match state.proofs.prove(id, &typed, person.visit.now) {
        Ok(address) => address,
        Err(Unproven::Wrong) => {
            form.code.blame(w.mail.fault_code);
            return faulty(&state, &person, form).await;
        }
        Err(Unproven::Over) => {
            form.address.blame(w.mail.fault_over);
            return faulty(&state, &person, form).await;
        }
    };
    let endpoint = NewEndpoint {
        channel: Channel::Email,
        name: cut(&address),
        address,
        secret: json!({ "lang": w.lang }).to_string(),
        session_id: None,
    };
    match state.store.add_endpoint(person.identity(), endpoint).await {
        Ok(Some(_)) => Redirect::to(ENDPOINTS).into_response(),
        Ok(None) => {
            form.address.blame(w.fault_many);
            faulty(&state, &person, form).await
        }
        Err(fault) => unwritten(&person.visit, &fault),
    }
}
