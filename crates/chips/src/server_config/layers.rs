//! The layers: the default text, the file, the environment and the flags, each read whole, with the place of everything
//! that it says and of everything that is wrong with it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_setfl};
use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::flags::Flags;
use super::keys::{DEFAULT, DEFAULT_NAME, Key, Shape, nearest};
use super::{KEYS, VARIABLE};
use crate::folder::shell_word;
use crate::output;

/// What Chips reads from the environment beside the keys.
const OTHER_VARIABLES: [&str; 5] = [VARIABLE, "CHIPS_URL", "CHIPS_TOKEN", "CHIPS_USER_TOKEN", "CHIPS_RUN"];

/// How much of a secret's file is read: more than any secret takes.
const SECRET_FILE_BYTES: u64 = 64 * 1024;

/// How much of a file is read: many times what all keys take.
const FILE_BYTES: u64 = 1024 * 1024;

/// How many letters may lie between a variable and the one that was meant.
const NEAR: usize = 3;

/// Who said something; a later one wins over an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The default text.
    Default,
    /// The file.
    File,
    /// The environment.
    Environment,
    /// A flag.
    Flag,
}

/// What one layer gave a key.
#[derive(Clone)]
pub struct Given {
    /// Its value; several texts for a list, one otherwise.
    pub texts: Vec<String>,
    /// Who said so.
    pub layer: Layer,
    /// Where: `/etc/chips.toml:3`, `CHIPS_LISTEN`, `--listen`.
    pub at: String,
}

impl fmt::Debug for Given {
    /// Without the value, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").field("layer", &self.layer).field("at", &self.at).finish_non_exhaustive()
    }
}

/// Something that is wrong, or worth a warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Where, as in [`Given`]; a file's column too. Empty where it is no one place.
    pub at: String,
    /// What, and what is right instead.
    pub message: String,
}

impl Fault {
    /// In one sentence that stands on one line.
    pub fn line(&self) -> String {
        let at = if self.at.is_empty() { String::new() } else { format!("{}: ", self.at) };
        output::one_line(&format!("{at}{}", self.message))
    }
}

/// What counts of all that the layers say.
#[derive(Debug, Default)]
pub struct Values(BTreeMap<&'static str, Given>);

impl Values {
    /// What counts for a key.
    pub fn given(&self, path: &str) -> Option<&Given> {
        self.0.get(path)
    }

    /// A text.
    pub fn text<T>(&self, path: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Fault> {
        let Some(given) = self.given(path) else {
            return Err(Fault { at: DEFAULT_NAME.to_owned(), message: format!("{path} has no value") });
        };
        let text = given.texts.first().map_or("", String::as_str);
        read(text).map_err(|reason| wrong(&given.at, path, &quoted(text), &reason))
    }

    /// A text, if it is set.
    pub fn maybe<T>(&self, path: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, Fault> {
        self.text(path, |text| if text.is_empty() { Ok(None) } else { read(text).map(Some) })
    }

    /// A path, if it is set.
    pub fn path<T>(&self, path: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, Fault> {
        self.maybe(path, read)
    }

    /// Texts.
    pub fn list<T>(&self, path: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, Fault> {
        let Some(given) = self.given(path) else { return Ok(Vec::new()) };
        given
            .texts
            .iter()
            .map(|text| read(text).map_err(|reason| wrong(&given.at, path, &quoted(text), &reason)))
            .collect()
    }

    /// A secret, if it is set.
    pub fn secret<T>(&self, path: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, Fault> {
        self.maybe(path, read)
    }

    /// A number.
    pub fn number<T>(&self, path: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Fault> {
        self.text(path, read)
    }

    /// True or false.
    pub fn switch<T>(&self, path: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Fault> {
        self.text(path, read)
    }
}

/// Reads all layers; what is wrong in one does not hide the others.
#[derive(Debug, Default)]
pub struct Reader {
    /// What counts.
    pub values: Values,
    /// What is wrong.
    pub faults: Vec<Fault>,
    /// What is worth a warning.
    pub warnings: Vec<Fault>,
}

impl Reader {
    /// Reads the default text.
    pub fn default_text(&mut self) {
        self.toml(DEFAULT, &Source { name: DEFAULT_NAME, path: None, folder: None, layer: Layer::Default });
    }

    /// Reads a file.
    pub fn file(&mut self, path: &Path) {
        let name = path.to_string_lossy().into_owned();
        let bytes = match read_up_to(path, FILE_BYTES) {
            Ok(bytes) if bytes.len() as u64 >= FILE_BYTES => {
                return self
                    .fault(name, format!("this is no configuration: it has more than {} KiB", FILE_BYTES >> 10));
            }
            Ok(bytes) => bytes,
            Err(error) => return self.fault(name, format!("can't be read: {error}")),
        };
        let folder = std::path::absolute(path).ok().and_then(|path| path.parent().map(Path::to_owned));
        match String::from_utf8(bytes) {
            Ok(text) => self.toml(&text, &Source { name: &name, path: Some(path), folder, layer: Layer::File }),
            Err(error) => {
                let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
                let (line, column) = place(&before, before.len());
                self.fault(format!("{name}:{line}:{column}"), "a byte that is no UTF-8".to_owned());
            }
        }
    }

    /// Reads the environment. A variable that is empty says nothing; one of which Chips knows nothing is a warning, for
    /// other programs' variables may begin alike.
    pub fn environment(&mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) {
        let mut ours: Vec<_> =
            variables.into_iter().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"CHIPS_")).collect();
        ours.sort();
        for (name, value) in ours {
            let name = name.to_string_lossy().into_owned();
            match KEYS.iter().find(|key| key.variable() == name) {
                _ if value.is_empty() => {}
                Some(key) => self.variable(key, name, &value),
                None if OTHER_VARIABLES.contains(&name.as_str()) => {}
                None => self.unknown_variable(name),
            }
        }
    }

    fn variable(&mut self, key: &'static Key, name: String, value: &OsStr) {
        let Some(value) = value.to_str() else {
            return self.fault(name, "holds bytes that are no UTF-8".to_owned());
        };
        let texts = match key.shape {
            Shape::List => value.split(',').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect(),
            _ => vec![value.to_owned()],
        };
        self.give(key, Given { texts, layer: Layer::Environment, at: name.clone() }, &name);
    }

    fn unknown_variable(&mut self, name: String) {
        let known: Vec<_> = KEYS.iter().map(Key::variable).collect();
        let known = known.iter().map(String::as_str).chain(OTHER_VARIABLES);
        let meant = nearest(&name, known).filter(|(_, far)| *far <= NEAR);
        let meant = meant.map_or_else(String::new, |(meant, _)| format!("; did you mean {meant}?"));
        self.warnings
            .push(Fault { at: name, message: format!("no variable that Chips knows, so it says nothing{meant}") });
    }

    /// Reads the flags.
    pub fn flags(&mut self, flags: &Flags) {
        for key in flags.keys() {
            let at = format!("--{}", key.flag());
            let texts = flags.given(key).unwrap_or_default().to_vec();
            if key.shape == Shape::Secret && texts.iter().any(|text| !text.is_empty()) {
                let message =
                    "stands in the arguments, which everybody on this machine can read; name a file that holds it";
                self.warnings.push(Fault { at: at.clone(), message: message.to_owned() });
            }
            self.give(key, Given { texts, layer: Layer::Flag, at: at.clone() }, &at);
        }
    }

    /// Reads the secrets that stand in files of their own. Where a layer names the file and a later one the secret itself, that one
    /// counts, and the other way round.
    pub fn secrets(&mut self) {
        for key in KEYS.iter() {
            let Some(file) = key.companion() else { continue };
            let said =
                |key: &Key| self.values.0.get(key.path).filter(|given| given.texts.iter().any(|text| !text.is_empty()));
            let Some(named) = said(file).cloned() else { continue };
            match said(key) {
                Some(direct) if direct.layer == named.layer => {
                    let message = format!("{} and {} are both set; keep one of them", key.path, file.path);
                    self.fault(named.at, message);
                }
                Some(direct) if direct.layer > named.layer => {}
                _ => self.secret_file(key, &named),
            }
        }
    }

    /// Gives a key the text of the file that is named for it. What is longer than any secret is judged as if it ended there.
    fn secret_file(&mut self, key: &'static Key, named: &Given) {
        let path = named.texts.first().cloned().unwrap_or_default();
        let no_text = |error| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
        let read = read_up_to(Path::new(&path), SECRET_FILE_BYTES)
            .and_then(|bytes| String::from_utf8(bytes).map_err(|error| no_text(error.utf8_error())));
        match read {
            Ok(text) => {
                self.warn_if_world_readable(Path::new(&path), key);
                // Editors and `echo` end a file with a line feed that nobody means.
                let text =
                    text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
                if text.is_empty() {
                    return self
                        .fault(named.at.clone(), format!("{path} is empty, and {} is to stand in it", key.path));
                }
                let given = Given { texts: vec![text.to_owned()], layer: named.layer, at: named.at.clone() };
                self.give(key, given, &named.at);
            }
            Err(error) => self.fault(named.at.clone(), format!("{path} can't be read: {error}")),
        }
    }

    fn warn_if_world_readable(&mut self, path: &Path, key: &Key) {
        let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.mode());
        if mode & 0o004 != 0 {
            let word = shell_word(&path.to_string_lossy());
            let message = format!(
                "everybody on this machine can read it (mode {:04o}), and {} stands in it; mend it with: chmod o-r {word}",
                mode & 0o7777,
                key.path
            );
            self.warnings.push(Fault { at: path.to_string_lossy().into_owned(), message });
        }
    }

    fn fault(&mut self, at: String, message: String) {
        self.faults.push(Fault { at, message });
    }

    /// Keeps what a layer gives, unless it can't be the key's value.
    fn give(&mut self, key: &'static Key, given: Given, at: &str) {
        let bad = given.texts.iter().find_map(|text| key.check(text).err().map(|reason| (text, reason)));
        match bad {
            Some((_, reason)) if key.shape == Shape::Secret => {
                self.faults.push(wrong(at, key.path, "what it is", &reason));
            }
            Some((text, reason)) => self.faults.push(wrong(at, key.path, &quoted(text), &reason)),
            None => drop(self.values.0.insert(key.path, given)),
        }
    }

    fn toml(&mut self, text: &str, source: &Source<'_>) {
        match DeTable::parse(text) {
            Ok(table) => self.table(text, table.get_ref(), "", source),
            Err(error) => {
                let span = error.span().unwrap_or_default();
                let at = source.at(text, &span);
                let message = match (error.message(), text.get(span)) {
                    ("duplicate key", Some(key)) => format!("{key} stands above already; keep one of them"),
                    (message, _) => message.replace('\n', ", "),
                };
                self.fault(at, message);
            }
        }
    }

    fn table(&mut self, text: &str, table: &DeTable<'_>, prefix: &str, source: &Source<'_>) {
        // In the order of the file.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (name, value) in entries {
            let path = format!("{prefix}{}", name.get_ref());
            let at = source.at(text, &name.span());
            if let Some(key) = KEYS.iter().find(|key| key.path == path) {
                self.entry(text, key, value, source);
            } else if KEYS.iter().any(|key| key.path.starts_with(&format!("{path}."))) {
                match value.get_ref().as_table() {
                    Some(table) => self.table(text, table, &format!("{path}."), source),
                    None => self.fault(at, format!("{path} is a table: its keys stand below a line [{path}]")),
                }
            } else {
                self.fault(at, unknown(&path, value.get_ref().is_table()));
            }
        }
    }

    fn entry(&mut self, text: &str, key: &'static Key, value: &Spanned<DeValue<'_>>, source: &Source<'_>) {
        let span = value.span();
        let at = source.at(text, &span);
        let texts = match (key.shape, value.get_ref()) {
            (Shape::Switch, DeValue::Boolean(on)) => Ok(vec![on.to_string()]),
            (Shape::Switch, _) => Err("true or false, without quotes"),
            (Shape::List, DeValue::Array(items)) => items
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
                .ok_or("a list of texts in quotes"),
            (Shape::List, _) => Err("a list in brackets: [\"one\", \"two\"]"),
            (Shape::Number, DeValue::Integer(number)) if number.radix() == 10 => Ok(vec![number.as_str().to_owned()]),
            (Shape::Number, _) => Err("a whole number, without quotes"),
            (Shape::Path, DeValue::String(path)) => Ok(vec![source.path(path)]),
            (_, DeValue::String(text)) => Ok(vec![text.as_ref().to_owned()]),
            (Shape::Maybe, DeValue::Integer(_)) => Ok(vec![text.get(span.clone()).unwrap_or_default().to_owned()]),
            // A number with a point, say: what the key takes helps more than that texts stand in quotes.
            (Shape::Maybe, _) if let Some(Err(reason)) = text.get(span.clone()).map(|found| key.check(found)) => {
                return self.faults.push(wrong(&at, key.path, &shortened(text.get(span).unwrap_or_default()), &reason));
            }
            (_, _) => Err("a text in quotes"),
        };
        match texts {
            Ok(texts) => {
                let (line, _) = place(text, span.start);
                let given_at = match source.layer {
                    Layer::Default => source.name.to_owned(),
                    _ => format!("{}:{line}", source.name),
                };
                let says_a_secret = key.shape == Shape::Secret && texts.iter().any(|text| !text.is_empty());
                if let Some(path) = source.path.filter(|_| says_a_secret) {
                    self.warn_if_world_readable(path, key);
                }
                self.give(key, Given { texts, layer: source.layer, at: given_at }, &at);
            }
            Err(takes) => {
                let found = match key.shape {
                    Shape::Secret => "what it is".to_owned(),
                    _ => shortened(text.get(span).unwrap_or_default()),
                };
                self.fault(at, format!("{} can't be {found}: it takes {takes}", key.path));
            }
        }
    }
}

/// Reads a file, or its beginning: what is named may be a device that never ends. Of a pipe it reads what was or is being written to it;
/// one that nobody has opened for writing is empty rather than waited for.
fn read_up_to(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    fcntl_setfl(&file, OFlags::empty())?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where a text in TOML comes from.
struct Source<'s> {
    name: &'s str,
    /// The file, where it is one.
    path: Option<&'s Path>,
    /// Where its relative paths begin.
    folder: Option<PathBuf>,
    layer: Layer,
}

impl Source<'_> {
    fn at(&self, text: &str, span: &Range<usize>) -> String {
        let (line, column) = place(text, span.start);
        format!("{}:{line}:{column}", self.name)
    }

    fn path(&self, path: &str) -> String {
        match &self.folder {
            // Joined with an absolute path it is that path; the empty one stays empty.
            Some(folder) if !path.is_empty() => folder.join(path).to_string_lossy().into_owned(),
            _ => path.to_owned(),
        }
    }
}

/// Why there is no such key, and which was meant.
fn unknown(path: &str, is_table: bool) -> String {
    if is_table && ["harness", "person"].contains(&path) {
        return format!(
            "[{path}] is of the file that `chips connect` writes for commands such as `chips ask`; the server's \
             configuration is another file, which `chips config` prints"
        );
    }
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let tables = KEYS.iter().filter_map(|key| key.path.split_once('.')).map(|(table, _)| table);
    // The same name in another table is what was meant, however far that is.
    let same = KEYS.iter().map(|key| key.path).find(|other| last(other) == last(path));
    let meant = match is_table {
        true => nearest(path, tables).map(|(meant, _)| format!("[{meant}]")),
        false => {
            same.or_else(|| nearest(path, KEYS.iter().map(|key| key.path)).map(|(meant, _)| meant)).map(str::to_owned)
        }
    };
    let what = if is_table { format!("[{path}] is no table") } else { format!("{path} is no key") };
    let meant = meant.unwrap_or_default();
    format!("{what} of the configuration; did you mean {meant}? `chips config` prints all that there are")
}

fn wrong(at: &str, path: &str, found: &str, reason: &str) -> Fault {
    Fault { at: at.to_owned(), message: format!("{path} can't be {found}: {reason}") }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text))
}

/// Its beginning: nobody's screen is filled by a value that went wrong.
fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The line and the column of a byte, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}
