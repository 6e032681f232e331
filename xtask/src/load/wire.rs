//! As little of HTTP/1.1 as a client in a hurry needs: the time it takes itself must not count.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// How long an answer may take before the load is given up.
const PATIENCE: Duration = Duration::from_secs(90);

/// A connection that is kept.
pub struct Connection {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

/// An answer.
pub struct Answer {
    status: u16,
    body: Vec<u8>,
    /// The cookies that it sets, each as `NAME=VALUE`.
    pub cookies: Vec<String>,
}

impl Answer {
    /// The body of a 201.
    pub fn created(self) -> Result<Vec<u8>> {
        self.with(201)
    }

    /// The body of a 200.
    pub fn ok(self) -> Result<Vec<u8>> {
        self.with(200)
    }

    fn with(self, status: u16) -> Result<Vec<u8>> {
        ensure!(self.status == status, "{}: {}", self.status, String::from_utf8_lossy(&self.body));
        Ok(self.body)
    }
}

impl Connection {
    pub fn open(address: SocketAddr) -> Result<Self> {
        ensure!(address.ip().is_loopback(), "{address} is not this machine's own");
        let stream = TcpStream::connect(address).context("the server does not listen")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { address, stream: BufReader::new(stream) })
    }

    /// Sends a POST without waiting for its answer.
    pub fn send_post(&mut self, path: &str, token: &str, body: &str) -> Result<()> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    /// Sends a GET without waiting for its answer.
    pub fn send_get(&mut self, path: &str, token: &str) -> Result<()> {
        let authorization = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{authorization}\r\n", self.address);
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    /// Sends a POST and reads its answer.
    pub fn post(&mut self, path: &str, token: &str, body: &str) -> Result<Answer> {
        self.send_post(path, token, body)?;
        self.read()
    }

    /// Sends a GET and reads its answer.
    pub fn get(&mut self, path: &str, token: &str) -> Result<Answer> {
        self.send_get(path, token)?;
        self.read()
    }

    /// Fetches a page as a browser with this cookie does.
    pub fn get_with(&mut self, path: &str, cookie: &str) -> Result<Answer> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n\r\n", self.address);
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.read()
    }

    /// Sends a form as a browser with this cookie does.
    pub fn submit(&mut self, path: &str, cookie: &str, form: &str) -> Result<Answer> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nCookie: {cookie}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {1}\r\n\r\n{form}",
            self.address,
            form.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.read()
    }

    /// Reads the next answer, whose length must be told.
    pub fn read(&mut self) -> Result<Answer> {
        let (status, length, cookies) = self.head()?;
        let mut body = vec![0; length.context("an answer without a length")?];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, body, cookies })
    }

    fn head(&mut self) -> Result<(u16, Option<usize>, Vec<String>)> {
        let mut line = String::new();
        let (mut status, mut length, mut cookies) = (0, None, Vec::new());
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line)? > 0, "the server hung up");
            let text = line.trim_end();
            if text.is_empty() {
                return Ok((status, length, cookies));
            }
            if status == 0 {
                status = text.split(' ').nth(1).context("a status line")?.parse()?;
            } else if let Some((name, value)) = text.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse()?);
            } else if let Some((name, value)) = text.split_once(':')
                && name.eq_ignore_ascii_case("set-cookie")
            {
                cookies.push(value.split(';').next().unwrap_or_default().trim().to_owned());
            }
        }
    }
}

/// A stream of events.
pub struct Events {
    connection: Connection,
    line: String,
}

impl Events {
    pub fn open(address: SocketAddr, path: &str, token: &str) -> Result<Self> {
        let mut connection = Connection::open(address)?;
        connection.send_get(path, token)?;
        let (status, ..) = connection.head()?;
        ensure!(status == 200, "the stream is refused with {status}");
        Ok(Self { connection, line: String::new() })
    }

    /// The ask that the next event belongs to. A data line is never split between two chunks' sizes, so the sizes are
    /// passed over as lines that are none of a message.
    pub fn next_ask_id(&mut self) -> Result<String> {
        loop {
            self.line.clear();
            ensure!(self.connection.stream.read_line(&mut self.line)? > 0, "the stream ended");
            if let Some(data) = self.line.strip_prefix("data:") {
                let event: Value = serde_json::from_str(data.trim()).context("an event on one line")?;
                return Ok(event["ask_id"].as_str().context("an ask_id")?.to_owned());
            }
        }
    }
}
