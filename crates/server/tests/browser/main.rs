//! The inbox in a real browser: Chromium, driven by ChromeDriver, headless. `./test` installs both where it can.

#![allow(clippy::unwrap_used)]

mod answering;
mod axe;
mod care;
mod keys;
mod live;
mod offline;
mod presence;
mod screen;
#[path = "../inbox/support.rs"]
mod support;
mod texts;
mod told;
mod undo;
