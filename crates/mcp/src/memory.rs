//! What is remembered between calls.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chips_protocol::AskId;
use rmcp::model::RequestId;

/// Asks whose outcome is remembered as told. Chips remembers them too (`acknowledged_at`), a moment later.
const REMEMBERED: usize = 4096;
/// How many conversations may look for a question at the same time without waiting for each other, at best.
const LOCKS: usize = 64;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The asks whose outcome has gone out to the model.
#[derive(Debug, Default)]
pub(crate) struct Handed(Mutex<(HashSet<AskId>, VecDeque<AskId>)>);

impl Handed {
    pub fn contains(&self, ask_id: AskId) -> bool {
        lock(&self.0).0.contains(&ask_id)
    }

    pub fn insert(&self, ask_id: AskId) {
        let mut kept = lock(&self.0);
        if kept.0.insert(ask_id) {
            kept.1.push_back(ask_id);
        }
        if kept.1.len() > REMEMBERED
            && let Some(oldest) = kept.1.pop_front()
        {
            kept.0.remove(&oldest);
        }
    }

    pub fn remove(&self, ask_id: AskId) {
        let mut kept = lock(&self.0);
        kept.0.remove(&ask_id);
        kept.1.retain(|other| *other != ask_id);
    }
}

/// What all calls of one server share.
#[derive(Debug)]
pub(crate) struct Memory {
    pub handed: Arc<Handed>,
    asking: Vec<tokio::sync::Mutex<()>>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { handed: Arc::default(), asking: (0..LOCKS).map(|_| tokio::sync::Mutex::default()).collect() }
    }
}

impl Memory {
    /// Held from looking for a question to having asked it, so that two calls at the same time make one ask.
    pub async fn asking(&self, conversation: u64) -> tokio::sync::MutexGuard<'_, ()> {
        let which = usize::try_from(conversation % LOCKS as u64).unwrap_or_default();
        self.asking[which].lock().await
    }
}

/// Outcomes that are on their way out, by the request that they answer: the way out says when they have left.
#[derive(Debug, Clone, Default)]
pub(crate) struct Receipts(Arc<Mutex<HashMap<RequestId, AskId>>>);

impl Receipts {
    pub fn note(&self, request: RequestId, ask_id: AskId) {
        lock(&self.0).insert(request, ask_id);
    }

    pub fn take(&self, request: &RequestId) -> Option<AskId> {
        lock(&self.0).remove(request)
    }

    pub fn take_all(&self) -> Vec<AskId> {
        lock(&self.0).drain().map(|(_, ask_id)| ask_id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_remembered_within_bounds() {
        let handed = Handed::default();
        let id = |number: u64| AskId::from_parts(number, 0);
        for number in 0..=REMEMBERED as u64 {
            handed.insert(id(number));
        }
        assert!(!handed.contains(id(0)), "the oldest made room");
        assert!(handed.contains(id(1)) && handed.contains(id(REMEMBERED as u64)));
        handed.remove(id(1));
        assert!(!handed.contains(id(1)));
    }
}
