//! Chips: where AI agents ask people. One binary, both sides.

mod adapters;
mod args;
mod commands;
mod config;
mod demo;
mod exit;
mod folder;
mod logging;
mod output;
mod place;
mod present;
mod qr;
mod remote;
mod runtime;
mod server_config;
mod simulate;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Chips is where AI agents ask people: a harness asks, a person taps, the harness goes on.
#[derive(Debug, Parser)]
#[command(name = "chips", version, max_term_width = 100, after_help = commands::examples!(
    "chips serve --demo                     see it all on this machine",
    "chips serve                            serve on http://127.0.0.1:7070",
    "chips ask 'Deploy now?' -o yes=Yes -o no='Not yet' --default no --timeout 15m",
))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(commands::init::Args),
    Serve(commands::serve::Args),
    Config(commands::config::Args),
    Workspace(commands::workspace::Args),
    Person(commands::person::Args),
    Harness(commands::harness::Args),
    Space(commands::space::Args),
    Backup(commands::backup::Args),
    Restore(commands::restore::Args),
    Migrate(commands::migrate::Args),
    Export(commands::export::Args),
    Erase(commands::erase::Args),
    Connect(commands::connect::Args),
    Ask(commands::ask::Args),
    Inbox(commands::inbox::Args),
    Answer(commands::answer::Args),
    Tail(commands::tail::Args),
    Check(commands::check::Args),
    Schema(commands::schema::Args),
    Hook(commands::hook::Args),
    Bridge(commands::bridge::Args),
    Mcp(commands::mcp::Args),
    Away(commands::away::Args),
    Doctor(commands::doctor::Args),
    Completions(commands::completions::Args),
    #[command(hide = true)]
    Man(commands::man::Args),
}

/// The whole command line, for completions and the manual.
fn command_line() -> clap::Command {
    Cli::command()
}

/// The same where a variable that is empty says nothing: that is how many tools write one that they don't set.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let reset = |arg: clap::Arg| {
        let is_empty = arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
        if is_empty { arg.env(clap::builder::Resettable::Reset) } else { arg }
    };
    command.mut_args(reset).mut_subcommands(without_empty_variables)
}

fn main() -> ExitCode {
    let matches = without_empty_variables(command_line()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let outcome = match cli.command {
        Command::Init(args) => commands::init::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Config(args) => commands::config::run(args),
        Command::Workspace(args) => commands::workspace::run(args),
        Command::Person(args) => commands::person::run(args),
        Command::Harness(args) => commands::harness::run(args),
        Command::Space(args) => commands::space::run(args),
        Command::Backup(args) => commands::backup::run(args),
        Command::Restore(args) => commands::restore::run(args),
        Command::Migrate(args) => commands::migrate::run(args),
        Command::Export(args) => commands::export::run(args),
        Command::Erase(args) => commands::erase::run(args),
        Command::Connect(args) => commands::connect::run(args),
        Command::Ask(args) => commands::ask::run(args),
        Command::Inbox(args) => commands::inbox::run(args),
        Command::Answer(args) => commands::answer::run(args),
        Command::Tail(args) => commands::tail::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Schema(args) => commands::schema::run(args),
        Command::Hook(args) => commands::hook::run(args),
        Command::Bridge(args) => commands::bridge::run(args),
        Command::Mcp(args) => commands::mcp::run(args),
        Command::Away(args) => commands::away::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Completions(args) => commands::completions::run(args),
        Command::Man(args) => commands::man::run(args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if error.is::<output::Closed>() => exit::DONE.into(),
        Err(error) => {
            output::error(&one_line(&error));
            exit::FAILED.into()
        }
    }
}

/// An error and its causes on one line that no server and no file name can break or colour.
fn one_line(error: &anyhow::Error) -> String {
    let said = format!("{error:#}");
    output::one_line(&said.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        command_line().debug_assert();
    }

    #[test]
    fn every_command_shows_examples() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let shown = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(shown.contains("Examples:"), "`{}` has no examples", path.trim());
            command.get_subcommands().filter(|sub| sub.get_name() != "help").for_each(|sub| check(sub, &path));
        }
        check(&command_line(), "");
    }

    #[test]
    fn an_error_is_one_line_whatever_it_quotes() {
        let error = anyhow::anyhow!("no such\n\u{1b}[31mhost").context("can't connect");
        assert_eq!(one_line(&error), r"can't connect: no such \u{1b}[31mhost");
    }
}
