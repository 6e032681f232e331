//! What can go wrong between the store and its database.

use postgres::error::SqlState;
use rusqlite::ErrorCode;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// What the driver says of a server that takes no writes.
const READ_ONLY: &str = "database does not allow writes";

/// An error of either database.
#[derive(Debug)]
pub(crate) enum Error {
    Sqlite(rusqlite::Error),
    Postgres(postgres::Error),
    /// A row was wanted, and there is none.
    NoRows,
    /// A value that no version of Chips wrote.
    Odd(String),
    /// There is no connection.
    Unreachable(String),
    /// There is none that is as it has to be.
    Unfit(String),
    /// The commit may or may not have happened.
    Unknown(String),
    /// A newer version has made of the schema what this one must not work on.
    Outgrown {
        layout: i64,
        known: i64,
    },
}

/// What kind of error it is, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is no room.
    Full,
    /// Somebody else holds what is needed.
    Busy,
    /// It can be read alone.
    ReadOnly,
    /// The connection is gone, or there never was one.
    Gone,
    /// Two transactions met: one of them is to be run again.
    Again,
    /// What is there already.
    Duplicate,
    /// A newer version's.
    Outgrown,
    /// Anything else.
    Other,
}

impl Error {
    /// What kind it is.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => Kind::Full,
                Some(ErrorCode::DatabaseBusy) => Kind::Busy,
                Some(ErrorCode::ReadOnly) => Kind::ReadOnly,
                _ => Kind::Other,
            },
            Self::Postgres(error) => match error.code() {
                Some(code) if *code == SqlState::DISK_FULL => Kind::Full,
                Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::QUERY_CANCELED => Kind::Busy,
                Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Kind::ReadOnly,
                Some(code)
                    if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED =>
                {
                    Kind::Again
                }
                // Prepared before the schema changed, or forgotten by the server.
                Some(code)
                    if *code == SqlState::FEATURE_NOT_SUPPORTED || *code == SqlState::INVALID_SQL_STATEMENT_NAME =>
                {
                    Kind::Again
                }
                Some(code) if *code == SqlState::UNIQUE_VIOLATION => Kind::Duplicate,
                // The server ends the session, or never let it begin.
                Some(code) if ["57P", "08", "53300", "25P03"].iter().any(|class| code.code().starts_with(class)) => {
                    Kind::Gone
                }
                Some(_) => Kind::Other,
                None => Kind::Gone,
            },
            Self::Unreachable(_) | Self::Unfit(_) => Kind::Gone,
            Self::Outgrown { .. } => Kind::Outgrown,
            Self::NoRows | Self::Odd(_) | Self::Unknown(_) => Kind::Other,
        }
    }

    /// Whether a server that could not be reached may be there in a while, for nothing is wrong with what it was asked.
    pub(crate) fn is_away(&self) -> bool {
        match self {
            Self::Postgres(error) if error.code().is_none() => {
                !self.takes_no_writes()
                    && std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
            }
            Self::Unreachable(_) => true,
            Self::Unfit(_) => false,
            error => error.kind() == Kind::Gone,
        }
    }

    /// Whether a server that can be reached takes no writes.
    pub(crate) fn takes_no_writes(&self) -> bool {
        matches!(self, Self::Postgres(error) if std::error::Error::source(error).is_some_and(|source| source.to_string() == READ_ONLY))
    }

    /// SQLite's code and extended code.
    pub(crate) fn sqlite(&self) -> Option<(ErrorCode, i32)> {
        match self {
            Self::Sqlite(error) => error.sqlite_error().map(|error| (error.code, error.extended_code)),
            _ => None,
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(error) => error.fmt(f),
            // The crate's own words are "db error"; what the server says stands behind.
            Self::Postgres(error) => match (error.as_db_error(), std::error::Error::source(error)) {
                (Some(said), _) => {
                    write!(f, "PostgreSQL says: {} ({})", said.message(), said.code().code())?;
                    if *said.code() == SqlState::INSUFFICIENT_PRIVILEGE {
                        f.write_str("; give Chips the role that made the tables, or grant this one the rights that it has")?;
                    }
                    Ok(())
                }
                (None, Some(source)) if source.to_string() == READ_ONLY => f.write_str(
                    "it takes no writes: it is a standby, or default_transaction_read_only is on for this role or this database",
                ),
                (None, Some(source)) => write!(f, "{error}: {source}"),
                (None, None) => error.fmt(f),
            },
            Self::NoRows => f.write_str("a row is missing"),
            Self::Odd(text) | Self::Unreachable(text) | Self::Unfit(text) | Self::Unknown(text) => f.write_str(text),
            Self::Outgrown { layout, known } => write!(
                f,
                "a newer version of Chips works on this (layout {layout}, this one knows {known}); use that version"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::QueryReturnedNoRows => Self::NoRows,
            error => Self::Sqlite(error),
        }
    }
}

impl From<postgres::Error> for Error {
    fn from(error: postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// Makes nothing of a row that is not there.
pub(crate) trait OptionalExtension<T> {
    fn optional(self) -> Result<Option<T>>;
}

impl<T> OptionalExtension<T> for Result<T> {
    fn optional(self) -> Result<Option<T>> {
        match self {
            Ok(found) => Ok(Some(found)),
            Err(Error::NoRows) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
