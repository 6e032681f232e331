//! The server's configuration: a default text that is read first, the file of the operator, the environment and the flags.
//!
//! It is another thing than the user's own file that `chips connect` writes (`config.rs`): that one says where commands
//! such as `chips ask` go, and with which token; this one says how `chips serve` serves.

mod flags;
mod keys;
mod layers;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use chips_mcp::Pace;
use chips_server::config::{Mailbox, Secret, Smtp, SmtpTls, Telegram};
use chips_server::{Config, config};
use chips_store::Database;
use ipnet::IpNet;
use url::Url;

pub use flags::{FileArg, Flags};
pub use keys::{DEFAULT, Key, Shape};
pub use layers::{Fault, Given, Layer};

use crate::{args, logging};

/// The variable that names the file.
pub const VARIABLE: &str = "CHIPS_CONFIG";

/// Lists the keys: a field of [`Settings`], the shape of what it takes, its name in the file, what its value is called
/// in a usage, and how a text of it is read.
macro_rules! keys {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $shape:ident $getter:ident($path:literal, $value:literal, $read:expr);)+) => {
        /// What the layers say together.
        #[derive(Debug, Clone)]
        pub struct Settings { $($(#[$doc])* pub $field: $type,)+ }

        /// Every key, in the order of the default text.
        pub static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            let mut keys = Vec::new();
            $(Key::new($path, $value, Shape::$shape, |text: &str| $read(text).map(drop))
                .add_to(&mut keys, concat!($path, "_file"));)+
            keys
        });

        impl Settings {
            fn of(values: &layers::Values) -> Result<Self, Fault> {
                Ok(Self { $($field: values.$getter($path, $read)?,)+ })
            }
        }
    };
}

keys! {
    /// The data folder.
    data: Option<PathBuf> = Path path("data", "DIR", any_path);
    /// The database instead of a data folder.
    database: Option<Database> = Secret secret("database", "URL", Database::parse);
    /// The address to listen on.
    listen: SocketAddr = Text text("listen", "ADDR", args::listen);
    /// The address that people and harnesses use.
    public_url: Option<Url> = Maybe maybe("public_url", "URL", args::public_url);
    /// Further host names that requests may name.
    allow_host: Vec<String> = List list("allow_host", "NAME", config::allowed_host);
    /// Where messages may go though it is not public or not https.
    allow_outbound: Vec<Url> = List list("allow_outbound", "URL", config::outbound_origin);
    /// Proxies whose word counts on whom a request comes from.
    trust_proxy: Vec<IpNet> = List list("trust_proxy", "CIDR|ADDRESS", config::trusted_proxy);
    /// Whether plain http is served on an address that is not loopback.
    insecure: bool = Switch switch("insecure", "BOOL", args::switch);
    /// Whether `/metrics` is served to others than this machine.
    public_metrics: bool = Switch switch("public_metrics", "BOOL", args::switch);
    /// What is logged.
    log: Option<String> = Maybe maybe("log", "FILTER", logging::filter_text);
    /// How many days events are kept at least.
    retain: Option<Duration> = Maybe maybe("retain", "DAYS", args::days);
    /// How long a call of an MCP tool waits.
    mcp_slice: Option<Duration> = Maybe maybe("mcp.slice", "TIME", args::span);
    /// How often a call that waits says so.
    mcp_beat: Duration = Text text("mcp.beat", "TIME", args::span);
    /// The server that takes e-mail.
    smtp_host: Option<String> = Maybe maybe("smtp.host", "HOST", config::mail_host);
    /// Its port.
    smtp_port: u16 = Number number("smtp.port", "PORT", args::port);
    /// How the connection to it is encrypted.
    smtp_tls: SmtpTls = Text text("smtp.tls", "HOW", str::parse::<SmtpTls>);
    /// Whether mail is sent in the clear to another machine.
    smtp_insecure: bool = Switch switch("smtp.insecure", "BOOL", args::switch);
    /// Who Chips is there.
    smtp_username: Option<String> = Maybe maybe("smtp.username", "NAME", any_text);
    /// The password for it.
    smtp_password: Option<Secret> = Secret secret("smtp.password", "TEXT", secret);
    /// Whom messages are from.
    smtp_from: Option<Mailbox> = Maybe maybe("smtp.from", "ADDRESS", config::sender);
    /// Authorities of the server's certificate, in PEM.
    smtp_ca_file: Option<Vec<u8>> = Path path("smtp.ca_file", "FILE", config::authorities);
    /// The bot on Telegram.
    telegram_token: Option<Secret> = Secret secret("telegram.token", "TEXT", secret);
    /// Where its API is.
    telegram_api: Url = Text text("telegram.api", "URL", config::outbound_origin);
}

/// Reads a text, whatever it says.
fn any_text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Reads a secret: anything that fits on a line.
fn secret(text: &str) -> Result<Secret, String> {
    if text.chars().count() > SECRET_CHARACTERS || text.chars().any(char::is_control) {
        return Err(format!("one line of at most {SECRET_CHARACTERS} characters, none of them a control character"));
    }
    Ok(Secret::new(text))
}

/// The longest secret.
const SECRET_CHARACTERS: usize = 4096;

/// Reads a path, whose file need not be there.
fn any_path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("a path".to_owned()) } else { Ok(PathBuf::from(text)) }
}

impl Settings {
    /// As the server takes them.
    pub fn server(&self) -> Config {
        Config {
            public_url: self.public_url.clone(),
            allow_hosts: self.allow_host.clone(),
            allow_outbound: self.allow_outbound.clone(),
            trust_proxy: self.trust_proxy.clone(),
            insecure: self.insecure,
            public_metrics: self.public_metrics,
            retain: self.retain,
            smtp: self.smtp_host.clone().map(|host| Smtp {
                host,
                port: self.smtp_port,
                tls: self.smtp_tls,
                insecure: self.smtp_insecure,
                username: self.smtp_username.clone(),
                password: self.smtp_password.clone(),
                from: self.smtp_from.clone(),
                authorities: self.smtp_ca_file.clone(),
            }),
            telegram: self.telegram_token.clone().map(|token| Telegram { token, api: self.telegram_api.clone() }),
            mcp: Pace { slice: self.mcp_slice, beat: self.mcp_beat },
            ..Config::on(self.listen)
        }
    }
}

/// All that was read.
#[derive(Debug)]
pub struct Reading {
    values: layers::Values,
    /// What the layers say together, or all that is wrong.
    pub settings: Result<Settings, Vec<Fault>>,
    /// What is worth a warning.
    pub warnings: Vec<Fault>,
}

impl Reading {
    /// What counts for this key, where anything does.
    pub fn given(&self, key: &Key) -> Option<&Given> {
        self.values.given(key.path)
    }

    /// What is wrong.
    pub fn faults(&self) -> &[Fault] {
        self.settings.as_ref().err().map_or(&[], Vec::as_slice)
    }
}

/// Reads everything: the default text, this file if there is one, the environment and these flags.
pub fn read(file: Option<&Path>, flags: &Flags) -> Reading {
    let mut reader = layers::Reader::default();
    reader.default_text();
    if let Some(file) = file {
        reader.file(file);
    }
    reader.environment(std::env::vars_os());
    reader.flags(flags);
    reader.secrets();
    let layers::Reader { values, faults, warnings } = reader;
    // Where a value is wrong, what it would contradict is not known.
    let settings = match faults.is_empty() {
        true => together(&values).map_err(|fault| vec![fault]),
        false => Err(faults),
    };
    Reading { values, settings, warnings }
}

/// The keys that mean something in a simulation, too.
pub const IN_A_SIMULATION: [&str; 3] = ["listen", "allow_host", "log"];

/// What a simulation is told.
#[derive(Debug)]
pub struct ForSimulation {
    /// The address, if one was named.
    pub listen: Option<SocketAddr>,
    /// Further host names that requests may name.
    pub allow_host: Vec<String>,
    /// What is logged.
    pub log: Option<String>,
}

/// Reads what a simulation is told: by flags and by the environment, whose other variables are a real server's.
///
/// # Errors
/// Everything that is wrong.
pub fn read_for_simulation(flags: &Flags) -> Result<ForSimulation, Vec<Fault>> {
    let mut reader = layers::Reader::default();
    let ours = KEYS.iter().filter(|key| IN_A_SIMULATION.contains(&key.path)).map(Key::variable);
    reader.environment(ours.filter_map(|name| Some((name.clone().into(), std::env::var_os(name)?))));
    reader.flags(flags);
    let layers::Reader { values, faults, .. } = reader;
    if !faults.is_empty() {
        return Err(faults);
    }
    let read = || {
        let listen = values.given("listen").is_some().then(|| values.text("listen", args::listen)).transpose()?;
        let log = values.given("log").is_some().then(|| values.maybe("log", logging::filter_text)).transpose()?;
        Ok(ForSimulation { listen, allow_host: values.list("allow_host", config::allowed_host)?, log: log.flatten() })
    };
    read().map_err(|fault| vec![fault])
}

/// What the values say together, where they don't contradict each other.
fn together(values: &layers::Values) -> Result<Settings, Fault> {
    let settings = Settings::of(values)?;
    settings.server().judge().map_err(|misfit| {
        // What nobody said is in the default text, where there is nothing to mend.
        let said = values.given(misfit.key).filter(|given| given.layer > Layer::Default);
        Fault { at: said.map(|given| given.at.clone()).unwrap_or_default(), message: misfit.message }
    })?;
    Ok(settings)
}

#[cfg(test)]
mod tests;
