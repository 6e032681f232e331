//! One folder, one server on PostgreSQL, several on it: the same load on each, one after the other at every step of it, so that
//! whatever else the machine does meets all of them.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};

use super::server::{LoadServer, Place};
use super::{Args, BARE, Bounds, Way, durable_asks, rounds};

/// A PostgreSQL, and the lease that keeps it running where it is the tests' own.
pub struct Postgres {
    url: String,
    _lease: Option<File>,
    schemas: AtomicU64,
}

impl Postgres {
    /// The one at this URL, or the one that the tests start.
    fn find(url: Option<&str>) -> Result<Self> {
        if let Some(url) = url {
            return Ok(Self { url: url.to_owned(), _lease: None, schemas: AtomicU64::new(0) });
        }
        let output = Command::new(crate::root().join("tests/postgres/start")).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told = String::from_utf8(output.stdout)?;
        let (url, lease) = told.trim().split_once('\n').context("a URL and a lease")?;
        let lease = (lease != "-").then(|| File::open(lease)).transpose()?;
        lease.as_ref().map(File::lock_shared).transpose()?;
        Ok(Self { url: url.to_owned(), _lease: lease, schemas: AtomicU64::new(0) })
    }

    /// A schema of its own for a log.
    pub fn schema(&self) -> Result<Schema> {
        let name = format!("load_{}_{}", std::process::id(), self.schemas.fetch_add(1, Ordering::Relaxed));
        let and = if self.url.contains('?') { '&' } else { '?' };
        let url = format!("{}{and}options=-csearch_path%3D{name}", self.url);
        Ok(Schema { database: self.url.clone(), name, url })
    }

    fn sql(url: &str, sql: &str) -> Result<String> {
        let options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql];
        let output = Command::new("psql").args(options).output().context("psql")?;
        ensure!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

/// A schema. Gone when dropped.
pub struct Schema {
    database: String,
    name: String,
    url: String,
}

impl Schema {
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("SET client_min_messages = error; DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        if let Err(error) = Postgres::sql(&self.database, &drop) {
            eprintln!("the schema {} is left: {error}", self.name);
        }
    }
}

/// Measures them beside each other and prints the tables.
///
/// # Errors
/// There is no PostgreSQL, a server can't be started, or refuses what it is sent.
pub fn compare(chips: &Path, args: &Args, servers: usize, bounds: &Bounds) -> Result<()> {
    let postgres = Postgres::find(args.database.as_deref())?;
    let mut stores = vec![
        ("SQLite".to_owned(), LoadServer::start(chips, Place::Folder)?),
        ("PostgreSQL, 1 server".to_owned(), LoadServer::start(chips, Place::Database(&postgres, 1))?),
    ];
    if servers > 1 {
        let store = LoadServer::start(chips, Place::Database(&postgres, servers))?;
        stores.push((format!("PostgreSQL, {servers} servers"), store));
    }
    println!(
        "PostgreSQL {}. Durable asks, over HTTP, each acknowledged after it was on the disk:\n",
        Postgres::sql(&postgres.url, "SHOW server_version")?
    );
    println!("| store | clients | asks | asks/s | p50 ms | p99 ms | asks a commit | bare asks/s | ratio |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for &clients in &args.clients {
        for (name, store) in &stores {
            println!("| {name} {}", durable_asks(store, clients, bounds)?);
        }
    }
    println!("\nOne question, from its ask to the harness that has the answer; two commits each:\n");
    println!(
        "| store | clients | waits by | rounds | rounds/s | round p50 ms | p99 ms | answer→harness p50 ms | p99 ms | bare p50 ms | p99 ms | ratio p50 | p99 |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for &clients in &args.clients {
        for way in [Way::LongPoll, Way::Stream] {
            for (name, store) in &stores {
                println!("| {name} {}", rounds(store, clients, way, 0, bounds)?);
                if store.servers() > 1 {
                    println!("| {name}, answered at another {}", rounds(store, clients, way, 1, bounds)?);
                }
            }
        }
    }
    println!("\n{BARE} Bare groups are written beside the folder, wherever PostgreSQL has its own.");
    Ok(())
}
