//! A PostgreSQL server of a test's own, that the test may treat badly: on a free port of the loopback address, in a temporary
//! folder, ended by its own process id.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::until;

const STARTED_WITHIN: Duration = Duration::from_secs(30);

/// A server.
pub struct Server {
    dir: TempDir,
    port: u16,
    running: Option<Child>,
}

impl Server {
    /// A new server, synced to the disk as in earnest.
    pub fn new() -> Self {
        let dir = folder();
        let data = dir.path().join("db");
        let made = program("initdb")
            .args(["--username", "chips", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self::of(dir)
    }

    /// A standby that follows this server, under the name `standby`.
    pub fn standby(&self) -> Self {
        let dir = folder();
        let from = format!("host=127.0.0.1 port={} user=chips application_name=standby", self.port);
        let made = program("pg_basebackup")
            .args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "-d", &from, "-D"])
            .arg(dir.path().join("db"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self::of(dir)
    }

    fn of(dir: TempDir) -> Self {
        let mut server = Self { dir, port: 0, running: None };
        // Somebody else may take the port between the look and the start.
        for _ in 0..5 {
            server.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if server.try_start() {
                return server;
            }
        }
        panic!("PostgreSQL did not start: {}", server.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn try_start(&mut self) -> bool {
        let log = std::fs::File::options().create(true).append(true).open(self.dir.path().join("log")).unwrap();
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            format!("unix_socket_directories={}", self.dir.path().display()),
            "shared_buffers=16MB".to_owned(),
        ];
        let mut command = program("postgres");
        command.arg("-D").arg(self.dir.path().join("db"));
        for setting in &settings {
            command.args(["-c", setting]);
        }
        let mut child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let up = until(STARTED_WITHIN, "PostgreSQL to start", || {
            if child.try_wait().unwrap().is_some() {
                return Some(false);
            }
            self.try_sql("SELECT 1").is_ok().then_some(true)
        });
        self.running = Some(child);
        up
    }

    /// Starts it again, on the same port.
    pub fn start(&mut self) {
        assert!(self.try_start(), "PostgreSQL did not start again: {}", self.log());
    }

    /// Ends it as a crash does (`pg_ctl stop -m immediate`).
    pub fn crash(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = kill_process(Pid::from_child(&child), Signal::QUIT);
            child.wait().unwrap();
        }
    }

    /// Sends a signal to all of its processes.
    pub fn signal(&self, signal: Signal) {
        let Some(server) = self.running.as_ref().map(Pid::from_child) else { return };
        let told = Command::new("pgrep").arg("-P").arg(server.as_raw_pid().to_string()).output().unwrap();
        let children = String::from_utf8(told.stdout).unwrap();
        let children = children.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
        // One of them may just have ended.
        [server].into_iter().chain(children).for_each(|process| {
            let _ = kill_process(process, signal);
        });
    }

    /// Where it is in the file system, as a host of a URL.
    pub fn socket(&self) -> String {
        format!("{}:{}", self.dir.path().display().to_string().replace('/', "%2F"), self.port)
    }

    /// Where it is, as a host of a URL.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The URL of its database.
    pub fn url(&self) -> String {
        format!("postgres://chips@{}/postgres?sslmode=disable", self.host())
    }

    /// Puts a file beside its own, which it alone can read, and tells its path.
    pub fn put(&self, name: &str, text: &[u8]) -> PathBuf {
        let path = self.dir.path().join("db").join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        if let Some(user) = other_user() {
            assert!(Command::new("chown").arg(user).arg(&path).status().unwrap().success());
        }
        path
    }

    /// Runs one statement outside of any transaction.
    pub fn sql(&self, sql: &str) -> String {
        self.try_sql(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Changes a setting that needs no restart, and waits until it counts.
    pub fn set(&self, name: &str, value: &str) {
        self.sql(&format!("ALTER SYSTEM SET {name} = '{value}'"));
        self.sql("SELECT pg_reload_conf()");
        until(STARTED_WITHIN, "the setting to count", || (self.sql(&format!("SHOW {name}")) == value).then_some(()));
    }

    fn try_sql(&self, sql: &str) -> Result<String, String> {
        let url = self.url();
        let options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c", sql];
        let told = Command::new("psql").args(options).output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
        if told.status.success() { Ok(text(&told.stdout)) } else { Err(text(&told.stderr)) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.crash();
    }
}

/// A folder that belongs to whoever runs the server.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    if let Some(user) = other_user() {
        let made = Command::new("chown").arg(user).arg(dir.path()).status().unwrap();
        assert!(made.success());
    }
    dir
}

/// Who runs the server where the test itself is run by root, as whom PostgreSQL refuses to run.
fn other_user() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then(|| {
        let known = Command::new("id").arg("postgres").stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        if known.success() { "postgres" } else { "nobody" }
    })
}

/// A program of the newest PostgreSQL that is installed. It ends with the test, however that ends.
fn program(name: &str) -> Command {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed
        .filter_map(|version| Some((version.file_name().to_str()?.parse::<u32>().ok()?, version.path().join("bin"))))
        .filter(|(_, bin)| bin.join(name).exists())
        .max();
    let path = newest.map_or_else(|| PathBuf::from(name), |(_, bin)| bin.join(name));
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if let Some(user) = other_user() {
        command.arg(format!("--reuid={user}")).arg(format!("--regid={}", group_of(user))).arg("--clear-groups");
    }
    command.arg(path).stdin(Stdio::null()).current_dir("/");
    command
}

fn group_of(user: &str) -> String {
    let told = Command::new("id").args(["-g", user]).output().unwrap();
    String::from_utf8(told.stdout).unwrap().trim().to_owned()
}
