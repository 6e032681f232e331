//! A browser with JavaScript off: cookies, links, forms, and the headers that browsers send with them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::http::{Request, Response};

/// One window with a cookie jar.
#[derive(Debug, Clone)]
pub struct Browser {
    addr: SocketAddr,
    /// How its address begins, for what it says of where a form comes from: `http`, or `https` behind a proxy.
    pub scheme: &'static str,
    pub cookies: BTreeMap<String, String>,
}

/// A form of a page, as it would be sent if its first button were pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    pub method: String,
    pub action: String,
    /// What is sent without anything being chosen: hidden fields, prefilled ones, what is checked.
    pub fields: Vec<(String, String)>,
    /// Everything that can be chosen or pressed: radio buttons, check boxes, buttons; name and value.
    pub choices: Vec<(String, String)>,
    /// The names of the fields that take text.
    pub texts: Vec<String>,
}

impl Browser {
    pub fn new(addr: SocketAddr) -> Self {
        Self { addr, scheme: "http", cookies: BTreeMap::new() }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The part of a URL on this server after the authority.
    pub fn path(url: &str) -> &str {
        match url.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => url,
        }
    }

    fn cookie_header(&self, request: Request) -> Request {
        if self.cookies.is_empty() {
            return request;
        }
        let pairs: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        request.header("Cookie", &pairs.join("; "))
    }

    fn keep_cookies(&mut self, response: &Response) {
        for (_, line) in response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            let mut parts = line.split(';').map(str::trim);
            let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { continue };
            let gone = parts.any(|part| part.eq_ignore_ascii_case("max-age=0"));
            if gone || value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.into(), value.into());
            }
        }
    }

    /// Fetches a path as a top-level navigation, without following redirects.
    pub fn get(&mut self, path: &str) -> Response {
        let request = Request::get(path).header("Accept", "text/html").header("Sec-Fetch-Mode", "navigate");
        let response = self.cookie_header(request).send(self.addr);
        self.keep_cookies(&response);
        response
    }

    /// Fetches a path and follows redirects on this server.
    pub fn visit(&mut self, path: &str) -> Response {
        let response = self.get(path);
        self.follow(response)
    }

    /// Sends a form as the page that holds it would, and follows where it leads.
    pub fn submit(&mut self, form: &Form, extra: &[(&str, &str)]) -> Response {
        let response = self.submit_only(form, extra);
        self.follow(response)
    }

    /// Sends a form as the page that holds it would, without following redirects.
    pub fn submit_only(&mut self, form: &Form, extra: &[(&str, &str)]) -> Response {
        let origin = format!("{}://{}", self.scheme, self.addr);
        let headers = [("Origin", origin.as_str()), ("Sec-Fetch-Site", "same-origin")];
        self.submit_with(form, extra, &headers)
    }

    /// Sends a form with these headers in place of those that a browser sends with its own pages' forms.
    pub fn submit_with(&mut self, form: &Form, extra: &[(&str, &str)], headers: &[(&str, &str)]) -> Response {
        let mut fields = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in &form.fields {
            if !extra.iter().any(|(other, _)| other == name) {
                fields.append_pair(name, value);
            }
        }
        for (name, value) in extra {
            fields.append_pair(name, value);
        }
        let mut request = Request::new("POST", &form.action)
            .header("Accept", "text/html")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(fields.finish());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let response = self.cookie_header(request).send(self.addr);
        self.keep_cookies(&response);
        response
    }

    fn follow(&mut self, mut response: Response) -> Response {
        for _ in 0..5 {
            let Some(location) = response.header("location").filter(|_| (300..400).contains(&response.status)) else {
                return response;
            };
            let path = Self::path(location).to_owned();
            response = self.get(&path);
        }
        panic!("more than five redirects");
    }

    /// Signs in with a link, pressing the button on its page.
    ///
    /// # Panics
    /// Unless a session begins.
    pub fn sign_in(&mut self, link: &str) {
        let path = Self::path(link).to_owned();
        let page = self.visit(&path);
        assert_eq!(page.status, 200, "{}", page.text());
        let form =
            forms(&page.text(), &path).into_iter().find(|form| form.method == "post").expect("a button that POSTs");
        let after = self.submit(&form, &[]);
        assert_eq!(after.status, 200, "{}", after.text());
        assert!(!self.cookies.is_empty(), "no session began: {}", after.text());
    }
}

/// The forms of a page at this path.
pub fn forms(page: &str, at: &str) -> Vec<Form> {
    let mut forms = Vec::new();
    for part in page.split("<form").skip(1) {
        let part = part.split("</form").next().unwrap_or_default();
        let (head, inside) = part.split_once('>').unwrap_or((part, ""));
        let attributes = attributes(head);
        let action = attributes.get("action").filter(|action| !action.is_empty()).map_or(at, String::as_str);
        let mut form = Form {
            method: attributes.get("method").map_or("get".into(), |method| method.to_lowercase()),
            action: resolve(at, action),
            fields: Vec::new(),
            choices: Vec::new(),
            texts: Vec::new(),
        };
        for (tag, attributes, rest) in tags(inside) {
            let Some(name) = attributes.get("name").cloned() else { continue };
            let value = attributes.get("value").cloned();
            let kind = attributes.get("type").map_or("", String::as_str);
            match (tag, kind) {
                ("input", "radio" | "checkbox") => {
                    let value = value.unwrap_or_else(|| "on".into());
                    if attributes.contains_key("checked") {
                        form.fields.push((name.clone(), value.clone()));
                    }
                    form.choices.push((name, value));
                }
                ("button", _) | ("input", "submit") => form.choices.push((name, value.unwrap_or_default())),
                ("input", "hidden") => form.fields.push((name, value.unwrap_or_default())),
                ("input", _) => {
                    form.fields.push((name.clone(), value.unwrap_or_default()));
                    form.texts.push(name);
                }
                ("textarea", _) => {
                    let text = rest.split("</textarea").next().unwrap_or_default();
                    form.fields.push((name.clone(), unescape(text.strip_prefix('\n').unwrap_or(text))));
                    form.texts.push(name);
                }
                _ => {}
            }
        }
        forms.push(form);
    }
    forms
}

/// Where the links of a page lead, on this server.
pub fn links(page: &str, at: &str) -> Vec<String> {
    let mut links = Vec::new();
    for (_, attributes, _) in tags(page) {
        for name in ["href", "src"] {
            let Some(target) = attributes.get(name) else { continue };
            let path = resolve(at, target.split('#').next().unwrap_or_default());
            if path.starts_with('/') && !path.starts_with("//") {
                links.push(path);
            }
        }
    }
    links
}

fn resolve(at: &str, target: &str) -> String {
    let base = url::Url::parse("http://here/").and_then(|base| base.join(at)).expect("a path");
    match base.join(target) {
        Ok(url) if url.host_str() == Some("here") => {
            url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()))
        }
        _ => String::new(),
    }
}

/// Every opening tag with its attributes and what follows it.
fn tags(page: &str) -> Vec<(&str, BTreeMap<String, String>, &str)> {
    let mut tags = Vec::new();
    for (at, _) in page.match_indices('<') {
        let rest = &page[at + 1..];
        let name_end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(name_end);
        if name.is_empty() {
            continue;
        }
        let mut quote = None;
        let end = rest.char_indices().find(|(_, c)| match (quote, c) {
            (None, '>') => true,
            (None, '"' | '\'') => {
                quote = Some(*c);
                false
            }
            (Some(open), c) if open == *c => {
                quote = None;
                false
            }
            _ => false,
        });
        let Some((end, _)) = end else { continue };
        tags.push((name, attributes(&rest[..end]), &rest[end + 1..]));
    }
    tags
}

fn attributes(mut head: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    loop {
        head = head.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        let end = head.find(|c: char| c.is_whitespace() || c == '=' || c == '/').unwrap_or(head.len());
        if end == 0 {
            return found;
        }
        let (name, rest) = head.split_at(end);
        let Some(value) = rest.trim_start().strip_prefix('=') else {
            found.insert(name.to_lowercase(), String::new());
            head = rest;
            continue;
        };
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, rest) = match quote {
            Some(quote) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            None => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
        };
        found.insert(name.to_lowercase(), unescape(value));
        head = rest;
    }
}

/// The text that this HTML shows.
pub fn unescape(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find('&') {
        text += &rest[..at];
        rest = &rest[at..];
        let Some(end) = rest.find(';').filter(|end| *end <= 10) else {
            text.push('&');
            rest = &rest[1..];
            continue;
        };
        let name = &rest[1..end];
        let number = name.strip_prefix('#').and_then(|number| match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => number.parse().ok(),
        });
        let shown = match name {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            "nbsp" => Some('\u{a0}'),
            _ => number.and_then(char::from_u32),
        };
        match shown {
            Some(shown) => text.push(shown),
            None => text += &rest[..=end],
        }
        rest = &rest[end + 1..];
    }
    text + rest
}
