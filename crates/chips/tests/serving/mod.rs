//! Runs the real binary: commands to their end, and servers that listen on a free port and are ended by their own
//! process id.
#![allow(clippy::unwrap_used, dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// How long a condition is waited for before the test fails.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A machine's worth of folders for one test: a home, and in it the data folder.
pub struct Machine {
    home: TempDir,
}

impl Machine {
    pub fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The data folder; it does not exist yet.
    pub fn data(&self) -> PathBuf {
        self.home().join("data")
    }

    /// A command with this machine's home and data folder, and nothing of the real one's configuration.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chips"));
        self.clean(&mut command);
        command.args(args);
        command
    }

    /// Gives a command this machine's environment.
    pub fn clean(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if ["CHIPS_", "XDG_"].iter().any(|prefix| name.starts_with(prefix))
                || ["RUST_LOG", "NO_COLOR"].contains(&&*name)
            {
                command.env_remove(&*name);
            }
        }
        command.env("HOME", self.home()).env("CHIPS_DATA", self.data()).env("CHIPS_LISTEN", "127.0.0.1:0");
        command.env("TERM", "xterm-256color").stdin(Stdio::null());
    }

    /// Runs a command to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that succeeds, and gives what it prints.
    pub fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?} ended with {}: {error}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that succeeds with `--json`, and gives the one document that it prints.
    pub fn json(&self, args: &[&str]) -> Value {
        let text = self.text(&[args, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?} printed {text:?}: {error}"))
    }

    /// Runs a command that fails with this code, and gives what it says on standard error.
    pub fn refused(&self, args: &[&str], code: i32) -> String {
        let output = self.run(args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?} said {error:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{args:?} failed and printed a result");
        error
    }

    /// Starts a server on a free port, and waits until it can serve.
    pub fn serve(&self, args: &[&str]) -> Serving {
        let mut command = self.command(&[&["serve"], args].concat());
        let serving = Serving::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        serving.wait_until_it_listens()
    }
}

/// What a process has printed so far, and a way to wait for more.
#[derive(Clone, Default)]
pub struct Printed(Arc<(Mutex<(String, bool)>, Condvar)>);

impl Printed {
    /// Reads to the end on a thread of its own, so that the process is never held up.
    pub fn read(source: impl Read + Send + 'static) -> Self {
        let printed = Self::default();
        let kept = printed.clone();
        std::thread::spawn(move || {
            let mut source = BufReader::new(source);
            loop {
                let read = match source.fill_buf() {
                    // A terminal whose other side is closed says EIO.
                    Ok([]) | Err(_) => break,
                    Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                };
                let length = source.buffer().len();
                source.consume(length);
                kept.0.0.lock().unwrap().0.push_str(&read);
                kept.0.1.notify_all();
            }
            kept.0.0.lock().unwrap().1 = true;
            kept.0.1.notify_all();
        });
        printed
    }

    /// All of it so far.
    pub fn text(&self) -> String {
        self.0.0.lock().unwrap().0.clone()
    }

    /// Waits until something can be found in it.
    pub fn wait_for<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let (state, changed) = &*self.0;
        let mut found = None;
        let (guard, _) = changed
            .wait_timeout_while(state.lock().unwrap(), LIMIT, |(text, ended)| {
                found = find(text);
                found.is_none() && !*ended
            })
            .unwrap();
        let text = guard.0.clone();
        drop(guard);
        found.or_else(|| find(&text)).unwrap_or_else(|| panic!("{what} was not printed, but:\n{text}"))
    }

    /// Waits until nothing more can come, and gives all of it.
    pub fn to_end(&self) -> String {
        let (state, changed) = &*self.0;
        let (guard, late) = changed.wait_timeout_while(state.lock().unwrap(), LIMIT, |(_, ended)| !*ended).unwrap();
        assert!(!late.timed_out(), "it is still printing:\n{}", guard.0);
        guard.0.clone()
    }
}

/// A server that runs. It is ended when this is dropped.
pub struct Serving {
    pid: Pid,
    ended: mpsc::Receiver<ExitStatus>,
    status: Option<ExitStatus>,
    address: Option<SocketAddr>,
    pub out: Printed,
    pub err: Printed,
}

impl Serving {
    /// Starts a process whose standard output and error are piped (or are a terminal, read by somebody else).
    pub fn spawn(command: &mut Command) -> Self {
        let mut child: Child = command.spawn().unwrap();
        let pid = Pid::from_child(&child);
        let out = child.stdout.take().map(Printed::read).unwrap_or_default();
        let err = child.stderr.take().map(Printed::read).unwrap_or_default();
        let (tell, ended) = mpsc::channel();
        std::thread::spawn(move || tell.send(child.wait().unwrap()));
        Self { pid, ended, status: None, address: None, out, err }
    }

    /// Waits for the line that says that it can serve.
    pub fn wait_until_it_listens(mut self) -> Self {
        let out = self.out.clone();
        self.address = Some(out.wait_for(&format!("the address (stderr: {})", self.err.text()), listening_on));
        self
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    pub fn address(&self) -> SocketAddr {
        self.address.unwrap()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Waits until the process has ended.
    pub fn wait(&mut self) -> ExitStatus {
        *self.status.get_or_insert_with(|| self.ended.recv_timeout(LIMIT).expect("the server ends"))
    }

    /// Ends the server as an operator does.
    pub fn terminate(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// One request over a connection of its own: the status, the head and the body.
    pub fn http(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
        let mut connection = TcpStream::connect(self.address()).unwrap();
        connection.set_read_timeout(Some(LIMIT)).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address());
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || method == "POST" {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        connection.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        let mut reply = String::new();
        connection.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_owned(), body.to_owned())
    }

    /// One call of the API with a token: the status and the JSON that came back.
    pub fn api(&self, token: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let credential = format!("Bearer {token}");
        let mut headers = vec![("Authorization", credential.as_str())];
        let body = body.map(Value::to_string).unwrap_or_default();
        if !body.is_empty() {
            headers.push(("Content-Type", "application/json"));
        }
        let (status, head, body) = self.http(method, path, &headers, &body);
        let json = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {head}\n\n{body}"));
        (status, json)
    }

    /// The status of `GET /v1/me` with this token.
    pub fn me(&self, token: &str) -> u16 {
        self.api(token, "GET", "/v1/me", None).0
    }

    /// Waits until there is an open ask that this person sees, and gives it.
    pub fn open_ask(&self, token: &str) -> Value {
        until("an open question", || {
            let (status, page) = self.api(token, "GET", "/v1/asks?state=open", None);
            assert_eq!(status, 200, "{page}");
            page["asks"].get(0).cloned()
        })
    }

    /// Answers the first question of an ask as a person.
    pub fn answer(&self, token: &str, ask: &Value, answer: Value) -> (u16, Value) {
        let (_, me) = self.api(token, "GET", "/v1/me", None);
        let event = serde_json::json!({
            "v": 1, "type": "question.answered", "id": ask["ask_id"].as_str().unwrap().replace("qst_", "evt_"),
            "workspace_id": me["workspace_id"], "run_id": ask["ask"]["run_id"], "ask_id": ask["ask_id"],
            "actor": { "kind": "person", "id": me["participant"]["id"] },
            "idempotency_key": format!("answer to {}", ask["ask_id"]), "answers": [answer],
        });
        self.api(token, "POST", "/v1/events", Some(&event))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // The process is ours until it was waited for: its number can't be somebody else's.
        if self.status.is_none() && self.ended.try_recv().is_err() {
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }
}

/// The address in the line that says that a server can serve.
pub fn listening_on(text: &str) -> Option<SocketAddr> {
    text.lines().find_map(|line| line.trim_end().strip_prefix("listening on http://")?.parse().ok())
}

/// Asks for a condition again and again until it holds, or the limit is up.
pub fn until<T>(what: &str, holds: impl FnMut() -> Option<T>) -> T {
    until_within(LIMIT, what, holds)
}

/// As [`until`], with a limit of its own.
pub fn until_within<T>(limit: Duration, what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let waiting = async {
            loop {
                ticks.tick().await;
                if let Some(found) = holds() {
                    return found;
                }
            }
        };
        tokio::time::timeout(limit, waiting).await.unwrap_or_else(|_| panic!("{what} did not come"))
    })
}

/// Whether a text holds a token or a sign-in link.
pub fn secrets_in(text: &str) -> bool {
    ["chips_hk_", "chips_uk_", "/sign-in/"].iter().any(|secret| text.contains(secret))
}

/// The terminal of a process: what it prints there, and its other side to give to the process.
pub struct Terminal {
    pub shown: Printed,
    process_side: std::fs::File,
}

impl Terminal {
    /// A terminal with this many columns.
    pub fn new(columns: u16) -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let our_side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&our_side).unwrap();
        unlockpt(&our_side).unwrap();
        let name = ptsname(&our_side, Vec::new()).unwrap().into_string().unwrap();
        let process_side = std::fs::File::options().read(true).write(true).open(name).unwrap();
        let size = rustix::termios::Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&process_side, size).unwrap();
        Self { shown: Printed::read(std::fs::File::from(our_side)), process_side }
    }

    /// Starts a process on it.
    pub fn spawn(self, command: &mut Command) -> (Serving, Printed) {
        let side = || Stdio::from(self.process_side.try_clone().unwrap());
        let mut serving = Serving::spawn(command.stdout(side()).stderr(side()));
        serving.out = self.shown.clone();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        (serving, self.shown)
    }
}
