//! What Chips promises, held against the real binary from outside: each test is one promise, with its case's id.
//!
//! `m…` are the cases of the main job, `h…` those of access and odd bytes. Every test makes a data folder of its own
//! and serves it on a free port of the loopback address.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod support;

#[path = "cases/access.rs"]
mod access;
#[path = "cases/answers.rs"]
mod answers;
#[path = "cases/clock.rs"]
mod clock;
#[path = "cases/crash.rs"]
mod crash;
#[path = "cases/deadlines.rs"]
mod deadlines;
#[path = "cases/files.rs"]
mod files;
#[path = "cases/health.rs"]
mod health;
#[path = "cases/idempotency.rs"]
mod idempotency;
#[path = "cases/logs.rs"]
mod logs;
#[path = "cases/malformed.rs"]
mod malformed;
#[path = "cases/metrics.rs"]
mod metrics;
#[path = "cases/odd_text.rs"]
mod odd_text;
#[path = "cases/pages.rs"]
mod pages;
#[path = "cases/resume.rs"]
mod resume;
#[path = "cases/sign_in.rs"]
mod sign_in;
#[path = "cases/streams.rs"]
mod streams;
