//! The server that takes e-mail to people, as the operator names it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::Misfit;
use lettre::message::Mailbox;
use lettre::transport::smtp::client::Certificate;

/// A secret; whoever prints it shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// What it is.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// How the connection to the server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpTls {
    /// From the first byte (RFC 8314).
    Implicit,
    /// After STARTTLS (RFC 3207), without which nothing is sent.
    Starttls,
    /// Not at all.
    None,
}

impl SmtpTls {
    /// The port that is usual for it.
    pub const fn usual_port(self) -> u16 {
        match self {
            Self::Implicit => 465,
            Self::Starttls => 587,
            Self::None => 25,
        }
    }
}

impl FromStr for SmtpTls {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "implicit" => Ok(Self::Implicit),
            "starttls" => Ok(Self::Starttls),
            "none" => Ok(Self::None),
            _ => Err("implicit, starttls or none".to_owned()),
        }
    }
}

/// The server that takes e-mail to people.
#[derive(Debug, Clone)]
pub struct Smtp {
    /// Its name or address; with TLS it must have a certificate for it.
    pub host: String,
    /// Its port; 0 for the one that is usual for `tls`.
    pub port: u16,
    /// How the connection is encrypted.
    pub tls: SmtpTls,
    /// Send in the clear to another machine.
    pub insecure: bool,
    /// Who Chips is there, where that is asked for.
    pub username: Option<String>,
    /// The password of `username`.
    pub password: Option<Secret>,
    /// Whom the messages are from.
    pub from: Option<Mailbox>,
    /// Further authorities that may have signed its certificate, as PEM.
    pub authorities: Option<Vec<u8>>,
}

impl Smtp {
    /// The port that is connected to.
    pub const fn port(&self) -> u16 {
        if self.port == 0 { self.tls.usual_port() } else { self.port }
    }

    /// Checks that it can be used and does not tell a password to whoever listens.
    ///
    /// # Errors
    /// What is wrong and the ways out, for whoever configured it.
    pub fn check(&self) -> Result<(), String> {
        self.judge().map_err(|misfit| misfit.message)
    }

    /// The same, and which key it is about.
    pub(super) fn judge(&self) -> Result<(), Misfit> {
        let misfit = |key, message: &str| Err(Misfit::of(key, message));
        if self.from.is_none() {
            return misfit("smtp.host", "smtp.host is set, but not whom the messages are from: set smtp.from");
        }
        match (&self.username, &self.password) {
            (Some(_), None) => {
                return misfit("smtp.username", "smtp.username is set, but no smtp.password and no smtp.password_file");
            }
            (None, Some(_)) => return misfit("smtp.password", "smtp.password is set, but no smtp.username"),
            _ => {}
        }
        if self.tls == SmtpTls::None && !self.insecure && !self.is_this_machine() {
            return Err(Misfit::of(
                "smtp.tls",
                format!(
                    "smtp.tls is none, and {} is another machine: questions and the password would travel in the clear. \
                 Take implicit or starttls; or say smtp.insecure if the network is yours alone",
                    self.host
                ),
            ));
        }
        Ok(())
    }

    fn is_this_machine(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost") || self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }
}

/// Reads the name or address of a mail server.
///
/// # Errors
/// What it takes.
pub fn mail_host(text: &str) -> Result<String, String> {
    let takes = || "a host name or an IP address alone, like mail.example.com".to_owned();
    if text.parse::<IpAddr>().is_ok() {
        return Ok(text.to_owned());
    }
    match url::Host::parse(text) {
        Ok(url::Host::Domain(name)) if !name.contains(['[', ':']) => Ok(name),
        _ => Err(takes()),
    }
}

/// Reads a sender: an address, with a name before it or without.
///
/// # Errors
/// What it takes.
pub fn sender(text: &str) -> Result<Mailbox, String> {
    let takes = || "an address, perhaps with a name, like Chips <chips@example.com>".to_owned();
    if text.chars().any(char::is_control) {
        return Err(takes());
    }
    // Mail programs would decode it, and show another name than the one that stands here.
    if text.contains("=?") {
        return Err(format!("{}, its name as people read it and not encoded", takes()));
    }
    text.parse().map_err(|_| takes())
}

/// Reads the certificates of authorities from the PEM file at this path.
///
/// # Errors
/// It can't be read or holds none.
pub fn authorities(path: &str) -> Result<Vec<u8>, String> {
    let pem = std::fs::read(path).map_err(|error| format!("it can't be read: {error}"))?;
    match Certificate::from_pem(&pem) {
        Ok(_) if pem.windows(27).any(|part| part == b"-----BEGIN CERTIFICATE-----") => Ok(pem),
        _ => Err("it holds no certificate in PEM".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn smtp(host: &str, tls: SmtpTls) -> Smtp {
        Smtp {
            host: host.to_owned(),
            port: 0,
            tls,
            insecure: false,
            username: None,
            password: None,
            from: Some(sender("Chips <chips@example.com>").unwrap()),
            authorities: None,
        }
    }

    #[test]
    fn without_encryption_it_is_this_machine_or_said_so() {
        for (host, good) in [("localhost", true), ("127.0.0.1", true), ("::1", true), ("10.0.0.5", false)] {
            assert_eq!(smtp(host, SmtpTls::None).check().is_ok(), good, "{host}");
            assert_eq!(smtp(host, SmtpTls::Starttls).check(), Ok(()));
        }
        let said = Smtp { insecure: true, ..smtp("mail.lan", SmtpTls::None) };
        assert_eq!(said.check(), Ok(()));
        assert!(smtp("mail.lan", SmtpTls::None).check().unwrap_err().contains("smtp.insecure"));
    }

    #[test]
    fn a_name_and_a_password_come_together_and_somebody_is_the_sender() {
        let named = |username: Option<&str>, password: Option<&str>| Smtp {
            username: username.map(str::to_owned),
            password: password.map(Secret::new),
            ..smtp("mail.example.com", SmtpTls::Implicit)
        };
        assert!(named(Some("chips"), None).check().unwrap_err().contains("smtp.password"));
        assert!(named(None, Some("x")).check().unwrap_err().contains("smtp.username"));
        assert_eq!(named(Some("chips"), Some("x")).check(), Ok(()));
        let nobody = Smtp { from: None, ..smtp("mail.example.com", SmtpTls::Implicit) };
        assert!(nobody.check().unwrap_err().contains("smtp.from"));
        assert!(!format!("{:?}", named(Some("chips"), Some("hunter2"))).contains("hunter2"));
    }

    #[test]
    fn hosts_and_senders_are_read_as_operators_write_them() {
        for good in ["mail.example.com", "localhost", "10.0.0.5", "::1"] {
            assert_eq!(mail_host(good).as_deref(), Ok(good));
        }
        for bad in ["smtp://mail.example.com", "mail.example.com:25", "a b", "", "[::1]"] {
            assert!(mail_host(bad).is_err(), "{bad}");
        }
        for good in ["chips@example.com", "Chips <chips@example.com>", "\"Chips, the\" <chips@example.com>"] {
            assert!(sender(good).is_ok(), "{good}");
        }
        for bad in ["", "chips", "Chips <chips>", "a@b\r\nBcc: c@d", "Chips <a@example.com>, b@example.com"] {
            assert!(sender(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_port_is_the_usual_one_unless_it_is_named() {
        let ports = [SmtpTls::Implicit, SmtpTls::Starttls, SmtpTls::None].map(|tls| smtp("localhost", tls).port());
        assert_eq!(ports, [465, 587, 25]);
        assert_eq!(Smtp { port: 2525, ..smtp("localhost", SmtpTls::None) }.port(), 2525);
    }
}
