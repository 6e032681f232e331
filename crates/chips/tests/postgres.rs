//! Several `chips serve` on one PostgreSQL, held against the real binary and the real server: each is killed, frozen, cut off and
//! restarted under load, and nothing that was acknowledged is lost.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "../../../tests/postgres/home.rs"]
mod home;
mod support;

#[path = "postgres/crowd.rs"]
mod crowd;
#[path = "postgres/cut.rs"]
mod cut;
#[path = "postgres/frozen.rs"]
mod frozen;
#[path = "postgres/killed.rs"]
mod killed;
#[path = "postgres/migrated.rs"]
mod migrated;
#[path = "postgres/promoted.rs"]
mod promoted;
#[path = "postgres/put_back.rs"]
mod put_back;
#[path = "postgres/refused.rs"]
mod refused;
#[path = "postgres/restarted.rs"]
mod restarted;
#[path = "postgres/rolling.rs"]
mod rolling;
#[path = "postgres/schemas.rs"]
mod schemas;
#[path = "postgres/server.rs"]
mod server;
#[path = "postgres/silent.rs"]
mod silent;
#[path = "postgres/straight.rs"]
mod straight;
#[path = "postgres/team.rs"]
mod team;
#[path = "postgres/tls.rs"]
mod tls;
#[path = "postgres/unwaited.rs"]
mod unwaited;
#[path = "postgres/wire.rs"]
mod wire;
