//! `chips person`

use std::process::ExitCode;
use std::time::Duration;

use chips_protocol::{ParticipantId, PersonId};
use chips_store::admin::{Admin, SignIn};
use clap::Subcommand;
use serde_json::json;

use crate::folder::Folder;
use crate::present::{self, Kind, PersonJson};
use crate::{args, exit, folder, output};

/// Add, list, sign in and disable people
///
/// On the data folder, whether the server runs or not. New requests feel it at once.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("chips person add Ada", "chips person list", "chips person link usr_01K4ZQPX000000000000000003"))]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a person; prints a token and a link to sign in
    #[command(after_help = examples!("chips person add Ada", "chips person add Ada --workspace ws_01K4ZQPX000000000000000001 --json"))]
    Add {
        /// What people call them
        name: String,
        #[command(flatten)]
        workspace: args::Workspace,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        public_url: args::PublicUrl,
        #[command(flatten)]
        json: args::Json,
    },
    /// List the people
    #[command(after_help = examples!("chips person list", "chips person list --json"))]
    List {
        #[command(flatten)]
        workspace: args::Workspace,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// Make a new link (and code) that signs a person in, once
    #[command(after_help = examples!("chips person link usr_01K4ZQPX000000000000000003"))]
    Link {
        /// The person
        #[arg(value_name = "USR")]
        id: PersonId,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        public_url: args::PublicUrl,
        #[command(flatten)]
        json: args::Json,
    },
    /// Make a new token for a person; the old one ends now, or after --overlap
    #[command(after_help = examples!("chips person rotate usr_01K4ZQPX000000000000000003 --overlap 24h"))]
    Rotate {
        /// The person
        #[arg(value_name = "USR")]
        id: PersonId,
        /// How long the old token stays good: 90s, 15m, 24h, 7d
        #[arg(long, value_name = "TIME", value_parser = args::duration)]
        overlap: Option<Duration>,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        public_url: args::PublicUrl,
        #[command(flatten)]
        json: args::Json,
    },
    /// End every token and session of a person, for good; names the harnesses of which nobody is told any more
    #[command(after_help = examples!("chips person disable usr_01K4ZQPX000000000000000003"))]
    Disable {
        /// The person
        #[arg(value_name = "USR")]
        id: PersonId,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Add { name, workspace, data, public_url, json } => {
            let folder = data.folder()?;
            let mut admin = Admin::open(folder.location())?;
            let workspace = admin.workspace(workspace.workspace)?;
            let (issued, sign_in) = admin.add_person(workspace, &name)?;
            show(&folder, issued.id, Some(&issued.token), &sign_in, &public_url, json.json)?;
        }
        Command::List { workspace, data, json } => {
            let mut admin = Admin::open(data.folder()?.location())?;
            let named = workspace.workspace.map(|named| admin.workspace(Some(named))).transpose()?;
            present::list(Kind::Person, &admin.persons(named)?, json.json)?;
        }
        Command::Link { id, data, public_url, json } => {
            let folder = data.folder()?;
            let sign_in = Admin::open(folder.location())?.link_person(id)?;
            show(&folder, id, None, &sign_in, &public_url, json.json)?;
        }
        Command::Rotate { id, overlap, data, public_url, json } => {
            let folder = data.folder()?;
            let mut admin = Admin::open(folder.location())?;
            let (issued, sign_in) = admin.rotate(ParticipantId::Person(id), overlap.map(args::milliseconds))?;
            let sign_in = match sign_in {
                Some(sign_in) => sign_in,
                None => admin.link_person(id)?,
            };
            show(&folder, id, Some(&issued.token), &sign_in, &public_url, json.json)?;
        }
        Command::Disable { id, data, json } => {
            let folder = data.folder()?;
            let mut admin = Admin::open(folder.location())?;
            let alone = admin.owned_by_them_alone(id)?;
            admin.disable(ParticipantId::Person(id))?;
            let unheard = admin.unheard(Some(id))?;
            if json.json {
                let unheard: Vec<_> =
                    unheard.iter().map(|one| json!({ "id": one.harness_id, "name": one.name })).collect();
                output::json(&json!({ "id": id, "disabled": true, "unheard": unheard }))?;
            } else {
                output::line(format_args!("{id} is disabled: every token and session has ended"))?;
            }
            if let Some(workspace) = alone {
                output::note(present::last_owner(id, workspace));
            }
            for one in &unheard {
                output::note(present::unheard(one, &folder));
            }
        }
    }
    Ok(exit::DONE.into())
}

fn show(
    folder: &Folder,
    id: PersonId,
    token: Option<&str>,
    sign_in: &SignIn,
    public_url: &args::PublicUrl,
    json: bool,
) -> anyhow::Result<()> {
    let url = folder.url(public_url.public_url.as_ref());
    if json {
        let sign_in_url = present::sign_in_url(&url, sign_in);
        return output::json(&PersonJson { id, token, sign_in_url, sign_in_code: &sign_in.code });
    }
    output::text(present::person(id, token, sign_in, &url))
}
