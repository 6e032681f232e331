//! The keys: what each is called in the file, as a flag and as a variable, and what it takes. Adding one is a line of the
//! list in `server_config.rs` and a line of `default.toml`, whose comment is the flag's help.

use std::ops::Range;
use std::sync::LazyLock;

use toml::de::DeTable;

use super::KEYS;

/// The default configuration, as people read it and as the server reads it first.
pub const DEFAULT: &str = include_str!("default.toml");

/// What the default configuration is called where something in it is named.
pub const DEFAULT_NAME: &str = "the default configuration";

/// What stands at the end of the key for a secret's file.
const FILE: &str = "_file";

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A text.
    Text,
    /// A text; an empty one says "not set".
    Maybe,
    /// A path, which begins at the folder of the file where it is relative; an empty one says "not set".
    Path,
    /// Texts; one after the other with commas between them in a variable.
    List,
    /// True or false.
    Switch,
    /// A whole number.
    Number,
    /// A text that is shown to nobody; an empty one says "not set". Beside it there is a key for a file that holds it.
    Secret,
}

/// One key.
#[derive(Debug)]
pub struct Key {
    /// In the file, with the tables that it stands in: `mcp.slice`.
    pub path: &'static str,
    /// What its value is called in a usage.
    pub value_name: &'static str,
    /// What it takes.
    pub shape: Shape,
    check: fn(&str) -> Result<(), String>,
}

impl Key {
    /// A key; `check` says why a text can't be its value, or one of its values.
    pub const fn new(
        path: &'static str,
        value_name: &'static str,
        shape: Shape,
        check: fn(&str) -> Result<(), String>,
    ) -> Self {
        Self { path, value_name, shape, check }
    }

    /// As a flag, without the dashes: `mcp-slice`.
    pub fn flag(&self) -> String {
        self.path.replace(['.', '_'], "-")
    }

    /// As an environment variable: `CHIPS_MCP_SLICE`.
    pub fn variable(&self) -> String {
        format!("CHIPS_{}", self.path.replace('.', "_").to_uppercase())
    }

    /// Checks one text of its value.
    ///
    /// # Errors
    /// What is right instead.
    pub fn check(&self, text: &str) -> Result<(), String> {
        let not_set = matches!(self.shape, Shape::Maybe | Shape::Path | Shape::Secret) && text.is_empty();
        if not_set { Ok(()) } else { (self.check)(text) }
    }

    /// Of a secret, the key for the file that holds it.
    pub fn companion(&self) -> Option<&'static Self> {
        let is_it = |other: &&Self| other.path.strip_suffix(FILE) == Some(self.path);
        KEYS.iter().find(|other| self.shape == Shape::Secret && is_it(other))
    }

    /// Keeps a key, and where it is a secret's, the one for the file that holds it, which is called `file_path`.
    pub fn add_to(self, keys: &mut Vec<Self>, file_path: &'static str) {
        let is_secret = self.shape == Shape::Secret;
        keys.push(self);
        if is_secret {
            keys.push(Self::new(file_path, "FILE", Shape::Path, |_| Ok(())));
        }
    }

    /// What stands about it in the default configuration.
    pub fn about(&self) -> &'static About {
        static NOTHING: About = About { says: String::new(), default: "" };
        ABOUT.iter().find(|(path, _)| path == self.path).map_or(&NOTHING, |(_, about)| about)
    }
}

/// What the default configuration says about a key.
#[derive(Debug)]
pub struct About {
    /// The first paragraph of the comment above it, on one line.
    pub says: String,
    /// Its value as it stands there, but for quotes; empty where that says "nothing" or "no".
    pub default: &'static str,
}

static ABOUT: LazyLock<Vec<(String, About)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    if let Ok(table) = DeTable::parse(DEFAULT) {
        about(table.get_ref(), "", &mut all);
    }
    all
});

fn about(table: &DeTable<'_>, prefix: &str, all: &mut Vec<(String, About)>) {
    for (key, value) in table {
        let path = format!("{prefix}{}", key.get_ref());
        match value.get_ref().as_table() {
            Some(table) => about(table, &format!("{path}."), all),
            None => all.push((path, About { says: comment_above(&key.span()), default: shown(&value.span()) })),
        }
    }
}

/// The first paragraph of the comment that stands right above this place.
fn comment_above(at: &Range<usize>) -> String {
    let above = DEFAULT[..at.start].lines().rev().take_while(|line| line.starts_with('#'));
    let mut lines: Vec<_> = above.map(|line| line.trim_start_matches('#').trim()).collect();
    lines.reverse();
    lines.split(|line| line.is_empty()).next().unwrap_or_default().join(" ")
}

fn shown(at: &Range<usize>) -> &'static str {
    match DEFAULT[at.clone()].trim_matches('"') {
        "[]" | "false" => "",
        value => value,
    }
}

/// The name out of these that looks most like this one, and how many letters lie between them.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<(&'n str, usize)> {
    let far = |other: &str| strsim::damerau_levenshtein(&name.to_lowercase(), &other.to_lowercase());
    known.into_iter().map(|other| (other, far(other))).min_by_key(|(_, far)| *far)
}
