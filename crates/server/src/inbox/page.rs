//! The frame around every page, who looks at it, and the pages that say no.

use std::collections::HashMap;
use std::time::Duration;

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html as HtmlBody, IntoResponse, Redirect, Response};
use chips_protocol::Timestamp;
use chips_protocol::api::Ask;
use chips_store::{Identity, Store, StoreError};

use super::assets;
use super::card::{Detail, Viewer};
use crate::auth::session::{Cookies, Signed};
use crate::preferences::Preferences;
use crate::state::AppState;
use crate::words::{KEYS, Words};

/// Which page it is, for the script and the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageName {
    List,
    Ask,
    History,
    Run,
    Settings,
    SignIn,
    Notice,
    Offline,
}

impl PageName {
    /// The name that scripts and styles know it by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Ask => "ask",
            Self::History => "history",
            Self::Run => "run",
            Self::Settings => "settings",
            Self::SignIn => "sign-in",
            Self::Notice => "notice",
            Self::Offline => "offline",
        }
    }
}

/// What the frame of a page needs.
pub(crate) struct Shell {
    pub w: &'static Words,
    pub title: String,
    pub page: PageName,
    /// The person's id, where somebody is signed in.
    pub person: Option<String>,
    /// Their form token.
    pub token: Option<String>,
    /// The connection is plain http and leaves this machine.
    pub insecure: bool,
    /// How many questions are open, where the page knows and there are some.
    pub count: Option<String>,
    /// The time to undo a tap, in milliseconds.
    pub undo_ms: usize,
    /// Single keys do something.
    pub keys: bool,
    pub now_ms: i64,
    pub words: String,
    pub style: &'static str,
    pub script: &'static str,
    pub icon: &'static str,
    pub touch_icon: &'static str,
}

impl Shell {
    /// The frame of a page that says nothing about who looks at it, or when.
    pub fn for_nobody(w: &'static Words, title: &str, page: PageName) -> Self {
        Self {
            w,
            title: titled(title),
            page,
            person: None,
            token: None,
            insecure: false,
            count: None,
            undo_ms: 0,
            keys: false,
            now_ms: 0,
            words: w.script_json(),
            style: &assets::STYLE.path,
            script: &assets::SCRIPT.path,
            icon: &assets::ICON.path,
            touch_icon: &assets::TOUCH_ICON.path,
        }
    }

    /// The keys of the keyboard and what each does.
    pub fn shortcuts(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        KEYS.into_iter().zip(self.w.keys)
    }
}

/// A browser that asks for something: what every handler needs of a request.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    pub w: &'static Words,
    pub now: Timestamp,
    pub cookies: Cookies,
    pub preferences: Preferences,
    pub https: bool,
    insecure: bool,
    /// How long the body of a form may take.
    pub patience: Duration,
    /// The script asks for a card alone instead of a page, and with how much of it.
    pub piece: Option<Detail>,
}

impl Visit {
    /// What a request's headers say.
    pub fn of(state: &AppState, headers: &HeaderMap) -> Self {
        let https = state.config.https();
        let preferences = Preferences::of(headers);
        Self {
            w: preferences.words(headers),
            now: state.store.clock().now(),
            cookies: Cookies::new(https),
            preferences,
            https,
            insecure: !https && !names_loopback(headers),
            patience: state.config.limits.body,
            piece: headers.get("x-chips-piece").map(|view| Detail::of(view.as_bytes())),
        }
    }

    /// The frame of a page. `title` stands before the product's name.
    pub fn shell(&self, title: &str, page: PageName, identity: Option<&Identity>) -> Shell {
        Shell {
            person: identity.map(|identity| match identity.sender.who {
                chips_core::Who::Person(id) => id.to_string(),
                chips_core::Who::Harness(id) => id.to_string(),
            }),
            insecure: self.insecure,
            undo_ms: self.preferences.undo * 1000,
            keys: self.preferences.keys,
            now_ms: self.now.ms(),
            ..Shell::for_nobody(self.w, title, page)
        }
    }

    /// A page that says no, or why something was not done.
    pub fn notice(&self, status: StatusCode, title: &str, hint: &str) -> Response {
        self.notice_with(status, title, hint, Vec::new(), ("/", self.w.to_inbox))
    }

    /// The same, with texts to keep and another way on.
    pub fn notice_with(
        &self,
        status: StatusCode,
        title: &str,
        hint: &str,
        kept: Vec<String>,
        (href, action): (&str, &str),
    ) -> Response {
        let shell = self.shell(title, PageName::Notice, None);
        page(status, &NoticePage { shell, title, hint, kept, href, action })
    }

    /// The page for whatever does not exist or may not be seen.
    pub fn not_found(&self) -> Response {
        self.notice(StatusCode::NOT_FOUND, self.w.not_found, self.w.not_found_hint)
    }

    /// The page for a form that does not fit.
    pub fn bad_form(&self, status: StatusCode) -> Response {
        self.notice(status, self.w.bad_form, self.w.bad_form_hint)
    }

    /// The page for a store that can't be read or written.
    pub fn unavailable(&self, retry_after_s: u64) -> Response {
        let mut response = self.notice(StatusCode::SERVICE_UNAVAILABLE, self.w.unavailable, self.w.unavailable_hint);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after_s));
        response
    }

    /// The answer to a store that can't be read.
    pub fn unreadable(&self, fault: &StoreError) -> Response {
        tracing::error!(%fault, "the inbox can't read the store");
        self.unavailable(5)
    }
}

/// A page's title: what it is before the product's name.
fn titled(title: &str) -> String {
    if title.is_empty() { "Chips".to_owned() } else { format!("{title} · Chips") }
}

/// Whether the request names this very machine, so that nothing travels over a network.
fn names_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let Ok(url) = url::Url::parse(&format!("http://{host}/")) else { return false };
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// The person whose browser asks. As an extractor it answers for itself where nobody is signed in: a page leads to the
/// sign-in and back, a fragment or stream is 401.
pub(crate) struct Person {
    pub visit: Visit,
    pub signed: Signed,
    pub token: String,
}

impl Person {
    /// Who is signed in, if anybody.
    pub async fn of(state: &AppState, headers: &HeaderMap) -> Result<Option<Self>, StoreError> {
        let visit = Visit::of(state, headers);
        let signed = visit.cookies.signed(&state.store, headers).await?;
        Ok(signed.map(|signed| Self { token: signed.form_token(), visit, signed }))
    }

    /// Whom the store is asked for.
    pub fn identity(&self) -> &Identity {
        self.signed.identity()
    }

    /// Who looks at these asks, knowing everybody by name who was too late for one of them.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn viewer_of<'a>(
        &self,
        store: &Store,
        asks: impl IntoIterator<Item = &'a Ask>,
    ) -> Result<Viewer<'_>, StoreError> {
        let mut viewer = self.viewer();
        if asks.into_iter().any(|ask| !ask.late_answers.is_empty()) {
            viewer.names = store.names(self.identity().sender.workspace_id).await?;
        }
        Ok(viewer)
    }

    /// Who looks at a card.
    pub fn viewer(&self) -> Viewer<'_> {
        let names = HashMap::new();
        Viewer { w: self.visit.w, identity: self.identity(), now: self.visit.now, token: &self.token, names }
    }

    /// The frame of a page.
    pub fn shell(&self, title: &str, page: PageName) -> Shell {
        Shell { token: Some(self.token.clone()), ..self.visit.shell(title, page, Some(self.identity())) }
    }
}

impl FromRequestParts<AppState> for Person {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Response> {
        let path = parts.uri.path();
        match Self::of(state, &parts.headers).await {
            Ok(Some(person)) => Ok(person),
            Ok(None) if path == "/live" || path.starts_with("/fragments/") => {
                Err(StatusCode::UNAUTHORIZED.into_response())
            }
            Ok(None) => Err(to_sign_in(parts.uri.path_and_query().map_or("/", |path| path.as_str()))),
            Err(fault) => Err(Visit::of(state, &parts.headers).unreadable(&fault)),
        }
    }
}

/// To the sign-in, and back here afterwards.
fn to_sign_in(next: &str) -> Response {
    let next = own_path(next);
    if next == "/" {
        return Redirect::to("/sign-in").into_response();
    }
    let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("next", &next).finish();
    Redirect::to(&format!("/sign-in?{query}")).into_response()
}

/// A path of this site as it may stand in a `Location`; `/` for whatever would lead elsewhere.
pub(crate) fn own_path(next: &str) -> String {
    const BASE: &str = "http://chips.invalid";
    let plain = next.starts_with('/') && !next.contains(|c: char| c == '\\' || c.is_control());
    let url = url::Url::parse(BASE).and_then(|base| base.join(next));
    match url {
        // A path that begins with two slashes, also after `/..` is taken out, would name another host.
        Ok(url) if plain && url.host_str() == Some("chips.invalid") && !url.path().starts_with("//") => {
            url[url::Position::BeforePath..url::Position::AfterQuery].to_owned()
        }
        _ => "/".to_owned(),
    }
}

/// A rendered page.
pub(crate) fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => (status, HtmlBody(html)).into_response(),
        Err(fault) => {
            tracing::error!(%fault, "a page failed to render");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The refusal of a write that this site did not cause.
pub(crate) fn foreign(state: &AppState, headers: &HeaderMap) -> Response {
    let visit = Visit::of(state, headers);
    visit.notice(StatusCode::FORBIDDEN, visit.w.foreign, visit.w.foreign_hint)
}

#[derive(Template)]
#[template(path = "notice.html")]
struct NoticePage<'a> {
    shell: Shell,
    title: &'a str,
    hint: &'a str,
    kept: Vec<String>,
    href: &'a str,
    action: &'a str,
}

#[cfg(test)]
mod tests {
    use super::own_path;

    #[test]
    fn the_way_back_stays_on_this_site() {
        for (next, path) in [
            ("/asks/qst_1?x=1", "/asks/qst_1?x=1"),
            ("/history?q=a%20b", "/history?q=a%20b"),
            ("/", "/"),
            ("", "/"),
            ("//evil.example", "/"),
            ("///evil.example", "/"),
            ("/..//evil.example", "/"),
            ("/.//evil.example", "/"),
            ("/x/..//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("\\\\evil.example", "/"),
            ("/\t/evil.example", "/"),
            ("/\r\nSet-Cookie: a=b", "/"),
            ("javascript:alert(1)", "/"),
            ("https://evil.example/", "/"),
            ("history", "/"),
            ("/a#b", "/a"),
        ] {
            assert_eq!(own_path(next), path, "{next:?}");
        }
    }
}
