//! Pieces of HTML that code makes rather than a template: sentences with names in them, times, texts of others.

mod links;

use std::fmt;

use askama::filters::HtmlSafe;
use chips_protocol::Timestamp;
use chips_protocol::text::{is_bidi_control, is_forbidden_control};

pub(crate) use links::linked;

/// A piece of HTML that is safe to stand in element content as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Html {}

impl Html {
    /// Text as it stands in a table of words.
    pub fn text(text: &str) -> Self {
        let mut html = Self::default();
        html.push_text(text);
        html
    }

    /// What a template rendered.
    pub fn rendered(template: &impl askama::Template) -> Self {
        match template.render() {
            Ok(html) => Self(html),
            Err(fault) => {
                tracing::error!(%fault, "a template failed to render");
                Self::default()
            }
        }
    }

    /// A text of somebody else's: escaped, its bidirectional controls and other controls shown. What is shown for one of them
    /// (`\u{202e}`) reads from left to right whatever stands around it: it is no part of the text's own direction.
    pub fn shown(text: &str) -> Self {
        let mut html = Self::default();
        html.push_shown(text);
        html
    }

    /// A name or another short text of somebody else's, shown, and isolated so that its direction of writing changes nothing
    /// around it.
    pub fn isolated(text: &str) -> Self {
        let mut html = Self("<bdi>".to_owned());
        html.push_shown(text);
        html.0.push_str("</bdi>");
        html
    }

    /// The same in quotation marks.
    pub fn quoted(text: &str, (open, close): (&str, &str)) -> Self {
        let mut html = Self::text(open);
        html.push(&Self::isolated(text));
        html.push_text(close);
        html
    }

    /// Several pieces with a separator between them.
    pub fn joined(pieces: impl IntoIterator<Item = Self>, separator: &str) -> Self {
        let mut html = Self::default();
        for (at, piece) in pieces.into_iter().enumerate() {
            if at > 0 {
                html.push_text(separator);
            }
            html.push(&piece);
        }
        html
    }

    /// A sentence from the table of words, its `{places}` filled in. A place that the pattern does not name is left out.
    pub fn phrase(pattern: &str, places: &[(&str, Self)]) -> Self {
        let mut html = Self::default();
        let mut rest = pattern;
        while let Some((before, after)) = rest.split_once('{') {
            html.push_text(before);
            let Some((name, after)) = after.split_once('}') else { break };
            if let Some((_, piece)) = places.iter().find(|(place, _)| *place == name) {
                html.push(piece);
            }
            rest = after;
        }
        html.push_text(rest);
        html
    }

    /// How many bytes it takes in a page.
    pub const fn bytes(&self) -> usize {
        self.0.len()
    }

    fn push(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    fn push_shown(&mut self, text: &str) {
        let escaped = |c| is_bidi_control(c) || is_forbidden_control(c);
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| escaped(*c)) {
            self.push_text(&rest[..at]);
            self.0.push_str("<bdi dir=\"ltr\">");
            self.0.extend(c.escape_unicode());
            self.0.push_str("</bdi>");
            rest = &rest[at + c.len_utf8()..];
        }
        self.push_text(rest);
    }

    fn push_text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
    }
}

/// How a script may say a time better than the server, which knows nobody's zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeAs {
    /// How long ago.
    Ago,
    /// The hour and minute, with the date where it is another day.
    At,
    /// How long until then, counted down.
    Until,
}

/// A `<time>` element: UTC as it stands, said in the person's own zone by the script.
pub(crate) fn time(at: Timestamp, now: Timestamp, say: TimeAs, pattern: &str) -> Html {
    let say = match say {
        TimeAs::Ago => "ago",
        TimeAs::At => "at",
        TimeAs::Until => "until",
    };
    let mut html = Html(format!("<time datetime=\"{at}\" data-t=\"{say}\">"));
    html.push(&Html::phrase(pattern, &[("t", Html::text(&utc(at, now)))]));
    html.0.push_str("</time>");
    html
}

/// The time in UTC: without the date where it is today's.
pub(crate) fn utc(at: Timestamp, now: Timestamp) -> String {
    let text = at.to_string();
    let (date, clock) = text.split_once('T').unwrap_or((&text, ""));
    let clock = clock.get(..5).unwrap_or(clock);
    if now.to_string().starts_with(date) { format!("{clock} UTC") } else { format!("{date} {clock} UTC") }
}

/// A text cut at a number of characters, with an ellipsis where something was cut.
pub(crate) fn short(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_stands_as_text_in_its_own_direction() {
        let html = Html::phrase(
            "{who} answered {what}",
            &[("who", Html::isolated("<script>\u{202e}")), ("what", Html::quoted("a & \"b\"", ("“", "”")))],
        );
        assert_eq!(
            html.to_string(),
            "<bdi>&lt;script&gt;<bdi dir=\"ltr\">\\u{202e}</bdi></bdi> answered “<bdi>a &amp; &quot;b&quot;</bdi>”"
        );
        assert_eq!(
            Html::shown("\u{1}a\u{2066}\n\u{7}").to_string(),
            "<bdi dir=\"ltr\">\\u{1}</bdi>a<bdi dir=\"ltr\">\\u{2066}</bdi>\n<bdi dir=\"ltr\">\\u{7}</bdi>"
        );
    }

    #[test]
    fn a_name_with_braces_is_no_place() {
        let html = Html::phrase("{who}!", &[("who", Html::text("{what}")), ("what", Html::text("x"))]);
        assert_eq!(html.to_string(), "{what}!");
    }

    #[test]
    fn times_say_their_date_unless_it_is_today() {
        let now = Timestamp::from_ms(1_788_358_925_004);
        assert_eq!(now.to_string(), "2026-09-02T14:22:05.004Z");
        assert_eq!(utc(now, now), "14:22 UTC");
        assert_eq!(utc(now.plus_ms(-86_400_000), now), "2026-09-01 14:22 UTC");
        assert_eq!(
            time(now, now, TimeAs::Until, "until {t}").to_string(),
            "<time datetime=\"2026-09-02T14:22:05.004Z\" data-t=\"until\">until 14:22 UTC</time>"
        );
    }

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(short("äöü", 3), "äöü");
        assert_eq!(short("äöü x", 4), "äöü…");
    }
}
