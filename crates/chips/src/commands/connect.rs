//! `chips connect`

use std::io::{self, BufRead, IsTerminal, Read};
use std::process::ExitCode;

use anyhow::{Context, bail};
use chips_client::{Address, Client, Token, TokenKind};

use crate::config::{self, Connection};
use crate::terminal::secret;
use crate::{exit, output, remote, runtime};

/// Connect this machine's user to a server: ask for a token, check it, keep it
///
/// The token is typed (it is not shown) or piped in, never an argument: arguments are seen by everybody on the machine.
/// It is kept in `chips/config.toml` in your configuration folder ($XDG_CONFIG_HOME, else ~/.config), which only you can
/// read. A harness's token and a person's are kept side by side; connect once with each. CHIPS_URL, CHIPS_TOKEN and
/// CHIPS_USER_TOKEN win over what is kept.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips connect http://127.0.0.1:7070",
    "chips connect https://chips.example.com < token.txt",
))]
pub struct Args {
    /// The server: http:// or https://, a host and perhaps a port
    url: Address,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let address = args.url;
    if !address.is_encrypted() && !address.is_loopback() {
        output::note(format_args!(
            "chips: {address} is not encrypted: whoever can listen on the network between reads the token along"
        ));
    }
    let Some(text) = ask_token(&address)? else {
        return Ok(exit::INTERRUPTED.into());
    };
    let token: Token = text.parse()?;
    let connection = Connection { address, token };
    let client: Client = remote::client(&connection)?;
    let me = runtime::block_on(async { Ok(client.me().await?) }).context("the token is not kept")?;
    let path = config::save(&connection)?;
    let kind = match connection.token.kind() {
        TokenKind::Harness => "harness",
        TokenKind::Person => "person",
    };
    output::note(format_args!(
        "Connected to {} as {} ({kind} {}, {}).",
        connection.address,
        output::one_line(&me.participant.name),
        me.participant.id,
        me.workspace_id
    ));
    output::note(format_args!("Kept in {}.", output::one_line(&path.to_string_lossy())));
    let next = match connection.token.kind() {
        TokenKind::Harness => "chips ask 'Deploy now?' -o yes=Yes -o no='Not yet'",
        TokenKind::Person => "chips inbox",
    };
    output::note(format_args!("Now try: {next}"));
    Ok(exit::DONE.into())
}

/// The token, from the terminal without an echo or from standard input; nothing where Ctrl-C was pressed.
fn ask_token(address: &Address) -> anyhow::Result<Option<String>> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        return secret::read(&format!("Token for {address} (it is not shown): ")).context("can't read the token");
    }
    // A line is enough; what is longer than any token is none.
    let mut line = String::new();
    io::stdin().lock().take(4096).read_line(&mut line).context("can't read the token from standard input")?;
    if line.trim().is_empty() {
        bail!("no token on standard input: type it on a terminal, or pipe it in");
    }
    Ok(Some(line))
}
