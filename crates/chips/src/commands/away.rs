//! `chips away`

use std::process::ExitCode;

use crate::adapters::away::{self, Away};
use crate::{config, exit, output};

/// Say whether you are away: whether the questions of your harnesses go to Chips
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("chips away on", "chips away off", "chips away auto", "chips away"))]
pub struct Args {
    /// on: questions go to Chips; off: they stay in the terminal; auto: they go to Chips once your terminals were idle
    /// for 5 minutes. Left out: says what holds now
    #[arg(value_enum)]
    state: Option<Away>,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let folder = config::folder()?;
    if let Some(state) = args.state {
        away::write(&folder, state)?;
    }
    let state = away::read(&folder)?;
    output::line(state.as_str())?;
    output::note(match (state, state.is_away()) {
        (Away::On, _) => "questions of harnesses go to Chips",
        (Away::Off, _) => "questions of harnesses stay in their own dialogs",
        (Away::Auto, true) => "your terminals are idle: questions of harnesses go to Chips now",
        (Away::Auto, false) => "you are at a terminal: questions of harnesses stay in their own dialogs now",
    });
    Ok(exit::DONE.into())
}
