//! The inbox as a browser without JavaScript sees it: signing in, reading, answering, and what is refused.

#![allow(clippy::unwrap_used)]

mod access;
mod answering;
mod choosing;
mod install;
mod live;
mod mail;
mod ntfy;
mod presence;
mod push_service;
mod reading;
#[allow(dead_code)]
#[path = "../http/support/receiver.rs"]
mod receiver;
mod showing;
mod sign_in;
mod support;
mod telegram;
mod telegram_api;
mod told;
mod web_push;

use support::within;
