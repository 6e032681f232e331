//! Answers that are tapped beside a message: a token in an address, good for one option of one question.
//!
//! The token is all that the tap proves, so it says everything: the question, the option, the person and the endpoint that the
//! message went to. Chips signs it and keeps nothing of it. It is worth nothing once the question is closed (the first answer
//! wins, as everywhere), once the endpoint is removed, once the person may not sign in any more, and when its time is over.

use chips_protocol::api::Ask;
use chips_protocol::{AskId, Draft, EventId, PersonId, Timestamp, WorkspaceId, validate};
use chips_store::{Notice, Store, WriteError};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::seal::Seal;

/// How long a tap is good for where its question has no deadline, and how long after a deadline it is kept as an answer that
/// came too late; in milliseconds.
pub(crate) const LONGEST_MS: i64 = 7 * 24 * 3600 * 1000;
/// Where a tap is good for as long as its question is open.
pub(crate) const LATEST: Timestamp = Timestamp::from_ms(i64::MAX);

/// What a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tap {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The ask; its first question is the one that is answered.
    pub ask_id: AskId,
    /// Who answers.
    pub person: PersonId,
    /// The endpoint that the message went to.
    pub endpoint_id: i64,
    /// After this it answers nothing: the deadline, where there is one.
    pub expires: Timestamp,
    /// Which option, from 0.
    pub option: u8,
}

/// Makes and reads the tokens. Cheap to clone.
#[derive(Clone)]
pub struct Taps(Seal);

impl Taps {
    /// With the key that this store keeps.
    pub fn new(store: Store) -> Self {
        Self(Seal::new(store, "taps", b"chips tap 1\n"))
    }

    /// The token for an option of the notice's question, for whoever the notice goes to.
    ///
    /// # Errors
    /// The key can't be had, or there is nobody to answer.
    pub async fn token(&self, notice: &Notice, option: usize) -> Result<String, String> {
        let chips_protocol::ParticipantId::Person(person) = notice.owner.id else {
            return Err("only a person can answer".to_owned());
        };
        let tap = Tap {
            workspace_id: notice.workspace_id,
            ask_id: notice.ask.ask_id,
            person,
            endpoint_id: notice.endpoint.endpoint_id,
            expires: notice.ask.deadline.unwrap_or_else(|| self.0.store().clock().now().plus_ms(LONGEST_MS)),
            option: u8::try_from(option).map_err(|error| error.to_string())?,
        };
        self.0.seal(&tap.bytes()).await.map_err(|error| error.to_string())
    }

    /// What a token stands for; nothing where Chips did not make it.
    ///
    /// # Errors
    /// The key can't be had.
    pub async fn read(&self, token: &str) -> Result<Option<Tap>, WriteError> {
        Ok(self.0.open(token).await?.as_deref().and_then(Tap::of))
    }
}

impl Tap {
    const LEN: usize = 16 + 16 + 16 + 8 + 8 + 1;

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::LEN);
        for id in [self.workspace_id.to_bytes(), self.ask_id.to_bytes(), self.person.to_bytes()] {
            bytes.extend_from_slice(&id);
        }
        for number in [self.endpoint_id, self.expires.ms()] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.push(self.option);
        bytes
    }

    fn of(said: &[u8]) -> Option<Self> {
        if said.len() != Self::LEN {
            return None;
        }
        let (ids, numbers) = said.split_at(48);
        let id = |at: usize| ids.get(at..at + 16)?.try_into().ok();
        let number = |at: usize| numbers.get(at..at + 8)?.try_into().ok().map(i64::from_be_bytes);
        Some(Self {
            workspace_id: WorkspaceId::from_bytes(id(0)?),
            ask_id: AskId::from_bytes(id(16)?),
            person: PersonId::from_bytes(id(32)?),
            endpoint_id: number(0)?,
            expires: Timestamp::from_ms(number(8)?),
            option: *numbers.last()?,
        })
    }

    /// The answer as a client would write it. The same tap is the same write, however often it comes.
    pub(crate) fn draft(&self, ask: &Ask) -> Option<Draft> {
        let question = ask.ask.as_ask()?.questions.first()?;
        let option = question.options.get(usize::from(self.option))?;
        let hash = Sha256::digest(self.bytes());
        let random = <[u8; 16]>::try_from(&hash[..16]).ok()?;
        let ms = u64::try_from(ask.ask.envelope.ts.ms()).unwrap_or_default();
        let id = EventId::from_parts(ms, u128::from_be_bytes(random));
        let event = json!({
            "v": 1,
            "type": "question.answered",
            "id": id,
            "workspace_id": self.workspace_id,
            "run_id": ask.ask.envelope.run_id,
            "idempotency_key": format!("tap-{}", id.ulid()),
            "actor": { "kind": "person", "id": self.person },
            "ask_id": self.ask_id,
            "answers": [{ "question_id": question.question_id, "values": [option.value] }],
        });
        validate::draft(&event)
            .inspect_err(
                |faults| tracing::warn!(faults = faults.len(), ask_id = %self.ask_id, "a tapped answer does not fit"),
            )
            .ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn tap() -> Tap {
        Tap {
            workspace_id: WorkspaceId::from_parts(1, 1),
            ask_id: AskId::from_parts(2, 2),
            person: PersonId::from_parts(3, 3),
            endpoint_id: 4,
            expires: Timestamp::from_ms(1_790_000_000_000),
            option: 1,
        }
    }

    #[test]
    fn a_token_says_all_that_a_tap_stands_for() {
        let bytes = tap().bytes();
        assert_eq!((bytes.len(), Tap::of(&bytes)), (Tap::LEN, Some(tap())));
        assert_eq!((Tap::of(&bytes[1..]), Tap::of(&[bytes.as_slice(), b"0"].concat())), (None, None));
    }
}
