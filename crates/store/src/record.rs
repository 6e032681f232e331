//! An event as the log holds it, with what readers filter by.

use std::sync::Arc;

use bytes::Bytes;
use chips_protocol::{Event, HarnessId};

/// A stored event: typed, as the bytes that every reader gets, and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The place in the workspace's log.
    pub seq: u64,
    /// The harness whose run it belongs to.
    pub harness_id: HarnessId,
    /// The event.
    pub event: Arc<Event>,
    /// The event as JSON on one line, made once and shared by all readers.
    pub json: Bytes,
}
