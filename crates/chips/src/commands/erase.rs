//! `chips erase`

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use chips_protocol::{AskId, PersonId, RunId, WorkspaceId};
use chips_store::admin::{self, Admin, Copies, Erasing, Target};
use serde_json::json;

use crate::{args, exit, folder, output, present};

/// Overwrite texts for good: a person's, a question's, a run's, or all of a workspace
///
/// What stands in the log, in answers that came too late, in names, addresses and devices becomes `[erased]`; numbers, identifiers,
/// times and outcomes stay, and the log stays readable. Then the file is made anew, so that nothing is left in the folder;
/// copies that Chips itself kept of older layouts go too. A server may run meanwhile, and takes no writes while the file is
/// made anew. While backups or files that are not Chips' own lie in the folder, nothing is erased. Not reached is what was read
/// before: drafts in browsers, messages on phones, exports, backups elsewhere.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("what").args(["person", "ask", "run", "workspace", "list"]).required(true).multiple(true)),
    after_help = examples!(
        "chips erase --ask qst_01K4ZQPX000000000000000009",
        "chips erase --person usr_01K4ZQPX000000000000000003 --yes",
        "chips erase --list",
    )
)]
pub struct Args {
    /// A person: their name, what they typed, their devices and addresses. They can't sign in any more
    #[arg(long, value_name = "USR", conflicts_with_all = ["ask", "run", "list"])]
    person: Option<PersonId>,
    /// A closed question with its answers; and its run, where that has no other
    #[arg(long, value_name = "QST", conflicts_with_all = ["run", "list"])]
    ask: Option<AskId>,
    /// A run: its title, URL and labels, and its questions, which are all closed
    #[arg(long, value_name = "RUN", conflicts_with = "list")]
    run: Option<RunId>,
    /// All of a workspace, which ends; or beside another of these: the workspace it is in
    #[arg(long, value_name = "WS", conflicts_with = "list")]
    workspace: Option<WorkspaceId>,
    /// List what was erased and when
    #[arg(long)]
    list: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Go on though backups or files that are not Chips' own lie in the folder, which are left as they are with what they hold
    #[arg(long)]
    leave_backups: bool,
    #[command(flatten)]
    data: folder::DataArgs,
    #[command(flatten)]
    json: args::Json,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let folder = args.data.folder()?;
    let mut admin = Admin::open(folder.location())?;
    let (target, within) = match (args.person, args.ask, args.run, args.workspace) {
        (Some(person), _, _, within) => (Target::Person(person), within),
        (_, Some(ask), _, within) => (Target::Ask(ask), within),
        (_, _, Some(run), within) => (Target::Run(run), within),
        (_, _, _, Some(workspace)) => (Target::Workspace(workspace), None),
        _ => return list(&mut admin, args.json.json),
    };
    let erasing = admin.find_to_erase(target, within)?;
    let copies = match folder.database() {
        Some(_) => Copies::default(),
        None => admin::copies(folder.path())?,
    };
    if let Some(lies) = in_the_way(&copies).filter(|_| !args.leave_backups) {
        anyhow::bail!("{lies}. Delete them or move them away, or say --leave-backups. Nothing was erased");
    }
    let what = what(target, &erasing);
    let alone = match target {
        Target::Person(person) => admin.owned_by_them_alone(person)?.map(|workspace| (person, workspace)),
        _ => None,
    };
    if let Some((person, workspace)) = alone {
        output::note(present::last_owner(person, workspace));
    }
    if !args.yes {
        if !io::stdin().is_terminal() {
            output::error(&format!("erasing {what} can't be undone; say --yes"));
            return Ok(exit::USAGE.into());
        }
        if !copies.own.is_empty() {
            output::note(format_args!("The copies of older layouts go too: {}", names(&copies.own)));
        }
        if !agrees(&format!("Erase {what}? It can't be undone. Type yes: "))? {
            output::error("nothing was erased");
            return Ok(exit::FAILED.into());
        }
    }
    let erased = admin.erase(&erasing)?;
    if args.json.json {
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        output::json(&json!({
            "what": erased.what, "id": erased.id, "at": erased.at,
            "asks": erasing.asks(), "runs": erasing.runs(), "persons": erasing.persons(),
            "removed": copies.own.iter().map(path).collect::<Vec<_>>(),
            "left": copies.others.iter().chain(&copies.strange).map(path).collect::<Vec<_>>(),
        }))?;
    } else {
        output::line(format_args!("erased: {what}"))?;
        if !copies.own.is_empty() {
            output::note(format_args!("removed: {}", names(&copies.own)));
        }
        if !copies.others.is_empty() {
            output::note(format_args!("left as they are, with what was erased in them: {}", names(&copies.others)));
        }
        if !copies.strange.is_empty() {
            output::note(format_args!("left as they are, whatever is in them: {}", names(&copies.strange)));
        }
        output::note("not reached: drafts in browsers, messages on phones, exports, and backups elsewhere");
    }
    Ok(exit::DONE.into())
}

/// What lies in the folder and keeps an erasure from being one.
fn in_the_way(copies: &Copies) -> Option<String> {
    let backups = format!("these backups in the data folder hold what is to be erased: {}", names(&copies.others));
    let strange = format!(
        "these files in the data folder are not Chips' own and may hold what is to be erased, as exports and packed backups do: {}",
        names(&copies.strange)
    );
    match (copies.others.is_empty(), copies.strange.is_empty()) {
        (true, true) => None,
        (false, true) => Some(backups),
        (true, false) => Some(strange),
        (false, false) => Some(format!("{backups}; and {strange}")),
    }
}

/// What is erased, for people.
fn what(target: Target, erasing: &Erasing) -> String {
    let counted = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    match target {
        Target::Person(id) => {
            format!("{id}, with what they typed in answers to {}", counted(erasing.asks(), "question"))
        }
        Target::Ask(id) if erasing.runs() > 0 => format!("{id}, with its run"),
        Target::Ask(id) => id.to_string(),
        Target::Run(id) => format!("{id}, with {}", counted(erasing.asks(), "question")),
        Target::Workspace(id) => format!(
            "all of {id}, with {}, {} and {}",
            counted(erasing.asks(), "question"),
            counted(erasing.runs(), "run"),
            counted(erasing.persons(), "person")
        ),
    }
}

/// The first of these paths, and how many there are beside them.
fn names(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 20;
    let mut shown: Vec<_> = paths.iter().take(SHOWN).map(|path| output::one_line(&path.to_string_lossy())).collect();
    if paths.len() > SHOWN {
        shown.push(format!("and {} more", paths.len() - SHOWN));
    }
    shown.join(", ")
}

/// Asks on the terminal, and takes nothing but a yes for one.
fn agrees(question: &str) -> anyhow::Result<bool> {
    let mut err = io::stderr().lock();
    err.write_all(question.as_bytes()).and_then(|()| err.flush())?;
    let mut typed = String::new();
    io::stdin().read_line(&mut typed)?;
    Ok(typed.trim().eq_ignore_ascii_case("yes"))
}

fn list(admin: &mut Admin, as_json: bool) -> anyhow::Result<ExitCode> {
    let erasures = admin.erasures()?;
    if as_json {
        let each = |erasure: &admin::Erasure| json!({ "what": erasure.what, "id": erasure.id, "at": erasure.at, "done": erasure.done });
        output::json(&erasures.iter().map(each).collect::<Vec<_>>())?;
        return Ok(exit::DONE.into());
    }
    for erasure in erasures {
        let unfinished = if erasure.done { "" } else { "  cut short: run it again" };
        output::line(format_args!("{}  {}{unfinished}", erasure.at, erasure.id))?;
    }
    Ok(exit::DONE.into())
}
