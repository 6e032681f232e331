//! The API as a client meets it: a real server on a free port, a real store in a temporary folder. One file per resource, as
//! the paths have it; `connections` is about what happens below HTTP's surface.
#![allow(clippy::unwrap_used, missing_docs)]

/// Which database this run of the suite is about.
const ON_POSTGRES: bool = false;

mod access;
mod budget;
mod connections;
mod deadlines;
mod faults;
mod hosts;
mod notices;
mod operate;
mod public;
mod random;
mod retention;
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
