//! The schema that a folder is moved into. From before its first table until all of it is there it has a table `moving`, with which
//! nobody else works on it.

use super::source::{Source, event_at};
use super::tables::{Cell, Content, META, RELATIONS, Sum, Table, names};
use super::{AGAIN, Phase, Teller, copied};
use crate::admin::AdminError;
use crate::engine::rows;
use crate::location::Database;
use crate::postgres::{self, ELSEWHERE, Whose};
use crate::sql::postgres::{Lock, Session};
use crate::sql::{self, Connection, Kind, OptionalExtension};
use crate::sqlite::file::Layout;
use crate::stops::stop;
use crate::{Location, OpenError};

/// A schema.
pub(super) struct Target {
    database: Database,
    pub(super) connection: Connection,
}

/// What is there already.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing.
    Free,
    /// Part of the same history, as the folder was then; nothing is known of that where no row was written yet.
    Begun(Vec<u8>),
    /// All of the same history, and perhaps more.
    Done,
}

impl Target {
    /// Reaches the schema, and keeps others from moving something there.
    ///
    /// # Errors
    /// It can't be reached, is on a server that must not be trusted with a log, or another move has it.
    pub(super) fn open(database: &Database) -> Result<Self, AdminError> {
        let connection = postgres::open(database)?;
        let target = Self { database: database.clone(), connection };
        if postgres::layout_so_far(database, &target.connection)? == Layout::None
            && let Some((reason, mend)) =
                postgres::lacks_rights(&target.connection).map_err(|error| target.told(&error))?
        {
            return Err(target.told(&sql::Error::Odd(format!("{reason}; {mend}"))).into());
        }
        target
            .session(|session| {
                // A long table is read in one statement, whatever others may take.
                session.batch(
                    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout')",
                )?;
                session.make_schema()?;
                session.lock(Lock::Move)
            })
            .map_err(|error| match error {
                error if error.kind() == Kind::Busy => {
                    AdminError::Refused(format!("another `chips migrate` is writing to {database}; let it end"))
                }
                error => target.told(&error).into(),
            })?;
        Ok(target)
    }

    /// An error of the database.
    pub(super) fn told(&self, error: &sql::Error) -> OpenError {
        Location::from(self.database.clone()).told(error)
    }

    fn session<T>(&self, act: impl FnOnce(&Session) -> sql::Result<T>) -> sql::Result<T> {
        act(self.connection.postgres().ok_or_else(|| sql::Error::Odd("this is no PostgreSQL".to_owned()))?)
    }

    /// What is there.
    ///
    /// # Errors
    /// Something that is not the folder's history.
    pub(super) fn standing(&self, source: &Source) -> Result<Standing, AdminError> {
        let layout = postgres::layout_so_far(&self.database, &self.connection)?;
        let told = |error: sql::Error| AdminError::Open(self.told(&error));
        let names = names(&self.connection, RELATIONS).map_err(told)?;
        let refuse = |what: String| Err(AdminError::Refused(format!("{}: {what}", self.database)));
        if postgres::is_moving(&self.connection).map_err(told)? {
            let (log, state): (String, Vec<u8>) = self
                .connection
                .query_row("SELECT log_id, source FROM moving", [], |row| Ok((row.get(0)?, row.get(1)?)))
                .map_err(told)?;
            if log != source.log {
                return refuse(format!(
                    "another data folder (log {log}) is being moved here, or was in part; end that first, or {ELSEWHERE}"
                ));
            }
            return Ok(Standing::Begun(state));
        }
        if layout == Layout::None {
            return match names.first() {
                None => Ok(Standing::Free),
                Some(name) => refuse(format!("this schema holds something else already (a table {name}); {ELSEWHERE}")),
            };
        }
        let log: String = self.connection.query_row("SELECT log_id FROM meta", [], |row| row.get(0)).map_err(told)?;
        for name in names.iter().filter(|name| !["meta", "nodes", "probe"].contains(&name.as_str())) {
            let rows = self
                .connection
                .query_row(&format!("SELECT EXISTS (SELECT 1 FROM \"{name}\")"), [], |row| row.get::<_, bool>(0))
                .map_err(told)?;
            if rows && log == source.log {
                return Ok(Standing::Done);
            }
            if rows {
                return refuse(format!("this database holds a workspace already; nothing was changed. {ELSEWHERE}"));
            }
        }
        Ok(Standing::Free)
    }

    /// Marks the schema as one that belongs to the move of this folder, before anything else is there: a server that came to
    /// tables without the mark would take them for its own.
    ///
    /// # Errors
    /// It can't be written, or somebody else made a workspace there meanwhile.
    pub(super) fn mark(&mut self, source: &Source) -> Result<(), AdminError> {
        let mark = |connection: &mut Connection| -> sql::Result<bool> {
            let transaction = connection.transaction_to_write()?;
            let tables = "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'workspaces'
                AND relnamespace = current_schema()::regnamespace)";
            let taken = "SELECT EXISTS (SELECT 1 FROM workspaces)";
            if transaction.query_row(tables, [], |row| row.get(0))?
                && transaction.query_row(taken, [], |row| row.get(0))?
            {
                return Ok(false);
            }
            transaction.execute_batch(
                "CREATE TABLE moving (one BIGINT PRIMARY KEY CHECK (one = 1), log_id TEXT NOT NULL, source BYTEA NOT NULL)",
            )?;
            transaction.execute("INSERT INTO moving (one, log_id, source) VALUES (1, ?1, '')", [&source.log])?;
            transaction.commit().map(|()| true)
        };
        match mark(&mut self.connection) {
            Ok(true) => {}
            Ok(false) => return Err(OpenError::NotEmpty(self.database.clone().into()).into()),
            Err(error) => return Err(self.told(&error).into()),
        }
        stop("the mark of the move");
        Ok(())
    }

    /// Takes away what was moved of an older state of the folder, and begins with this one.
    ///
    /// # Errors
    /// It can't be written.
    pub(super) fn begin(&mut self, source: &Source, tables: &[Table], state: &[u8]) -> Result<(), AdminError> {
        let begin = |connection: &mut Connection| -> sql::Result<()> {
            let transaction = connection.transaction_to_write()?;
            let names: Vec<_> = tables.iter().map(|table| table.name).collect();
            transaction.execute_batch(&format!("TRUNCATE {} RESTART IDENTITY", names.join(", ")))?;
            transaction.execute("UPDATE moving SET source = ?1", [state.to_owned()])?;
            carry_meta(source, &transaction)?;
            transaction.commit()
        };
        begin(&mut self.connection).map_err(|error| self.told(&error))?;
        stop("the begin of the move");
        Ok(())
    }

    /// Makes the tables, or brings those of a move that was begun by an older version to this version's layout.
    ///
    /// # Errors
    /// It can't be written.
    pub(super) fn take_steps(&self) -> Result<(), OpenError> {
        postgres::bring_up(&self.database, &self.connection, Whose::TheMoves)?;
        stop("the tables");
        Ok(())
    }

    /// How many rows of a table are there, and the key of the last one.
    pub(super) fn last(&self, table: &Table) -> sql::Result<(u64, Option<Vec<Cell>>)> {
        let rows: i64 =
            self.connection.query_row(&format!("SELECT count(*) FROM {}", table.name), [], |row| row.get(0))?;
        let last = self
            .connection
            .query_row(&table.last(), [], |row| (0..table.key_len()).map(|at| row.get(at)).collect())
            .optional()?;
        Ok((rows.unsigned_abs(), last))
    }

    /// Writes rows, all of them or none.
    pub(super) fn write(&self, table: &Table, rows: &[Vec<Cell>]) -> sql::Result<()> {
        let values: Vec<_> = rows.iter().map(|row| table.values(row)).collect();
        self.connection.begin_write()?;
        let written = self.session(|session| session.copy_in(&table.write(), &values));
        match written {
            Ok(()) => self.connection.commit(),
            Err(error) => {
                self.connection.rollback();
                Err(error)
            }
        }
    }

    /// Has the database go on with the numbers where the folder was, and look at how much there is of what.
    pub(super) fn settle(&self, source: &Source, tables: &[Table]) -> Result<(), AdminError> {
        let told = |error: sql::Error| AdminError::Open(self.told(&error));
        for table in tables {
            for column in table.numbered() {
                let highest = source.highest(table.name, column).map_err(|error| source.told(&error))?;
                if highest > 0 {
                    let set = "SELECT setval(pg_get_serial_sequence(format('%I.%I', current_schema(), ?1), ?2), ?3)";
                    self.connection.query_row(set, (table.name, column, highest), |_| Ok(())).map_err(told)?;
                }
            }
        }
        let names: Vec<_> = tables.iter().map(|table| table.name).collect();
        self.connection.execute_batch(&format!("ANALYZE {}", names.join(", "))).map_err(told)
    }

    /// What each table holds, `meta` first, in one look; and how far each log goes by its rows and by what is written down.
    pub(super) fn sums(
        &mut self,
        tables: &[Table],
        tell: &mut Teller<'_, '_>,
    ) -> Result<(Vec<Sum>, Vec<Standings>), AdminError> {
        let mut stopped = None;
        let mut read = || -> sql::Result<(Vec<Sum>, Vec<Standings>)> {
            self.connection.begin_read()?;
            let mut sums = vec![copied(&self.connection, META)?];
            for table in tables {
                let mut content = Content::default();
                let (add, stopped) = (&mut content, &mut stopped);
                self.session(|session| {
                    session.each(&table.read_database(), |row| {
                        add.add(&table.row(row)?);
                        tell.count(Phase::Verifying, table.name, 1).map_err(|error| {
                            let told = sql::Error::Odd(error.to_string());
                            *stopped = Some(error);
                            told
                        })
                    })
                })?;
                sums.push(content.sum());
            }
            Ok((sums, standings(&self.connection)?))
        };
        let read = read();
        self.connection.rollback();
        match (stopped, read) {
            (Some(stopped), _) => Err(stopped),
            (None, read) => read.map_err(|error| self.told(&error).into()),
        }
    }

    /// Has the next move begin anew.
    pub(super) fn give_up(&self) -> sql::Result<()> {
        self.connection.execute("UPDATE moving SET source = 'given up'", []).map(drop)
    }

    /// Gives the schema over to the servers.
    pub(super) fn release(&mut self) -> Result<(), AdminError> {
        let release = |connection: &mut Connection| -> sql::Result<()> {
            let transaction = connection.transaction_to_write()?;
            transaction.execute_batch("DROP TABLE moving")?;
            transaction.commit()
        };
        release(&mut self.connection).map_err(|error| match error {
            sql::Error::Unknown(what) => AdminError::Refused(format!(
                "{}: whether this was written is not known ({what}); {AGAIN}",
                self.database
            )),
            error => self.told(&error).into(),
        })
    }

    /// Looks whether all that is in the folder is here.
    ///
    /// # Errors
    /// The folder went on by itself.
    pub(super) fn has_all_of(&self, source: &Source) -> Result<(), AdminError> {
        let apart = |what: String| {
            Err(AdminError::Refused(format!(
                "{}: this holds the history of the folder already, but the folder has gone on since by itself: {what}. Two histories \
                 can't be joined; nothing was changed",
                self.database
            )))
        };
        let logs = source.logs().map_err(|error| source.told(&error))?;
        let told = |error: sql::Error| AdminError::Open(self.told(&error));
        for log in logs {
            let head: Option<i64> = self
                .connection
                .query_row("SELECT head FROM workspaces WHERE workspace_id = ?1", [log.workspace_id], |row| row.get(0))
                .optional()
                .map_err(told)?;
            let id = chips_protocol::WorkspaceId::from_bytes(log.workspace_id);
            let Some(head) = head.map(i64::unsigned_abs) else {
                return apart(format!("it has a workspace {id} that is not here"));
            };
            let pos = rows::pos(log.ws_no, log.head);
            let here = event_at(&self.connection, pos).map_err(told)?;
            if head < log.head || here.zip(log.last).is_some_and(|(here, last)| here != last) {
                return apart(format!("the last event of {id} there is {}, and not one of here", log.head));
            }
        }
        let epoch = "SELECT admin_epoch FROM meta";
        let there: i64 =
            source.connection.query_row(epoch, [], |row| row.get(0)).map_err(|error| source.told(&error))?;
        let here: i64 = self.connection.query_row(epoch, [], |row| row.get(0)).map_err(told)?;
        if there > here {
            return apart("it was administered".to_owned());
        }
        Ok(())
    }
}

/// How far a log goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standings {
    pub(super) workspace_id: [u8; 16],
    /// As the database has it written down, and as its rows are.
    pub(super) written: (u64, i64),
    pub(super) found: (u64, i64),
}

fn standings(connection: &Connection) -> sql::Result<Vec<Standings>> {
    let found: Vec<(i64, [u8; 16], i64, i64)> = connection
        .prepare_cached("SELECT no, workspace_id, head, last_ts FROM workspaces ORDER BY no")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<sql::Result<_>>()?;
    let each = |(ws_no, workspace_id, head, last_ts): (i64, [u8; 16], i64, i64)| {
        let (seq, ts) = rows::head(connection, ws_no)?;
        Ok(Standings { workspace_id, written: (head.unsigned_abs(), last_ts), found: (seq, ts.ms()) })
    };
    found.into_iter().map(each).collect()
}

/// Gives the schema the name of the history, and what the hashes of keys are made with.
fn carry_meta(source: &Source, target: &Connection) -> sql::Result<()> {
    let (log, secret, epoch, erasures): (String, [u8; 32], i64, i64) =
        source.connection.query_row(META, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    target
        .execute(
            "UPDATE meta SET log_id = ?1, key_secret = ?2, admin_epoch = ?3, erasures = ?4",
            (log, secret, epoch, erasures),
        )
        .map(drop)
}
