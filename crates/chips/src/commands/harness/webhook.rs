//! `chips harness webhook`

use std::process::ExitCode;
use std::time::Duration;

use chips_protocol::{AskId, HarnessId};
use chips_server::channels::webhook::{Keys, new_key};
use chips_server::outbound::Outbound;
use chips_store::admin::{Admin, Webhook};
use chips_store::clock::TimeSource;
use clap::Subcommand;
use serde_json::{Value, json};
use url::Url;

use crate::{args, exit, folder, output};

/// How long the old key signs beside the new one where nobody says otherwise.
const OVERLAP: Duration = Duration::from_secs(24 * 3600);

/// What can be done with the addresses that a harness has its answers posted to.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Have the answers of a harness posted to an address; prints the key that signs them
    #[command(after_help = examples!("chips harness webhook add hrn_01K4ZQPX000000000000000004 https://example.com/chips"))]
    Add {
        /// The harness
        #[arg(value_name = "HRN")]
        id: HarnessId,
        /// Where to, over https
        #[arg(value_name = "URL", value_parser = address)]
        url: Url,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// List the addresses, and what went wrong there last
    #[command(after_help = examples!("chips harness webhook list"))]
    List {
        /// The harness; all where it is left out
        #[arg(value_name = "HRN")]
        id: Option<HarnessId>,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// Make a new key; the old one signs on beside it for a day, or for --overlap
    #[command(after_help = examples!("chips harness webhook rotate 3", "chips harness webhook rotate 3 --overlap 7d"))]
    Rotate {
        /// The number in the list
        #[arg(value_name = "NUMBER")]
        number: i64,
        /// How long the old key signs on: 90s, 15m, 24h, 7d
        #[arg(long, value_name = "TIME", value_parser = args::duration)]
        overlap: Option<Duration>,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// Post the answer of an ask again, though it was taken or given up
    #[command(after_help = examples!("chips harness webhook resend 3 qst_01K4ZQPX000000000000000008"))]
    Resend {
        /// The number in the list
        #[arg(value_name = "NUMBER")]
        number: i64,
        /// The ask
        #[arg(value_name = "ASK")]
        ask_id: AskId,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
    /// Post nothing there any more
    #[command(after_help = examples!("chips harness webhook remove 3"))]
    Remove {
        /// The number in the list
        #[arg(value_name = "NUMBER")]
        number: i64,
        #[command(flatten)]
        data: folder::DataArgs,
        #[command(flatten)]
        json: args::Json,
    },
}

fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{error}; an example: https://example.com/chips"))?;
    match url.scheme() {
        "https" | "http" if Outbound::typed(text).is_none() => {
            Err("it is one line, and its port is not 0; an example: https://example.com/chips".to_owned())
        }
        "https" | "http" if url.username().is_empty() && url.password().is_none() => Ok(url),
        "https" | "http" => Err("it holds no name and no password; what is posted is signed".to_owned()),
        _ => Err("it begins with https://".to_owned()),
    }
}

/// Runs it.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Add { id, url, data, json } => {
            let folder = data.folder()?;
            let known = folder.exceptions();
            let outbound = Outbound::new(known.as_deref().unwrap_or_default()).map_err(anyhow::Error::msg)?;
            let origin = url.origin().ascii_serialization();
            let refused = outbound.check(&url).err();
            if let (Some(reason), Some(_)) = (&refused, &known) {
                output::error(&format!(
                    "{reason}. The server that runs here sends nothing there; start it with --allow-outbound {origin} first"
                ));
                return Ok(exit::USAGE.into());
            }
            let key = new_key()?;
            let secret = stored(&Keys::one(key.clone()))?;
            let number = Admin::open(folder.location())?.add_webhook(id, url.as_str(), &secret)?;
            if let Some(reason) = refused {
                output::note(format_args!("{reason}. The server must be started with --allow-outbound {origin}"));
            }
            issued(number, &key, json.json)?;
        }
        Command::List { id, data, json } => {
            list(&Admin::open(data.folder()?.location())?.webhooks(id)?, json.json)?;
        }
        Command::Rotate { number, overlap, data, json } => {
            let key = new_key()?;
            let now = TimeSource::System.wall();
            let until = now.plus_ms(args::milliseconds(overlap.unwrap_or(OVERLAP)));
            let change = |secret: &str| {
                let keys: Keys =
                    serde_json::from_str(secret).map_err(|_| "its key is damaged; add the address anew".to_owned())?;
                stored(&keys.rotate(key.clone(), now, until)).map_err(|error| error.to_string())
            };
            Admin::open(data.folder()?.location())?.change_webhook(number, change)?;
            issued(number, &key, json.json)?;
        }
        Command::Resend { number, ask_id, data, json } => {
            Admin::open(data.folder()?.location())?.resend_webhook(number, ask_id)?;
            said(
                json.json,
                json!({ "id": number, "ask_id": ask_id }),
                format!("{ask_id} is posted to {number} again"),
            )?;
        }
        Command::Remove { number, data, json } => {
            Admin::open(data.folder()?.location())?.remove_webhook(number)?;
            said(
                json.json,
                json!({ "id": number, "removed": true }),
                format!("nothing is posted to {number} any more"),
            )?;
        }
    }
    Ok(exit::DONE.into())
}

fn stored(keys: &Keys) -> anyhow::Result<String> {
    Ok(serde_json::to_string(keys)?)
}

fn said(json: bool, document: Value, line: String) -> anyhow::Result<()> {
    if json { output::json(&document) } else { output::line(line) }
}

fn issued(number: i64, key: &str, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&json!({ "id": number, "key": key }));
    }
    output::text(format!(
        "Webhook {number}. It is signed as https://www.standardwebhooks.com has it, with this key, shown once:\n\n  {key}\n"
    ))
}

fn list(webhooks: &[Webhook], json: bool) -> anyhow::Result<()> {
    if json {
        let all: Vec<Value> = webhooks
            .iter()
            .map(|hook| {
                json!({
                    "id": hook.id, "harness_id": hook.harness_id, "url": hook.url, "created_at": hook.created_at,
                    "disabled": hook.disabled, "trouble": hook.trouble, "waiting": hook.waiting,
                })
            })
            .collect();
        return output::json(&all);
    }
    if webhooks.is_empty() {
        output::note(format_args!("no harness has its answers posted anywhere; see chips harness webhook add --help"));
    }
    for hook in webhooks {
        let state = match (hook.disabled, &hook.trouble) {
            (true, trouble) => format!("ended: {}", trouble.as_deref().unwrap_or("the other side said 410")),
            (false, Some(trouble)) => format!("{} waiting; last try: {trouble}", hook.waiting),
            (false, None) => format!("{} waiting", hook.waiting),
        };
        output::line(format_args!("{}  {}  {}  {state}", hook.id, hook.harness_id, hook.url))?;
    }
    Ok(())
}
