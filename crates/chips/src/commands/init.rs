//! `chips init`

use std::process::ExitCode;

use chips_store::admin;

use crate::present::{self, InitialisedJson};
use crate::{args, exit, folder, output};

/// Make a data folder with a workspace, a person and a harness
///
/// Prints their tokens and a link to sign in, once: Chips keeps only their hashes. A folder that has a workspace is left as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips init --data /srv/chips",
    "chips init --data /srv/chips --public-url https://chips.example.com --json",
))]
pub struct Args {
    #[command(flatten)]
    data: folder::DataArgs,
    #[command(flatten)]
    public_url: args::PublicUrl,
    #[command(flatten)]
    json: args::Json,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let folder = args.data.folder()?;
    let made = admin::init(folder.location())?;
    let url = folder.url(args.public_url.public_url.as_ref());
    if args.json.json {
        output::json(&InitialisedJson::new(&made, &url))?;
    } else {
        let heading = output::bold("Start the server");
        let serve = folder.command("serve");
        output::text(format_args!("{}\n{heading}\n\n{serve}\n", present::initialised(&made, &url)))?;
    }
    // Later links are built on it until a server says better. What was made stands without it.
    if let Some(public) = &args.public_url.public_url
        && let Err(error) = folder.keep_url(public.as_str().trim_end_matches('/'))
    {
        output::note(format_args!("chips: {error:#}"));
    }
    Ok(exit::DONE.into())
}
