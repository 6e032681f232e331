//! The files beside the pages. Their names carry a hash of their content, so browsers may keep them for ever.
//!
//! What installs the inbox on a phone stands beside them, in [`super::install`].

pub(crate) mod squeeze;

use std::borrow::Cow;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// A file that never changes under its name.
pub(crate) struct Asset {
    /// Where it is served: `/assets/NAME.HASH.EXTENSION`.
    pub path: String,
    media_type: &'static str,
    pub content: Cow<'static, [u8]>,
}

impl Asset {
    fn new(name: &str, extension: &str, media_type: &'static str, content: &'static [u8]) -> Self {
        let content = match (extension, std::str::from_utf8(content)) {
            ("css", Ok(text)) => Cow::Owned(squeeze::styles(text).into_bytes()),
            ("js", Ok(text)) => Cow::Owned(squeeze::script(text).into_bytes()),
            _ => Cow::Borrowed(content),
        };
        let hash = hex(&Sha256::digest(&content)[..6]);
        Self { path: format!("/assets/{name}.{hash}.{extension}"), media_type, content }
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

macro_rules! assets {
    ($($name:ident = $file:literal, $extension:literal, $media_type:literal;)*) => {
        $(pub(crate) static $name: LazyLock<Asset> = LazyLock::new(|| {
            let content = include_bytes!(concat!("../../assets/", $file, ".", $extension));
            Asset::new($file, $extension, $media_type, content)
        });)*

        fn all() -> [&'static Asset; [$($file),*].len()] {
            [$(&*$name),*]
        }
    };
}

assets! {
    STYLE = "chips", "css", "text/css; charset=utf-8";
    SCRIPT = "chips", "js", "text/javascript; charset=utf-8";
    ICON = "icon", "svg", "image/svg+xml";
    TOUCH_ICON = "icon-180", "png", "image/png";
    SMALL_ICON = "icon-192", "png", "image/png";
    LARGE_ICON = "icon-512", "png", "image/png";
    MASKABLE_ICON = "icon-maskable", "png", "image/png";
}

/// `GET /assets/NAME`.
pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    let Some(asset) = all().into_iter().find(|asset| asset.path.strip_prefix("/assets/") == Some(&name)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, asset.content.clone()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_and_script_stay_small_on_a_phone() {
        let worker = super::super::install::worker(crate::words::LANGUAGES[0]);
        let size = STYLE.content.len() + SCRIPT.content.len() + worker.len();
        assert!(size <= 40 * 1024, "all styles and scripts together are {size} bytes; 40 KiB is the limit");
        println!("all styles and scripts together are {size} bytes of {}", 40 * 1024);
    }

    #[test]
    fn what_is_for_readers_of_the_source_stays_here() {
        let script = std::str::from_utf8(&SCRIPT.content).unwrap_or_default();
        assert!(
            script.starts_with("let doc=document,{body}=doc,") && !script.contains('\t') && !script.contains("// "),
            "{script}"
        );
    }

    #[test]
    fn a_name_changes_with_its_content() {
        let one = Asset::new("a", "css", "text/css", b"a{}");
        let other = Asset::new("a", "css", "text/css", b"b{}");
        assert_ne!(one.path, other.path);
        assert!(one.path.starts_with("/assets/a.") && one.path.ends_with(".css"));
    }
}
