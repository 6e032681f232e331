//! `chips doctor`

mod disk;
mod held;

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use chips_client::{Client, TokenKind};
use chips_protocol::problem::ProblemCode;
use chips_store::OpenError;
use chips_store::admin;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::adapters::claude_code::settings;
use crate::adapters::opencode;
use crate::config::{self, Connection};
use crate::folder::{Folder, shell_word};
use crate::server_config::{self, FileArg, Flags, Reading};
use crate::{args, exit, folder, output, runtime};

/// How long a server may take to say whether it is ready. It waits for a lock itself before it says that it is not.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Check this machine's Chips, and say how to mend what is wrong
///
/// Looks at the data folder, the server on it and its configuration, and the configured tokens. Ends with exit code 1 where
/// something is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips doctor",
    "chips doctor --data /srv/chips --json",
    "chips doctor --config /etc/chips/chips.toml",
    "chips doctor --data /srv/chips --ready        as a health check: 0 where the server takes writes",
))]
pub struct Args {
    /// Only ask the server on the data folder whether it is ready, as health checks do: 1 where none is
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    data: folder::DataArgs,
    #[command(flatten)]
    server: FileArg,
    #[command(flatten)]
    json: args::Json,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Nothing wrong, but worth knowing.
    Note,
    /// To be mended.
    Wrong,
}

/// What one check found.
#[derive(Debug, Serialize)]
pub struct Finding {
    area: &'static str,
    state: State,
    says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

/// What all checks found, in order.
#[derive(Debug, Default, Serialize)]
pub struct Findings {
    checks: Vec<Finding>,
}

/// Where what is said begins, after the word for how it came out.
const INDENT: usize = 9;

const DATA: &str = "data folder";
const DATABASE: &str = "database";
const SERVER_CONFIGURATION: &str = "configuration of the server";
const CONFIGURATION: &str = "configuration";
const CLAUDE_CODE: &str = "Claude Code";
const OPENCODE: &str = "OpenCode";

impl Findings {
    fn ok(&mut self, area: &'static str, says: impl Into<String>) {
        self.checks.push(Finding { area, state: State::Ok, says: says.into(), mend: None });
    }

    fn note(&mut self, area: &'static str, says: impl Into<String>, mend: impl Into<String>) {
        self.checks.push(Finding { area, state: State::Note, says: says.into(), mend: Some(mend.into()) });
    }

    fn wrong(&mut self, area: &'static str, says: impl Into<String>, mend: impl Into<String>) {
        self.checks.push(Finding { area, state: State::Wrong, says: says.into(), mend: Some(mend.into()) });
    }

    fn all_well(&self) -> bool {
        self.checks.iter().all(|finding| finding.state != State::Wrong)
    }

    fn any_note(&self) -> bool {
        self.checks.iter().any(|finding| finding.state == State::Note)
    }

    /// The findings for people, by area; broken between words where there are columns to keep to.
    fn text(&self, colours: bool, columns: Option<usize>) -> String {
        let mut text = String::new();
        let mut area = "";
        for finding in &self.checks {
            if finding.area != area {
                text.push_str(if area.is_empty() { "" } else { "\n" });
                area = finding.area;
                text.push_str(&format!("{area}\n"));
            }
            let (word, colour) = match finding.state {
                State::Ok => ("ok   ", "32"),
                State::Note => ("note ", "33"),
                State::Wrong => ("wrong", "1;31"),
            };
            let word = if colours { format!("\u{1b}[{colour}m{word}\u{1b}[0m") } else { word.to_owned() };
            let mut lines =
                output::fill(&output::one_line(&finding.says), columns.map(|all| all.saturating_sub(INDENT)));
            if let Some(mend) = &finding.mend {
                lines.push('\n');
                lines.push_str(&output::fill(&output::one_line(mend), columns.map(|all| all.saturating_sub(INDENT))));
            }
            text.push_str(&format!("  {word}  {}\n", lines.replace('\n', &format!("\n{:INDENT$}", ""))));
        }
        text
    }
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut findings = Findings::default();
    let file = args.server.file();
    let reading = server_config::read(file.as_deref(), &Flags::default());
    let folder = match &reading.settings {
        Ok(settings) if !args.data.is_said() => {
            Folder::of(settings.data.as_deref())?.with_database(settings.database.clone())
        }
        _ => args.data.folder()?,
    };
    if !args.ready {
        server_configuration(file.as_deref(), &reading, &mut findings);
    }
    let findings = runtime::block_on(async {
        if args.ready {
            server(&folder, &mut findings).await;
            return Ok(findings);
        }
        data_folder(&folder, &mut findings).await;
        configuration(&mut findings).await;
        claude_code(&mut findings);
        open_code(&mut findings);
        Ok(findings)
    })?;
    // That no server runs is worth a note to somebody who looks, and a failure to what watches over one.
    let well = findings.all_well() && !(args.ready && findings.any_note());
    if args.json.json {
        output::json(&serde_json::json!({ "ok": well, "checks": findings.checks }))?;
    } else {
        output::text(findings.text(output::has_colours(), output::columns()))?;
        output::note(if well { "\nall is well" } else { "\nsomething is wrong; what mends it stands below it" });
    }
    Ok(if well { exit::DONE } else { exit::FAILED }.into())
}

/// The file of the server, and what the environment says to it; nothing is said where there is neither.
fn server_configuration(file: Option<&Path>, reading: &Reading, findings: &mut Findings) {
    for fault in reading.faults() {
        findings.wrong(SERVER_CONFIGURATION, fault.line(), "`chips config` shows what each key takes");
    }
    for warning in &reading.warnings {
        findings.note(
            SERVER_CONFIGURATION,
            warning.line(),
            "`chips config --check` shows what counts, and who said so",
        );
    }
    if let Some(file) = file
        && reading.faults().is_empty()
    {
        findings.ok(SERVER_CONFIGURATION, format!("{} is good", file.display()));
    }
}

/// The hooks in Claude Code's settings, the user's own and this folder's; nothing is said where there are none.
fn claude_code(findings: &mut Findings) {
    let here = std::env::current_dir().ok();
    let mut installed = false;
    for project in [None, here.as_deref()] {
        let Ok(path) = settings::path(project) else { continue };
        let shown = path.display();
        let current = match settings::read(&path) {
            Ok((_, current)) => current,
            Err(error) => {
                findings.wrong(CLAUDE_CODE, format!("{error:#}"), "mend the file, then run this again");
                continue;
            }
        };
        let Some(found) = settings::installed(&current) else { continue };
        installed = true;
        let install = if project.is_some() { " --project" } else { "" };
        let again = format!("write it anew: chips hook claude-code --install{install}{}", found.flags());
        match found.timeout {
            Some(seconds) if seconds >= settings::TIMEOUT_SECONDS && found.is_old => {
                let says = format!(
                    "{shown} has the hooks of an older Chips: a question answered in the terminal stays open in the inbox"
                );
                findings.wrong(CLAUDE_CODE, says, again);
            }
            Some(seconds) if seconds >= settings::TIMEOUT_SECONDS => {
                findings.ok(CLAUDE_CODE, format!("{shown} runs `{}`", found.command));
            }
            Some(seconds) => {
                let says = format!("{shown} lets the hook wait {seconds} s: shorter than a person may take");
                findings.wrong(CLAUDE_CODE, says, again);
            }
            None => {
                let says = format!("{shown} names no time-out for the hook: it is cut off after ten minutes");
                findings.wrong(CLAUDE_CODE, says, again);
            }
        }
    }
    if installed {
        match settings::version() {
            Some(version) if version >= settings::OLDEST => {
                let (major, minor, patch) = version;
                findings.ok(CLAUDE_CODE, format!("version {major}.{minor}.{patch}"));
            }
            Some((major, minor, patch)) => findings.wrong(
                CLAUDE_CODE,
                format!("version {major}.{minor}.{patch} takes no answers from a hook"),
                "update it to 2.1.85 or later: claude update",
            ),
            None => findings.note(
                CLAUDE_CODE,
                "`claude --version` says nothing here, so its version could not be checked",
                "2.1.85 or later is needed",
            ),
        }
    }
}

/// The plugins of OpenCode, the user's own and this folder's; nothing is said where there are none.
fn open_code(findings: &mut Findings) {
    use opencode::settings;
    let here = std::env::current_dir().ok();
    let (own, project) = (settings::installed(None), here.as_deref().map(|here| settings::installed(Some(here))));
    let places = [(own, ""), (project.unwrap_or_default(), " --project")];
    if places.iter().all(|(installed, _)| installed.is_empty()) {
        return;
    }
    for (plugin, install) in places.iter().flat_map(|(found, install)| found.iter().map(move |one| (one, *install))) {
        let (shown, command) = (plugin.path.display(), plugin.command.join(" "));
        if plugin.is_current {
            findings.ok(OPENCODE, format!("{shown} runs `{command}`"));
        } else {
            let again = format!("write it anew: chips hook opencode --install{install}");
            findings.wrong(OPENCODE, format!("{shown} is not what this version of Chips writes"), again);
        }
        let program = plugin.command.first().map(String::as_str).unwrap_or_default();
        if Path::new(program).is_absolute() && !Path::new(program).exists() {
            let again = format!("write it anew: chips hook opencode --install{install}");
            findings.wrong(OPENCODE, format!("{shown} runs {program}, which is not there"), again);
        }
    }
    let (tested, version) = (opencode::TESTED, settings::version());
    match version {
        Some((major, minor, patch)) if format!("{major}.{minor}.{patch}") == tested => {
            findings.ok(OPENCODE, format!("version {tested}"));
        }
        Some((1, minor, patch)) => findings.note(
            OPENCODE,
            format!("version 1.{minor}.{patch}; the plugin is tested with {tested}"),
            "nothing is to be done where a question of OpenCode's shows up in the inbox",
        ),
        Some((major, minor, patch)) => findings.wrong(
            OPENCODE,
            format!("version {major}.{minor}.{patch} loads plugins of another kind"),
            "run `opencode serve` and `chips bridge opencode` instead",
        ),
        None => findings.note(
            OPENCODE,
            "`opencode --version` says nothing here, so its version could not be checked",
            format!("the plugin is tested with {tested}"),
        ),
    }
}

/// The folder itself, what is in it, and who serves it.
async fn data_folder(folder: &Folder, findings: &mut Findings) {
    if folder.database().is_some() {
        database(folder, findings);
        return server(folder, findings).await;
    }
    let path = folder.path();
    let shown = path.display();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let says = format!("there is none at {shown}");
            let make = format!("`{}` makes it", folder.command("serve"));
            if folder.is_named() {
                findings.wrong(DATA, says, make);
            } else {
                findings.note(DATA, says, format!("{make}; on a machine that only asks or answers none is needed"));
            }
            return;
        }
        Err(error) => return findings.wrong(DATA, format!("{shown}: {error}"), "give this user access to it"),
    };
    if !metadata.is_dir() {
        return findings.wrong(DATA, format!("{shown} is no folder"), "name another with --data");
    }
    access(path, &metadata, findings);
    disk::examine(path, &metadata, findings);
    match held::examine(DATA, folder, findings) {
        Ok(()) => {}
        Err(admin::AdminError::Open(OpenError::Empty(_))) => {
            let make = format!("`{}` makes one, `{}` too", folder.command("serve"), folder.command("init"));
            return findings.note(DATA, format!("{shown} holds no workspace yet"), make);
        }
        Err(error) => {
            // A server that holds it may still say more.
            findings.wrong(DATA, error.to_string(), held::mend(&error));
        }
    }
    server(folder, findings).await;
}

/// The database, and what is in it.
fn database(folder: &Folder, findings: &mut Findings) {
    let shown = folder.location();
    match held::examine(DATABASE, folder, findings) {
        Ok(()) => {}
        Err(admin::AdminError::Open(OpenError::Empty(_))) => {
            if let Ok(Some((reason, mend))) = admin::may_not_init(folder.location()) {
                return findings.wrong(DATABASE, format!("{shown} holds no workspace yet, and {reason}"), mend);
            }
            let make = format!("`{}` makes one, `{}` too", folder.command("serve"), folder.command("init"));
            findings.note(DATABASE, format!("{shown} holds no workspace yet"), make);
        }
        Err(error) => findings.wrong(
            DATABASE,
            error.to_string(),
            "see that the server runs, that the URL names it, its user and a database, and that it is set to keep what it \
             acknowledges",
        ),
    }
}

/// Whether other users of the machine are kept out.
fn access(path: &Path, metadata: &std::fs::Metadata, findings: &mut Findings) {
    let word = shell_word(&path.to_string_lossy());
    let mode = metadata.mode() & 0o7777;
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        findings.wrong(
            DATA,
            format!("it belongs to user {}, and this is user {user}", metadata.uid()),
            format!("run Chips as that user, or give it away with `chown -R {user} {word}`"),
        );
    } else if mode & 0o700 != 0o700 {
        findings.wrong(
            DATA,
            format!("its owner may not read it, write to it or look into it (mode {mode:04o})"),
            format!("`chmod 700 {word}`"),
        );
    } else if mode & 0o077 == 0 {
        findings.ok(DATA, format!("only this user gets into it (mode {mode:04o})"));
    } else {
        findings.wrong(
            DATA,
            format!("other users of this machine get into it (mode {mode:04o})"),
            format!("`chmod 700 {word}`"),
        );
    }
}

/// Whether a server of this machine works on the database, and whether it answers. Those of others know about theirs.
async fn server_beside(folder: &Folder, findings: &mut Findings) {
    let serve = format!("`{}` starts one", folder.command("serve"));
    let Some(address) = folder.address() else {
        return findings.note(DATABASE, "no server of this machine works on it", serve);
    };
    match ready(address).await {
        Ok((200, _)) => findings.ok(DATABASE, format!("http://{address} serves it, for {}", folder.url(None))),
        Ok((status, detail)) => {
            let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            findings.wrong(
                DATABASE,
                format!("http://{address} is not ready (/readyz answers {status}){detail}"),
                "once PostgreSQL takes writes again it goes on by itself; the server's log says more",
            );
        }
        Err(reason) => {
            let says = format!("no server of this machine answers; the last one was on http://{address}: {reason}");
            findings.note(DATABASE, says, serve);
        }
    }
}

/// Whether a server holds the folder, and whether it answers.
async fn server(folder: &Folder, findings: &mut Findings) {
    if folder.database().is_some() {
        return server_beside(folder, findings).await;
    }
    let pid = match admin::holder(folder.path()) {
        Ok(Some(pid)) => pid,
        Ok(None) => {
            let serve = folder.command("serve");
            return findings.note(DATA, "no server runs on it", format!("`{serve}` starts one"));
        }
        Err(error) => return findings.wrong(DATA, error.to_string(), "give this user access to it"),
    };
    let Some(address) = folder.address() else {
        let again = "wait a moment; if it stays so, end that process and start the server again";
        return findings.wrong(DATA, format!("process {pid} holds it and has not said where it listens"), again);
    };
    match ready(address).await {
        Ok((200, _)) => {
            findings.ok(DATA, format!("process {pid} serves it on http://{address}, for {}", folder.url(None)))
        }
        Ok((status, detail)) => {
            let says = match detail {
                Some(detail) => {
                    format!("process {pid} on http://{address} is not ready (/readyz answers {status}): {detail}")
                }
                None => format!("process {pid} on http://{address} is not ready (/readyz answers {status})"),
            };
            let mend = match disk::writer_besides(&pid, folder.path()) {
                Some(other) => {
                    format!(
                        "process {other} has the database locked for writing: let it finish, or end it; writing goes on by itself then"
                    )
                }
                None => "once what is wrong above is mended, writing goes on by itself; the server's log says more"
                    .to_owned(),
            };
            findings.wrong(DATA, says, mend);
        }
        Err(reason) => findings.wrong(
            DATA,
            format!("process {pid} holds it but does not answer on http://{address}: {reason}"),
            format!("if it stays so, end it (`kill {pid}`) and start the server again"),
        ),
    }
}

/// The status that the server at this address answers `GET /readyz` with, and what a problem in the body says.
async fn ready(address: SocketAddr) -> Result<(u16, Option<String>), String> {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let ask = async {
        let mut connection = TcpStream::connect(address).await?;
        let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await?;
        let mut reply = Vec::new();
        connection.take(4096).read_to_end(&mut reply).await?;
        std::io::Result::Ok(reply)
    };
    let reply = match tokio::time::timeout(READY_WITHIN, ask).await {
        Ok(reply) => reply.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("no reply within {} s", READY_WITHIN.as_secs())),
    };
    let line = String::from_utf8_lossy(&reply);
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| "something else answers there".to_owned())?;
    let body = line.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str::<serde_json::Value>(body).ok());
    let detail = body.and_then(|body| body.get("detail")?.as_str().map(str::to_owned));
    Ok((status, detail))
}

/// The user's own configuration: whether others can read it, and whether its tokens are good where they go.
async fn configuration(findings: &mut Findings) {
    let path = match config::path() {
        Ok(path) => path,
        Err(error) => {
            let mend =
                "set HOME or XDG_CONFIG_HOME where `chips ask`, `chips inbox` and the others are to find a token";
            return findings.note(CONFIGURATION, format!("{error:#}"), mend);
        }
    };
    if let Some(mode) = config::open_to_others(&path) {
        findings.wrong(
            CONFIGURATION,
            format!("other users of this machine can read {} (mode {mode:04o})", path.display()),
            format!("`chmod 600 {}`", shell_word(&path.to_string_lossy())),
        );
    }
    let kept = match config::load() {
        Ok(kept) => kept,
        Err(error) => {
            let anew = format!("`mv {0} {0}.old`, then `chips connect URL`", shell_word(&path.to_string_lossy()));
            return findings.wrong(CONFIGURATION, format!("{error:#}"), anew);
        }
    };
    let mut any = false;
    for (kind, kept) in [(TokenKind::Harness, kept.harness.is_some()), (TokenKind::Person, kept.person.is_some())] {
        let variable = config::variable(kind);
        let from = match std::env::var_os(variable) {
            Some(value) if !value.is_empty() => variable.to_owned(),
            _ if kept => path.display().to_string(),
            _ => continue,
        };
        any = true;
        match config::connection(kind) {
            Ok(connection) => token(&from, &connection, findings).await,
            Err(error) => findings.wrong(CONFIGURATION, format!("{error:#}"), "`chips connect URL` sets both right"),
        }
    }
    if !any {
        let connect = "`chips connect URL` keeps one for `chips ask`, `chips inbox` and the others";
        findings.note(
            CONFIGURATION,
            format!("no token, neither in the environment nor in {}", path.display()),
            connect,
        );
    }
}

/// Whether a token is good at the server that it goes to.
async fn token(from: &str, connection: &Connection, findings: &mut Findings) {
    let Connection { address, token } = connection;
    let whose = config::whose(token.kind());
    let client = Client::builder(&address.to_string(), token.secret())
        .connect_within(READY_WITHIN)
        .reply_within(READY_WITHIN)
        .retry_for(Some(Duration::ZERO))
        .build();
    let client = match client {
        Ok(client) => client,
        Err(error) => return findings.wrong(CONFIGURATION, error.to_string(), "then run `chips doctor` again"),
    };
    match client.me().await {
        Ok(me) => {
            let (id, name) = (me.participant.id, me.participant.name);
            findings
                .ok(CONFIGURATION, format!("{from}: {whose} token, good at {address}: it speaks for {name} ({id})"));
        }
        Err(error) if error.code() == Some(ProblemCode::Unauthenticated) => findings.wrong(
            CONFIGURATION,
            format!("{from}: {whose} token that is not good at {address}: it has ended, or is another server's"),
            format!(
                "have a new one made (`chips harness rotate` or `chips person rotate`), then `chips connect {address}`"
            ),
        ),
        Err(error) => findings.wrong(
            CONFIGURATION,
            format!("{from}: {error}"),
            "start the server there, or `chips connect URL` if it is elsewhere now",
        ),
    }
}
