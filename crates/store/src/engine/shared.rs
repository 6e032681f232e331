//! What the writer and those who wait for it share: the newest records, wake-ups, and how the store fares.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use chips_protocol::{AskId, WorkspaceId};
use tokio::sync::{mpsc, oneshot, watch};

use super::figures::Figures;
use super::keys::Keys;
use super::lazy::Lazy;
use super::rehearse::Rehearsal;
use super::usage::Usages;
use crate::postgres::node::Node;
use crate::{Clock, DeadlineChange, EventsBatch, EventsQuery, Fatal, Identity, Record};

/// Records that a log keeps in memory at most.
const RING_RECORDS: usize = 4_096;
/// Bytes of JSON that a log keeps in memory at most.
const RING_BYTES: usize = 8 << 20;

/// Locks, whatever happened to a thread that held the lock: what is guarded here is whole after each statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shared by the writer, the readers and the threads beside them.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) log_id: String,
    pub(crate) keys: RwLock<Keys>,
    pub(crate) usages: Mutex<Usages>,
    pub(crate) waiters: Waiters,
    pub(crate) figures: Figures,
    pub(crate) lazy: Mutex<Lazy>,
    pub(crate) deadlines: mpsc::UnboundedSender<DeadlineChange>,
    /// The reason, once the store can't go on.
    pub(crate) failed: watch::Sender<Option<Fatal>>,
    /// The last epoch of administration that was seen.
    pub(crate) access: watch::Sender<u64>,
    /// Commits that appended something.
    pub(crate) appended: watch::Sender<u64>,
    pub(crate) rehearsal: Rehearsal,
    /// Why this process may not work on the database any more.
    pub(crate) outgrown: Arc<OnceLock<String>>,
    /// This process among those that share a database. A folder is one process's alone.
    pub(crate) node: Option<Node>,
    logs: RwLock<HashMap<WorkspaceId, Arc<Log>>>,
}

impl Shared {
    pub(crate) fn new(
        clock: Clock,
        log_id: String,
        keys: Keys,
        usages: Usages,
        epoch: u64,
        deadlines: mpsc::UnboundedSender<DeadlineChange>,
        node: Option<Node>,
    ) -> Self {
        Self {
            clock,
            log_id,
            keys: RwLock::new(keys),
            usages: Mutex::new(usages),
            waiters: Waiters::default(),
            figures: Figures::default(),
            lazy: Mutex::default(),
            deadlines,
            failed: watch::Sender::new(None),
            access: watch::Sender::new(epoch),
            appended: watch::Sender::new(0),
            rehearsal: Rehearsal::default(),
            outgrown: Arc::default(),
            node,
            logs: RwLock::default(),
        }
    }

    /// The log of a workspace. One that is not known yet is empty: those that had events were told at the start.
    pub(crate) fn log(&self, workspace_id: WorkspaceId) -> Arc<Log> {
        self.log_from(workspace_id, 0)
    }

    /// The log of a workspace whose last event has this `seq`.
    pub(crate) fn log_from(&self, workspace_id: WorkspaceId, head: u64) -> Arc<Log> {
        let known = self.logs.read().unwrap_or_else(PoisonError::into_inner).get(&workspace_id).map(Arc::clone);
        known.unwrap_or_else(|| {
            let mut logs = self.logs.write().unwrap_or_else(PoisonError::into_inner);
            let log = logs.entry(workspace_id).or_insert_with(|| Arc::new(Log::new(head)));
            Arc::clone(log)
        })
    }

    /// Lets go of every record in memory: what it says in the file was changed.
    pub(crate) fn let_go(&self) {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        logs.values().for_each(|log| log.let_go());
    }

    /// Says that the store can't go on.
    pub(crate) fn fail(&self, reason: String) {
        tracing::error!(reason, "the store has failed");
        self.figures.writable.store(false, Ordering::Relaxed);
        self.failed.send_if_modified(|failed| {
            let first = failed.is_none();
            if first {
                *failed = Some(Fatal(reason));
            }
            first
        });
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.borrow().is_some()
    }
}

/// The newest records of one workspace, and the wake-up for those who wait for more.
pub(crate) struct Log {
    head: watch::Sender<u64>,
    /// The `seq` that the log begins with.
    kept_from: AtomicU64,
    /// Held by whoever adds records, where more than one thread does.
    feed: Mutex<()>,
    ring: RwLock<Ring>,
}

#[derive(Default)]
struct Ring {
    /// Consecutive, up to the head.
    records: VecDeque<Arc<Record>>,
    bytes: usize,
    /// The `seq` of the last record that was added, kept or not.
    last: u64,
}

impl Log {
    fn new(head: u64) -> Self {
        let ring = Ring { last: head, ..Ring::default() };
        Self {
            head: watch::Sender::new(head),
            kept_from: AtomicU64::new(1),
            feed: Mutex::default(),
            ring: RwLock::new(ring),
        }
    }

    /// The `seq` of the last event that was told of.
    pub(crate) fn head(&self) -> u64 {
        *self.head.borrow()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    /// Adds a committed record. Readers see it at once; [`Log::wake`] tells those who wait.
    pub(crate) fn push(&self, record: Arc<Record>) {
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        ring.bytes += record.json.len();
        ring.last = record.seq;
        ring.records.push_back(record);
        while ring.records.len() > RING_RECORDS || (ring.bytes > RING_BYTES && ring.records.len() > 1) {
            let Some(oldest) = ring.records.pop_front() else { break };
            ring.bytes -= oldest.json.len();
        }
    }

    /// The `seq` that the log begins with.
    pub(crate) fn kept_from(&self) -> u64 {
        self.kept_from.load(Ordering::SeqCst)
    }

    /// Has the log begin with this `seq`; it never begins earlier again.
    pub(crate) fn keep_from(&self, seq: u64) {
        self.kept_from.fetch_max(seq, Ordering::SeqCst);
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        while let Some(oldest) = ring.records.front().map(Arc::clone).filter(|oldest| oldest.seq < seq) {
            ring.bytes -= oldest.json.len();
            ring.records.pop_front();
        }
    }

    /// Forgets every record; they are read from the file from now on.
    fn let_go(&self) {
        let _feed = self.feed();
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        *ring = Ring { last: ring.last, ..Ring::default() };
    }

    /// Keeps others from adding records. Whoever adds reads in the log what comes next, or knows that it does.
    pub(crate) fn feed(&self) -> MutexGuard<'_, ()> {
        lock(&self.feed)
    }

    /// The `seq` of the last record that was added.
    pub(crate) fn last(&self) -> u64 {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).last
    }

    /// Says that what comes up to this `seq` is not kept any more: the next record follows it.
    pub(crate) fn skip_to(&self, seq: u64) {
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        *ring = Ring { last: seq, ..Ring::default() };
    }

    pub(crate) fn wake(&self) {
        let last = self.last();
        self.head.send_if_modified(|head| std::mem::replace(head, last.max(*head)) < last);
    }

    /// The record with this `seq`, where it is still in memory.
    pub(crate) fn record(&self, seq: u64) -> Option<Arc<Record>> {
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        let first = ring.records.front()?.seq;
        ring.records.get(usize::try_from(seq.checked_sub(first)?).ok()?).map(Arc::clone)
    }

    /// What fits the query, where everything after `query.after` is in memory.
    pub(crate) fn read(&self, viewer: &Identity, query: &EventsQuery) -> Option<EventsBatch> {
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        let (first, head) = (ring.records.front()?.seq, ring.records.back()?.seq);
        if query.after > head {
            return None;
        }
        let skipped = usize::try_from((query.after + 1).checked_sub(first)?).ok()?;
        let mut batch = EventsBatch { records: Vec::new(), through: head, head, kept_from: self.kept_from() };
        for record in ring.records.range(skipped..) {
            if fits(record, viewer, query) {
                if batch.records.len() >= query.limit {
                    batch.through = record.seq - 1;
                    break;
                }
                batch.records.push(Arc::clone(record));
            }
        }
        Some(batch)
    }
}

fn fits(record: &Record, viewer: &Identity, query: &EventsQuery) -> bool {
    let event = &record.event;
    viewer.access.sees(record.harness_id, event.envelope.space_id)
        && query.event_type.is_none_or(|wanted| event.content.event_type() == wanted)
        && query.run_id.is_none_or(|wanted| event.envelope.run_id == wanted)
        && query.ask_id.is_none_or(|wanted| event.content.ask_id() == wanted)
}

/// Those who wait for an ask to close.
#[derive(Default)]
pub(crate) struct Waiters {
    inner: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    by_ask: HashMap<(WorkspaceId, AskId), Vec<oneshot::Sender<()>>>,
    /// Entries after which those that nobody waits on any more are looked for.
    sweep_at: usize,
    ended: bool,
}

impl Waiters {
    pub(crate) fn add(&self, workspace_id: WorkspaceId, ask_id: AskId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = lock(&self.inner);
        // A store that has ended drops the sender, which resolves the receiver.
        if !waiting.ended {
            if waiting.by_ask.len() >= waiting.sweep_at {
                waiting.by_ask.retain(|_, waiters| waiters.iter().any(|waiter| !waiter.is_closed()));
                waiting.sweep_at = 2 * waiting.by_ask.len() + 64;
            }
            let waiters = waiting.by_ask.entry((workspace_id, ask_id)).or_default();
            waiters.retain(|waiter| !waiter.is_closed());
            waiters.push(sender);
        }
        receiver
    }

    pub(crate) fn closed(&self, workspace_id: WorkspaceId, ask_id: AskId) {
        let waiters = lock(&self.inner).by_ask.remove(&(workspace_id, ask_id));
        for waiter in waiters.into_iter().flatten() {
            // Whoever has left needs no wake-up.
            let _ = waiter.send(());
        }
    }

    /// Resolves every wait, now and from now on.
    pub(crate) fn end(&self) {
        let mut waiting = lock(&self.inner);
        waiting.ended = true;
        waiting.by_ask.clear();
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.inner).by_ask.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_wait_that_was_given_up_is_forgotten() {
        let waiters = Waiters::default();
        let workspace = WorkspaceId::from_parts(1, 1);
        for round in 0..1_000 {
            drop(waiters.add(workspace, AskId::from_parts(1, round)));
        }
        assert!(waiters.len() <= 64, "{}", waiters.len());
        for _ in 0..1_000 {
            drop(waiters.add(workspace, AskId::from_parts(2, 0)));
        }
        assert!(lock(&waiters.inner).by_ask[&(workspace, AskId::from_parts(2, 0))].len() <= 1);
    }

    #[test]
    fn a_wait_resolves_when_the_ask_closes_and_when_the_store_ends() {
        let waiters = Waiters::default();
        let (workspace, ask) = (WorkspaceId::from_parts(1, 1), AskId::from_parts(1, 1));
        let mut first = waiters.add(workspace, ask);
        let mut other = waiters.add(workspace, AskId::from_parts(1, 2));
        waiters.closed(workspace, ask);
        assert_eq!(first.try_recv(), Ok(()));
        assert_eq!(other.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        waiters.end();
        assert_eq!(other.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(waiters.add(workspace, ask).try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    fn record(seq: u64, bytes: usize) -> Arc<Record> {
        use chips_protocol::{Content, Envelope, EventId, Participant, QuestionAnswered, RunId};
        let content = QuestionAnswered {
            ask_id: AskId::from_parts(1, 1),
            answers: Vec::new(),
            answered_by: chips_protocol::ParticipantId::System,
            answered_at: chips_protocol::Timestamp::default(),
            timed_out: None,
        };
        let envelope = Envelope {
            id: EventId::from_parts(1, u128::from(seq)),
            ts: chips_protocol::Timestamp::default(),
            workspace_id: WorkspaceId::from_parts(1, 1),
            space_id: None,
            actor: Participant::System.actor(),
            run_id: RunId::from_parts(1, 1),
            seq: Some(seq),
            idempotency_key: None,
        };
        let event = chips_protocol::Event { envelope, content: Content::QuestionAnswered(content) };
        let harness_id = chips_protocol::HarnessId::from_parts(1, 1);
        Arc::new(Record { seq, harness_id, event: Arc::new(event), json: vec![b' '; bytes].into() })
    }

    fn viewer(harness: u128) -> Identity {
        let harness = chips_protocol::HarnessId::from_parts(1, harness);
        let workspace_id = WorkspaceId::from_parts(1, 1);
        let sender = chips_core::Sender { workspace_id, who: chips_core::Who::Harness(harness) };
        Identity { sender, name: String::new(), access: chips_core::Access::Harness(harness), owner: false }
    }

    fn seqs(batch: &EventsBatch) -> Vec<u64> {
        batch.records.iter().map(|record| record.seq).collect()
    }

    #[test]
    fn memory_holds_the_newest_records_and_says_where_it_has_none() {
        let log = Log::new(100);
        let query = |after| EventsQuery { after, limit: 3, ..EventsQuery::default() };
        assert_eq!(log.read(&viewer(1), &query(100)), None);
        for seq in 101..=100 + 5_000 {
            log.push(record(seq, 10));
        }
        log.wake();
        assert_eq!(log.head(), 5_100);
        let oldest = 5_100 - RING_RECORDS as u64 + 1;
        assert_eq!(log.record(oldest - 1), None);
        assert_eq!(log.record(oldest).map(|record| record.seq), Some(oldest));
        assert_eq!(log.record(5_101), None);

        assert_eq!(log.read(&viewer(1), &query(oldest - 2)), None);
        let batch = log.read(&viewer(1), &query(oldest - 1)).unwrap();
        assert_eq!(
            (seqs(&batch), batch.through, batch.head),
            (vec![oldest, oldest + 1, oldest + 2], oldest + 2, 5_100)
        );
        let batch = log.read(&viewer(1), &query(5_098)).unwrap();
        assert_eq!((seqs(&batch), batch.through), (vec![5_099, 5_100], 5_100));
        let batch = log.read(&viewer(1), &query(5_100)).unwrap();
        assert_eq!((seqs(&batch), batch.through), (vec![], 5_100));
        assert_eq!(log.read(&viewer(1), &query(5_101)), None);
        // What is not the viewer's is looked through all the same.
        let batch = log.read(&viewer(2), &query(oldest)).unwrap();
        assert_eq!((seqs(&batch), batch.through), (vec![], 5_100));
    }

    #[test]
    fn memory_is_bounded_in_bytes_and_holds_at_least_the_last_record() {
        let log = Log::new(0);
        for seq in 1..=10 {
            log.push(record(seq, RING_BYTES / 4));
        }
        assert_eq!((log.record(6), log.record(7).map(|record| record.seq)), (None, Some(7)));
        log.push(record(11, 2 * RING_BYTES));
        assert_eq!((log.record(10), log.record(11).map(|record| record.seq)), (None, Some(11)));
    }
}
