//! One call: a request, sent until its outcome is known.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chips_protocol::problem::{Problem, ProblemCode};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::Error;
use crate::{clock, mint};

/// No reply of Chips is longer: a page of 200 asks of the largest size stays below it.
const LONGEST_REPLY: usize = 128 << 20;

/// What is sent, each time with the same bytes.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub method: Method,
    pub url: Url,
    /// JSON.
    pub body: Option<Bytes>,
    /// How long a reply may take, from the connection to its last byte.
    pub time_limit: Duration,
}

/// How long a call is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// No longer than this, or for as long as there is no reply; a reply that is not Chips' ends it.
    Within(Option<Duration>),
    /// Until Chips itself replies: what a proxy says while the server restarts (a page, a 404 of its own) is no reply.
    Endless,
}

/// A reply that was read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What a reply that is no success comes to.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Chips refuses.
    Refused(Box<Problem>, Option<Duration>),
    /// The server, or the way to it, is not up to it right now. With the problem, where it was Chips that said so.
    NotNow(String, Option<Box<Problem>>, Option<Duration>),
    /// It was not Chips that replied.
    Stranger(u16, String),
}

/// What a call has come to so far.
enum Failure {
    Final(Error),
    Passing { error: Error, reason: String, wish: Option<Duration> },
}

impl Client {
    /// Sends a request until there is a reply that is Chips' own, and reads it.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        request: &Request,
        patience: Patience,
    ) -> Result<(T, HeaderMap), Error> {
        self.call_or(request, request, patience).await.map(|(read, headers, _)| (read, headers))
    }

    /// As [`Client::call`], with another request to send once the first one got no reply. Says whether it was that
    /// one that got the reply.
    pub(crate) async fn call_or<T: DeserializeOwned>(
        &self,
        first: &Request,
        again: &Request,
        patience: Patience,
    ) -> Result<(T, HeaderMap, bool), Error> {
        let mut request = first;
        let mut failed = false;
        let mut backoff = Backoff::new(self.settings().pauses);
        let give_up = match patience {
            Patience::Within(Some(limit)) => clock::now().checked_add(limit),
            Patience::Within(None) | Patience::Endless => None,
        };
        loop {
            let failure = match self.exchange(request).await {
                Ok(reply) => match self.read(&reply, patience) {
                    Ok(read) => {
                        self.link().back();
                        return Ok((read, reply.headers, failed));
                    }
                    Err(failure) => failure,
                },
                Err(reason) => Failure::Passing { error: self.unreachable(&reason), reason, wish: None },
            };
            match failure {
                Failure::Final(error) => {
                    if error.problem().is_some() {
                        self.link().back();
                    }
                    return Err(error);
                }
                Failure::Passing { error, reason, wish } => {
                    let pause = backoff.next(wish, mint::fraction());
                    let until = clock::now() + pause;
                    if give_up.is_some_and(|give_up| until > give_up) {
                        return Err(error);
                    }
                    tracing::debug!(%reason, ?pause, url = %request.url, "sending the request again after a pause");
                    self.link().lost(&reason);
                    tokio::time::sleep_until(until).await;
                    (request, failed) = (again, true);
                }
            }
        }
    }

    /// Sends a request once and reads the reply to its end.
    async fn exchange(&self, request: &Request) -> Result<Reply, String> {
        let mut builder = self.http().request(request.method.clone(), request.url.clone()).timeout(request.time_limit);
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let mut response = builder.send().await.map_err(|error| in_words(&error))?;
        self.hear_date(&response);
        read_whole(&mut response).await
    }

    pub(crate) fn hear_date(&self, response: &Response) {
        if let Some(date) = response.headers().get(DATE).and_then(|date| date.to_str().ok()) {
            self.link().heard_date(date);
        }
    }

    fn read<T: DeserializeOwned>(&self, reply: &Reply, patience: Patience) -> Result<T, Failure> {
        let verdict = if reply.status.is_success() {
            match serde_json::from_slice(&reply.body) {
                Ok(read) => return Ok(read),
                Err(error) => Verdict::Stranger(reply.status.as_u16(), format!("a reply that can't be read ({error})")),
            }
        } else {
            verdict(reply)
        };
        let error = self.error_of(&verdict);
        Err(match verdict {
            Verdict::NotNow(reason, _, wish) => Failure::Passing { error, reason, wish },
            Verdict::Stranger(_, reason) if patience == Patience::Endless => {
                Failure::Passing { error, reason, wish: None }
            }
            Verdict::Refused(problem, wish)
                if patience == Patience::Endless && problem.code == ProblemCode::RateLimited =>
            {
                Failure::Passing { error, reason: problem.detail, wish }
            }
            Verdict::Refused(..) | Verdict::Stranger(..) => Failure::Final(error),
        })
    }

    pub(crate) fn error_of(&self, verdict: &Verdict) -> Error {
        match verdict {
            Verdict::Refused(problem, retry_after) | Verdict::NotNow(_, Some(problem), retry_after) => {
                Error::Refused { problem: problem.clone(), retry_after: *retry_after }
            }
            Verdict::NotNow(reason, None, _) => self.unreachable(reason),
            Verdict::Stranger(status, detail) => {
                Error::NotChips { server: self.address().to_string(), status: *status, detail: detail.clone() }
            }
        }
    }

    pub(crate) fn unreachable(&self, reason: &str) -> Error {
        Error::Unreachable { server: self.address().to_string(), reason: reason.to_owned() }
    }
}

/// Reads the rest of a reply.
///
/// # Errors
/// In words, when it ends early, takes too long or never ends.
pub(crate) async fn read_whole(response: &mut Response) -> Result<Reply, String> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| in_words(&error))? {
        if body.len() + chunk.len() > LONGEST_REPLY {
            return Err("the reply does not end".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Reply { status: response.status(), headers: response.headers().clone(), body: body.freeze() })
}

/// Judges a reply that is no success.
pub(crate) fn verdict(reply: &Reply) -> Verdict {
    let status = reply.status.as_u16();
    let wish = header(&reply.headers, RETRY_AFTER.as_str()).and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let problem = serde_json::from_slice::<Problem>(&reply.body).ok().filter(|problem| problem.status == status);
    match (status, problem) {
        (503, Some(problem)) => Verdict::NotNow(problem.detail.clone(), Some(Box::new(problem)), wish),
        (502..=504, _) => Verdict::NotNow(format!("the server is not ready (HTTP {status})"), None, wish),
        (_, Some(problem)) => Verdict::Refused(Box::new(problem), wish),
        (300..=399, None) => {
            let to = header(&reply.headers, LOCATION.as_str()).unwrap_or("nowhere");
            Verdict::Stranger(status, format!("it redirects to {to}; redirects are not followed, give that address"))
        }
        (_, None) => Verdict::Stranger(status, unknown(reply)),
    }
}

/// A refusal that is no problem that this version knows.
fn unknown(reply: &Reply) -> String {
    let status = reply.status;
    let detail = serde_json::from_slice::<serde_json::Value>(&reply.body)
        .ok()
        .and_then(|body| Some(body.get("detail")?.as_str()?.chars().take(300).collect::<String>()));
    match detail {
        Some(detail) => format!("HTTP {status}: {detail}"),
        None => format!("HTTP {status}, without a word that Chips would say"),
    }
}

pub(crate) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// What a failed exchange comes to, in a few words: the innermost cause, without the system's number for it.
pub fn in_words(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return if error.is_connect() { "no connection in time" } else { "no reply in time" }.to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    let text = match text.find(" (os error ") {
        Some(at) => &text[..at],
        None => &text,
    };
    if let Some(why) = text.strip_prefix("invalid peer certificate: ") {
        return format!("the server's certificate is not trusted ({why}); SSL_CERT_FILE can name other authorities");
    }
    match text {
        "connection closed before message completed" | "end of file before message length reached" => {
            "the connection was cut".to_owned()
        }
        text => {
            let mut letters = text.chars();
            letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
        }
    }
}
