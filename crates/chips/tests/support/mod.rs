//! What the tests that run the real binary share: a data folder, a server process, raw HTTP, events to send.
//!
//! Everything here is a client: nothing reaches into Chips but over its socket, its command line and its files.

// Each test binary uses its own part of this module.
#![allow(dead_code, unused_imports)]

pub mod browser;
pub mod events;
pub mod http;
pub mod process;
pub mod proxy;
pub mod scene;
pub mod stream;
pub mod wait;

pub use events::{ask_with, new_id, question};
pub use http::{Conn, Request, Response};
pub use process::{Folder, Serve};
pub use wait::{LIMIT, until};
