//! `chips export`

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use chips_store::admin::Admin;

use crate::{args, exit, folder, output};

/// Print the log as it stands: one event a line, as JSON
///
/// In the order of their `seq`, whether a server runs on the data folder or not, and as the log stood when the command began. Every
/// event is there, whoever may see it. `chips check` reads it. What was printed last is told on standard error: the next
/// export takes it up with --since.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips export > chips.jsonl",
    "chips export --since 4711 >> chips.jsonl",
    "chips export | chips check -",
))]
pub struct Args {
    /// Only events after the one with this `seq`
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    #[command(flatten)]
    workspace: args::Workspace,
    #[command(flatten)]
    data: folder::DataArgs,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut admin = Admin::open(args.data.folder()?.location())?;
    let workspace = admin.workspace(args.workspace.workspace)?;
    let mut export = admin.export(workspace, args.since)?;
    let terminal = output::is_terminal();
    let mut out = BufWriter::new(io::stdout().lock());
    let mut events = 0_u64;
    loop {
        let lines = admin.export_next(&mut export)?;
        if lines.is_empty() {
            break;
        }
        for line in lines {
            events += 1;
            let line = if terminal {
                output::json_text(&serde_json::from_str::<serde_json::Value>(&line)?, false)?
            } else {
                line
            };
            out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).map_err(output::unwritten)?;
        }
    }
    out.flush().map_err(output::unwritten)?;
    let head = export.head();
    output::note(format_args!(
        "chips: {events} event{}, up to {head}; `--since {head}` exports what comes after",
        if events == 1 { "" } else { "s" }
    ));
    Ok(exit::DONE.into())
}
