//! Each key as a flag.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::keys::{Key, Shape};
use super::{KEYS, VARIABLE};

/// The file.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct FileArg {
    /// The configuration file of the server, in TOML; `chips config` prints one to begin with [env: CHIPS_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl FileArg {
    /// The file that was named, on the command line or else by the environment. There is none that is read unnamed.
    pub fn file(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| variable(VARIABLE).map(PathBuf::from))
    }

    /// Whether one was named on the command line.
    pub fn is_said_here(&self) -> bool {
        self.config.is_some()
    }
}

/// A variable that says something; an empty one says nothing.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// What was said by flags.
#[derive(Clone, Default)]
pub struct Flags(BTreeMap<&'static str, Vec<String>>);

impl Flags {
    /// The texts that this key was given, if it was.
    pub fn given(&self, key: &Key) -> Option<&[String]> {
        self.0.get(key.path).map(Vec::as_slice)
    }

    /// The keys that were given.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> {
        KEYS.iter().filter(|key| self.0.contains_key(key.path))
    }
}

impl fmt::Debug for Flags {
    /// The keys alone: a value may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl clap::FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |key: &'static Key| {
            let texts = matches.get_many::<String>(key.path)?;
            Some((key.path, texts.cloned().collect()))
        };
        Ok(Self(KEYS.iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        KEYS.iter().fold(command, |command, key| command.arg(argument(key)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(key: &'static Key) -> Arg {
    let about = key.about();
    let mut help = about.says.clone();
    if key.shape == Shape::List {
        help.push_str("; may be given again");
    }
    if !about.default.is_empty() {
        help.push_str(&format!(" [default: {}]", about.default));
    }
    help.push_str(&format!(" [env: {}]", key.variable()));
    let argument = Arg::new(key.path)
        .long(key.flag())
        .value_name(key.value_name)
        .help(help)
        .help_heading("Configuration")
        .value_parser(|text: &str| key.check(text).map(|()| text.to_owned()));
    match key.shape {
        Shape::List => argument.action(ArgAction::Append).value_delimiter(','),
        Shape::Switch => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
        Shape::Path => argument.value_hint(ValueHint::AnyPath),
        Shape::Text | Shape::Maybe | Shape::Number => argument,
        // The refusal of a value names it; this one is checked where nobody sees it.
        Shape::Secret => argument.value_parser(|text: &str| Ok::<_, String>(text.to_owned())),
    }
}
