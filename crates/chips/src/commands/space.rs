//! `chips space`

use std::process::ExitCode;

use chips_protocol::{PersonId, SpaceId, WorkspaceId};
use chips_store::admin::Admin;
use clap::Subcommand;
use serde_json::json;

use crate::present::{self, Kind};
use crate::{args, exit, folder, output};

/// Add and list spaces, and say who is in a closed one
///
/// On the data folder, whether the server runs or not. New requests feel it at once.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips space add Warehouse",
    "chips space add Payroll --member usr_01K4ZQPX000000000000000003",
    "chips space list",
))]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a space: open to everybody, or closed where members are named
    #[command(after_help = examples!("chips space add Warehouse", "chips space add Payroll --member usr_01K4ZQPX000000000000000003"))]
    Add {
        /// What people call it
        name: String,
        /// A person who is in it; may be given again
        #[arg(long = "member", value_name = "USR")]
        members: Vec<PersonId>,
        #[command(flatten)]
        workspace: args::Workspace,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// List the spaces
    #[command(after_help = examples!("chips space list", "chips space list --json"))]
    List {
        #[command(flatten)]
        workspace: args::Workspace,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// Say whether what is told outside the inbox carries no word of a space's questions
    #[command(after_help = examples!(
        "chips space private spc_01K4ZQPX000000000000000002 on",
        "chips space private spc_01K4ZQPX000000000000000002 off",
    ))]
    Private {
        /// The space
        #[arg(value_name = "SPC")]
        space: SpaceId,
        /// `on` or `off`
        #[arg(value_name = "on|off", value_parser = ["on", "off"])]
        private: String,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// Add a person to a closed space, or take them out
    #[command(after_help = examples!("chips space member add spc_01K4ZQPX000000000000000002 usr_01K4ZQPX000000000000000003"))]
    Member {
        #[command(subcommand)]
        command: MemberCommand,
    },
}

#[derive(Debug, Subcommand)]
enum MemberCommand {
    /// Add a person to a closed space
    #[command(after_help = examples!("chips space member add spc_01K4ZQPX000000000000000002 usr_01K4ZQPX000000000000000003"))]
    Add(Member),
    /// Take a person out of a closed space
    #[command(after_help = examples!("chips space member remove spc_01K4ZQPX000000000000000002 usr_01K4ZQPX000000000000000003"))]
    Remove(Member),
}

#[derive(Debug, clap::Args)]
struct Member {
    /// The space
    #[arg(value_name = "SPC")]
    space: SpaceId,
    /// The person
    #[arg(value_name = "USR")]
    person: PersonId,
    #[command(flatten)]
    data: folder::DataArgs,
    #[command(flatten)]
    json: args::Json,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Add { name, members, workspace, data, json } => {
            let mut admin = Admin::open(data.folder()?.location())?;
            let named = workspace.workspace.or_else(|| of_member(&mut admin, &members));
            let workspace = admin.workspace(named)?;
            let id = admin.add_space(workspace, &name, &members)?;
            if json.json {
                output::json(&json!({ "id": id }))?;
            } else {
                output::line(id)?;
            }
        }
        Command::List { workspace, data, json } => {
            let mut admin = Admin::open(data.folder()?.location())?;
            let named = workspace.workspace.map(|named| admin.workspace(Some(named))).transpose()?;
            present::list(Kind::Space, &admin.spaces(named)?, json.json)?;
        }
        Command::Private { space, private, data, json } => {
            let private = private == "on";
            Admin::open(data.folder()?.location())?.set_private(space, private)?;
            if json.json {
                output::json(&json!({ "space_id": space, "private": private }))?;
            } else {
                let say = if private { "no word" } else { "the words" };
                output::line(format_args!("messages carry {say} of the questions in {space}"))?;
            }
        }
        Command::Member { command: MemberCommand::Add(member) } => set_member(&member, true)?,
        Command::Member { command: MemberCommand::Remove(member) } => set_member(&member, false)?,
    }
    Ok(exit::DONE.into())
}

fn set_member(args: &Member, member: bool) -> anyhow::Result<()> {
    Admin::open(args.data.folder()?.location())?.set_member(args.space, args.person, member)?;
    if args.json.json {
        return output::json(&json!({ "space_id": args.space, "person_id": args.person, "member": member }));
    }
    let now = if member { "is in" } else { "is no longer in" };
    output::line(format_args!("{} {now} {}", args.person, args.space))
}

/// The workspace that the first member belongs to: with a member, nobody has to name it.
fn of_member(admin: &mut Admin, members: &[PersonId]) -> Option<WorkspaceId> {
    let first = members.first()?.to_string();
    let persons = admin.persons(None).ok()?;
    persons.into_iter().find(|person| person.id == first).map(|person| person.workspace_id)
}
