//! The key that push services know this server by (RFC 8292). It is made at the first use and kept in the store: browsers
//! subscribe with it, and with another one none of their subscriptions would be good any more.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chips_protocol::Timestamp;
use chips_store::Store;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;
use tokio::sync::OnceCell;
use url::Url;

/// Under which name the store keeps the key, as PKCS#8.
const SECRET: &str = "vapid";
/// How long a token is good, in milliseconds; the standard allows twice that.
const GOOD_MS: i64 = 12 * 3600 * 1000;

/// Signs what goes to push services. Cheap to clone.
#[derive(Clone)]
pub struct Vapid {
    store: Store,
    subject: String,
    key: Arc<OnceCell<Key>>,
}

struct Key {
    pair: EcdsaKeyPair,
    /// As browsers and push services take it: base64url of the uncompressed point.
    public: String,
}

impl Vapid {
    /// With the key that this store keeps. `public_url` is where people find this server.
    pub fn new(store: Store, public_url: Option<&Url>) -> Self {
        Self { store, subject: subject(public_url), key: Arc::default() }
    }

    /// What Chips' clock says.
    pub(super) fn now(&self) -> Timestamp {
        self.store.clock().now()
    }

    async fn key(&self) -> Result<&Key, String> {
        let keep = async || {
            let random = SystemRandom::new();
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let candidate = EcdsaKeyPair::generate_pkcs8(algorithm, &random)
                .map_err(|_| "the system gives no random bytes".to_owned())?;
            let kept = self.store.keep_secret(SECRET, candidate.as_ref().to_vec()).await;
            let kept = kept.map_err(|error| error.to_string())?;
            let pair = EcdsaKeyPair::from_pkcs8(algorithm, &kept, &random)
                .map_err(|error| format!("the server's key for push services is damaged: {error}"))?;
            let public = URL_SAFE_NO_PAD.encode(pair.public_key());
            Ok(Key { pair, public })
        };
        self.key.get_or_try_init(keep).await
    }

    /// The public key, as a browser takes it to subscribe: base64url of an uncompressed point on P-256.
    ///
    /// # Errors
    /// The key can't be had, in words for the operator.
    pub async fn public_key(&self) -> Result<&str, String> {
        Ok(&self.key().await?.public)
    }

    /// The value of `Authorization` for a push to this address.
    ///
    /// # Errors
    /// The key can't be had or does not sign.
    pub(super) async fn authorization(&self, url: &Url, now: Timestamp) -> Result<String, String> {
        let Key { pair, public } = self.key().await?;
        let claims = json!({
            "aud": url.origin().ascii_serialization(),
            "exp": now.plus_ms(GOOD_MS).ms().div_euclid(1000),
            "sub": self.subject,
        });
        let encode = |part: &serde_json::Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let said = format!("{}.{}", encode(&json!({ "typ": "JWT", "alg": "ES256" })), encode(&claims));
        let signature = pair.sign(&SystemRandom::new(), said.as_bytes()).map_err(|error| error.to_string())?;
        Ok(format!("vapid t={said}.{}, k={public}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// Where a push service reaches whoever runs this server. Mozilla's and Apple's refuse a token that names nobody, though the
/// standard lets it out; Apple's refuses one too whose name is not of the public internet. Without an https address only browsers on this
/// very machine subscribe.
fn subject(public_url: Option<&Url>) -> String {
    match public_url {
        Some(url) if url.scheme() == "https" => url.origin().ascii_serialization(),
        _ => "mailto:chips@localhost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn somebody_is_always_named_and_at_the_public_address_where_there_is_one() {
        for (url, named) in [
            (Some("https://chips.example.com/"), "https://chips.example.com"),
            (Some("https://chips.example.com:8443/"), "https://chips.example.com:8443"),
            (Some("http://localhost:7070/"), "mailto:chips@localhost"),
            (None, "mailto:chips@localhost"),
        ] {
            let url = url.map(|url| url.parse().unwrap());
            assert_eq!(subject(url.as_ref()), named);
        }
    }
}
