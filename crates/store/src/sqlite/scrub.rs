//! Clears out of the folder what was overwritten or deleted in the database: the file is made anew without its free pages,
//! the write-ahead log is cut, and the copies that Chips itself kept of older layouts go.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::file::APPLICATION_ID;
use super::folder;
use crate::engine::rows::odd;
use crate::sql::Result;
use crate::stops::stop;

/// How often the write-ahead log is tried to be cut while somebody reads from it, each time after what SQLite waits itself.
const TRIES: u32 = 3_000;
const BETWEEN: Duration = Duration::from_millis(10);

/// Whether erased text may be left in the file: an erasure was cut short.
pub(crate) fn is_due(connection: &Connection) -> Result<bool> {
    Ok(connection.query_row("SELECT scrub FROM meta", [], |row| row.get(0))?)
}

/// Makes the file anew, without what is left in its free pages and between its rows.
pub(crate) fn scrub(dir: &Path, connection: &Connection) -> Result<()> {
    for copy in own_copies(dir).map_err(|error| odd("the folder", error))? {
        fs::remove_file(&copy).map_err(|error| odd("the folder", format_args!("{}: {error}", copy.display())))?;
    }
    stop("the copies of older layouts");
    connection.execute_batch("VACUUM")?;
    stop("the new file");
    cut(connection)?;
    stop("the write-ahead log");
    connection.execute("UPDATE meta SET scrub = 0", [])?;
    stop("the end of clearing");
    Ok(())
}

/// Moves all of the write-ahead log into the database and cuts it to nothing. It waits for those who read an older state.
fn cut(connection: &Connection) -> Result<()> {
    for _ in 0..TRIES {
        let busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if !busy {
            return Ok(());
        }
        #[allow(clippy::disallowed_methods)]
        std::thread::park_timeout(BETWEEN);
    }
    Err(odd("the write-ahead log", "what somebody still reads: an old state of the database"))
}

/// Copies that Chips itself kept in the folder: of older layouts, and unfinished ones.
pub(crate) fn own_copies(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let rest = name.strip_prefix("chips.db.");
        if rest.is_some_and(|rest| rest.starts_with("layout-") || rest.ends_with(".part")) {
            found.push(entry.path());
        }
    }
    found.extend(abandoned_copies(dir)?);
    found.sort();
    found.dedup();
    Ok(found)
}

/// Copies in this folder that a process began and did not live to finish.
pub(crate) fn abandoned_copies(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if maker(&path).is_some_and(|maker| test_kill_process(maker) == Err(Errno::SRCH)) {
            found.push(path);
        }
    }
    Ok(found)
}

/// The process that makes the copy that this file will be, or belongs to: `NAME.PID.part`, perhaps with SQLite's journal.
fn maker(path: &Path) -> Option<Pid> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix("-journal").unwrap_or(name).strip_suffix(".part")?;
    Pid::from_raw(name.rsplit_once('.')?.1.parse().ok()?)
}

/// What lies within the folder and is not Chips' own.
#[derive(Debug, Default)]
pub(crate) struct Strange {
    /// Databases of Chips: backups that somebody put there.
    pub(crate) databases: Vec<PathBuf>,
    /// Other files, and folders that can't be looked into. What is in them is not known: an export, say, or a packed backup.
    pub(crate) others: Vec<PathBuf>,
}

/// Looks for what lies within the folder and is not Chips' own.
pub(crate) fn strange(dir: &Path) -> io::Result<Strange> {
    let copies = own_copies(dir)?;
    let mut found = Strange::default();
    look_through(dir, &mut |path, size| {
        if copies.iter().any(|copy| copy == path) || folder::is_own(dir, path) {
            return;
        }
        if is_database(path) || maker(path).is_some() {
            found.databases.push(path.to_owned());
        } else if size > 0 {
            found.others.push(path.to_owned());
        }
    })?;
    found.databases.sort();
    found.others.sort();
    Ok(found)
}

/// Looks at every file in a folder and in those within it, with its size; links are not followed. A folder that this user may not look
/// into is looked at as a file would be, but for the one that the system keeps for what it finds after a crash.
fn look_through(dir: &Path, look: &mut dyn FnMut(&Path, u64)) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            match look_through(&path, look) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    if entry.file_name() != "lost+found" {
                        look(&path, u64::MAX);
                    }
                }
                looked => looked?,
            }
        } else if kind.is_file() {
            // It may be gone since.
            look(&path, entry.metadata().map(|found| found.len()).unwrap_or_default());
        }
    }
    Ok(())
}

/// Whether a file is a database of Chips, by its header (<https://www.sqlite.org/fileformat.html>, section 1.3).
fn is_database(path: &Path) -> bool {
    let mut header = [0; 72];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header.starts_with(b"SQLite format 3\0") && header[68..72] == APPLICATION_ID.to_be_bytes()
}
