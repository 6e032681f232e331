//! `chips mcp`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use chips_client::protocol::SpaceId;
use chips_client::{TokenKind, Workplace};
use chips_mcp::{BEAT, Pace};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::adapters::mcp::Bridge;
use crate::{args, config, exit, logging, remote, runtime};

/// Let any MCP client ask people: serve the MCP tools on standard input and output
///
/// The tools are ask_person, wait_for_answer and withdraw_question. An MCP client starts it. It speaks for the harness that CHIPS_TOKEN or `chips connect` names, in the folder that it is
/// started in. Nothing but the protocol goes to standard output; its log goes to standard error. When the client closes
/// its input it ends; a question that is open then stays open, and is taken up again by the next start in this folder.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips mcp",
    "claude mcp add chips -- chips mcp",
    "chips mcp --slice 30s                 for a client that gives a tool 40 seconds",
))]
pub struct Args {
    /// How long a call waits for a person before it returns "pending" [default: what the client allows, 50s or more]
    #[arg(long, env = "CHIPS_MCP_SLICE", value_name = "TIME", value_parser = args::span)]
    slice: Option<Duration>,
    /// How often a call that waits says so, where the client asks for progress [default: 20s]
    #[arg(long, env = "CHIPS_MCP_BEAT", value_name = "TIME", value_parser = args::span)]
    beat: Option<Duration>,
    /// The space that the questions belong to [default: none]
    #[arg(long, value_name = "SPC")]
    space: Option<SpaceId>,
}

/// How long the server may take at the start to tell which spaces there are.
const LOOK: Duration = Duration::from_secs(5);

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    logging::start();
    let client = remote::client(&config::connection(TokenKind::Harness)?)?;
    let folder = std::env::current_dir().context("can't tell the working folder")?;
    // A model could do nothing about it later. Where the server can't be asked now, the first question finds out.
    if let Some(space) = args.space {
        let me = runtime::block_on(async { Ok(tokio::time::timeout(LOOK, client.me()).await) })?;
        if let Ok(Ok(me)) = me
            && !me.spaces.iter().any(|known| known.id == space)
        {
            let known: Vec<String> = me.spaces.iter().map(|known| format!("{} ({})", known.id, known.name)).collect();
            anyhow::bail!("--space {space}: this workspace has no such space; it has {}", known.join(", "));
        }
    }
    let pace = Pace { slice: args.slice, beat: args.beat.unwrap_or(BEAT) };
    let bridge = Arc::new(Bridge::new(client, Workplace::of(&folder), args.space));
    runtime::block_on(async {
        let stop = CancellationToken::new();
        tokio::spawn(stopped(stop.clone())?);
        let keeping = tokio::spawn(bridge.clone().keep());
        tracing::debug!("the MCP tools are served on standard input and output");
        let served = chips_mcp::stdio::serve(bridge.clone(), pace, stop).await;
        keeping.abort();
        bridge.end().await;
        served.map_err(|reason| anyhow!("the client did not speak MCP: {reason}"))?;
        Ok(exit::DONE.into())
    })
}

/// Cancels `stop` at the first signal that asks for an end: clients send one where closing the input did not do.
fn stopped(stop: CancellationToken) -> anyhow::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.cancel();
    })
}
