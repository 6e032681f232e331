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
use url::{Host, Url};

use crate::outbound::is_local_name;

/// Under which name the store keeps the key, as PKCS#8.
const SECRET: &str = "vapid";
/// How long a token is good, in milliseconds; the standard allows twice that.
const GOOD_MS: i64 = 12 * 3600 * 1000;

/// Signs what goes to push services. Cheap to clone.
#[derive(Clone)]
pub struct Vapid {
    store: Store,
    subject: Option<String>,
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
        Self { store, subject: public_url.and_then(subject), key: Arc::default() }
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
        let mut claims = json!({
            "aud": url.origin().ascii_serialization(),
            "exp": now.plus_ms(GOOD_MS).ms().div_euclid(1000),
        });
        if let Some(subject) = &self.subject {
            claims["sub"] = json!(subject);
        }
        let encode = |part: &serde_json::Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let said = format!("{}.{}", encode(&json!({ "typ": "JWT", "alg": "ES256" })), encode(&claims));
        let signature = pair.sign(&SystemRandom::new(), said.as_bytes()).map_err(|error| error.to_string())?;
        Ok(format!("vapid t={said}.{}, k={public}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// Where a push service reaches whoever runs this server. Apple's refuses everything under a name that is not of the public
/// internet, and the others can do without, so there is none then.
fn subject(public_url: &Url) -> Option<String> {
    match public_url.host() {
        Some(Host::Domain(name)) if public_url.scheme() == "https" && !is_local_name(name) => {
            Some(public_url.origin().ascii_serialization())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn whoever_runs_the_server_is_found_at_its_public_address_or_not_named() {
        for (url, found) in [
            ("https://chips.example.com/", Some("https://chips.example.com")),
            ("https://chips.example.com:8443/", Some("https://chips.example.com:8443")),
            ("http://chips.example.com/", None),
            ("https://localhost/", None),
            ("https://chips.local/", None),
            ("https://chips/", None),
            ("https://192.0.2.1/", None),
        ] {
            assert_eq!(subject(&url.parse().unwrap()).as_deref(), found, "{url}");
        }
    }
}
