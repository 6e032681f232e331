//! Where a store is: a folder of this machine, or a database on a PostgreSQL server.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use postgres::config::{Host, SslMode};
use sha2::{Digest, Sha256};

use crate::sql::postgres_tls::Trust;

/// Where a store is.
#[derive(Debug, Clone)]
pub enum Location {
    /// A folder with an SQLite file.
    Folder(PathBuf),
    /// A database on a PostgreSQL server.
    Database(Database),
}

impl Location {
    /// The folder, where it is one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(dir) => Some(dir),
            Self::Database(_) => None,
        }
    }

    /// How a command is told of it: `--data DIR`, or `--database URL` without what is secret in it.
    pub fn flag(&self) -> String {
        match self {
            Self::Folder(dir) => format!("--data {}", dir.display()),
            Self::Database(database) => format!("--database {database}"),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(dir) => dir.display().fmt(f),
            Self::Database(database) => database.fmt(f),
        }
    }
}

impl From<&Location> for Location {
    fn from(location: &Location) -> Self {
        location.clone()
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Location {
    fn from(dir: &P) -> Self {
        Self::Folder(dir.as_ref().to_owned())
    }
}

impl From<PathBuf> for Location {
    fn from(dir: PathBuf) -> Self {
        Self::Folder(dir)
    }
}

impl From<Database> for Location {
    fn from(database: Database) -> Self {
        Self::Database(database)
    }
}

/// A database on a PostgreSQL server, and how to reach it. Shown without the password.
#[derive(Clone)]
pub struct Database(Arc<Reach>);

/// How a database is reached.
pub(crate) struct Reach {
    pub(crate) config: postgres::Config,
    pub(crate) trust: Trust,
    /// The schema of the store, once it is known: whoever makes another one later does not lead away from it.
    pub(crate) schema: OnceLock<String>,
    url: String,
}

impl Database {
    /// Reads a connection URL: `postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=verify-full`, with what libpq knows under
    /// the same names. `sslmode` is `disable`, `prefer` (the default: TLS where the server offers it, its certificate is not
    /// checked), `require` (TLS, not checked) or `verify-full`; `sslrootcert` is a file of certificates to trust instead of
    /// the system's.
    ///
    /// # Errors
    /// What is wrong with it, without the URL: it may hold a password.
    pub fn parse(url: &str) -> Result<Self, String> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("the URL of a database begins with postgres://".to_owned());
        }
        // What a reader of URLs would take for a host or an option, and say so, may be the end of a password.
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = rest.find(['/', '?']).map_or(rest, |at| &rest[..at]);
        if rest.matches('@').count() > 1 || rest.contains('@') && !authority.contains('@') {
            return Err("a user or password in the URL holds a character that ends it there: write @ as %40, / as %2F, ? as %3F, \
                        : as %3A and % as %25"
                .to_owned());
        }
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => roots = Some(decoded(value)?),
                _ => rest.push(part),
            }
        }
        let mut config: postgres::Config =
            format!("{address}?{}", rest.join("&")).parse().map_err(|error: postgres::Error| {
                match std::error::Error::source(&error) {
                    Some(source) => format!("{error}: {source}"),
                    None => error.to_string(),
                }
            })?;
        if config.get_dbname().is_none() {
            return Err("the URL names no database: postgres://USER@HOST/NAME".to_owned());
        }
        if config.get_hosts().is_empty() {
            return Err("the URL names no host: postgres://USER@HOST/NAME".to_owned());
        }
        let (ssl, trust) = match (mode.unwrap_or("prefer"), roots) {
            ("disable", _) => (SslMode::Disable, Trust::Anyone),
            ("prefer", None) => (SslMode::Prefer, Trust::Anyone),
            ("require", None) => (SslMode::Require, Trust::Anyone),
            ("verify-full", roots) => (SslMode::Require, roots.map_or(Trust::System, |file| Trust::File(file.into()))),
            (mode @ ("prefer" | "require"), Some(_)) => {
                return Err(format!("sslrootcert has no effect with sslmode={mode}; say sslmode=verify-full"));
            }
            (other, _) => {
                return Err(format!("sslmode={other} is not known; say disable, prefer, require or verify-full"));
            }
        };
        config.ssl_mode(ssl);
        Ok(Self(Arc::new(Reach { config, trust, schema: OnceLock::new(), url: url.to_owned() })))
    }

    /// How it is reached.
    pub(crate) fn reach(&self) -> &Reach {
        &self.0
    }

    /// The URL as it was given: it may hold a password.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// Sixteen digits that tell it from others: of where it is and what else the URL says, but for the user and the password.
    pub fn mark(&self) -> String {
        let query = self.0.url.split_once('?').map(|(_, query)| query).unwrap_or_default();
        let digest = Sha256::digest(format!("{self}?{query}"));
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether the URL holds a password.
    pub fn has_password(&self) -> bool {
        self.0.config.get_password().is_some()
    }
}

/// A value of a URL's query with its percent signs read.
fn decoded(value: &str) -> Result<String, String> {
    let bytes = value.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let escaped = (byte == b'%').then(|| value.get(at + 1..at + 3)).flatten();
        match escaped.map(|hex| u8::from_str_radix(hex, 16)) {
            Some(Ok(byte)) => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).map_err(|_| "sslrootcert is no UTF-8".to_owned())
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        let ports = self.0.config.get_ports();
        for (at, host) in self.0.config.get_hosts().iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match host {
                Host::Tcp(name) => f.write_str(name)?,
                Host::Unix(path) => f.write_str(&path.display().to_string().replace('/', "%2F"))?,
            }
            let port = ports.get(at).or_else(|| ports.first());
            if let (Host::Tcp(_), Some(port)) = (host, port) {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", self.0.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_database_is_shown_without_its_password() {
        let database = Database::parse("postgres://chips:se%40cret@db.example:5433/chips?sslmode=verify-full").unwrap();
        assert!(database.has_password());
        assert_eq!(database.to_string(), "postgres://db.example:5433/chips");
        assert_eq!(format!("{database:?} {:?}", Location::from(database.clone())), {
            "postgres://db.example:5433/chips Database(postgres://db.example:5433/chips)"
        });
        assert!(matches!(database.reach().trust, Trust::System));
        let local = Database::parse("postgres://chips@%2Fvar%2Frun%2Fpostgresql/chips").unwrap();
        assert_eq!(local.to_string(), "postgres://%2Fvar%2Frun%2Fpostgresql/chips");
        assert!(!local.has_password());
    }

    #[test]
    fn what_is_wrong_with_a_url_is_told_without_the_url() {
        for (url, said) in [
            ("mysql://a:secret@b/c", "postgres://"),
            ("postgres://a:secret@b", "no database"),
            ("postgres:///c?user=a&password=secret", "no host"),
            ("postgres://a:secret@b/c?sslmode=verify-ca", "verify-ca is not known"),
            ("postgres://a:secret@b/c?sslmode=require&sslrootcert=ca.pem", "verify-full"),
            ("postgres://a:secret@b/c?colour=blue", "colour"),
            ("postgres://a:p@secret@b/c", "%40"),
            ("postgres://a:p/secret@b/c", "%2F"),
            ("postgres://a:p?secret@b/c", "%3F"),
        ] {
            let told = Database::parse(url).err().unwrap();
            assert!(told.contains(said) && !told.contains("secret"), "{told}");
        }
        let with = Database::parse("postgres://a@b/c?sslrootcert=%2Fetc%2Fca.pem&sslmode=verify-full").unwrap();
        assert!(matches!(&with.reach().trust, Trust::File(file) if file == Path::new("/etc/ca.pem")));
    }
}
