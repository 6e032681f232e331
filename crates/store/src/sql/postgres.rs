//! The driver for PostgreSQL: one session at a time, its statements prepared once.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postgres::binary_copy::BinaryCopyInWriter;
use postgres::config::TargetSessionAttrs;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{ToSql, Type};
use postgres::{Client, Row, SimpleQueryMessage};

use super::postgres_tls::Tls;
use super::{Error, Kind, Result, Value};
use crate::location::Database;

/// How long it may take to reach the server, where the URL says nothing else.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a server may take until a session with it has begun, where somebody waits for that alone.
const ANSWER: Duration = Duration::from_secs(10);
/// How long the network may be silent about what was sent before a connection is given up.
const SILENCE: Duration = Duration::from_secs(15);
/// After how much silence the driver asks whether the server is still there, where the URL says nothing else.
const TWO_HOURS: Duration = Duration::from_secs(2 * 60 * 60);
/// Rows that one step of a long result brings.
const STEP: i64 = 128;

/// What every session says first. Nothing is acknowledged that is not on the disk: whoever asked for more (on the standbys'
/// disks and visible there) gets that. A process that is stopped in the middle of a transaction must not hold others up, and
/// whoever waits for it is told. The warning about replication that was not waited for has to come.
const GREETING: &str = "SELECT set_config('synchronous_commit',
        CASE WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false),
    set_config('idle_in_transaction_session_timeout', '10s', false), set_config('lock_timeout', '12s', false),
    set_config('client_min_messages', 'warning', false), set_config('default_transaction_read_only', 'off', false)";

/// The schemas of the search path that are there, and which of them hold a store.
const SCHEMAS: &str =
    "SELECT named.name::text, EXISTS (SELECT 1 FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid
        WHERE t.relnamespace = n.oid AND t.relname = 'meta' AND a.attname = 'runs_from')
    FROM unnest(current_schemas(false)) WITH ORDINALITY named(name, place)
    JOIN pg_namespace n ON n.nspname = named.name ORDER BY named.place";

/// What sessions lock out each other for, within one schema.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    /// Bringing the schema to a layout.
    Migrate = 1,
    /// An administrative act.
    Administer = 2,
    /// Claiming messages that are due.
    Claim = 3,
    /// Moving a data folder into the schema.
    Move = 4,
}

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A server that takes writes.
    Writes,
    /// Any server, to find out what it is.
    Anything,
}

/// A session with a PostgreSQL server.
pub(crate) struct Session {
    client: RefCell<Option<Client>>,
    prepared: RefCell<HashMap<String, postgres::Statement>>,
    open: Cell<bool>,
    /// Results that are being fetched step by step.
    cursors: Cell<u32>,
    /// The server said that it did not wait for a standby.
    unwaited: Arc<AtomicBool>,
    /// The number of the schema that it works in; 0 where it is not there yet.
    schema: Cell<i64>,
    database: Database,
}

impl Session {
    /// Opens a session. Who wants one with any server has no other way to tell that a server is silent, and is told so.
    pub(crate) fn connect(database: &Database, wanted: Wanted) -> Result<Self> {
        match wanted {
            Wanted::Writes => Self::connect_at_last(database, wanted),
            Wanted::Anything => {
                let (asked, (answer, answered)) = (database.clone(), std::sync::mpsc::channel());
                // Nobody may be there for the answer any more.
                let ask = move || drop(answer.send(Self::connect_at_last(&asked, wanted)));
                std::thread::Builder::new().spawn(ask).map_err(|error| Error::Odd(error.to_string()))?;
                answered.recv_timeout(ANSWER).unwrap_or_else(|_| {
                    Err(Error::Unreachable(format!("the server says nothing for {} s", ANSWER.as_secs())))
                })
            }
        }
    }

    fn connect_at_last(database: &Database, wanted: Wanted) -> Result<Self> {
        let mut config = database.reach().config.clone();
        if config.get_application_name().is_none() {
            config.application_name("chips");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        if config.get_keepalives_idle() == TWO_HOURS {
            config.keepalives_idle(SILENCE).keepalives_interval(SILENCE / 3).keepalives_retries(3);
        }
        if wanted == Wanted::Writes {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let unwaited = Arc::new(AtomicBool::new(false));
        let warned = Arc::clone(&unwaited);
        config.notice_callback(move |notice| {
            // By the routine, for the words are in the language of the server.
            if notice.routine() == Some("SyncRepWaitForLSN") {
                warned.store(true, Ordering::SeqCst);
            }
            tracing::debug!(severity = notice.severity(), said = notice.message(), "PostgreSQL says");
        });
        let tls = Tls::new(&database.reach().trust).map_err(Error::Unreachable)?;
        let client = outside(|| config.connect(tls))?;
        let session = Self {
            client: RefCell::new(Some(client)),
            prepared: RefCell::default(),
            open: Cell::new(false),
            cursors: Cell::new(0),
            unwaited,
            schema: Cell::new(0),
            database: database.clone(),
        };
        session.batch(GREETING)?;
        session.settle_in_schema()?;
        Ok(session)
    }

    /// Works from here on in the schema that holds the store, or where there is none in the first one of the search path.
    fn settle_in_schema(&self) -> Result<()> {
        let pinned = &self.database.reach().schema;
        if pinned.get().is_none() {
            let mut stores = Vec::new();
            let mut rows = self.query(SCHEMAS, &[])?;
            while let Some(row) = rows.next()? {
                let (name, holds): (String, bool) = (row.try_get(0)?, row.try_get(1)?);
                if holds {
                    stores.push(name);
                }
            }
            match stores.as_slice() {
                [] => {}
                [store] => drop(pinned.set(store.clone())),
                _ => {
                    return Err(Error::Odd(format!(
                        "there are several stores on the search path, in the schemas {}; say which one at the end of the URL: \
                         ?options=-csearch_path%3D{}",
                        stores.join(" and "),
                        stores.last().map(String::as_str).unwrap_or_default()
                    )));
                }
            }
        }
        if let Some(schema) = pinned.get() {
            let path = format!("\"{}\"", schema.replace('"', "\"\""));
            self.query("SELECT set_config('search_path', $1, false)", &[Value::Text(&path)]).map(drop)?;
        } else {
            self.batch("SELECT set_config('search_path', current_setting('search_path'), false)")?;
        }
        self.look_for_schema()
    }

    fn look_for_schema(&self) -> Result<()> {
        let found = self.query("SELECT current_schema()::regnamespace::oid", &[])?.next()?;
        let schema: Option<u32> = found.map(|row| row.try_get(0)).transpose()?.flatten();
        self.schema.set(schema.map(i64::from).unwrap_or_default());
        Ok(())
    }

    /// Makes the schema that the search path names first, where none of those that it names is there.
    pub(crate) fn make_schema(&self) -> Result<()> {
        if self.schema.get() != 0 {
            return Ok(());
        }
        let found = self.query("SELECT current_setting('search_path')", &[])?.next()?;
        let path: String = found.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
        let named = path.split(',').map(|name| name.trim().trim_matches('"')).find(|name| *name != "$user");
        let name = named.filter(|name| !name.is_empty()).ok_or_else(|| {
            Error::Odd("the search_path of this session names no schema; give one in the URL".to_owned())
        })?;
        self.batch(&format!("CREATE SCHEMA IF NOT EXISTS \"{}\"", name.replace('"', "\"\"")))?;
        self.look_for_schema()
    }

    /// Whether the connection is known to be gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.borrow().as_ref().is_none_or(Client::is_closed)
    }

    pub(crate) fn in_transaction(&self) -> bool {
        self.open.get()
    }

    /// The channel on which the writers of this schema say that there is something new.
    pub(crate) fn channel(&self) -> String {
        format!("chips_{}", self.schema.get())
    }

    fn with<T: Send>(
        &self,
        act: impl FnOnce(&mut Client) -> std::result::Result<T, postgres::Error> + Send,
    ) -> Result<T> {
        let mut client = self.client.borrow_mut();
        let client = client.as_mut().ok_or_else(|| Error::Unreachable("the session has ended".to_owned()))?;
        tracing::trace!("asks PostgreSQL");
        Ok(outside(|| act(client))?)
    }

    pub(crate) fn batch(&self, sql: &str) -> Result<()> {
        self.with(|client| client.batch_execute(sql))
    }

    pub(crate) fn begin(&self, sql: &str) -> Result<()> {
        self.batch(sql)?;
        self.open.set(true);
        Ok(())
    }

    /// Begins what a server writes, and tells how far the schema was brought and which layout's versions may work on it: in one go,
    /// and before anything else is looked at, so that a step that shuts this version out comes before all of it or after.
    pub(crate) fn begin_beside(&self) -> Result<(i64, i64)> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT layout, runs_from FROM meta";
        self.open.set(true);
        let told = self.with(|client| client.simple_query(BEGIN)).and_then(|messages| {
            let number = |row: &postgres::SimpleQueryRow, at| row.get(at).and_then(|text| text.parse().ok());
            let found = messages.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some((number(row, 0)?, number(row, 1)?)),
                _ => None,
            });
            found.ok_or(Error::NoRows)
        });
        if told.is_err() {
            self.rollback();
        }
        told
    }

    /// Commits. [`Error::Unknown`] where it can't be said whether that happened, or whether it lasts.
    pub(crate) fn commit(&self) -> Result<()> {
        self.unwaited.store(false, Ordering::SeqCst);
        self.open.set(false);
        match self.batch("COMMIT") {
            Ok(()) if self.unwaited.load(Ordering::SeqCst) => {
                Err(Error::Unknown("PostgreSQL did not wait for the standby".to_owned()))
            }
            Ok(()) => Ok(()),
            Err(Error::Postgres(error))
                if !self.is_closed() && error.as_db_error().is_some_and(|said| said.severity() == "ERROR") =>
            {
                Err(Error::Postgres(error))
            }
            Err(error) => Err(Error::Unknown(error.to_string())),
        }
    }

    /// Takes everything back since the begin. What was not committed when the connection ended is taken back as well.
    pub(crate) fn rollback(&self) -> bool {
        let open = self.open.replace(false);
        if open && self.batch("ROLLBACK").is_err() {
            self.end();
        }
        true
    }

    /// Ends the session.
    pub(crate) fn end(&self) {
        self.prepared.borrow_mut().clear();
        let client = self.client.borrow_mut().take();
        outside(move || drop(client));
    }

    /// Takes a lock until the end of the transaction, or of the session where none is open.
    pub(crate) fn lock(&self, lock: Lock) -> Result<()> {
        let call = if self.open.get() { "pg_advisory_xact_lock" } else { "pg_advisory_lock" };
        self.query(&format!("SELECT {call}({}, {})", self.schema.get() as i32, lock as i32), &[]).map(drop)
    }

    /// Takes a lock until the end of the transaction if nobody has it.
    pub(crate) fn try_lock(&self, lock: Lock) -> Result<bool> {
        let sql = format!("SELECT pg_try_advisory_xact_lock({}, {})", self.schema.get() as i32, lock as i32);
        match self.query(&sql, &[])?.next()? {
            Some(row) => Ok(row.try_get(0)?),
            None => Ok(false),
        }
    }

    /// Waits for the word of a writer, for at most this long. True where one came.
    pub(crate) fn wait(&self, longest: Duration) -> Result<bool> {
        let came = self.with(|client| {
            let mut notifications = client.notifications();
            let came = notifications.timeout_iter(longest).next()?.is_some();
            let mut more = notifications.iter();
            while more.next()?.is_some() {}
            Ok(came)
        })?;
        // The end of the connection is no word either.
        if !came && self.is_closed() {
            return Err(Error::Unreachable("the connection has ended".to_owned()));
        }
        Ok(came)
    }

    fn run<T: Send>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        act: impl FnOnce(
            &mut Client,
            &postgres::Statement,
            &[&(dyn ToSql + Sync)],
        ) -> std::result::Result<T, postgres::Error>
        + Send,
    ) -> Result<T> {
        let known = self.prepared.borrow().get(sql).cloned();
        let statement = match known {
            Some(statement) => statement,
            None => {
                let types: Vec<Type> = values.iter().map(Value::postgres_type).collect();
                let statement = self.with(|client| client.prepare_typed(sql, &types))?;
                self.prepared.borrow_mut().insert(sql.to_owned(), statement.clone());
                statement
            }
        };
        let params: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        let done = self.with(|client| act(client, &statement, &params));
        if done.as_ref().is_err_and(|error| error.kind() == Kind::Again) {
            // It may have been prepared for a schema that was another one.
            self.prepared.borrow_mut().clear();
        }
        done
    }

    pub(crate) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<usize> {
        let changed = self.run(sql, values, |client, statement, params| client.execute(statement, params))?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// All rows at once.
    pub(crate) fn query(&self, sql: &str, values: &[Value<'_>]) -> Result<Fetched<'_>> {
        let rows = self.run(sql, values, |client, statement, params| client.query(statement, params))?;
        Ok(Fetched { session: self, rows: rows.into(), cursor: None })
    }

    /// Some rows at a time; all at once where no transaction is open.
    pub(crate) fn query_in_steps(&self, sql: &str, values: &[Value<'_>]) -> Result<Fetched<'_>> {
        if !self.open.get() {
            return self.query(sql, values);
        }
        let cursor = self.cursors.get() + 1;
        self.execute(&format!("DECLARE chips_{cursor} NO SCROLL CURSOR FOR {sql}"), values)?;
        self.cursors.set(cursor);
        Ok(Fetched { session: self, rows: VecDeque::new(), cursor: Some(cursor) })
    }
}

impl Session {
    /// Gives each row of a long result to `act` as it comes. It ends with the first error.
    pub(crate) fn each(&self, sql: &str, mut act: impl FnMut(&super::Row<'_>) -> Result<()> + Send) -> Result<()> {
        self.with(|client| {
            let mut rows = client.query_raw(sql, std::iter::empty::<&(dyn ToSql + Sync)>())?;
            while let Some(row) = rows.next()? {
                if let Err(error) = act(&super::Row::Postgres(row)) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        })?
    }

    /// Writes many rows at once. `sql` is a `COPY … FROM STDIN (FORMAT binary)` of as many columns as each row has.
    pub(crate) fn copy_in(&self, sql: &str, rows: &[Vec<Value<'_>>]) -> Result<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        let types: Vec<Type> = first.iter().map(Value::postgres_type).collect();
        self.with(|client| {
            let mut writer = BinaryCopyInWriter::new(client.copy_in(sql)?, &types);
            for row in rows {
                writer.write_raw(row.iter().map(|value| value as &(dyn ToSql + Sync)))?;
            }
            writer.finish().map(drop)
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

/// Rows that were fetched, and where there are more.
pub(crate) struct Fetched<'s> {
    session: &'s Session,
    rows: VecDeque<Row>,
    cursor: Option<u32>,
}

impl Fetched<'_> {
    pub(crate) fn next(&mut self) -> Result<Option<Row>> {
        if self.rows.is_empty()
            && let Some(cursor) = self.cursor
        {
            let sql = format!("FETCH FORWARD {STEP} FROM chips_{cursor}");
            // A cursor gives the columns of its statement: this can't be prepared for another one of the same name.
            let rows = self.session.with(|client| client.query_typed(&sql, &[]))?;
            if (rows.len() as i64) < STEP {
                self.close();
            }
            self.rows = rows.into();
        }
        Ok(self.rows.pop_front())
    }

    fn close(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            self.session.cursors.set(cursor - 1);
            // A transaction that failed meanwhile has closed it already.
            if self.session.in_transaction() {
                let _ = self.session.batch(&format!("CLOSE chips_{cursor}"));
            }
        }
    }
}

impl Drop for Fetched<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

/// A statement in PostgreSQL's words: `?1` is `$1`, and what tells SQLite's planner which index to take is left out. There is
/// neither in a text, for every text is a parameter.
pub(crate) fn translate(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut words = sql.split(' ');
    while let Some(word) = words.next() {
        match word.trim_end() {
            "INDEXED" => {
                // `BY name`
                words.next();
                words.next();
                continue;
            }
            "NOT" if words.clone().next().is_some_and(|next| next.trim_end() == "INDEXED") => {
                words.next();
                continue;
            }
            _ => {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(&word.replace('?', "$"));
            }
        }
    }
    out
}

thread_local! {
    /// Whether this thread may wait although a runtime is current: it is one for blocking work.
    static MAY_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// Says that this thread is one for blocking work.
pub(crate) fn may_wait() {
    MAY_WAIT.set(true);
}

/// Runs what waits for the network. A thread that drives tasks must not wait: there another one does it, and what is short
/// (opening, an administrative act) is waited for.
fn outside<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    if MAY_WAIT.get() || tokio::runtime::Handle::try_current().is_err() {
        return act();
    }
    std::thread::scope(|scope| match scope.spawn(act).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_in_the_words_of_postgresql() {
        let told = translate("SELECT a FROM b INDEXED BY b_by_c WHERE c = ?1 AND d IN (?2,?3)");
        assert_eq!(told, "SELECT a FROM b WHERE c = $1 AND d IN ($2,$3)");
        assert_eq!(translate("SELECT a FROM b NOT INDEXED WHERE ?2 IS NULL"), "SELECT a FROM b WHERE $2 IS NULL");
        assert_eq!(translate("SELECT a FROM b NOT INDEXED\n WHERE c = ?1"), "SELECT a FROM b WHERE c = $1");
        assert_eq!(translate("SELECT a FROM b WHERE c NOT IN (1)"), "SELECT a FROM b WHERE c NOT IN (1)");
    }
}
