//! What the store promises, held against real files.

#![allow(clippy::unwrap_used)]

/// Which database this run of the story is about.
const ON_POSTGRES: bool = false;

mod access;
mod admin;
mod conformance;
mod copies;
mod crash;
mod durable;
mod erase;
mod faults;
mod file;
mod folder;
mod in_folder;
mod model;
mod notices;
mod retain;
mod support;
mod time;
