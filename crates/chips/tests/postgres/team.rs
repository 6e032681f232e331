//! A workspace in a database, the servers on it, and what a log has to be after whatever happened to them.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::support::events::chosen;
use crate::support::process::output;
use crate::support::scene::{Api, api, seq};
use crate::support::stream::Stream;
use crate::support::wait::pass;
use crate::support::{Conn, Folder, LIMIT, Request, Response, Serve, until};

/// A workspace in a database, with a person and a harness that may ask without a limit.
pub struct Team {
    folder: Folder,
    url: String,
    person: Api,
    harness: Api,
}

impl Team {
    /// Makes the workspace in the database at this URL.
    pub fn new(url: &str) -> Self {
        let mut folder = Folder::empty();
        folder.made = admin(&folder, url, &["init"]);
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let workspace = folder.text("/workspace_id");
        let person = api(&folder.made, "person", nowhere, &workspace);
        let harness = api(&folder.made, "harness", nowhere, &workspace);
        admin(&folder, url, &["harness", "budget", &harness.id, "--open", "none", "--hour", "none"]);
        Self { folder, url: url.to_owned(), person, harness }
    }

    /// A server on a free port, on the database at another URL for the same one.
    pub fn serve_by(&self, url: &str) -> Serve {
        Serve::spawn(command(&self.folder, url, &["serve", "--listen", "127.0.0.1:0"]))
    }

    /// What starts a server on this address.
    pub fn serving(&self, listen: &str) -> Command {
        command(&self.folder, &self.url, &["serve", "--listen", listen])
    }

    /// Where commands find nothing of whoever runs the tests.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// A server on a free port.
    pub fn serve(&self) -> Serve {
        self.serve_by(&self.url)
    }

    /// The harness, at this server.
    pub fn harness(&self, serve: &Serve) -> Api {
        Api { addr: serve.addr, ..self.harness.clone() }
    }

    /// The person, at this server.
    pub fn person(&self, serve: &Serve) -> Api {
        Api { addr: serve.addr, ..self.person.clone() }
    }
}

/// Says that something is over, however it ends: who panics must not leave others behind who wait for it.
pub struct Ended<'a>(pub &'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A client's connection to whichever of several places answers.
pub struct Line<'a> {
    places: &'a [SocketAddr],
    at: usize,
    /// The statuses that say to send the same again.
    passing: &'a [u16],
    conn: Option<Conn>,
}

impl<'a> Line<'a> {
    /// Begins at one of these places.
    pub fn to(places: &'a [SocketAddr], first: usize, passing: &'a [u16]) -> Self {
        Self { places, at: first, passing, conn: None }
    }

    /// Sends a request until there is a reply to go by, each time as it is.
    pub fn send(&mut self, request: &Request) -> Response {
        until(LIMIT, "a reply to go by", || {
            let conn = self.conn.take().or_else(|| Conn::open(self.places[self.at % self.places.len()]).ok());
            let reply = conn.and_then(|mut conn| Some((conn.send(request).ok()?, conn)));
            match reply {
                Some((reply, conn)) if !self.passing.contains(&reply.status) => {
                    self.conn = Some(conn);
                    return Some(reply);
                }
                Some((reply, _)) if reply.status == 503 => assert!(reply.header("retry-after").is_some()),
                _ => {}
            }
            self.at += 1;
            None
        })
    }
}

/// Follows the log from its beginning at whichever of these places answers, as a client that resumes, until it is over; each `seq` is
/// noted as it comes.
pub fn follow(places: &[SocketAddr], token: &str, passing: &[u16], seen: &Mutex<Vec<u64>>, over: &AtomicBool) {
    let mut places = places.iter().cycle();
    while !over.load(Ordering::SeqCst) {
        let after = seen.lock().unwrap().last().copied().unwrap_or_default();
        let Some(mut conn) = places.next().and_then(|place| Conn::open(*place).ok()) else {
            pass(Duration::from_millis(20));
            continue;
        };
        let addr = conn.socket().peer_addr().unwrap();
        let sent = Stream::send(&mut conn, addr, token, &format!("?after={after}"), None);
        let mut stream = match sent.and_then(|()| Stream::answered(conn)) {
            Ok(Ok(stream)) => stream,
            Ok(Err(status)) => {
                assert!(passing.contains(&status), "the stream is refused with {status}");
                continue;
            }
            Err(_) => continue,
        };
        while !over.load(Ordering::SeqCst)
            && let Ok(message) = stream.next(Duration::from_millis(200))
        {
            seen.lock().unwrap().extend(message.map(|message| message.seq()));
        }
    }
}

/// `chips` on a database.
pub fn command(folder: &Folder, url: &str, args: &[&str]) -> Command {
    let mut command = folder.chips();
    command.env("CHIPS_DATABASE", url).args(args);
    command
}

fn admin(folder: &Folder, url: &str, args: &[&str]) -> Value {
    let told = output(command(folder, url, &[args, &["--json"]].concat()));
    assert!(told.status.success(), "chips {args:?}: {}", String::from_utf8_lossy(&told.stderr));
    serde_json::from_slice(&told.stdout).unwrap_or_default()
}

/// What clients were told.
#[derive(Default)]
pub struct Told {
    /// Events that were acknowledged, as they came back.
    pub acknowledged: Mutex<Vec<Value>>,
    /// What was sent and got another answer than that, or none.
    pub unsure: Mutex<Vec<Value>>,
}

impl Told {
    /// How much was acknowledged.
    pub fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    /// Asks and answers in turn on one connection, for as long as `go_on` says so of what was acknowledged, and gives what
    /// ended it: the status of an answer, or nothing where the connection broke.
    pub fn write_while(&self, harness: &Api, run: &str, mut go_on: impl FnMut(&Value) -> bool) -> Option<u16> {
        let mut conn = Conn::open(harness.addr).ok()?;
        let mut open: Option<Value> = None;
        loop {
            let event = match open.take() {
                Some(ask) => harness.answer(&ask, &[chosen("fence", &["paint"])]),
                None => harness.plain_ask(run),
            };
            match conn.send(&harness.event_request(event.to_string())) {
                Ok(answer) if answer.status == 201 => {
                    let stored = answer.json();
                    let more = go_on(&stored);
                    if stored["type"] == "question.ask" {
                        open = Some(stored.clone());
                    }
                    self.acknowledged.lock().unwrap().push(stored);
                    if !more {
                        return Some(201);
                    }
                }
                // Somebody else was quicker.
                Ok(answer) if answer.status == 409 => {}
                other => {
                    self.unsure.lock().unwrap().push(event);
                    return other.ok().map(|answer| answer.status);
                }
            }
        }
    }

    /// Asks and answers in turn, wherever the line finds somebody who takes it, for as long as `go_on` says so.
    pub fn keep_writing(&self, line: &mut Line<'_>, harness: &Api, run: &str, go_on: impl Fn() -> bool) {
        let mut open: Option<Value> = None;
        while go_on() {
            let event = match open.take() {
                Some(ask) => harness.answer(&ask, &[chosen("fence", &["paint"])]),
                None => harness.plain_ask(run),
            };
            let answer = line.send(&harness.event_request(event.to_string()));
            assert!(matches!(answer.status, 200 | 201), "{}: {}", answer.status, answer.text());
            let stored = answer.json();
            if stored["type"] == "question.ask" {
                open = Some(stored.clone());
            }
            self.acknowledged.lock().unwrap().push(stored);
        }
    }

    /// Sends again what nobody knew the outcome of: a replay where it was written, and written now where it was not.
    pub fn send_again(&self, harness: &Api) {
        for event in self.unsure.lock().unwrap().drain(..) {
            let again = harness.send(&event);
            // An answer comes too late where somebody else closed the ask meanwhile.
            if again.status == 409 && event["type"] == "question.answered" {
                continue;
            }
            assert!(matches!(again.status, 200 | 201), "{}", again.text());
            assert_eq!(again.replayed(), again.status == 200);
            self.acknowledged.lock().unwrap().push(again.json());
        }
    }

    /// Holds the log against what was acknowledged: all of it is there as it was told, at most once, without a gap, and each
    /// ask is closed by at most one event.
    pub fn hold_against(&self, harness: &Api) {
        let last = self.acknowledged.lock().unwrap().iter().map(seq).max().unwrap_or_default();
        until(LIMIT, "what another server acknowledged to come here", || (harness.head() >= last).then_some(()));
        let log = harness.log();
        let by_seq: HashMap<u64, &Value> = log.iter().map(|event| (seq(event), event)).collect();
        let head = harness.head();
        assert!((1..=head).all(|seq| by_seq.contains_key(&seq)), "no gap up to {head}");
        assert_eq!(log.len() as u64, head);
        for event in self.acknowledged.lock().unwrap().iter() {
            assert_eq!(by_seq.get(&seq(event)), Some(&event), "what was acknowledged is there");
        }
        let ids: HashSet<&str> = log.iter().map(|event| event["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), log.len(), "no event stands twice");
        let closed: Vec<&str> = log
            .iter()
            .filter(|event| event["type"] == "question.answered")
            .map(|event| event["ask_id"].as_str().unwrap())
            .collect();
        let once: HashSet<&&str> = closed.iter().collect();
        assert_eq!(once.len(), closed.len(), "one event closes an ask");
    }
}
