//! The server under load, and who speaks to it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chips_protocol::{AskId, EventId};
use serde_json::{Value, json};

use super::nodes::{Postgres, Schema};
use super::wire::Connection;

/// A participant and its token.
pub struct Participant {
    kind: &'static str,
    id: String,
    pub token: String,
}

/// Where a log is kept.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// In a folder of its own.
    Folder,
    /// In a schema of its own of this database, which this many servers share.
    Database(&'a Postgres, usize),
}

/// `chips serve` on a log of its own, once or several times. Killed when dropped.
pub struct LoadServer {
    chips: PathBuf,
    nodes: Vec<Node>,
    folder: tempfile::TempDir,
    /// The schema's URL, where the log is in one.
    schema: Option<Schema>,
    workspace: String,
    pub harness: Participant,
    pub person: Participant,
    /// The short code that signs the person in, once.
    pub code: String,
    count: AtomicU64,
}

/// One process that serves. Killed when dropped.
struct Node {
    child: Child,
    address: SocketAddr,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the server's process has taken of the machine.
pub struct Process {
    /// Time on the processors, since its start.
    pub cpu: Duration,
    /// Memory that is its own or shared now, in bytes.
    pub resident: u64,
}

/// What the store has committed so far.
pub struct Commits {
    pub commits: u64,
}

impl LoadServer {
    /// Serves a new log with this `chips`.
    pub fn start(chips: &Path, place: Place<'_>) -> Result<Self> {
        // Not in the system's place for temporary files, which may be in memory.
        let target = chips.parent().context("the folder of the build")?;
        let folder = tempfile::Builder::new().prefix("load-").tempdir_in(target)?;
        let (schema, servers) = match place {
            Place::Folder => (None, 1),
            Place::Database(postgres, servers) => (Some(postgres.schema()?), servers),
        };
        let command = || on(chips, folder.path(), schema.as_ref());
        let run = |words: &[&str]| -> Result<Value> {
            let output = command().args(words).arg("--json").output()?;
            ensure!(output.status.success(), "chips {words:?}: {}", String::from_utf8_lossy(&output.stderr));
            Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
        };
        let made = run(&["init"])?;
        let text = |pointer: &str| -> Result<String> {
            Ok(made.pointer(pointer).and_then(Value::as_str).with_context(|| format!("no {pointer}"))?.to_owned())
        };
        let participant = |kind: &'static str| -> Result<Participant> {
            Ok(Participant { kind, id: text(&format!("/{kind}/id"))?, token: text(&format!("/{kind}/token"))? })
        };
        let (workspace, harness, person) = (text("/workspace_id")?, participant("harness")?, participant("person")?);
        let code = text("/sign_in_code")?;
        run(&["harness", "budget", &harness.id, "--open", "none", "--hour", "none"])?;

        let nodes = (0..servers).map(|_| serve(command())).collect::<Result<_>>()?;
        let chips = chips.to_owned();
        Ok(Self { chips, nodes, folder, schema, workspace, harness, person, code, count: AtomicU64::new(0) })
    }

    fn command(&self) -> Command {
        on(&self.chips, self.folder.path(), self.schema.as_ref())
    }

    /// Makes so many people in the workspace while nobody serves it; gives the cookie of one of them.
    pub fn fill(&mut self, people: usize) -> Result<String> {
        self.nodes.clear();
        super::people::fill(&self.folder.path().join("data"), &self.workspace, people)
    }

    /// Gives the harness a webhook, so that each question is looked at for who is to be told. It is for answers: nothing is sent of asks.
    pub fn add_webhook(&self) -> Result<()> {
        let mut command = self.command();
        command.args(["harness", "webhook", "add", &self.harness.id, "https://chips.example.com/hook", "--json"]);
        let output = command.stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "chips harness webhook add: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Ends the server as a power cut does, and serves the folder again; gives how long it took until it listened.
    pub fn restart(&mut self) -> Result<Duration> {
        self.nodes.clear();
        let began = Instant::now();
        self.nodes.push(serve(self.command())?);
        Ok(began.elapsed())
    }

    /// Copies the data folder with `chips backup`; gives how long it took and how large the copy is.
    pub fn backup(&self) -> Result<(Duration, u64)> {
        let copy = self.folder.path().join("copy.db");
        let mut command = self.command();
        command.arg("backup").arg(&copy);
        let began = Instant::now();
        let output = command.stdin(Stdio::null()).output()?;
        let took = began.elapsed();
        ensure!(output.status.success(), "chips backup: {}", String::from_utf8_lossy(&output.stderr));
        let size = std::fs::metadata(&copy)?.len();
        std::fs::remove_file(&copy)?;
        Ok((took, size))
    }

    /// Where the first server listens.
    pub fn address(&self) -> SocketAddr {
        self.address_of(0)
    }

    /// Where the server listens that a client of this number goes to: they go around.
    pub fn address_of(&self, client: usize) -> SocketAddr {
        self.nodes[client % self.nodes.len()].address
    }

    /// How many servers share the log.
    pub fn servers(&self) -> usize {
        self.nodes.len()
    }

    /// The folder beside the data, on the same file system.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// What the server's own figures say of its store.
    pub fn commits(&self) -> Result<Commits> {
        let figures = self.nodes.iter().map(|node| node.figure("chips_store_commits_total"));
        Ok(Commits { commits: figures.sum::<Result<f64>>()? as u64 })
    }

    /// A figure without labels, as the first server has it now.
    pub fn figure(&self, name: &str) -> Result<f64> {
        self.nodes.first().context("a server")?.figure(name)
    }

    /// What the process has taken so far (proc_pid_stat(5)).
    pub fn process(&self) -> Result<Process> {
        let pid = self.nodes.first().context("a server")?.child.id();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name may have spaces and brackets in it; what follows has none.
        let (_, fields) = stat.rsplit_once(')').context("a name in brackets")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |nth: usize| -> Result<u64> { Ok(fields.get(nth).context("a field")?.parse()?) };
        let asked = |name: &str| -> Result<u64> {
            let told = Command::new("getconf").arg(name).output()?;
            Ok(String::from_utf8(told.stdout)?.trim().parse()?)
        };
        // Counted from the state, which is field 3: utime and stime are 14 and 15, rss is 24.
        let ticks = number(11)? + number(12)?;
        Ok(Process {
            cpu: Duration::from_secs_f64(ticks as f64 / asked("CLK_TCK")? as f64),
            resident: number(21)? * asked("PAGESIZE")?,
        })
    }

    /// Opens a run of the harness.
    pub fn open_run(&self) -> Result<String> {
        self.open_run_over(&mut Connection::open(self.address())?)
    }

    /// Opens a run of the harness over a connection that is open.
    pub fn open_run_over(&self, connection: &mut Connection) -> Result<String> {
        let run = connection.post("/v1/runs", &self.harness.token, "{}")?.created()?;
        let run: Value = serde_json::from_slice(&run)?;
        Ok(run["run_id"].as_str().context("a run_id")?.to_owned())
    }

    /// Another number, for identifiers that sort by when they were made.
    fn next(&self) -> (u64, u128) {
        let ms = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
        (u64::try_from(ms).unwrap_or(u64::MAX), u128::from(self.count.fetch_add(1, Ordering::Relaxed)))
    }

    fn event(&self, who: &Participant, run: &str, kind: &str, ask_id: &str) -> Value {
        let (ms, count) = self.next();
        json!({
            "v": 1,
            "type": kind,
            "id": EventId::from_parts(ms, count).to_string(),
            "workspace_id": self.workspace,
            "actor": {"kind": who.kind, "id": who.id},
            "run_id": run,
            "idempotency_key": format!("load-{count}"),
            "ask_id": ask_id,
        })
    }

    /// An ask of usual size.
    pub fn ask(&self, run: &str) -> Value {
        let (ms, count) = self.next();
        let mut ask = self.event(&self.harness, run, "question.ask", &AskId::from_parts(ms, count).to_string());
        ask["questions"] = super::questions();
        ask["timeout_seconds"] = json!(3600);
        ask["on_no_answer"] = json!("use_default");
        ask
    }

    /// An answer to it.
    pub fn answer(&self, ask: &Value) -> Value {
        let (run, ask_id) = (ask["run_id"].as_str().unwrap_or_default(), ask["ask_id"].as_str().unwrap_or_default());
        let mut answer = self.event(&self.person, run, "question.answered", ask_id);
        answer["answers"] = json!([{"question_id": "delivery", "values": ["26"]}]);
        answer
    }
}

impl Node {
    fn figure(&self, name: &str) -> Result<f64> {
        let figures = String::from_utf8(Connection::open(self.address)?.get("/metrics", "")?.ok()?)?;
        let value = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(value.with_context(|| format!("no {name}"))?.trim().parse()?)
    }
}

/// `chips` on the log in a folder, or in a schema.
fn on(chips: &Path, folder: &Path, schema: Option<&Schema>) -> Command {
    let mut command = Command::new(chips);
    match schema {
        Some(schema) => command.env("CHIPS_DATABASE", schema.url()),
        None => command.env("CHIPS_DATA", folder.join("data")),
    };
    command
}

/// Starts a server, and waits until it listens.
fn serve(mut command: Command) -> Result<Node> {
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    // Its log goes where this program's goes; a terminal would slow it down.
    command.env("CHIPS_LOG", std::env::var_os("CHIPS_LOG").unwrap_or_else(|| "warn".into()));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().context("what the server prints")?;
    let mut node = Node { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
    let mut lines = BufReader::new(stdout).lines();
    node.address = loop {
        let line = lines.next().context("the server ended before it listened")??;
        if let Some((_, url)) = line.split_once("listening on http://") {
            break url.trim().parse().with_context(|| format!("no address: {url}"))?;
        }
    };
    // Whatever it prints later is read, so that it never waits for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(node)
}

/// The `chips` at this path, or one that is built as this program was.
///
/// # Errors
/// There is none, or it can't be built.
pub fn chips(path: Option<&Path>) -> Result<PathBuf> {
    match path {
        Some(path) => path.canonicalize().with_context(|| format!("there is no {}", path.display())),
        None => build(),
    }
}

/// Builds `chips` in the profile of this program, and says where it is.
fn build() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().context("the folder of this program")?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "-p", "chips"]).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    ensure!(cargo.status()?.success(), "chips can't be built");
    Ok(folder.join("chips"))
}
