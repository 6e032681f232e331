//! What a person set on this device: the language, the time to undo a tap, and whether single keys do anything.
//!
//! One cookie holds it, so it counts before any script runs and where none does. A phone and a desk may differ.

use axum::http::header::ACCEPT_LANGUAGE;
use axum::http::{HeaderMap, HeaderValue};

use crate::auth::session::named;
use crate::words::{LANGUAGES, Words};

/// The name of the cookie.
const COOKIE: &str = "chips-device";
/// How long a browser keeps it, in seconds: the longest that browsers allow, 400 days.
const SECONDS: u32 = 400 * 24 * 60 * 60;
/// The times to undo a tap that can be chosen, in seconds.
pub(crate) const UNDO: [usize; 5] = [0, 2, 4, 8, 20];
/// The time where nobody chose one.
const UNDO_BEFORE: usize = 4;

/// What was set, or what holds where nothing was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preferences {
    /// The language; the browser's where none is set.
    pub language: Option<&'static Words>,
    /// The time to undo a tap, in seconds.
    pub undo: usize,
    /// Single keys do something.
    pub keys: bool,
}

impl Preferences {
    /// What a browser's cookie says. A part that can't be read counts as not set.
    pub fn of(headers: &HeaderMap) -> Self {
        let value = named(headers, COOKIE).next().unwrap_or_default();
        let mut parts = value.split('.');
        let [language, undo, keys] = std::array::from_fn(|_| parts.next().unwrap_or_default());
        Self::read(language, undo, keys).unwrap_or_else(|| Self {
            language: Words::of(language),
            undo: allowed(undo).unwrap_or(UNDO_BEFORE),
            keys: keys != "off",
        })
    }

    /// What a form says; nothing where it says what can't be chosen.
    pub fn read(language: &str, undo: &str, keys: &str) -> Option<Self> {
        let language = match language {
            "auto" => None,
            tag => Some(Words::of(tag)?),
        };
        let keys = match keys {
            "on" => true,
            "off" => false,
            _ => return None,
        };
        Some(Self { language, undo: allowed(undo)?, keys })
    }

    /// The words for this browser.
    pub fn words(&self, headers: &HeaderMap) -> &'static Words {
        self.language.unwrap_or_else(|| {
            let accepted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
            accepted.map_or(LANGUAGES[0], Words::accepted)
        })
    }

    /// Sets the cookie.
    pub fn keep(&self, https: bool) -> HeaderValue {
        let language = self.language.map_or("auto", |words| words.lang);
        let keys = if self.keys { "on" } else { "off" };
        let secure = if https { "; Secure" } else { "" };
        let undo = self.undo;
        let cookie =
            format!("{COOKIE}={language}.{undo}.{keys}; Path=/; Max-Age={SECONDS}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::try_from(cookie).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

fn allowed(undo: &str) -> Option<usize> {
    UNDO.into_iter().find(|seconds| seconds.to_string() == undo)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn headers(cookie: &str, accepted: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("cookie", cookie.parse().unwrap());
        headers.insert("accept-language", accepted.parse().unwrap());
        headers
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let kept = Preferences::read("de", "0", "off").unwrap().keep(true);
        let kept = kept.to_str().unwrap();
        assert_eq!(kept, "chips-device=de.0.off; Path=/; Max-Age=34560000; HttpOnly; SameSite=Lax; Secure");
        let again = Preferences::of(&headers(kept.split(';').next().unwrap(), "en"));
        assert_eq!((again.language.unwrap().lang, again.undo, again.keys), ("de", 0, false));
    }

    #[test]
    fn what_nobody_set_is_as_the_browser_says() {
        for cookie in ["a=b", "chips-device=", "chips-device=xx.3.maybe", "chips-device=auto.4.on"] {
            let headers = headers(cookie, "de-CH, en;q=0.7");
            let preferences = Preferences::of(&headers);
            assert_eq!((preferences.words(&headers).lang, preferences.undo, preferences.keys), ("de", 4, true));
        }
        assert!(Preferences::read("fr", "4", "on").is_none());
        assert!(Preferences::read("de", "3", "on").is_none());
        assert!(Preferences::read("de", "4", "").is_none());
    }
}
