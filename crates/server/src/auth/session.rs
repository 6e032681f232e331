//! A person's session in a browser: the cookie, who is behind it, and the token that its forms carry.
//!
//! The cookie holds a secret; the store knows its SHA-256. A form's token is derived from the same secret, so it needs no
//! state and ends with the session. Before there is a session, a short-lived cookie does the same for the sign-in form: a
//! form that was not opened in this browser is not taken.

use axum::http::header::{COOKIE, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue};
use chips_store::{Device, Identity, Session, Store, StoreError, secret};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How long the cookie before sign-in is kept, in seconds: as long as a link is good.
const BEFORE_SECONDS: i64 = chips_store::session::SIGN_IN_MS / 1000;
/// How long a session's cookie is kept, in seconds. The store ends it earlier where it is idle.
const SESSION_SECONDS: i64 = chips_store::session::LONGEST_MS / 1000;
/// Cookies of one name that are tried: a neighbouring site can set some of its own.
const TRIED: usize = 4;

/// The names and flags of the cookies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cookies {
    https: bool,
}

/// A person who is signed in with this browser.
#[derive(Debug, Clone)]
pub struct Signed {
    /// The session, as the store knows it.
    pub session: Session,
    secret: String,
}

impl Signed {
    /// Whose session it is.
    pub fn identity(&self) -> &Identity {
        &self.session.identity
    }

    /// The token that this session's forms carry.
    pub fn form_token(&self) -> String {
        token("session", &self.secret)
    }

    /// Whether a form carries this session's token.
    pub fn holds(&self, form_token: &str) -> bool {
        equal(&self.form_token(), form_token)
    }

    /// What the store knows the session by.
    pub fn sha256(&self) -> [u8; 32] {
        secret::sha256(&self.secret)
    }
}

/// A browser that is about to sign in.
#[derive(Debug, Clone)]
pub struct Before {
    secret: String,
    fresh: bool,
}

impl Before {
    /// The token that the sign-in forms carry.
    pub fn form_token(&self) -> String {
        token("sign-in", &self.secret)
    }

    /// Whether the browser had the cookie and the form carries its token.
    pub fn holds(&self, form_token: &str) -> bool {
        !self.fresh && equal(&self.form_token(), form_token)
    }
}

impl Cookies {
    /// Cookies for a server that browsers reach over https, or over plain http.
    pub const fn new(https: bool) -> Self {
        Self { https }
    }

    /// The name of the session's cookie. With the prefix, browsers hold it to this very host, to https and to the whole site.
    pub const fn session_name(self) -> &'static str {
        if self.https { "__Host-chips" } else { "chips" }
    }

    const fn before_name(self) -> &'static str {
        if self.https { "__Host-chips-before" } else { "chips-before" }
    }

    /// Who is signed in, if anybody. Notes that the session was used.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn signed(self, store: &Store, headers: &HeaderMap) -> Result<Option<Signed>, StoreError> {
        for secret in named(headers, self.session_name()).take(TRIED) {
            if let Some(session) = store.session(secret::sha256(secret)).await? {
                crate::http::layers::speaks_for(&session.identity);
                return Ok(Some(Signed { session, secret: secret.to_owned() }));
            }
        }
        Ok(None)
    }

    /// What binds a sign-in form to this browser: its cookie, or a new one.
    pub fn before(self, headers: &HeaderMap) -> Before {
        match named(headers, self.before_name()).find(|secret| is_secret(secret)) {
            Some(secret) => Before { secret: secret.to_owned(), fresh: false },
            None => Before { secret: secret::new_secret(), fresh: true },
        }
    }

    /// Sets the session's cookie.
    pub fn begin(self, session_secret: &str) -> HeaderValue {
        self.set(self.session_name(), session_secret, SESSION_SECONDS)
    }

    /// Takes the session's cookie away.
    pub fn end(self) -> HeaderValue {
        self.set(self.session_name(), "", 0)
    }

    /// Sets the cookie before sign-in.
    pub fn keep_before(self, before: &Before) -> HeaderValue {
        self.set(self.before_name(), &before.secret, BEFORE_SECONDS)
    }

    /// Takes the cookie before sign-in away.
    pub fn end_before(self) -> HeaderValue {
        self.set(self.before_name(), "", 0)
    }

    fn set(self, name: &str, value: &str, seconds: i64) -> HeaderValue {
        let secure = if self.https { "; Secure" } else { "" };
        let cookie = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        // Secrets are base64url and the rest is ours: always a header's text.
        HeaderValue::try_from(cookie).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// The values of all cookies with this name, in the order in which the browser sent them.
pub(crate) fn named<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(move |(key, value)| *key == name && !value.is_empty())
        .map(|(_, value)| value)
}

/// Whether a text has the form of a secret: only those are given back to a browser.
fn is_secret(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn token(purpose: &str, secret: &str) -> String {
    let digest = Sha256::new().chain_update(purpose).chain_update(" form\n").chain_update(secret).finalize();
    digest[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn equal(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// The device that a browser says it is, in words that a person knows it by: "Firefox on Linux". Empty where it can't be told.
pub fn device(headers: &HeaderMap) -> Device {
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first =
        |known: &[(&str, &'static str)]| known.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name);
    // The order counts: browsers also name those that they resemble.
    let browser = first(&[
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("SamsungBrowser/", "Samsung Internet"),
        ("Vivaldi/", "Vivaldi"),
        ("Firefox/", "Firefox"),
        ("FxiOS/", "Firefox"),
        ("CriOS/", "Chrome"),
        ("HeadlessChrome/", "Chrome"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ]);
    let system = first(&[
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("CrOS", "ChromeOS"),
        ("Windows", "Windows"),
        ("Mac OS X", "Mac"),
        ("Linux", "Linux"),
    ]);
    let name = match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => String::new(),
    };
    Device { name }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn headers(name: axum::http::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn under_https_the_cookie_is_bound_to_the_host() {
        let cookie = Cookies::new(true).begin("s3cret");
        assert_eq!(cookie, "__Host-chips=s3cret; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax; Secure");
    }

    #[test]
    fn on_plain_http_it_has_another_name_and_no_secure() {
        let cookie = Cookies::new(false).begin("s3cret");
        assert_eq!(cookie, "chips=s3cret; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax");
    }

    #[test]
    fn a_form_of_another_browser_does_not_hold() {
        let cookies = Cookies::new(false);
        let one = cookies.before(&HeaderMap::new());
        let sent = cookies.keep_before(&one);
        let sent = sent.to_str().unwrap().split(';').next().unwrap().to_owned();
        let again = cookies.before(&headers(COOKIE, &["a=b; c", &sent]));
        assert!(again.holds(&one.form_token()));
        assert!(!again.holds(""));
        assert!(!one.holds(&one.form_token()), "a browser without the cookie holds nothing");
        assert!(!cookies.before(&HeaderMap::new()).holds(&one.form_token()));
        assert_eq!(cookies.before(&headers(COOKIE, &["chips-before=short"])).secret.len(), 43);
    }

    #[test]
    fn tokens_differ_by_purpose_and_tell_nothing_of_the_secret() {
        assert_ne!(token("session", "x"), token("sign-in", "x"));
        assert_eq!(token("session", "x").len(), 32);
    }

    #[test]
    fn cookies_are_read_by_their_whole_name() {
        let headers = headers(COOKIE, &["xchips=1; chips=2;chips=3", "chips=; chips2=4; chips=5"]);
        assert_eq!(named(&headers, "chips").collect::<Vec<_>>(), ["2", "3", "5"]);
    }

    #[test]
    fn devices_go_by_names_that_people_know() {
        for (agent, name) in [
            ("Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0", "Firefox on Linux"),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                 Version/18.6 Mobile/15E148 Safari/604.1",
                "Safari on iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile \
                 Safari/537.36",
                "Chrome on Android",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 \
                 Safari/537.36 Edg/141.0.0.0",
                "Edge on Windows",
            ),
            ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Safari/605.1.15", "Safari on Mac"),
            ("curl/8.5.0", "curl"),
            ("<script>", ""),
        ] {
            assert_eq!(device(&headers(USER_AGENT, &[agent])).name, name);
        }
    }
}
