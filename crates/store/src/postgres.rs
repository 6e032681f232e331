//! The schema in PostgreSQL: whose it is, how it comes to this version's layout, and whether the server keeps what it
//! acknowledges.

pub(crate) mod node;
pub(crate) mod tail;

use crate::error::OpenError;
use crate::location::{Database, Location};
use crate::secret;
use crate::sql::postgres::{Lock, Session, Wanted};
use crate::sql::{Connection, Error, Result};
use crate::sqlite::file::{self, Layout, Purpose};

/// The steps to this version's layout. The first makes all of it, as a file of SQLite has it after as many steps; each after
/// it comes as a pair. A step that has been released is never edited.
const STEPS: &[Step] = &[Step { layout: 4, runs_from: 4, sql: include_str!("postgres/migrations/0004_start.sql") }];

/// One step.
struct Step {
    /// The layout that it leads to.
    layout: i64,
    /// The oldest layout whose version may go on running on it: servers are replaced one after the other.
    runs_from: i64,
    sql: &'static str,
}

/// The layout that this version makes.
fn known() -> i64 {
    STEPS.iter().map(|step| step.layout).max().unwrap_or_default()
}

impl Location {
    /// Opens a connection.
    pub(crate) fn connect(&self, purpose: Purpose) -> std::result::Result<Connection, OpenError> {
        match self {
            Self::Folder(dir) => file::connect(dir, purpose).map(Connection::from),
            Self::Database(database) => connect(database, Wanted::Writes),
        }
    }

    /// An error as one line for the operator.
    pub(crate) fn told(&self, error: &Error) -> OpenError {
        match (self, error) {
            (Self::Folder(dir), Error::Sqlite(error)) => file::told(&crate::sqlite::folder::database(dir), error),
            (Self::Folder(dir), error) => {
                OpenError::Io { path: crate::sqlite::folder::database(dir), reason: error.to_string() }
            }
            (Self::Database(database), error) => told(database, error),
        }
    }
}

fn told(database: &Database, reason: impl std::fmt::Display) -> OpenError {
    OpenError::Database { database: database.to_string(), reason: reason.to_string() }
}

fn connect(database: &Database, wanted: Wanted) -> std::result::Result<Connection, OpenError> {
    Session::connect(database, wanted).map(Connection::from).map_err(|error| told(database, &error))
}

/// Opens a connection for serving or administration, on a server that keeps what it acknowledges.
///
/// # Errors
/// It can't be reached, is a standby, or is set to lose what it acknowledged.
pub(crate) fn open(database: &Database) -> std::result::Result<Connection, OpenError> {
    let connection = connect(database, Wanted::Anything)?;
    match unfit(&connection) {
        Ok(None) => Ok(connection),
        Ok(Some(reason)) => Err(told(database, reason)),
        Err(error) => Err(told(database, &error)),
    }
}

/// Why a server must not be trusted with a log.
fn unfit(connection: &Connection) -> Result<Option<String>> {
    let (standby, fsync, pages, commit, number, version): (bool, String, String, String, String, String) = connection
        .query_row(
        "SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'),
                    current_setting('synchronous_commit'), current_setting('server_version_num'),
                    current_setting('server_version')",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?)),
    )?;
    let reason = if number.parse().unwrap_or(0) < 130_000 {
        format!("this server is PostgreSQL {version}; Chips needs 13 or newer")
    } else if standby {
        "this server is a standby and can be read alone; give the primary, or several hosts, of which the one that takes writes \
         is found"
            .to_owned()
    } else if fsync != "on" {
        "fsync is off on this server: after a power cut it has lost what it acknowledged; set fsync = on".to_owned()
    } else if pages != "on" {
        "full_page_writes is off on this server: a power cut can leave pages that are half old and half new; set \
         full_page_writes = on"
            .to_owned()
    } else if commit != "on" && commit != "remote_apply" {
        format!("synchronous_commit is {commit} in spite of what this session says; set it to on")
    } else {
        return Ok(None);
    };
    Ok(Some(reason))
}

/// How the schema that a connection works in relates to this version's.
///
/// # Errors
/// A newer version's that this one can't work on, or something else stands there under Chips' names.
pub(crate) fn layout(database: &Database, connection: &Connection) -> std::result::Result<Layout, OpenError> {
    let found = read(connection).map_err(|error| told(database, &error))?;
    let known = known();
    match found {
        None => Ok(Layout::None),
        Some((layout, runs_from)) if layout > known && runs_from > known => Err(told(
            database,
            format_args!(
                "a newer version of Chips works on this (layout {layout}, this one knows {known}); use that version"
            ),
        )),
        Some((layout, _)) if layout < known => Ok(Layout::Older),
        Some(_) => Ok(Layout::Current),
    }
}

/// The layout, and the oldest one whose version may work on it.
fn read(connection: &Connection) -> Result<Option<(i64, i64)>> {
    let there: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'meta' AND relnamespace = current_schema()::regnamespace)",
        [],
        |row| row.get(0),
    )?;
    if !there {
        return Ok(None);
    }
    connection.query_row("SELECT layout, runs_from FROM meta", [], |row| Ok(Some((row.get(0)?, row.get(1)?))))
}

/// Takes the steps that are missing, all in one transaction. Several servers may try at once: one of them does it.
pub(crate) fn migrate(database: &Database, connection: &mut Connection) -> std::result::Result<(), OpenError> {
    if layout(database, connection)? == Layout::Current {
        return Ok(());
    }
    let run = |connection: &Connection| -> Result<()> {
        let session = connection.postgres().ok_or_else(|| Error::Odd("this is no PostgreSQL".to_owned()))?;
        connection.begin_write()?;
        session.lock(Lock::Migrate)?;
        // Behind the lock: two that make it at once get in each other's way, IF NOT EXISTS or not.
        session.make_schema()?;
        let taken = read(connection)?.map_or(0, |(layout, _)| layout);
        for step in STEPS.iter().filter(|step| step.layout > taken) {
            connection.execute_batch(step.sql)?;
            if taken == 0 && step.layout == STEPS[0].layout {
                connection.execute(
                    "INSERT INTO meta (one, layout, runs_from, log_id, key_secret, admin_epoch)
                     VALUES (1, 0, 0, ?1, ?2, 0)",
                    (file::new_log_id(), secret::random::<32>()),
                )?;
            }
            connection.execute("UPDATE meta SET layout = ?1, runs_from = ?2", (step.layout, step.runs_from))?;
        }
        connection.commit()
    };
    run(connection).map_err(|error| {
        connection.rollback();
        told(database, &error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_both_databases_come_in_pairs() {
        assert_eq!(known(), file::known());
        assert!(STEPS.iter().all(|step| step.runs_from <= step.layout));
        assert!(STEPS.is_sorted_by_key(|step| step.layout));
    }
}
