//! The log of Chips and what is derived from it: the only crate that knows SQL.
//!
//! Writes are judged by [`chips_core::decide()`] inside the transaction that appends them, so the first answer wins on
//! every backend by the same rule. What the store does is written once, over SQLite and PostgreSQL alike (`sql.rs`).
//!
//! Every reader works the same way: it takes a wake-up (which carries no data), then reads the log after its last
//! `seq`. Nothing falls between the backlog and the live end, and a slow reader needs no buffer.

pub mod admin;
pub mod clock;
mod engine;
pub mod error;
pub mod figures;
mod location;
pub mod notice;
mod postgres;
pub mod query;
pub mod record;
pub mod secret;
pub mod session;
mod sql;
mod sqlite;
mod stops;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use chips_core::notify::{Channel, Outcome, Preferences};
use chips_core::{Access, Sender};
use chips_protocol::api::{Ask, AsksPage, Me, NewRun, Run};
use chips_protocol::{AskId, Draft, HarnessId, PersonId, RunId, Timestamp, WorkspaceId};
use tokio::sync::{mpsc, oneshot, watch};

pub use clock::Clock;
#[doc(hidden)]
pub use engine::LEAST_ROOM;
pub use engine::rehearse::Rehearsal;
pub use error::{Fatal, OpenError, StoreError, WriteError};
pub use figures::{Budgets, Distribution, Stats};
pub use location::{Database, Location};
pub use notice::{Attempt, Endpoint, NewEndpoint, Notice, Sighting};
pub use query::{AskFilter, AsksQuery, EventsBatch, EventsQuery};
pub use record::Record;
pub use session::{Device, Proof, Session, SignInState, SignedIn};

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// The wall clock and the monotonic clock to build Chips' clock on.
    pub time: clock::TimeSource,
    /// Connections for reading.
    pub readers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { time: clock::TimeSource::System, readers: 4 }
    }
}

/// Whom a credential speaks for, what they are called and what they may see, as of one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Workspace and participant.
    pub sender: Sender,
    /// What people call the participant.
    pub name: String,
    /// What the participant may see.
    pub access: Access,
    /// For a person: whether they own the workspace.
    pub owner: bool,
}

/// What became of an accepted write.
#[derive(Debug, Clone)]
pub enum Submitted {
    /// Appended now.
    Appended(Arc<Record>),
    /// Stored before; nothing was appended.
    Replayed {
        /// The event stored the first time.
        record: Arc<Record>,
        /// Whether the body says something else now.
        differs: bool,
    },
}

/// A change to the set of deadlines, in the order of the commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineChange {
    /// An ask with a deadline is open (also told once for each at the start).
    Opened(Timestamp, WorkspaceId, AskId),
    /// An ask with this deadline is closed.
    Closed(Timestamp, WorkspaceId, AskId),
}

/// Where dropping has come to ([`Store::drop_older`]); a round begins with the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropPlace {
    /// The log of the workspace after the one with this number is cut.
    Log(i64),
    /// What was cut off the log of a workspace is deleted, after this place.
    Asks(i64, i64),
    /// Runs are deleted, after the one with this number.
    Runs(i64),
}

impl Default for DropPlace {
    fn default() -> Self {
        Self::Log(0)
    }
}

/// What names the run whose lease a request renews.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseOf {
    /// The run itself.
    Run(RunId),
    /// An ask of the run.
    Ask(AskId),
}

/// The log and what is derived from it: a folder with an SQLite file that this process writes alone (short administration
/// apart), or a schema in PostgreSQL that any number of processes share. Cheap to clone; all clones are one store.
#[derive(Clone)]
pub struct Store(engine::Engine);

/// Passes a call on to the backend.
macro_rules! on {
    ($store:expr, $backend:ident => $call:expr) => {{
        let Store($backend) = $store;
        $call
    }};
}

impl Store {
    /// Opens a folder or a database for serving, and starts the writer.
    ///
    /// # Errors
    /// There is no workspace in it yet ([`admin::init`] makes one), a folder is held by another process (which is named), a newer
    /// version wrote it, it is something else, or it can't be read or written. A database server must keep what it
    /// acknowledges.
    pub fn open(location: impl Into<Location>, options: Options) -> Result<Self, OpenError> {
        engine::Engine::open(&location.into(), options).map(Self)
    }

    /// Ends the store: what was queued is written, the lock on the folder is given back.
    pub async fn close(self) {
        on!(self, backend => backend.close().await);
    }

    /// Waits until the store can't go on (a failed fsync, an unknown outcome of a commit). The process must end then:
    /// what was acknowledged is safe, what was not is unknown.
    pub async fn failed(&self) -> Fatal {
        on!(self, backend => backend.failed().await)
    }

    /// Chips' clock.
    pub fn clock(&self) -> &Clock {
        on!(self, backend => backend.clock())
    }

    /// The name of this history of the log; a restore changes it.
    pub fn log_id(&self) -> &str {
        on!(self, backend => backend.log_id())
    }

    /// Whom the token with this SHA-256 speaks for, unless it is unknown, expired, revoked or disabled.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn authenticate(&self, token_sha256: [u8; 32]) -> Result<Option<Identity>, StoreError> {
        on!(self, backend => backend.authenticate(token_sha256).await)
    }

    /// Changes whenever administration changed who may do or see what, at the latest 2 s after it did. Whoever holds a stream
    /// open looks its credential up again then.
    pub fn access_changes(&self) -> watch::Receiver<u64> {
        on!(self, backend => backend.access_changes())
    }

    /// Judges and appends a client's write. Once polled for the first time it is carried out even if the future is dropped.
    ///
    /// # Errors
    /// A refusal (nothing of this write was appended), or the store can't take writes.
    pub async fn submit(&self, sender: Sender, draft: Draft) -> Result<Submitted, WriteError> {
        on!(self, backend => backend.submit(sender, draft).await)
    }

    /// The event that the sender's accepted write with this key appended: for a body that is no event any more.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn replay_by_key(&self, sender: Sender, key: &str) -> Result<Option<Arc<Record>>, StoreError> {
        on!(self, backend => backend.replay_by_key(sender, key).await)
    }

    /// Closes the ask if its deadline has passed. True where this call closed it.
    ///
    /// # Errors
    /// The store can't take writes.
    pub async fn expire(&self, workspace_id: WorkspaceId, ask_id: AskId) -> Result<bool, WriteError> {
        on!(self, backend => backend.expire(workspace_id, ask_id).await)
    }

    /// Opens a run of the sender's, or returns the one it opened before with this id (false: nothing was opened).
    ///
    /// # Errors
    /// A refusal (`wrong_sender`, `run_id_conflict`, `unknown_space`, `unknown_run` for a parent), or the store can't take writes.
    pub async fn open_run(&self, sender: Sender, run: NewRun) -> Result<(Run, bool), WriteError> {
        on!(self, backend => backend.open_run(sender, run).await)
    }

    /// Ends a run of the sender's and closes its open asks, in one transaction. Twice is a no-op.
    ///
    /// # Errors
    /// A refusal (`not_found`, `wrong_sender` for a person who can see it), or the store can't take writes.
    pub async fn end_run(&self, sender: Sender, run_id: RunId) -> Result<Run, WriteError> {
        on!(self, backend => backend.end_run(sender, run_id).await)
    }

    /// Notes that the harness has acted on the answer; the first time stands. An open ask stays as it is.
    ///
    /// # Errors
    /// A refusal (`not_found`, `wrong_sender` for a person who can see it), or the store can't take writes.
    pub async fn acknowledge(&self, sender: Sender, ask_id: AskId) -> Result<Ask, WriteError> {
        on!(self, backend => backend.acknowledge(sender, ask_id).await)
    }

    /// Notes, some time later, that the harness was heard of: renews the lease of the run if it is the harness's own and has one.
    pub fn renew_lease(&self, sender: Sender, of: LeaseOf) {
        on!(self, backend => backend.renew_lease(sender, of));
    }

    /// Notes, some time later, that the answer of this ask went out to the harness. The first time stands; a crash may lose it.
    pub fn mark_delivered(&self, workspace_id: WorkspaceId, ask_id: AskId) {
        on!(self, backend => backend.mark_delivered(workspace_id, ask_id));
    }

    /// Notes, some time later, that a person saw this ask: a visible page of theirs showed it. The first time stands; what was
    /// closed before is not noted, and a crash may lose it. Whether the person may see it is asked before.
    pub fn mark_seen(&self, workspace_id: WorkspaceId, ask_id: AskId, person: PersonId) {
        on!(self, backend => backend.mark_seen(workspace_id, ask_id, person));
    }

    /// Who has seen an ask, each the first time, in their order; nothing where the viewer may not see the ask.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn seen(&self, viewer: &Identity, ask_id: AskId) -> Result<Option<Vec<Sighting>>, StoreError> {
        on!(self, backend => backend.seen(viewer, ask_id).await)
    }

    /// What everybody in a workspace is called, also those who can't sign in any more.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn names(&self, workspace_id: WorkspaceId) -> Result<HashMap<PersonId, String>, StoreError> {
        on!(self, backend => backend.names(workspace_id).await)
    }

    /// The harnesses that have asked something that a person may see, open or closed, with their names and in their order.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn askers(&self, viewer: &Identity) -> Result<Vec<(HarnessId, String)>, StoreError> {
        on!(self, backend => backend.askers(viewer).await)
    }

    /// The `seq` of the workspace's last event, as a value to wait on. Carries no data: read the log after it changed.
    pub fn head(&self, workspace_id: WorkspaceId) -> watch::Receiver<u64> {
        on!(self, backend => backend.head(workspace_id))
    }

    /// The `seq` of the workspace's last event, for whoever has seen this one: where servers share the log, another one may have shown it
    /// a moment before it came here, so that it is read here first.
    ///
    /// # Errors
    /// It can't be read.
    pub async fn head_for(&self, workspace_id: WorkspaceId, seen: u64) -> Result<u64, StoreError> {
        on!(self, backend => backend.head_for(workspace_id, seen).await)
    }

    /// The `seq` that the workspace's log begins with: 1, or what follows the last event that was dropped.
    pub fn kept_from(&self, workspace_id: WorkspaceId) -> u64 {
        on!(self, backend => backend.kept_from(workspace_id))
    }

    /// One bounded step of dropping what is older than `before`: of each log everything up to the first event that is younger or
    /// belongs to an open ask, with what is derived from it; and runs that ended before and have no ask left. Gives how many events a log
    /// lost by it, and where the next step begins; nothing where that was the last.
    ///
    /// # Errors
    /// The store can't be read or can't take writes. The same step may be tried again.
    pub async fn drop_older(
        &self,
        before: Timestamp,
        place: DropPlace,
    ) -> Result<(u64, Option<DropPlace>), WriteError> {
        on!(self, backend => backend.drop_older(before, place).await)
    }

    /// Resolves once the ask is closed (or the store ends). Take it *before* reading the ask, so that no close falls between.
    /// Dropping it costs nothing.
    pub fn closing(&self, workspace_id: WorkspaceId, ask_id: AskId) -> oneshot::Receiver<()> {
        on!(self, backend => backend.closing(workspace_id, ask_id))
    }

    /// The changes to the set of deadlines, beginning with every open ask that has one. There is one taker; the second gets nothing.
    pub fn deadlines(&self) -> Option<mpsc::UnboundedReceiver<DeadlineChange>> {
        on!(self, backend => backend.deadlines())
    }

    /// Events after a `seq` that the viewer may see, in order.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn events(&self, viewer: &Identity, query: &EventsQuery) -> Result<EventsBatch, StoreError> {
        on!(self, backend => backend.events(viewer, query).await)
    }

    /// Asks that the viewer may see; see [`AsksQuery`] for the order.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn asks(&self, viewer: &Identity, query: &AsksQuery) -> Result<AsksPage, StoreError> {
        on!(self, backend => backend.asks(viewer, query).await)
    }

    /// An ask, if the viewer may see it.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn ask(&self, viewer: &Identity, ask_id: AskId) -> Result<Option<Ask>, StoreError> {
        on!(self, backend => backend.ask(viewer, ask_id).await)
    }

    /// A run, if the viewer may see it.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn run(&self, viewer: &Identity, run_id: RunId) -> Result<Option<Run>, StoreError> {
        on!(self, backend => backend.run(viewer, run_id).await)
    }

    /// Who the viewer is, the spaces they see (a harness: all of the workspace) and, for a harness, its budget.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn me(&self, viewer: &Identity) -> Result<Me, StoreError> {
        on!(self, backend => backend.me(viewer).await)
    }

    /// What a sign-in link stands for now. Changes nothing.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn sign_in_state(&self, link_sha256: [u8; 32]) -> Result<SignInState, StoreError> {
        on!(self, backend => backend.sign_in_state(link_sha256).await)
    }

    /// Signs in with a link or a code, once.
    ///
    /// # Errors
    /// The store can't take writes.
    pub async fn sign_in(&self, proof: Proof, device: Device) -> Result<SignedIn, WriteError> {
        on!(self, backend => backend.sign_in(proof, device).await)
    }

    /// The session with this SHA-256, unless it has ended. Notes (lazily) that it was used.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn session(&self, session_sha256: [u8; 32]) -> Result<Option<Session>, StoreError> {
        on!(self, backend => backend.session(session_sha256).await)
    }

    /// The person's sessions that have not ended, the last used first.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn sessions(&self, viewer: &Identity) -> Result<Vec<Session>, StoreError> {
        on!(self, backend => backend.sessions(viewer).await)
    }

    /// Ends one of the person's own sessions. Ending it twice is a no-op.
    ///
    /// # Errors
    /// The store can't take writes.
    pub async fn end_session(&self, viewer: &Identity, session_id: i64) -> Result<(), WriteError> {
        on!(self, backend => backend.end_session(viewer, session_id).await)
    }

    /// Changes with each commit that appended something, and carries no data: for those who go through every log.
    pub fn appended(&self) -> watch::Receiver<u64> {
        on!(self, backend => backend.appended())
    }

    /// Goes through what was appended since the last time and plans what is to be said of it. `in_sight` are the
    /// sessions that have a page in sight now; one that has ended does not count.
    ///
    /// # Errors
    /// The store can't be read or can't take writes.
    pub async fn plan_notices(&self, in_sight: &BTreeSet<i64>) -> Result<(), WriteError> {
        on!(self, backend => backend.plan_notices(in_sight).await)
    }

    /// Claims messages that are due, at most one for each endpoint: no other sender gets them for [`notice::CLAIM_MS`].
    ///
    /// # Errors
    /// The store can't take writes.
    pub async fn claim_notices(&self, limit: usize) -> Result<Vec<Notice>, WriteError> {
        on!(self, backend => backend.claim_notices(limit).await)
    }

    /// Records what the other side made of a message, and plans what follows from that: another try, a reminder, a taking back.
    /// `jitter`, from 0 to 1, spreads tries that failed together.
    ///
    /// # Errors
    /// The store can't take writes.
    pub async fn record_attempt(&self, notice: &Notice, outcome: Outcome, jitter: f64) -> Result<(), WriteError> {
        on!(self, backend => backend.record_attempt(notice, outcome, jitter).await)
    }

    /// When the next message is due that nobody sends yet.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn next_notice(&self) -> Result<Option<Timestamp>, StoreError> {
        on!(self, backend => backend.next_notice().await)
    }

    /// Every try to tell somebody of an ask, in their order; nothing where the viewer may not see the ask.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn attempts(&self, viewer: &Identity, ask_id: AskId) -> Result<Option<Vec<Attempt>>, StoreError> {
        on!(self, backend => backend.attempts(viewer, ask_id).await)
    }

    /// The viewer's own endpoints, in the order in which they were added.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn endpoints(&self, viewer: &Identity) -> Result<Vec<Endpoint>, StoreError> {
        on!(self, backend => backend.endpoints(viewer).await)
    }

    /// An endpoint of a person's that may be sent to, and the person: for what comes back by way of it. Nothing where it was
    /// removed or is gone, or the person may not sign in any more.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn endpoint_of(&self, endpoint_id: i64) -> Result<Option<(Endpoint, Identity)>, StoreError> {
        on!(self, backend => backend.endpoint_of(endpoint_id).await)
    }

    /// The endpoint at an address that is one person's alone ([`Channel::is_one_persons`]), and the person: for what comes from
    /// there unasked. Nothing as with [`Store::endpoint_of`].
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn endpoint_at(
        &self,
        channel: Channel,
        address: &str,
    ) -> Result<Option<(Endpoint, Identity)>, StoreError> {
        on!(self, backend => backend.endpoint_at(channel, address).await)
    }

    /// A person as a viewer; nothing where there is no such person, or they may not sign in any more.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn person(&self, person: PersonId) -> Result<Option<Identity>, StoreError> {
        on!(self, backend => backend.person(person).await)
    }

    /// Adds an endpoint of the viewer's own and gives its number; nothing where there are [`notice::ENDPOINTS_MOST`] already, or
    /// where the session has ended that it is to end with. The same address on the same channel is renewed, and a session has
    /// one browser's subscription alone. What was asked before is not told to it.
    ///
    /// # Errors
    /// The store can't take writes.
    pub async fn add_endpoint(&self, viewer: &Identity, endpoint: NewEndpoint) -> Result<Option<i64>, WriteError> {
        on!(self, backend => backend.add_endpoint(viewer, endpoint).await)
    }

    /// Removes an endpoint of the viewer's own, with what waited for it. Twice is a no-op.
    ///
    /// # Errors
    /// The store can't take writes.
    pub async fn remove_endpoint(&self, viewer: &Identity, endpoint_id: i64) -> Result<(), WriteError> {
        on!(self, backend => backend.remove_endpoint(viewer, endpoint_id).await)
    }

    /// How a person wants to be told.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn preferences(&self, person: PersonId) -> Result<Preferences, StoreError> {
        on!(self, backend => backend.preferences(person).await)
    }

    /// Keeps how a person wants to be told; the caller has checked it ([`Preferences::check`]).
    ///
    /// # Errors
    /// The store can't take writes.
    pub async fn set_preferences(&self, person: PersonId, preferences: Preferences) -> Result<(), WriteError> {
        on!(self, backend => backend.set_preferences(person, preferences).await)
    }

    /// The secret that Chips keeps under this name: `candidate` where there was none so far.
    ///
    /// # Errors
    /// The store can't take writes.
    pub async fn keep_secret(&self, name: &'static str, candidate: Vec<u8>) -> Result<Vec<u8>, WriteError> {
        on!(self, backend => backend.keep_secret(name, candidate).await)
    }

    /// Whether the store can take writes now, tried with an empty write.
    pub async fn ready(&self) -> Result<(), WriteError> {
        on!(self, backend => backend.ready().await)
    }

    /// Figures for the operator.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn stats(&self) -> Result<Stats, StoreError> {
        on!(self, backend => backend.stats().await)
    }

    /// Faults for the store to meet, in a test.
    #[doc(hidden)]
    pub fn rehearsal(&self) -> &Rehearsal {
        on!(self, backend => backend.rehearsal())
    }
}
