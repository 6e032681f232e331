//! `chips mcp`: the MCP tools for one client, as a client of a server.
//!
//! A process opens a run for each title when it first asks, and keeps their leases while it lives. A question that an
//! earlier process of the same harness asked in the same folder, and that is still open or was answered while no process
//! was there to tell the model, is joined and not asked again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chips_client::protocol::api::{Ask, AskState, NewRun};
use chips_client::protocol::problem::ProblemCode;
use chips_client::protocol::{AskId, RunId, SpaceId};
use chips_client::{AskSpec, AsksQuery, Client, Error, Workplace};
use chips_mcp::{Asking, Desk, Trouble};

/// How long the process may be silent before its questions say that the asker is gone.
const LEASE: Duration = Duration::from_secs(120);
/// How long the end of the process may take to end its runs.
const END_WITHIN: Duration = Duration::from_secs(3);
/// How long an outcome may take to be noted as told.
const NOTE_WITHIN: Duration = Duration::from_secs(5);
/// How long an answer that no process told its model is kept for the next one that asks the same, in milliseconds: a day.
const FRESH_MS: i64 = 24 * 3600 * 1000;
/// How long the last look at an ask may be tried again: a call must end within its time, and say why it could not look.
const LOOK_WITHIN: Duration = Duration::from_secs(2);
/// Asks on the largest page.
const PAGE: u16 = 200;

/// The client's side of Chips for the MCP tools.
pub struct Bridge {
    client: Client,
    place: Workplace,
    space_id: Option<SpaceId>,
    runs: Mutex<Vec<Opened>>,
}

/// A run that this process asks in, or whose question it joined.
#[derive(Debug, Clone)]
struct Opened {
    run_id: RunId,
    title: Option<String>,
    /// Whether it is this process's own.
    own: bool,
}

impl Bridge {
    /// Asks through this client, for work in this place. Runs belong to `space_id` where there is one.
    pub fn new(client: Client, place: Workplace, space_id: Option<SpaceId>) -> Self {
        Self { client, place, space_id, runs: Mutex::default() }
    }

    fn runs(&self) -> MutexGuard<'_, Vec<Opened>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_ids(&self) -> Vec<RunId> {
        self.runs().iter().map(|run| run.run_id).collect()
    }

    fn forget(&self, run_id: RunId) {
        self.runs().retain(|run| run.run_id != run_id);
    }

    /// Keeps the leases of this process's runs, for ever.
    pub async fn keep(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(LEASE / 3);
        loop {
            ticks.tick().await;
            for run_id in self.run_ids() {
                // A look at a run renews its lease. Where the server is away, the next tick tries again.
                let _ = self.client.run(run_id).await;
            }
        }
    }

    /// The client has gone: runs of this process in which nothing is open have ended. An open question stays open, its lease
    /// lapses, and the inbox says that the asker is gone.
    pub async fn end(&self) {
        let own: Vec<_> = self.runs().iter().filter(|run| run.own).map(|run| run.run_id).collect();
        let ending = async {
            for run_id in own {
                let open = AsksQuery::default().run(run_id).state(AskState::Open).limit(1);
                if let Ok(page) = self.client.asks(&open).await
                    && page.asks.is_empty()
                {
                    let _ = self.client.end_run(run_id).await;
                }
            }
        };
        let _ = tokio::time::timeout(END_WITHIN, ending).await;
    }

    /// What the run of these questions is called: what the model says, else what the place is called.
    fn title(&self, asking: &Asking) -> Option<String> {
        asking.title.clone().or_else(|| self.place.run().title)
    }

    /// The run of this title: opened when it is first asked in.
    async fn run(&self, title: Option<String>) -> Result<RunId, Error> {
        let known = self.runs().iter().find(|run| run.own && run.title == title).cloned();
        if let Some(known) = known {
            return Ok(known.run_id);
        }
        let place = self.place.run();
        let opened = self
            .client
            .open_run(NewRun {
                title: title.clone(),
                labels: place.labels,
                space_id: self.space_id,
                lease_seconds: Some(LEASE.as_secs().into()),
                ..NewRun::default()
            })
            .await?;
        self.runs().push(Opened { run_id: opened.run_id, title, own: true });
        Ok(opened.run_id)
    }

    async fn put(&self, asking: &Asking, run_id: RunId) -> Result<Ask, Error> {
        let mut spec = AskSpec::new(run_id, asking.questions.clone());
        if let Some(seconds) = &asking.timeout_seconds {
            spec = spec.timeout_seconds(seconds.clone());
        }
        if let Some(policy) = asking.on_no_answer {
            spec = spec.on_no_answer(policy);
        }
        let asked = self.client.ask(spec).await?;
        self.client.ask_state(asked.ask_id()).await
    }

    async fn put_anew(&self, asking: &Asking) -> Result<Ask, Error> {
        let title = self.title(asking);
        let run_id = self.run(title.clone()).await?;
        match self.put(asking, run_id).await {
            // Somebody ended the run; the work goes on in another.
            Err(error) if error.code() == Some(ProblemCode::RunEnded) => {
                self.forget(run_id);
                let run_id = self.run(title).await?;
                self.put(asking, run_id).await
            }
            other => other,
        }
    }

    async fn search(&self, asking: &Asking) -> Result<Option<Ask>, Error> {
        // Those of this process, closed ones too: their outcome may not have been told.
        let title = self.title(asking);
        let runs = self.runs().clone();
        for run_id in runs.into_iter().filter(|run| run.title == title).map(|run| run.run_id) {
            let page = self.client.asks(&AsksQuery::default().run(run_id).limit(PAGE)).await?;
            if let Some(ask) = page.asks.into_iter().find(|ask| asking.is(ask)) {
                return Ok(Some(ask));
            }
        }
        // Those of an earlier process in this folder: left open, or answered when it could tell nobody any more.
        let labels = self.place.run().labels.unwrap_or_default();
        let Some(folder) = labels.get("folder") else { return Ok(None) };
        for state in [AskState::Open, AskState::Answered] {
            let query = AsksQuery::default().state(state).label("folder", folder).limit(PAGE);
            let page = self.client.asks(&query).await?;
            for ask in page.asks.into_iter().filter(|ask| asking.is(ask) && self.is_fresh(ask)) {
                let run = self.client.run(ask.ask.envelope.run_id).await?;
                // The same path on another machine is another folder.
                if run.labels.get("host") == labels.get("host") && asking.is_titled(&run, title.as_deref()) {
                    if ask.state == AskState::Open {
                        self.runs().push(Opened { run_id: run.run_id, title, own: false });
                    }
                    return Ok(Some(ask));
                }
            }
        }
        Ok(None)
    }

    /// Whether an answer is young enough to be what a model that asks now has missed.
    fn is_fresh(&self, ask: &Ask) -> bool {
        let answered = ask.answer.as_ref().and_then(|event| event.as_answered()).map(|closed| closed.answered_at);
        answered.is_none_or(|at| !self.client.time_left(at.plus_ms(FRESH_MS)).is_zero())
    }

    async fn take_back(&self, ask_id: AskId) -> Result<Ask, Error> {
        match self.client.withdraw(ask_id).await {
            Err(error) if error.code() != Some(ProblemCode::AlreadyClosed) => Err(error),
            _ => self.client.ask_state(ask_id).await,
        }
    }
}

fn trouble(error: Error) -> Trouble {
    match error {
        Error::Refused { problem, retry_after } => {
            Trouble::Refused { problem, retry_after_s: retry_after.map(|wait| wait.as_secs()) }
        }
        other => Trouble::Unreachable(crate::output::one_line(&other.to_string())),
    }
}

impl Desk for Bridge {
    fn conversation(&self) -> u64 {
        0
    }

    async fn find(&self, asking: &Asking) -> Result<Option<Ask>, Trouble> {
        self.search(asking).await.map_err(trouble)
    }

    async fn ask(&self, asking: &Asking) -> Result<Ask, Trouble> {
        self.put_anew(asking).await.map_err(trouble)
    }

    async fn wait(&self, ask_id: AskId, slice: Duration) -> Result<Ask, Trouble> {
        if !slice.is_zero() {
            // What is no question of this harness is told at once; a server that is away may come back within the slice.
            match tokio::time::timeout(slice, self.client.wait(ask_id)).await {
                Ok(waited) => return waited.map_err(trouble),
                Err(_elapsed) => {}
            }
        }
        self.client.retry_for(Some(LOOK_WITHIN)).ask_state(ask_id).await.map_err(trouble)
    }

    async fn withdraw(&self, ask_id: AskId) -> Result<Ask, Trouble> {
        self.take_back(ask_id).await.map_err(trouble)
    }

    async fn handed_over(&self, ask_id: AskId) {
        if let Err(error) = self.client.retry_for(Some(NOTE_WITHIN)).acknowledge(ask_id).await {
            tracing::warn!(%error, %ask_id, "that an outcome was told could not be noted");
        }
    }
}
