//! Server-Sent Events as the standard has them (HTML, section 9.2), read line by line.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::http::{Body, Conn, Request, Response};

/// One message of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: String,
    pub event: String,
    /// The `data:` lines, each as it came.
    pub data: Vec<String>,
}

impl Message {
    pub fn seq(&self) -> u64 {
        self.id.parse().expect("the id of a message is a seq")
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.data.len(), 1, "one data line: {self:?}");
        serde_json::from_str(&self.data[0]).expect("the data is JSON")
    }
}

/// An open stream.
pub struct Stream {
    pub headers: Vec<(String, String)>,
    body: BufReader<Body>,
    line: Vec<u8>,
    partial: Option<Message>,
}

impl Stream {
    /// Opens `GET /v1/events/stream` with this query (`""` or `?…`).
    ///
    /// # Panics
    /// Unless it is answered with 200 and `text/event-stream`.
    pub fn open(addr: SocketAddr, token: &str, query: &str, last_event_id: Option<u64>) -> Self {
        let mut conn = Conn::open(addr).expect("a connection");
        Self::send(&mut conn, addr, token, query, last_event_id).expect("the request is sent");
        Self::on(conn)
    }

    /// Sends the request of a stream on a connection.
    pub fn send(
        conn: &mut Conn,
        addr: SocketAddr,
        token: &str,
        query: &str,
        last_event_id: Option<u64>,
    ) -> io::Result<()> {
        let mut request = Request::get(&format!("/v1/events/stream{query}")).bearer(token);
        if let Some(seq) = last_event_id {
            request = request.header("Last-Event-ID", &seq.to_string());
        }
        conn.write(&request.wire(addr, true))
    }

    /// Takes over a connection on which the request was sent.
    pub fn on(conn: Conn) -> Self {
        Self::answered(conn).expect("an answer").unwrap_or_else(|status| panic!("refused with {status}"))
    }

    /// The same where a refusal is to be expected, which gives its status.
    ///
    /// # Errors
    /// There is no answer.
    pub fn answered(conn: Conn) -> io::Result<Result<Self, u16>> {
        let (Response { status, headers, .. }, body) = conn.into_body()?;
        if status != 200 {
            return Ok(Err(status));
        }
        let stream = Self { headers, body: BufReader::new(body), line: Vec::new(), partial: None };
        assert!(stream.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")));
        Ok(Ok(stream))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(had, _)| had.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The next message, or nothing where none came within `limit`.
    ///
    /// # Errors
    /// The stream ended, or the connection broke.
    pub fn next(&mut self, limit: Duration) -> io::Result<Option<Message>> {
        let began = Instant::now();
        loop {
            let Some(left) = limit.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) else {
                return Ok(None);
            };
            self.body.get_ref().get_ref().get_ref().set_read_timeout(Some(left))?;
            match self.body.read_until(b'\n', &mut self.line) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the stream ended")),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => continue,
                Err(error) => return Err(error),
            }
            if !self.line.ends_with(b"\n") {
                continue;
            }
            let line = String::from_utf8(std::mem::take(&mut self.line)).map_err(io::Error::other)?;
            if let Some(message) = self.take(line.trim_end_matches(['\r', '\n'])) {
                return Ok(Some(message));
            }
        }
    }

    fn take(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            return self.partial.take().filter(|message| !message.data.is_empty());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        let empty = || Message { id: String::new(), event: "message".into(), data: Vec::new() };
        let message = self.partial.get_or_insert_with(empty);
        match field {
            "id" => message.id = value.into(),
            "event" => message.event = value.into(),
            "data" => message.data.push(value.into()),
            _ => {}
        }
        None
    }

    /// The next message.
    ///
    /// # Panics
    /// Unless one comes within the limit.
    #[track_caller]
    pub fn expect(&mut self) -> Message {
        self.next(super::LIMIT).expect("the stream goes on").expect("a message within the limit")
    }

    /// Whether the stream ends within this time, whatever comes before.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        let began = Instant::now();
        while let Some(left) = limit.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            if self.next(left).is_err() {
                return true;
            }
        }
        false
    }
}
