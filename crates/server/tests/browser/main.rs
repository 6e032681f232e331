//! The inbox in a real browser: Chromium, driven by ChromeDriver, headless. `./test` installs both where it can.

#![allow(clippy::unwrap_used)]

mod answering;
mod axe;
mod care;
mod devtools;
mod keys;
mod live;
mod offline;
mod pictures;
mod presence;
mod push;
#[path = "../inbox/push_service.rs"]
mod push_service;
#[allow(dead_code)]
#[path = "../http/support/receiver.rs"]
mod receiver;
mod screen;
mod sizes;
#[path = "../inbox/support.rs"]
mod support;
#[allow(dead_code)]
#[path = "../inbox/telegram_api.rs"]
mod telegram_api;
mod texts;
mod told;
mod undo;

use support::within;
