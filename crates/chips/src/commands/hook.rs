//! `chips hook`

mod claude_code;
mod opencode;

use std::process::ExitCode;

use clap::Subcommand;

/// Carry a harness's own questions through Chips, from a hook of the harness
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("chips hook claude-code --install", "chips hook claude-code --install --project --permissions", "chips hook opencode --install"))]
pub struct Args {
    #[command(subcommand)]
    harness: Harness,
}

#[derive(Debug, Subcommand)]
enum Harness {
    ClaudeCode(claude_code::Args),
    #[command(name = "opencode")]
    OpenCode(opencode::Args),
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.harness {
        Harness::ClaudeCode(args) => claude_code::run(args),
        Harness::OpenCode(args) => opencode::run(args),
    }
}
