//! The plugin's other half: `chips hook opencode` as the plugin starts it. A line of JSON on standard input for each
//! event, one on standard output for each reply that the plugin is to give; the end of the input is OpenCode's end.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use chips_client::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::oneshot;

use super::Options;
use super::carry::{Carrier, Delivered, Dialogs, Reply};
use super::server::delivered;
use super::wire::{Heard, Pending};
use crate::adapters::away;
use crate::output;

/// A line of the plugin's.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Replied {
        replied: String,
        status: u16,
    },
    Event {
        event: Value,
        #[serde(default)]
        directory: Option<String>,
        #[serde(default)]
        title: Option<String>,
    },
}

/// The plugin, as the carrier sees it.
#[derive(Debug, Clone, Default)]
struct Plugin(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    replies: HashMap<String, oneshot::Sender<u16>>,
    titles: HashMap<String, String>,
}

impl Plugin {
    fn waiting<T>(&self, with: impl FnOnce(&mut Waiting) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Dialogs for Plugin {
    async fn reply(&self, pending: &Pending, reply: &Reply) -> anyhow::Result<Delivered> {
        let (tell, told) = oneshot::channel();
        self.waiting(|waiting| waiting.replies.insert(pending.id.clone(), tell));
        output::json(&match reply {
            Reply::Answers(body) => json!({ "id": pending.id, "body": body }),
            Reply::Dismiss => json!({ "id": pending.id, "dismiss": true }),
        })?;
        match told.await.context("the plugin has gone")? {
            status @ (0 | 500..) => anyhow::bail!("OpenCode answers {status}"),
            status => Ok(delivered(status, None)),
        }
    }

    async fn title(&self, pending: &Pending) -> Option<String> {
        self.waiting(|waiting| waiting.titles.get(&pending.session).cloned())
    }

    fn host(&self) -> Option<String> {
        None
    }
}

/// Carries what the plugin says until its input ends, or `ended` comes; then takes back what is open. `folder` is the
/// user's configuration folder, which says whether they are away.
///
/// # Errors
/// Standard input can't be read.
pub async fn run(
    client: Client,
    options: Options,
    folder: &Path,
    ended: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let plugin = Plugin::default();
    let mut carrier = Carrier::new(client, plugin.clone(), options);
    // Split as bytes: a line that is no UTF-8 must not be the last one that is heard.
    let mut lines = BufReader::new(tokio::io::stdin()).split(b'\n');
    tokio::pin!(ended);
    loop {
        let line = tokio::select! {
            line = lines.next_segment() => line,
            () = &mut ended => break,
        };
        let Some(line) = line.context("can't read what the plugin says")? else { break };
        match serde_json::from_slice(&line) {
            Ok(Line::Replied { replied, status }) => {
                if let Some(tell) = plugin.waiting(|waiting| waiting.replies.remove(&replied)) {
                    // Whoever waits no more needs no answer.
                    let _ = tell.send(status);
                }
            }
            Ok(Line::Event { event, directory, title }) => {
                let Some(heard) = Heard::read(&event, directory.as_deref()) else { continue };
                if let (Heard::Asked(pending), Some(title)) = (&heard, title) {
                    plugin.waiting(|waiting| waiting.titles.insert(pending.session.clone(), title));
                }
                carrier.hear(heard, away::now(folder));
            }
            Err(error) if error.is_data() => {
                output::note("chips: the plugin sent a line that is neither an event nor a reply")
            }
            Err(error) => output::note(format_args!("chips: the plugin sent a line that is not JSON: {error}")),
        }
    }
    carrier.finish().await;
    Ok(())
}
