//! `/v1/events`: writing an event, reading a page, and the stream.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, Bytes, BytesMut};
use chips_core::{Refusal, Sender, Who};
use chips_protocol::problem::ProblemCode;
use chips_protocol::{EventType, ParticipantId, validate};
use chips_store::{EventsQuery, LeaseOf, Record, Submitted, WriteError};
use serde_json::Value;

use super::heard::Heard;
use crate::auth::Caller;
use crate::http::body::{self, BodyError};
use crate::http::query::Params;
use crate::http::{ApiError, Peer};
use crate::state::AppState;
use crate::stream::{self, Follow};

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const DIFFERS: HeaderName = HeaderName::from_static("idempotency-body-differs");
const TRUE: HeaderValue = HeaderValue::from_static("true");

/// Events that are read from the store at once.
const BATCH: usize = 100;
/// Events on a page that does not say how many.
const PAGE: u64 = 100;
/// Events on the largest page.
const LARGEST_PAGE: u64 = 1000;

/// `POST /v1/events`: checks in the contract's order, then judges and appends.
pub async fn append(State(state): State<AppState>, caller: Caller, request: Request) -> Result<Response, BodyError> {
    let uri = request.uri().clone();
    let value = body::json(request, state.config.limits.body).await?;
    Params::read(uri.query(), &[])?;
    let (status, record, replayed, differs) = match write(&state, &caller, &value).await? {
        Submitted::Appended(record) => (StatusCode::CREATED, record, false, false),
        Submitted::Replayed { record, differs } => (StatusCode::OK, record, true, differs),
    };
    let mut response = (status, json_header(), Body::from(record.json.clone())).into_response();
    if replayed {
        response.headers_mut().insert(REPLAYED, TRUE);
    }
    if differs {
        response.headers_mut().insert(DIFFERS, TRUE);
    }
    Ok(response)
}

/// Checks an event that a caller sent, in the contract's order, and has it judged.
pub(crate) async fn write(state: &AppState, caller: &Caller, value: &Value) -> Result<Submitted, ApiError> {
    let sender = caller.identity.sender;
    wrong_sender(value, sender)?;
    let heard = Heard::of(state, &caller.identity, &Method::POST);
    if let Some(run_id) = value.get("run_id").and_then(Value::as_str).and_then(|id| id.parse().ok()) {
        heard.named(LeaseOf::Run(run_id));
    }
    let submitted = match validate::draft(value) {
        Ok(draft) => state.store.submit(sender, draft).await.map_err(|error| {
            if let WriteError::Refused(refusal) = &error
                && let Refusal::AlreadyClosed(answer) = &**refusal
            {
                heard.gets(answer);
            }
            ApiError::from(error)
        })?,
        Err(faults) => match replayed(state, sender, value).await? {
            Some(record) => Submitted::Replayed { record, differs: true },
            None => return Err(Refusal::Invalid(faults).into()),
        },
    };
    let (Submitted::Appended(record) | Submitted::Replayed { record, .. }) = &submitted;
    heard.gets(&record.event);
    Ok(submitted)
}

/// What the sender's accepted write with the body's key appended: a body that is no event any more is a replay too.
async fn replayed(state: &AppState, sender: Sender, value: &Value) -> Result<Option<Arc<Record>>, ApiError> {
    match value.get("idempotency_key").and_then(Value::as_str) {
        Some(key) => Ok(state.store.replay_by_key(sender, key).await?),
        None => Ok(None),
    }
}

/// What can be said of the sender before the shape is checked: an actor that is somebody else, and a person who asks.
///
/// Whose an agent is only the store knows, and what is no actor at all is a fault of the shape.
fn wrong_sender(value: &Value, sender: Sender) -> Result<(), ApiError> {
    let actor = value.get("actor").and_then(|actor| actor.get("id")).and_then(Value::as_str);
    let own = match (actor.and_then(|id| id.parse().ok()), sender.who) {
        (None, _) => true,
        (Some(ParticipantId::Person(id)), Who::Person(own)) => id == own,
        (Some(ParticipantId::Harness(id)), Who::Harness(own)) => id == own,
        (Some(ParticipantId::Agent(_)), Who::Harness(_)) => true,
        (Some(_), _) => false,
    };
    if !own {
        return Err(Refusal::ActorMismatch.into());
    }
    let asks = value.get("type").and_then(Value::as_str) == Some(EventType::QuestionAsk.as_str());
    if asks && matches!(sender.who, Who::Person(_)) {
        return Err(ApiError::new(
            ProblemCode::WrongSender,
            "a person can't ask: `question.ask` is sent by a harness, with a harness's token",
        ));
    }
    Ok(())
}

fn json_header() -> [(HeaderName, HeaderValue); 1] {
    [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]
}

/// The filters that a page and a stream share.
fn filters(params: &Params) -> Result<EventsQuery, ApiError> {
    let event_type = params
        .get("type")
        .map(|name| {
            let known = EventType::ALL.map(|known| format!("`{}`", known.as_str())).join(" or ");
            EventType::from_name(name).ok_or_else(|| ApiError::bad_query(format!("`type` must be {known}")))
        })
        .transpose()?;
    Ok(EventsQuery {
        after: 0,
        limit: BATCH,
        event_type,
        run_id: params.parsed("run_id", "the identifier of a run, like `run_01K4ZQPX000000000000000005`")?,
        ask_id: params.parsed("ask_id", "the identifier of an ask, like `qst_01K4ZQPX000000000000000009`")?,
    })
}

/// Refuses a cursor that belongs to another history of the log.
fn same_log(state: &AppState, params: &Params) -> Result<(), ApiError> {
    match params.get("log") {
        Some(log) if log != state.store.log_id() => Err(ApiError::new(
            ProblemCode::LogChanged,
            format!(
                "the log was restored and is now {}: what was read before may have changed; begin again from `after=0`",
                state.store.log_id()
            ),
        )),
        _ => Ok(()),
    }
}

/// Refuses a cursor past the head: waiting there would skip what is appended up to it.
fn not_ahead(after: u64, head: u64) -> Result<(), ApiError> {
    if after > head {
        return Err(ApiError::new(
            ProblemCode::CursorAhead,
            format!(
                "the last event is {head}, so nothing was ever read up to {after}; begin again from a smaller cursor"
            ),
        ));
    }
    Ok(())
}

/// What a cursor is told that is older than what is kept.
fn gone(after: u64, kept_from: u64) -> ApiError {
    let kept = kept_from - 1;
    ApiError::new(
        ProblemCode::CursorGone,
        format!(
            "events up to {kept} are not kept any more, so not all that came after {after} can be read; read what stands now \
             (`GET /v1/asks`) and go on from its `head`, or from `after={kept}` for all events that are kept"
        ),
    )
}

/// `GET /v1/events`: a page of the log.
///
/// Where one read of the store gives all of it, the page goes out in one piece; a larger one is read while the client takes
/// it, so that memory stays bounded whatever the events hold.
pub async fn page(
    State(state): State<AppState>,
    caller: Caller,
    method: Method,
    uri: Uri,
) -> Result<Response, ApiError> {
    let params = Params::read(uri.query(), &["after", "limit", "type", "run_id", "ask_id", "log"])?;
    let mut query = filters(&params)?;
    let workspace_id = caller.identity.sender.workspace_id;
    let after = params.number("after", 0..=u64::MAX)?;
    query.after = after.unwrap_or(state.store.kept_from(workspace_id) - 1);
    let limit = params.number("limit", 1..=LARGEST_PAGE)?.unwrap_or(PAGE);
    same_log(&state, &params)?;
    not_ahead(query.after, state.store.head_for(workspace_id, query.after).await?)?;
    let heard = Heard::of(&state, &caller.identity, &method);
    heard.filtered_by(query.run_id, query.ask_id);

    let left = usize::try_from(limit).unwrap_or(BATCH);
    let named = after.is_some();
    let mut pages = Pages { state, caller, heard, query, left, named, begun: false, done: false };
    let first = pages.next().await?.unwrap_or_default();
    if pages.done {
        return Ok((json_header(), first).into_response());
    }
    if method == Method::HEAD {
        return Ok((json_header(), of_unknown_length()).into_response());
    }
    let rest = futures::stream::unfold(Some((pages, first)), |step| async {
        let (mut pages, ready) = step?;
        if !ready.is_empty() {
            return Some((Ok(ready), Some((pages, Bytes::new()))));
        }
        match pages.next().await {
            Ok(chunk) => chunk.map(|chunk| (Ok(chunk), Some((pages, Bytes::new())))),
            // The status is out already: the body breaks off, which no reader takes for a whole page.
            Err(error) => Some((Err(std::io::Error::other(error.problem().detail.clone())), None)),
        }
    });
    Ok((json_header(), Body::from_stream(rest)).into_response())
}

/// A page as it is read, piece by piece.
struct Pages {
    state: AppState,
    caller: Caller,
    heard: Heard,
    query: EventsQuery,
    left: usize,
    /// Whether the client named the place to begin at; else the page begins with what is kept.
    named: bool,
    begun: bool,
    done: bool,
}

impl Pages {
    /// The next piece of the page's JSON; nothing once it is complete.
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        if self.done {
            return Ok(None);
        }
        let mut text = BytesMut::new();
        if !self.begun {
            text.put_slice(b"{\"events\":[");
        }
        loop {
            self.query.limit = self.left.min(BATCH);
            let batch = self.state.store.events(&self.caller.identity, &self.query).await?;
            if self.query.after + 1 < batch.kept_from && self.named {
                return Err(gone(self.query.after, batch.kept_from));
            }
            self.named = true;
            for record in &batch.records {
                if self.begun {
                    text.put_u8(b',');
                }
                self.begun = true;
                text.put_slice(&record.json);
                self.heard.gets(&record.event);
            }
            self.left = self.left.saturating_sub(batch.records.len());
            let looked_through = batch.through.max(self.query.after);
            let stuck = looked_through == self.query.after;
            self.query.after = looked_through;
            if self.left == 0 || looked_through >= batch.head || stuck {
                self.done = true;
                text.put_slice(format!("],\"head\":{},\"log\":", batch.head).as_bytes());
                text.put_slice(Value::from(self.state.store.log_id()).to_string().as_bytes());
                text.put_u8(b'}');
                return Ok(Some(text.freeze()));
            }
            if !batch.records.is_empty() {
                return Ok(Some(text.freeze()));
            }
        }
    }
}

/// `GET /v1/events/stream`: the log as Server-Sent Events.
pub async fn stream(
    State(state): State<AppState>,
    caller: Caller,
    method: Method,
    uri: Uri,
    peer: Option<axum::Extension<Peer>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let params = Params::read(uri.query(), &["after", "type", "run_id", "ask_id", "log"])?;
    let mut query = filters(&params)?;
    let after = params.number("after", 0..=u64::MAX)?;
    let resumed = last_event_id(&headers)?;
    same_log(&state, &params)?;
    // Taken before the head is looked at: what is appended from here on wakes the stream.
    let workspace_id = caller.identity.sender.workspace_id;
    let head = state.store.head(workspace_id);
    query.after = resumed.or(after).unwrap_or(*head.borrow());
    not_ahead(query.after, state.store.head_for(workspace_id, query.after).await?)?;
    let kept_from = state.store.kept_from(workspace_id);
    if query.after + 1 < kept_from {
        return Err(gone(query.after, kept_from));
    }
    let heard = Heard::of(&state, &caller.identity, &method);
    heard.filtered_by(query.run_id, query.ask_id);
    let body = if method == Method::HEAD {
        of_unknown_length()
    } else {
        let peer = peer.map(|axum::Extension(peer)| peer);
        Body::from_stream(Follow::new(state, caller, heard, query, head, peer).await.into_stream())
    };
    Ok((stream::HEADERS, body).into_response())
}

/// What HEAD gets in place of a body whose length nobody knows: an empty one would promise a length of 0.
fn of_unknown_length() -> Body {
    Body::from_stream(futures::stream::empty::<Result<Bytes, std::convert::Infallible>>())
}

/// The place that a client wants to resume from.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let mut values = headers.get_all("last-event-id").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let digits = value.to_str().ok().filter(|text| values.next().is_none() && text.bytes().all(|b| b.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(seq) => Ok(Some(seq)),
        None => Err(ApiError::bad_query("`Last-Event-ID` must be the `id` of an event of this stream: a whole number")),
    }
}
