//! A message that one browser alone can open (RFC 8291, over the content coding of RFC 8188): one record, a fresh key each time.

use std::fmt;

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of a sealed message: what every push service must take (RFC 8030, 7.2).
const RECORD: usize = 4096;
/// Bytes of a public key: an uncompressed point on P-256.
const KEY: usize = 65;
/// Bytes before what is sealed: a salt, the size of a record, and the sender's public key with its length.
const HEADER: usize = 16 + 4 + 1 + KEY;
/// Bytes of the secret that browser and server share.
const AUTH: usize = 16;
/// Bytes that a message may have: the rest is the header, a delimiter and the tag.
pub const PLAINTEXT_MOST: usize = RECORD - HEADER - 1 - 16;

/// Why nothing could be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsealed {
    /// The browser's public key is no point on the curve, or the secret has another length.
    Keys,
    /// The message is too long.
    TooLong,
    /// The system gives no random bytes.
    Random,
}

impl fmt::Display for Unsealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keys => "the browser's keys are damaged",
            Self::TooLong => "the message is too long",
            Self::Random => "the system gives no random bytes",
        })
    }
}

/// Seals a message of at most [`PLAINTEXT_MOST`] bytes for the browser with this public key (an uncompressed point) and this
/// shared secret (16 bytes).
///
/// # Errors
/// See [`Unsealed`].
pub fn seal(browser: &[u8], auth: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, Unsealed> {
    let random = SystemRandom::new();
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &random).map_err(|_| Unsealed::Random)?;
    let public = own.compute_public_key().map_err(|_| Unsealed::Random)?;
    let mut salt = [0; 16];
    random.fill(&mut salt).map_err(|_| Unsealed::Random)?;
    if browser.len() != KEY || auth.len() != AUTH {
        return Err(Unsealed::Keys);
    }
    agree_ephemeral(own, &UnparsedPublicKey::new(&ECDH_P256, browser), |shared| {
        seal_with(shared, (browser, auth), (public.as_ref(), salt), plaintext)
    })
    .map_err(|_| Unsealed::Keys)?
}

/// The same with the secret that both sides have agreed on, the sender's public key and the salt.
fn seal_with(
    shared: &[u8],
    (browser, auth): (&[u8], &[u8]),
    (own, salt): (&[u8], [u8; 16]),
    plaintext: &[u8],
) -> Result<Vec<u8>, Unsealed> {
    if plaintext.len() > PLAINTEXT_MOST {
        return Err(Unsealed::TooLong);
    }
    let mixed = Salt::new(HKDF_SHA256, auth).extract(shared);
    let key: [u8; 32] = expand(&mixed, &[b"WebPush: info\0", browser, own])?;
    let mixed = Salt::new(HKDF_SHA256, &salt).extract(&key);
    let key: [u8; 16] = expand(&mixed, &[b"Content-Encoding: aes128gcm\0"])?;
    let nonce: [u8; 12] = expand(&mixed, &[b"Content-Encoding: nonce\0"])?;
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).map_err(|_| Unsealed::Keys)?);

    // The delimiter of the last record (RFC 8188, 2). There is no other, so the nonce of the first is used as it is.
    let mut record = [plaintext, &[2]].concat();
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)
        .map_err(|_| Unsealed::TooLong)?;
    let (size, id) = ((RECORD as u32).to_be_bytes(), [KEY as u8]);
    Ok([&salt, size.as_slice(), &id, own, &record].concat())
}

/// A length in bytes, for HKDF.
struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const N: usize>(from: &Prk, info: &[&[u8]]) -> Result<[u8; N], Unsealed> {
    let mut out = [0; N];
    from.expand(info, Bytes(N)).and_then(|okm| okm.fill(&mut out)).map_err(|_| Unsealed::Keys)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    const BROWSER: &str = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    const AUTH_SECRET: &str = "BTBZMqHH6r4Tts7J_aSIgg";

    #[test]
    fn the_example_of_rfc_8291_comes_out_byte_for_byte() {
        let own = bytes("BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8");
        let shared = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().unwrap();
        let keys = (bytes(BROWSER), bytes(AUTH_SECRET));
        let said = b"When I grow up, I want to be a watermelon";
        let sealed = seal_with(&shared, (&keys.0, &keys.1), (&own, salt), said).unwrap();
        assert_eq!(
            URL_SAFE_NO_PAD.encode(sealed),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95\
             bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
    }

    #[test]
    fn the_longest_message_fills_a_record_and_each_is_sealed_anew() {
        let keys = (bytes(BROWSER), bytes(AUTH_SECRET));
        let longest = vec![b'x'; PLAINTEXT_MOST];
        assert_eq!(PLAINTEXT_MOST, 3993);
        let sealed = seal(&keys.0, &keys.1, &longest).unwrap();
        assert_eq!(sealed.len(), RECORD);
        assert_ne!(sealed, seal(&keys.0, &keys.1, &longest).unwrap());
        assert_eq!(seal(&keys.0, &keys.1, &[longest, vec![b'x']].concat()), Err(Unsealed::TooLong));
    }

    #[test]
    fn damaged_keys_are_refused() {
        let (key, auth) = (bytes(BROWSER), bytes(AUTH_SECRET));
        let mut bent = key.clone();
        bent[40] ^= 1;
        for (key, auth) in [(&bent, &auth), (&key[1..].to_vec(), &auth), (&vec![], &auth), (&key, &vec![0; 15])] {
            assert_eq!(seal(key, auth, b"x"), Err(Unsealed::Keys));
        }
    }
}
