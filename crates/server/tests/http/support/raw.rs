//! Bytes on a socket, where a client library would be too well-behaved.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::within;

/// A connection to a server.
pub struct Raw {
    pub stream: TcpStream,
    read: Vec<u8>,
}

/// An answer, as it came.
#[derive(Debug)]
pub struct RawReply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl RawReply {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Raw {
    pub async fn connect(address: SocketAddr) -> Self {
        Self { stream: within(TcpStream::connect(address)).await.unwrap(), read: Vec::new() }
    }

    /// A connection whose end here takes few bytes before it is full.
    pub async fn narrow(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        Self { stream: within(socket.connect(address)).await.unwrap(), read: Vec::new() }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within(self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    /// Reads one answer, body and all: of the length it says, in chunks, or up to the end of the connection.
    pub async fn reply(&mut self) -> RawReply {
        self.reply_to("GET").await
    }

    /// The same for a request of this method: HEAD has no body.
    pub async fn reply_to(&mut self, method: &str) -> RawReply {
        let end = loop {
            if let Some(at) = find(&self.read, b"\r\n\r\n") {
                break at;
            }
            assert!(
                self.more().await,
                "the connection ended within a header: {:?}",
                String::from_utf8_lossy(&self.read)
            );
        };
        let head = String::from_utf8(self.read.drain(..end + 4).collect()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut reply = RawReply { status, head, body: String::new() };
        if method == "HEAD" {
            return reply;
        }
        let body = if reply.header("transfer-encoding") == Some("chunked") {
            self.chunks().await
        } else if let Some(length) = reply.header("content-length") {
            self.exactly(length.parse().unwrap()).await
        } else {
            self.rest().await
        };
        reply.body = String::from_utf8(body).unwrap();
        reply
    }

    /// Everything up to the end of the connection, however it ends.
    pub async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.read)
    }

    /// Waits until the other end has closed.
    pub async fn closed(&mut self) {
        self.rest().await;
    }

    async fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = loop {
                if let Some(at) = find(&self.read, b"\r\n") {
                    break self.read.drain(..at + 2).collect::<Vec<u8>>();
                }
                assert!(self.more().await, "the connection ended within a chunk");
            };
            let length = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
            body.extend(self.exactly(length).await);
            self.exactly(2).await;
            if length == 0 {
                return body;
            }
        }
    }

    async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.read.len() < length {
            assert!(self.more().await, "the connection ended within a body");
        }
        self.read.drain(..length).collect()
    }

    async fn more(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        let count = within(self.stream.read(&mut buffer)).await.unwrap_or(0);
        self.read.extend_from_slice(&buffer[..count]);
        count > 0
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
