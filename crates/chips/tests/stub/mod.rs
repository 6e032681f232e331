//! A small HTTP server on loopback that a test plays the other side with, and a client for such servers.
#![allow(clippy::unwrap_used, dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// The path with its query, as it was sent.
    pub path: String,
    /// The lines of the head.
    pub head: String,
    /// The body; null where there is none.
    pub body: Value,
}

/// Serves on a free port until the process ends. Every connection carries one request; `answer` writes the whole reply.
pub fn serve(answer: impl Fn(Request, TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || {
                // A connection that was opened and not used has no request.
                if let Some(request) = read(&connection) {
                    answer(request, connection);
                }
            });
        }
    });
    address
}

fn read(connection: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim_end().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let mut words = head.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    Some(Request { method, path, body: serde_json::from_slice(&body).unwrap_or_default(), head })
}

/// Writes a whole reply. Whoever hung up needs none.
pub fn reply(mut connection: TcpStream, status: &str, content_type: &str, body: &str) {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n", body.len());
    let _ = connection.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes());
}

/// Begins a stream of Server-Sent Events.
pub fn begin_events(connection: &mut TcpStream) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let _ = connection.write_all(head.as_bytes());
}

/// Writes one event of a stream. Says whether anybody reads it.
pub fn event(connection: &mut TcpStream, data: &Value) -> bool {
    connection.write_all(format!("data: {data}\n\n").as_bytes()).is_ok()
}

/// One call: the status, and the JSON that came back (null where none did). It may be made from within a wait: it has a
/// thread of its own.
pub fn call(method: &str, url: &str, password: Option<&str>, body: Option<&Value>) -> (u16, Value) {
    let sending = async {
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(120))
            .tls_backend_preconfigured(chips_client::parts::tls_config(false).unwrap())
            .build()
            .unwrap();
        let mut request = client.request(method.parse().unwrap(), url);
        if let Some(password) = password {
            request = request.basic_auth("opencode", Some(password));
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default())
    };
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(sending)
        });
        call.join().unwrap()
    })
}
