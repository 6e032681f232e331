//! The data folder as the commands see it: which one, how to name it in a command to copy, and the small files that
//! `serve` leaves in it for administration.

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use chips_protocol::HarnessId;
use chips_store::{Database, Location};
use etcetera::BaseStrategy;
use url::Url;

use crate::output;

/// Where the server listens unless it is told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:7070";

/// The data folder.
#[derive(Debug, Clone, clap::Args)]
pub struct DataArgs {
    /// The data folder [default: chips in the user's data folder]
    #[arg(long, env = "CHIPS_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// The PostgreSQL database instead of a data folder: postgres://USER@HOST/NAME [env: CHIPS_DATABASE=]
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// A file that holds the URL of the database: what stands on a command line others can read [env: CHIPS_DATABASE_FILE=]
    #[arg(long, value_name = "FILE", conflicts_with = "database")]
    database_file: Option<PathBuf>,
}

/// The variables that name a database where no flag does.
const DATABASE: &str = "CHIPS_DATABASE";
const DATABASE_FILE: &str = "CHIPS_DATABASE_FILE";

/// A variable of the environment. An empty one says nothing.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A data folder; or a database, beside which a folder has the small files of this machine.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    named: bool,
    database: Option<Database>,
}

impl DataArgs {
    /// Whether a folder or a database was named, on the command line or by the environment.
    pub fn is_said(&self) -> bool {
        self.data.is_some()
            || self.database.is_some()
            || self.database_file.is_some()
            || variable(DATABASE).or_else(|| variable(DATABASE_FILE)).is_some()
    }

    /// The file that a flag or the environment names for the URL of the database.
    pub fn database_file(&self) -> Option<PathBuf> {
        let unsaid = self.database.is_none() && variable(DATABASE).is_none();
        let kept = || variable(DATABASE_FILE).filter(|_| unsaid).map(PathBuf::from);
        self.database_file.clone().or_else(kept)
    }

    /// The database that a flag names, else the environment.
    fn database(&self) -> anyhow::Result<Option<Database>> {
        let url = |from: &str, url: &str| Database::parse(url).map_err(|reason| anyhow::anyhow!("{from}: {reason}"));
        if let Some(given) = &self.database {
            let database = url("--database", given)?;
            if database.has_password() {
                output::note(
                    "--database: its password stands in the arguments, which everybody on this machine can read; say \
                     --database-file or CHIPS_DATABASE_FILE",
                );
            }
            return Ok(Some(database));
        }
        if let Some(file) = &self.database_file {
            return database_in(file).map(Some);
        }
        match (variable(DATABASE), variable(DATABASE_FILE)) {
            (Some(_), Some(_)) => anyhow::bail!("{DATABASE} and {DATABASE_FILE} are both set; keep one of them"),
            (Some(given), None) => {
                let given = given.to_str().with_context(|| format!("{DATABASE} holds bytes that are no UTF-8"))?;
                url(DATABASE, given).map(Some)
            }
            (None, Some(file)) => database_in(Path::new(&file)).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The folder that was named, else the user's own.
    ///
    /// # Errors
    /// None was named and the user has no home, or the URL of a database is none.
    pub fn folder(&self) -> anyhow::Result<Folder> {
        Ok(Folder { database: self.database()?, ..Folder::of(self.data.as_deref())? })
    }
}

/// The database whose URL stands in a file.
///
/// # Errors
/// The file can't be read, or holds something else.
fn database_in(file: &Path) -> anyhow::Result<Database> {
    let told = |reason: String| anyhow::anyhow!("{}: {reason}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| told(error.to_string()))?;
    let text = text.trim();
    if text.contains(char::is_whitespace) {
        return Err(told("it must hold the URL of the database and nothing else".to_owned()));
    }
    Database::parse(text).map_err(told)
}

impl Folder {
    /// This database, and beside it the folder.
    pub fn with_database(self, database: Option<Database>) -> Self {
        Self { database, ..self }
    }

    /// Where the store is.
    pub fn location(&self) -> Location {
        match &self.database {
            Some(database) => Location::Database(database.clone()),
            None => Location::Folder(self.path.clone()),
        }
    }

    /// The database, where it is one.
    pub fn database(&self) -> Option<&Database> {
        self.database.as_ref()
    }

    /// What it is, for a sentence: `data folder` or `database`.
    pub fn kind(&self) -> &'static str {
        if self.database.is_some() { "database" } else { "data folder" }
    }

    /// The folder of the small files.
    fn beside(&self) -> PathBuf {
        match &self.database {
            Some(database) => self.path.join("databases").join(database.mark()),
            None => self.path.clone(),
        }
    }

    /// The folder of this name, else the user's own.
    ///
    /// # Errors
    /// There is no name and the user has no home.
    pub fn of(named: Option<&Path>) -> anyhow::Result<Self> {
        let default = || etcetera::choose_base_strategy().ok().map(|base| base.data_dir().join("chips"));
        match named {
            // A command to copy must work from any folder.
            Some(named) => {
                let path = std::path::absolute(named).with_context(|| format!("{} is no folder", named.display()))?;
                let named = default().is_none_or(|default| default != path);
                Ok(Self { path, named, database: None })
            }
            None => {
                let path = default().context("there is no home folder to keep data in; name one with --data DIR")?;
                Ok(Self { path, named: false, database: None })
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was named, rather than the user's own.
    pub fn is_named(&self) -> bool {
        self.named
    }

    /// A command of this program on this folder, to copy into a shell: `chips person link usr_… --data DIR`.
    pub fn command(&self, words: &str) -> String {
        let mut command = format!("{} {words}", this_program());
        // One with a password is in the environment or a file, and stays there.
        if let Some(database) = self.database.as_ref().filter(|database| !database.has_password()) {
            command.push_str(" --database ");
            command.push_str(&shell_word(database.url()));
        }
        if self.named {
            command.push_str(" --data ");
            command.push_str(&shell_word(&self.path.to_string_lossy()));
        }
        command
    }

    /// The URL of the server on this folder: the one given, else what the last server said, else the default. No slash at the end.
    pub fn url(&self, given: Option<&Url>) -> String {
        let kept = || std::fs::read_to_string(self.beside().join("url")).ok();
        let kept = || kept().and_then(|text| crate::args::public_url(text.trim()).ok());
        match given.cloned().or_else(kept) {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => format!("http://{DEFAULT_LISTEN}"),
        }
    }

    /// Keeps the URL of the server for the commands that print links.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn keep_url(&self, url: &str) -> anyhow::Result<()> {
        self.keep("url", url)
    }

    /// The address that the last server listened on.
    pub fn address(&self) -> Option<SocketAddr> {
        std::fs::read_to_string(self.beside().join("address")).ok()?.trim().parse().ok()
    }

    /// Keeps the address that the server listens on, for whoever wants to know whether it answers.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn keep_address(&self, address: SocketAddr) -> anyhow::Result<()> {
        self.keep("address", &address.to_string())
    }

    /// The origins that the server on this folder may send to though they are not public; nothing where none runs here that
    /// has said so.
    pub fn exceptions(&self) -> Option<Vec<Url>> {
        if self.database.is_some() || !matches!(chips_store::admin::holder(&self.path), Ok(Some(_))) {
            return None;
        }
        let kept = std::fs::read_to_string(self.beside().join("outbound")).ok()?;
        kept.split_ascii_whitespace().map(|url| url.parse().ok()).collect()
    }

    /// Keeps the origins that the server may send to though they are not public, for whoever registers an address.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn keep_exceptions(&self, exceptions: &[Url]) -> anyhow::Result<()> {
        let origins: Vec<String> = exceptions.iter().map(|url| url.origin().ascii_serialization()).collect();
        self.keep("outbound", &origins.join(" "))
    }

    /// The harness that the demo plays, where it has played before.
    pub fn demo_harness(&self) -> Option<HarnessId> {
        std::fs::read_to_string(self.beside().join("demo")).ok()?.trim().parse().ok()
    }

    /// Keeps the harness that the demo plays, so that the next demo is the same one.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn keep_demo_harness(&self, harness: HarnessId) -> anyhow::Result<()> {
        self.keep("demo", &harness.to_string())
    }

    /// Writes a small file of the folder, whole or not at all.
    fn keep(&self, name: &str, line: &str) -> anyhow::Result<()> {
        let folder = self.beside();
        let path = folder.join(name);
        let draft = folder.join(format!("{name}.{}.new", std::process::id()));
        let write = || {
            if self.database.is_some() {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            }
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            file.write_all(format!("{line}\n").as_bytes())?;
            std::fs::rename(&draft, &path)
        };
        write()
            .inspect_err(|_| drop(std::fs::remove_file(&draft)))
            .with_context(|| format!("can't write {}", path.display()))
    }
}

/// How to call this program from a shell in any folder: `chips` where that is found, else its path.
pub fn this_program() -> String {
    shell_word(&this_program_word())
}

/// As [`this_program`], for those who call it without a shell.
pub fn this_program_word() -> String {
    let Ok(program) = std::env::current_exe() else { return "chips".to_owned() };
    let is_this = |found: PathBuf| std::fs::canonicalize(found).is_ok_and(|found| found == program);
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A shell takes the first one that it finds.
    let first = std::env::split_paths(&path).map(|dir| dir.join("chips")).find(|found| found.is_file());
    if first.is_some_and(is_this) { "chips".to_owned() } else { program.to_string_lossy().into_owned() }
}

/// A text as one word of a POSIX shell.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn folder(path: &Path) -> Folder {
        Folder { path: path.to_owned(), named: true, database: None }
    }

    #[test]
    fn a_word_survives_the_shell() {
        for text in ["plain", "/tmp/a b", "it's", "$(reboot)", "", "a\"b`c`", "*"] {
            let output =
                std::process::Command::new("sh").arg("-c").arg(format!("printf %s {}", shell_word(text))).output();
            assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), text);
        }
    }

    #[test]
    fn links_are_built_on_the_given_url_then_the_servers_last_one_then_the_default() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        assert_eq!(folder.url(None), "http://127.0.0.1:7070");
        folder.keep_url("http://127.0.0.1:8181").unwrap();
        assert_eq!(folder.url(None), "http://127.0.0.1:8181");
        let given = Url::parse("https://chips.example.com").unwrap();
        assert_eq!(folder.url(Some(&given)), "https://chips.example.com");
    }

    #[test]
    fn a_kept_url_that_is_none_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("url"), "\u{1b}[31mhttps://evil/x\n").unwrap();
        assert_eq!(folder(dir.path()).url(None), "http://127.0.0.1:7070");
    }

    #[test]
    fn a_command_names_a_folder_that_is_not_the_default() {
        let command = folder(Path::new("/srv/my chips")).command("doctor");
        assert!(command.ends_with(" doctor --data '/srv/my chips'"), "{command}");
    }
}
