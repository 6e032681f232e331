//! `chips restore`

use std::path::PathBuf;
use std::process::ExitCode;

use chips_store::admin::{self, Keep};
use serde_json::json;

use crate::{args, exit, folder, output};

/// Make a data folder from a backup
///
/// Into a folder that has no workspace; another one is left as it is. Tokens are as they were. The log begins a new history, so that
/// whoever read the old one is told to read again, and sign-in links from before are void. Deadlines that passed meanwhile fire at
/// the start.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips restore /backups/chips-monday.db --data /srv/chips",
    "chips restore /backups/chips-monday.db --data /srv/chips --drop-sessions",
))]
pub struct Args {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Sign everybody out: leave sessions, and the subscriptions of their browsers, behind
    #[arg(long)]
    drop_sessions: bool,
    #[command(flatten)]
    data: folder::DataArgs,
    #[command(flatten)]
    json: args::Json,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let folder = args.data.folder()?;
    if let Some(database) = folder.database() {
        anyhow::bail!(
            "a backup of a data folder goes back into a data folder, and not into {database}: leave --database out, and CHIPS_DATABASE unset. A database \
             comes back by `pg_restore` or by the archive of its write-ahead log (docs/scaling.md)"
        );
    }
    let made = admin::restore(&args.file, folder.path(), Keep { sessions: !args.drop_sessions })?;
    if args.json.json {
        output::json(&json!({ "data": folder.path().to_string_lossy(), "events": made.events }))?;
    } else {
        let path = output::one_line(&folder.path().to_string_lossy());
        output::line(format_args!("{path}: {} events", made.events))?;
        output::note(format_args!("start the server: {}", folder.command("serve")));
    }
    Ok(exit::DONE.into())
}
