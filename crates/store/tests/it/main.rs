//! What the store promises, held against real files.

#![allow(clippy::unwrap_used)]

mod access;
mod admin;
mod conformance;
mod copies;
mod crash;
mod durable;
mod erase;
mod faults;
mod folder;
mod model;
mod notices;
mod retain;
mod support;
mod time;
