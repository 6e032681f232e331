//! Secrets: tokens, sign-in links and codes, session cookies. Only their SHA-256 is stored.

/// What a token speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// `chips_hk_…`: a harness.
    Harness,
    /// `chips_uk_…`: a person.
    Person,
}

/// A new token: the kind's prefix, 32 random base62 characters and a 6-character checksum of what stands before it.
pub fn new_token(kind: TokenKind) -> String {
    let _ = kind;
    todo!()
}

/// Whether a text has the form of a token and its checksum is right, and of which kind it is then.
pub fn token_kind(token: &str) -> Option<TokenKind> {
    let _ = token;
    todo!()
}

/// A new secret for a link, a session or a form: 43 characters of base64url, 256 random bits.
pub fn new_secret() -> String {
    todo!()
}

/// A new sign-in code: two groups of four characters that can't be misread, like `7K3M-Q9TD` (40 random bits).
pub fn new_code() -> String {
    todo!()
}

/// The canonical spelling of a code that a person typed: upper case, without spaces and hyphens, O read as 0, I and L as 1.
pub fn canonical_code(typed: &str) -> String {
    let _ = typed;
    todo!()
}

/// The SHA-256 of a secret.
pub fn sha256(secret: &str) -> [u8; 32] {
    let _ = secret;
    todo!()
}
