//! Which host names this server answers for: a page of another site that points its own name at this address (DNS
//! rebinding) must not read or write anything here.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::config::Config;

/// A host and perhaps a port, as a `Host` header, a request target or `--allow-host` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    host: Name,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Ip(IpAddr),
    Domain(String),
}

impl FromStr for AllowedHost {
    type Err = ();

    /// Reads `uri-host [":" port]` (RFC 9110, section 7.2). Case does not count; user information is refused.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or(())?;
                (Name::Ip(IpAddr::V6(host.parse().map_err(drop)?)), port)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let (host, port) = text.split_at(end);
                let letters = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
                if host.is_empty() || !host.bytes().all(letters) {
                    return Err(());
                }
                match host.parse() {
                    Ok(ip) => (Name::Ip(IpAddr::V4(ip)), port),
                    Err(_) => (Name::Domain(host.to_ascii_lowercase()), port),
                }
            }
        };
        let port = match port.strip_prefix(':') {
            // An empty port means the scheme's (RFC 3986, section 3.2.3).
            Some("") => None,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => Some(digits.parse().map_err(drop)?),
            Some(_) => return Err(()),
            None if port.is_empty() => None,
            None => return Err(()),
        };
        Ok(Self { host, port })
    }
}

impl AllowedHost {
    /// Reads what `--allow-host` names: as a header would, or an IPv6 address without brackets.
    pub(crate) fn configured(text: &str) -> Result<Self, ()> {
        match text.parse() {
            Ok(IpAddr::V6(ip)) => Ok(Self { host: Name::Ip(IpAddr::V6(ip)), port: None }),
            _ => text.parse(),
        }
    }
}

/// Which ports a named host may come with.
#[derive(Debug, Clone, Copy)]
enum Ports {
    /// Any, and none.
    Any,
    /// This one; none stands for it where it is the scheme's.
    Only(u16),
    /// This one or none: proxies often pass the bare name on.
    OrNone(u16),
}

/// The host names that a server answers for.
#[derive(Debug, Clone)]
pub struct Hosts {
    names: Vec<(Name, Ports)>,
    unspecified: bool,
}

impl Hosts {
    /// The names that follow from a configuration whose listen address is bound (its port is no longer 0).
    pub fn of(config: &Config) -> Self {
        let port = config.listen.port();
        let mut names = vec![(Name::Ip(config.listen.ip()), Ports::Only(port))];
        if config.listen.ip().is_loopback() {
            names.push((Name::Domain("localhost".to_owned()), Ports::Only(port)));
        }
        if let Some(url) = &config.public_url
            && let Some(host) = url.host_str().and_then(|host| host.parse::<AllowedHost>().ok())
        {
            names.push((host.host, Ports::OrNone(url.port_or_known_default().unwrap_or(443))));
        }
        for named in &config.allow_hosts {
            if let Ok(AllowedHost { host, port }) = AllowedHost::configured(named) {
                names.push((host, port.map_or(Ports::Any, Ports::Only)));
            }
        }
        Self { names, unspecified: config.listen.ip().is_unspecified() }
    }

    /// Whether a request that names this host, and came in on this address, is meant for this server.
    ///
    /// A server that listens on every address listens on the one that the connection came in on; a name that resolves to
    /// it is not enough, the address itself must be named.
    pub fn admits(&self, named: &str, local: Option<SocketAddr>) -> bool {
        let Ok(AllowedHost { host, port }) = named.parse() else { return false };
        let fits = |ports: Ports| match ports {
            Ports::Any => true,
            Ports::Only(wanted) => port.unwrap_or(80) == wanted,
            Ports::OrNone(wanted) => port.is_none_or(|port| port == wanted),
        };
        if self.names.iter().any(|(name, ports)| *name == host && fits(*ports)) {
            return true;
        }
        let Some(local) = local.filter(|_| self.unspecified) else { return false };
        let ip = local.ip().to_canonical();
        let same = match host {
            Name::Ip(named) => named.to_canonical() == ip,
            Name::Domain(named) => named == "localhost" && ip.is_loopback(),
        };
        same && fits(Ports::Only(local.port()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn hosts(listen: &str) -> Config {
        Config::on(listen.parse().unwrap())
    }

    fn admits(config: &Config, named: &str) -> bool {
        Hosts::of(config).admits(named, Some(config.listen))
    }

    #[test]
    fn the_listen_address_and_localhost_with_the_port() {
        let config = hosts("127.0.0.1:7070");
        for good in ["127.0.0.1:7070", "localhost:7070", "LocalHost:7070"] {
            assert!(admits(&config, good), "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:7070",
            "127.0.0.1",
            "127.0.0.1:7071",
            "localhost",
            "localhost.:7070",
            "localhost.evil.example:7070",
            "user@localhost:7070",
            "127.0.0.2:7070",
            "0x7f.0.0.1:7070",
            "127.1:7070",
            "[::1]:7070",
            "localhost:7070:7070",
            "localhost:+7070",
            " localhost:7070",
            "",
            ":7070",
            "[127.0.0.1]:7070",
        ] {
            assert!(!admits(&config, bad), "{bad}");
        }
        assert!(admits(&hosts("127.0.0.1:80"), "127.0.0.1"));
        assert!(admits(&hosts("[::1]:7070"), "[::1]:7070"));
        assert!(admits(&hosts("[::1]:7070"), "[0:0:0:0:0:0:0:1]:7070"));
    }

    #[test]
    fn the_public_urls_host_with_its_port_or_none() {
        let config =
            Config { public_url: Some("https://Chips.example.com".parse().unwrap()), ..hosts("127.0.0.1:7070") };
        for good in ["chips.example.com", "chips.example.com:443", "CHIPS.example.com", "127.0.0.1:7070"] {
            assert!(admits(&config, good), "{good}");
        }
        for bad in ["chips.example.com:7070", "example.com", "x.chips.example.com"] {
            assert!(!admits(&config, bad), "{bad}");
        }
    }

    #[test]
    fn further_names_with_any_port_unless_one_is_given() {
        let names = ["chips.lan", "other.lan:9000", "fd00::1"].map(String::from).into();
        let config = Config { allow_hosts: names, ..hosts("127.0.0.1:7070") };
        for good in ["chips.lan", "chips.lan:1", "other.lan:9000", "[fd00::1]:7070"] {
            assert!(admits(&config, good), "{good}");
        }
        for bad in ["other.lan", "other.lan:9001", "fd00::1"] {
            assert!(!admits(&config, bad), "{bad}");
        }
    }

    #[test]
    fn a_server_on_every_address_answers_for_the_one_that_was_reached() {
        let hosts = Hosts::of(&Config { insecure: true, ..hosts("0.0.0.0:7070") });
        let local = Some("192.168.1.5:7070".parse().unwrap());
        assert!(hosts.admits("192.168.1.5:7070", local));
        assert!(!hosts.admits("192.168.1.6:7070", local));
        assert!(!hosts.admits("localhost:7070", local));
        assert!(!hosts.admits("evil.example:7070", local));
        assert!(hosts.admits("localhost:7070", Some("127.0.0.1:7070".parse().unwrap())));
    }
}
