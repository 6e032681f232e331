//! The one way of the store to SQL: what it needs of a database, over two thin drivers.
//!
//! Statements are written once, in what both databases understand; parameters are `?1`, `?2`. What can't be said in
//! both is told apart by [`Connection::is_postgres`] where it stands, or named in [`postgres::translate`].

mod error;
pub(crate) mod postgres;
pub(crate) mod postgres_tls;
mod value;

use std::cell::Cell;
use std::ops::Deref;

pub(crate) use error::{Error, Kind, OptionalExtension, Result};
use postgres::Session;
pub(crate) use value::{Column, Found, FromSql, Params, Value};

/// A connection to either database.
pub(crate) struct Connection {
    driver: Driver,
}

enum Driver {
    Sqlite(rusqlite::Connection),
    Postgres(Box<Session>),
}

impl From<rusqlite::Connection> for Connection {
    fn from(connection: rusqlite::Connection) -> Self {
        Self { driver: Driver::Sqlite(connection) }
    }
}

impl From<Session> for Connection {
    fn from(session: Session) -> Self {
        Self { driver: Driver::Postgres(Box::new(session)) }
    }
}

impl Connection {
    /// Whether this speaks to PostgreSQL.
    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.driver, Driver::Postgres(_))
    }

    /// SQLite's own connection, for what only a file has.
    pub(crate) fn sqlite(&self) -> Option<&rusqlite::Connection> {
        match &self.driver {
            Driver::Sqlite(connection) => Some(connection),
            Driver::Postgres(_) => None,
        }
    }

    /// The same, to change how it works.
    pub(crate) fn sqlite_mut(&mut self) -> Option<&mut rusqlite::Connection> {
        match &mut self.driver {
            Driver::Sqlite(connection) => Some(connection),
            Driver::Postgres(_) => None,
        }
    }

    /// The session with PostgreSQL, for what only that has.
    pub(crate) fn postgres(&self) -> Option<&Session> {
        match &self.driver {
            Driver::Sqlite(_) => None,
            Driver::Postgres(session) => Some(session),
        }
    }

    /// A statement, compiled once for each connection.
    pub(crate) fn prepare_cached<'c>(&'c self, sql: &str) -> Result<Statement<'c>> {
        Ok(match &self.driver {
            Driver::Sqlite(connection) => Statement::Sqlite(connection.prepare_cached(sql)?),
            Driver::Postgres(session) => Statement::Postgres(session, postgres::translate(sql)),
        })
    }

    /// Runs a statement and tells how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.prepare_cached(sql)?.execute(params)
    }

    /// The first row that a statement gives, or [`Error::NoRows`].
    pub(crate) fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.prepare_cached(sql)?.query_row(params, read)
    }

    /// Runs statements without parameters, one after the other.
    pub(crate) fn execute_batch(&self, sql: &str) -> Result<()> {
        match &self.driver {
            Driver::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Driver::Postgres(session) => session.batch(sql),
        }
    }

    /// Whether no transaction is open.
    pub(crate) fn is_autocommit(&self) -> bool {
        match &self.driver {
            Driver::Sqlite(connection) => connection.is_autocommit(),
            Driver::Postgres(session) => !session.in_transaction(),
        }
    }

    /// Begins what reads: every statement sees the same state of the database.
    pub(crate) fn begin_read(&self) -> Result<()> {
        match &self.driver {
            Driver::Sqlite(connection) => connection.prepare_cached("BEGIN")?.execute([]).map(drop)?,
            Driver::Postgres(session) => session.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?,
        }
        Ok(())
    }

    /// Begins what writes.
    pub(crate) fn begin_write(&self) -> Result<()> {
        match &self.driver {
            Driver::Sqlite(connection) => connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(drop)?,
            Driver::Postgres(session) => session.begin("BEGIN ISOLATION LEVEL READ COMMITTED")?,
        }
        Ok(())
    }

    /// Commits what was begun.
    pub(crate) fn commit(&self) -> Result<()> {
        match &self.driver {
            Driver::Sqlite(connection) => connection.prepare_cached("COMMIT")?.execute([]).map(drop)?,
            Driver::Postgres(session) => session.commit()?,
        }
        Ok(())
    }

    /// Takes back what was begun. True where it certainly was.
    pub(crate) fn rollback(&self) -> bool {
        match &self.driver {
            Driver::Sqlite(connection) => connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok(),
            Driver::Postgres(session) => session.rollback(),
        }
    }

    /// A transaction that reads, or that shares the database with other administrative acts.
    pub(crate) fn transaction(&mut self) -> Result<Transaction<'_>> {
        self.begin_read()?;
        Ok(Transaction { connection: self, done: Cell::new(false) })
    }

    /// A transaction that writes: one administrative act at a time.
    pub(crate) fn transaction_to_write(&mut self) -> Result<Transaction<'_>> {
        self.begin_write()?;
        let transaction = Transaction { connection: self, done: Cell::new(false) };
        if let Some(session) = transaction.postgres() {
            session.lock(postgres::Lock::Administer)?;
        }
        Ok(transaction)
    }

    /// Closes it, and says where that fails.
    pub(crate) fn close(self) -> Result<()> {
        match self.driver {
            Driver::Sqlite(connection) => connection.close().map_err(|(_, error)| error.into()),
            Driver::Postgres(session) => {
                drop(session);
                Ok(())
            }
        }
    }
}

/// An open transaction. Dropped without [`Transaction::commit`], it is rolled back.
pub(crate) struct Transaction<'c> {
    connection: &'c Connection,
    done: Cell<bool>,
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Transaction<'_> {
    /// Commits it.
    pub(crate) fn commit(self) -> Result<()> {
        self.connection.commit()?;
        self.done.set(true);
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.done.get() && !self.connection.rollback() {
            tracing::warn!("a transaction could not be taken back");
        }
    }
}

/// A statement that can be run.
pub(crate) enum Statement<'c> {
    Sqlite(rusqlite::CachedStatement<'c>),
    Postgres(&'c Session, String),
}

impl Statement<'_> {
    /// Runs it and tells how many rows it changed.
    pub(crate) fn execute(&mut self, params: impl Params) -> Result<usize> {
        let values = params.values();
        match self {
            Self::Sqlite(statement) => Ok(statement.execute(rusqlite::params_from_iter(values))?),
            Self::Postgres(session, sql) => session.execute(sql, &values),
        }
    }

    /// Whether it gives any row.
    pub(crate) fn exists(&mut self, params: impl Params) -> Result<bool> {
        Ok(self.query(params)?.next()?.is_some())
    }

    /// The first row, or [`Error::NoRows`].
    pub(crate) fn query_row<T>(&mut self, params: impl Params, read: impl FnOnce(&Row<'_>) -> Result<T>) -> Result<T> {
        match self.query_all(params)?.next()? {
            Some(row) => read(&row),
            None => Err(Error::NoRows),
        }
    }

    /// Each row, as `read` makes something of it.
    pub(crate) fn query_map<T, F: FnMut(&Row<'_>) -> Result<T>>(
        &mut self,
        params: impl Params,
        read: F,
    ) -> Result<Mapped<'_, F>> {
        Ok(Mapped { rows: self.query_all(params)?, read })
    }

    /// The rows, some at a time: for results that may be long.
    pub(crate) fn query(&mut self, params: impl Params) -> Result<Rows<'_>> {
        let values = params.values();
        Ok(match self {
            Self::Sqlite(statement) => Rows::Sqlite(statement.query(rusqlite::params_from_iter(values))?),
            Self::Postgres(session, sql) => Rows::Postgres(session.query_in_steps(sql, &values)?),
        })
    }

    /// The rows, all at once where that is cheaper.
    fn query_all(&mut self, params: impl Params) -> Result<Rows<'_>> {
        let values = params.values();
        Ok(match self {
            Self::Sqlite(statement) => Rows::Sqlite(statement.query(rusqlite::params_from_iter(values))?),
            Self::Postgres(session, sql) => Rows::Postgres(session.query(sql, &values)?),
        })
    }

    /// The statement with its parameters in it: SQLite can explain that.
    #[cfg(test)]
    pub(crate) fn expanded_sql(&self) -> Option<String> {
        match self {
            Self::Sqlite(statement) => statement.expanded_sql(),
            Self::Postgres(..) => None,
        }
    }
}

/// Rows as they come.
pub(crate) enum Rows<'s> {
    Sqlite(rusqlite::Rows<'s>),
    Postgres(postgres::Fetched<'s>),
}

impl Rows<'_> {
    /// The next row.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>> {
        Ok(match self {
            Self::Sqlite(rows) => rows.next()?.map(Row::Sqlite),
            Self::Postgres(fetched) => fetched.next()?.map(Row::Postgres),
        })
    }
}

/// Rows, each made into something.
pub(crate) struct Mapped<'s, F> {
    rows: Rows<'s>,
    read: F,
}

impl<T, F: FnMut(&Row<'_>) -> Result<T>> Iterator for Mapped<'_, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.rows.next() {
            Ok(Some(row)) => Some((self.read)(&row)),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// One row.
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(::postgres::Row),
}

/// How a column is named: by its place.
pub(crate) trait Place {
    fn place(self) -> usize;
}

impl Place for usize {
    fn place(self) -> usize {
        self
    }
}

impl Row<'_> {
    /// What stands in a column.
    pub(crate) fn get<I: Place, T: FromSql>(&self, at: I) -> Result<T> {
        let at = at.place();
        match self {
            Self::Sqlite(row) => T::read(Found::from(row.get_ref(at)?)),
            Self::Postgres(row) => row.try_get::<_, Found<'_>>(at).map_err(Error::from).and_then(T::read),
        }
        .map_err(|error| match error {
            Error::Odd(what) => Error::Odd(format!("column {at}: {what}")),
            other => other,
        })
    }
}
