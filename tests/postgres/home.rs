// Where a test keeps its store: a folder of its own, or a schema of its own in a PostgreSQL server that all tests share and
// that `tests/postgres/start` starts.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use chips_store::{Database, Location};

/// A folder, or a schema; gone with the test.
pub struct Home {
    dir: tempfile::TempDir,
    schema: Option<Schema>,
}

struct Schema {
    name: String,
    url: String,
}

/// The server for tests, and the lease that keeps it running.
struct Server {
    url: String,
    _lease: Option<File>,
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let start = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/postgres/start");
        let output = Command::new(start).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told = String::from_utf8(output.stdout).unwrap();
        let (url, lease) = told.trim().split_once('\n').unwrap();
        let lease = (lease != "-").then(|| {
            let file = File::open(lease).unwrap();
            file.lock_shared().unwrap();
            file
        });
        Server { url: url.to_owned(), _lease: lease }
    })
}

#[allow(dead_code)]
impl Home {
    /// A folder.
    pub fn folder() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), schema: None }
    }

    /// A schema in PostgreSQL. Making the store in it makes it.
    pub fn schema() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = tempfile::tempdir().unwrap();
        let random = dir.path().file_name().unwrap().to_string_lossy().to_lowercase().replace('.', "");
        let name = format!("test_{}_{number}_{random}", std::process::id());
        let server = &server().url;
        let and = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{and}options=-csearch_path%3D{name}");
        Self { dir, schema: Some(Schema { name, url }) }
    }

    /// Where the store is.
    pub fn path(&self) -> Location {
        match &self.schema {
            Some(schema) => Database::parse(&schema.url).unwrap().into(),
            None => self.dir.path().into(),
        }
    }

    /// A folder for what else the test needs.
    pub fn beside(&self) -> &Path {
        self.dir.path()
    }

    /// The name of the schema.
    pub fn name(&self) -> &str {
        &self.schema.as_ref().unwrap().name
    }

    /// The URL of the database.
    pub fn url(&self) -> &str {
        &self.schema.as_ref().unwrap().url
    }

    /// All that stands in the files of the folder, or in the tables of the schema.
    pub fn texts(&self) -> Vec<String> {
        if self.schema.is_some() {
            return vec![self.sql("SELECT schema_to_xml(current_schema(), false, false, '')")];
        }
        let files = std::fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        files.map(|file| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned()).collect()
    }

    /// Runs a statement beside the store.
    pub fn sql(&self, sql: &str) -> String {
        run(&self.schema.as_ref().unwrap().url, sql)
    }
}

fn psql(url: &str, sql: &str) -> std::process::Output {
    let options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql];
    Command::new("psql").args(options).output().unwrap()
}

fn run(url: &str, sql: &str) -> String {
    let output = psql(url, sql);
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(Schema { name, .. }) = &self.schema
            && !std::thread::panicking()
        {
            let drop = format!("SET client_min_messages = error; DROP SCHEMA IF EXISTS {name} CASCADE");
            // A server of the test that still ends may stand in the way.
            let gone = (0..20).any(|_| psql(&server().url, &drop).status.success());
            assert!(gone, "{name} could not be dropped");
        }
    }
}
