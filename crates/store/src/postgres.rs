//! The schema in PostgreSQL: whose it is, how it comes to this version's layout, and whether the server keeps what it
//! acknowledges.

pub(crate) mod ahead;
mod next;
pub(crate) mod node;
pub(crate) mod tail;

use std::time::Duration;

use crate::error::OpenError;
use crate::location::{Database, Location};
use crate::secret;
use crate::sql::postgres::{Lock, Session, Wanted};
use crate::sql::{Column, Connection, Error, Kind, OptionalExtension, Result, Value};
use crate::sqlite::file::{self, Layout, Purpose};

/// The steps to this version's layout. The first makes all of it, as a file of SQLite has it after as many steps; each after
/// it comes as a pair. A step that has been released is never edited.
///
/// Where servers of an older layout may go on (`runs_from`), a step adds: columns with a default, tables, indexes, values that a
/// check allows. It changes no column's type and writes no table anew, for their readers would find it empty for a moment.
const STEPS: &[Step] = &[
    Step { layout: 4, runs_from: 4, sql: include_str!("postgres/migrations/0004_start.sql") },
    Step { layout: 5, runs_from: 4, sql: include_str!("postgres/migrations/0005_keys.sql") },
];

/// One step.
#[derive(Clone)]
struct Step {
    /// The layout that it leads to.
    layout: i64,
    /// The oldest layout whose version may go on running on it: servers are replaced one after the other.
    runs_from: i64,
    sql: &'static str,
}

/// How long a step waits for a table: who wants that one meanwhile has to wait behind it. It is less than PostgreSQL's
/// `deadlock_timeout` (1 s), so that of two who wait for each other it is always the step that gives way.
const STEP_WAITS: &str = "500ms";
/// How often, and how far apart, steps are tried that found somebody in their way.
const TRIES: u32 = 60;
const BETWEEN: Duration = Duration::from_secs(1);

/// The steps that this process knows.
fn steps() -> &'static [Step] {
    next::steps().unwrap_or(STEPS)
}

/// What to do where the schema is taken.
pub(crate) const ELSEWHERE: &str = "give Chips a schema of its own: add options=-csearch_path%3Dchips to the URL";

/// The layout that this version makes.
fn known() -> i64 {
    steps().iter().map(|step| step.layout).max().unwrap_or_default()
}

/// That this version must not work on what a newer one has made of the schema, where that is so.
fn fits((layout, runs_from): (i64, i64)) -> Result<()> {
    let known = known();
    if layout > known && runs_from > known { Err(Error::Outgrown { layout, known }) } else { Ok(()) }
}

/// That this version may still work on the schema.
pub(crate) fn still_fits(connection: &Connection) -> Result<()> {
    fits(connection.query_row("SELECT layout, runs_from FROM meta", [], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

impl Location {
    /// Opens a connection.
    pub(crate) fn connect(&self, purpose: Purpose) -> std::result::Result<Connection, OpenError> {
        match self {
            Self::Folder(dir) => file::connect(dir, purpose).map(Connection::from),
            // A server may come back set otherwise.
            Self::Database(database) if purpose == Purpose::Serve => {
                connect(database, Wanted::Writes).and_then(|connection| trusted(database, connection))
            }
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
            (Self::Database(database), error) => failed(database, error),
        }
    }
}

/// An error of a session with a database.
fn failed(database: &Database, error: &Error) -> OpenError {
    if error.is_away() {
        return OpenError::Away { database: database.to_string(), reason: error.to_string() };
    }
    if error.takes_no_writes() {
        return unfit_for(database, error.to_string());
    }
    told(database, error)
}

fn unfit_for(database: &Database, reason: String) -> OpenError {
    OpenError::Unfit { database: database.to_string(), reason }
}

fn told(database: &Database, reason: impl std::fmt::Display) -> OpenError {
    OpenError::Database { database: database.to_string(), reason: reason.to_string() }
}

fn connect(database: &Database, wanted: Wanted) -> std::result::Result<Connection, OpenError> {
    Session::connect(database, wanted).map(Connection::from).map_err(|error| failed(database, &error))
}

/// Opens a connection for serving or administration, on a server that keeps what it acknowledges.
///
/// # Errors
/// It can't be reached, is a standby, or is set to lose what it acknowledged.
pub(crate) fn open(database: &Database) -> std::result::Result<Connection, OpenError> {
    connect(database, Wanted::Anything).and_then(|connection| trusted(database, connection))
}

/// A connection, where its server keeps what it acknowledges.
fn trusted(database: &Database, connection: Connection) -> std::result::Result<Connection, OpenError> {
    match unfit(&connection) {
        Ok(None) => Ok(connection),
        Ok(Some(reason)) => Err(unfit_for(database, reason)),
        Err(error) => Err(failed(database, &error)),
    }
}

/// Why a server must not be trusted with a log.
fn unfit(connection: &Connection) -> Result<Option<String>> {
    let (standby, [fsync, pages, commit, number, version, encoding, read_only]): (bool, [String; 7]) = connection
        .query_row(
            "SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'),
                    current_setting('synchronous_commit'), current_setting('server_version_num'),
                    current_setting('server_version'), current_setting('server_encoding'),
                    (SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_read_only')",
            [],
            |row| {
                let mut told: [String; 7] = Default::default();
                for (at, told) in told.iter_mut().enumerate() {
                    *told = row.get(at + 1)?;
                }
                Ok((row.get(0)?, told))
            },
        )?;
    let reason = if number.parse().unwrap_or(0) < 130_000 {
        format!("this server is PostgreSQL {version}; Chips needs 13 or newer")
    } else if standby {
        "this server is a standby and can be read alone; give the primary, or several hosts, of which the one that takes writes \
         is found"
            .to_owned()
    } else if read_only != "off" {
        "this role or this database is set to be read alone (default_transaction_read_only is on); ALTER ROLE or ALTER DATABASE with \
         RESET default_transaction_read_only ends that"
            .to_owned()
    } else if fsync != "on" {
        "fsync is off on this server: after a power cut it has lost what it acknowledged; set fsync = on".to_owned()
    } else if pages != "on" {
        "full_page_writes is off on this server: a power cut can leave pages that are half old and half new; set \
         full_page_writes = on"
            .to_owned()
    } else if commit != "on" && commit != "remote_apply" {
        format!("synchronous_commit is {commit} in spite of what this session says; set it to on")
    } else if encoding != "UTF8" {
        format!(
            "this database has the encoding {encoding}, which can't hold every text; give one that has UTF-8 \
             (createdb --encoding=UTF8 --template=template0)"
        )
    } else {
        return Ok(None);
    };
    Ok(Some(reason))
}

/// Why a schema is left alone into which a data folder is being moved.
pub(crate) const MOVING: &str = "a data folder is being moved here, and not all of it is here yet; wait for the `chips migrate` that does it, or run \
     it again where it was cut short";

/// How the schema that a connection works in relates to this version's.
///
/// # Errors
/// A newer version's that this one can't work on, something else stands there under Chips' names, or a data folder is being
/// moved there.
pub(crate) fn layout(database: &Database, connection: &Connection) -> std::result::Result<Layout, OpenError> {
    match is_moving(connection) {
        Ok(false) => layout_so_far(database, connection),
        Ok(true) => Err(told(database, MOVING)),
        Err(error) => Err(told(database, &error)),
    }
}

/// Whether a data folder is being moved into the schema: what is there belongs to that alone until it is done.
pub(crate) fn is_moving(connection: &Connection) -> Result<bool> {
    connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'moving' AND relnamespace = current_schema()::regnamespace)",
        [],
        |row| row.get(0),
    )
}

/// As [`layout`], of a schema into which a data folder may be being moved.
///
/// # Errors
/// As [`layout`].
pub(crate) fn layout_so_far(database: &Database, connection: &Connection) -> std::result::Result<Layout, OpenError> {
    let found = read(connection).map_err(|error| told(database, &error))?;
    let Some((layout, _)) = found else { return Ok(Layout::None) };
    found.map_or(Ok(()), fits).map_err(|error| told(database, &error))?;
    Ok(if layout < known() { Layout::Older } else { Layout::Current })
}

/// The layout, and the oldest one whose version may work on it.
fn read(connection: &Connection) -> Result<Option<(i64, i64)>> {
    let ours: Option<bool> = connection
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = c.oid AND attname = 'runs_from') FROM pg_class c
             WHERE relname = 'meta' AND relnamespace = current_schema()::regnamespace",
            [],
            |row| row.get(0),
        )
        .optional()?;
    match ours {
        None => return Ok(None),
        Some(true) => {}
        Some(false) => {
            return Err(Error::Odd(format!("a table meta stands here that is not Chips' own; {ELSEWHERE}")));
        }
    }
    connection.query_row("SELECT layout, runs_from FROM meta", [], |row| Ok(Some((row.get(0)?, row.get(1)?))))
}

/// Takes the steps that are missing, all in one transaction. Several servers may try at once: one of them does it. Where somebody
/// has held a table for long, it is tried again for a while, and let go in between: those who write meanwhile must not wait as long.
pub(crate) fn migrate(database: &Database, connection: &mut Connection) -> std::result::Result<(), OpenError> {
    match layout(database, connection)? {
        Layout::Current => Ok(()),
        Layout::None | Layout::Older => bring_up(database, connection, Whose::Servers),
    }
}

/// Whom a schema belongs to, as far as the one who makes its tables knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Whoever serves and administers it.
    Servers,
    /// A move of a data folder, which has marked it.
    TheMoves,
}

/// The same, of a schema that may belong to a move of a data folder.
///
/// # Errors
/// As [`migrate`].
pub(crate) fn bring_up(
    database: &Database,
    connection: &Connection,
    whose: Whose,
) -> std::result::Result<(), OpenError> {
    for tried in 1.. {
        if layout_so_far(database, connection)? == Layout::Current {
            break;
        }
        let Err(error) = take_steps(connection, whose) else { break };
        connection.rollback();
        if !matches!(error.kind(), Kind::Busy | Kind::Again) {
            return Err(failed(database, &error));
        }
        let holder = in_the_way(connection).map_err(|error| failed(database, &error))?;
        if tried == TRIES {
            return Err(told(
                database,
                format_args!("the tables can't be brought up to date: {holder} holds them; end that, and start again"),
            ));
        }
        if tried == 1 {
            tracing::warn!(
                holder,
                "the tables are to be brought up to date, and somebody holds them: it is tried again"
            );
        }
        // Parking would end at once where a thread that spoke for this one to the database has just ended.
        #[allow(clippy::disallowed_methods)]
        std::thread::sleep(BETWEEN);
    }
    Ok(())
}

/// Why the tables can't be made in the schema, where that is so, and what helps.
///
/// # Errors
/// It can't be asked.
pub(crate) fn may_not_make(connection: &Connection) -> Result<Option<(String, String)>> {
    let names = STEPS[0].sql.lines().filter_map(|line| line.strip_prefix("CREATE TABLE ")?.split([' ', '(']).next());
    let names: Vec<_> = names.map(Value::Text).collect();
    let taken: Option<String> = connection.query_row(
        "SELECT min(relname)::text FROM pg_class WHERE relname = ANY (?1) AND relnamespace = current_schema()::regnamespace",
        vec![Value::List(Column::Text, &names)],
        |row| row.get(0),
    )?;
    match taken {
        Some(table) => {
            Ok(Some((format!("something else is in this schema already (a table {table})"), ELSEWHERE.to_owned())))
        }
        None => lacks_rights(connection),
    }
}

/// Which rights the role lacks to make tables, or the schema before, and what gives them. A schema that the search path names first
/// and the role may not look into is one of them: PostgreSQL passes it over, and the tables would lie where nobody wanted them.
///
/// # Errors
/// It can't be asked.
pub(crate) fn lacks_rights(connection: &Connection) -> Result<Option<(String, String)>> {
    connection.query_row(
        r#"WITH path AS (SELECT btrim(name) AS name, nth FROM unnest(string_to_array(current_setting('search_path'), ','))
             WITH ORDINALITY AS p (name, nth)),
         first AS (SELECT n.oid, n.nspname FROM path JOIN pg_namespace n ON n.nspname =
             CASE WHEN path.name LIKE '"%' THEN replace(btrim(path.name, '"'), '""', '"') ELSE lower(path.name) END
             WHERE path.name <> '"$user"' ORDER BY nth LIMIT 1),
         wanted AS (SELECT CASE WHEN EXISTS (SELECT 1 FROM first WHERE NOT has_schema_privilege(oid, 'USAGE'))
                 THEN (SELECT format('USAGE, CREATE ON SCHEMA %I', nspname) FROM first)
             WHEN current_schema() IS NULL AND NOT has_database_privilege(current_database(), 'CREATE')
                 THEN format('CREATE ON DATABASE %I', current_database())
             WHEN current_schema() IS NOT NULL AND NOT has_schema_privilege(current_schema(), 'CREATE')
                 THEN format('CREATE ON SCHEMA %I', current_schema()) END AS rights)
         SELECT rights, format('%I', current_user) FROM wanted"#,
        [],
        |row| {
            let (rights, role): (Option<String>, String) = (row.get(0)?, row.get(1)?);
            Ok(rights.map(|rights| {
                let mend = format!("its owner can allow it: GRANT {rights} TO {role}");
                ("this role may not make tables there".to_owned(), mend)
            }))
        },
    )
}

fn take_steps(connection: &Connection, whose: Whose) -> Result<()> {
    let session = connection.postgres().ok_or_else(|| Error::Odd("this is no PostgreSQL".to_owned()))?;
    connection.begin_write()?;
    // Another one that takes steps takes as long as they take.
    session.batch("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0")?;
    session.lock(Lock::Migrate)?;
    session.batch(&format!("SET LOCAL lock_timeout = '{STEP_WAITS}'"))?;
    if read(connection)?.is_none()
        && let Some((reason, mend)) = lacks_rights(connection)?
    {
        return Err(Error::Odd(format!("{reason}; {mend}")));
    }
    // Behind the lock: two that make it at once get in each other's way, IF NOT EXISTS or not.
    session.make_schema()?;
    // It may have begun since the look.
    if whose == Whose::Servers && is_moving(connection)? {
        return Err(Error::Odd(MOVING.to_owned()));
    }
    let found = read(connection)?;
    found.map_or(Ok(()), fits)?;
    let taken = found.map_or(0, |(layout, _)| layout);
    if taken == 0
        && let Some((reason, mend)) = may_not_make(connection)?
    {
        return Err(Error::Odd(format!("{reason}; {mend}")));
    }
    let missing = || steps().iter().filter(move |step| step.layout > taken);
    if taken > 0 && missing().any(|step| step.runs_from > taken) {
        // Servers are shut out that may be running. Each of their transactions that writes has read `meta` before anything else:
        // it is over before the steps, or begins after them and sees that it must not.
        session.lock(Lock::Administer)?;
        session.batch("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE")?;
    }
    for step in missing() {
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
}

/// Who has held one of the tables for the longest time.
fn in_the_way(connection: &Connection) -> Result<String> {
    let found: Option<(i64, Option<String>, Option<i64>)> = connection
        .query_row(
            "SELECT a.pid::bigint, a.application_name, floor(extract(epoch FROM clock_timestamp() - a.xact_start))::bigint
             FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND EXISTS (
                 SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                 WHERE l.pid = a.pid AND l.granted AND c.relnamespace = current_schema()::regnamespace)
             ORDER BY a.xact_start LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()?;
    Ok(match found {
        None => "somebody who is gone by now".to_owned(),
        Some((pid, name, seconds)) => {
            let name = name.filter(|name| !name.is_empty()).map(|name| format!(" ({name})")).unwrap_or_default();
            let since = seconds.map(|seconds| format!(", in a transaction of {seconds} s,")).unwrap_or_default();
            format!("PostgreSQL's process {pid}{name}{since}")
        }
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
        // What shut a version out once lets it in with no later step.
        assert!(STEPS.is_sorted_by_key(|step| step.runs_from));
    }
}
