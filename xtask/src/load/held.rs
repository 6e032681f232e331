//! Many who listen and a steady trickle of questions: what a team does to a server all day.
//!
//! Each listener is a harness's stream on a run of its own. Questions come at a fixed rate, whatever the server does with them, each in
//! one of the runs; a person answers at once, and what counts is when the stream of that run has the answer. Every stream of a
//! workspace looks at every event of it, so the work grows with streams times rate.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

use super::server::LoadServer;
use super::wire::Connection;

/// Streams that connect at the same time.
const CONNECTING: usize = 64;
/// Connections that asks and answers are sent over.
const SENDERS: usize = 16;
/// How long answers may take to arrive once the last question was asked.
const REST: Duration = Duration::from_secs(30);

/// So many streams, and so many questions a second; written `1000:10`.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    streams: usize,
    rate: f64,
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (streams, rate) = text.split_once(':').ok_or("write it like 1000:10, streams and questions a second")?;
        let point = Self {
            streams: streams.parse().map_err(|_| format!("{streams} is no number of streams"))?,
            rate: rate.parse().map_err(|_| format!("{rate} is no number of questions a second"))?,
        };
        let fits = (1..=50_000).contains(&point.streams) && point.rate > 0.0 && point.rate <= 100_000.0;
        if fits { Ok(point) } else { Err("from 1 to 50000 streams, and up to 100000 questions a second".to_owned()) }
    }
}

/// The head of the table.
pub const HEAD: &str = "| streams | asks/s wanted | done | ask p50 ms | p99 ms | answer→stream p50 ms | p99 ms | CPU % of a core | RSS MiB |\n\
     | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";

/// Measures a point for so long.
///
/// # Errors
/// The server refuses something, or an answer does not arrive.
pub fn point(server: &LoadServer, point: Point, time: Duration) -> Result<String> {
    let Point { streams, rate } = point;
    let mut connection = Connection::open(server.address())?;
    let runs = (0..streams).map(|_| server.open_run_over(&mut connection)).collect::<Result<Vec<_>>>()?;
    let (tell, arrivals) = channel();
    let listeners = Listeners::start(server.address(), &server.harness.token, &runs, tell)?;

    let before = server.process()?;
    let began = Instant::now();
    let asked = ask_at(server, &runs, rate, time)?;
    let took = began.elapsed();
    let used = server.process()?.cpu - before.cpu;
    let mut back = arrived(&asked, &arrivals)?;
    // Before the streams end: what they hold is what is measured.
    let held = server.process()?;
    listeners.end()?;

    let mut whole: Vec<Duration> = asked.values().map(|round| round.ask).collect();
    let ((p50, p99), (back50, back99)) = (super::percentiles(&mut whole), super::percentiles(&mut back));
    let mut row = String::new();
    write!(
        row,
        "| {streams} | {rate} | {:.1} | {p50:.2} | {p99:.2} | {back50:.2} | {back99:.2} | {:.0} | {:.0} |",
        asked.len() as f64 / took.as_secs_f64(),
        100.0 * used.as_secs_f64() / took.as_secs_f64(),
        held.resident as f64 / f64::from(1 << 20),
    )?;
    Ok(row)
}

/// A question, and when its answer was sent.
struct Round {
    ask: Duration,
    answered: Instant,
}

/// Asks at this rate for so long, over a few connections, and answers each at once.
fn ask_at(server: &LoadServer, runs: &[String], rate: f64, time: Duration) -> Result<HashMap<String, Round>> {
    let began = Instant::now();
    let turn = Mutex::new(0_u32);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| {
                let turn = &turn;
                scope.spawn(move || -> Result<Vec<(String, Round)>> {
                    let mut harness = Connection::open(server.address())?;
                    let mut person = Connection::open(server.address())?;
                    let mut rounds = Vec::new();
                    loop {
                        let nth = {
                            let mut turn = turn.lock().map_err(|_| anyhow!("a sender panicked"))?;
                            *turn += 1;
                            *turn - 1
                        };
                        let due = Duration::from_secs_f64(f64::from(nth) / rate);
                        if due >= time {
                            return Ok(rounds);
                        }
                        // A load that is to be steady waits for its turn: that is what this clock is for.
                        std::thread::sleep(due.saturating_sub(began.elapsed()));
                        let ask = server.ask(&runs[nth as usize % runs.len()]);
                        let sent = Instant::now();
                        harness.post("/v1/events", &server.harness.token, &ask.to_string())?.created()?;
                        let (took, answer) = (sent.elapsed(), server.answer(&ask));
                        let answered = Instant::now();
                        person.post("/v1/events", &server.person.token, &answer.to_string())?.created()?;
                        let ask_id = ask["ask_id"].as_str().context("an ask_id")?.to_owned();
                        rounds.push((ask_id, Round { ask: took, answered }));
                    }
                })
            })
            .collect();
        let mut asked = HashMap::new();
        for sender in senders {
            asked.extend(sender.join().map_err(|_| anyhow!("a sender panicked"))??);
        }
        Ok(asked)
    })
}

/// From each answer to the stream that has it.
fn arrived(asked: &HashMap<String, Round>, arrivals: &Receiver<(String, Instant)>) -> Result<Vec<Duration>> {
    let mut back = Vec::with_capacity(asked.len());
    while back.len() < asked.len() {
        let (ask_id, at) = arrivals.recv_timeout(REST).map_err(|_| {
            anyhow!("{} of {} answers did not arrive within {REST:?}", asked.len() - back.len(), asked.len())
        })?;
        if let Some(round) = asked.get(&ask_id) {
            back.push(at.saturating_duration_since(round.answered));
        }
    }
    Ok(back)
}

/// Streams on a thread of their own.
struct Listeners {
    stop: oneshot::Sender<()>,
    thread: std::thread::JoinHandle<Result<()>>,
}

impl Listeners {
    /// Opens a stream for each run, and waits until all are open.
    fn start(address: SocketAddr, token: &str, runs: &[String], tell: Sender<(String, Instant)>) -> Result<Self> {
        let (stop, mut stopped) = oneshot::channel();
        let (opened, open) = channel();
        let (token, runs, wanted) = (token.to_owned(), runs.to_vec(), runs.len());
        let thread = std::thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
            runtime.block_on(async {
                let room = Arc::new(Semaphore::new(CONNECTING));
                let mut listeners = tokio::task::JoinSet::new();
                for run in runs {
                    let path = format!("/v1/events/stream?type=question.answered&run_id={run}");
                    listeners.spawn(listen(
                        address,
                        path,
                        token.clone(),
                        tell.clone(),
                        opened.clone(),
                        Arc::clone(&room),
                    ));
                }
                drop(opened);
                tokio::select! {
                    // A stream ends when the server does; before that it is a fault.
                    Some(ended) = listeners.join_next() => ended?,
                    _ = &mut stopped => Ok(()),
                }
            })
        });
        let count = opened_of(&open)?;
        if count < wanted {
            // One of them has failed, and the thread says why.
            drop(stop);
            thread.join().map_err(|_| anyhow!("the streams' thread panicked"))??;
            anyhow::bail!("only {count} of {wanted} streams were opened");
        }
        Ok(Self { stop, thread })
    }

    fn end(self) -> Result<()> {
        let _ = self.stop.send(());
        self.thread.join().map_err(|_| anyhow!("the streams' thread panicked"))?
    }
}

/// Waits until every stream has said that it is open or has failed, and counts those that are.
fn opened_of(open: &Receiver<()>) -> Result<usize> {
    let mut count = 0;
    loop {
        match open.recv_timeout(REST) {
            Ok(()) => count += 1,
            Err(RecvTimeoutError::Disconnected) => return Ok(count),
            Err(error) => return Err(error).context(format!("after {count} streams no other was opened")),
        }
    }
}

/// Opens a stream, says so, and tells of each answer.
async fn listen(
    address: SocketAddr,
    path: String,
    token: String,
    tell: Sender<(String, Instant)>,
    opened: Sender<()>,
    room: Arc<Semaphore>,
) -> Result<()> {
    let place = room.acquire_owned().await?;
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    ensure!(line.starts_with("HTTP/1.1 200 "), "the stream is refused: {line}");
    opened.send(())?;
    drop((place, opened));
    loop {
        line.clear();
        ensure!(stream.read_line(&mut line).await? > 0, "a stream ended");
        if !line.starts_with("data:") {
            continue;
        }
        let at = Instant::now();
        let ask_id = line.split("\"ask_id\":\"").nth(1).and_then(|rest| rest.split('"').next()).context("an ask_id")?;
        if tell.send((ask_id.to_owned(), at)).is_err() {
            return Ok(());
        }
    }
}
