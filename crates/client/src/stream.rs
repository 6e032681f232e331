//! Following the log.

use std::time::Duration;

use chips_protocol::api::EventsPage;
use chips_protocol::problem::ProblemCode;
use chips_protocol::{AskId, Event, EventType, RunId};
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::call::{Patience, Verdict, header, in_words, read_whole, verdict};
use crate::client::Client;
use crate::error::Error;
use crate::read::Filter;
use crate::sse::Parser;
use crate::{clock, mint};

/// What to follow. All that the token may see, from now on, where nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamQuery {
    after: Option<u64>,
    log: Option<String>,
    filter: Filter,
}

impl StreamQuery {
    /// Events with a higher `seq` than this, those that are in the log already first; 0 for all.
    #[must_use]
    pub fn after(mut self, seq: u64) -> Self {
        self.after = Some(seq);
        self
    }

    /// The history of the log that `after` belongs to ([`EventsPage::log`]).
    #[must_use]
    pub fn log(mut self, log: impl Into<String>) -> Self {
        self.log = Some(log.into());
        self
    }

    /// Only events of this type.
    #[must_use]
    pub fn event_type(mut self, event_type: EventType) -> Self {
        self.filter.event_type = Some(event_type);
        self
    }

    /// Only events of this run.
    #[must_use]
    pub fn run(mut self, run_id: RunId) -> Self {
        self.filter.run_id = Some(run_id);
        self
    }

    /// Only events of this ask.
    #[must_use]
    pub fn ask(mut self, ask_id: AskId) -> Self {
        self.filter.ask_id = Some(ask_id);
        self
    }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streamed {
    /// Its place in the log.
    pub seq: u64,
    /// Its type: perhaps one that this version does not know.
    pub event_type: String,
    /// The event as it was sent: JSON on one line.
    pub json: String,
}

impl Streamed {
    /// The event, typed.
    ///
    /// # Errors
    /// When it is of a type that this version does not know.
    pub fn event(&self) -> serde_json::Result<Event> {
        serde_json::from_str(&self.json)
    }
}

/// A stream of events that resumes by itself wherever it is cut. Each event comes once, in the order of the log.
///
/// ```no_run
/// # async fn example(client: chips_client::Client) -> Result<(), chips_client::Error> {
/// let mut stream = client.stream(chips_client::StreamQuery::default().after(0));
/// loop {
///     let streamed = stream.next().await?;
///     println!("{} {}", streamed.seq, streamed.event_type);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct EventStream {
    client: Client,
    query: StreamQuery,
    /// The `seq` of the last event that was given out, or where the stream began.
    cursor: Option<u64>,
    resumed: bool,
    backoff: Backoff,
    state: State,
}

#[derive(Debug)]
enum State {
    Closed,
    Pausing { until: Instant },
    Open(Box<Connection>),
}

#[derive(Debug)]
struct Connection {
    response: Response,
    parser: Parser,
    opened: Instant,
    heard: Instant,
}

impl Client {
    /// Follows the log. Nothing is sent until [`EventStream::next`] is awaited.
    pub fn stream(&self, query: StreamQuery) -> EventStream {
        EventStream {
            client: self.clone(),
            cursor: if query.log.is_some() { query.after } else { None },
            resumed: false,
            backoff: Backoff::new(self.settings().pauses),
            state: State::Closed,
            query,
        }
    }
}

impl EventStream {
    /// The next event, however long it takes to come. Dropping the future loses nothing: the next one goes on.
    ///
    /// # Errors
    /// Only with Chips' own word: `unauthenticated`, `cursor_ahead`, `log_changed` (the log was restored from a copy;
    /// where to go on is the caller's decision), `cursor_gone`, `bad_query`.
    pub async fn next(&mut self) -> Result<Streamed, Error> {
        loop {
            match &mut self.state {
                State::Closed => self.open().await?,
                State::Pausing { until } => {
                    tokio::time::sleep_until(*until).await;
                    self.state = State::Closed;
                }
                State::Open(connection) => {
                    if let Some(message) = connection.parser.pop() {
                        // A message without a number is none of the log.
                        let Ok(seq) = message.id.parse::<u64>() else { continue };
                        if self.cursor.is_some_and(|cursor| seq <= cursor) {
                            continue;
                        }
                        self.cursor = Some(seq);
                        self.backoff.reset();
                        return Ok(Streamed { seq, event_type: message.event, json: message.data });
                    }
                    let silent = connection.heard + self.client.settings().silence;
                    let lost = match tokio::time::timeout_at(silent, connection.response.chunk()).await {
                        Ok(Ok(Some(piece))) => {
                            connection.heard = clock::now();
                            match connection.parser.push(&piece) {
                                Ok(()) => continue,
                                Err(_) => "the stream can't be read".to_owned(),
                            }
                        }
                        Ok(Ok(None)) => "the server ended the stream".to_owned(),
                        Ok(Err(error)) => in_words(&error),
                        Err(_) => "the stream has gone silent".to_owned(),
                    };
                    if clock::now().duration_since(connection.opened) > STEADY {
                        self.backoff.reset();
                    }
                    self.pause(&lost, None);
                }
            }
        }
    }

    /// The `seq` of the last event that was given out, or where the stream began; nothing before it has begun.
    pub fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// The history of the log that [`EventStream::cursor`] belongs to, once it is known. Whoever keeps both resumes in
    /// another process with [`StreamQuery::after`] and [`StreamQuery::log`].
    pub fn log(&self) -> Option<&str> {
        self.query.log.as_deref()
    }

    /// As a [`futures::Stream`], which ends after an error.
    pub fn into_stream(self) -> impl futures::Stream<Item = Result<Streamed, Error>> {
        futures::stream::unfold(Some(self), |stream| async {
            let mut stream = stream?;
            match stream.next().await {
                Ok(streamed) => Some((Ok(streamed), Some(stream))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    fn pause(&mut self, reason: &str, wish: Option<Duration>) {
        self.client.link().lost(reason);
        let until = clock::now() + self.backoff.next(wish, mint::fraction());
        self.state = State::Pausing { until };
    }

    /// Where to begin: the server's own choice (the head at the moment of its reply) would leave a gap if the
    /// connection were cut before the first event.
    async fn begin(&mut self) -> Result<u64, Error> {
        if let (Some(cursor), Some(_)) = (self.cursor, &self.query.log) {
            return Ok(cursor);
        }
        let mut pairs = vec![("limit", "1".to_owned())];
        pairs.extend(self.query.after.map(|seq| ("after", seq.to_string())));
        pairs.extend(self.query.log.clone().map(|log| ("log", log)));
        // No event of the page is wanted, so it is narrowed to a type that the page can always be read with.
        pairs.push(("type", EventType::QuestionAsk.as_str().to_owned()));
        let request = self.client.get_request("/v1/events", &pairs, self.client.settings().reply_within);
        let (page, _) = self.client.call::<EventsPage>(&request, Patience::Endless).await?;
        let cursor = self.query.after.unwrap_or(page.head);
        self.cursor = Some(cursor);
        self.query.log = Some(page.log);
        Ok(cursor)
    }

    async fn open(&mut self) -> Result<(), Error> {
        let cursor = self.begin().await?;
        match self.attempt(cursor).await {
            Attempt::Opened(response) => {
                self.client.link().back();
                self.resumed = true;
                let now = clock::now();
                let connection = Connection { response, parser: Parser::default(), opened: now, heard: now };
                self.state = State::Open(Box::new(connection));
            }
            Attempt::NotNow(reason, wish) => self.pause(&reason, wish),
            Attempt::Refused(error) => {
                self.client.link().back();
                return Err(error);
            }
        }
        Ok(())
    }

    async fn attempt(&self, cursor: u64) -> Attempt {
        let mut pairs = vec![("after", cursor.to_string())];
        pairs.extend(self.query.log.clone().map(|log| ("log", log)));
        pairs.extend(self.query.filter.pairs());
        let limit = self.client.settings().reply_within;
        let request = self.client.get_request("/v1/events/stream", &pairs, limit);
        let mut builder = self.client.http().get(request.url).header(ACCEPT, "text/event-stream");
        if self.resumed {
            builder = builder.header("last-event-id", cursor.to_string());
        }
        let mut response = match tokio::time::timeout(limit, builder.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Attempt::NotNow(in_words(&error), None),
            Err(_) => return Attempt::NotNow("no reply in time".to_owned(), None),
        };
        self.client.hear_date(&response);
        if response.status().is_success() {
            let is_stream = header(response.headers(), CONTENT_TYPE.as_str())
                .is_some_and(|content_type| content_type.starts_with("text/event-stream"));
            return if is_stream {
                Attempt::Opened(response)
            } else {
                Attempt::NotNow("the reply is no stream of events".to_owned(), None)
            };
        }
        let reply = match tokio::time::timeout(limit, read_whole(&mut response)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(reason)) => return Attempt::NotNow(reason, None),
            Err(_) => return Attempt::NotNow("no reply in time".to_owned(), None),
        };
        match verdict(&reply) {
            Verdict::Refused(problem, wish) if problem.code == ProblemCode::RateLimited => {
                Attempt::NotNow(problem.detail, wish)
            }
            refused @ Verdict::Refused(..) => Attempt::Refused(self.client.error_of(&refused)),
            Verdict::NotNow(reason, _, wish) => Attempt::NotNow(reason, wish),
            Verdict::Stranger(_, reason) => Attempt::NotNow(reason, None),
        }
    }
}

/// What came of opening a connection.
enum Attempt {
    Opened(Response),
    NotNow(String, Option<Duration>),
    Refused(Error),
}

/// A connection that stood for longer than this was a good one: the next pause is a short one.
const STEADY: Duration = Duration::from_secs(5);
