//! Whether a page of this very site made a request, as browsers say it (`Origin`, and Fetch Metadata's `Sec-Fetch-Site`).

use axum::http::HeaderMap;
use axum::http::header::{self, HeaderName};

/// Whether a browser says that a page of this very site made the request. Without `Origin` and without fetch metadata nobody
/// says so, and it counts as foreign.
pub(crate) fn same_origin(headers: &HeaderMap, public_url: Option<&url::Url>) -> bool {
    let site = only(headers, &HeaderName::from_static("sec-fetch-site"));
    let origin = only(headers, &header::ORIGIN);
    match (site, origin) {
        (Header::Absent, Header::Absent) | (Header::Repeated, _) | (_, Header::Repeated) => false,
        (site, origin) => {
            matches!(site, Header::Absent | Header::Is("same-origin"))
                && match origin {
                    Header::Is(origin) => is_own(origin, headers, public_url),
                    _ => true,
                }
        }
    }
}

fn is_own(origin: &str, headers: &HeaderMap, public_url: Option<&url::Url>) -> bool {
    let Ok(origin) = url::Url::parse(origin).map(|url| url.origin()) else { return false };
    if !origin.is_tuple() {
        return false;
    }
    if public_url.is_some_and(|url| url.origin() == origin) {
        return true;
    }
    // The host was admitted before, so it is a name of this server. The scheme is unknown behind a proxy.
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return false };
    ["http", "https"]
        .iter()
        .filter_map(|scheme| url::Url::parse(&format!("{scheme}://{host}/")).ok())
        .any(|url| url.origin() == origin)
}

enum Header<'a> {
    Absent,
    Is(&'a str),
    Repeated,
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Header<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Header::Absent,
        // A value that is no text can't be this site's.
        (Some(value), None) => value.to_str().map_or(Header::Repeated, Header::Is),
        _ => Header::Repeated,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn allowed(pairs: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "127.0.0.1:7070".parse().unwrap());
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        same_origin(&headers, Some(&"https://chips.example.com".parse().unwrap()))
    }

    #[test]
    fn a_write_comes_from_a_page_of_this_site_or_not_at_all() {
        for good in [
            &[("origin", "http://127.0.0.1:7070")][..],
            &[("origin", "https://chips.example.com")],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "same-origin"), ("origin", "http://127.0.0.1:7070")],
        ] {
            assert!(allowed(good), "{good:?}");
        }
        for bad in [
            &[][..],
            &[("origin", "null")],
            &[("origin", "null"), ("sec-fetch-site", "same-origin")],
            &[("origin", "https://evil.example")],
            &[("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")],
            &[("origin", "http://127.0.0.1:7071")],
            &[("origin", "http://127.0.0.1:7070.evil.example")],
            &[("origin", "http://chips.example.com")],
            &[("origin", "")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:7070")],
            &[("sec-fetch-site", "none")],
            &[("origin", "http://127.0.0.1:7070"), ("origin", "https://evil.example")],
        ] {
            assert!(!allowed(bad), "{bad:?}");
        }
    }
}
