//! The only way to an address that somebody gave us.
//!
//! Whoever names an address can point it at machines that only this server reaches, so every address is checked after
//! it was resolved, and the connection goes to the very address that was checked (a name is never resolved twice).
//! Only https, no redirects, no proxies from the environment, little of the reply, and an end to waiting. What the operator
//! excepts, exactly by scheme, host and port, is not checked.

mod public;
pub(crate) mod words;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use chips_core::notify::Outcome;
use chips_store::clock::TimeSource;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use rustls::ClientConfig;
use url::{Host, Origin, Url};

use public::is_local_name;
pub use public::is_public;

/// From the first packet to the last byte of the reply.
pub const LONGEST: Duration = Duration::from_secs(20);
/// Bytes of a reply that are read.
pub const REPLY_LIMIT: usize = 64 * 1024;

/// What an address answered.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The first [`REPLY_LIMIT`] bytes of the body.
    pub body: Bytes,
}

/// Why nothing was answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The address is one that nothing is sent to.
    #[error("{0}")]
    Refused(String),
    /// Nothing came in time.
    #[error("it did not answer in {} s", LONGEST.as_secs())]
    TimedOut,
    /// The connection failed.
    #[error("{0}")]
    Failed(String),
}

impl From<OutboundError> for Outcome {
    fn from(error: OutboundError) -> Self {
        match error {
            OutboundError::Refused(detail) => Self::Refused(detail),
            OutboundError::TimedOut => Self::TimedOut,
            OutboundError::Failed(detail) => Self::Failed(detail),
        }
    }
}

impl Reply {
    /// What most services mean by their status: 2xx took it, 404 and 410 know the address no more, 408, 425, 429 and 5xx
    /// may take it later, the rest refuses.
    pub fn outcome(&self) -> Outcome {
        let said = self.said();
        match self.status.as_u16() {
            200..=299 => Outcome::Accepted,
            404 | 410 => Outcome::Gone(said),
            408 | 425 | 429 | 500..=599 => self.not_now(),
            _ => Outcome::Refused(said),
        }
    }

    /// It may take it later, and perhaps says when.
    pub fn not_now(&self) -> Outcome {
        match retry_after(self) {
            Some(seconds) => Outcome::Later(self.said(), u32::try_from(seconds).unwrap_or(u32::MAX)),
            None => Outcome::Failed(self.said()),
        }
    }

    /// The status and the beginning of the body, on one line.
    pub fn said(&self) -> String {
        let body = String::from_utf8_lossy(&self.body);
        let words = body.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: String = words.chars().filter(|c| !c.is_control()).take(200).collect();
        if shown.is_empty() { self.status.to_string() } else { format!("{}: {shown}", self.status) }
    }
}

/// Sends to addresses that people and harnesses gave. Cheap to clone.
#[derive(Clone)]
pub struct Outbound {
    /// To everybody else: over https, to public addresses alone.
    checked: reqwest::Client,
    /// To what the operator excepts.
    excepted: reqwest::Client,
    exceptions: Arc<[Origin]>,
}

impl Outbound {
    /// A client that may also speak to these origins, whatever they resolve to.
    ///
    /// # Errors
    /// TLS can't be spoken at all.
    pub fn new(exceptions: &[Url]) -> Result<Self, String> {
        Self::looking_up(exceptions, PublicOnly(by_the_system))
    }

    fn looking_up(exceptions: &[Url], resolver: impl Resolve + 'static) -> Result<Self, String> {
        let build = || {
            let tls = tls()?;
            Ok::<_, String>(
                reqwest::Client::builder()
                    .tls_backend_preconfigured(tls)
                    .redirect(Policy::none())
                    .no_proxy()
                    .timeout(LONGEST)
                    .user_agent(concat!("Chips/", env!("CARGO_PKG_VERSION"))),
            )
        };
        let told = |error: reqwest::Error| error.to_string();
        Ok(Self {
            checked: build()?.https_only(true).dns_resolver(Arc::new(resolver)).build().map_err(told)?,
            excepted: build()?.build().map_err(told)?,
            exceptions: exceptions.iter().map(Url::origin).collect(),
        })
    }

    /// Whether something may be sent to an address, as far as that can be told without resolving its name: for whoever
    /// types one in.
    ///
    /// # Errors
    /// Why not, in words for them.
    pub fn check(&self, url: &Url) -> Result<(), String> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the address has a user name or password in it".to_owned());
        }
        if self.is_excepted(url) {
            return Ok(());
        }
        if url.scheme() != "https" {
            return Err(format!("{} is not https", shown(url)));
        }
        match url.host() {
            Some(Host::Ipv4(ip)) if !is_public(IpAddr::V4(ip)) => Err(not_public(&ip)),
            Some(Host::Ipv6(ip)) if !is_public(IpAddr::V6(ip)) => Err(not_public(&ip)),
            Some(Host::Domain(name)) if is_local_name(name) => Err(not_public(&name)),
            Some(_) => Ok(()),
            None => Err("the address names no host".to_owned()),
        }
    }

    /// Reads an address as somebody typed it. A parser passes over line ends and tabs; whoever typed such a thing meant something else.
    pub fn typed(text: &str) -> Option<Url> {
        let url: Url = text.parse().ok()?;
        (!text.chars().any(char::is_control) && url.has_host() && url.port() != Some(0)).then_some(url)
    }

    fn is_excepted(&self, url: &Url) -> bool {
        let origin = url.origin();
        origin.is_tuple() && self.exceptions.contains(&origin)
    }

    /// Sends a POST, and reads what comes back.
    ///
    /// # Errors
    /// See [`OutboundError`].
    pub async fn post(&self, url: &Url, headers: HeaderMap, body: Bytes) -> Result<Reply, OutboundError> {
        self.check(url).map_err(OutboundError::Refused)?;
        let client = if self.is_excepted(url) { &self.excepted } else { &self.checked };
        let request = client.post(url.clone()).headers(headers).body(body).build().map_err(|error| told(&error))?;
        let mut response = client.execute(request).await.map_err(|error| told(&error))?;
        let mut body = BytesMut::new();
        while body.len() < REPLY_LIMIT
            && let Some(piece) = response.chunk().await.map_err(|error| told(&error))?
        {
            body.extend_from_slice(&piece[..piece.len().min(REPLY_LIMIT - body.len())]);
        }
        Ok(Reply { status: response.status(), headers: response.headers().clone(), body: body.freeze() })
    }
}

/// How long a reply asks to be left alone, in whole seconds (RFC 9110, 10.2.3: a number of them, or a date).
pub fn retry_after(reply: &Reply) -> Option<u64> {
    let said = reply.headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    said.parse().ok().or_else(|| {
        let until = httpdate::parse_http_date(said).ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(until.as_secs().saturating_sub(TimeSource::System.wall().ms().unsigned_abs() / 1000))
    })
}

/// A URL without what may be secret in it.
fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

fn not_public(what: &dyn std::fmt::Display) -> String {
    format!("{what} is no public address; the operator can except it with --allow-outbound")
}

fn told(error: &reqwest::Error) -> OutboundError {
    if error.is_timeout() {
        return OutboundError::TimedOut;
    }
    let mut innermost = None;
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        if let Some(NotPublic(name)) = cause.downcast_ref() {
            return OutboundError::Refused(not_public(name));
        }
        if let Some(words) = words::of(cause) {
            return OutboundError::Failed(words);
        }
        innermost = Some(cause);
        next = cause.source();
    }
    // The first words name the URL, which may have a secret in it.
    OutboundError::Failed(innermost.map_or_else(|| "the connection failed".to_owned(), ToString::to_string))
}

fn tls() -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(match rustls_platform_verifier::Verifier::new(provider) {
        Ok(verifier) => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth(),
        // The server does its main work without; whoever is not reached over https shows up with each try.
        Err(error) => {
            tracing::warn!(%error, "this machine trusts no certificate authority: nothing can be sent over https");
            builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
        }
    })
}

/// A name that resolves to an address which nothing is sent to.
#[derive(Debug, thiserror::Error)]
#[error("{0} resolves to no public address")]
struct NotPublic(String);

/// A name that has no address, or none that is known here.
#[derive(Debug, thiserror::Error)]
#[error("its name could not be resolved")]
struct Unresolved;

/// Gives only addresses that are public: the connection goes to one of these.
struct PublicOnly<L>(L);

async fn by_the_system(name: String) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}

impl<L, F> Resolve for PublicOnly<L>
where
    L: Fn(String) -> F + Send + Sync,
    F: Future<Output = std::io::Result<Vec<SocketAddr>>> + Send + 'static,
{
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        if is_local_name(&name) {
            return Box::pin(async { Err(NotPublic(name).into()) });
        }
        let lookup = (self.0)(name.clone());
        Box::pin(async move {
            let found = lookup.await.map_err(|error| {
                tracing::debug!(%error, "a name could not be resolved");
                Unresolved
            })?;
            // One that is not public is reason enough: a name that mixes them is set up to slip through.
            if found.iter().any(|address| !is_public(address.ip())) {
                return Err(NotPublic(name).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::net::TcpListener;

    use super::*;

    fn outbound(exceptions: &[&str]) -> Outbound {
        let exceptions: Vec<Url> = exceptions.iter().map(|url| url.parse().unwrap()).collect();
        Outbound::new(&exceptions).unwrap()
    }

    #[test]
    fn loopback_is_refused_in_every_spelling() {
        let outbound = outbound(&[]);
        for url in [
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://0x7f.1/",
            "https://127.0.0.1./",
            "https://１２７.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:7f00:1]/",
            "https://[::127.0.0.1]/",
            "https://[64:ff9b::127.0.0.1]/",
            "https://[2002:7f00:1::]/",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "https://0.0.0.0/",
            "https://[::]/",
        ] {
            let refusal = outbound.check(&url.parse().unwrap()).unwrap_err();
            assert!(refusal.contains("no public address") && refusal.contains("--allow-outbound"), "{url}: {refusal}");
        }
    }

    #[test]
    fn an_address_that_is_typed_is_one_line_and_leads_somewhere() {
        for good in ["https://example.com", "https://example.com:8443/x?y#z", "http://10.0.0.5:2586/"] {
            assert!(Outbound::typed(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "example.com",
            "https://",
            "https://example.com:0/",
            "https://example.com/\r\nX: y",
            "https://exa\tmple.com/",
        ] {
            assert!(Outbound::typed(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn exceptions_are_exact_and_everything_else_is_https() {
        let outbound = outbound(&["http://127.0.0.1:8025"]);
        for good in ["http://127.0.0.1:8025/x?y", "https://example.com/", "https://example.com:8443/x"] {
            assert_eq!(outbound.check(&good.parse().unwrap()), Ok(()), "{good}");
        }
        for bad in [
            "http://127.0.0.1:8026/",
            "https://127.0.0.1:8025/",
            "http://127.0.0.2:8025/",
            "http://example.com/",
            "https://user:secret@example.com/",
            "ftp://example.com/",
            "file:///etc/passwd",
            "https://intranet/",
            "https://printer.local/",
            "https://metadata.google.internal/",
        ] {
            let refusal = outbound.check(&bad.parse().unwrap()).unwrap_err();
            assert!(!refusal.contains("secret"), "{refusal}");
        }
    }

    #[tokio::test]
    async fn a_name_is_judged_by_what_it_resolves_to() {
        // What a name resolves to is the machine's business; this one is the machine itself on every one.
        let error = PublicOnly(by_the_system).resolve("localhost".parse().unwrap()).await.err().unwrap();
        assert!(error.downcast_ref::<NotPublic>().is_some(), "{error}");
    }

    #[tokio::test]
    async fn a_name_that_changes_after_the_check_leads_nowhere_else() {
        let asked = AtomicUsize::new(0);
        let public: SocketAddr = "[3ff0::1]:0".parse().unwrap();
        // First nobody's address of the public internet, then this machine's.
        let changing = PublicOnly(move |_| {
            let here = SocketAddr::from(([127, 0, 0, 1], 0));
            let found = if asked.fetch_add(1, Ordering::SeqCst) == 0 { public } else { here };
            std::future::ready(Ok(vec![found]))
        });
        let name = || "changes.example".parse().unwrap();
        assert_eq!(changing.resolve(name()).await.unwrap().collect::<Vec<_>>(), [public]);
        let again = changing.resolve(name()).await.err().unwrap();
        assert!(again.downcast_ref::<NotPublic>().is_some(), "{again}");

        // What was given is what is connected to, and nobody is asked again on the way.
        struct Given(SocketAddr, Arc<AtomicUsize>);
        impl Resolve for Given {
            fn resolve(&self, _: Name) -> Resolving {
                self.1.fetch_add(1, Ordering::SeqCst);
                let given: Addrs = Box::new(std::iter::once(self.0));
                Box::pin(std::future::ready(Ok(given)))
            }
        }
        let here = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = here.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let outbound = Outbound::looking_up(&[], Given(([127, 0, 0, 1], 0).into(), Arc::clone(&asked))).unwrap();
        let url = format!("https://changes.example:{port}/").parse().unwrap();
        let accepted = async {
            // It speaks no TLS: it ends the connection.
            here.accept().await.unwrap();
        };
        let (sent, ()) = tokio::join!(outbound.post(&url, HeaderMap::new(), Bytes::new()), accepted);
        assert!(matches!(sent, Err(OutboundError::Failed(_))), "{sent:?}");
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_reply_is_told_on_one_line() {
        let reply = |status: u16, body: &str| Reply {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        };
        assert_eq!(reply(500, "so\r\n  it\u{1b}[31m is").said(), "500 Internal Server Error: so it[31m is");
        assert_eq!(reply(201, "").outcome(), Outcome::Accepted);
        assert_eq!(reply(302, "").outcome(), Outcome::Refused("302 Found".into()));
        for (status, word) in [(404, "gone"), (410, "gone"), (403, "refused"), (429, "failed"), (503, "failed")] {
            assert_eq!(reply(status, "").outcome().as_str(), word, "{status}");
        }
    }
}
