//! The real binary: a data folder, a server on it, commands beside it. Every process is ended by its own id.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::wait::{LIMIT, until};

/// `chips`, with nothing of the caller's environment or configuration.
pub fn chips(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chips"));
    clean(&mut command, home);
    command
}

/// Gives a command an environment of its own.
pub fn clean(command: &mut Command, home: &Path) {
    command.env_clear().env("HOME", home).env("LANG", "C.UTF-8").stdin(Stdio::null());
    for kept in ["PATH", "TMPDIR", "LLVM_PROFILE_FILE"] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
}

/// A folder for everything that one test makes: `data` and a home without configuration.
pub struct Folder {
    dir: TempDir,
    /// What `chips init --json` printed.
    pub made: Value,
}

impl Folder {
    /// A folder in which `chips init` was run.
    pub fn new() -> Self {
        let mut folder = Self::empty();
        folder.made = folder.admin(&["init"]);
        folder
    }

    /// A folder with nothing in it.
    pub fn empty() -> Self {
        let dir = tempfile::Builder::new().prefix("chips-test-").tempdir().expect("a temporary folder");
        Self { dir, made: Value::Null }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn data(&self) -> std::path::PathBuf {
        self.path().join("data")
    }

    pub fn chips(&self) -> Command {
        chips(self.path())
    }

    /// Runs an administrative command on the data folder.
    pub fn run_admin(&self, args: &[impl AsRef<OsStr>]) -> Output {
        let mut command = self.chips();
        command.args(args).arg("--data").arg(self.data()).arg("--json");
        output(command)
    }

    /// What an administrative command prints with `--json`.
    ///
    /// # Panics
    /// If it fails.
    #[track_caller]
    pub fn admin(&self, args: &[&str]) -> Value {
        let output = self.run_admin(args);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "chips {args:?}: {}\n{err}", output.status);
        if out.trim().is_empty() {
            return Value::Null;
        }
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("chips {args:?} prints no JSON ({error}): {out}"))
    }

    /// A text that `chips init --json` printed, by its JSON pointer.
    pub fn text(&self, pointer: &str) -> String {
        text(&self.made, pointer)
    }
}

/// The text at a JSON pointer.
///
/// # Panics
/// If there is none.
#[track_caller]
pub fn text(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {pointer} in {value}")).to_owned()
}

/// Runs a command to its end, within the limit.
///
/// # Panics
/// If it can't be run or does not end.
#[track_caller]
pub fn output(command: Command) -> Output {
    let process = Process::spawn(command);
    process.finish(LIMIT)
}

/// The lines that a process prints, as they come.
#[derive(Default)]
struct Lines {
    lines: Mutex<Vec<String>>,
    more: Condvar,
}

impl Lines {
    fn collect(self: &Arc<Self>, from: impl Read + Send + 'static) -> std::thread::JoinHandle<()> {
        let lines = Arc::clone(self);
        std::thread::spawn(move || {
            let mut reader = BufReader::new(from);
            let mut line = Vec::new();
            while let Ok(1..) = reader.read_until(b'\n', &mut line) {
                lines.lines.lock().expect("the lines").push(String::from_utf8_lossy(&line).into_owned());
                lines.more.notify_all();
                line.clear();
            }
            lines.more.notify_all();
        })
    }

    fn all(&self) -> String {
        self.lines.lock().expect("the lines").concat()
    }
}

/// A running process. Killed when dropped.
pub struct Process {
    child: Child,
    out: Arc<Lines>,
    err: Arc<Lines>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

impl Process {
    /// # Panics
    /// If it can't be started.
    #[track_caller]
    pub fn spawn(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} can't be started: {error}"));
        let (out, err) = (Arc::new(Lines::default()), Arc::new(Lines::default()));
        let mut readers = Vec::new();
        readers.extend(child.stdout.take().map(|stdout| out.collect(stdout)));
        readers.extend(child.stderr.take().map(|stderr| err.collect(stderr)));
        Self { child, out, err, readers }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn stdout(&self) -> String {
        self.out.all()
    }

    pub fn stderr(&self) -> String {
        self.err.all()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the process can be signalled");
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the process can be waited for")
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end within the limit.
    #[track_caller]
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        until(limit, "the process to end", || self.ended())
    }

    /// Waits for its end and takes what it printed.
    #[track_caller]
    pub fn finish(mut self, limit: Duration) -> Output {
        let status = self.wait(limit);
        for reader in self.readers.drain(..) {
            reader.join().expect("what it printed");
        }
        Output { status, stdout: self.stdout().into_bytes(), stderr: self.stderr().into_bytes() }
    }

    /// Waits until a line of either output says something.
    ///
    /// # Panics
    /// If it ends, or the limit passes, before.
    #[track_caller]
    pub fn says<T>(&mut self, what: &str, heard: impl Fn(&str) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            let ended = self.ended();
            let said = [self.stdout(), self.stderr()];
            if let Some(found) = said.iter().flat_map(|text| text.lines()).find_map(&heard) {
                return found;
            }
            let [out, err] = said;
            assert!(ended.is_none(), "it ended ({ended:?}) before it said {what}:\n{out}\n{err}");
            assert!(began.elapsed() < LIMIT, "it never said {what}:\n{out}\n{err}");
            let lines = self.out.lines.lock().expect("the lines");
            drop(self.out.more.wait_timeout(lines, Duration::from_millis(10)));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server on a data folder.
pub struct Serve {
    pub process: Process,
    pub addr: SocketAddr,
}

impl Serve {
    /// Serves a folder on a free port of the loopback address.
    pub fn start(folder: &Folder) -> Self {
        Self::start_on(folder, "127.0.0.1:0")
    }

    /// Serves a folder on this address.
    pub fn start_on(folder: &Folder, listen: &str) -> Self {
        Self::spawn(Self::command(folder, listen))
    }

    pub fn command(folder: &Folder, listen: &str) -> Command {
        let mut command = folder.chips();
        command.arg("serve").arg("--data").arg(folder.data()).args(["--listen", listen]);
        command
    }

    /// Runs a command that serves, and waits until it can.
    pub fn spawn(command: Command) -> Self {
        Self::of(Process::spawn(command))
    }

    /// A process that is to serve, once it can.
    pub fn of(mut process: Process) -> Self {
        let addr = process.says("where it listens", |line| {
            let (_, url) = line.split_once("listening on http://")?;
            url.split_whitespace().next()?.trim_end_matches('/').parse().ok()
        });
        Self { process, addr }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Everything that it has printed: its log.
    pub fn log(&self) -> String {
        self.process.stdout() + &self.process.stderr()
    }

    /// Ends it as an operator does (SIGTERM); it must take that well.
    #[track_caller]
    pub fn stop(mut self) {
        self.process.signal(Signal::TERM);
        let status = self.process.wait(LIMIT);
        assert!(status.success(), "the server ended with {status}:\n{}", self.log());
    }

    /// Ends it as a power cut does (SIGKILL).
    pub fn kill(mut self) {
        self.process.signal(Signal::KILL);
        self.process.wait(LIMIT);
    }
}
