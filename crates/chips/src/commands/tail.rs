//! `chips tail`

use std::io;
use std::process::ExitCode;

use chips_client::{EventStream, StreamQuery, TokenKind};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::oneshot;

use crate::{config, exit, output, remote, runtime};

/// Follow the log: one event a line, as JSON
///
/// Begins with the next event, or after the one that --after names (0 for all that is there). A connection that is lost
/// is taken up where it was cut, without a gap and without a repeat. It speaks for the harness (CHIPS_TOKEN) or the
/// person (CHIPS_USER_TOKEN) that the environment has a token for, else for one that `chips connect` kept; each sees
/// what it may see.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips tail",
    "chips tail --after 0 | jq .type",
    "chips tail --as person",
))]
pub struct Args {
    /// Begin after the event with this `seq`; 0 begins with the first
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// Whose token to take, where there is one of each
    #[arg(long = "as", value_name = "KIND")]
    kind: Option<Kind>,
}

/// Whose token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// A harness's: its own runs
    Harness,
    /// A person's: what is in their spaces
    Person,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let kind = args.kind.map(|kind| match kind {
        Kind::Harness => TokenKind::Harness,
        Kind::Person => TokenKind::Person,
    });
    let client = remote::client(&config::any_connection(kind)?)?;
    let query = match args.after {
        Some(seq) => StreamQuery::default().after(seq),
        None => StreamQuery::default(),
    };
    runtime::block_on(async {
        // A first call that fails at once: a stream would wait for a server that is not there for ever.
        client.me().await?;
        tokio::select! {
            result = follow(client.stream(query)) => result,
            () = reader_gone() => Ok(exit::DONE.into()),
        }
    })
}

async fn follow(mut stream: EventStream) -> anyhow::Result<ExitCode> {
    loop {
        let json = stream.next().await?.json;
        if output::is_terminal() {
            output::line(output::json_text(&serde_json::from_str::<serde_json::Value>(&json)?, false)?)?;
        } else {
            output::line(json)?;
        }
    }
}

/// Waits until nobody reads standard output any more. A log in which nothing happens is not written to, and a write is
/// what would tell otherwise: `chips tail | head -1` would never end.
async fn reader_gone() {
    let (gone, is_gone) = oneshot::channel();
    // A thread that waits until the process ends: a poll can't be called off, and need not be.
    std::thread::spawn(move || {
        let stdout = io::stdout();
        // Nothing is asked for: what is told without being asked is that the other end has gone.
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        while let Ok(0) | Err(Errno::INTR) = poll(&mut watched, None) {}
        let _ = gone.send(());
    });
    let _ = is_gone.await;
}
