//! What is moved, read from the catalogs of both databases: a table or a column that this does not know how to carry ends the
//! move before it begins, rather than being left behind.

use sha2::{Digest as _, Sha256};

use crate::engine::rows::SEQ_BITS;
use crate::sql::{Column, Connection, Error, Found, FromSql, OptionalExtension, Result, Row, Value};

/// The tables, each after those that it refers to.
const TABLES: &[&str] = &[
    "workspaces",
    "spaces",
    "persons",
    "members",
    "harnesses",
    "agents",
    "tokens",
    "grants",
    "sessions",
    "runs",
    "run_labels",
    "events",
    "keys",
    "asks",
    "seen",
    "preferences",
    "endpoints",
    "outbox_cursors",
    "outbox",
    "attempts",
    "secrets",
    "erasures",
];

/// What is not moved row by row: `meta` is one row that is there before, and the others hold nothing of the store.
const BESIDE: &[&str] = &["meta", "nodes", "probe", "moving"];

/// What of `meta` is carried. The rest is about the folder or the schema itself; erased text is not left in what is written anew.
pub(super) const META: &str = "SELECT log_id, key_secret, admin_epoch, erasures FROM meta";
/// The columns of a folder's `meta` that [`META`] was made for.
const META_COLUMNS: &[&str] = &["one", "log_id", "key_secret", "admin_epoch", "erasures", "erasures_seen", "scrub"];

/// A column of the database's table.
#[derive(Debug, Clone)]
struct Target {
    name: String,
    holds: Column,
    identity: bool,
}

/// A table, and how its rows are read and written.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// Its name in both databases.
    pub(super) name: &'static str,
    columns: Vec<Target>,
    /// The same columns as the folder gives them, in SQLite's words.
    found: Vec<String>,
    /// The columns whose order its rows have, which is the same in both databases.
    key: Vec<String>,
    /// Whether the database has an index for that order which begins with the workspace: so do the places in a log.
    led: bool,
}

/// Every table.
///
/// # Errors
/// One of the databases can't be read, or has what this does not know.
pub(super) fn tables(source: &Connection, target: &Connection) -> Result<Vec<Table>> {
    let here = names(source, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")?;
    let there = names(target, RELATIONS)?;
    for name in here.iter().chain(&there) {
        if !TABLES.contains(&name.as_str()) && !BESIDE.contains(&name.as_str()) {
            return Err(unknown(format_args!("a table {name}")));
        }
    }
    for column in names(source, "SELECT name FROM pragma_table_info('meta')")? {
        if !META_COLUMNS.contains(&column.as_str()) {
            return Err(unknown(format_args!("a column meta.{column}")));
        }
    }
    TABLES.iter().map(|name| Table::find(name, source, target)).collect()
}

/// The names of all tables of the schema.
pub(super) const RELATIONS: &str = "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace
     AND relkind IN ('r', 'p') ORDER BY relname";

/// What a statement gives in its one column.
pub(super) fn names(connection: &Connection, sql: &str) -> Result<Vec<String>> {
    connection.prepare_cached(sql)?.query_map([], |row| row.get(0))?.collect()
}

impl Table {
    fn find(name: &'static str, source: &Connection, target: &Connection) -> Result<Self> {
        let mut here: Vec<(String, i64)> = source
            .prepare_cached(&format!("SELECT name, pk FROM pragma_table_info('{name}')"))?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_>>()?;
        let columns: Vec<Target> = target
            .prepare_cached(
                "SELECT a.attname, a.atttypid::regtype::text, a.attidentity <> '' FROM pg_attribute a
                 JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = current_schema()::regnamespace
                 AND c.relname = ?1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum",
            )?
            .query_map([name], |row| {
                let kind: String = row.get(1)?;
                let holds = match kind.as_str() {
                    "bigint" => Column::Int,
                    "text" => Column::Text,
                    "bytea" => Column::Blob,
                    other => return Err(unknown(format_args!("a column of {name} of the type {other}"))),
                };
                Ok(Target { name: row.get(0)?, holds, identity: row.get(2)? })
            })?
            .collect::<Result<_>>()?;
        if let Some((lost, _)) = here.iter().find(|(lost, _)| columns.iter().all(|column| column.name != *lost)) {
            return Err(unknown(format_args!("a column {name}.{lost} of the folder")));
        }
        let has = |wanted: &str| here.iter().any(|(column, _)| column == wanted);
        let found = columns
            .iter()
            .map(|Target { name: column, .. }| match has(column) {
                true => Ok(format!("\"{column}\"")),
                false => derived(name, column, has)
                    .ok_or_else(|| unknown(format_args!("a column {name}.{column} of the database"))),
            })
            .collect::<Result<_>>()?;
        here.retain(|(_, pk)| *pk > 0);
        here.sort_by_key(|(_, pk)| *pk);
        if here.is_empty() {
            return Err(unknown(format_args!("the order of {name}")));
        }
        let key: Vec<String> = here.into_iter().map(|(column, _)| column).collect();
        let first: Option<String> = target
            .prepare_cached(
                "SELECT a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
                 JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
                 WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ?1 AND i.indisprimary",
            )?
            .query_row([name], |row| row.get(0))
            .optional()?;
        let led = first.as_deref() == Some("ws_no") && ["pos", "ask_pos"].contains(&key[0].as_str());
        Ok(Self { name, columns, found, key, led })
    }

    /// Reads the rows of the folder in their order: all of them, or those after the key that is the parameters.
    pub(super) fn read_folder(&self, after: bool) -> String {
        let (found, key) = (self.found.join(", "), quoted(&self.key).join(", "));
        let places: Vec<String> = (1..=self.key.len()).map(|place| format!("?{place}")).collect();
        let after = if after { format!("WHERE ({key}) > ({}) ", places.join(", ")) } else { String::new() };
        format!("SELECT {found} FROM {} {after}ORDER BY {key}", self.name)
    }

    /// Reads the rows of the database in the same order.
    pub(super) fn read_database(&self) -> String {
        format!("SELECT {} FROM {} ORDER BY {}", self.column_names(), self.name, self.order("").join(", "))
    }

    /// Reads the last key of the database.
    pub(super) fn last(&self) -> String {
        let (key, order) = (quoted(&self.key).join(", "), self.order(" DESC").join(", "));
        format!("SELECT {key} FROM {} ORDER BY {order} LIMIT 1", self.name)
    }

    /// Writes rows of the database.
    pub(super) fn write(&self) -> String {
        format!("COPY {} ({}) FROM STDIN (FORMAT binary)", self.name, self.column_names())
    }

    /// How many columns its key has.
    pub(super) fn key_len(&self) -> usize {
        self.key.len()
    }

    /// The columns whose numbers the database gives.
    pub(super) fn numbered(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|column| column.identity).map(|column| column.name.as_str())
    }

    /// A row as it was read from either database.
    pub(super) fn row(&self, row: &Row<'_>) -> Result<Vec<Cell>> {
        let read = |at: usize| row.get(at);
        (0..self.columns.len()).map(read).collect::<Result<_>>().map_err(|error| match error {
            Error::Odd(what) => Error::Odd(format!("{}: {what}", self.name)),
            other => other,
        })
    }

    /// A row as it is written.
    pub(super) fn values<'r>(&self, row: &'r [Cell]) -> Vec<Value<'r>> {
        self.columns.iter().zip(row).map(|(column, cell)| cell.value(column.holds)).collect()
    }

    fn column_names(&self) -> String {
        self.columns.iter().map(|column| format!("\"{}\"", column.name)).collect::<Vec<_>>().join(", ")
    }

    /// The key's columns as PostgreSQL has to order them: texts by their bytes.
    fn order(&self, direction: &str) -> Vec<String> {
        let by_bytes = |key: &String| {
            let text = self.columns.iter().any(|column| column.name == *key && column.holds == Column::Text);
            format!("\"{key}\"{}{direction}", if text { " COLLATE \"C\"" } else { "" })
        };
        let lead = self.led.then(|| format!("\"ws_no\"{direction}"));
        lead.into_iter().chain(self.key.iter().map(by_bytes)).collect()
    }
}

/// What this version makes and does not carry: a fault of its own.
fn unknown(what: impl std::fmt::Display) -> Error {
    Error::Odd(format!("`chips migrate` of this version does not know how to carry {what}; nothing was changed"))
}

fn quoted(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("\"{name}\"")).collect()
}

/// How a column that only the database has follows from a folder, in SQLite's words.
fn derived(table: &str, column: &str, has: impl Fn(&str) -> bool) -> Option<String> {
    // The last event of a workspace, where one is kept.
    let last = |what: &str| {
        format!(
            "(SELECT {what} FROM events WHERE pos > workspaces.no << {SEQ_BITS} AND pos < (workspaces.no + 1) << {SEQ_BITS}
              ORDER BY pos DESC LIMIT 1)"
        )
    };
    match (table, column) {
        ("workspaces", "head") => {
            let seq = last(&format!("pos & ((1 << {SEQ_BITS}) - 1)"));
            Some(format!("max(kept_from - 1, coalesce({seq}, 0))"))
        }
        ("workspaces", "last_ts") => Some(format!("max(dropped_ts, coalesce({}, 0))", last("ts"))),
        // A place in the log begins with the workspace's number.
        (_, "ws_no") if has("pos") => Some(format!("pos >> {SEQ_BITS}")),
        (_, "ws_no") if has("ask_pos") => Some(format!("ask_pos >> {SEQ_BITS}")),
        (_, "ws_no") if has("run_no") => Some(format!("(SELECT r.ws_no FROM runs r WHERE r.no = {table}.run_no)")),
        _ => None,
    }
}

/// What stands in a column, as PostgreSQL can hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl FromSql for Cell {
    fn read(found: Found<'_>) -> Result<Self> {
        Ok(match found {
            Found::Null => Self::Null,
            Found::Int(number) => Self::Int(number),
            // A peer's words may have U+0000, which PostgreSQL can't hold.
            Found::Text(text) => Self::Text(text.replace('\0', "\u{FFFD}")),
            Found::Blob(bytes) => Self::Blob(bytes.to_owned()),
            Found::Other => return Err(Error::Odd("no number, no text and no bytes".to_owned())),
        })
    }
}

impl Cell {
    pub(super) fn value(&self, holds: Column) -> Value<'_> {
        match self {
            Self::Null => Value::Null(holds),
            Self::Int(number) => Value::Int(*number),
            Self::Text(text) => Value::Text(text),
            Self::Blob(bytes) => Value::Blob(bytes),
        }
    }

    /// The same as a parameter that is not null.
    pub(super) fn parameter(&self) -> Value<'_> {
        self.value(Column::Int)
    }

    /// Bytes that it takes, about.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Null | Self::Int(_) => 8,
            Self::Text(text) => text.len() + 8,
            Self::Blob(bytes) => bytes.len() + 8,
        }
    }
}

/// How many rows there are and a hash of what stands in them, row by row in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    rows: u64,
    hash: Sha256,
}

impl Content {
    pub(super) fn add(&mut self, row: &[Cell]) {
        self.rows += 1;
        for cell in row {
            match cell {
                Cell::Null => self.hash.update([0]),
                Cell::Int(number) => {
                    self.hash.update([1]);
                    self.hash.update(number.to_be_bytes());
                }
                Cell::Text(text) => self.part(2, text.as_bytes()),
                Cell::Blob(bytes) => self.part(3, bytes),
            }
        }
    }

    fn part(&mut self, kind: u8, bytes: &[u8]) {
        self.hash.update([kind]);
        self.hash.update((bytes.len() as u64).to_be_bytes());
        self.hash.update(bytes);
    }

    pub(super) fn sum(self) -> Sum {
        Sum { rows: self.rows, sha256: self.hash.finalize().into() }
    }
}

/// What a table holds, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) rows: u64,
    pub(super) sha256: [u8; 32],
}

/// One name for what all of the tables hold.
pub(super) fn whole(sums: &[Sum]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for sum in sums {
        hash.update(sum.rows.to_be_bytes());
        hash.update(sum.sha256);
    }
    hash.finalize().into()
}
