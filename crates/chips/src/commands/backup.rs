//! `chips backup`

use std::path::PathBuf;
use std::process::ExitCode;

use chips_store::admin;
use serde_json::json;

use crate::{args, exit, folder, output, runtime};

/// Copy everything into one file, while the server runs
///
/// The copy is as it was at one moment, and is opened and checked before it gets its name. It holds every question and answer, and
/// of tokens and sessions their hashes: keep it as you keep the data folder.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips backup /backups/chips-monday.db",
    "chips backup /backups/chips-monday.db --data /srv/chips --json",
))]
pub struct Args {
    /// The file to make; none of that name may be there
    #[arg(value_name = "FILE")]
    file: PathBuf,
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
            "{database} is backed up by PostgreSQL's own means: `pg_dump --format=custom` makes a copy of one moment, \
             `pg_basebackup` and an archive of the write-ahead log lead back to any moment (docs/scaling.md)"
        );
    }
    let made = runtime::block_on(async {
        let told_to_end = runtime::signalled()?;
        let (dir, file) = (folder.path().to_owned(), args.file.clone());
        let copying = tokio::task::spawn_blocking(move || admin::back_up(&dir, &file));
        tokio::select! {
            biased;
            made = copying => Ok(Some(made??)),
            () = told_to_end => Ok(None),
        }
    })?;
    let Some(made) = made else {
        admin::give_up(&args.file);
        output::error("interrupted: there is no copy");
        return Ok(exit::INTERRUPTED.into());
    };
    let file = args.file.to_string_lossy();
    if args.json.json {
        output::json(&json!({ "file": file, "bytes": made.bytes, "events": made.events, "log": made.log }))?;
    } else {
        output::line(output::one_line(&format!("{file}: {} events, {} bytes, checked", made.events, made.bytes)))?;
    }
    if admin::is_within(&args.file, folder.path()) {
        output::note(
            "chips: warning: this lies in the data folder: what takes the folder takes the copy along, and `chips erase` asks for it to \
             be gone. Move it elsewhere",
        );
    }
    Ok(exit::DONE.into())
}
