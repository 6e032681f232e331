//! The inbox of somebody with many open questions: how long the page takes, and how large it is.
//!
//! The times are those of whole requests over the loopback address, on one connection that is kept, to the last byte of the page;
//! what the server itself takes to make the page is less than that.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::server::LoadServer;
use super::wire::Connection;
use super::{percentiles, stage};

/// Asks this many questions, signs in, and fetches the inbox again and again. Each tenth question is of a run of its own.
///
/// # Errors
/// The server refuses something, or the page is not what it should be.
pub fn measure(server: &LoadServer, questions: u64, bounds: &super::Bounds) -> Result<String> {
    let mut connection = Connection::open(server.address())?;
    let mut run = String::new();
    for n in 0..questions {
        if n % 10 == 0 {
            run = server.open_run_over(&mut connection)?;
        }
        let mut ask = server.ask(&run);
        if n % 2 == 0 {
            // Half of them wait, the others go on by themselves.
            ask.as_object_mut()
                .context("an ask")?
                .retain(|name, _| name != "timeout_seconds" && name != "on_no_answer");
        }
        connection.post("/v1/events", &server.harness.token, &ask.to_string())?.created()?;
    }
    let cookie = sign_in(server, &mut connection)?;
    let list = fetch(&mut connection, &cookie)?;
    let shown = list.matches("<article").count() as u64;
    ensure!(shown == questions.min(200), "the page shows {shown} questions of {questions}");
    let bytes = list.len();
    let one = super::Bounds { time: bounds.time, asks: bounds.asks.min(1000) };
    let (mut seen, _) = stage(1, &one, |_, go_on| {
        let mut connection = Connection::open(server.address())?;
        // The first finds nothing ready: neither the connection nor the statements.
        fetch(&mut connection, &cookie)?;
        let mut times: Vec<Duration> = Vec::new();
        while go_on() {
            let began = Instant::now();
            fetch(&mut connection, &cookie)?;
            times.push(began.elapsed());
        }
        Ok(super::Seen { whole: times, ..super::Seen::default() })
    })?;
    let pages = seen.whole.len();
    let (p50, p99) = percentiles(&mut seen.whole);
    Ok(format!("| {questions} | {pages} | {p50:.1} | {p99:.1} | {bytes} |"))
}

/// Signs the person in with the code that `init` printed; gives the session's cookie.
fn sign_in(server: &LoadServer, connection: &mut Connection) -> Result<String> {
    let door = connection.get_with("/sign-in", "")?;
    let before = door.cookies.first().context("a cookie of the sign-in")?.clone();
    let page = String::from_utf8(door.ok()?)?;
    let token =
        page.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).context("a form token")?;
    let form = format!("token={token}&code={}", server.code);
    let done = connection.submit("/sign-in", &before, &form)?;
    let session = done.cookies.iter().find(|cookie| **cookie != before && !cookie.ends_with('='));
    session.cloned().context("the sign-in gave no session")
}

fn fetch(connection: &mut Connection, cookie: &str) -> Result<String> {
    Ok(String::from_utf8(connection.get_with("/", cookie)?.ok()?)?)
}
