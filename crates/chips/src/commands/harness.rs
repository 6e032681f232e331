//! `chips harness`

mod webhook;

use std::process::ExitCode;
use std::time::Duration;

use chips_protocol::{HarnessId, ParticipantId, PersonId};
use chips_store::admin::{Admin, Issued};
use clap::Subcommand;
use serde_json::json;

use crate::args::Limit;
use crate::folder::Folder;
use crate::present::{self, IssuedJson, Kind};
use crate::{args, exit, folder, output};

/// Add, list, limit and disable harnesses
///
/// On the data folder, whether the server runs or not. New requests feel it at once.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("chips harness add Purchasing", "chips harness list", "chips harness budget hrn_01K4ZQPX000000000000000004 --hour 60"))]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a harness; prints its token
    #[command(after_help = examples!("chips harness add Purchasing", "chips harness add Purchasing --json"))]
    Add {
        /// What people call it
        name: String,
        #[command(flatten)]
        workspace: args::Workspace,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// List the harnesses
    #[command(after_help = examples!("chips harness list", "chips harness list --json"))]
    List {
        #[command(flatten)]
        workspace: args::Workspace,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// Set how much a harness may ask; a limit that is not given stays
    #[command(after_help = examples!(
        "chips harness budget hrn_01K4ZQPX000000000000000004 --open 20 --hour 60",
        "chips harness budget hrn_01K4ZQPX000000000000000004 --hour none",
    ))]
    #[command(group = clap::ArgGroup::new("limits").args(["open", "hour"]).required(true).multiple(true))]
    Budget {
        /// The harness
        #[arg(value_name = "HRN")]
        id: HarnessId,
        /// How many of its asks may be open
        #[arg(long, value_name = "N|none", value_parser = args::limit)]
        open: Option<Limit>,
        /// How many asks it may make in an hour
        #[arg(long, value_name = "N|none", value_parser = args::limit)]
        hour: Option<Limit>,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// Make a new token for a harness; the old one ends now, or after --overlap
    #[command(after_help = examples!("chips harness rotate hrn_01K4ZQPX000000000000000004 --overlap 24h"))]
    Rotate {
        /// The harness
        #[arg(value_name = "HRN")]
        id: HarnessId,
        /// How long the old token stays good: 90s, 15m, 24h, 7d
        #[arg(long, value_name = "TIME", value_parser = args::duration)]
        overlap: Option<Duration>,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// Have the answers of a harness posted to an address, signed
    #[command(after_help = examples!(
        "chips harness webhook add hrn_01K4ZQPX000000000000000004 https://example.com/chips",
        "chips harness webhook list",
    ))]
    Webhook {
        #[command(subcommand)]
        command: webhook::Command,
    },
    /// Give a harness an owner, who alone is told of what it asks outside any space; everybody may still see it
    #[command(after_help = examples!(
        "chips harness owner hrn_01K4ZQPX000000000000000004 usr_01K4ZQPX000000000000000003",
        "chips harness owner hrn_01K4ZQPX000000000000000004 none",
    ))]
    Owner {
        /// The harness
        #[arg(value_name = "HRN")]
        id: HarnessId,
        /// The person, or `none`
        #[arg(value_name = "USR|none", value_parser = owner)]
        person: Owner,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// End every token of a harness, for good; people may still answer what it asked
    #[command(after_help = examples!("chips harness disable hrn_01K4ZQPX000000000000000004"))]
    Disable {
        /// The harness
        #[arg(value_name = "HRN")]
        id: HarnessId,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
}

/// A person, or nobody.
#[derive(Debug, Clone, Copy)]
struct Owner(Option<PersonId>);

fn owner(text: &str) -> Result<Owner, String> {
    match text {
        "none" => Ok(Owner(None)),
        id => id.parse().map(|id| Owner(Some(id))).map_err(|error| format!("{error}; or `none`")),
    }
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Add { name, workspace, data, json } => {
            let folder = data.folder()?;
            let mut admin = Admin::open(folder.location())?;
            let workspace = admin.workspace(workspace.workspace)?;
            show(&folder, &admin.add_harness(workspace, &name)?, json.json)?;
        }
        Command::List { workspace, data, json } => {
            let mut admin = Admin::open(data.folder()?.location())?;
            let named = workspace.workspace.map(|named| admin.workspace(Some(named))).transpose()?;
            present::list(Kind::Harness, &admin.harnesses(named)?, json.json)?;
        }
        Command::Budget { id, open, hour, data, json } => {
            let (open, hour) = (open.map(|limit| limit.0), hour.map(|limit| limit.0));
            Admin::open(data.folder()?.location())?.set_budget(id, open, hour)?;
            if json.json {
                let mut said = json!({ "id": id });
                for (name, limit) in [("open", open), ("hour", hour)] {
                    if let Some(limit) = limit {
                        said[name] = json!(limit);
                    }
                }
                output::json(&said)?;
            } else {
                let say =
                    |limit: Option<u64>| limit.map_or_else(|| "as many as it likes".to_owned(), |n| n.to_string());
                let mut said = Vec::new();
                said.extend(open.map(|limit| format!("{} open at a time", say(limit))));
                said.extend(hour.map(|limit| format!("{} in an hour", say(limit))));
                output::line(format_args!("{id} may have {}", said.join(" and ")))?;
            }
        }
        Command::Rotate { id, overlap, data, json } => {
            let folder = data.folder()?;
            let mut admin = Admin::open(folder.location())?;
            let (issued, _) = admin.rotate(ParticipantId::Harness(id), overlap.map(args::milliseconds))?;
            show(&folder, &Issued { id, token: issued.token }, json.json)?;
        }
        Command::Webhook { command } => return webhook::run(command),
        Command::Owner { id, person: Owner(person), data, json } => {
            Admin::open(data.folder()?.location())?.set_owner(id, person)?;
            if json.json {
                output::json(&json!({ "id": id, "owner": person }))?;
            } else {
                output::line(match person {
                    Some(person) => format!("{person} alone is told of what {id} asks outside any space"),
                    None => format!("everybody is told of what {id} asks outside any space"),
                })?;
            }
        }
        Command::Disable { id, data, json } => {
            Admin::open(data.folder()?.location())?.disable(ParticipantId::Harness(id))?;
            if json.json {
                output::json(&json!({ "id": id, "disabled": true }))?;
            } else {
                output::line(format_args!(
                    "{id} is disabled: its tokens have ended; people may still answer what it asked"
                ))?;
            }
        }
    }
    Ok(exit::DONE.into())
}

fn show(folder: &Folder, issued: &Issued<HarnessId>, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&IssuedJson { id: issued.id.to_string(), token: &issued.token });
    }
    output::text(present::harness(issued, &folder.url(None)))
}
