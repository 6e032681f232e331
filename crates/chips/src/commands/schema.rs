//! `chips schema`

use std::process::ExitCode;

use chips_protocol::{EventType, schema};

use crate::{exit, output};

/// Print the JSON Schema of an event, or list the types that have one
///
/// The schema (JSON Schema 2020-12) is that of the stored form: what the log, a page or a stream gives. Without a TYPE
/// the types are listed, one a line.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips schema",
    "chips schema question.ask > question.ask.json",
))]
pub struct Args {
    /// The type of the event
    #[arg(value_name = "TYPE", value_parser = event_type())]
    event_type: Option<EventType>,
}

fn event_type() -> impl clap::builder::TypedValueParser<Value = EventType> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(EventType::ALL.map(EventType::as_str))
        .try_map(|name| EventType::from_name(&name).ok_or("no such type"))
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.event_type {
        Some(event_type) => output::line(output::json_text(&schema::of(event_type), true)?)?,
        None => {
            for event_type in EventType::ALL {
                output::line(event_type.as_str())?;
            }
        }
    }
    Ok(exit::DONE.into())
}
