//! The way to the operator's mail server, and what its replies mean.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chips_core::notify::Outcome;
use chips_store::Store;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::{self, response::Severity};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use tokio::sync::Semaphore;

use super::compose::{self, Mail, Thread};
use crate::channels::message::shortened;
use crate::config::{Config, Smtp, SmtpTls};
use crate::outbound::words;
use crate::words::Words;

/// Connections to the mail server at the same time: servers count them.
const CONNECTIONS: usize = 6;
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How long the whole of a delivery may take; less than any channel gets.
const LONGEST: Duration = Duration::from_secs(30);
/// Characters of what the server says that are kept.
const SAID: usize = 300;
/// Replies by which a server says that it does not know who Chips is, or not any more (RFC 4954, 6).
const NOT_LET_IN: [u16; 4] = [530, 534, 535, 538];
/// Enhanced codes (RFC 3463) by which a server says that there is no such mailbox.
const NO_MAILBOX: [&str; 3] = ["5.1.1", "5.1.6", "5.1.10"];

/// Sends mail by the operator's server. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    inner: Arc<Inner>,
}

struct Inner {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    base_url: String,
    store: Store,
    room: Semaphore,
}

impl Mailer {
    /// The mailer of a server that has one configured. Nothing is connected to yet.
    ///
    /// # Errors
    /// What of the configuration can't be used.
    pub fn of(config: &Config, store: &Store) -> Result<Option<Self>, String> {
        let Some(smtp) = &config.smtp else { return Ok(None) };
        let from = smtp.from.clone().ok_or("smtp.from is not set")?;
        let tls = match smtp.tls {
            SmtpTls::Implicit => Tls::Wrapper(parameters(smtp)?),
            SmtpTls::Starttls => Tls::Required(parameters(smtp)?),
            SmtpTls::None => Tls::None,
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&smtp.host)
            .port(smtp.port())
            .tls(tls)
            .timeout(Some(CONNECT))
            .hello_name(hello(config));
        if let (Some(username), Some(password)) = (&smtp.username, &smtp.password) {
            builder = builder.credentials(Credentials::new(username.clone(), password.reveal().to_owned()));
        }
        let inner = Inner {
            transport: builder.build(),
            from,
            base_url: config.base_url(),
            store: store.clone(),
            room: Semaphore::new(CONNECTIONS),
        };
        Ok(Some(Self { inner: Arc::new(inner) }))
    }

    /// The inbox's address, without a slash at its end.
    pub(super) fn base_url(&self) -> String {
        self.inner.base_url.clone()
    }

    /// What stands behind the `@` of the messages' names.
    pub(super) fn domain(&self) -> &str {
        self.inner.from.email.domain()
    }

    /// Asks whether an address is the person's: the one thing that is sent to one that is not proven.
    pub(crate) async fn ask_for_proof(&self, address: &str, code: &str, name: &str, w: &'static Words) -> Outcome {
        let mail = compose::proof(address, code, name, w, &self.inner.base_url);
        self.send(address, mail, None).await
    }

    /// Sends a mail, and tells what the server made of it.
    pub(super) async fn send(&self, address: &str, mail: Mail, thread: Option<Thread>) -> Outcome {
        let message = match self.message(address, mail, thread) {
            Ok(message) => message,
            Err(fault) => return Outcome::Refused(fault),
        };
        let deliver = async {
            let _room = self.inner.room.acquire().await;
            self.inner.transport.send(message).await
        };
        match tokio::time::timeout(LONGEST, deliver).await {
            Ok(Ok(_)) => Outcome::Accepted,
            Ok(Err(error)) => outcome(&error),
            Err(_) => Outcome::TimedOut,
        }
    }

    fn message(&self, address: &str, mail: Mail, thread: Option<Thread>) -> Result<Message, String> {
        let to: Address = address.parse().map_err(|error| format!("the address is none: {error}"))?;
        let now = self.inner.store.clock().now().ms().unsigned_abs();
        let mut builder = Message::builder()
            .from(self.inner.from.clone())
            .to(Mailbox::new(None, to))
            .date(SystemTime::UNIX_EPOCH + Duration::from_millis(now))
            .subject(compose::header(&mail.subject));
        let Thread { id, first } = thread.unwrap_or_else(|| Thread::none(self.domain()));
        if let Some(first) = first {
            builder = builder.in_reply_to(first.clone()).references(first);
        }
        builder = builder.message_id(Some(id));
        let settings = format!("<{}/settings>", self.inner.base_url);
        let urgency = mail.urgency.headers();
        let headers = [
            // Nobody's absence is to answer it (RFC 3834; the second is what Exchange goes by).
            ("Auto-Submitted", "auto-generated".to_owned()),
            ("X-Auto-Response-Suppress", "All".to_owned()),
            ("List-Unsubscribe", settings),
        ];
        let urgency = urgency.iter().map(|(name, value)| (*name, (*value).to_owned()));
        for (name, value) in headers.into_iter().chain(urgency) {
            let name = HeaderName::new_from_ascii(name.to_owned()).map_err(|error| error.to_string())?;
            builder = builder.raw_header(HeaderValue::new(name, value));
        }
        builder
            .multipart(MultiPart::alternative_plain_html(mail.text, mail.html))
            .map_err(|error| format!("the message can't be written: {error}"))
    }
}

fn parameters(smtp: &Smtp) -> Result<TlsParameters, String> {
    let failed = |error: smtp::Error| format!("smtp: TLS can't be spoken: {error}");
    let mut builder = TlsParameters::builder(smtp.host.clone());
    if let Some(pem) = &smtp.authorities {
        builder = builder.add_root_certificate(Certificate::from_pem(pem).map_err(failed)?);
    }
    builder.build_rustls().map_err(failed)
}

/// Who Chips says that it is: the host that people know, where it has a name.
fn hello(config: &Config) -> ClientId {
    match config.public_url.as_ref().and_then(|url| url.host()) {
        Some(url::Host::Domain(name)) => ClientId::Domain(name.to_owned()),
        _ => ClientId::default(),
    }
}

/// What the server's reply means for the message.
fn outcome(error: &smtp::Error) -> Outcome {
    if error.is_timeout() {
        return Outcome::TimedOut;
    }
    let Some(code) = error.status() else { return Outcome::Failed(said(error)) };
    let number: u16 = code.into();
    let text = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    let reply = shortened(&format!("{code} {}", text.replace('\n', " ")), SAID);
    match code.severity {
        Severity::PermanentNegativeCompletion if NOT_LET_IN.contains(&number) => {
            // The operator can mend it, and then it goes.
            Outcome::Failed(format!("the mail server does not let Chips in: {reply}"))
        }
        Severity::PermanentNegativeCompletion if says_no_mailbox(&text) => Outcome::Gone(reply),
        Severity::PermanentNegativeCompletion => Outcome::Refused(reply),
        _ => Outcome::Failed(reply),
    }
}

fn says_no_mailbox(text: &str) -> bool {
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    NO_MAILBOX.contains(&first)
}

/// What happened on the way to the server, in words.
fn said(error: &smtp::Error) -> String {
    let causes = || std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    if let Some(words) = causes().find_map(words::of) {
        return words;
    }
    let texts: Vec<String> = std::iter::once(error.to_string()).chain(causes().map(ToString::to_string)).collect();
    let says = |part: &str| texts.iter().any(|text| text.contains(part));
    if says("STARTTLS is not supported") {
        return "the mail server offers no STARTTLS, and without it nothing is sent".to_owned();
    }
    if error.is_response() || says("valid UTF-8") || says("incomplete") {
        return "the mail server hung up, or answered something that is not SMTP".to_owned();
    }
    let last = texts.last().cloned().unwrap_or_default();
    shortened(&format!("the mail server could not be spoken to: {}", last.replace('\n', " ")), SAID)
}
