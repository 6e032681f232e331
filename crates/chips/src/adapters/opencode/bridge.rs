//! The bridge: follows an `opencode serve`, over its restarts and Chips'.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use chips_client::Client;
use chips_client::parts::{Backoff, Pauses, fraction};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};

use super::Options;
use super::carry::Carrier;
use super::server::Server;
use super::wire::{Dialog, Heard, Pending};
use crate::adapters::away;
use crate::output;

/// A stream that stood for longer than this was a good one: the next pause is a short one.
const STEADY: Duration = Duration::from_secs(5);

/// What the followers say to the carrier.
enum Said {
    Heard(Heard),
    /// What is open now, in these directories.
    Open(Dialog, HashSet<String>, Vec<Pending>),
    /// Which directories hold questions that are carried.
    Where(oneshot::Sender<HashSet<String>>),
}

/// Carries the questions of this server for ever. `folder` is the user's configuration folder, which says whether they
/// are away. Ended, it leaves its asks open: the next bridge takes up the same ones.
pub async fn run(server: Server, client: Client, options: Options, folder: &Path) {
    let (say, mut said) = mpsc::channel(64);
    let mut carrier = Carrier::new(client, server.clone(), options);
    let following = follow(&server, &say);
    tokio::pin!(following);
    loop {
        tokio::select! {
            () = &mut following => return,
            said = said.recv() => match said {
                Some(Said::Heard(heard)) => carrier.hear(heard, away::now(folder)),
                Some(Said::Open(dialog, directories, open)) => {
                    carrier.sync(dialog, &directories, open, away::now(folder));
                }
                // A follower that is gone needs no answer.
                Some(Said::Where(tell)) => drop(tell.send(carrier.directories())),
                None => return,
            },
        }
    }
}

async fn follow(server: &Server, say: &mpsc::Sender<Said>) {
    let mut backoff = Backoff::new(Pauses::default());
    let (mut lost, mut had) = (false, false);
    loop {
        let why = match server.dialogs().await {
            Ok(dialogs) => {
                output::note(format_args!("chips: follows {}", server.address()));
                (lost, had) = (false, true);
                let began = tokio::time::Instant::now();
                let mut followers: FuturesUnordered<_> =
                    dialogs.into_iter().map(|dialog| follow_one(server, dialog, say)).collect();
                // Where one is cut off, the server may have become another: all begin anew.
                let Some(Err(why)) = followers.next().await else { return };
                if began.elapsed() > STEADY {
                    backoff.reset();
                }
                why
            }
            Err(why) => why,
        };
        if !lost {
            let said = output::one_line(&why.root_cause().to_string());
            let what = if had { "lost" } else { "can't reach" };
            output::note(format_args!("chips: {what} {} ({said}), trying again…", server.address()));
            lost = true;
        }
        tokio::time::sleep(backoff.next(None, fraction())).await;
    }
}

async fn follow_one(server: &Server, dialog: Dialog, say: &mpsc::Sender<Said>) -> anyhow::Result<()> {
    let mut events = server.events(dialog).await?;
    events.begin().await?;
    // The stream stands: what was asked before is in the list, what is asked after is in the stream.
    let (tell, told) = oneshot::channel();
    say.send(Said::Where(tell)).await?;
    let (directories, open) = server.open(dialog, told.await?).await?;
    say.send(Said::Open(dialog, directories, open)).await?;
    loop {
        say.send(Said::Heard(events.next().await?)).await?;
    }
}
