//! The idempotency keys of the log, in memory: where to look for the event that a key appended.
//!
//! Only hashes are kept, so a hit is a place to look and no proof: whoever takes one reads the event and compares
//! sender and key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::PoisonError;

use super::shared::Shared;
use crate::sql::{Connection, Result};
use chips_core::{Sender, Who};
use sha2::{Digest, Sha256};

/// From the hash of sender and key to the places of the events.
pub(crate) struct Keys {
    secret: [u8; 32],
    first: HashMap<i64, i64, BuildHasherDefault<Taken>>,
    /// The further places of hashes that two keys share.
    more: HashMap<i64, Vec<i64>>,
}

impl Keys {
    /// Reads every key of a file. Where several servers share a database the keys stay there, and only the secret is read.
    pub(crate) fn load(connection: &Connection) -> Result<Self> {
        let secret = connection.query_row("SELECT key_secret FROM meta", [], |row| row.get(0))?;
        if connection.is_postgres() {
            return Ok(Self { secret, first: HashMap::default(), more: HashMap::new() });
        }
        let count: i64 = connection.query_row("SELECT count(*) FROM keys", [], |row| row.get(0))?;
        let capacity = usize::try_from(count).unwrap_or_default();
        let first = HashMap::with_capacity_and_hasher(capacity, BuildHasherDefault::default());
        let mut keys = Self { secret, first, more: HashMap::new() };
        let mut statement = connection.prepare_cached("SELECT hash, pos FROM keys")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            keys.insert(row.get(0)?, row.get(1)?);
        }
        Ok(keys)
    }

    /// The hash of a sender's key.
    pub(crate) fn hash(&self, sender: &Sender, key: &str) -> i64 {
        let (kind, id) = match sender.who {
            Who::Person(id) => (b'p', id.to_bytes()),
            Who::Harness(id) => (b'h', id.to_bytes()),
        };
        let digest = Sha256::new()
            .chain_update(self.secret)
            .chain_update(sender.workspace_id.to_bytes())
            .chain_update([kind])
            .chain_update(id)
            .chain_update(key.as_bytes())
            .finalize();
        let mut hash = [0; 8];
        hash.copy_from_slice(&digest[..8]);
        i64::from_be_bytes(hash)
    }

    /// The places to look at for this hash.
    pub(crate) fn places(&self, hash: i64) -> impl Iterator<Item = i64> + '_ {
        let more = self.more.get(&hash).map(Vec::as_slice).unwrap_or_default();
        self.first.get(&hash).into_iter().chain(more).copied()
    }

    pub(crate) fn insert(&mut self, hash: i64, pos: i64) {
        match self.first.entry(hash) {
            Entry::Vacant(free) => {
                free.insert(pos);
            }
            Entry::Occupied(_) => self.more.entry(hash).or_default().push(pos),
        }
    }

    /// Takes back an insertion, the last one of its hash.
    pub(crate) fn remove(&mut self, hash: i64, pos: i64) {
        if let Some(more) = self.more.get_mut(&hash) {
            more.retain(|place| *place != pos);
            if more.is_empty() {
                self.more.remove(&hash);
            }
        }
        if self.first.get(&hash) == Some(&pos) {
            self.first.remove(&hash);
        }
    }
}

/// The places to look at for a sender's key: by the memory, or where several servers write, in the database.
pub(crate) fn places(
    connection: &Connection,
    shared: &Shared,
    ws_no: i64,
    sender: &Sender,
    key: &str,
) -> Result<Vec<i64>> {
    let hash = {
        let keys = shared.keys.read().unwrap_or_else(PoisonError::into_inner);
        let hash = keys.hash(sender, key);
        if !connection.is_postgres() {
            return Ok(keys.places(hash).collect());
        }
        hash
    };
    connection
        .prepare_cached("SELECT pos FROM keys WHERE ws_no = ?1 AND hash = ?2 ORDER BY pos")?
        .query_map((ws_no, hash), |row| row.get(0))?
        .collect()
}

/// Takes a number that is random already for its own hash.
#[derive(Default)]
pub(crate) struct Taken(u64);

impl Hasher for Taken {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 << 8) | u64::from(*byte);
        }
    }

    fn write_i64(&mut self, number: i64) {
        self.0 = number as u64;
    }
}

#[cfg(test)]
mod tests {
    use chips_protocol::{HarnessId, PersonId, WorkspaceId};

    use super::*;

    fn keys() -> Keys {
        Keys { secret: [7; 32], first: HashMap::default(), more: HashMap::new() }
    }

    #[test]
    fn keys_of_different_senders_and_workspaces_have_different_hashes() {
        let workspace_id = WorkspaceId::from_parts(1, 1);
        let harness = Sender { workspace_id, who: Who::Harness(HarnessId::from_parts(1, 1)) };
        let person = Sender { workspace_id, who: Who::Person(PersonId::from_parts(1, 1)) };
        let elsewhere = Sender { workspace_id: WorkspaceId::from_parts(1, 2), ..harness };
        let hashes = [
            keys().hash(&harness, "k"),
            keys().hash(&harness, "K"),
            keys().hash(&person, "k"),
            keys().hash(&elsewhere, "k"),
        ];
        let distinct: std::collections::HashSet<_> = hashes.into_iter().collect();
        assert_eq!(distinct.len(), hashes.len());
    }

    #[test]
    fn hashes_that_collide_keep_every_place_and_give_each_back() {
        let mut keys = keys();
        for pos in [10, 20, 30] {
            keys.insert(5, pos);
        }
        assert_eq!(keys.places(5).collect::<Vec<_>>(), [10, 20, 30]);
        keys.remove(5, 30);
        assert_eq!(keys.places(5).collect::<Vec<_>>(), [10, 20]);
        keys.remove(5, 20);
        keys.remove(5, 10);
        assert_eq!(keys.places(5).count(), 0);
    }
}
