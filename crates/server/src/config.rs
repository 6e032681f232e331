//! What a server is told at its start.

mod smtp;
mod telegram;

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;
use url::Url;

pub use crate::http::forwarded::trusted as trusted_proxy;
use crate::http::hosts::AllowedHost;
use crate::simulation::Simulation;

pub use lettre::message::Mailbox;
pub use smtp::{Secret, Smtp, SmtpTls, authorities, mail_host, sender};
pub use telegram::Telegram;

/// What a server is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address that people and harnesses use, where it is not the listen address. Without path, query and fragment.
    pub public_url: Option<Url>,
    /// Further host names that requests may name.
    pub allow_hosts: Vec<String>,
    /// Serve plain http on an address that is not loopback.
    pub insecure: bool,
    /// Serve `/metrics` to other peers than loopback.
    pub public_metrics: bool,
    /// Origins that may be sent to though they are not public or not https: of webhooks, push services and the like.
    pub allow_outbound: Vec<Url>,
    /// How long events are kept at least; what is older goes. Nothing: for ever.
    pub retain: Option<Duration>,
    /// Proxies whose `X-Forwarded-For` says whom a request comes from.
    pub trust_proxy: Vec<IpNet>,
    /// The server that takes e-mail to people; without one there is none.
    pub smtp: Option<Smtp>,
    /// The bot that tells people on Telegram; without one there is none.
    pub telegram: Option<Telegram>,
    /// How long a call of an MCP tool waits, and how often it says so.
    pub mcp: chips_mcp::Pace,
    /// How long and how much; the defaults are the contract's.
    pub limits: Limits,
    /// What a simulation does to the server; nothing where people are to answer.
    pub simulation: Option<Simulation>,
}

/// How long a peer may take and how much it may send.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at the same time; fewer where the system allows fewer open files.
    pub connections: usize,
    /// From the first moment of a connection, or from the last reply, to the end of a request's header.
    pub header: Duration,
    /// From the end of a request's header to the end of its body.
    pub body: Duration,
    /// How long a peer may take nothing of what is written to it before it is cut off.
    pub stalled_write: Duration,
    /// Between two comments of a stream.
    pub comment: Duration,
    /// How long requests in flight may take once the server stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 8192,
            header: Duration::from_secs(15),
            body: Duration::from_secs(20),
            stalled_write: Duration::from_secs(20),
            comment: Duration::from_secs(15),
            drain: Duration::from_secs(8),
        }
    }
}

impl Config {
    /// Serves on this address, to it alone.
    pub fn on(listen: SocketAddr) -> Self {
        Self {
            listen,
            public_url: None,
            allow_hosts: Vec::new(),
            insecure: false,
            public_metrics: false,
            allow_outbound: Vec::new(),
            retain: None,
            trust_proxy: Vec::new(),
            smtp: None,
            telegram: None,
            mcp: chips_mcp::Pace::default(),
            limits: Limits::default(),
            simulation: None,
        }
    }

    /// The URL to reach the server by: the public one where there is one, else `http://ADDRESS`. No slash at the end.
    pub fn base_url(&self) -> String {
        match &self.public_url {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => format!("http://{}", self.listen),
        }
    }

    /// Whether people's browsers reach the server over https: then cookies are `Secure`.
    pub fn https(&self) -> bool {
        self.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }

    /// Checks that what was told does not contradict itself and would not serve people's decisions in the clear.
    ///
    /// # Errors
    /// What is wrong and the ways out, for whoever typed it.
    pub fn check(&self) -> Result<(), String> {
        self.judge().map_err(|misfit| misfit.message)
    }

    /// The same, and which key it is about.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn judge(&self) -> Result<(), Misfit> {
        if let Some(url) = &self.public_url {
            let plain = matches!(url.scheme(), "http" | "https")
                && url.host_str().is_some_and(|host| !host.is_empty())
                && url.path() == "/"
                && url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty()
                && url.password().is_none();
            if !plain {
                return Err(Misfit::of(
                    "public_url",
                    format!(
                        "--public-url {url} must be http or https, a host and perhaps a port, and nothing else, \
                     like https://chips.example.com"
                    ),
                ));
            }
            if url.scheme() == "http" && !self.insecure && !is_loopback(url) {
                return Err(Misfit::of(
                    "public_url",
                    format!(
                        "--public-url {url} is plain http: tokens and answers would travel in the clear. \
                     Give its https address, or say --insecure if the network is yours alone"
                    ),
                ));
            }
        }
        for name in &self.allow_hosts {
            allowed_host(name)
                .map_err(|takes| Misfit::of("allow_host", format!("--allow-host {name} must be {takes}")))?;
        }
        for url in &self.allow_outbound {
            outbound_origin(url.as_str())
                .map_err(|takes| Misfit::of("allow_outbound", format!("--allow-outbound {url} must be {takes}")))?;
        }
        if let Some(smtp) = &self.smtp {
            smtp.judge()?;
        }
        if let Some(telegram) = &self.telegram {
            telegram.judge()?;
        }
        if !self.listen.ip().is_loopback() && !self.insecure && !self.https() {
            return Err(Misfit::of(
                "listen",
                format!(
                    "{} can be reached from other machines, and tokens and answers would travel in the clear. \
                 Listen on 127.0.0.1:{port} instead; or put a proxy with a certificate in front and give its address \
                 with --public-url https://…; or say --insecure if the network is yours alone",
                    self.listen,
                    port = self.listen.port(),
                ),
            ));
        }
        Ok(())
    }
}

/// Why values that are each right don't fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The key that it is about, as the documented configuration names it: `smtp.username`.
    pub key: &'static str,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl Misfit {
    fn of(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }
}

/// Reads a host name that requests may name.
///
/// # Errors
/// What it takes.
pub fn allowed_host(text: &str) -> Result<String, String> {
    match AllowedHost::configured(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(()) => Err("a host name and perhaps a port, like chips.lan or chips.lan:7070".to_owned()),
    }
}

/// Reads an origin that may be sent to whatever its address is.
///
/// # Errors
/// What it takes.
pub fn outbound_origin(text: &str) -> Result<Url, String> {
    // An exception is exact: no name for whoever asks, and no star for many hosts.
    let bare = |url: &Url| url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    let exact = |url: &Url| url.host_str().is_some_and(|host| !host.is_empty() && !host.contains('*'));
    let origin = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.path() == "/"
            && url.query().is_none()
            && bare(url)
            && exact(url)
    };
    text.parse().ok().filter(origin).ok_or_else(|| {
        "http or https, a host and perhaps a port, and nothing else, like http://10.0.0.5:2586".to_owned()
    })
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn config(listen: &str) -> Config {
        Config::on(listen.parse().unwrap())
    }

    #[test]
    fn loopback_needs_nothing() {
        assert_eq!(config("127.0.0.1:7070").check(), Ok(()));
        assert_eq!(config("[::1]:7070").check(), Ok(()));
    }

    #[test]
    fn another_address_needs_https_or_insecure_and_the_refusal_names_the_ways_out() {
        for listen in ["0.0.0.0:7070", "[::]:7070", "192.168.1.5:7070"] {
            let refusal = config(listen).check().unwrap_err();
            for way in ["127.0.0.1:7070", "--public-url https://", "--insecure"] {
                assert!(refusal.contains(way), "{refusal}");
            }
            let https = Config { public_url: Some("https://chips.example.com".parse().unwrap()), ..config(listen) };
            assert_eq!(https.check(), Ok(()));
            assert_eq!(Config { insecure: true, ..config(listen) }.check(), Ok(()));
        }
    }

    #[test]
    fn a_public_url_is_an_origin() {
        for bad in [
            "https://example.com/chips",
            "https://example.com/?x",
            "https://example.com/#x",
            "https://u:p@example.com",
            "ftp://example.com",
            "http://chips.example.com",
        ] {
            let config = Config { public_url: Some(bad.parse().unwrap()), ..config("127.0.0.1:1") };
            assert!(config.check().is_err(), "{bad}");
        }
        for good in ["https://example.com", "https://example.com:8443/", "http://localhost:7070"] {
            let config = Config { public_url: Some(good.parse().unwrap()), ..config("127.0.0.1:1") };
            assert_eq!(config.check(), Ok(()), "{good}");
            assert!(!config.base_url().ends_with('/'));
        }
    }

    #[test]
    fn allowed_hosts_are_names() {
        let with = |name: &str| Config { allow_hosts: vec![name.to_owned()], ..config("127.0.0.1:1") };
        assert_eq!(with("chips.lan").check(), Ok(()));
        assert_eq!(with("chips.lan:7070").check(), Ok(()));
        for bad in ["", "http://chips.lan", "a b", "x:y", "u@h", "chips.lan/"] {
            assert!(with(bad).check().is_err(), "{bad}");
        }
    }
}
