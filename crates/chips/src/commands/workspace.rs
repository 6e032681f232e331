//! `chips workspace`

use std::process::ExitCode;

use chips_store::admin::Admin;
use clap::Subcommand;

use crate::present::{self, InitialisedJson, Kind};
use crate::{args, exit, folder, output};

/// Add and list workspaces
///
/// On the data folder, whether the server runs or not.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("chips workspace add 'Second floor'", "chips workspace list --json"))]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a workspace, with a space, a person who owns it and a harness
    #[command(after_help = examples!("chips workspace add 'Second floor'", "chips workspace add Lab --data /srv/chips --json"))]
    Add {
        /// What people call it
        name: String,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        public_url: args::PublicUrl,
        #[command(flatten)]
        json: args::Json,
    },
    /// List the workspaces
    #[command(after_help = examples!("chips workspace list", "chips workspace list --json"))]
    List {
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Add { name, data, public_url, json } => {
            let folder = data.folder()?;
            let made = Admin::open(folder.location())?.add_workspace(&name)?;
            let url = folder.url(public_url.public_url.as_ref());
            if json.json {
                output::json(&InitialisedJson::new(&made, &url))?;
            } else {
                output::text(format_args!("{}\n\n{}", made.workspace_id, present::initialised(&made, &url)))?;
            }
        }
        Command::List { data, json } => {
            let listed = Admin::open(data.folder()?.location())?.workspaces()?;
            present::list(Kind::Workspace, &listed, json.json)?;
        }
    }
    Ok(exit::DONE.into())
}
