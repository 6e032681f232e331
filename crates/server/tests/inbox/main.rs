//! The inbox as a browser without JavaScript sees it: signing in, reading, answering, and what is refused.

#![allow(clippy::unwrap_used)]

mod access;
mod answering;
mod choosing;
mod live;
mod reading;
mod showing;
mod sign_in;
mod support;
