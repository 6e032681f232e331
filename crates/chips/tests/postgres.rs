//! Several `chips serve` on one PostgreSQL, held against the real binary and the real server: each is killed, frozen, cut off and
//! restarted under load, and nothing that was acknowledged is lost.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "../../../tests/postgres/home.rs"]
mod home;
mod support;

#[path = "postgres/cut.rs"]
mod cut;
#[path = "postgres/killed.rs"]
mod killed;
#[path = "postgres/restarted.rs"]
mod restarted;
#[path = "postgres/server.rs"]
mod server;
#[path = "postgres/team.rs"]
mod team;
#[path = "postgres/wire.rs"]
mod wire;
