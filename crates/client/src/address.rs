//! Where a server is.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

/// The address of a Chips server: `http` or `https`, a host, and perhaps a port and a path that stands before `/v1`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address(Url);

/// Why a text is no address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no address of a Chips server: {why}")]
pub struct BadAddress {
    /// What was given, without any password in it.
    pub given: String,
    /// What is wrong with it, and what to do.
    pub why: String,
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let text = text.trim();
        let bad = |given: &str, why: &str| BadAddress { given: given.to_owned(), why: why.to_owned() };
        if !text.contains("://") {
            return Err(bad(text, "it starts with http:// or https://, as in http://127.0.0.1:7070"));
        }
        let mut url: Url = text.parse().map_err(|error: url::ParseError| bad(text, &error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            // The password must not be repeated in a message.
            let _ = url.set_password(None);
            return Err(bad(url.as_str(), "a user name or password has no place in it; the token is given apart"));
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(text, "only http:// and https:// are spoken"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad(text, "it ends before any `?` or `#`"));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }
}

impl Address {
    /// The URL of a path below this address. The path starts with a slash.
    pub fn at(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}{path}", self.0.path().trim_end_matches('/')));
        url
    }

    /// Whether the server is reached over the machine's own loopback interface.
    pub fn is_loopback(&self) -> bool {
        match self.0.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        }
    }

    /// Whether what is sent is encrypted on its way.
    pub fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }
}

impl fmt::Display for Address {
    /// Without a slash at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_path_and_a_slash_at_the_end_are_kept_out_of_the_way() {
        let plain: Address = "http://127.0.0.1:7070".parse().unwrap();
        assert_eq!(plain.to_string(), "http://127.0.0.1:7070");
        assert_eq!(plain.at("/v1/me").as_str(), "http://127.0.0.1:7070/v1/me");
        let below: Address = " https://example.org/chips/ ".parse().unwrap();
        assert_eq!(below.to_string(), "https://example.org/chips");
        assert_eq!(below.at("/v1/me").as_str(), "https://example.org/chips/v1/me");
        assert_eq!("http://127.0.0.1:7070/".parse(), Ok(plain));
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_to_do() {
        for (given, part) in [
            ("127.0.0.1:7070", "starts with http://"),
            ("localhost", "starts with http://"),
            ("ftp://example.org", "only http:// and https://"),
            ("https://ada@example.org", "no place in it"),
            ("https://example.org/?token=1", "before any `?`"),
            ("https://example.org/#x", "before any `?`"),
            ("http://", "empty host"),
        ] {
            let error = given.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(part), "{given}: {error}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_repeated() {
        let error = "https://ada:hunter2@example.org".parse::<Address>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    #[test]
    fn loopback_is_known_by_its_names() {
        for (given, loopback) in [
            ("http://localhost:1", true),
            ("http://127.8.8.8", true),
            ("http://[::1]:7070", true),
            ("http://192.168.1.2", false),
            ("https://localhost.example.org", false),
        ] {
            assert_eq!(given.parse::<Address>().unwrap().is_loopback(), loopback, "{given}");
        }
    }
}
