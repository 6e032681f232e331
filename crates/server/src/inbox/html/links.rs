//! Links in the texts of others: http and https alone, each shown as where it really leads.

use chips_protocol::text::is_bidi_control;
use url::Url;

use super::Html;

/// A text with its addresses as links. Nothing else in it means anything: what looks like markup stands as it is.
pub(crate) fn linked(text: &str) -> Html {
    let mut html = Html::default();
    let mut rest = text;
    while let Some(begin) = next_scheme(rest) {
        let (before, after) = rest.split_at(begin);
        let (candidate, behind) = after.split_at(extent(after));
        html.push_shown(before);
        match Link::of(candidate) {
            Some(link) => link.push_to(&mut html),
            None => html.push_shown(candidate),
        }
        rest = behind;
    }
    html.push_shown(rest);
    html
}

/// Where the next `http://` or `https://` begins that is not the end of another word.
fn next_scheme(text: &str) -> Option<usize> {
    let mut before = ' ';
    text.char_indices().find_map(|(at, c)| {
        let begins = !before.is_alphanumeric() && scheme(&text[at..]).is_some();
        before = c;
        begins.then_some(at)
    })
}

/// The length of the scheme and its slashes.
fn scheme(text: &str) -> Option<usize> {
    ["https://", "http://"]
        .iter()
        .map(|scheme| scheme.len())
        .zip(["https://", "http://"])
        .find_map(|(length, scheme)| text.get(..length)?.eq_ignore_ascii_case(scheme).then_some(length))
}

/// How far an address goes that begins here: to what can't stand in one, and without the punctuation of the sentence.
fn extent(text: &str) -> usize {
    const ENDS: &str = "<>\"`{}|^\\[]“”„«»‘‚。，、！？；：（）「」『』【】";
    let end = text.find(|c: char| c.is_whitespace() || c.is_control() || is_bidi_control(c) || ENDS.contains(c));
    let mut address = &text[..end.unwrap_or(text.len())];
    loop {
        let open = address.matches('(').count() >= address.matches(')').count();
        match address.strip_suffix(|c: char| ".,;:!?…'’*_".contains(c) || (c == ')' && !open)) {
            Some(shorter) => address = shorter,
            None => return address.len(),
        }
    }
}

/// An address that may be followed.
struct Link<'a> {
    url: Url,
    /// What stands behind the host, as it was written.
    path: &'a str,
}

impl<'a> Link<'a> {
    /// Reads an address. One that names somebody before its host (`https://bank.example@evil.example`) is none: it is written
    /// to be misread.
    fn of(text: &'a str) -> Option<Self> {
        let (_, behind) = text.split_at(scheme(text)?);
        let (authority, path) = behind.split_at(behind.find(['/', '?', '#']).unwrap_or(behind.len()));
        let url = Url::parse(text).ok()?;
        let plain = !authority.is_empty() && !authority.contains('@');
        (plain && matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(Self { url, path })
    }

    /// The address itself as a link, its host as the browser will read it: letters beyond ASCII, which may look like others,
    /// stand as Punycode.
    fn push_to(&self, html: &mut Html) {
        html.0.push_str("<a dir=\"ltr\" rel=\"noopener noreferrer nofollow\" target=\"_blank\" href=\"");
        html.push_text(self.url.as_str());
        html.0.push_str("\">");
        html.0.push_str("<span>");
        html.push_text(self.url.scheme());
        html.push_text("://");
        // Each label of the host stands in one piece where a line can hold it: half of one may read as another host.
        html.0.push_str("<bdi>");
        for label in self.url.host_str().unwrap_or_default().split_inclusive('.') {
            html.0.push_str("<span>");
            html.push_text(label);
            html.0.push_str("</span>");
        }
        html.0.push_str("</bdi>");
        if let Some(port) = self.url.port() {
            html.push_text(&format!(":{port}"));
        }
        html.0.push_str("</span>");
        for part in self.path.split_inclusive(['/', '?', '&', '=', '#', '-', '_', '.', ',', ';']) {
            html.push_shown(part);
            html.0.push_str("<wbr>");
        }
        html.0.push_str("</a>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the links of a text lead and what is read of them.
    fn links(text: &str) -> Vec<(String, String)> {
        let html = linked(text).to_string();
        let pieces = html.split("<a ").skip(1).filter_map(|rest| rest.split_once("</a>"));
        pieces
            .filter_map(|(link, _)| {
                let (_, rest) = link.split_once("href=\"")?;
                let (href, read) = rest.split_once("\">")?;
                let read = ["bdi", "/bdi", "span", "/span", "wbr"]
                    .iter()
                    .fold(read.to_owned(), |read, tag| read.replace(&format!("<{tag}>"), ""));
                Some((href.to_owned(), read))
            })
            .collect()
    }

    #[test]
    fn addresses_are_links_that_show_where_they_lead() {
        for (text, href, read) in [
            ("see https://a.example/x?y=1#z.", "https://a.example/x?y=1#z", "https://a.example/x?y=1#z"),
            ("https://a.example/x… or", "https://a.example/x", "https://a.example/x"),
            ("(http://a.example)", "http://a.example/", "http://a.example"),
            ("HTTPS://A.Example/Q", "https://a.example/Q", "https://a.example/Q"),
            ("https://a.example/wiki/X_(y)!", "https://a.example/wiki/X_(y)", "https://a.example/wiki/X_(y)"),
            ("[x](https://evil.example)", "https://evil.example/", "https://evil.example"),
            ("https://a.example:8443/ü", "https://a.example:8443/%C3%BC", "https://a.example:8443/ü"),
            ("https://а.example/", "https://xn--80a.example/", "https://xn--80a.example/"),
            ("https://a.example/\u{202e}gpj.exe", "https://a.example/", "https://a.example/"),
            ("http://0x7f.1/", "http://127.0.0.1/", "http://127.0.0.1/"),
        ] {
            assert_eq!(links(text), [(href.to_owned(), read.to_owned())], "{text}");
        }
        let two = links("[https://good.example](https://evil.example)");
        assert_eq!(
            two.iter().map(|(href, _)| href.as_str()).collect::<Vec<_>>(),
            ["https://good.example/", "https://evil.example/"]
        );
    }

    #[test]
    fn whatever_else_is_no_link() {
        for text in [
            "javascript:alert(1)",
            "javascript://a.example/%0aalert(1)",
            "data:text/html,x",
            "ftp://a.example",
            "xhttps://a.example",
            "https://",
            "https:///a.example",
            "https:a.example",
            "https://bank.example@evil.example/",
            "https://@evil.example/",
            "https://user:pass@evil.example/",
            "https://[::1]/",
            "https://\\evil.example",
            "www.example.com",
            "https://a b",
        ] {
            let found = links(text);
            assert!(found.is_empty() || text == "https://a b", "{text}: {found:?}");
        }
    }

    #[test]
    fn what_stands_around_a_link_is_escaped() {
        let html = linked("<b> https://a.example/?a=1&b='2' <i>\u{2066}").to_string();
        assert!(
            html.starts_with("&lt;b&gt; <a ") && html.ends_with("</a>&#39; &lt;i&gt;<bdi dir=\"ltr\">\\u{2066}</bdi>")
                || html.contains("&amp;b="),
            "{html}"
        );
        assert!(!html.contains("<b>") && !html.contains("<i>"), "{html}");
        assert!(html.contains("rel=\"noopener noreferrer nofollow\" target=\"_blank\""), "{html}");
    }
}
