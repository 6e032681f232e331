//! `chips migrate`

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

use chips_store::admin::{self, Batch, How, Moved, MovedLog, MovedTable, Phase, Progress};
use serde_json::json;

use crate::folder::{DataArgs, shell_word, this_program};
use crate::{args, exit, output};

/// Move a data folder into a PostgreSQL database
///
/// Everything comes along: the log with its numbers, identifiers, tokens, sessions, idempotency keys, subscriptions, and what is
/// still to be said to whom. The database, or its schema, must be empty. No server may run on the folder, which stays as it is.
/// At the end both are read and compared; servers are let at the database only then. Cut short, it goes on when it is run again.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips migrate --data /srv/chips --database postgres://chips@db.example.com/chips",
    "chips migrate --data /srv/chips --database-file /run/secrets/chips-database --json",
))]
pub struct Args {
    #[command(flatten)]
    place: DataArgs,
    #[command(flatten)]
    json: args::Json,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { place, json } = args;
    let folder = place.folder()?;
    let Some(database) = folder.database() else {
        output::error("name the database that the folder moves into, with --database or --database-file");
        return Ok(exit::USAGE.into());
    };
    let mut shown = Shown::new();
    let moved = admin::migrate(folder.path(), database, Batch::default(), &mut |progress| shown.show(progress));
    drop(shown);
    let moved = moved?;

    let dir = folder.path().to_string_lossy();
    if json.json {
        output::json(&as_json(&moved, &dir, &database.to_string()))?;
        return Ok(exit::DONE.into());
    }
    output::text(told(&moved))?;
    let serve = match place.database_file() {
        Some(file) => format!(" --database-file {}", shell_word(&file.to_string_lossy())),
        // One with a password is in the environment, and stays there.
        None if database.has_password() => String::new(),
        None => format!(" --database {}", shell_word(database.url())),
    };
    output::note(format_args!("start the servers: {} serve{serve}", this_program()));
    let dir = output::one_line(&dir);
    output::note(format_args!(
        "do not serve {dir} any more: it is as it was, and two servers would write two histories under one name. Keep it until \
         you trust the database"
    ));
    Ok(exit::DONE.into())
}

const fn word(how: How) -> &'static str {
    match how {
        How::AtOnce => "at_once",
        How::GoneOn => "gone_on",
        How::Anew => "anew",
        How::Before => "before",
    }
}

fn as_json(moved: &Moved, dir: &str, database: &str) -> serde_json::Value {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let table = |table: &MovedTable| json!({ "name": table.name, "rows": table.rows, "sha256": hex(&table.sha256) });
    let log = |log: &MovedLog| json!({ "workspace_id": log.workspace_id, "head": log.head, "ts": log.last_ts });
    json!({
        "data": dir, "database": database, "log": moved.log, "how": word(moved.how),
        "tables": moved.tables.iter().map(table).collect::<Vec<_>>(),
        "workspaces": moved.logs.iter().map(log).collect::<Vec<_>>(),
    })
}

/// What was moved, for people.
fn told(moved: &Moved) -> String {
    let mut text = String::new();
    let mut line = |line: String| text.extend([line.as_str(), "\n"]);
    if moved.how == How::Before {
        line(format!("{} is there already, all of it; nothing was changed", moved.log));
        return text;
    }
    let some: Vec<_> = moved.tables.iter().filter(|table| table.rows > 0).collect();
    let wide = some.iter().map(|table| table.name.len()).max().unwrap_or_default();
    for table in &some {
        line(format!("{:wide$} {:>10}", table.name, table.rows));
    }
    for log in &moved.logs {
        line(match log.head {
            0 => format!("{}: no event yet", log.workspace_id),
            head => format!("{}: up to event {head} of {}", log.workspace_id, log.last_ts),
        });
    }
    match moved.how {
        How::GoneOn => line("a move that was cut short was taken up again".to_owned()),
        How::Anew => line("the folder had changed since a move was cut short, so it began anew".to_owned()),
        How::AtOnce | How::Before => {}
    }
    let rows: u64 = some.iter().map(|table| table.rows).sum();
    line(format!("{}: {rows} rows moved, read again and found the same", moved.log));
    text
}

/// The line on a terminal that says how far it has come.
struct Shown {
    terminal: bool,
}

impl Shown {
    fn new() -> Self {
        Self { terminal: io::stderr().is_terminal() }
    }

    fn show(&mut self, progress: Progress<'_>) -> ControlFlow<()> {
        if self.terminal {
            let doing = match progress.phase {
                Phase::Reading => "reading",
                Phase::Copying => "writing",
                Phase::Verifying => "comparing",
            };
            let of = progress.of.map(|of| format!(" of {of}")).unwrap_or_default();
            self.write(&format!("{doing} {}: {}{of} rows", progress.table, progress.rows));
        }
        ControlFlow::Continue(())
    }

    fn write(&self, text: &str) {
        let mut err = io::stderr().lock();
        // Where nobody reads it, nothing is lost.
        let _ = write!(err, "\r\u{1b}[K{text}").and_then(|()| err.flush());
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if self.terminal {
            self.write("");
        }
    }
}
