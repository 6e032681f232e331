//! `chips hook opencode`

use std::io::IsTerminal;
use std::process::ExitCode;

use chips_client::TokenKind;

use crate::adapters::opencode::{plugin, settings};
use crate::args::Asking;
use crate::{config, exit, folder, output, remote, runtime};

/// Answer the questions of OpenCode's terminal UI from Chips: puts a plugin into OpenCode, which then runs this command
///
/// Without --install or --uninstall it is the plugin's other half: OpenCode's events come on standard input, one JSON a
/// line, and what the plugin is to reply goes to standard output.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips hook opencode --install             # for all your projects",
    "chips hook opencode --install --project   # for this folder, in .opencode/plugin/chips.js",
    "chips hook opencode --uninstall           # takes it out again",
))]
pub struct Args {
    /// Put the plugin into OpenCode's configuration, with what else is given here; shows what changes
    #[arg(long, conflicts_with = "uninstall")]
    install: bool,
    /// Take the plugin out again; shows what changes
    #[arg(long)]
    uninstall: bool,
    /// With --install or --uninstall: this folder's plugins instead of your own
    #[arg(long)]
    project: bool,
    /// With --install or --uninstall: show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    asking: Asking,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(wrong) = args.asking.wrong() {
        output::note(format_args!("chips: {wrong}"));
        return Ok(exit::USAGE.into());
    }
    if args.install || args.uninstall {
        return change_plugin(&args);
    }
    if std::io::stdin().is_terminal() {
        output::note("chips: OpenCode's plugin speaks to this command; `chips hook opencode --install` puts it in");
        return Ok(exit::USAGE.into());
    }
    let folder = config::folder()?;
    runtime::block_on(async {
        let client = remote::client(&config::connection(TokenKind::Harness)?)?;
        plugin::run(client, args.asking.options(), &folder, runtime::signalled()?).await?;
        Ok(exit::DONE.into())
    })
}

fn change_plugin(args: &Args) -> anyhow::Result<ExitCode> {
    let here = std::env::current_dir()?;
    let path = settings::path(args.project.then_some(here.as_path()))?;
    let shown = output::one_line(&path.to_string_lossy());
    let current = settings::read(&path)?;
    let wanted = if args.install { settings::plugin(&command(args)) } else { String::new() };
    if wanted == current {
        output::note(format_args!("{shown}: nothing to change"));
        return Ok(exit::DONE.into());
    }
    output::text(crate::adapters::claude_code::settings::diff(&current, &wanted))?;
    if args.dry_run {
        output::note(format_args!("{shown}: not changed (--dry-run)"));
        return Ok(exit::DONE.into());
    }
    if args.uninstall {
        settings::remove(&path)?;
        output::note(format_args!("{shown}: removed"));
        return Ok(exit::DONE.into());
    }
    settings::write(&path, &wanted)?;
    let undo = if args.project { " --project" } else { "" };
    output::note(format_args!("{shown}: written. Undo it with: chips hook opencode --uninstall{undo}"));
    output::note("An OpenCode that runs takes it when it is started again.");
    if config::connection(TokenKind::Harness).is_err() {
        output::note(
            "Next: chips connect URL (with a harness's token); until then questions stay in OpenCode as before",
        );
    }
    Ok(exit::DONE.into())
}

/// The command for the plugin: this program, and what it was given beside --install.
fn command(args: &Args) -> Vec<String> {
    let mut command = vec![folder::this_program_word(), "hook".to_owned(), "opencode".to_owned()];
    command.extend(args.asking.words());
    command
}
