//! How the store works, over either database: one thread that writes, readers on their own connections.

mod asks;
pub(crate) mod endpoints;
mod events;
pub(crate) mod figures;
pub(crate) mod keys;
pub(crate) mod lazy;
mod outbox;
pub(crate) mod pool;
mod random;
pub mod rehearse;
mod retain;
pub(crate) mod rows;
mod runs;
mod seen;
pub(crate) mod shared;
mod sign_in;
mod start;
mod submit;
mod task;
pub(crate) mod usage;
mod view;
pub(crate) mod watcher;
pub(crate) mod work;
pub(crate) mod writer;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender as Queue;
use std::thread::JoinHandle;
use std::time::Duration;

use super::*;
use crate::postgres::node;
use crate::postgres::tail::Tail;
use crate::sqlite::folder;
use pool::Pool;
use rehearse::Rehearsal;
use shared::{Shared, lock};
use watcher::Watcher;
use writer::{Call, Command, Message};

/// Bytes that must be left on the disk for writes to be promised: some of the largest events.
pub const LEAST_ROOM: u64 = 1 << 20;

/// How long whoever writes waits for a database server: longer than that one waits for a lock.
const WRITTEN_WITHIN: Duration = Duration::from_secs(15);
/// How long whoever collects figures waits for those that only a database server knows: less than collectors wait themselves.
const COUNTED_WITHIN: Duration = Duration::from_secs(3);

/// An open store.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    location: Location,
    shared: Arc<Shared>,
    pool: Pool,
    queue: Queue<Message>,
    deadlines: Mutex<Option<mpsc::UnboundedReceiver<DeadlineChange>>>,
    threads: Mutex<Option<(JoinHandle<()>, Beside)>>,
}

/// What runs beside the writer: it looks for what other processes changed.
enum Beside {
    /// In a folder, administration alone.
    Watcher(Watcher),
    /// In a shared database, other servers as well.
    Tail(Tail),
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The watcher can send as well, so the writer would not see that nobody else is left. One that has ended is fine.
        let _ = self.queue.send(Message::Close);
    }
}

impl Engine {
    pub(crate) fn open(location: &Location, options: Options) -> Result<Self, OpenError> {
        start::open(location, &options).map(|inner| Self { inner: Arc::new(inner) })
    }

    pub(crate) async fn close(self) {
        let inner = Arc::clone(&self.inner);
        let ended = tokio::task::spawn_blocking(move || {
            inner.pool.close();
            let threads = lock(&inner.threads).take();
            if let Some((writer, beside)) = threads {
                let tail = match beside {
                    Beside::Watcher(watcher) => {
                        watcher.end();
                        None
                    }
                    Beside::Tail(tail) => Some(tail.stop()),
                };
                // A writer that has ended by itself has said why.
                let _ = inner.queue.send(Message::Close);
                if writer.join().is_err() {
                    tracing::warn!("the writing thread panicked");
                }
                if let Some(tail) = tail {
                    tail.end();
                }
            }
        });
        if ended.await.is_err() {
            tracing::warn!("closing the store was cut short");
        }
    }

    pub(crate) async fn failed(&self) -> Fatal {
        let mut failed = self.inner.shared.failed.subscribe();
        // Cloned at once: the guard that comes back must not be held over the other await.
        let fatal = failed.wait_for(Option::is_some).await.ok().and_then(|fatal| fatal.clone());
        match fatal {
            Some(fatal) => fatal,
            // The sender lives as long as this store, so this is never reached; waiting on is right where nothing failed.
            None => std::future::pending().await,
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.shared.clock
    }

    pub(crate) fn log_id(&self) -> &str {
        &self.inner.shared.log_id
    }

    pub(crate) fn access_changes(&self) -> watch::Receiver<u64> {
        self.inner.shared.access.subscribe()
    }

    pub(crate) fn rehearsal(&self) -> &Rehearsal {
        &self.inner.shared.rehearsal
    }

    /// Has the writer carry a command out.
    async fn write<C: Command>(&self, command: C) -> Result<C::Done, WriteError> {
        let (reply, told) = oneshot::channel();
        let shared = Arc::clone(&self.inner.shared);
        shared.figures.queued.fetch_add(1, Ordering::Relaxed);
        let call = Call { command, outcome: None, reply, span: tracing::Span::current(), shared };
        if self.inner.queue.send(Message::Task(Box::new(call))).is_err() {
            return Err(self.gone());
        }
        let told = pool::within(&self.inner.location, WRITTEN_WITHIN, told).await;
        let silent = || WriteError::Unavailable { reason: pool::NO_ANSWER.to_owned(), retry_after_s: 5 };
        told.ok_or_else(silent)?.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Why the writer does not answer.
    fn gone(&self) -> WriteError {
        if self.inner.shared.has_failed() {
            return WriteError::Failed;
        }
        WriteError::Unavailable { reason: "the store is closed".to_owned(), retry_after_s: 1 }
    }

    fn note(&self, add: impl FnOnce(&mut lazy::Lazy)) {
        if self.inner.shared.note(add) {
            // Notes may be lost with the writer.
            let _ = self.inner.queue.send(Message::Notes);
        }
    }

    pub(crate) async fn submit(&self, sender: Sender, draft: Draft) -> Result<Submitted, WriteError> {
        // Whatever is logged of the request from here on names the ask: what becomes of it later is found by that.
        tracing::Span::current().record("ask_id", tracing::field::display(draft.content.ask_id()));
        self.write(submit::Submit { sender, draft }).await
    }

    pub(crate) async fn replay_by_key(&self, sender: Sender, key: &str) -> Result<Option<Arc<Record>>, StoreError> {
        let (shared, key) = (Arc::clone(&self.inner.shared), key.to_owned());
        let find = move |connection: &crate::sql::Connection| {
            let Some(ws_no) = rows::workspace_no(connection, sender.workspace_id)? else { return Ok(None) };
            for pos in keys::places(connection, &shared, ws_no, &sender, &key)? {
                // One that is not there yet was staged and is not committed: it is nobody's accepted write so far.
                if let Some(record) = rows::record_at(connection, pos)?
                    && work::is_write_of(&record.event, &sender, &key)
                {
                    return Ok(Some(record));
                }
            }
            Ok(None)
        };
        self.inner.pool.read(find).await
    }

    pub(crate) async fn expire(&self, workspace_id: WorkspaceId, ask_id: AskId) -> Result<bool, WriteError> {
        self.write(submit::Expire { workspace_id, ask_id }).await
    }

    pub(crate) async fn open_run(&self, sender: Sender, run: NewRun) -> Result<(Run, bool), WriteError> {
        self.write(runs::OpenRun { sender, run }).await
    }

    pub(crate) async fn end_run(&self, sender: Sender, run_id: RunId) -> Result<Run, WriteError> {
        self.write(runs::EndRun { sender, run_id }).await
    }

    pub(crate) async fn acknowledge(&self, sender: Sender, ask_id: AskId) -> Result<Ask, WriteError> {
        self.write(runs::Acknowledge { sender, ask_id }).await
    }

    pub(crate) fn renew_lease(&self, sender: Sender, of: LeaseOf) {
        let now = self.clock().now();
        self.note(|lazy| {
            lazy.heard.insert((sender, of), now);
        });
    }

    pub(crate) fn mark_delivered(&self, workspace_id: WorkspaceId, ask_id: AskId) {
        let now = self.clock().now();
        self.note(|lazy| {
            lazy.delivered.entry((workspace_id, ask_id)).or_insert(now);
        });
    }

    pub(crate) fn mark_seen(&self, workspace_id: WorkspaceId, ask_id: AskId, person: PersonId) {
        let now = self.clock().now();
        self.note(|lazy| {
            lazy.seen.entry((workspace_id, ask_id, person)).or_insert(now);
        });
    }

    pub(crate) async fn seen(&self, viewer: &Identity, ask_id: AskId) -> Result<Option<Vec<Sighting>>, StoreError> {
        let (viewer, now) = (viewer.clone(), self.clock().now());
        self.inner.pool.read(move |connection| seen::list(connection, &viewer, ask_id, now)).await
    }

    pub(crate) async fn names(&self, workspace_id: WorkspaceId) -> Result<HashMap<PersonId, String>, StoreError> {
        self.inner.pool.read(move |connection| seen::names(connection, workspace_id)).await
    }

    pub(crate) async fn askers(&self, viewer: &Identity) -> Result<Vec<(HarnessId, String)>, StoreError> {
        let viewer = viewer.clone();
        self.inner.pool.read(move |connection| seen::askers(connection, &viewer)).await
    }

    pub(crate) fn head(&self, workspace_id: WorkspaceId) -> watch::Receiver<u64> {
        self.inner.shared.log(workspace_id).subscribe()
    }

    pub(crate) async fn head_for(&self, workspace_id: WorkspaceId, seen: u64) -> Result<u64, StoreError> {
        let log = self.inner.shared.log(workspace_id);
        if seen > log.head() && self.inner.shared.node.is_some() {
            let shared = Arc::clone(&self.inner.shared);
            let read = move |connection: &crate::sql::Connection| match rows::workspace_no(connection, workspace_id)? {
                Some(ws_no) => node::follow(connection, &shared, workspace_id, ws_no, &shared.log(workspace_id)),
                None => Ok(()),
            };
            self.inner.pool.read(read).await?;
        }
        Ok(log.head())
    }

    pub(crate) fn kept_from(&self, workspace_id: WorkspaceId) -> u64 {
        self.inner.shared.log(workspace_id).kept_from()
    }

    pub(crate) async fn drop_older(
        &self,
        before: Timestamp,
        place: DropPlace,
    ) -> Result<(u64, Option<DropPlace>), WriteError> {
        match place {
            DropPlace::Log(after) => {
                let find = move |connection: &crate::sql::Connection| retain::cut(connection, after, before);
                match self.inner.pool.read(find).await.map_err(unread)? {
                    Some(cut) => {
                        let next = cut.place();
                        Ok((self.write(retain::BeginLater(cut)).await?, Some(next)))
                    }
                    None => Ok((0, Some(DropPlace::Runs(0)))),
                }
            }
            DropPlace::Asks(ws_no, after) => {
                let next = self.write(retain::DeleteAsks { ws_no, after }).await?;
                Ok((0, Some(next.map_or(DropPlace::Log(ws_no), |after| DropPlace::Asks(ws_no, after)))))
            }
            DropPlace::Runs(after) => {
                let next = self.write(retain::DeleteRuns { after, before }).await?;
                Ok((0, next.map(DropPlace::Runs)))
            }
        }
    }

    pub(crate) fn closing(&self, workspace_id: WorkspaceId, ask_id: AskId) -> oneshot::Receiver<()> {
        self.inner.shared.waiters.add(workspace_id, ask_id)
    }

    pub(crate) fn deadlines(&self) -> Option<mpsc::UnboundedReceiver<DeadlineChange>> {
        lock(&self.inner.deadlines).take()
    }

    pub(crate) async fn authenticate(&self, token_sha256: [u8; 32]) -> Result<Option<Identity>, StoreError> {
        let now = self.clock().now();
        self.inner.pool.read_one(move |connection| sign_in::by_token(connection, token_sha256, now)).await
    }

    pub(crate) async fn events(&self, viewer: &Identity, query: &EventsQuery) -> Result<EventsBatch, StoreError> {
        let log = self.inner.shared.log(viewer.sender.workspace_id);
        if let Some(batch) = log.read(viewer, query) {
            return Ok(batch);
        }
        let (viewer, query, head) = (viewer.clone(), query.clone(), log.head());
        self.inner.pool.read(move |connection| events::read(connection, &viewer, &query, head)).await
    }

    pub(crate) async fn asks(&self, viewer: &Identity, query: &AsksQuery) -> Result<AsksPage, StoreError> {
        let head = self.inner.shared.log(viewer.sender.workspace_id).head();
        let mut list = asks::List::new(viewer.clone(), query.clone(), self.clock().clone(), head);
        loop {
            list = self.inner.pool.read(move |connection| list.step(connection)).await?;
            if list.is_done() {
                return Ok(list.page());
            }
        }
    }

    pub(crate) async fn ask(&self, viewer: &Identity, ask_id: AskId) -> Result<Option<Ask>, StoreError> {
        let (viewer, now) = (viewer.clone(), self.clock().now());
        self.inner.pool.read(move |connection| view::ask(connection, &viewer, ask_id, now)).await
    }

    pub(crate) async fn run(&self, viewer: &Identity, run_id: RunId) -> Result<Option<Run>, StoreError> {
        let viewer = viewer.clone();
        self.inner.pool.read(move |connection| view::run(connection, &viewer, run_id)).await
    }

    pub(crate) async fn me(&self, viewer: &Identity) -> Result<Me, StoreError> {
        let (viewer, shared) = (viewer.clone(), Arc::clone(&self.inner.shared));
        self.inner.pool.read(move |connection| view::me(connection, &viewer, &shared)).await
    }

    pub(crate) async fn sign_in_state(&self, link_sha256: [u8; 32]) -> Result<SignInState, StoreError> {
        let now = self.clock().now();
        self.inner.pool.read(move |connection| sign_in::state(connection, &Proof::Link(link_sha256), now)).await
    }

    pub(crate) async fn sign_in(&self, proof: Proof, device: Device) -> Result<SignedIn, WriteError> {
        self.write(sign_in::SignIn { proof, device }).await
    }

    pub(crate) async fn session(&self, session_sha256: [u8; 32]) -> Result<Option<Session>, StoreError> {
        let now = self.clock().now();
        let session = self.inner.pool.read(move |connection| sign_in::session(connection, session_sha256, now)).await?;
        if let Some(session) = &session
            && sign_in::is_due(session, now)
        {
            self.note(|lazy| {
                lazy.used.insert(session.session_id, now);
            });
        }
        Ok(session)
    }

    pub(crate) async fn sessions(&self, viewer: &Identity) -> Result<Vec<Session>, StoreError> {
        let (viewer, now) = (viewer.clone(), self.clock().now());
        self.inner.pool.read(move |connection| sign_in::sessions(connection, &viewer, now)).await
    }

    pub(crate) async fn end_session(&self, viewer: &Identity, session_id: i64) -> Result<(), WriteError> {
        self.write(sign_in::EndSession { who: viewer.sender.who, session_id }).await
    }

    pub(crate) fn appended(&self) -> watch::Receiver<u64> {
        self.inner.shared.appended.subscribe()
    }

    pub(crate) async fn plan_notices(&self, in_sight: &BTreeSet<i64>) -> Result<(), WriteError> {
        for workspace_id in self.inner.pool.read(outbox::behind).await.map_err(unread)? {
            while self.write(outbox::Plan { workspace_id, in_sight: in_sight.clone() }).await? {}
        }
        Ok(())
    }

    pub(crate) async fn claim_notices(&self, limit: usize) -> Result<Vec<Notice>, WriteError> {
        self.write(outbox::Claim { limit }).await
    }

    pub(crate) async fn record_attempt(
        &self,
        notice: &Notice,
        outcome: Outcome,
        jitter: f64,
    ) -> Result<(), WriteError> {
        let &Notice { workspace_id, no, .. } = notice;
        self.write(outbox::Record { workspace_id, no, outcome, jitter }).await
    }

    pub(crate) async fn next_notice(&self) -> Result<Option<Timestamp>, StoreError> {
        self.inner.pool.read(outbox::next_due).await
    }

    pub(crate) async fn attempts(&self, viewer: &Identity, ask_id: AskId) -> Result<Option<Vec<Attempt>>, StoreError> {
        let (viewer, now) = (viewer.clone(), self.clock().now());
        self.inner.pool.read(move |connection| endpoints::attempts(connection, &viewer, ask_id, now)).await
    }

    pub(crate) async fn endpoints(&self, viewer: &Identity) -> Result<Vec<Endpoint>, StoreError> {
        let (who, now) = (viewer.sender.who, self.clock().now());
        self.inner.pool.read(move |connection| endpoints::list(connection, who, now)).await
    }

    pub(crate) async fn endpoint_of(&self, endpoint_id: i64) -> Result<Option<(Endpoint, Identity)>, StoreError> {
        let now = self.clock().now();
        self.inner.pool.read(move |connection| endpoints::personal(connection, endpoint_id, now)).await
    }

    pub(crate) async fn endpoint_at(
        &self,
        channel: Channel,
        address: &str,
    ) -> Result<Option<(Endpoint, Identity)>, StoreError> {
        let (address, now) = (address.to_owned(), self.clock().now());
        self.inner.pool.read(move |connection| endpoints::personal_at(connection, channel, &address, now)).await
    }

    pub(crate) async fn person(&self, person: PersonId) -> Result<Option<Identity>, StoreError> {
        self.inner.pool.read(move |connection| endpoints::person(connection, person)).await
    }

    pub(crate) async fn add_endpoint(
        &self,
        viewer: &Identity,
        endpoint: NewEndpoint,
    ) -> Result<Option<i64>, WriteError> {
        self.write(endpoints::Add { viewer: viewer.clone(), endpoint }).await
    }

    pub(crate) async fn remove_endpoint(&self, viewer: &Identity, endpoint_id: i64) -> Result<(), WriteError> {
        self.write(endpoints::Remove { who: viewer.sender.who, endpoint_id }).await
    }

    pub(crate) async fn preferences(&self, person: PersonId) -> Result<Preferences, StoreError> {
        self.inner.pool.read(move |connection| endpoints::preferences(connection, person)).await
    }

    pub(crate) async fn set_preferences(&self, person: PersonId, preferences: Preferences) -> Result<(), WriteError> {
        self.write(endpoints::Prefer { person, preferences }).await
    }

    pub(crate) async fn keep_secret(&self, name: &'static str, candidate: Vec<u8>) -> Result<Vec<u8>, WriteError> {
        self.write(endpoints::Keep { name, candidate }).await
    }

    pub(crate) async fn ready(&self) -> Result<(), WriteError> {
        self.write(runs::Ready).await?;
        // What was written to find out may have fitted into pages that are free already. The next ask would not.
        match self.inner.location.folder().and_then(folder::free) {
            Some(free) if free < LEAST_ROOM => {
                let reason = format!("the disk is full ({} KiB are left)", free >> 10);
                Err(WriteError::Unavailable { reason, retry_after_s: 5 })
            }
            _ => {
                self.inner.shared.figures.writable.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    pub(crate) async fn stats(&self) -> Result<Stats, StoreError> {
        let Inner { location, shared, pool, .. } = &*self.inner;
        let folder = location.folder();
        let figures = &shared.figures;
        let now = shared.clock.now();
        let read = pool.read(move |connection| figures::waiting(connection, now));
        let found = match pool::within(location, COUNTED_WITHIN, read).await {
            Some(Ok(found)) => Some(found),
            // A folder's own error is worth more than figures; a server that can't be reached is one of them.
            Some(Err(error)) if folder.is_some() => return Err(error),
            Some(Err(_)) | None => None,
        };
        let readable = found.is_some();
        let waiting = found.unwrap_or_default();
        let seconds = |since: Option<Timestamp>| since.map_or(0.0, |since| (now.ms() - since.ms()).max(0) as f64 / 1e3);
        let size = |path: Option<PathBuf>| {
            path.and_then(|path| std::fs::metadata(path).ok()).map(|found| found.len()).unwrap_or_default()
        };
        Ok(Stats {
            open_asks: waiting.open,
            oldest_open_seconds: seconds(waiting.oldest_open),
            opened: figures.opened(),
            closed: figures.closed(),
            refused: figures.refusals(),
            over_budget: figures.over_budget(),
            commits: figures.commits.load(Ordering::Relaxed),
            jobs: figures.jobs.load(Ordering::Relaxed),
            commit_seconds: figures.commit_time.read(),
            group_jobs: figures.group_size.read(),
            queued: figures.queued.load(Ordering::Relaxed),
            outbox: waiting.outbox,
            outbox_overdue_seconds: seconds(waiting.due_since),
            database_bytes: waiting.bytes.unwrap_or_else(|| size(folder.map(folder::database))),
            wal_bytes: size(folder.map(folder::wal)),
            free_bytes: folder.and_then(folder::free),
            readable,
            writable: figures.writable.load(Ordering::Relaxed),
        })
    }
}

/// A read that a write needs, and that failed.
fn unread(error: StoreError) -> WriteError {
    WriteError::Unavailable { reason: error.to_string(), retry_after_s: 5 }
}
