//! A session is its identifier: when it was opened, the client's name, and a seal that only the credential which opened
//! it can make.

use sha2::{Digest, Sha256};

/// How long a session lasts, in seconds: 30 days.
const LIFETIME_S: u64 = 30 * 24 * 3600;
/// Bytes of the seal.
const SEAL: usize = 16;
/// Characters of a client's name that are kept.
const NAME: usize = 100;

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    id: String,
    client: String,
}

impl Session {
    /// A new session of a client with this name. `credential` is a secret of whoever opens it; `now` is in Unix seconds.
    pub(super) fn open(client: &str, credential: &[u8; 32], now: u64) -> Self {
        let client = plain(client);
        let mut nonce = [0; 8];
        // Without randomness two sessions of one second may be one; they have the same credential and name.
        let _ = getrandom::fill(&mut nonce);
        let body = format!("{now:x}.{}.{}", hex(&nonce), hex(client.as_bytes()));
        let seal = seal(&body, credential);
        Self { id: format!("{body}.{seal}"), client }
    }

    /// The session with this identifier, if this credential opened it and it is not too old.
    pub(super) fn read(id: &str, credential: &[u8; 32], now: u64) -> Option<Self> {
        let (body, sealed) = id.rsplit_once('.')?;
        if sealed != seal(body, credential) {
            return None;
        }
        let mut parts = body.split('.');
        let (opened, _, client) = (parts.next()?, parts.next()?, parts.next()?);
        let opened = u64::from_str_radix(opened, 16).ok()?;
        let client = String::from_utf8(unhex(client)?).ok()?;
        (now.saturating_sub(opened) < LIFETIME_S).then(|| Self { id: id.to_owned(), client })
    }

    /// Its identifier, as it goes over the wire.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What tells it from other sessions, in a few characters.
    pub fn tag(&self) -> &str {
        self.id.rsplit_once('.').map_or("", |(_, seal)| &seal[..seal.len().min(12)])
    }

    /// The client's name.
    pub fn client(&self) -> &str {
        &self.client
    }
}

/// A client's name without what could not be shown, and not too long.
pub(super) fn plain(name: &str) -> String {
    use chips_protocol::text::is_bidi_control;
    name.trim().chars().filter(|c| !c.is_control() && !is_bidi_control(*c)).take(NAME).collect()
}

fn seal(body: &str, credential: &[u8; 32]) -> String {
    // Twice around, so that nothing can be added behind what was sealed.
    let inner = Sha256::new().chain_update(credential).chain_update(b"mcp session\0").chain_update(body).finalize();
    let outer = Sha256::new().chain_update(credential).chain_update(inner).finalize();
    hex(&outer[..SEAL])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const MINE: [u8; 32] = [7; 32];

    #[test]
    fn a_session_is_read_by_the_credential_that_opened_it_alone() {
        let session = Session::open("codex-mcp-client", &MINE, 1000);
        let again = Session::read(session.id(), &MINE, 2000).unwrap();
        assert_eq!((again.client(), again.tag()), ("codex-mcp-client", session.tag()));
        assert!(session.id().bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "visible ASCII, as the protocol asks");
        assert_eq!(Session::read(session.id(), &[8; 32], 2000), None);
        let longer = session.id().replace('.', "0.");
        for forged in [longer.as_str(), "", ".", "a.b.c.d", &session.id()[1..]] {
            assert_eq!(Session::read(forged, &MINE, 2000), None, "{forged}");
        }
    }

    #[test]
    fn a_session_ends_by_itself_and_no_two_are_one() {
        let session = Session::open("x", &MINE, 1000);
        assert!(Session::read(session.id(), &MINE, 999 + LIFETIME_S).is_some());
        assert_eq!(Session::read(session.id(), &MINE, 1000 + LIFETIME_S), None);
        assert_ne!(Session::open("x", &MINE, 1000).id(), session.id());
    }

    #[test]
    fn a_name_is_kept_as_it_can_be_shown() {
        let session = Session::open(" Zoë\u{202e}\n's client ", &MINE, 0);
        assert_eq!(Session::read(session.id(), &MINE, 1).unwrap().client(), "Zoë's client");
    }
}
