//! `/v1/asks`: the list, one ask with its wait, and the harness's word that it has acted on the answer.

use std::str::FromStr;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{Method, Uri};
use chips_core::Who;
use chips_protocol::AskId;
use chips_protocol::api::{Ask, AskState, AsksPage};
use chips_protocol::problem::ProblemCode;
use chips_store::query::Cursor;
use chips_store::{AskFilter, AsksQuery, LeaseOf};
use tokio::time::{Instant, sleep_until};

use super::{Heard, identified};
use crate::auth::Caller;
use crate::http::body::{self, BodyError};
use crate::http::query::Params;
use crate::http::{ApiError, Peer};
use crate::state::AppState;

/// Asks on a page that does not say how many.
const PAGE: u64 = 50;
/// Asks on the largest page.
const LARGEST_PAGE: u64 = 200;
/// The longest wait, in seconds.
const LONGEST_WAIT_S: u64 = 300;

/// `GET /v1/asks`
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    method: Method,
    uri: Uri,
) -> Result<Json<AsksPage>, ApiError> {
    let query = asks_query(uri.query())?;
    let heard = Heard::of(&state, &caller.identity, &method);
    heard.filtered_by(query.run_id, None);
    let page = state.store.asks(&caller.identity, &query).await?;
    page.asks.iter().for_each(|ask| heard.gets_ask(ask));
    Ok(Json(page))
}

fn asks_query(query: Option<&str>) -> Result<AsksQuery, ApiError> {
    let known = ["state", "space_id", "run_id", "harness_id", "label", "q", "limit", "before"];
    let params = Params::read(query, &known)?;
    let filter = match params.get("state") {
        None => AskFilter::All,
        Some("open") => AskFilter::Open,
        Some("closed") => AskFilter::Closed,
        Some(name) => AskState::from_name(name).map(AskFilter::State).ok_or_else(|| {
            let states = AskState::ALL.map(|state| format!("`{}`", state.as_str())).join(", ");
            ApiError::bad_query(format!("`state` must be one of {states}, or `closed`"))
        })?,
    };
    let label = match params.get("label") {
        None => None,
        Some(label) => match label.split_once(':') {
            Some((key, value)) if !key.is_empty() => Some((key.to_owned(), value.to_owned())),
            _ => return Err(ApiError::bad_query("`label` must be a key and a value, as in `label=team:billing`")),
        },
    };
    let before: Option<Cursor> = params.parsed("before", "what an earlier page gave as `next`")?;
    if before.as_ref().is_some_and(|cursor| (cursor.rank == 0) == (filter == AskFilter::Open)) {
        return Err(ApiError::bad_query("`before` belongs to a list with another `state`"));
    }
    Ok(AsksQuery {
        filter,
        space_id: id(&params, "space_id", "a space")?,
        run_id: id(&params, "run_id", "a run")?,
        harness_id: id(&params, "harness_id", "a harness")?,
        label,
        // An empty search field of a form looks for nothing.
        text: params.get("q").filter(|text| !text.is_empty()).map(str::to_owned),
        limit: usize::try_from(params.number("limit", 1..=LARGEST_PAGE)?.unwrap_or(PAGE)).unwrap_or_default(),
        before,
    })
}

fn id<T: FromStr>(params: &Params, name: &str, of: &str) -> Result<Option<T>, ApiError> {
    params.parsed(name, &format!("the identifier of {of}"))
}

/// `GET /v1/asks/ASK_ID`
pub async fn one(
    State(state): State<AppState>,
    caller: Caller,
    method: Method,
    uri: Uri,
    peer: Option<axum::Extension<Peer>>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<Ask>, ApiError> {
    let ask_id: AskId = identified(path)?;
    let params = Params::read(uri.query(), &["wait"])?;
    let wait = Duration::from_secs(params.number("wait", 0..=LONGEST_WAIT_S)?.unwrap_or(0));
    let heard = Heard::of(&state, &caller.identity, &method);
    heard.named(LeaseOf::Ask(ask_id));
    let wait = if method == Method::HEAD { Duration::ZERO } else { wait };
    let ask = closed_or_later(&state, caller, ask_id, wait, &heard, peer.as_deref()).await?;
    heard.gets_ask(&ask);
    Ok(Json(ask))
}

/// The ask as soon as it is closed; or as it stands when the time is up, the server stops or the client is gone.
pub(crate) async fn closed_or_later(
    state: &AppState,
    mut caller: Caller,
    ask_id: AskId,
    wait: Duration,
    heard: &Heard,
    peer: Option<&Peer>,
) -> Result<Ask, ApiError> {
    let workspace_id = caller.identity.sender.workspace_id;
    if wait.is_zero() {
        return state.store.ask(&caller.identity, ask_id).await?.ok_or_else(ApiError::not_found);
    }
    let until = Instant::now() + wait;
    let mut access = state.store.access_changes();
    let mut waiting = None;
    loop {
        // Before the ask is read, so that no close falls between.
        let closing = state.store.closing(workspace_id, ask_id);
        let ask = state.store.ask(&caller.identity, ask_id).await?.ok_or_else(ApiError::not_found)?;
        if ask.state != AskState::Open || Instant::now() >= until || state.stopping.is_cancelled() {
            return Ok(ask);
        }
        let (_, renewal) = match &waiting {
            Some(waiting) => waiting,
            None => {
                waiting.insert((state.metrics.waiter(), heard.renewal(LeaseOf::Run(ask.ask.envelope.run_id)).await))
            }
        };
        let gone = async {
            match peer {
                Some(peer) => peer.gone().await,
                None => std::future::pending().await,
            }
        };
        let renew = async {
            match renewal {
                Some(every) => loop {
                    tokio::time::sleep(*every).await;
                    heard.named(LeaseOf::Ask(ask_id));
                },
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Where the store ends there is nothing more to wait for.
            closed = closing => if closed.is_err() { return Ok(ask) },
            () = sleep_until(until) => {}
            () = state.stopping.cancelled() => {}
            () = gone => {
                // Whether it has left, or only has nothing more to say, is not known: it is answered, and the log says so.
                tracing::Span::current().record("left", true);
                return Ok(ask);
            }
            () = renew => {}
            changed = access.changed() => if changed.is_err() { return Ok(ask) },
        }
        // Whatever ended the wait: the token may have ended meanwhile, by somebody's doing or by itself.
        caller.identity = caller.credential.identity(state).await?.ok_or_else(ApiError::unauthenticated)?;
    }
}

/// `POST /v1/asks/ASK_ID/ack`
pub async fn acknowledge(
    State(state): State<AppState>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Ask>, BodyError> {
    let uri = request.uri().clone();
    body::ignored(request, state.config.limits.body).await?;
    let ask_id: AskId = identified(path)?;
    Params::read(uri.query(), &[])?;
    let heard = Heard::of(&state, &caller.identity, &Method::POST);
    heard.named(LeaseOf::Ask(ask_id));
    if let Who::Person(_) = caller.identity.sender.who {
        // Whether the ask exists is told to nobody who may not see it.
        state.store.ask(&caller.identity, ask_id).await.map_err(ApiError::from)?.ok_or_else(ApiError::not_found)?;
        return Err(ApiError::new(
            ProblemCode::WrongSender,
            "an answer is acknowledged by the harness that asked, with a harness's token",
        )
        .into());
    }
    let ask = state.store.acknowledge(caller.identity.sender, ask_id).await.map_err(ApiError::from)?;
    heard.gets_ask(&ask);
    Ok(Json(ask))
}
