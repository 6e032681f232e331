//! The log of the process on standard error: lines for people on a terminal, JSON otherwise.
//!
//! What docs/operating.md promises of it is held here: one line an event whatever it quotes, and nothing of what other
//! crates would say of headers, bodies and addresses, however much is asked for.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;

use chips_protocol::text::is_bidi_control;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::output;

/// What is logged where nobody says otherwise.
const FILTER: &str = "warn,chips=info,chips_server=info,chips_store=info";
/// The same on a terminal, where a line for each request would bury what somebody is there to see.
const FILTER_ON_A_TERMINAL: &str =
    "warn,chips=info,chips_server=info,chips_server::access=warn,chips_server::workers=warn,chips_store=info";

/// The crates of this workspace, as what they log is named.
const OWN: [&str; 7] =
    ["chips", "chips_server", "chips_store", "chips_mcp", "chips_client", "chips_core", "chips_protocol"];

/// Starts the log. What is logged is said by `CHIPS_LOG`, else by `RUST_LOG`, in the form `warn,chips_server=debug`.
pub fn start() {
    start_with(|form| filter(form, &["CHIPS_LOG", "RUST_LOG"]));
}

/// Starts the log of a server, whose configuration may say what is logged; where it says nothing, `RUST_LOG` does.
pub fn start_as(configured: Option<&str>) {
    let configured = configured.and_then(|said| EnvFilter::try_new(said).ok());
    start_with(|form| configured.unwrap_or_else(|| filter(form, &["RUST_LOG"])));
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

fn start_with(filter: impl FnOnce(Form) -> EnvFilter) {
    let form = if io::stderr().is_terminal() { Form::Text } else { Form::Json };
    // A second start (in tests of the process itself) keeps the first.
    if subscriber(form, filter(form), io::stderr).try_init().is_ok() {
        std::panic::set_hook(Box::new(panicked));
    }
}

/// Logs that something panicked, and where, as one event. What a panic says of it can quote anybody's text (a string cut within a character
/// does), so only words of the program itself are told.
fn panicked(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(tracing::field::display);
    let said = panic.payload().downcast_ref::<&'static str>().copied();
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| tracing::field::display(backtrace));
    tracing::error!(location, said, backtrace, "a part of Chips panicked: this is a fault in Chips");
}

/// How a log event looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

/// Everything between an event and the writer.
fn subscriber<M>(form: Form, filter: EnvFilter, writer: M) -> impl Subscriber + Send + Sync
where
    M: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let writer = OneLine { form, inner: writer };
    let layer = match form {
        // The span is the request, and there is one of them: a list would say it twice.
        Form::Json => fmt::layer().json().flatten_event(true).with_span_list(false).with_writer(writer).boxed(),
        Form::Text => fmt::layer().compact().with_ansi(false).with_target(false).with_writer(writer).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(layer.with_filter(ceiling()))
}

/// What is logged at most, whatever the filter asks for. Of other crates only what has failed: at finer levels hyper, reqwest, rustls and
/// the like tell of addresses, headers and bodies. Nothing of `rmcp`, which quotes messages at every level.
fn ceiling() -> Targets {
    Targets::new()
        .with_default(LevelFilter::ERROR)
        .with_target("rmcp", LevelFilter::OFF)
        .with_targets(OWN.map(|own| (own, Level::TRACE)))
}

fn filter(form: Form, variables: &[&str]) -> EnvFilter {
    for variable in variables {
        let Some(said) = std::env::var(variable).ok().filter(|said| !said.trim().is_empty()) else { continue };
        match EnvFilter::try_new(&said) {
            Ok(filter) => return filter,
            Err(error) => output::note(format_args!("chips: {variable} is passed over: {error}")),
        }
    }
    EnvFilter::new(match form {
        Form::Text => FILTER_ON_A_TERMINAL,
        Form::Json => FILTER,
    })
}

/// Writes each log event on one line, with what could end a line, move the cursor or turn the text around escaped: nobody's
/// name forges a line.
struct OneLine<M> {
    form: Form,
    inner: M,
}

/// The writer of one log event.
struct OneEvent<W> {
    form: Form,
    inner: W,
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for OneLine<M> {
    type Writer = OneEvent<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        OneEvent { form: self.form, inner: self.inner.make_writer() }
    }
}

impl<W: Write> Write for OneEvent<W> {
    /// Takes a whole event: `tracing-subscriber` formats it in memory and hands it over at once.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        self.inner.write_all(format!("{}\n", one_line(text, self.form)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The same with the characters escaped that some reader takes for the end of a line or as a command, and those that turn the text
/// around. JSON itself asks only for those below U+0020; outside of texts it has none of the others, so each stands within one.
fn one_line(text: &str, form: Form) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match form {
            _ if !is_unseen(c) => safe.push(c),
            Form::Text => safe.extend(c.escape_default()),
            // None of them is above U+FFFF.
            Form::Json => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    safe
}

/// Whether a character is a control, ends a line or paragraph, or has to do with the direction of text (Unicode's `Bidi_Control`).
fn is_unseen(c: char) -> bool {
    c.is_control() || is_bidi_control(c) || matches!(c, '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;

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

    /// What is written while this runs, through all that stands between an event and standard error.
    fn logged(form: Form, filter: &str, log: impl FnOnce()) -> String {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = subscriber(form, EnvFilter::new(filter), move || writer.clone());
        tracing::subscriber::with_default(subscriber, log);
        let bytes = kept.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// Two events of which the first quotes a hostile text everywhere an event can: message, field, field by its Debug, field of its span.
    fn two_events(hostile: &str) {
        let span = tracing::info_span!("request", route = hostile, participant = tracing::field::Empty);
        span.record("participant", tracing::field::display(hostile));
        span.in_scope(|| tracing::info!(name = %hostile, quoted = ?hostile, plain = hostile, "asked by {hostile}"));
        tracing::info!("second");
    }

    /// Whether a terminal, an editor or a log's reader makes something of a character that is not to be seen.
    fn acts(c: char) -> bool {
        matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}')
            || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    }

    fn hostile() -> impl Strategy<Value = String> {
        let pieces = prop_oneof![
            proptest::sample::select(vec![
                "\n",
                "\r",
                "\r\n",
                "\0",
                "\u{1b}",
                "\u{1b}[2J",
                "\u{9b}31m",
                "\u{85}",
                "\u{7f}",
                "\u{b}",
                "\u{c}",
                "\u{2028}",
                "\u{2029}",
                "\u{202e}",
                "\u{2066}",
                "\u{200f}",
                "\"",
                "\\",
                "\\n",
                "\\u000a",
                "}",
                "{\"level\":\"ERROR\"}",
                "\n2026-11-30T00:00:00.000000Z ERROR forged",
            ])
            .prop_map(str::to_owned),
            any::<String>(),
        ];
        proptest::collection::vec(pieces, 1..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_text_forges_a_line_of_text(hostile in hostile()) {
            let text = logged(Form::Text, "trace", || two_events(&hostile));
            prop_assert_eq!(text.lines().count(), 2, "{}", text);
            prop_assert!(!text.replace('\n', "").chars().any(acts), "{:?}", text);
            prop_assert!(text.lines().next().unwrap().contains(" INFO "));
        }

        #[test]
        fn no_text_forges_a_line_or_a_field_of_json_and_each_is_told_as_it_was(hostile in hostile()) {
            let text = logged(Form::Json, "trace", || two_events(&hostile));
            prop_assert!(!text.replace('\n', "").chars().any(acts), "{:?}", text);
            let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            prop_assert_eq!(lines.len(), 2, "{}", text);
            let first = &lines[0];
            prop_assert_eq!(&first["level"], "INFO");
            prop_assert_eq!(first["plain"].as_str(), Some(hostile.as_str()));
            prop_assert_eq!(first["name"].as_str(), Some(hostile.as_str()));
            prop_assert_eq!(first["span"]["route"].as_str(), Some(hostile.as_str()));
            prop_assert_eq!(first["span"]["participant"].as_str(), Some(hostile.as_str()));
            let keys: Vec<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
            prop_assert_eq!(keys, ["timestamp", "level", "message", "name", "quoted", "plain", "target", "span"]);
        }
    }

    #[test]
    fn a_panic_is_one_event_without_the_text_that_it_is_about() {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(panicked));
        let text = logged(Form::Json, "error", || {
            let cut = |text: &str| text[..1].len();
            assert!(std::panic::catch_unwind(|| cut("\u{fc}ber\nsomebody's words")).is_err());
            assert!(std::panic::catch_unwind(|| panic!("our own words")).is_err());
        });
        std::panic::set_hook(before);
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines.iter().all(|line| line["location"].as_str().unwrap().contains("logging.rs:")), "{text}");
        assert!(!text.contains("somebody"), "{text}");
        assert_eq!((&lines[0]["said"], &lines[1]["said"]), (&serde_json::Value::Null, &"our own words".into()));
    }

    #[test]
    fn other_crates_say_what_failed_and_no_more_however_much_is_asked_for() {
        for form in [Form::Text, Form::Json] {
            let text = logged(form, "trace,hyper=trace,rmcp=trace", || {
                tracing::trace!(target: "hyper::proto", "bytes of a body");
                tracing::debug!(target: "reqwest::connect", "an address");
                tracing::warn!(target: "hyper_util::client", "a header");
                tracing::error!(target: "rmcp::service", "a message");
                tracing::error!(target: "rustls::conn", "it failed");
                tracing::trace!(target: "chips_store::engine", "our own");
            });
            assert!(text.contains("it failed") && text.contains("our own"), "{text}");
            assert_eq!(text.lines().count(), 2, "{text}");
        }
    }

    #[test]
    fn a_terminal_is_not_told_of_each_request_and_a_file_is() {
        let access = || {
            tracing::info!(target: "chips_server::access", "answered");
            tracing::info!(target: "chips_server::workers::deadlines", "closed");
            tracing::warn!(target: "chips_server::access", "failed");
            tracing::info!(target: "chips_server::app", "listening");
        };
        assert_eq!(logged(Form::Text, FILTER_ON_A_TERMINAL, access).lines().count(), 2);
        assert_eq!(logged(Form::Json, FILTER, access).lines().count(), 4);
    }
}
