//! `cargo run --release -p xtask -- load`: how fast Chips is on this machine, beside what its disk alone can do.
//!
//! The real server runs as a process of its own on a data folder under `target/`; the clients are threads of this one and
//! speak HTTP over the loopback address. Beside each figure stands the same number of bare groups of a write and an
//! fdatasync, with the same bytes, on the same file system, in the same run: heights differ from disk to disk, ratios say
//! what Chips adds. Every stage is bounded in count and in time.

// What is measured here is how long things take on this machine: that is what this clock is for.
#![allow(clippy::disallowed_methods)]

mod bare;
mod held;
mod nodes;
mod page;
mod people;
mod server;
mod wire;

use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use server::{LoadServer, Place};
use wire::{Connection, Events};

/// Bounds of a quick load.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many clients at once, one after the other
    #[arg(long, value_delimiter = ',', default_value = "1,8,64", value_name = "N,…")]
    clients: Vec<usize>,
    /// The `chips` to load; built as this program was, where it is left out
    #[arg(long, value_name = "PATH")]
    chips: Option<std::path::PathBuf>,
    /// Measure many who listen instead: streams and questions a second, one such point after the other, like 1000:10
    #[arg(long, value_delimiter = ',', value_name = "STREAMS:RATE,…")]
    held: Vec<held::Point>,
    /// Compare instead: a folder, one server on PostgreSQL, and this many on it, in the same run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    nodes: Option<u8>,
    /// The PostgreSQL to compare with; the tests' own, where it is left out
    #[arg(long, value_name = "URL", requires = "nodes")]
    database: Option<String>,
    /// Measure a workspace of so many people instead, which takes some minutes to make where there are 100000
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000), conflicts_with_all = ["held", "nodes"], value_name = "N")]
    people: Option<u64>,
    /// Measure the inbox of a person with this many open questions instead
    #[arg(long, value_name = "QUESTIONS", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    page: Option<u64>,
    /// The longest time of one stage, in seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// The most asks of one stage
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    asks: u64,
}

/// Runs it and prints the tables.
///
/// # Errors
/// The server can't be built or started, or refuses what it is sent.
pub fn run(args: &Args) -> Result<()> {
    let bounds = Bounds { time: Duration::from_secs(args.seconds), asks: args.asks };
    let chips = server::chips(args.chips.as_deref())?;
    if let Some(servers) = args.nodes {
        return nodes::compare(&chips, args, servers.into(), &bounds);
    }
    let mut server = LoadServer::start(&chips, Place::Folder)?;
    if let Some(people) = args.people {
        let people = usize::try_from(people)?;
        let cookie = server.fill(people)?;
        return people::measure(&mut server, people, &cookie);
    }
    if !args.held.is_empty() {
        return listened_to(server, args, &bounds);
    }
    if let Some(questions) = args.page {
        println!("The inbox of one person, whole and over HTTP, one request after the other:\n");
        println!("| open questions | pages | p50 ms | p99 ms | bytes |");
        println!("| ---: | ---: | ---: | ---: | ---: |");
        println!("{}", page::measure(&server, questions, &bounds)?);
        return Ok(());
    }
    println!("Durable asks, over HTTP, each acknowledged after it was on the disk:\n");
    println!("| clients | asks | asks/s | p50 ms | p99 ms | asks a commit | bare asks/s | ratio |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for &clients in &args.clients {
        println!("{}", durable_asks(&server, clients, &bounds)?);
    }
    println!("\nOne question, from its ask to the harness that has the answer; two commits each:\n");
    println!(
        "| clients | waits by | rounds | rounds/s | round p50 ms | p99 ms | answer→harness p50 ms | p99 ms | bare p50 ms | p99 ms | ratio p50 | p99 |"
    );
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for &clients in &args.clients {
        for way in [Way::LongPoll, Way::Stream] {
            println!("{}", rounds(&server, clients, way, 0, &bounds)?);
        }
    }
    println!("\n{BARE}");
    afterwards(server)
}

/// What the columns beside Chips' own are.
const BARE: &str = "Bare: as many writes with an fdatasync each as Chips made commits, one after the other, with the bytes of the \
     events in them; for a round two of them, with the bytes of an ask and of an answer for each client that shares a commit. \
     Ratio: Chips by bare.";

/// Many who listen, and a steady trickle of questions.
fn listened_to(server: LoadServer, args: &Args, bounds: &Bounds) -> Result<()> {
    println!(
        "Streams of harnesses, each on a run of its own, and questions that are answered at once:\n\n{}",
        held::HEAD
    );
    for &point in &args.held {
        println!("{}", held::point(&server, point, bounds.time)?);
    }
    println!("\nCPU: of the server alone, while the questions came; RSS: with all streams open.");
    afterwards(server)
}

/// What a server costs that has seen all this.
fn afterwards(mut server: LoadServer) -> Result<()> {
    let asks = server.figure("chips_asks_opened_total")?;
    let closed = asks - server.figure("chips_asks_open")?;
    let resident = server.process()?.resident >> 20;
    let (backup, copy) = server.backup()?;
    let restart = server.restart()?;
    println!(
        "\nAfter {asks:.0} questions and {closed:.0} answers: {:.0} bytes an event in a copy of {} MiB, which took {:.1} s; RSS {resident} \
         MiB, and {} MiB after a kill and a new start, which listened after {:.1} s.",
        copy as f64 / (asks + closed),
        copy >> 20,
        backup.as_secs_f64(),
        server.process()?.resident >> 20,
        restart.as_secs_f64(),
    );
    Ok(())
}

struct Bounds {
    time: Duration,
    asks: u64,
}

/// What the clients of a stage saw.
#[derive(Default)]
struct Seen {
    /// The time of each ask or round.
    whole: Vec<Duration>,
    /// From each answer to the harness that has it.
    back: Vec<Duration>,
    /// Bytes of the events as stored.
    bytes: u64,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.whole.extend(other.whole);
        self.back.extend(other.back);
        self.bytes += other.bytes;
    }
}

/// Runs this many clients at the same time until the bounds are reached; gives what they saw and how long it took.
fn stage(
    clients: usize,
    bounds: &Bounds,
    client: impl Fn(usize, &mut dyn FnMut() -> bool) -> Result<Seen> + Sync,
) -> Result<(Seen, Duration)> {
    let start = Barrier::new(clients + 1);
    let each = bounds.asks.div_ceil(clients as u64);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| {
                let (start, client) = (&start, &client);
                scope.spawn(move || {
                    let mut began = None;
                    let mut done = 0;
                    let seen = client(number, &mut || {
                        let began = *began.get_or_insert_with(|| {
                            start.wait();
                            Instant::now()
                        });
                        done += 1;
                        done <= each && began.elapsed() < bounds.time
                    });
                    if began.is_none() {
                        // It failed before it was ready; the others must not wait for it.
                        start.wait();
                    }
                    seen
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        let mut seen = Seen::default();
        let outcomes: Vec<_> = threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        let took = began.elapsed();
        for outcome in outcomes {
            seen.add(outcome.map_err(|_| anyhow::anyhow!("a client panicked"))??);
        }
        Ok((seen, took))
    })
}

fn durable_asks(server: &LoadServer, clients: usize, bounds: &Bounds) -> Result<String> {
    let before = server.commits()?;
    let (mut seen, took) = stage(clients, bounds, |number, go_on| {
        let run = server.open_run()?;
        let mut connection = Connection::open(server.address_of(number))?;
        let mut seen = Seen::default();
        while go_on() {
            let ask = server.ask(&run);
            let began = Instant::now();
            let stored = connection.post("/v1/events", &server.harness.token, &ask.to_string())?.created()?;
            seen.whole.push(began.elapsed());
            seen.bytes += stored.len() as u64;
        }
        Ok(seen)
    })?;
    let after = server.commits()?;
    let asks = seen.whole.len();
    let commits = (after.commits - before.commits).max(1);
    let bare = bare::groups(&server.folder(), commits, seen.bytes / commits)?;
    let (rate, bare_rate) = (asks as f64 / took.as_secs_f64(), asks as f64 / bare.took.as_secs_f64());
    let (p50, p99) = percentiles(&mut seen.whole);
    Ok(format!(
        "| {clients} | {asks} | {rate:.0} | {p50:.2} | {p99:.2} | {:.1} | {bare_rate:.0} | {:.2} |",
        asks as f64 / commits as f64,
        rate / bare_rate
    ))
}

/// How a harness hears of the answer.
#[derive(Debug, Clone, Copy)]
enum Way {
    LongPoll,
    Stream,
}

/// Rounds, each answered so many servers further than where it was asked and is waited for.
fn rounds(server: &LoadServer, clients: usize, way: Way, further: usize, bounds: &Bounds) -> Result<String> {
    let before = server.commits()?;
    let (mut seen, took) = stage(clients, bounds, |number, go_on| {
        let run = server.open_run()?;
        let mut harness = Connection::open(server.address_of(number))?;
        let mut person = Connection::open(server.address_of(number + further))?;
        let mut events = match way {
            Way::LongPoll => None,
            Way::Stream => {
                let path = format!("/v1/events/stream?type=question.answered&run_id={run}");
                Some(Events::open(server.address_of(number), &path, &server.harness.token)?)
            }
        };
        let mut seen = Seen::default();
        while go_on() {
            let ask = server.ask(&run);
            let began = Instant::now();
            let stored = harness.post("/v1/events", &server.harness.token, &ask.to_string())?.created()?;
            let ask_id = ask["ask_id"].as_str().context("an ask_id")?;
            if events.is_none() {
                harness.send_get(&format!("/v1/asks/{ask_id}?wait=60"), &server.harness.token)?;
            }
            let answer = server.answer(&ask);
            let tapped = Instant::now();
            person.send_post("/v1/events", &server.person.token, &answer.to_string())?;
            match &mut events {
                Some(events) => while events.next_ask_id()? != ask_id {},
                None => {
                    let closed: Value = serde_json::from_slice(&harness.read()?.ok()?)?;
                    anyhow::ensure!(closed["state"] == "answered", "the wait ended without an answer: {closed}");
                }
            }
            seen.back.push(tapped.elapsed());
            seen.whole.push(began.elapsed());
            seen.bytes += (stored.len() + person.read()?.created()?.len()) as u64;
        }
        Ok(seen)
    })?;
    let after = server.commits()?;
    let count = seen.whole.len();
    let commits = (after.commits - before.commits).max(1);
    let mut bare = bare::groups(&server.folder(), commits, seen.bytes / commits)?;
    let (p50, p99) = percentiles(&mut seen.whole);
    let (back50, back99) = percentiles(&mut seen.back);
    let (bare50, bare99) = percentiles(&mut bare.pairs);
    let name = match way {
        Way::LongPoll => "long poll",
        Way::Stream => "stream",
    };
    Ok(format!(
        "| {clients} | {name} | {count} | {:.0} | {p50:.2} | {p99:.2} | {back50:.2} | {back99:.2} | {bare50:.2} | {bare99:.2} | {:.1} | {:.1} |",
        count as f64 / took.as_secs_f64(),
        p50 / bare50,
        p99 / bare99
    ))
}

/// The median and the 99th percentile, in milliseconds.
fn percentiles(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0);
    (at(50), at(99))
}

/// The questions of an ask of usual size: about 900 bytes with its envelope.
fn questions() -> Value {
    json!([{
        "question_id": "delivery",
        "prompt": "Northwind can ship on the 19th or the 26th. Which should I confirm?",
        "options": [
            {"value": "19", "label": "19 September", "description": "The date on the order."},
            {"value": "26", "label": "26 September", "description": "A week later, but a full pallet."}
        ],
        "multi_select": false,
        "allow_free_text": true,
        "default_value": "19"
    }])
}
