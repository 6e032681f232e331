//! `chips serve`

mod phone;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use chips_server::{Config, Ended, StartError};
use chips_store::admin::{self, Admin, Initialised};
use chips_store::{OpenError, Options, Store};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::demo::{self, Stage};
use crate::folder::Folder;
use crate::place::{Place, owner, phone};
use crate::runtime::{self, Signals};
use crate::server_config::{self, Fault, FileArg, Flags};
use crate::{exit, logging, output, present, simulate};

/// Serve the API and the inbox
///
/// On an empty data folder it first makes what `chips init` makes. SIGTERM or Ctrl-C ends it: streams end, writes in
/// flight finish. Its log goes to standard error, for people on a terminal and as JSON otherwise. What stands below
/// "Configuration" can stand in a file or in the environment, too: a flag wins over the environment, that over the file.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips serve --demo",
    "chips serve --phone                               can a phone reach this, and how?",
    "chips serve --data /srv/chips --public-url https://chips.example.com",
    "chips serve --config /etc/chips/chips.toml        what `chips config` prints, and your own in it",
    "chips serve --listen 0.0.0.0:7070 --insecure      in a network that you trust",
    "chips serve --simulate script.toml -- make test   a harness's tests, answered by a script",
))]
pub struct Args {
    #[command(flatten)]
    config: FileArg,
    #[command(flatten)]
    flags: Flags,
    /// Play a harness that asks a sample question, and print the answer that comes back
    ///
    /// Prints a link that signs the first owner in, wherever standard output goes.
    #[arg(long)]
    demo: bool,
    /// Say whether a phone can reach this over https, and show its way in as a QR code; or how to have that
    ///
    /// A public address is looked for until it leads here. The link and the code are shown on a terminal alone.
    #[arg(long)]
    phone: bool,
    /// Answer by a script instead of people, on throwaway data: tries a harness out
    ///
    /// Prints CHIPS_URL and CHIPS_TOKEN for the harness. The clock can be moved, so that an hour's time-out passes in a
    /// moment; the script can lose replies, cut streams and restart the server. Ends with 1 where something of the script
    /// did not happen. docs/simulate.md says what a script can say.
    #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["demo", "phone", "config"])]
    simulate: Option<PathBuf>,
    /// With --simulate: run this command with CHIPS_URL and CHIPS_TOKEN, end when it does, and with its exit code
    #[arg(last = true, value_name = "COMMAND", requires = "simulate")]
    command: Vec<OsString>,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(script) = &args.simulate {
        return simulation(script, &args);
    }
    let file = args.config.file();
    let reading = server_config::read(file.as_deref(), &args.flags);
    let settings = match reading.settings {
        Ok(settings) => settings,
        Err(faults) => {
            let refused = refused(&faults);
            for warning in &reading.warnings {
                output::note(format_args!("chips: warning: {}", warning.line()));
            }
            return Ok(refused);
        }
    };
    logging::start_as(settings.log.as_deref());
    for warning in reading.warnings {
        tracing::warn!("{}", warning.line());
    }
    if let Some(file) = file {
        tracing::info!("configured by {}", output::one_line(&file.to_string_lossy()));
    }
    let folder = Folder::of(settings.data.as_deref())?.with_database(settings.database.clone());
    runtime::serve(serve(folder, settings.server(), Shown { demo: args.demo, phone: args.phone }))
}

/// Says all that is wrong with the configuration. It is wrong usage, wherever it stands: starting again mends nothing.
fn refused(faults: &[Fault]) -> ExitCode {
    faults.iter().for_each(|fault| output::error(&fault.line()));
    exit::USAGE.into()
}

/// Serves by a script. What a real server is told for good (a file, a folder, an address that people use) has no place here;
/// where the environment says it for everything, it is passed over.
fn simulation(script: &Path, args: &Args) -> anyhow::Result<ExitCode> {
    for key in args.flags.keys() {
        let flag = key.flag();
        match key.path {
            path if server_config::IN_A_SIMULATION.contains(&path) => {}
            "data" => anyhow::bail!("a simulation makes up its data and throws it away; leave --data out"),
            "public_url" => anyhow::bail!("a simulation is reached on loopback alone; leave --public-url out"),
            _ => anyhow::bail!("a simulation is no server for people; leave --{flag} out"),
        }
    }
    // `-- $COMMAND` with an empty variable would serve for ever.
    if args.command.is_empty() && std::env::args_os().next_back().is_some_and(|last| last == "--") {
        output::error("nothing stands after `--`; name the command to run, or leave `--` out");
        return Ok(exit::USAGE.into());
    }
    let told = match server_config::read_for_simulation(&args.flags) {
        Ok(told) => told,
        Err(faults) => return Ok(refused(&faults)),
    };
    logging::start_as(told.log.as_deref());
    simulate::run(script, told.listen, told.allow_host, &args.command)
}

/// What is shown beside the server.
struct Shown {
    demo: bool,
    phone: bool,
}

async fn serve(folder: Folder, config: Config, shown: Shown) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    // From here on, also while a long log is read through: the first signal stops, the second ends.
    tokio::spawn(Signals::take()?.stop(stop.clone()));
    config.check().map_err(StartError::Config)?;
    if !reached(&folder, &stop).await? {
        return Ok(exit::DONE.into());
    }
    let made = first_start(&folder, &config)?;
    let store = Store::open(folder.location(), Options::default())?;
    let reachable =
        config.public_url.as_ref().is_some_and(|url| url.scheme() == "https") || !config.listen.ip().is_loopback();
    let public = config.public_url.is_some();
    let exceptions = config.allow_outbound.clone();
    let server = chips_server::bind(config, store).await?;
    let address = server.address();
    let url = match public || !address.ip().is_unspecified() {
        true => server.url(),
        false => format!("http://{}", SocketAddr::new(own_address(), address.port())),
    };
    if let Err(error) = folder.keep_url(&url).and_then(|()| folder.keep_address(address)) {
        tracing::warn!("links made by `chips person link` may name another address: {error:#}");
    }
    if let Err(error) = folder.keep_exceptions(&exceptions) {
        tracing::warn!("`chips harness webhook add` does not know what --allow-outbound excepts: {error:#}");
    }
    let stage = if shown.demo { Some(Stage::set(&folder, made.as_ref())?) } else { None };
    // Nobody may be reading any more; the server serves all the same.
    let _ = output::line(format_args!("listening on http://{address}"));
    if stage.is_some() {
        if made.is_some() {
            let path = output::one_line(&folder.location().to_string());
            let _ = output::line(format_args!("\nA new {}: {path}", folder.kind()));
        }
    } else {
        let _ = greet(&folder, made.as_ref(), &url, reachable && !shown.phone);
    }
    let place = Place { address, url, reachable };
    let (show_demo, show_phone, stopped) = (stage.is_some(), shown.phone, stop.clone());
    tokio::spawn(async move {
        let demo = async {
            if let Some(stage) = stage {
                show(stage, &place, &folder, made, &stopped).await;
            }
        };
        let phone = async {
            if show_phone && let Err(error) = phone::show(&folder, &place, show_demo, &stopped).await {
                tracing::warn!("what a phone needs can't be shown: {error:#}");
            }
        };
        tokio::join!(demo, phone);
    });
    match server.run(stop).await {
        Ended::Stopped => Ok(exit::DONE.into()),
        Ended::Failed(fatal) => {
            let said = output::one_line(&fatal.to_string());
            output::error(&format!(
                "{said}; what was acknowledged is in the log, start the server again once the disk is well"
            ));
            Ok(exit::STORE_FAILED.into())
        }
    }
}

/// How long a start waits for a database server. Five such starts take longer than the ten minutes in which the unit of `deploy/` allows
/// five: it goes on trying until the server is there.
const PATIENCE: Duration = Duration::from_secs(150);
/// How long it waits between two tries.
const BETWEEN: Duration = Duration::from_secs(1);

/// Waits until the database server is there, as after a power cut that took both. False where it is told to stop meanwhile.
async fn reached(folder: &Folder, stop: &CancellationToken) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        let Err(error) = admin::is_initialised(folder.location()) else { return Ok(true) };
        if !matches!(error, OpenError::Away { .. }) || begun.elapsed() >= PATIENCE {
            return Err(error.into());
        }
        if !std::mem::replace(&mut told, true) {
            tracing::warn!(%error, "the database can't be reached; it is tried again for {} s", PATIENCE.as_secs());
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(false),
            () = tokio::time::sleep(BETWEEN) => {}
        }
    }
}

/// Makes what `chips init` makes, on a folder that has nothing yet.
fn first_start(folder: &Folder, config: &Config) -> anyhow::Result<Option<Initialised>> {
    if admin::is_initialised(folder.location())? {
        return Ok(None);
    }
    // A start that ends here must not have made tokens that nobody got to see.
    std::net::TcpListener::bind(config.listen)
        .map_err(|source| StartError::Listen { address: config.listen, source })?;
    match admin::init(folder.location()) {
        Ok(made) => Ok(Some(made)),
        // Somebody else was faster; whether they hold the folder is seen when it is opened.
        Err(OpenError::NotEmpty(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Says what to copy (on a terminal, after the first start), or which commands make what was shown then.
fn greet(folder: &Folder, made: Option<&Initialised>, url: &str, reachable: bool) -> anyhow::Result<()> {
    match made {
        Some(made) if output::is_terminal() => {
            let path = output::one_line(&folder.location().to_string());
            let mut text = format!("\nA new {}: {path}\n\n{}\n", folder.kind(), present::initialised(made, url));
            if reachable && let Some(code) = phone(&present::sign_in_url(url, &made.sign_in)) {
                text.push_str(&format!("{}\n\n{code}\n", output::bold("The sign-in link, for a phone")));
            }
            output::text(text)
        }
        _ => {
            let mut admin = Admin::open(folder.location()).ok();
            let owner = admin.as_mut().and_then(|admin| owner(admin).ok().flatten());
            let several = admin.is_some_and(|mut admin| {
                admin.workspaces().is_ok_and(|all| all.iter().filter(|one| !one.disabled).count() > 1)
            });
            let person = owner.map_or_else(|| "USR".to_owned(), |(_, person)| person.to_string());
            let link = folder.command(&format!("person link {person}"));
            // Where there are several, a new harness needs to be told which one is its own.
            let token = folder.command(match several {
                true => "harness add NAME --workspace WS",
                false => "harness add NAME",
            });
            if output::is_terminal() {
                return output::text(format_args!(
                    "\nA new sign-in link is made by\n  {link}\nand a new token by\n  {token}\n\n"
                ));
            }
            tracing::info!("serving {}; `{link}` makes a sign-in link, `{token}` a token", folder.location());
            Ok(())
        }
    }
}

/// Plays the demo beside the server, and says how to go on after it.
async fn show(stage: Stage, place: &Place, folder: &Folder, made: Option<Initialised>, stop: &CancellationToken) {
    let shown = tokio::select! {
        () = stop.cancelled() => return,
        shown = demo::play(stage, place) => shown,
    };
    match shown {
        Ok(()) => {}
        Err(error) if error.is::<output::Closed>() => return,
        Err(error) => tracing::error!("the demo ends early: {error:#}"),
    }
    let url = &place.url;
    let mut text = format!("\nThe inbox stays open at {url}; Ctrl-C ends the server.\n");
    if output::is_terminal() {
        let next = match &made {
            Some(made) => present::ask_lines(url, &made.harness.token),
            None => format!("{}\n", folder.command("harness add NAME")),
        };
        text.push_str(&format!("\n{}\n\n{next}\n", output::bold("Ask something yourself, in another terminal")));
    }
    let _ = output::text(text);
}

/// The address by which others in the network know this machine; loopback where it is in none.
fn own_address() -> IpAddr {
    let asked = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // Connecting a datagram socket sends nothing; it only picks the way out. 192.0.2.0/24 is nobody's (RFC 5737).
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    };
    asked().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address: SocketAddr| address.ip())
}
