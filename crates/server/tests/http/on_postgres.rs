//! The API as a client meets it, over a store in a real PostgreSQL server: the suite that a folder passes as well. What only a
//! file meets (`faults`: a full disk, a failed sync) is not in it.
#![allow(clippy::unwrap_used, missing_docs)]

/// Which database this run of the suite is about.
const ON_POSTGRES: bool = true;

mod access;
mod budget;
mod connections;
mod deadlines;
mod hosts;
mod notices;
mod operate;
mod public;
mod random;
mod shutdown;
mod support;
mod v1_asks;
mod v1_asks_wait;
mod v1_events_cases;
mod v1_events_get;
mod v1_events_post;
mod v1_events_shape;
mod v1_events_stream;
mod v1_me;
mod v1_runs;
