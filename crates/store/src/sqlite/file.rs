//! The database file: how connections are opened, whose file it is, and how it comes to this version's layout.

use std::path::Path;
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection, OpenFlags, TransactionBehavior};
use ulid::Ulid;

use super::folder;
use crate::OpenError;
use crate::secret;
use crate::stops::stop;

/// Marks the file as one of Chips: "Chip" in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x4368_6970;

/// The steps from nothing to this version's layout; `user_version` counts those that were taken. A step that has been
/// released is never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_start.sql"),
    include_str!("migrations/0002_notices.sql"),
    include_str!("migrations/0003_keep.sql"),
    include_str!("migrations/0004_seen.sql"),
    include_str!("migrations/0005_keys.sql"),
];

/// The layout that this version makes.
#[cfg(test)]
pub(crate) const fn known() -> i64 {
    MIGRATIONS.len() as i64
}

/// The first layout that has an outbox.
pub(crate) const WITH_OUTBOX: i64 = 2;
/// The first layout whose log may have been cut at its beginning.
pub(crate) const WITH_RETENTION: i64 = 3;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The server's writer, and the thread that checkpoints for it.
    Serve,
    /// Reading for requests.
    Read,
    /// A short administrative act beside a server or without one.
    Administer,
}

/// Opens the database of a folder that has one.
pub(crate) fn connect(dir: &Path, purpose: Purpose) -> Result<Connection, OpenError> {
    let path = folder::database(dir);
    let access = match purpose {
        Purpose::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Purpose::Serve | Purpose::Administer => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let connection = Connection::open_with_flags(&path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    connection.and_then(|connection| prepare(connection, purpose)).map_err(|error| told(&path, &error))
}

fn prepare(mut connection: Connection, purpose: Purpose) -> rusqlite::Result<Connection> {
    connection.set_prepared_statement_cache_capacity(128);
    // Plans do not depend on the values bound: else some statements are compiled anew for each value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    match purpose {
        Purpose::Read => {
            connection.busy_timeout(Duration::from_secs(5))?;
            connection.pragma_update(None, "query_only", true)?;
            connection.pragma_update(None, "cache_size", -8 * 1024)?;
        }
        Purpose::Serve => {
            connection.busy_timeout(Duration::from_secs(5))?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.pragma_update(None, "wal_autocheckpoint", 0)?;
            // A group that outgrows the cache would write some of its pages twice.
            connection.pragma_update(None, "cache_size", -64 * 1024)?;
            // What a savepoint would take back is kept in memory and not in a file.
            connection.pragma_update(None, "temp_store", "MEMORY")?;
        }
        Purpose::Administer => {
            // The server leaves only moments between two groups, so this asks often, for some ten seconds.
            connection.busy_handler(Some(|tried: i32| {
                // SQLite waits by sleeping: nothing says when another process lets go.
                #[allow(clippy::disallowed_methods)]
                std::thread::park_timeout(Duration::from_micros(if tried < 1_000 { 500 } else { 2_000 }));
                tried < 6_000
            }))?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        }
    }
    Ok(connection)
}

/// Makes the database file where there is none.
pub(crate) fn create(dir: &Path) -> Result<(), OpenError> {
    folder::make(dir)?;
    folder::private_file(&folder::database(dir)).map(drop)
}

/// Whether the folder has a database file with anything in it.
///
/// # Errors
/// The file is empty, and the folder was in use: what stood in it was lost.
pub(crate) fn exists(dir: &Path) -> Result<bool, OpenError> {
    let path = folder::database(dir);
    match length(&path)? {
        // A first start that was cut short may have left it so.
        Some(0) if folder::was_in_use(dir)? => Err(OpenError::Damaged {
            path,
            reason: "the file is empty, though the folder was in use: what was in it is lost, as by a copy that failed or a full \
                     disk. `chips restore BACKUP` puts a backup in its place; to begin anew without one, remove the file"
                .to_owned(),
        }),
        length => Ok(length.is_some_and(|length| length > 0)),
    }
}

/// Whether the folder has no database file, or an empty one: whatever it was, a backup may take its place.
pub(crate) fn is_vacant(dir: &Path) -> Result<bool, OpenError> {
    Ok(length(&folder::database(dir))?.is_none_or(|length| length == 0))
}

fn length(path: &Path) -> Result<Option<u64>, OpenError> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(found.len())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            Err(OpenError::Io { path: path.parent().unwrap_or(path).to_owned(), reason: folder::NO_FOLDER.to_owned() })
        }
        Err(error) => Err(OpenError::Io { path: path.to_owned(), reason: error.to_string() }),
    }
}

/// How the layout of a file relates to this version's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Nothing in it yet.
    None,
    /// An older version's.
    Older,
    /// This version's.
    Current,
}

/// Whose file it is, and of which version.
///
/// # Errors
/// It is not one of Chips, or a newer version's.
pub(crate) fn layout(dir: &Path, connection: &Connection) -> Result<Layout, OpenError> {
    layout_of(&folder::database(dir), connection)
}

/// The same of a file by itself.
///
/// # Errors
/// As [`layout`].
pub(crate) fn layout_of(path: &Path, connection: &Connection) -> Result<Layout, OpenError> {
    let read = || -> rusqlite::Result<(i32, i64, i64)> {
        let application = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((application, version, tables))
    };
    let (application, version, tables) = read().map_err(|error| told(path, &error))?;
    let known = MIGRATIONS.len() as i64;
    match (application, version) {
        (0, 0) if tables == 0 => Ok(Layout::None),
        (APPLICATION_ID, version) if version == known => Ok(Layout::Current),
        (APPLICATION_ID, version) if (1..known).contains(&version) => Ok(Layout::Older),
        (APPLICATION_ID, found) => Err(OpenError::Newer { path: path.to_owned(), found, known }),
        _ => Err(OpenError::Foreign {
            path: path.to_owned(),
            reason: "this is no database of Chips; name another".to_owned(),
        }),
    }
}

/// What a file of Chips lacks of what its layout has, or has of somebody else's that would act by itself: nothing where it is as Chips
/// made it.
pub(crate) fn schema_fault(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let names = |connection: &Connection| -> rusqlite::Result<Vec<(String, String)>> {
        let mut statement = connection.prepare(
            "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'
             UNION ALL
             SELECT 'column', m.name || '.' || c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'",
        )?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let made = Connection::open_in_memory()?;
    for steps in MIGRATIONS.iter().take(usize::try_from(version).unwrap_or_default()) {
        made.execute_batch(steps)?;
    }
    let (found, wanted) = (names(connection)?, names(&made)?);
    let lacking = wanted.iter().find(|one| !found.contains(one));
    let added = found.iter().find(|one| matches!(one.0.as_str(), "trigger" | "view") && !wanted.contains(one));
    Ok(match (lacking, added) {
        (Some((kind, name)), _) => Some(format!("the {kind} {name} is missing in it")),
        (_, Some((kind, name))) => Some(format!("the {kind} {name} in it is not of Chips' making")),
        (None, None) => None,
    })
}

/// Copies a database into a file that is there and empty. One step takes all pages, in one read of the source: nothing that is
/// written meanwhile starts it over.
pub(crate) fn copy(source: &Connection, target: &Path) -> rusqlite::Result<()> {
    let access = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(target, access)?;
    Backup::new(source, &mut connection)?.step(-1)?;
    // One file that is whole by itself: its write-ahead log goes.
    let _: String = connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))?;
    connection.close().map_err(|(_, error)| error)
}

/// Keeps a copy of a file as an older version left it, beside it: whoever goes back to that version has something to go back to.
fn keep_older(dir: &Path, connection: &Connection) -> Result<(), OpenError> {
    let path = folder::database(dir);
    let version: i64 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|error| told(&path, &error))?;
    let kept = dir.join(format!("chips.db.layout-{version}"));
    if kept.exists() {
        return Ok(());
    }
    let partial = dir.join(format!("chips.db.layout-{version}.part"));
    let failed = |reason: String| OpenError::Io {
        path: kept.clone(),
        reason: format!("a copy must be kept before the file is brought to this version's layout: {reason}"),
    };
    let _ = std::fs::remove_file(&partial);
    let file = folder::private_file(&partial)?;
    stop("the file for a copy of the older layout");
    let copied = copy(connection, &partial)
        .inspect(|()| stop("the copy of the older layout"))
        .map_err(|error| error.to_string())
        .and_then(|()| file.sync_all().map_err(|error| error.to_string()))
        .and_then(|()| std::fs::rename(&partial, &kept).map_err(|error| error.to_string()))
        .inspect(|()| stop("the name of the copy of the older layout"));
    copied.map_err(|reason| {
        let _ = std::fs::remove_file(&partial);
        failed(reason)
    })
}

/// Takes the steps that are missing, each in a transaction of its own. Several processes may try at once.
pub(crate) fn migrate(dir: &Path, connection: &mut Connection) -> Result<(), OpenError> {
    let path = folder::database(dir);
    match layout(dir, connection)? {
        Layout::Current => return Ok(()),
        Layout::Older => keep_older(dir, connection)?,
        Layout::None => {}
    }
    let step = |connection: &mut Connection| -> rusqlite::Result<bool> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let taken: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let Some(left) = usize::try_from(taken).ok().and_then(|taken| MIGRATIONS.get(taken..)) else {
            return Ok(false);
        };
        // A new file comes to the layout in one go: nobody is to take it for an older one in between.
        let steps = &left[..if taken == 0 { left.len() } else { left.len().min(1) }];
        if steps.is_empty() {
            return Ok(false);
        }
        for sql in steps {
            let mut statements = Batch::new(&transaction, sql);
            while let Some(mut statement) = statements.next()? {
                statement.execute([])?;
                stop("a statement of a step");
            }
        }
        if taken == 0 {
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.execute(
                "INSERT INTO meta (one, log_id, key_secret, admin_epoch) VALUES (1, ?1, ?2, 0)",
                (new_log_id(), secret::random::<32>()),
            )?;
        }
        transaction.pragma_update(None, "user_version", taken + steps.len() as i64)?;
        stop("the end of a step");
        transaction.commit()?;
        stop("a step");
        Ok(true)
    };
    let run = |connection: &mut Connection| -> rusqlite::Result<()> {
        let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        stop("the switch to the write-ahead log");
        if mode != "wal" {
            tracing::warn!(path = %path.display(), mode, "this file system takes no write-ahead log");
        }
        while step(connection)? {}
        Ok(())
    };
    // Two that make the same file meet where SQLite does not wait by itself: when one switches to the write-ahead log.
    for _ in 0..MEETINGS {
        match run(connection) {
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                #[allow(clippy::disallowed_methods)]
                std::thread::park_timeout(Duration::from_millis(2));
            }
            ran => return ran.map_err(|error| told(&path, &error)),
        }
    }
    run(connection).map_err(|error| told(&path, &error))
}

/// How often it is tried again to bring a file to its layout that another process is at.
const MEETINGS: u32 = 2_500;

/// A name for a new history of the log.
pub(crate) fn new_log_id() -> String {
    let now = crate::clock::TimeSource::System.wall();
    format!("log_{}", Ulid::from_parts(now.ms().unsigned_abs(), u128::from_be_bytes(secret::random())))
}

/// An error of SQLite as one line for the operator.
pub(crate) fn told(path: &Path, error: &rusqlite::Error) -> OpenError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => OpenError::Foreign {
            path: path.to_owned(),
            reason: "this is no database of Chips; name another".to_owned(),
        },
        Some(rusqlite::ErrorCode::DatabaseCorrupt) => OpenError::Damaged {
            path: path.to_owned(),
            reason: format!("the file is damaged ({error}); `chips restore` makes a new folder from a backup"),
        },
        // SQLite does not say why; the system does.
        Some(rusqlite::ErrorCode::CannotOpen) => {
            let opened = std::fs::OpenOptions::new().read(true).write(true).open(path);
            let reason = opened.err().map_or_else(|| error.to_string(), |why| why.to_string());
            OpenError::Io { path: path.to_owned(), reason }
        }
        _ => OpenError::Io { path: path.to_owned(), reason: error.to_string() },
    }
}
