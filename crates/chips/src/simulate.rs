//! `chips serve --simulate`: a real server whose people are a script, for whoever builds a harness.
//!
//! Everything that a harness meets is the real thing: the same binary, API, store and rules. Made up are who answers, when,
//! and what the network does; and the clock can be moved. The data stands in a folder of its own that is removed at the
//! end, and those who answer are called so that nobody takes them for people.

mod answers;
mod play;
mod script;
mod stage;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::Context;
use chips_server::{Config, StartError};
use chips_store::admin::{self, Admin};
use tokio_util::sync::CancellationToken;

use crate::runtime::Signals;
use crate::{exit, output, runtime};
use play::{Cast, Play};
use script::Script;
use stage::Stage;

/// How long the last step may take once the harness has ended: longer than a script waits for something to cut.
const LAST_STEP: Duration = Duration::from_secs(12);
/// How long it may take once somebody stopped the simulation.
const LAST_STEP_STOPPED: Duration = Duration::from_secs(1);

/// Serves by a script until it is told to stop, or until the command has ended.
///
/// # Errors
/// The script can't be read, the address is not loopback or can't be listened on, or the server fails.
pub fn run(
    path: &Path,
    listen: Option<SocketAddr>,
    allow_hosts: Vec<String>,
    command: &[OsString],
) -> anyhow::Result<ExitCode> {
    let listen = listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
    if !listen.ip().is_loopback() {
        anyhow::bail!(
            "a simulation listens on loopback alone, where nobody takes it for the real thing: not on {listen}"
        );
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
    let script = match script::read(&text) {
        Ok(script) => script,
        Err(faults) => {
            for fault in faults {
                let place = output::one_line(&format!("{}:{}: {}", path.display(), fault.line, fault.message));
                output::error(&place);
            }
            return Ok(exit::FAILED.into());
        }
    };
    let name = output::one_line(&path.display().to_string());
    let config = Config { allow_hosts, ..Config::on(listen) };
    config.check().map_err(StartError::Config)?;
    runtime::serve(simulate(script, name, config, command))
}

async fn simulate(script: Script, name: String, config: Config, command: &[OsString]) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    tokio::spawn(Signals::take()?.stop(stop.clone()));
    let folder = tempfile::Builder::new().prefix("chips-simulation-").tempdir();
    let folder = folder.context("there is no room for the folder of the simulation")?;
    let cast = cast(folder.path(), &script)?;
    let harness = cast.harness.clone();
    let mut stage = Stage::start(folder, config).await?;
    let url = stage.url();
    tell(format_args!(
        "NOTHING HERE IS REAL: {name} makes up what people answer, and the data is thrown away at the end"
    ));

    let mut play = Play::new(script, cast);
    play.begin(&mut stage).await?;
    let ended = if command.is_empty() {
        // Nobody may be reading any more; the server serves all the same.
        let _ = output::text(format_args!("CHIPS_URL={url}\nCHIPS_TOKEN={harness}\nlistening on {url}\n"));
        None
    } else {
        Some(started(command, &url, &harness)?)
    };
    let simulation = stage.simulation.clone();
    let over = async {
        let harness_ends = async {
            match ended {
                Some(mut child) => child.wait().await,
                None => std::future::pending().await,
            }
        };
        // A step that is being played at the end may well come to its own.
        let (status, patience) = tokio::select! {
            () = stop.cancelled() => (None, LAST_STEP_STOPPED),
            status = harness_ends => (Some(status.context("can't wait for the command")?), LAST_STEP),
        };
        simulation.idle(patience).await;
        anyhow::Ok(status)
    };
    let waits_for_command = !command.is_empty();
    let outcome = tokio::select! {
        status = over => status?,
        failed = play.run(&mut stage) => {
            failed?;
            None
        }
    };
    let mut missing = play.missing();
    missing.extend(simulation_left(&stage.simulation));
    if let Err(error) = stage.strike().await {
        output::error(&output::one_line(&format!("{error:#}")));
        return Ok(exit::STORE_FAILED.into());
    }
    missing.iter().for_each(|missing| tell(format_args!("MISSING: {missing}")));
    if missing.is_empty() {
        tell("all of the script has happened");
    }
    Ok(match outcome.map(code) {
        Some(code) if code != 0 => ExitCode::from(code),
        // Stopped before the command had ended: nobody is to take that for success.
        None if waits_for_command => exit::INTERRUPTED.into(),
        _ if !missing.is_empty() => exit::FAILED.into(),
        _ => exit::DONE.into(),
    })
}

/// What was to happen to the next writes, of which there were too few.
fn simulation_left(simulation: &chips_server::Simulation) -> Vec<String> {
    let (lost, refused) = simulation.left();
    let mut left = Vec::new();
    if lost > 0 {
        left.push(format!("replies that were to get lost: {lost} more writes never came"));
    }
    if refused > 0 {
        left.push(format!("writes that were to be refused: {refused} more never came"));
    }
    left
}

/// Makes the workspace, and everybody that the script needs.
fn cast(folder: &Path, script: &Script) -> anyhow::Result<Cast> {
    let made = admin::init(folder)?;
    let mut admin = Admin::open(folder)?;
    let mut people = BTreeMap::new();
    for name in script.people() {
        let (issued, _) = admin.add_person(made.workspace_id, name)?;
        people.insert(name.to_owned(), issued.token);
    }
    Ok(Cast { workspace_id: made.workspace_id, owner: made.person.token, harness: made.harness.token, people })
}

/// Starts the command for which all of this is done.
fn started(command: &[OsString], url: &str, token: &str) -> anyhow::Result<tokio::process::Child> {
    let (program, arguments) = command.split_first().context("no command was given")?;
    tokio::process::Command::new(program)
        .args(arguments)
        .env("CHIPS_URL", url)
        .env("CHIPS_TOKEN", token)
        // What a real server's configuration says has no place here.
        .env_remove("CHIPS_USER_TOKEN")
        .env_remove("CHIPS_RUN")
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("can't start {}", Path::new(program).display()))
}

/// The exit code of a command, as a shell has it.
fn code(status: ExitStatus) -> u8 {
    let signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED.0)
}

/// Tells, on standard error, what the simulation does.
fn tell(what: impl Display) {
    output::note(output::one_line(&format!("simulation: {what}")));
}
