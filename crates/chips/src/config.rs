//! The user's configuration: which server, and with which token.
//!
//! What the environment says comes first: `CHIPS_URL`, `CHIPS_TOKEN` (a harness's), `CHIPS_USER_TOKEN` (a person's).
//! Then the file that `chips connect` writes, `chips/config.toml` in the user's configuration folder
//! (`$XDG_CONFIG_HOME`, else `~/.config`), which holds one server and token for a harness and one for a person. A token
//! of the file only ever goes to the server that it was checked with.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use chips_client::{Address, Token, TokenKind};
use etcetera::BaseStrategy;
use serde::Deserialize;

use crate::output;

/// What stands at the top of the file.
const HEADER: &str = "# Written by `chips connect`. The tokens are secrets: whoever reads this file can use them.\n\n";

/// The variable that holds the token of a kind.
pub const fn variable(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Harness => "CHIPS_TOKEN",
        TokenKind::Person => "CHIPS_USER_TOKEN",
    }
}

/// The kind, as people say it.
pub const fn whose(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Harness => "a harness's",
        TokenKind::Person => "a person's",
    }
}

const fn table(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Harness => "harness",
        TokenKind::Person => "person",
    }
}

/// A server, and a token that is good there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The server.
    pub address: Address,
    /// The token.
    pub token: Token,
}

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// The connection as a harness.
    pub harness: Option<Connection>,
    /// The connection as a person.
    pub person: Option<Connection>,
}

/// What the environment says; a variable that is empty says nothing.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    url: Option<String>,
    harness: Option<String>,
    person: Option<String>,
}

impl Environment {
    /// Reads the variables.
    pub fn read() -> Self {
        let read = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        Self {
            url: read("CHIPS_URL"),
            harness: read(variable(TokenKind::Harness)),
            person: read(variable(TokenKind::Person)),
        }
    }

    fn token(&self, kind: TokenKind) -> anyhow::Result<Option<Token>> {
        let (name, text) = match kind {
            TokenKind::Harness => (variable(kind), &self.harness),
            TokenKind::Person => (variable(kind), &self.person),
        };
        let Some(text) = text else { return Ok(None) };
        let token: Token = text.parse().with_context(|| format!("{name} holds no token"))?;
        if token.kind() != kind {
            bail!(
                "{name} holds {} token; it is for {}, which starts with {}",
                whose(token.kind()),
                whose(kind),
                kind.prefix()
            );
        }
        Ok(Some(token))
    }
}

impl Config {
    const fn of(&self, kind: TokenKind) -> Option<&Connection> {
        match kind {
            TokenKind::Harness => self.harness.as_ref(),
            TokenKind::Person => self.person.as_ref(),
        }
    }
}

/// The connection of this kind, from the environment and the file.
///
/// # Errors
/// When there is none, in words that say how to make one.
pub fn connection(kind: TokenKind) -> anyhow::Result<Connection> {
    let environment = Environment::read();
    let config = if needs_file(&environment, kind) { load()? } else { Config::default() };
    match resolve(&environment, &config, kind)? {
        Some(connection) => Ok(connection),
        None => Err(missing(&environment, &config, kind)),
    }
}

/// The connection of the kind that is asked for, else of either: the environment's before the file's, a harness's
/// before a person's.
///
/// # Errors
/// When there is none, in words that say how to make one.
pub fn any_connection(kind: Option<TokenKind>) -> anyhow::Result<Connection> {
    if let Some(kind) = kind {
        return connection(kind);
    }
    let environment = Environment::read();
    let kinds = [TokenKind::Harness, TokenKind::Person];
    for kind in kinds {
        if environment.token(kind)?.is_some() {
            return connection(kind);
        }
    }
    let config = load()?;
    for kind in kinds {
        if let Some(connection) = resolve(&environment, &config, kind)? {
            return Ok(connection);
        }
    }
    bail!("no server and no token: run `chips connect URL` once, or set CHIPS_URL and CHIPS_TOKEN or CHIPS_USER_TOKEN")
}

/// With a server and a token from the environment, a file that can't be read must not be in the way.
fn needs_file(environment: &Environment, kind: TokenKind) -> bool {
    let token = match kind {
        TokenKind::Harness => &environment.harness,
        TokenKind::Person => &environment.person,
    };
    environment.url.is_none() || token.is_none()
}

fn resolve(environment: &Environment, config: &Config, kind: TokenKind) -> anyhow::Result<Option<Connection>> {
    let url = environment.url.as_deref().map(str::parse::<Address>).transpose().context("CHIPS_URL")?;
    let kept = config.of(kind);
    match (environment.token(kind)?, url, kept) {
        (Some(token), Some(address), _) => Ok(Some(Connection { address, token })),
        (Some(token), None, _) => {
            // The server that this kind was connected to, else the one that the other kind was.
            let other = config.harness.as_ref().or(config.person.as_ref());
            let Some(Connection { address, .. }) = kept.or(other) else {
                bail!("{} is set, but no server: set CHIPS_URL too, or run `chips connect URL` once", variable(kind));
            };
            Ok(Some(Connection { address: address.clone(), token }))
        }
        (None, Some(address), Some(kept)) if address != kept.address => bail!(
            "CHIPS_URL is {address}, but the configuration's token is for {}: run `chips connect {address}`, or set {}",
            kept.address,
            variable(kind)
        ),
        (None, _, kept) => Ok(kept.cloned()),
    }
}

fn missing(environment: &Environment, config: &Config, kind: TokenKind) -> anyhow::Error {
    let other = match kind {
        TokenKind::Harness => TokenKind::Person,
        TokenKind::Person => TokenKind::Harness,
    };
    let has_other = environment.token(other).is_ok_and(|token| token.is_some()) || config.of(other).is_some();
    let only = if has_other { format!("there is only {} token here, and ", whose(other)) } else { String::new() };
    anyhow!(
        "{only}this needs {} token: run `chips connect URL` once, or set CHIPS_URL and {}",
        whose(kind),
        variable(kind)
    )
}

/// The folder of this program in the user's configuration folder.
///
/// # Errors
/// When the user has no home folder.
pub fn folder() -> anyhow::Result<PathBuf> {
    let base = etcetera::choose_base_strategy().context("can't find the configuration folder")?;
    Ok(base.config_dir().join("chips"))
}

/// The user's folder for what may be lost: `$XDG_CACHE_HOME/chips`, else `~/.cache/chips`.
///
/// # Errors
/// When the user has no home folder.
pub fn cache() -> anyhow::Result<PathBuf> {
    let base = etcetera::choose_base_strategy().context("can't find the folder for caches")?;
    Ok(base.cache_dir().join("chips"))
}

/// Where the file is.
///
/// # Errors
/// When the user has no home folder.
pub fn path() -> anyhow::Result<PathBuf> {
    Ok(folder()?.join("config.toml"))
}

/// Reads the file; where there is none, an empty configuration. One that others can read is told on standard error.
///
/// # Errors
/// When it can't be read, with the place of what is wrong; never with a token.
pub fn load() -> anyhow::Result<Config> {
    let path = path()?;
    if let Some(mode) = open_to_others(&path) {
        let path = output::one_line(&path.to_string_lossy());
        output::note(format_args!("chips: others can read {path} (mode {mode:03o}); mend it with: chmod 600 '{path}'"));
    }
    read(&path)
}

/// The mode of the file, where others than its owner may read or write it.
pub fn open_to_others(path: &Path) -> Option<u32> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

#[derive(Deserialize)]
struct File {
    harness: Option<Entry>,
    person: Option<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    url: String,
    token: String,
}

fn read(path: &Path) -> anyhow::Result<Config> {
    let name = || output::one_line(&path.to_string_lossy());
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(error) => return Err(error).with_context(|| format!("can't read {}", name())),
    };
    let file: File = toml::from_str(&text).map_err(|error| {
        // The error's own text quotes the line, and the line may hold a token.
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        anyhow!("{}:{line}: {}", name(), error.message())
    })?;
    let connection = |entry: Option<Entry>, kind: TokenKind| {
        let Some(Entry { url, token }) = entry else { return Ok(None) };
        let at = || format!("{}: [{}]", name(), table(kind));
        let address = url.parse().with_context(at)?;
        let token: Token = token.parse().with_context(at)?;
        if token.kind() != kind {
            bail!("{}: the token is {}", at(), whose(token.kind()));
        }
        Ok(Some(Connection { address, token }))
    };
    Ok(Config {
        harness: connection(file.harness, TokenKind::Harness)?,
        person: connection(file.person, TokenKind::Person)?,
    })
}

/// Keeps a connection in the file, beside the one of the other kind, and says where the file is.
///
/// # Errors
/// When the file can't be written; what was there stays as it was then.
pub fn save(connection: &Connection) -> anyhow::Result<PathBuf> {
    let path = path()?;
    // A configuration that is kept elsewhere and linked here stays linked.
    let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    write(&target, connection).with_context(|| format!("can't write {}", output::one_line(&path.to_string_lossy())))?;
    Ok(path)
}

fn write(path: &Path, connection: &Connection) -> anyhow::Result<()> {
    let mut document: toml::Table = match fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text).map_err(|error| anyhow!("it is no TOML: {}", error.message()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => toml::Table::new(),
        Err(error) => return Err(error.into()),
    };
    let entry = toml::Table::from_iter([
        ("url".to_owned(), connection.address.to_string().into()),
        ("token".to_owned(), connection.token.secret().into()),
    ]);
    document.insert(table(connection.token.kind()).to_owned(), entry.into());
    let folder = path.parent().context("it has no folder")?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // Written beside and put in place whole: whoever reads it meanwhile finds the old one or the new one.
    let beside = folder.join(format!(".config.toml.{}", std::process::id()));
    let result = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(format!("{HEADER}{document}").as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, path));
    if result.is_err() {
        let _ = fs::remove_file(&beside);
    }
    Ok(result?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn connection_to(url: &str, kind: TokenKind, letter: &str) -> Connection {
        let token = format!("{}{}", kind.prefix(), letter.repeat(38)).parse().unwrap();
        Connection { address: url.parse().unwrap(), token }
    }

    fn environment(url: &str, harness: &str, person: &str) -> Environment {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Environment { url: some(url), harness: some(harness), person: some(person) }
    }

    const HERE: &str = "http://127.0.0.1:7070";
    const THERE: &str = "https://chips.example.com";

    #[test]
    fn both_kinds_are_kept_side_by_side_and_only_for_the_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("config.toml");
        let harness = connection_to(HERE, TokenKind::Harness, "a");
        let person = connection_to(THERE, TokenKind::Person, "b");
        write(&path, &connection_to(THERE, TokenKind::Harness, "z")).unwrap();
        write(&path, &person).unwrap();
        write(&path, &harness).unwrap();
        assert_eq!(read(&path).unwrap(), Config { harness: Some(harness), person: Some(person) });
        assert_eq!(open_to_others(&path), None);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_else_stands_in_the_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "[look]\ncolour = \"none\"\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(open_to_others(&path), Some(0o644));
        write(&path, &connection_to(HERE, TokenKind::Person, "a")).unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("colour = \"none\""));
        assert_eq!(open_to_others(&path), None, "a file that others could read is closed to them");
    }

    #[test]
    fn an_error_in_the_file_names_its_line_and_no_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let secret = "s".repeat(37);
        for (text, part) in [
            (format!("[harness]\ntoken = \"chips_hk_{secret}\n"), "config.toml:2: "),
            (format!("[harness]\nurl = \"{HERE}\"\ntoken = \"chips_hk_{secret}\"\n"), "[harness]"),
            (format!("[person]\nurl = \"{HERE}\"\ntoken = \"chips_hk_{secret}s\"\n"), "a harness's"),
            (format!("[person]\nurl = \"x\"\ntoken = \"chips_uk_{secret}s\"\n"), "[person]"),
        ] {
            fs::write(&path, text).unwrap();
            let error = format!("{:#}", read(&path).unwrap_err());
            assert!(error.contains(part), "{error}");
            assert!(!error.contains(&secret), "{error}");
        }
    }

    #[test]
    fn the_environment_comes_before_the_file() {
        let kept = connection_to(THERE, TokenKind::Harness, "a");
        let config = Config { harness: Some(kept.clone()), person: None };
        let fresh = connection_to(HERE, TokenKind::Harness, "b");
        let all = environment(HERE, fresh.token.secret(), "");
        assert_eq!(resolve(&all, &config, TokenKind::Harness).unwrap(), Some(fresh.clone()));
        let token_alone = environment("", fresh.token.secret(), "");
        let there = Connection { address: kept.address.clone(), ..fresh };
        assert_eq!(resolve(&token_alone, &config, TokenKind::Harness).unwrap(), Some(there));
        let same_server = environment(&format!("{THERE}/"), "", "");
        assert_eq!(resolve(&same_server, &config, TokenKind::Harness).unwrap(), Some(kept));
    }

    #[test]
    fn a_kept_token_goes_to_no_other_server() {
        let config = Config { harness: Some(connection_to(THERE, TokenKind::Harness, "a")), person: None };
        let error = resolve(&environment(HERE, "", ""), &config, TokenKind::Harness).unwrap_err().to_string();
        assert!(error.contains(HERE) && error.contains(THERE) && error.contains("chips connect"), "{error}");
    }

    #[test]
    fn a_token_of_the_other_kind_is_told_and_not_sent() {
        let person = connection_to(HERE, TokenKind::Person, "a");
        let swapped = environment(HERE, person.token.secret(), "");
        let error = resolve(&swapped, &Config::default(), TokenKind::Harness).unwrap_err().to_string();
        assert!(error.starts_with("CHIPS_TOKEN holds a person's token"), "{error}");
        let config = Config { harness: None, person: Some(person) };
        let error = missing(&Environment::default(), &config, TokenKind::Harness).to_string();
        assert!(error.contains("only a person's token") && error.contains("CHIPS_TOKEN"), "{error}");
    }
}
