//! Texts that Chips makes, hands out and knows again, and of which it keeps nothing: what they say, and a signature.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chips_store::{Store, WriteError, secret};
use ring::hmac;
use subtle::ConstantTimeEq;
use tokio::sync::OnceCell;

/// Bytes of the signature that a text carries.
const MAC: usize = 16;

/// Makes such texts for one purpose, and reads them. Cheap to clone.
#[derive(Clone)]
pub struct Seal {
    store: Store,
    name: &'static str,
    purpose: &'static [u8],
    key: Arc<OnceCell<hmac::Key>>,
}

impl Seal {
    /// With the key that the store keeps under this name. What is sealed for one purpose is nothing for another.
    pub fn new(store: Store, name: &'static str, purpose: &'static [u8]) -> Self {
        Self { store, name, purpose, key: Arc::default() }
    }

    /// The store that keeps the key.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    async fn key(&self) -> Result<&hmac::Key, WriteError> {
        let keep = async || {
            let candidate = secret::new_secret().into_bytes();
            let kept = self.store.keep_secret(self.name, candidate).await?;
            Ok(hmac::Key::new(hmac::HMAC_SHA256, &kept))
        };
        self.key.get_or_try_init(keep).await
    }

    /// The text that says this: letters, digits, `-` and `_`.
    ///
    /// # Errors
    /// The key can't be had.
    pub async fn seal(&self, said: &[u8]) -> Result<String, WriteError> {
        Ok(sealed(said, self.purpose, self.key().await?))
    }

    /// What a text says; nothing where Chips did not make it for this purpose.
    ///
    /// # Errors
    /// The key can't be had.
    pub async fn open(&self, text: &str) -> Result<Option<Vec<u8>>, WriteError> {
        Ok(opened(text, self.purpose, self.key().await?))
    }
}

fn mac(said: &[u8], purpose: &[u8], key: &hmac::Key) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    context.update(purpose);
    context.update(said);
    context.sign()
}

fn sealed(said: &[u8], purpose: &[u8], key: &hmac::Key) -> String {
    URL_SAFE_NO_PAD.encode([said, &mac(said, purpose, key).as_ref()[..MAC]].concat())
}

fn opened(text: &str, purpose: &[u8], key: &hmac::Key) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (said, end) = bytes.split_at_checked(bytes.len().checked_sub(MAC)?)?;
    let good: bool = mac(said, purpose, key).as_ref()[..MAC].ct_eq(end).into();
    good.then(|| said.to_vec())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_text_says_what_was_sealed_and_nothing_else() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        let text = sealed(b"what it says", b"purpose\n", &key);
        assert_eq!(opened(&text, b"purpose\n", &key).as_deref(), Some(b"what it says".as_slice()));
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for at in 0..bytes.len() {
            let mut bent = bytes.clone();
            bent[at] ^= 1;
            assert_eq!(opened(&URL_SAFE_NO_PAD.encode(bent), b"purpose\n", &key), None, "byte {at}");
        }
        for bad in ["", "AAAA", "ä", &text[1..], &format!("{text}AAAA"), &format!("{text}=")] {
            assert_eq!(opened(bad, b"purpose\n", &key), None, "{bad}");
        }
        assert_eq!(opened(&text, b"purpose\n", &hmac::Key::new(hmac::HMAC_SHA256, b"other")), None);
        assert_eq!(opened(&text, b"another\n", &key), None);
    }
}
