//! `chips serve`

mod phone;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use chips_mcp::{BEAT, Pace};
use chips_protocol::{PersonId, WorkspaceId};
use chips_server::{Config, Ended, StartError};
use chips_store::admin::{self, Admin, Initialised};
use chips_store::{OpenError, Options, Store};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::demo::{self, Place, Stage};
use crate::folder::Folder;
use crate::{args, exit, folder, logging, output, present, qr, runtime, simulate};

/// Where the server listens unless it is told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:7070";

/// How long after the first signal the process is gone at the latest; the server drains for 8 s of it.
const GONE_AFTER: Duration = Duration::from_millis(9_500);

/// Serve the API and the inbox
///
/// On an empty data folder it first makes what `chips init` makes. SIGTERM or Ctrl-C ends it: streams end, writes in
/// flight finish. Its log goes to standard error, for people on a terminal and as JSON otherwise; CHIPS_LOG says what
/// is logged (`warn,chips_server=debug`).
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips serve --demo",
    "chips serve --phone                               can a phone reach this, and how?",
    "chips serve --data /srv/chips --public-url https://chips.example.com",
    "chips serve --listen 0.0.0.0:7070 --insecure      in a network that you trust",
    "chips serve --simulate script.toml -- make test   a harness's tests, answered by a script",
))]
pub struct Args {
    #[command(flatten)]
    data: folder::DataArgs,
    /// The address to listen on; port 0 takes a free one [default: 127.0.0.1:7070; with --simulate a free port]
    #[arg(long, env = "CHIPS_LISTEN", value_name = "ADDR", value_parser = args::listen)]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    public_url: args::PublicUrl,
    /// A further host name that requests may name, such as a proxy's; may be given again
    #[arg(long = "allow-host", env = "CHIPS_ALLOW_HOST", value_name = "NAME", value_delimiter = ',')]
    allow_hosts: Vec<String>,
    /// An address that messages may be sent to though it is not public or not https, such as http://10.0.0.5:2586
    #[arg(long = "allow-outbound", env = "CHIPS_ALLOW_OUTBOUND", value_name = "URL", value_delimiter = ',')]
    allow_outbound: Vec<url::Url>,
    /// Serve plain http on an address that is not loopback: whoever can listen on the network reads along
    #[arg(long)]
    insecure: bool,
    /// Serve /metrics to others than this machine
    #[arg(long)]
    public_metrics: bool,
    /// How long a call of an MCP tool waits for a person before it returns "pending" [default: what the client allows]
    #[arg(long, env = "CHIPS_MCP_SLICE", value_name = "TIME", value_parser = args::span)]
    mcp_slice: Option<Duration>,
    /// How often a call that waits says so, where the MCP client asks for progress [default: 20s]
    #[arg(long, env = "CHIPS_MCP_BEAT", value_name = "TIME", value_parser = args::span)]
    mcp_beat: Option<Duration>,
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
    #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["demo", "phone", "insecure", "public_metrics"])]
    simulate: Option<PathBuf>,
    /// With --simulate: run this command with CHIPS_URL and CHIPS_TOKEN, end when it does, and with its exit code
    #[arg(last = true, value_name = "COMMAND", requires = "simulate")]
    command: Vec<OsString>,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    logging::start();
    if let Some(script) = &args.simulate {
        if let Some(data) = args.data.said_here() {
            anyhow::bail!(
                "a simulation makes up its data and throws it away: it has no place in {}; leave --data out",
                data.display()
            );
        }
        if args.public_url.public_url.is_some() && std::env::var_os("CHIPS_PUBLIC_URL").is_none() {
            anyhow::bail!("a simulation is reached on loopback alone; leave --public-url out");
        }
        // `-- $COMMAND` with an empty variable would serve for ever.
        if args.command.is_empty() && std::env::args_os().next_back().is_some_and(|last| last == "--") {
            output::error("nothing stands after `--`; name the command to run, or leave `--` out");
            return Ok(exit::USAGE.into());
        }
        return simulate::run(script, args.listen, args.allow_hosts, &args.command);
    }
    let folder = args.data.folder()?;
    let config = Config {
        public_url: args.public_url.public_url,
        allow_hosts: args.allow_hosts,
        allow_outbound: args.allow_outbound,
        insecure: args.insecure,
        public_metrics: args.public_metrics,
        mcp: Pace { slice: args.mcp_slice, beat: args.mcp_beat.unwrap_or(BEAT) },
        ..Config::on(match args.listen {
            Some(listen) => listen,
            None => args::listen(DEFAULT_LISTEN).map_err(anyhow::Error::msg)?,
        })
    };
    runtime::serve(serve(folder, config, Shown { demo: args.demo, phone: args.phone }))
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
    let made = first_start(&folder, &config)?;
    let store = Store::open(folder.path(), Options::default())?;
    let reachable =
        config.public_url.as_ref().is_some_and(|url| url.scheme() == "https") || !config.listen.ip().is_loopback();
    let public = config.public_url.is_some();
    let server = chips_server::bind(config, store).await?;
    let address = server.address();
    let url = match public || !address.ip().is_unspecified() {
        true => server.url(),
        false => format!("http://{}", SocketAddr::new(own_address(), address.port())),
    };
    if let Err(error) = folder.keep_url(&url).and_then(|()| folder.keep_address(address)) {
        tracing::warn!("links made by `chips person link` may name another address: {error:#}");
    }
    let stage = if shown.demo { Some(Stage::set(&folder, made.as_ref())?) } else { None };
    // Nobody may be reading any more; the server serves all the same.
    let _ = output::line(format_args!("listening on http://{address}"));
    if stage.is_some() {
        if made.is_some() {
            let path = output::one_line(&folder.path().to_string_lossy());
            let _ = output::line(format_args!("\nA new data folder: {path}"));
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

/// Makes what `chips init` makes, on a folder that has nothing yet.
fn first_start(folder: &Folder, config: &Config) -> anyhow::Result<Option<Initialised>> {
    if admin::is_initialised(folder.path())? {
        return Ok(None);
    }
    // A start that ends here must not have made tokens that nobody got to see.
    std::net::TcpListener::bind(config.listen)
        .map_err(|source| StartError::Listen { address: config.listen, source })?;
    match admin::init(folder.path()) {
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
            let path = output::one_line(&folder.path().to_string_lossy());
            let mut text = format!("\nA new data folder: {path}\n\n{}\n", present::initialised(made, url));
            if reachable && let Some(code) = phone(&present::sign_in_url(url, &made.sign_in)) {
                text.push_str(&format!("{}\n\n{code}\n", output::bold("The sign-in link, for a phone")));
            }
            output::text(text)
        }
        _ => {
            let owner = Admin::open(folder.path()).ok().and_then(|mut admin| owner(&mut admin).ok().flatten());
            let person = owner.map_or_else(|| "USR".to_owned(), |(_, person)| person.to_string());
            let link = folder.command(&format!("person link {person}"));
            let token = folder.command("harness add NAME");
            if output::is_terminal() {
                return output::text(format_args!(
                    "\nA new sign-in link is made by\n  {link}\nand a new token by\n  {token}\n\n"
                ));
            }
            tracing::info!("serving {}; `{link}` makes a sign-in link, `{token}` a token", folder.path().display());
            Ok(())
        }
    }
}

/// A link as a QR code, where standard output is a terminal that shows it whole.
pub fn phone(link: &str) -> Option<String> {
    if std::env::var_os("TERM").is_none_or(|term| term == "dumb") {
        return None;
    }
    qr::code(link, output::columns()?)
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

/// The oldest workspace and who owns it; where no owner is left, its oldest person.
pub fn owner(admin: &mut Admin) -> anyhow::Result<Option<(WorkspaceId, PersonId)>> {
    let Some(workspace) = admin.workspaces()?.first().map(|workspace| workspace.workspace_id) else { return Ok(None) };
    let mut persons = admin.persons(Some(workspace))?;
    persons.retain(|person| !person.disabled);
    let person = persons.iter().find(|person| person.note.contains("owner")).or(persons.first());
    Ok(person.and_then(|person| person.id.parse().ok()).map(|person| (workspace, person)))
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

/// The signals that end the server.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes them from here on.
    ///
    /// # Errors
    /// The system gives none.
    pub fn take() -> anyhow::Result<Self> {
        let take = |kind| signal(kind).context("can't listen for signals");
        Ok(Self { terminate: take(SignalKind::terminate())?, interrupt: take(SignalKind::interrupt())? })
    }

    /// The next signal, as the exit code of a process that it ends.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.terminate.recv() => 143,
            _ = self.interrupt.recv() => 130,
        }
    }

    /// Stops the server at the first signal and ends the process at the second, or when the time is up.
    pub async fn stop(mut self, stop: CancellationToken) {
        self.next().await;
        stop.cancel();
        if output::is_terminal() {
            output::note("\nstopping; Ctrl-C again ends it at once");
        }
        // Whatever was acknowledged is on the disk: ending at once loses nothing.
        match tokio::time::timeout(GONE_AFTER, self.next()).await {
            Ok(code) => std::process::exit(code),
            Err(_) => std::process::exit(0),
        }
    }
}
