//! The log of the process on standard error: lines for people on a terminal, JSON otherwise.

use std::io::{self, IsTerminal, Write};

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

use crate::output;

/// What is logged where nobody says otherwise.
const FILTER: &str = "warn,chips=info,chips_server=info,chips_store=info";

/// Starts the log. What is logged is said by `CHIPS_LOG`, else by `RUST_LOG`, in the form `warn,chips_server=debug`.
pub fn start() {
    start_with(filter(&["CHIPS_LOG", "RUST_LOG"]));
}

/// Starts the log of a server, whose configuration may say what is logged; where it says nothing, `RUST_LOG` does.
pub fn start_as(configured: Option<&str>) {
    start_with(configured.and_then(|said| EnvFilter::try_new(said).ok()).unwrap_or_else(|| filter(&["RUST_LOG"])));
}

/// Reads what is to be logged.
///
/// # Errors
/// It has not the form that it needs.
pub fn filter_text(text: &str) -> Result<String, String> {
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("{error}; an example: warn,chips_server=debug")),
    }
}

fn start_with(filter: EnvFilter) {
    let json = !io::stderr().is_terminal();
    let registry = tracing_subscriber::registry().with(filter);
    // A second start (in tests of the process itself) keeps the first.
    let _ = if json {
        registry.with(fmt::layer().json().flatten_event(true).with_writer(io::stderr)).try_init()
    } else {
        registry
            .with(fmt::layer().compact().with_ansi(false).with_target(false).with_writer(OneLine(io::stderr)))
            .try_init()
    };
}

fn filter(variables: &[&str]) -> EnvFilter {
    for variable in variables {
        let Some(said) = std::env::var(variable).ok().filter(|said| !said.trim().is_empty()) else { continue };
        match EnvFilter::try_new(&said) {
            Ok(filter) => return filter,
            Err(error) => output::note(format_args!("chips: {variable} is passed over: {error}")),
        }
    }
    EnvFilter::new(FILTER)
}

/// Writes each log event on one line, with the control characters of whatever it quotes escaped: nobody's name forges
/// a line or moves the cursor.
struct OneLine<M>(M);

/// The writer of one log event.
struct OneEvent<W>(W);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for OneLine<M> {
    type Writer = OneEvent<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        OneEvent(self.0.make_writer())
    }
}

impl<W: Write> Write for OneEvent<W> {
    /// Takes a whole event: `tracing-subscriber` formats it in memory and hands it over at once.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = output::one_line(text.strip_suffix('\n').unwrap_or(&text));
        self.0.write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_hostile_name_forges_no_line() {
        let kept = Kept::default();
        let writer = kept.clone();
        let layer = fmt::layer().compact().with_ansi(false).with_writer(OneLine(move || writer.clone()));
        let hostile = "x\n2026-11-30T00:00:00Z ERROR forged {\"level\":\"ERROR\"}\r\u{1b}[2J";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(name = %hostile, "asked by {hostile}");
            tracing::info!("second");
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.replace('\n', "").chars().any(char::is_control), "{text}");
    }
}
