//! This browser as a place where its person is told: it subscribes with its push service, by script, and says where.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use chips_core::notify::Channel;
use chips_store::{Endpoint, NewEndpoint};
use serde_json::json;

use super::told::ADDRESS;
use super::{open, unwritten};
use crate::channels::speaking;
use crate::channels::web_push::Subscription;
use crate::inbox::html::Html;
use crate::inbox::page::{Person, Visit};
use crate::outbound::Outbound;
use crate::state::AppState;
use crate::words::{Words, fill};

/// Whether an endpoint is the subscription of the browser that asks.
pub(super) fn is_here(endpoint: &Endpoint, person: &Person) -> bool {
    endpoint.channel == Channel::WebPush && endpoint.session_id == Some(person.signed.session.session_id)
}

/// What a browser's device is called, from the words that its session has for it.
pub(in crate::inbox) fn device_name(name: &str, w: &Words) -> Html {
    match name.split_once(" on ") {
        _ if name.is_empty() => Html::text(w.unknown_device),
        Some((browser, system)) => {
            Html::phrase(w.device, &[("browser", Html::shown(browser)), ("system", Html::shown(system))])
        }
        None => Html::shown(name),
    }
}

/// `GET /settings/told/web-push`: what a browser needs to subscribe, and the address at which it is told now, if any.
pub(crate) async fn show(State(state): State<AppState>, headers: HeaderMap) -> Response {
    let person = match Person::of(&state, &headers).await {
        Ok(Some(person)) => person,
        Ok(None) => return StatusCode::UNAUTHORIZED.into_response(),
        Err(fault) => return Visit::of(&state, &headers).unreadable(&fault),
    };
    let endpoints = match state.store.endpoints(person.identity()).await {
        Ok(endpoints) => endpoints,
        Err(fault) => return person.visit.unreadable(&fault),
    };
    match state.vapid.public_key().await {
        Ok(key) => {
            let here = endpoints.into_iter().find(|endpoint| is_here(endpoint, &person));
            let address = here.map(|endpoint| endpoint.address);
            Json(json!({ "key": key, "token": person.token, "address": address })).into_response()
        }
        Err(fault) => {
            tracing::warn!(%fault, "browsers can't subscribe");
            person.visit.unavailable(5)
        }
    }
}

/// `POST /settings/told/web-push`: the browser that asks is told from now on, as long as it stays signed in. 204; what is wrong is
/// told in a line of text.
pub(crate) async fn add(State(state): State<AppState>, request: Request) -> Response {
    let (person, mut fields) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    let [address, p256dh, auth] = ["endpoint", "p256dh", "auth"].map(|name| fields.take(name));
    let (Ok(address), Ok(p256dh), Ok(auth), Ok(())) = (address, p256dh, auth, fields.end()) else {
        return person.visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY);
    };
    let w = person.visit.w;
    let refused =
        |what: &str| (StatusCode::UNPROCESSABLE_ENTITY, fill(w.fault_refused, &[("what", what)])).into_response();
    let url = match Outbound::typed(&address) {
        Some(url) if address.len() <= ADDRESS => url,
        _ => return refused(w.fault_url),
    };
    if let Err(why) = state.outbound.check(&url) {
        return refused(&why);
    }
    let subscription = Subscription { p256dh, auth, lang: w.lang.to_owned() };
    if !subscription.is_good() {
        return person.visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY);
    }
    let endpoint = NewEndpoint {
        channel: Channel::WebPush,
        address: url.into(),
        secret: serde_json::to_string(&subscription).unwrap_or_default(),
        name: person.signed.session.device.name.clone(),
        session_id: Some(person.signed.session.session_id),
    };
    match state.store.add_endpoint(person.identity(), endpoint).await {
        Ok(Some(_)) => StatusCode::NO_CONTENT.into_response(),
        Ok(None) => (StatusCode::UNPROCESSABLE_ENTITY, w.fault_many).into_response(),
        Err(fault) => unwritten(&person.visit, &fault),
    }
}

/// Has messages speak the language that was chosen here: those to this browser, and those that are read on no certain device.
pub(super) async fn speak(state: &AppState, person: &Person, w: &Words) {
    let renew = async {
        let endpoints = state.store.endpoints(person.identity()).await.map_err(|fault| fault.to_string())?;
        for known in endpoints {
            let meant = known.channel != Channel::WebPush || is_here(&known, person);
            let Some(secret) = speaking(&known.secret, w).filter(|_| meant && !known.disabled) else { continue };
            let endpoint = NewEndpoint {
                channel: known.channel,
                address: known.address,
                secret,
                name: known.name,
                session_id: known.session_id,
            };
            state.store.add_endpoint(person.identity(), endpoint).await.map_err(|fault| fault.to_string())?;
        }
        Ok(())
    };
    if let Err::<(), String>(fault) = renew.await {
        tracing::warn!(%fault, "messages stay in the language from before");
    }
}
