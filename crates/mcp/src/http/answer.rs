//! How an answer goes out: as JSON where it is quick, else as a stream of Server-Sent Events that begins at once.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};

use super::Call;
use crate::desk::Desk;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// How long an answer may take to go out as one piece.
const QUICK: Duration = Duration::from_millis(500);

const EVENT_STREAM: &str = "text/event-stream";
const COMMENT: &[u8] = b":\n\n";

type Inner = Response<BoxBody<Bytes, Infallible>>;
type Answering = Pin<Box<dyn Future<Output = Inner> + Send>>;

/// What the rest of a stream comes from.
enum Source {
    /// The answer has not begun.
    Answering(Answering),
    /// It is a stream itself.
    Streaming(BoxBody<Bytes, Infallible>),
    /// It has gone out.
    Done,
}

struct Streamed<D> {
    source: Source,
    call: Call<D>,
    comments: Interval,
    begun: bool,
}

pub(super) async fn answer<D: Desk>(mut inner: Answering, call: Call<D>, comment: Duration) -> Response<Body> {
    let source = match timeout(QUICK, &mut inner).await {
        Ok(response) if !is_stream(&response) => return at_once(response, call).await,
        Ok(response) => Source::Streaming(response.into_body()),
        Err(_) => Source::Answering(inner),
    };
    let mut comments = interval_at(Instant::now() + comment, comment);
    comments.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let streamed = Streamed { source, call, comments, begun: false };
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(streamed.into_stream())));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

fn is_stream(response: &Inner) -> bool {
    response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|media_type| media_type.as_bytes().starts_with(EVENT_STREAM.as_bytes()))
}

/// An answer in one piece. It counts as told once the connection takes it.
async fn at_once<D: Desk>(response: Inner, call: Call<D>) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let bytes = whole(body).await;
    if bytes.is_empty() {
        return Response::from_parts(parts, BodyExt::boxed_unsync(Full::new(bytes)));
    }
    let piece = futures::stream::once(async move {
        call.told();
        Ok(http_body::Frame::data(bytes))
    });
    Response::from_parts(parts, BodyExt::boxed_unsync(StreamBody::new(piece)))
}

async fn whole(body: BoxBody<Bytes, Infallible>) -> Bytes {
    match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(never) => match never {},
    }
}

impl<D: Desk> Streamed<D> {
    fn into_stream(self) -> impl Stream<Item = Result<http_body::Frame<Bytes>, Infallible>> + Send {
        futures::stream::unfold(self, |mut streamed| async {
            let piece = streamed.next().await?;
            Some((piece, streamed))
        })
        .map(|piece| Ok(http_body::Frame::data(piece)))
    }

    /// The next piece; nothing once the answer is out, or the client has cancelled the call.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.begun {
            self.begun = true;
            return Some(Bytes::from_static(COMMENT));
        }
        loop {
            let Self { source, call, comments, .. } = self;
            match source {
                Source::Done => {
                    // Asked for more: all before has been taken.
                    call.told();
                    return None;
                }
                Source::Answering(answering) => tokio::select! {
                    response = answering => {
                        if is_stream(&response) {
                            self.source = Source::Streaming(response.into_body());
                            continue;
                        }
                        self.source = Source::Done;
                        return Some(event(&whole(response.into_body()).await));
                    }
                    () = call.cancelled.cancelled() => return None,
                    _ = comments.tick() => return Some(Bytes::from_static(COMMENT)),
                },
                Source::Streaming(body) => tokio::select! {
                    frame = body.frame() => match frame {
                        Some(Ok(frame)) => match frame.into_data() {
                            Ok(data) if !data.is_empty() => return Some(data),
                            _ => {}
                        },
                        Some(Err(never)) => match never {},
                        None => self.source = Source::Done,
                    },
                    () = call.cancelled.cancelled() => return None,
                    _ = comments.tick() => return Some(Bytes::from_static(COMMENT)),
                },
            }
        }
    }
}

/// A message as an event. JSON stands on one line: it escapes every line break within a text.
fn event(json: &Bytes) -> Bytes {
    if json.is_empty() {
        return Bytes::from_static(COMMENT);
    }
    [b"data: ".as_slice(), json, b"\n\n"].concat().into()
}
