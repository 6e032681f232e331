//! The embedded backend: one SQLite file, one writer thread, readers on their own connections.

use super::*;

/// A folder with an SQLite file.
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Clock,
    log_id: String,
}

impl Sqlite {
    #[allow(unused_variables)]
    pub(crate) fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn close(self) {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn failed(&self) -> Fatal {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    #[allow(unused_variables)]
    pub(crate) fn log_id(&self) -> &str {
        &self.inner.log_id
    }

    #[allow(unused_variables)]
    pub(crate) async fn authenticate(&self, token_sha256: [u8; 32]) -> Result<Option<Identity>, StoreError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) fn access_changes(&self) -> watch::Receiver<u64> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn submit(&self, sender: Sender, draft: Draft) -> Result<Submitted, WriteError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn replay_by_key(&self, sender: Sender, key: &str) -> Result<Option<Arc<Record>>, StoreError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn expire(&self, workspace_id: WorkspaceId, ask_id: AskId) -> Result<bool, WriteError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn open_run(&self, sender: Sender, run: NewRun) -> Result<(Run, bool), WriteError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn end_run(&self, sender: Sender, run_id: RunId) -> Result<Run, WriteError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn acknowledge(&self, sender: Sender, ask_id: AskId) -> Result<Ask, WriteError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) fn renew_lease(&self, sender: Sender, of: LeaseOf) {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) fn mark_delivered(&self, workspace_id: WorkspaceId, ask_id: AskId) {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) fn head(&self, workspace_id: WorkspaceId) -> watch::Receiver<u64> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) fn closing(&self, workspace_id: WorkspaceId, ask_id: AskId) -> oneshot::Receiver<()> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) fn deadlines(&self) -> Option<mpsc::UnboundedReceiver<DeadlineChange>> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn events(&self, viewer: &Identity, query: &EventsQuery) -> Result<EventsBatch, StoreError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn asks(&self, viewer: &Identity, query: &AsksQuery) -> Result<AsksPage, StoreError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn ask(&self, viewer: &Identity, ask_id: AskId) -> Result<Option<Ask>, StoreError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn run(&self, viewer: &Identity, run_id: RunId) -> Result<Option<Run>, StoreError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn me(&self, viewer: &Identity) -> Result<Me, StoreError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn sign_in_state(&self, link_sha256: [u8; 32]) -> Result<SignInState, StoreError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn sign_in(&self, proof: Proof, device: Device) -> Result<SignedIn, WriteError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn session(&self, session_sha256: [u8; 32]) -> Result<Option<Session>, StoreError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn sessions(&self, viewer: &Identity) -> Result<Vec<Session>, StoreError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn end_session(&self, viewer: &Identity, session_id: i64) -> Result<(), WriteError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn ready(&self) -> Result<(), WriteError> {
        todo!()
    }

    #[allow(unused_variables)]
    pub(crate) async fn stats(&self) -> Result<Stats, StoreError> {
        todo!()
    }
}
