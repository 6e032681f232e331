//! What the store promises, held against a real PostgreSQL server: the story that a folder passes as well.

#![allow(clippy::unwrap_used)]

/// Which database this run of the story is about.
const ON_POSTGRES: bool = true;

mod access;
mod admin;
mod conformance;
mod durable;
mod erase;
mod layouts;
mod migrate;
mod model;
mod notices;
mod plans;
mod retain;
mod support;
mod tape;
mod time;
mod together;
