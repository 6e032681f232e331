//! Secrets: tokens, sign-in links and codes, session cookies. Only their SHA-256 is stored.
//!
//! The one home of secret randomness. The system's generator never fails on the systems that Chips runs on once they
//! have started; where it does, nothing secret can be made, and the functions here panic rather than make do.

use sha2::{Digest, Sha256};

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Crockford's base 32: no I, L, O and U.
const BASE32: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

const RANDOM_LEN: usize = 32;
const CHECKSUM_LEN: usize = 6;

/// What a token speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// `chips_hk_…`: a harness.
    Harness,
    /// `chips_uk_…`: a person.
    Person,
}

impl TokenKind {
    const ALL: [Self; 2] = [Self::Harness, Self::Person];

    /// What the tokens of this kind begin with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Harness => "chips_hk_",
            Self::Person => "chips_uk_",
        }
    }
}

/// A new token: the kind's prefix, 32 random base62 characters and a 6-character checksum of what stands before it.
pub fn new_token(kind: TokenKind) -> String {
    let mut token = String::with_capacity(kind.prefix().len() + RANDOM_LEN + CHECKSUM_LEN);
    token.push_str(kind.prefix());
    let mut left = RANDOM_LEN;
    while left > 0 {
        // A byte past the largest multiple of 62 would favour the first letters, so it is thrown away.
        for byte in random::<64>().into_iter().filter(|byte| *byte < 248).take(left) {
            token.push(char::from(BASE62[usize::from(byte % 62)]));
            left -= 1;
        }
    }
    let checksum = checksum(&token);
    token.push_str(&checksum);
    token
}

/// Whether a text has the form of a token and its checksum is right, and of which kind it is then.
pub fn token_kind(token: &str) -> Option<TokenKind> {
    let kind = TokenKind::ALL.into_iter().find(|kind| token.starts_with(kind.prefix()))?;
    let rest = &token[kind.prefix().len()..];
    if rest.len() != RANDOM_LEN + CHECKSUM_LEN || !rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let (said, end) = token.split_at(token.len() - CHECKSUM_LEN);
    (checksum(said) == end).then_some(kind)
}

/// A new secret for a link, a session or a form: 43 characters of base64url, 256 random bits.
pub fn new_secret() -> String {
    let mut text = String::with_capacity(43);
    for chunk in random::<32>().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            text.push(char::from(BASE64URL[(bits >> (18 - 6 * place) & 63) as usize]));
        }
    }
    text
}

/// A new sign-in code: two groups of four characters that can't be misread, like `7K3M-Q9TD` (40 random bits).
pub fn new_code() -> String {
    let bits = random::<5>().into_iter().fold(0_u64, |bits, byte| (bits << 8) | u64::from(byte));
    let mut code: String = (0..8).map(|place| char::from(BASE32[(bits >> (35 - 5 * place) & 31) as usize])).collect();
    code.insert(4, '-');
    code
}

/// The canonical spelling of a code that a person typed: upper case, without spaces and hyphens, O read as 0, I and L as 1.
pub fn canonical_code(typed: &str) -> String {
    typed
        .chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}'))
        .flat_map(char::to_uppercase)
        .map(|c| match c {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        })
        .collect()
}

/// The SHA-256 of a secret.
pub fn sha256(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Random bytes from the system.
///
/// # Panics
/// The system gives none: a secret that could be guessed must not be handed out, and nothing else can be done here.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// Six base62 characters that say the CRC-32 (ISO-HDLC) of a text: finds a token that was mistyped or cut off
/// without a look into the store.
fn checksum(text: &str) -> String {
    let mut crc = u32::MAX;
    for byte in text.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    let mut rest = !crc as usize;
    let mut digits = [b'0'; CHECKSUM_LEN];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[rest % 62];
        rest /= 62;
    }
    digits.iter().copied().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_its_kind_and_proves_that_it_is_whole() {
        for kind in TokenKind::ALL {
            let token = new_token(kind);
            assert_eq!(token.len(), 47);
            assert_eq!(token_kind(&token), Some(kind));
            assert_ne!(token, new_token(kind));

            assert_eq!(token_kind(&token[..46]), None);
            assert_eq!(token_kind(&format!("{token}0")), None);
            assert_eq!(token_kind(&format!(" {token}")), None);
            assert_eq!(token_kind(&token.to_uppercase()), None);
            let other = if token.as_bytes()[12] == b'a' { 'b' } else { 'a' };
            let mistyped: String = token.chars().enumerate().map(|(at, c)| if at == 12 { other } else { c }).collect();
            assert_eq!(token_kind(&mistyped), None);
        }
        assert_eq!(token_kind(""), None);
        assert_eq!(token_kind("chips_hk_"), None);
        assert_eq!(token_kind(&format!("chips_hk_{}", "é".repeat(19))), None);
    }

    #[test]
    fn the_checksum_is_the_crc_32_that_everybody_computes() {
        // The check value of CRC-32/ISO-HDLC, for "123456789".
        let digits = checksum("123456789");
        let value = digits.bytes().fold(0_u64, |value, byte| {
            value * 62 + BASE62.iter().position(|digit| *digit == byte).unwrap_or_default() as u64
        });
        assert_eq!(value, 0xCBF4_3926);
        assert_eq!(digits.len(), CHECKSUM_LEN);
    }

    #[test]
    fn every_base62_letter_is_equally_likely() {
        let mut seen = [0_u32; 62];
        for _ in 0..2_000 {
            for byte in new_token(TokenKind::Harness)[9..41].bytes() {
                seen[BASE62.iter().position(|digit| *digit == byte).unwrap_or_default()] += 1;
            }
        }
        // 64,000 draws: 1,032 expected of each, with a deviation of 32; with a modulo bias the first eight had 1,250.
        assert!(seen.iter().all(|count| (840..1_225).contains(count)), "{seen:?}");
    }

    #[test]
    fn a_secret_is_256_bits_of_base64url() {
        let secret = new_secret();
        assert_eq!(secret.len(), 43);
        assert!(secret.bytes().all(|byte| BASE64URL.contains(&byte)));
        assert_ne!(secret, new_secret());
    }

    #[test]
    fn a_code_reads_the_same_however_it_is_typed() {
        let code = new_code();
        assert_eq!(code.len(), 9);
        assert_eq!(canonical_code(&code), code.replace('-', ""));
        assert_eq!(canonical_code(" 7k3m – q9td "), "7K3MQ9TD");
        assert_eq!(canonical_code("oOiIlL-00"), "00111100");
    }

    #[test]
    fn the_hash_is_sha_256() {
        assert_eq!(sha256("abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
    }
}
