//! The browser's own protocol, for what no driver passes on: its service worker and the messages that are pushed to it.

use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::screen::within;

/// A connection to a browser.
pub struct DevTools {
    stream: TcpStream,
    last: u64,
    /// What the browser told by itself: methods and parameters.
    told: Vec<(String, Value)>,
}

impl DevTools {
    /// Speaks to the browser with this profile. A WebSocket (RFC 6455) is all it takes.
    pub async fn open(profile: &Path) -> Self {
        let place = std::fs::read_to_string(profile.join("DevToolsActivePort")).unwrap();
        let (port, path) = place.trim().split_once('\n').unwrap();
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
        let ask = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(within(stream.read_u8()).await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Self { stream, last: 0, told: Vec::new() }
    }

    async fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let mut frame = vec![0x81];
        match text.len() {
            short @ ..126 => frame.push(0x80 | short as u8),
            long @ ..65536 => frame.extend([&[0x80 | 126], (long as u16).to_be_bytes().as_slice()].concat()),
            longest => frame.extend([&[0x80 | 127], (longest as u64).to_be_bytes().as_slice()].concat()),
        }
        // Masked with zeros, which changes nothing.
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.stream.write_all(&frame).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let mut text = Vec::new();
        loop {
            let first = self.stream.read_u8().await.unwrap();
            let length = match self.stream.read_u8().await.unwrap() {
                126 => self.stream.read_u16().await.unwrap().into(),
                127 => self.stream.read_u64().await.unwrap(),
                short => short.into(),
            };
            let at = text.len();
            text.resize(at + length as usize, 0);
            self.stream.read_exact(&mut text[at..]).await.unwrap();
            if first & 0x80 != 0 {
                return serde_json::from_slice(&text).unwrap();
            }
        }
    }

    /// Has the browser, or what a session is attached to, do something.
    pub async fn call(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        self.send(&message).await;
        within(async {
            loop {
                let mut said = self.receive().await;
                if said["id"] == json!(self.last) {
                    assert!(said["error"].is_null(), "{method}: {said}");
                    return said["result"].take();
                }
                if let Some(method) = said["method"].as_str() {
                    self.told.push((method.to_owned(), said["params"].take()));
                }
            }
        })
        .await
    }

    /// Attaches to the first target of a kind whose address begins so; gives the session.
    pub async fn attach(&mut self, kind: &str, address: &str) -> String {
        let mut ticks = tokio::time::interval(std::time::Duration::from_millis(50));
        let target = within(async {
            loop {
                ticks.tick().await;
                let all = self.call(None, "Target.getTargets", json!({})).await;
                let found = all["targetInfos"].as_array().unwrap().iter().find(|target| {
                    target["type"] == kind && target["url"].as_str().is_some_and(|url| url.starts_with(address))
                });
                if let Some(target) = found {
                    return target["targetId"].clone();
                }
            }
        })
        .await;
        let attached = self.call(None, "Target.attachToTarget", json!({ "targetId": target, "flatten": true })).await;
        attached["sessionId"].as_str().unwrap().to_owned()
    }

    /// Evaluates an expression, and waits for what it promises.
    pub async fn evaluate(&mut self, session: &str, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut done = self.call(Some(session), "Runtime.evaluate", parameters).await;
        assert!(done["exceptionDetails"].is_null(), "{expression}: {done}");
        done["result"]["value"].take()
    }

    /// Pushes a message to the worker of a site, as the browser does when its push service has one.
    pub async fn push(&mut self, page: &str, origin: &str, message: &str) {
        self.call(Some(page), "ServiceWorker.enable", json!({})).await;
        let registration = within(async {
            loop {
                let known =
                    self.told.iter().rev().filter(|(method, _)| method == "ServiceWorker.workerRegistrationUpdated");
                let mut all = known.flat_map(|(_, told)| told["registrations"].as_array().unwrap());
                if let Some(found) = all.find(|found| found["scopeURL"].as_str().unwrap().starts_with(origin)) {
                    return found["registrationId"].clone();
                }
                let mut said = self.receive().await;
                if let Some(method) = said["method"].as_str() {
                    self.told.push((method.to_owned(), said["params"].take()));
                }
            }
        })
        .await;
        let parameters = json!({ "origin": origin, "registrationId": registration, "data": message });
        self.call(Some(page), "ServiceWorker.deliverPushMessage", parameters).await;
    }
}
