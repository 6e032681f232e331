//! A browser's side of Web Push: it subscribes, and opens what its push service was sent, as the standards have it (RFC 8030, 8188,
//! 8291, 8292). Nothing here is the server's own code.

#![allow(dead_code)]

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::PublicKey;
use p256::SecretKey;
use p256::ecdh::diffie_hellman;
use p256::elliptic_curve::sec1::ToEncodedPoint;
use reqwest::StatusCode;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};
use url::Url;

use crate::receiver::Received;
use crate::support::{Browser, Page};

/// Where a browser's person turns its messages on.
pub const PUSH: &str = "/settings/told/web-push";

/// The keys of a browser's subscription.
pub struct Subscriber {
    secret: SecretKey,
    auth: [u8; 16],
}

/// The next secret key: any number will do, as long as each browser has its own.
static NEXT: LazyLock<std::sync::atomic::AtomicU8> = LazyLock::new(|| 1.into());

/// A push message as the browser's worker gets it, and what its push service was told beside it.
#[derive(Debug)]
pub struct Opened {
    pub message: Value,
    pub ttl: u64,
    pub urgency: String,
    pub topic: Option<String>,
    pub subject: Value,
    /// The server's public key.
    pub key: String,
}

fn bytes(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// HMAC-SHA256, which is all that HKDF is made of where 32 bytes are enough (RFC 5869).
fn mac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), &parts.concat()).as_ref().to_vec()
}

impl Subscriber {
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let mut secret = [0x5a; 32];
        secret[31] = number;
        Self { secret: SecretKey::from_slice(&secret).unwrap(), auth: [number; 16] }
    }

    fn public(&self) -> Vec<u8> {
        self.secret.public_key().to_encoded_point(false).as_bytes().to_vec()
    }

    /// The keys as a browser gives them.
    pub fn keys(&self) -> [(&'static str, String); 2] {
        [("p256dh", URL_SAFE_NO_PAD.encode(self.public())), ("auth", URL_SAFE_NO_PAD.encode(self.auth))]
    }

    /// What the endpoint keeps of it.
    pub fn secret(&self, lang: &str) -> Value {
        let [(_, p256dh), (_, auth)] = self.keys();
        json!({ "p256dh": p256dh, "auth": auth, "lang": lang })
    }

    /// The script of a page subscribes, and tells the server at which address.
    pub async fn subscribe(&self, browser: &Browser, address: &str) -> Page {
        let offer = browser.get(PUSH).await;
        assert_eq!(offer.status, StatusCode::OK, "{}", offer.body);
        let offer: Value = serde_json::from_str(&offer.body).unwrap();
        let (token, [(_, p256dh), (_, auth)]) = (offer["token"].as_str().unwrap(), self.keys());
        browser.post(PUSH, &[("token", token), ("endpoint", address), ("p256dh", &p256dh), ("auth", &auth)]).await
    }

    /// The same, and it is taken.
    pub async fn on(&self, browser: &Browser, address: &str) {
        let page = self.subscribe(browser, address).await;
        assert_eq!((page.status, page.body.as_str()), (StatusCode::NO_CONTENT, ""));
    }

    /// Checks the envelope as a push service does, and opens the message as a browser does.
    pub fn open(&self, received: &Received, service: &Url) -> Opened {
        let (subject, key) = signed(received.header("authorization"), service);
        assert_eq!(received.header("content-encoding"), "aes128gcm");
        let topic = received.headers.get("topic").map(|topic| topic.to_str().unwrap().to_owned());
        if let Some(topic) = &topic {
            let plain = topic.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            assert!(topic.len() <= 32 && plain, "{topic}");
        }
        let urgency = received.header("urgency").to_owned();
        assert!(["very-low", "low", "normal", "high"].contains(&urgency.as_str()), "{urgency}");
        Opened {
            message: serde_json::from_slice(&self.decrypted(&received.body)).unwrap(),
            ttl: received.header("ttl").parse().unwrap(),
            urgency,
            topic,
            subject,
            key,
        }
    }

    fn decrypted(&self, body: &[u8]) -> Vec<u8> {
        assert!(body.len() <= 4096, "a push service need not take {} bytes", body.len());
        let (salt, rest) = body.split_at(16);
        let (size, rest) = rest.split_at(4);
        assert!(u32::from_be_bytes(size.try_into().unwrap()) as usize >= rest.len() - 66, "it is one record");
        assert_eq!(rest[0], 65);
        let (sender, sealed) = rest[1..].split_at(65);
        let theirs = PublicKey::from_sec1_bytes(sender).unwrap();
        let shared = diffie_hellman(self.secret.to_nonzero_scalar(), theirs.as_affine());
        let mixed = mac(&self.auth, &[shared.raw_secret_bytes()]);
        let key = mac(&mixed, &[b"WebPush: info\0", &self.public(), sender, &[1]]);
        let mixed = mac(salt, &[&key]);
        let key = mac(&mixed, &[b"Content-Encoding: aes128gcm\0", &[1]]);
        let nonce = mac(&mixed, &[b"Content-Encoding: nonce\0", &[1]]);
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key[..16]).unwrap());
        let mut record = sealed.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(&nonce[..12]).unwrap();
        let plain = key.open_in_place(nonce, Aad::empty(), &mut record).expect("sealed for this browser");
        let end = plain.iter().rposition(|byte| *byte != 0).unwrap();
        assert_eq!(plain[end], 2, "the last record says so");
        plain[..end].to_vec()
    }
}

/// Checks who sends, as RFC 8292 has it: the subject that they name, and their key.
fn signed(authorization: &str, service: &Url) -> (Value, String) {
    let parameters = authorization.strip_prefix("vapid ").unwrap();
    let parameter = |name: &str| {
        let mut parts = parameters.split(',').filter_map(|part| part.trim().split_once('='));
        parts.find(|(key, _)| *key == name).unwrap().1.to_owned()
    };
    let (token, key) = (parameter("t"), parameter("k"));
    let (said, signature) = token.rsplit_once('.').unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, bytes(&key)).verify(said.as_bytes(), &bytes(signature)).unwrap();
    let (head, claims) = said.split_once('.').unwrap();
    let [head, claims] = [head, claims].map(|part| serde_json::from_slice::<Value>(&bytes(part)).unwrap());
    assert_eq!(head["alg"], "ES256");
    assert_eq!(claims["aud"], service.origin().ascii_serialization());
    let now = chips_store::clock::TimeSource::System.wall().ms() / 1000;
    let left = claims["exp"].as_i64().unwrap() - now;
    assert!((1..=24 * 3600).contains(&left), "{left}");
    (claims["sub"].clone(), key)
}
