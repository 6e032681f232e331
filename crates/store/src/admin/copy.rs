//! A copy of the whole store in one file, made while a server writes, and the way back.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::OpenError;
use crate::sqlite::file::{self, Layout, Purpose};
use crate::sqlite::folder::{self, Hold};
use crate::sqlite::scrub;
use crate::stops::stop;

/// How long nothing was written to a copy before it counts as left behind.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Its size in bytes.
    pub bytes: u64,
    /// How many events are in it, over all workspaces.
    pub events: u64,
    /// The name of the history of the log that was copied.
    pub log: String,
}

/// What of a backup is not about questions, and may be left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// People's sessions, and with them their browsers' subscriptions.
    pub sessions: bool,
}

/// Copies the store of a folder into one file, as it is at one moment, whether a server writes it or not. The copy is opened
/// and checked before it gets its name, so that a file of that name is a whole one.
///
/// # Errors
/// The folder has no workspace, the file is there already, or either can't be read or written.
pub fn back_up(dir: &Path, target: &Path) -> Result<Backup, OpenError> {
    if !file::exists(dir)? {
        return Err(OpenError::Empty(dir.into()));
    }
    let source = file::connect(dir, Purpose::Administer)?;
    if file::layout(dir, &source)? == Layout::None {
        return Err(OpenError::Empty(dir.into()));
    }
    if is_within(target, dir) && is_own_name(dir, target) {
        return Err(told(
            target,
            "Chips gives its own files in the data folder such names; give another, best in another folder",
        ));
    }
    if target.symlink_metadata().is_ok() {
        return Err(told(target, "there is something of this name already; give another"));
    }
    // What one before this did not live to finish is of no use to anybody, and found by nobody.
    let beside = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for abandoned in scrub::abandoned_copies(beside).unwrap_or_default() {
        // Where several machines, or containers, share a folder, a process of another one can't be seen from here.
        let old = fs::metadata(&abandoned).and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        if old.is_some_and(|old| old > ABANDONED_AFTER)
            && let Err(error) = remove(&abandoned)
        {
            tracing::warn!(%error, "what an earlier backup left unfinished stays");
        }
    }
    let partial = Partial::beside(target)?;
    file::copy(&source, partial.path()).map_err(|error| file::told(target, &error))?;
    stop("the copy that has no name yet");
    let backup = verify(partial.path())?;
    partial.rename(target)?;
    Ok(backup)
}

/// Removes what [`back_up`] has begun in this process: for one that is told to end in the middle of it.
pub fn give_up(target: &Path) {
    let Some(path) = unfinished(target) else { return };
    let mut journal = path.clone().into_os_string();
    journal.push("-journal");
    for path in [path, journal.into()] {
        // It may have got its name, or be gone, a moment ago.
        let _ = fs::remove_file(path);
    }
}

/// What a file is called while this process makes it.
fn unfinished(target: &Path) -> Option<PathBuf> {
    let name = target.file_name()?.to_string_lossy();
    Some(target.with_file_name(format!("{name}.{}.part", std::process::id())))
}

/// Whether a file lies, or would lie, in this folder or in one within it.
pub fn is_within(file: &Path, dir: &Path) -> bool {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (parent.canonicalize(), dir.canonicalize()) {
        (Ok(parent), Ok(dir)) => parent.starts_with(dir),
        _ => false,
    }
}

/// Whether a name is one that Chips, or SQLite, may give a file of the data folder.
fn is_own_name(dir: &Path, file: &Path) -> bool {
    let is_own =
        |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("chips.db") || folder::is_own(dir, &dir.join(name));
    file.file_name().is_some_and(is_own)
}

/// Makes a data folder from a backup. The log begins a new history: cursors into the old one are refused rather than trusted. Ways
/// to sign in that were made before are void, and of asks that are closed nobody is told again.
///
/// # Errors
/// The folder has a workspace already or is held, the file is no backup of this version or an older one, or either can't be
/// read or written. Nothing was changed.
pub fn restore(source: &Path, dir: &Path, keep: Keep) -> Result<Backup, OpenError> {
    let backup = verify(source)?;
    let read = open(source, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|error| file::told(source, &error))?;
    if let Some(fault) = file::schema_fault(&read).map_err(|error| file::told(source, &error))? {
        return Err(damaged(source, format_args!("this is no backup as Chips makes it: {fault}; use another")));
    }
    let is_new = dir.symlink_metadata().is_err();
    folder::make(dir)?;
    let hold = Hold::take(dir)?;
    let filled = fill(&read, dir, keep);
    if filled.is_err() && is_new && file::is_vacant(dir).unwrap_or(false) {
        // As it was found: there was none. Where it can't be taken away again, an empty one is in nobody's way.
        let _ = fs::remove_file(dir.join("lock"));
        let _ = fs::remove_dir(dir);
    }
    drop(hold);
    filled.map(|()| backup)
}

/// Fills a folder that is held from a backup.
fn fill(read: &Connection, dir: &Path, keep: Keep) -> Result<(), OpenError> {
    if !file::is_vacant(dir)? {
        // Something else of that name is told as what it is.
        file::layout(dir, &file::connect(dir, Purpose::Read)?)?;
        return Err(OpenError::NotEmpty(dir.into()));
    }
    let target = folder::database(dir);
    // An empty one may be left of a start that was cut short.
    remove(&target)?;
    for beside in ["chips.db-wal", "chips.db-shm"] {
        remove(&dir.join(beside))?;
    }
    let partial = Partial::beside(&target)?;
    file::copy(read, partial.path()).map_err(|error| file::told(&target, &error))?;
    begin_anew(partial.path(), keep).map_err(|error| file::told(&target, &error))?;
    partial.rename(&target)?;
    let mut connection = file::connect(dir, Purpose::Administer)?;
    file::migrate(dir, &mut connection)
}

fn open(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// Opens a copy and looks at every page of it.
fn verify(path: &Path) -> Result<Backup, OpenError> {
    let sqlite = |error: rusqlite::Error| file::told(path, &error);
    // SQLite would make a file where there is none.
    let found = fs::metadata(path).map_err(|error| told(path, error))?;
    if found.is_dir() {
        return Err(told(path, "this is a folder; name the file that `chips backup` wrote"));
    }
    if !found.is_file() {
        return Err(told(path, "this is no regular file; name the file that `chips backup` wrote"));
    }
    let bytes = found.len();
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(sqlite)?;
    if file::layout_of(path, &connection)? == Layout::None {
        return Err(told(path, "this is no backup of Chips: there is nothing in it"));
    }
    whole(path, bytes)?;
    let check: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(sqlite)?;
    if check != "ok" {
        return Err(damaged(path, format_args!("the copy is damaged: {check}")));
    }
    let read = || -> rusqlite::Result<(i64, String)> {
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        // A question that was dropped from the log stays beside it until its answer is dropped too.
        let in_log = match version >= file::WITH_RETENTION {
            true => {
                "SELECT count(*) FROM events e JOIN workspaces w ON w.no = e.ws_no WHERE e.pos >= (w.no << 40 | w.kept_from)"
            }
            false => "SELECT count(*) FROM events",
        };
        let events = connection.query_row(in_log, [], |row| row.get(0))?;
        Ok((events, connection.query_row("SELECT log_id FROM meta", [], |row| row.get(0))?))
    };
    let (events, log) = read().map_err(sqlite)?;
    Ok(Backup { bytes, events: events.unsigned_abs(), log })
}

/// Looks whether a file is as long as its header says (<https://www.sqlite.org/fileformat.html>, section 1.3), and has all that belongs
/// to it in itself: SQLite reads what is there as far as it gets.
fn whole(path: &Path, bytes: u64) -> Result<(), OpenError> {
    let mut header = [0; 100];
    // What is too short to have one is told as what it is when it is opened.
    if File::open(path).and_then(|mut file| file.read_exact(&mut header)).is_err()
        || !header.starts_with(b"SQLite format 3\0")
    {
        return Ok(());
    }
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if header[18] == 2 {
        return Err(told(
            path,
            "this is the database file of a data folder, without what its server has beside it; copy the whole folder while no \
             server runs, or use what `chips backup` makes",
        ));
    }
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let said = page * u64::from(number(28));
    // Old versions of SQLite leave the length out; then the two counters differ.
    if number(24) == number(92) && said != bytes {
        return Err(damaged(
            path,
            format_args!("the copy is not whole: it has {bytes} of {said} bytes; copy it here once more"),
        ));
    }
    Ok(())
}

/// What must not come back with a backup.
fn begin_anew(path: &Path, keep: Keep) -> rusqlite::Result<()> {
    let mut connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute("UPDATE meta SET log_id = ?1, admin_epoch = admin_epoch + 1", [file::new_log_id()])?;
    // A link that was used after the backup would be good again.
    transaction.execute("DELETE FROM grants", [])?;
    if !keep.sessions {
        transaction.execute("DELETE FROM sessions", [])?;
    }
    if version >= file::WITH_OUTBOX {
        transaction.execute(
            "UPDATE outbox SET state = 3 WHERE state = 0 AND ask_pos IN (SELECT pos FROM asks WHERE state <> 0)",
            [],
        )?;
        // An answer that the log has and that was not gone through yet: it may have been told since. A place in the outbox that is taken
        // is not taken again.
        transaction.execute(
            "INSERT OR IGNORE INTO outbox (ws_no, ask_pos, endpoint_no, kind, round, due_at, claimed_until, tries, state)
             SELECT a.ws_no, a.pos, e.no, 4, 0, 0, 0, 0, 3 FROM asks a JOIN endpoints e ON e.harness_no = a.harness_no
             WHERE a.state <> 0 AND EXISTS (
                 SELECT 1 FROM outbox_cursors c WHERE c.ws_no = a.ws_no AND a.closed_pos > (c.ws_no << 40 | c.seq))",
            [],
        )?;
    }
    transaction.commit()?;
    connection.close().map_err(|(_, error)| error)
}

/// A file that is not whole yet: gone again unless it gets its name.
struct Partial(Option<PathBuf>);

impl Partial {
    /// A private file beside the one that it will be.
    fn beside(target: &Path) -> Result<Self, OpenError> {
        let path = unfinished(target).ok_or_else(|| told(target, "this names no file"))?;
        let begin = || {
            remove(&path)?;
            folder::private_file(&path)
        };
        match begin() {
            // The name that was asked for, and not the one that it has until it is whole.
            Err(OpenError::Io { reason, .. }) => Err(told(target, reason)),
            Err(error) => Err(error),
            Ok(_) => Ok(Self(Some(path))),
        }
    }

    fn path(&self) -> &Path {
        self.0.as_deref().unwrap_or(Path::new(""))
    }

    /// Gives it its name, once all of it is on the disk.
    fn rename(mut self, target: &Path) -> Result<(), OpenError> {
        let path = self.path().to_owned();
        File::open(&path).and_then(|file| file.sync_all()).map_err(|error| told(target, error))?;
        fs::rename(&path, target).map_err(|error| told(target, error))?;
        self.0 = None;
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(|error| told(parent, error))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

fn remove(path: &Path) -> Result<(), OpenError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(told(path, error)),
        _ => Ok(()),
    }
}

fn damaged(path: &Path, reason: impl std::fmt::Display) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), reason: reason.to_string() }
}

fn told(path: &Path, reason: impl std::fmt::Display) -> OpenError {
    OpenError::Io { path: path.to_owned(), reason: reason.to_string() }
}
