//! Whose chat it is: a link that a person opens in Telegram, made in their settings, says who they are.

use chips_protocol::{PersonId, Timestamp};
use chips_store::{Store, WriteError};

use crate::channels::seal::Seal;

/// How long a link is good for, in milliseconds.
const GOOD_MS: i64 = 15 * 60_000;

/// What a link says. With its signature it is short enough for Telegram, which takes 64 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Whose it is.
    pub person: PersonId,
    /// When it was made.
    pub made: Timestamp,
    /// The language of the page that it was made on.
    pub lang: String,
}

/// Makes and reads them. Cheap to clone.
#[derive(Clone)]
pub struct Links(Seal);

impl Links {
    /// With the key that this store keeps.
    pub fn new(store: Store) -> Self {
        Self(Seal::new(store, "telegram", b"chips telegram 1\n"))
    }

    /// The text of a new link for a person who reads this language.
    ///
    /// # Errors
    /// The key can't be had.
    pub async fn make(&self, person: PersonId, lang: &str) -> Result<String, WriteError> {
        let made = self.0.store().clock().now();
        self.0.seal(&[person.to_bytes().as_slice(), &made.ms().to_be_bytes(), lang.as_bytes()].concat()).await
    }

    /// What a text says; nothing where Chips did not make it, or where its time is over.
    pub(crate) async fn read(&self, text: &str) -> Result<Option<Link>, WriteError> {
        let said = self.0.open(text).await?;
        let now = self.0.store().clock().now();
        Ok(said.as_deref().and_then(read).filter(|link| now < link.made.plus_ms(GOOD_MS)))
    }
}

fn read(said: &[u8]) -> Option<Link> {
    let (person, rest) = said.split_first_chunk()?;
    let (made, lang) = rest.split_first_chunk()?;
    Some(Link {
        person: PersonId::from_bytes(*person),
        made: Timestamp::from_ms(i64::from_be_bytes(*made)),
        lang: String::from_utf8(lang.to_vec()).ok()?,
    })
}
