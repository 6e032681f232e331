//! `chips completions`

use std::process::ExitCode;

use clap_complete::Shell;

use crate::{exit, output};

/// Print a script that completes `chips` in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips completions bash > ~/.local/share/bash-completion/completions/chips",
    "chips completions zsh > ~/.zfunc/_chips",
    "chips completions fish > ~/.config/fish/completions/chips.fish",
))]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command_line(), "chips", &mut script);
    output::text(String::from_utf8(script)?)?;
    Ok(exit::DONE.into())
}
