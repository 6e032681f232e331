//! Moves a data folder into a schema of PostgreSQL: the same history, so that cursors, tokens, keys and sessions stay good.
//!
//! Rows are written in the order of their keys, some of them in each transaction; so what is there says how far it has come,
//! and a move that was cut short goes on where it was. The folder is read twice: once for a hash of all that it holds, by which
//! a change between two runs is known, and which is held against the database at the end; and once to be written. While a table `moving`
//! stands in the schema, servers and administration leave it alone.

mod source;
mod tables;
mod target;

use std::ops::ControlFlow;
use std::path::Path;

use chips_protocol::{Timestamp, WorkspaceId};

use self::source::Source;
use self::tables::{Cell, Content, Sum, Table, tables, whole};
use self::target::{Standing, Standings, Target};
use super::AdminError;
use crate::location::Database;
use crate::sql::{self, Connection};
use crate::stops::stop;

/// What is said where it was cut short.
const AGAIN: &str = "run the same again, and it goes on where it was";
/// Rows between two times that somebody is told how far it has come.
const TOLD_EVERY: u64 = 5_000;

/// How much one transaction carries at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Rows.
    pub rows: usize,
    /// Bytes, about; one row may have more.
    pub bytes: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self { rows: 10_000, bytes: 4 << 20 }
    }
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The folder is read.
    Reading,
    /// Rows are written.
    Copying,
    /// What was written is read again and compared.
    Verifying,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is being done.
    pub phase: Phase,
    /// The table that it is at.
    pub table: &'a str,
    /// Rows that are done, over all tables.
    pub rows: u64,
    /// Rows of all tables, once that is known.
    pub of: Option<u64>,
}

/// Is told now and then how far it has come, and may stop it.
pub type Tell<'a> = &'a mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send);

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// From the beginning to the end.
    AtOnce,
    /// A move that was cut short was taken up again.
    GoneOn,
    /// The folder had changed since a move was cut short, so it began anew.
    Anew,
    /// All of it was there before; nothing was changed.
    Before,
}

/// A table that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedTable {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// The SHA-256 of what stands in them, which is the same in both places.
    pub sha256: [u8; 32],
}

/// A workspace's log that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedLog {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The `seq` of its last event.
    pub head: u64,
    /// The `ts` of that.
    pub last_ts: Timestamp,
}

/// What was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The name of the history of the log: the same in both places.
    pub log: String,
    /// How it went.
    pub how: How,
    /// The tables, but for those of [`How::Before`].
    pub tables: Vec<MovedTable>,
    /// The logs, but for those of [`How::Before`].
    pub logs: Vec<MovedLog>,
}

/// Moves the store of a folder into an empty schema, or goes on with a move of the same folder that was cut short. No server may
/// run on the folder, and whoever administers it waits; the folder stays as it is. Only once everything is there and was compared
/// with the folder, servers are let at the schema.
///
/// # Errors
/// The folder has no workspace, a server runs on it or another version wrote it; the database can't be reached, must not be
/// trusted or holds something else; either can't be read or written; or what was written differs from what was read.
/// Run again, it goes on where it was.
pub fn migrate(dir: &Path, database: &Database, batch: Batch, tell: Tell<'_>) -> Result<Moved, AdminError> {
    let source = Source::open(dir)?;
    let mut target = Target::open(database)?;
    let mut teller = Teller { tell, rows: 0, of: None, since: 0 };
    let standing = target.standing(&source)?;
    let log = source.log.clone();
    if standing == Standing::Done {
        target.has_all_of(&source)?;
        return Ok(Moved { log, how: How::Before, tables: Vec::new(), logs: Vec::new() });
    }
    if standing == Standing::Free {
        target.mark(&source)?;
    }
    // What the tables are like is read from those of the database: they have to be there first.
    target.take_steps()?;
    let found = tables(&source.connection, &target.connection).map_err(|error| source.told(&error))?;
    let sums = source.sums(&found, &mut teller)?;
    let state = whole(&sums);
    let how = match &standing {
        Standing::Begun(before) if *before == state => How::GoneOn,
        standing => {
            target.begin(&source, &found, &state)?;
            let changed = matches!(standing, Standing::Begun(before) if !before.is_empty());
            if changed { How::Anew } else { How::AtOnce }
        }
    };
    teller.begin(sums.iter().skip(1).map(|sum| sum.rows).sum());
    copy(&source, &target, &found, batch, &mut teller)?;
    target.settle(&source, &found)?;
    stop("the numbers");
    teller.begin(sums.iter().skip(1).map(|sum| sum.rows).sum());
    let (written, standings) = target.sums(&found, &mut teller)?;
    verify(&target, &found, &sums, &written, &standings)?;
    stop("the look at what was written");
    target.release()?;
    stop("the end of the move");
    let table =
        |(table, sum): (&Table, &Sum)| MovedTable { name: table.name.to_owned(), rows: sum.rows, sha256: sum.sha256 };
    let moved_log = |standing: &Standings| MovedLog {
        workspace_id: WorkspaceId::from_bytes(standing.workspace_id),
        head: standing.written.0,
        last_ts: Timestamp::from_ms(standing.written.1),
    };
    let tables = found.iter().zip(sums.iter().skip(1)).map(table).collect();
    Ok(Moved { log, how, tables, logs: standings.iter().map(moved_log).collect() })
}

/// Writes every row that is not there yet.
fn copy(
    source: &Source,
    target: &Target,
    tables: &[Table],
    batch: Batch,
    tell: &mut Teller<'_, '_>,
) -> Result<(), AdminError> {
    let read = |error: sql::Error| AdminError::Open(source.told(&error));
    let written = |error: sql::Error| AdminError::Io(format!("{}; {AGAIN}", target.told(&error)));
    for table in tables {
        let (there, last) = target.last(table).map_err(written)?;
        tell.count(Phase::Copying, table.name, there)?;
        let after: Vec<_> = last.iter().flatten().map(Cell::parameter).collect();
        let mut statement = source.connection.prepare_cached(&table.read_folder(last.is_some())).map_err(read)?;
        let mut rows = statement.query(after).map_err(read)?;
        let (mut some, mut bytes) = (Vec::new(), 0);
        loop {
            let row = match rows.next().map_err(read)? {
                Some(row) => Some(table.row(&row).map_err(read)?),
                None => None,
            };
            let is_last = row.is_none();
            if let Some(row) = row {
                bytes += row.iter().map(Cell::size).sum::<usize>();
                some.push(row);
            }
            if !some.is_empty() && (is_last || some.len() >= batch.rows || bytes >= batch.bytes) {
                target.write(table, &some).map_err(written)?;
                stop(&format!("some rows of {}", table.name));
                tell.count(Phase::Copying, table.name, some.len() as u64)?;
                some.clear();
                bytes = 0;
            }
            if is_last {
                break;
            }
        }
    }
    Ok(())
}

/// Holds what was written against what was read.
fn verify(
    target: &Target,
    tables: &[Table],
    read: &[Sum],
    written: &[Sum],
    standings: &[Standings],
) -> Result<(), AdminError> {
    let names = std::iter::once("meta").chain(tables.iter().map(|table| table.name));
    let differs = |(name, (read, written)): (&str, (&Sum, &Sum))| {
        (read != written).then(|| format!("{name} ({} rows, {} of them in the folder)", written.rows, read.rows))
    };
    let mut wrong: Vec<String> = names.zip(read.iter().zip(written)).filter_map(differs).collect();
    wrong.extend(standings.iter().filter(|log| log.written != log.found).map(|log| {
        let id = WorkspaceId::from_bytes(log.workspace_id);
        format!("the log of {id} (up to {}, and {} written down)", log.found.0, log.written.0)
    }));
    if wrong.is_empty() {
        return Ok(());
    }
    target.give_up().map_err(|error| target.told(&error))?;
    Err(AdminError::Refused(format!(
        "what was written differs from the folder: {}. No server is let at it; run the same again, and it begins anew",
        wrong.join(", ")
    )))
}

/// What the rows of a statement hold that both databases give alike.
fn copied(connection: &Connection, sql: &str) -> sql::Result<Sum> {
    let mut content = Content::default();
    connection.query_row(sql, [], |row| {
        content.add(&[row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]);
        Ok(())
    })?;
    Ok(content.sum())
}

/// Tells how far it has come.
struct Teller<'a, 'b> {
    tell: &'a mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send + 'b),
    rows: u64,
    of: Option<u64>,
    since: u64,
}

impl Teller<'_, '_> {
    /// Begins to count anew, up to so many rows.
    fn begin(&mut self, of: u64) {
        (self.rows, self.of, self.since) = (0, Some(of), 0);
    }

    /// So many more rows are done.
    fn count(&mut self, phase: Phase, table: &str, rows: u64) -> Result<(), AdminError> {
        self.rows += rows;
        self.since += rows;
        // Each batch is told of, and where rows come one by one, some of them at a time.
        if rows == 1 && self.since < TOLD_EVERY {
            return Ok(());
        }
        self.since = 0;
        match (self.tell)(Progress { phase, table, rows: self.rows, of: self.of }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(AdminError::Refused(format!("stopped; {AGAIN}"))),
        }
    }
}
