//! The data folder: where its files are, who may read them, and which process holds it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::OpenError;

/// What is said of a file that stands where the data folder should.
pub(crate) const NO_FOLDER: &str = "this is no folder; name one with --data";

/// The database of a data folder.
pub(crate) fn database(dir: &Path) -> PathBuf {
    dir.join("chips.db")
}

/// The write-ahead log beside it.
pub(crate) fn wal(dir: &Path) -> PathBuf {
    dir.join("chips.db-wal")
}

/// Bytes that this process may still write to the folder's file system; nothing where the system does not say.
pub(crate) fn free(dir: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(dir).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Makes the folder, for this user alone. One that is there already, and in use for something else, is left as it is.
pub(crate) fn make(dir: &Path) -> Result<(), OpenError> {
    let told = |error: io::Error| OpenError::Io { path: dir.to_owned(), reason: error.to_string() };
    if dir.exists() && !dir.is_dir() {
        return Err(told(io::Error::other(NO_FOLDER)));
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(told)?;
    #[cfg(unix)]
    if fs::read_dir(dir).map_err(told)?.next().is_none() {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(told)?;
    }
    Ok(())
}

/// Whether more is in the folder than a first start leaves behind that is cut short before there is a database: then Chips, or
/// somebody, has used it.
pub(crate) fn was_in_use(dir: &Path) -> Result<bool, OpenError> {
    let told = |error: io::Error| OpenError::Io { path: dir.to_owned(), reason: error.to_string() };
    for entry in fs::read_dir(dir).map_err(told)? {
        let entry = entry.map_err(told)?;
        let is_empty = || entry.metadata().is_ok_and(|found| found.len() == 0);
        match entry.file_name().to_str() {
            Some("lock" | "chips.db" | "chips.db-journal" | "lost+found") => {}
            Some("chips.db-wal" | "chips.db-shm") if is_empty() => {}
            _ => return Ok(true),
        }
    }
    Ok(false)
}

/// The small files that a server leaves for commands of its machine, in the folder or, of a database, in one within it.
const NOTES: [&str; 4] = ["url", "address", "outbound", "demo"];

/// Whether a file of the folder is one that Chips keeps there. Copies of the database are not.
pub(crate) fn is_own(dir: &Path, path: &Path) -> bool {
    let Some((name, within)) = path.strip_prefix(dir).ok().and_then(|path| Some((path.file_name()?, path.parent()?)))
    else {
        return false;
    };
    let Some(name) = name.to_str() else { return false };
    // A note is written under such a name: `url.4242.new`.
    let note = name.strip_suffix(".new").and_then(|name| name.rsplit_once('.')).map_or(name, |(note, _)| note);
    if NOTES.contains(&note) {
        return within == Path::new("") || within.parent() == Some(Path::new("databases"));
    }
    let files = ["lock", "chips.db", "chips.db-wal", "chips.db-shm", "chips.db-journal"];
    within == Path::new("") && files.contains(&name)
}

/// Opens (or makes) a file that only this user may read. SQLite gives its other files the mode of the database.
pub(crate) fn private_file(path: &Path) -> Result<File, OpenError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| OpenError::Io { path: path.to_owned(), reason: error.to_string() })
}

/// The process that serves the folder now, if one does.
pub(crate) fn holder(dir: &Path) -> Result<Option<String>, OpenError> {
    let path = dir.join("lock");
    let told = |error: io::Error| OpenError::Io { path: path.clone(), reason: error.to_string() };
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(told(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => noted_pid(&mut file).map(Some).map_err(told),
        Err(TryLockError::Error(error)) => Err(told(error)),
    }
}

/// The number of the process that has the lock, as it noted it.
fn noted_pid(lock: &mut File) -> io::Result<String> {
    let mut pid = String::new();
    lock.read_to_string(&mut pid)?;
    Ok(match pid.trim() {
        "" => "(just starting)".to_owned(),
        pid => pid.to_owned(),
    })
}

/// Held while a process serves the folder. The system gives it back when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Hold {
    _file: File,
}

impl Hold {
    /// Takes the folder, or names the process that has it.
    pub(crate) fn take(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join("lock");
        let told = |error: io::Error| OpenError::Io { path: path.clone(), reason: error.to_string() };
        let mut file = private_file(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = noted_pid(&mut file).map_err(told)?;
                return Err(OpenError::Held { dir: dir.to_owned(), pid });
            }
            Err(TryLockError::Error(error)) => return Err(told(error)),
        }
        // The number is a courtesy to whoever is refused; the lock is what counts, so a full disk does not matter here.
        let noted =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
        if let Err(error) = noted {
            tracing::warn!(path = %path.display(), %error, "could not note the process id in the lock");
        }
        Ok(Self { _file: file })
    }
}

/// A folder that is held by who leaves it as it was: the note in the lock is put back at the end.
#[derive(Debug)]
pub(crate) struct Loan {
    lock: PathBuf,
    noted: Vec<u8>,
    _hold: Hold,
}

impl Loan {
    /// Takes the folder, or names the process that has it.
    pub(crate) fn take(dir: &Path) -> Result<Self, OpenError> {
        let lock = dir.join("lock");
        let noted = fs::read(&lock).unwrap_or_default();
        Ok(Self { lock, noted, _hold: Hold::take(dir)? })
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.lock, &self.noted) {
            tracing::debug!(path = %self.lock.display(), %error, "could not put the note in the lock back");
        }
    }
}
