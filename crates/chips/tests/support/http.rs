//! HTTP/1.1 by hand (RFC 9112), for tests in which the bytes matter. Blocking, one request at a time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::wait::LIMIT;

/// A request to be sent. `Host`, `Content-Length` and `Connection` are added unless they are given.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

impl Request {
    pub fn new(method: &str, path: &str) -> Self {
        Self { method: method.into(), path: path.into(), headers: Vec::new(), body: None }
    }

    pub fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// A POST of these bytes as JSON, whether they are JSON or not.
    pub fn post_json(path: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", path).header("Content-Type", "application/json").body(body)
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    fn names(&self, name: &str) -> bool {
        self.headers.iter().any(|(had, _)| had.eq_ignore_ascii_case(name))
    }

    /// What goes over the wire to this address.
    pub fn wire(&self, addr: SocketAddr, keep_alive: bool) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.names("host") {
            head += &format!("Host: {addr}\r\n");
        }
        if !keep_alive && !self.names("connection") {
            head += "Connection: close\r\n";
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = &self.body
            && !self.names("content-length")
            && !self.names("transfer-encoding")
        {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        let mut wire = head.into_bytes();
        wire.extend_from_slice(self.body.as_deref().unwrap_or_default());
        wire
    }

    /// Sends it on a connection of its own.
    ///
    /// # Panics
    /// Without an answer.
    pub fn send(&self, addr: SocketAddr) -> Response {
        self.try_send(addr).unwrap_or_else(|error| panic!("{} {}: {error}", self.method, self.path))
    }

    /// Sends it on a connection of its own.
    pub fn try_send(&self, addr: SocketAddr) -> io::Result<Response> {
        let mut conn = Conn::open(addr)?;
        // The server may refuse and close before it has read everything; its answer counts.
        let sent = conn.write(&self.wire(addr, false));
        conn.read_response(self.method == "HEAD").or_else(|error| {
            sent?;
            Err(error)
        })
    }
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(had, _)| had.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// # Panics
    /// If the body is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}) with status {}: {}", self.status, self.text()))
    }

    /// The body, once the status is checked.
    ///
    /// # Panics
    /// With another status; the body is shown.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The problem, once status, media type and code are checked (RFC 9457).
    #[track_caller]
    pub fn expect_problem(&self, status: u16, code: &str) -> Value {
        let problem = self.expect(status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{problem}");
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        for field in ["type", "title", "detail"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field} in {problem}");
        }
        problem
    }

    /// The codes and places of a refused event.
    #[track_caller]
    pub fn expect_faults(&self) -> Vec<(String, String)> {
        let problem = self.expect_problem(422, "invalid_event");
        let errors = problem["errors"].as_array().expect("errors");
        let text = |fault: &Value, field: &str| fault[field].as_str().expect(field).to_owned();
        errors.iter().map(|fault| (text(fault, "pointer"), text(fault, "code"))).collect()
    }

    /// Checks that the event is refused for (at least) this fault at this place.
    #[track_caller]
    pub fn expect_fault(&self, pointer: &str, code: &str) {
        let faults = self.expect_faults();
        assert!(faults.contains(&(pointer.into(), code.into())), "no {code} at {pointer} in {faults:?}");
    }

    /// Whether it says that the event was stored before.
    pub fn replayed(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }
}

/// A connection.
pub struct Conn {
    addr: SocketAddr,
    reader: BufReader<TcpStream>,
}

impl Conn {
    pub fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, LIMIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(Self { addr, reader: BufReader::new(stream) })
    }

    pub fn socket(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Sends a request and keeps the connection for the next.
    pub fn send(&mut self, request: &Request) -> io::Result<Response> {
        let wire = request.wire(self.addr, true);
        self.write(&wire)?;
        self.read_response(request.method == "HEAD")
    }

    /// Reads the next answer.
    pub fn read_response(&mut self, head: bool) -> io::Result<Response> {
        let (status, headers) = read_head(&mut self.reader)?;
        let mut response = Response { status, headers, body: Vec::new() };
        if head || matches!(status, 204 | 304) {
            return Ok(response);
        }
        if response.header("transfer-encoding").is_some() {
            Chunked::new(&mut self.reader).read_to_end(&mut response.body)?;
        } else if let Some(length) = response.header("content-length") {
            let length: usize = length.parse().map_err(io::Error::other)?;
            response.body.resize(length, 0);
            self.reader.read_exact(&mut response.body)?;
        } else {
            self.reader.read_to_end(&mut response.body)?;
        }
        Ok(response)
    }

    /// Reads the head of an answer whose body does not end, and returns the body's bytes as they come.
    pub fn into_body(mut self) -> io::Result<(Response, Body)> {
        let (status, headers) = read_head(&mut self.reader)?;
        Ok((Response { status, headers, body: Vec::new() }, Chunked::new(self.reader)))
    }

    /// Whether the other side closes the connection within this time, whatever it sends before.
    pub fn closes_within(&mut self, limit: Duration) -> bool {
        let began = std::time::Instant::now();
        let mut sink = [0; 4096];
        while let Some(left) = limit.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            let _ = self.socket().set_read_timeout(Some(left));
            match self.reader.read(&mut sink) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        false
    }
}

fn read_head(reader: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    let mut next = |line: &mut String| {
        line.clear();
        reader.read_line(line)?;
        if !line.ends_with("\r\n") {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended in the head"));
        }
        line.truncate(line.len() - 2);
        Ok(())
    };
    next(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no status line: {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        next(&mut line)?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| io::Error::other(format!("no header: {line:?}")))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
}

/// A chunked body that comes over a connection.
pub type Body = Chunked<BufReader<TcpStream>>;

/// A chunked body. Reading may time out and go on after.
pub struct Chunked<R> {
    inner: R,
    line: Vec<u8>,
    left: usize,
    /// Whether the line end after a chunk's data is still to come.
    after_data: bool,
    ended: bool,
}

impl<R: BufRead> Chunked<R> {
    fn new(inner: R) -> Self {
        Self { inner, line: Vec::new(), left: 0, after_data: false, ended: false }
    }

    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// The next line without its end; what is read so far is kept when reading times out.
    fn read_line(&mut self) -> io::Result<Vec<u8>> {
        self.inner.read_until(b'\n', &mut self.line)?;
        if !self.line.ends_with(b"\r\n") {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended in a chunked body"));
        }
        let mut line = std::mem::take(&mut self.line);
        line.truncate(line.len() - 2);
        Ok(line)
    }
}

impl<R: BufRead> Read for Chunked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            if self.ended {
                return Ok(0);
            }
            let line = self.read_line()?;
            if self.after_data {
                self.after_data = false;
                continue;
            }
            let size = String::from_utf8_lossy(&line);
            let size = size.split(';').next().unwrap_or_default().trim().to_owned();
            self.left = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
            if self.left == 0 {
                while !self.read_line()?.is_empty() {}
                self.ended = true;
            }
        }
        let most = self.left.min(into.len());
        let read = self.inner.read(&mut into[..most])?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended in a chunk"));
        }
        self.left -= read;
        self.after_data = self.left == 0;
        Ok(read)
    }
}
