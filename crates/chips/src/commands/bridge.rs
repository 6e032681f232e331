//! `chips bridge`

use std::process::ExitCode;

use chips_client::TokenKind;
use clap::Subcommand;
use url::Url;

use crate::adapters::opencode::{bridge, server};
use crate::args::Asking;
use crate::{config, exit, output, remote, runtime};

/// Carry the questions of a harness's server through Chips
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("chips bridge opencode", "chips bridge opencode --url http://127.0.0.1:4096"))]
pub struct Args {
    #[command(subcommand)]
    harness: Harness,
}

#[derive(Debug, Subcommand)]
enum Harness {
    #[command(name = "opencode")]
    OpenCode(OpenCode),
}

/// Answer the questions of an `opencode serve` from Chips
///
/// Follows the server until it is interrupted, over restarts of OpenCode and of Chips. Its questions stay open in OpenCode's
/// own dialogs too; the first answer wins. Interrupted, it leaves its questions open in Chips: started again, it takes up
/// the same ones. The password is read from OPENCODE_SERVER_PASSWORD, as OpenCode reads it.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips bridge opencode",
    "chips bridge opencode --url http://127.0.0.1:4096 --timeout 8h --on-no-answer cancel",
    "OPENCODE_SERVER_PASSWORD=... chips bridge opencode --url https://opencode.example.com",
))]
struct OpenCode {
    /// Where `opencode serve` listens
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4096", value_parser = server_url)]
    url: Url,
    /// The variable that holds the server's password
    #[arg(long, value_name = "NAME", default_value = "OPENCODE_SERVER_PASSWORD")]
    password_env: String,
    #[command(flatten)]
    asking: Asking,
}

/// Reads the address of a harness's server: http or https, a host, perhaps a path; no password, which others could see.
fn server_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{error}; an example: http://127.0.0.1:4096"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("it begins with http:// or https:// and a host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it holds no name and no password: set OPENCODE_SERVER_PASSWORD".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it ends with the host, the port or a path".to_owned());
    }
    Ok(url)
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Harness::OpenCode(args) = args.harness;
    if let Some(wrong) = args.asking.wrong() {
        output::note(format_args!("chips: {wrong}"));
        return Ok(exit::USAGE.into());
    }
    let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = read("OPENCODE_SERVER_USERNAME").unwrap_or_else(|| server::USER.to_owned());
    let folder = config::folder()?;
    runtime::block_on(async {
        let client = remote::client(&config::connection(TokenKind::Harness)?)?;
        // A token that is no good is told before anything is asked with it.
        client.me().await?;
        let server = server::Server::new(args.url, user, read(&args.password_env))?;
        tokio::select! {
            () = bridge::run(server, client, args.asking.options(), &folder) => {}
            () = runtime::signalled()? => {}
        }
        output::note("chips: ended; what is open in Chips stays open, and is taken up when this is started again");
        Ok(exit::INTERRUPTED.into())
    })
}
