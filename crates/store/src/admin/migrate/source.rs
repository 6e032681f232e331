//! The folder that is moved: held for as long as that takes, and left as it was.

use std::path::Path;

use rusqlite::config::DbConfig;

use super::tables::{Content, META, Sum, Table};
use super::{Phase, Teller, copied};
use crate::admin::AdminError;
use crate::engine::rows;
use crate::sql::{self, Connection};
use crate::sqlite::file::{self, Layout, Purpose};
use crate::sqlite::folder::{self, Loan};
use crate::{Location, OpenError};

/// A folder. While it is held, no server runs on it and nobody administers it: all that is read is of one moment.
pub(super) struct Source {
    location: Location,
    pub(super) connection: Connection,
    /// The name of its history.
    pub(super) log: String,
    _loan: Loan,
}

impl Source {
    /// Takes the folder.
    ///
    /// # Errors
    /// There is no workspace in it, a server runs on it, or another version wrote it.
    pub(super) fn open(dir: &Path) -> Result<Self, AdminError> {
        let nothing = || {
            AdminError::Refused(format!(
                "{} holds no workspace, so there is nothing to move; name the data folder with --data",
                dir.display()
            ))
        };
        if !file::exists(dir)? {
            return Err(nothing());
        }
        let loan = Loan::take(dir)?;
        let wal = std::fs::metadata(folder::wal(dir)).is_ok_and(|found| found.len() > 0);
        let connection = file::connect(dir, Purpose::Administer)?;
        let location = Location::from(dir);
        let told = |error: sql::Error| AdminError::Open(location.told(&error));
        if wal {
            // Of a server that was killed: what it holds stays where it is, and where there is none, SQLite takes its own away.
            connection
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
                .map_err(|error| told(error.into()))?;
        }
        match file::layout(dir, &connection)? {
            Layout::None => return Err(nothing()),
            Layout::Older => {
                return Err(AdminError::Refused(format!(
                    "{} has the layout of an older version, and is not changed by this; `chips workspace list --data {0}` brings it to \
                     this version's layout and keeps a copy of what was there (without CHIPS_DATABASE); then run this again",
                    dir.display()
                )));
            }
            Layout::Current => {}
        }
        let connection = Connection::from(connection);
        // The right to write, which is not used: whoever administers the folder has to wait.
        connection.begin_write().map_err(told)?;
        let found = || -> sql::Result<(i64, String)> {
            let count = connection.query_row("SELECT count(*) FROM workspaces", [], |row| row.get(0))?;
            Ok((count, connection.query_row("SELECT log_id FROM meta", [], |row| row.get(0))?))
        };
        let (workspaces, log) = found().map_err(told)?;
        if workspaces == 0 {
            return Err(nothing());
        }
        Ok(Self { location, connection, log, _loan: loan })
    }

    /// An error of the folder.
    pub(super) fn told(&self, error: &sql::Error) -> OpenError {
        self.location.told(error)
    }

    /// What each table holds, `meta` first.
    ///
    /// # Errors
    /// It can't be read.
    pub(super) fn sums(&self, tables: &[Table], tell: &mut Teller<'_, '_>) -> Result<Vec<Sum>, AdminError> {
        let mut sums = vec![copied(&self.connection, META).map_err(|error| self.told(&error))?];
        for table in tables {
            let mut content = Content::default();
            let told = |error: sql::Error| AdminError::Open(self.told(&error));
            let mut statement = self.connection.prepare_cached(&table.read_folder(false)).map_err(told)?;
            let mut rows = statement.query([]).map_err(told)?;
            while let Some(row) = rows.next().map_err(told)? {
                content.add(&table.row(&row).map_err(told)?);
                tell.count(Phase::Reading, table.name, 1)?;
            }
            sums.push(content.sum());
        }
        Ok(sums)
    }

    /// The highest number that a table gave to a row, whether that is still there or not.
    pub(super) fn highest(&self, table: &str, column: &str) -> sql::Result<i64> {
        let given = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?1";
        let given: i64 = self.connection.query_row(given, [table], |row| row.get(0))?;
        let highest = format!("SELECT coalesce(max(\"{column}\"), 0) FROM {table}");
        Ok(given.max(self.connection.query_row(&highest, [], |row| row.get(0))?))
    }

    /// The number, identifier, head and last event of each log.
    pub(super) fn logs(&self) -> sql::Result<Vec<Log>> {
        let found: Vec<(i64, [u8; 16])> = self
            .connection
            .prepare_cached("SELECT no, workspace_id FROM workspaces ORDER BY no")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<sql::Result<_>>()?;
        let log = |(ws_no, workspace_id)| {
            let (head, _) = rows::head(&self.connection, ws_no)?;
            Ok(Log { ws_no, workspace_id, head, last: event_at(&self.connection, rows::pos(ws_no, head))? })
        };
        found.into_iter().map(log).collect()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.connection.rollback();
    }
}

/// A log, as far as it goes.
pub(super) struct Log {
    pub(super) ws_no: i64,
    pub(super) workspace_id: [u8; 16],
    pub(super) head: u64,
    /// The identifier of its last event, where that is kept.
    pub(super) last: Option<[u8; 16]>,
}

/// The identifier of the event at a place.
pub(super) fn event_at(connection: &Connection, pos: i64) -> sql::Result<Option<[u8; 16]>> {
    use sql::OptionalExtension;
    connection
        .prepare_cached("SELECT event_id FROM events WHERE pos = ?1")?
        .query_row([pos], |row| row.get(0))
        .optional()
}
