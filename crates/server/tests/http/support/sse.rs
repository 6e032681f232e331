//! A reader of Server-Sent Events that takes them apart as the standard says.

use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::Response;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::within;

/// One block of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    Event { id: String, event: String, data: String },
    Retry(u64),
    Comment,
}

/// An open stream.
pub struct Sse {
    pub headers: HeaderMap,
    bytes: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    read: String,
}

impl Sse {
    pub fn new(response: Response) -> Self {
        let headers = response.headers().clone();
        let bytes = response.bytes_stream().map(|chunk| chunk.map(|chunk| chunk.to_vec())).boxed();
        Self { headers, bytes, read: String::new() }
    }

    /// The next block; nothing once the stream has ended.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(at) = self.read.find("\n\n") {
                let block: String = self.read.drain(..at + 2).collect();
                return Some(parse(block.trim_end_matches('\n')));
            }
            match within(self.bytes.next()).await {
                Some(Ok(chunk)) => self.read.push_str(std::str::from_utf8(&chunk).unwrap()),
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// The next event, with its id; comments are passed over.
    pub async fn event(&mut self) -> (u64, Value) {
        loop {
            match self.next().await.expect("the stream ended") {
                Frame::Event { id, event, data } => {
                    let value: Value = serde_json::from_str(&data).unwrap();
                    assert_eq!(value["type"], event);
                    assert_eq!(value["seq"], id.parse::<u64>().unwrap());
                    return (id.parse().unwrap(), value);
                }
                Frame::Retry(_) | Frame::Comment => {}
            }
        }
    }

    /// Reads on until the stream ends, and gives the events that came before.
    pub async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(frame) = self.next().await {
            if let Frame::Event { data, .. } = frame {
                events.push(serde_json::from_str(&data).unwrap());
            }
        }
        events
    }
}

fn parse(block: &str) -> Frame {
    let (mut id, mut event, mut data, mut retry) = (None, None, Vec::new(), None);
    for line in block.split(['\n', '\r']) {
        match line.split_once(':').map(|(field, value)| (field, value.strip_prefix(' ').unwrap_or(value))) {
            Some(("", _)) => {}
            Some(("id", value)) => assert!(id.replace(value.to_owned()).is_none(), "two ids: {block:?}"),
            Some(("event", value)) => assert!(event.replace(value.to_owned()).is_none(), "two types: {block:?}"),
            Some(("data", value)) => data.push(value.to_owned()),
            Some(("retry", value)) => retry = Some(value.parse().unwrap()),
            _ => panic!("no line of a stream: {line:?}"),
        }
    }
    match (id, event, data.as_slice(), retry) {
        (Some(id), Some(event), [data], None) => Frame::Event { id, event, data: data.clone() },
        (None, None, [], Some(retry)) => Frame::Retry(retry),
        (None, None, [], None) => Frame::Comment,
        _ => panic!("no block of this stream: {block:?}"),
    }
}
