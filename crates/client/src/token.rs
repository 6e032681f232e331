//! Tokens.

use std::fmt;
use std::str::FromStr;

/// What a token speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// `chips_hk_…`: a harness.
    Harness,
    /// `chips_uk_…`: a person.
    Person,
}

impl TokenKind {
    /// What tokens of this kind start with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Harness => "chips_hk_",
            Self::Person => "chips_uk_",
        }
    }
}

/// A token of a harness or a person. Never printed: [`fmt::Debug`] shows its kind alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    text: String,
    kind: TokenKind,
}

/// Why a text is no token. It does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    /// It starts like no token.
    #[error("a token starts with chips_hk_ (a harness's) or chips_uk_ (a person's)")]
    Prefix,
    /// It starts like one and goes on otherwise: cut off while copying, say.
    #[error("after its prefix a token has {LENGTH} letters and digits; this one was not copied whole, or more than it")]
    Rest,
}

/// Characters after the prefix: 32 random ones and 6 of a checksum.
const LENGTH: usize = 38;

impl Token {
    /// What the token speaks for.
    pub const fn kind(&self) -> TokenKind {
        self.kind
    }

    /// The token itself, for whoever has to store it.
    pub fn secret(&self) -> &str {
        &self.text
    }
}

impl FromStr for Token {
    type Err = BadToken;

    fn from_str(text: &str) -> Result<Self, BadToken> {
        let text = text.trim();
        let (kind, rest) = [TokenKind::Harness, TokenKind::Person]
            .into_iter()
            .find_map(|kind| Some((kind, text.strip_prefix(kind.prefix())?)))
            .ok_or(BadToken::Prefix)?;
        if rest.len() != LENGTH || !rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(BadToken::Rest);
        }
        Ok(Self { text: text.to_owned(), kind })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", self.kind.prefix())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_token_says_whom_it_speaks_for_and_is_never_printed() {
        let text = format!("chips_uk_{}", "Ab3".repeat(12) + "xy");
        let token: Token = format!("  {text}\n").parse().unwrap();
        assert_eq!(token.kind(), TokenKind::Person);
        assert_eq!(token.secret(), text);
        assert_eq!(format!("{token:?}"), "chips_uk_…");
    }

    #[test]
    fn what_was_not_copied_whole_is_told_apart_from_what_is_no_token() {
        let rest = "a".repeat(38);
        for (given, outcome) in [
            (String::new(), BadToken::Prefix),
            ("hunter2".to_owned(), BadToken::Prefix),
            (format!("chips_xx_{rest}"), BadToken::Prefix),
            (format!("chips_hk_{}", &rest[1..]), BadToken::Rest),
            (format!("chips_hk_{rest}b"), BadToken::Rest),
            (format!("chips_hk_{}\n{}", &rest[..19], &rest[20..]), BadToken::Rest),
        ] {
            assert_eq!(given.parse::<Token>(), Err(outcome), "{given:?}");
        }
    }
}
