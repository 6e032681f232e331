//! `chips config`

use std::process::ExitCode;

use serde::Serialize;

use crate::folder::Folder;
use crate::server_config::{self, DEFAULT, Fault, FileArg, Flags, Given, KEYS, Key, Layer, Reading, Shape};
use crate::{args, exit, output};

/// Print the server's default configuration, or check what it is told
///
/// Without --check: the documented text that `chips serve` reads first; kept in a file and changed there, it is the
/// server's configuration. With --check: reads that file, the environment and these flags as `chips serve` would, and
/// prints what counts for each key and who said so; exit code 1 where anything is wrong. Nothing is started.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips config > chips.toml",
    "chips config --check --config chips.toml",
    "chips config --check --json",
))]
pub struct Args {
    /// Check what the server is told, and print what counts
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    file: FileArg,
    #[command(flatten)]
    json: args::Json,
    #[command(flatten)]
    flags: Flags,
}

/// What is shown in place of a secret.
const HIDDEN: &str = "[secret]";

/// What counts for a key.
#[derive(Debug, Serialize)]
struct Row {
    key: &'static str,
    value: serde_json::Value,
    from: Layer,
    at: String,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'r> {
    ok: bool,
    file: Option<String>,
    values: Vec<Row>,
    faults: &'r [Fault],
    warnings: &'r [Fault],
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.check {
        if args.json.json || args.file.is_said_here() || args.flags.keys().next().is_some() {
            output::error("that is for --check; without it, `chips config` prints the default configuration");
            return Ok(exit::USAGE.into());
        }
        output::text(DEFAULT)?;
        return Ok(exit::DONE.into());
    }
    let file = args.file.file();
    let reading = server_config::read(file.as_deref(), &args.flags);
    let (faults, warnings) = (reading.faults(), &reading.warnings);
    let ok = faults.is_empty();
    if args.json.json {
        let file = file.map(|file| file.to_string_lossy().into_owned());
        let values = KEYS.iter().filter_map(|key| Some(row(key, reading.given(key)?))).collect();
        output::json(&Report { ok, file, values, faults, warnings })?;
    } else if ok {
        output::text(table(&reading))?;
    }
    for fault in faults {
        output::error(&fault.line());
    }
    for warning in warnings {
        output::note(format_args!("chips: warning: {}", warning.line()));
    }
    output::note(match faults.len() {
        0 => "chips: the configuration is good".to_owned(),
        1 => "chips: one thing is wrong; the server would not start".to_owned(),
        many => format!("chips: {many} things are wrong; the server would not start"),
    });
    Ok(if ok { exit::DONE.into() } else { exit::FAILED.into() })
}

fn row(key: &Key, given: &Given) -> Row {
    let text = || given.texts.first().cloned().unwrap_or_default();
    let value = match key.shape {
        Shape::List => given.texts.clone().into(),
        Shape::Switch => args::switch(&text()).map_or_else(|_| text().into(), Into::into),
        Shape::Text => text().into(),
        Shape::Number => text().parse::<u64>().map_or_else(|_| text().into(), Into::into),
        Shape::Secret if !text().is_empty() => HIDDEN.into(),
        Shape::Maybe | Shape::Path | Shape::Secret => Some(text()).filter(|text| !text.is_empty()).into(),
    };
    Row { key: key.path, value, from: given.layer, at: given.at.clone() }
}

/// What counts, one key a line: its name, its value, who said so.
fn table(reading: &Reading) -> String {
    let shown = |key: &Key, given: &Given| match given.texts.join(", ") {
        // What it comes to is worth more than that nobody named it.
        text if text.is_empty() && key.path == "data" => {
            Folder::of(None).map_or_else(|_| "not set".to_owned(), |folder| folder.path().display().to_string())
        }
        text if text.is_empty() && key.shape == Shape::List => "none".to_owned(),
        text if text.is_empty() => "not set".to_owned(),
        _ if key.shape == Shape::Secret => HIDDEN.to_owned(),
        text => text,
    };
    let rows: Vec<_> = KEYS
        .iter()
        .filter_map(|key| {
            let given = reading.given(key)?;
            let at = if given.layer == Layer::Default { "default".to_owned() } else { given.at.clone() };
            Some([key.path.to_owned(), output::one_line(&shown(key, given)), output::one_line(&at)])
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (keys, values) = (width(0), width(1));
    rows.iter().map(|[key, value, at]| format!("{key:keys$}  {value:values$}  {at}\n")).collect()
}
