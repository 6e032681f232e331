//! Many people in one workspace: what their number alone costs, whether they do anything or not.
//!
//! They are made through the store before the server starts, each with a token and a session of a browser. Then one of them reads the
//! inbox, and one harness asks: first where nobody is told outside the inbox, then where each question is looked at for who is to be told.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use chips_protocol::WorkspaceId;
use chips_store::admin::Admin;
use chips_store::{Device, Options, Proof, SignedIn, Store, secret};

use super::percentiles;
use super::server::LoadServer;
use super::wire::Connection;

/// How many sign in at the same time.
const SIGNING_IN: usize = 512;
/// Questions of one stage, and pages that are read.
const SAMPLES: usize = 300;

/// Makes so many people in a data folder that nobody serves, each signed in; gives the cookie of the last.
///
/// # Errors
/// The folder can't be written.
pub fn fill(data: &Path, workspace: &str, people: usize) -> Result<String> {
    let workspace: WorkspaceId = workspace.parse().ok().context("a workspace")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut last = None;
    let mut left = people;
    // A link is good for minutes, and many people take longer to make.
    while left > 0 {
        let some = left.min(10_000);
        left -= some;
        let mut admin = Admin::open(data)?;
        let mut links = Vec::with_capacity(some);
        for number in 0..some {
            let (_, sign_in) = admin.add_person(workspace, &format!("Person {}", left + number))?;
            links.push(sign_in.secret);
        }
        drop(admin);
        last = runtime.block_on(sign_in(data, links))?;
    }
    Ok(format!("chips={}", last.context("people")?))
}

/// Signs people in by their links; gives the secret of the last one's session.
async fn sign_in(data: &Path, links: Vec<String>) -> Result<Option<String>> {
    let store = Store::open(data, Options::default())?;
    let mut last = None;
    for some in links.chunks(SIGNING_IN) {
        let mut under_way = tokio::task::JoinSet::new();
        for link in some {
            let (store, proof) = (store.clone(), Proof::Link(secret::sha256(link)));
            under_way.spawn(async move { store.sign_in(proof, Device { name: "Firefox on Linux".to_owned() }).await });
        }
        for signed_in in under_way.join_all().await {
            match signed_in? {
                SignedIn::Yes(secret, _) => last = Some(secret),
                SignedIn::No(state) => anyhow::bail!("a link that is {state:?}"),
            }
        }
    }
    store.close().await;
    Ok(last)
}

/// Measures a server on such a folder, and prints the table.
///
/// # Errors
/// The server refuses something.
pub fn measure(server: &mut LoadServer, people: usize, cookie: &str) -> Result<()> {
    let start = server.restart()?;
    let resident = server.process()?.resident >> 20;
    let (backup, copy) = server.backup()?;
    let alone = asks(server)?;
    let page = pages(server, cookie)?;
    server.add_webhook()?;
    let told = asks(server)?;
    println!(
        "| people | start s | memory MiB | a copy MiB | it took s | inbox p50, p99 ms | ask p50, p99 ms | the same, with who is to be told |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    println!(
        "| {people} | {:.2} | {resident} | {} | {:.1} | {} | {} | {} |",
        start.as_secs_f64(),
        copy >> 20,
        backup.as_secs_f64(),
        shown(page),
        shown(alone),
        shown(told)
    );
    Ok(())
}

fn shown((p50, p99): (f64, f64)) -> String {
    format!("{p50:.1}, {p99:.1}")
}

/// One harness that asks, one question after the other.
fn asks(server: &LoadServer) -> Result<(f64, f64)> {
    let run = server.open_run()?;
    let mut connection = Connection::open(server.address())?;
    let mut times = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let ask = server.ask(&run).to_string();
        let began = Instant::now();
        connection.post("/v1/events", &server.harness.token, &ask)?.created()?;
        times.push(began.elapsed());
    }
    Ok(percentiles(&mut times))
}

/// One person who reads the inbox, again and again.
fn pages(server: &LoadServer, cookie: &str) -> Result<(f64, f64)> {
    let mut connection = Connection::open(server.address())?;
    let mut times = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let began = Instant::now();
        let page = connection.get_with("/", cookie)?.ok()?;
        times.push(began.elapsed());
        ensure!(page.windows(9).any(|piece| piece == b"Northwind"), "the inbox shows no question");
    }
    Ok(percentiles(&mut times))
}
