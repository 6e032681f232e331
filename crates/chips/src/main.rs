//! Chips: where AI agents ask people. One binary, both sides.

mod commands;
mod exit;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chips is where AI agents ask people: a harness asks, a person taps, the harness goes on.
#[derive(Debug, Parser)]
#[command(name = "chips", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(commands::init::Args),
    Serve(commands::serve::Args),
    Workspace(commands::workspace::Args),
    Person(commands::person::Args),
    Harness(commands::harness::Args),
    Space(commands::space::Args),
    Connect(commands::connect::Args),
    Ask(commands::ask::Args),
    Inbox(commands::inbox::Args),
    Answer(commands::answer::Args),
    Tail(commands::tail::Args),
    Check(commands::check::Args),
    Schema(commands::schema::Args),
    Doctor(commands::doctor::Args),
    Completions(commands::completions::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Init(args) => commands::init::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Workspace(args) => commands::workspace::run(args),
        Command::Person(args) => commands::person::run(args),
        Command::Harness(args) => commands::harness::run(args),
        Command::Space(args) => commands::space::run(args),
        Command::Connect(args) => commands::connect::run(args),
        Command::Ask(args) => commands::ask::run(args),
        Command::Inbox(args) => commands::inbox::run(args),
        Command::Answer(args) => commands::answer::run(args),
        Command::Tail(args) => commands::tail::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Schema(args) => commands::schema::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Completions(args) => commands::completions::run(args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("chips: {error:#}");
            exit::FAILED.into()
        }
    }
}
