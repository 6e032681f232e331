//! Carries OpenCode's open questions: each one is asked in Chips, waited for, and answered there or here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chips_client::parts::{Backoff, Pauses, fraction};
use chips_client::protocol::api::{Ask, AskState, NewRun, RunState};
use chips_client::protocol::problem::ProblemCode;
use chips_client::protocol::{AskId, OnNoAnswer, Question, RunId, limits, validate};
use chips_client::{AskSpec, Client, Error, Workplace};
use futures::future::try_join_all;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::wire::{self, Dialog, Field, Heard, Pending};
use super::{Options, ask_id, run_id};
use crate::output;

/// How long what is under way may take once OpenCode has ended.
const REACH: Duration = Duration::from_secs(5);

/// How long the harness may be silent before its questions say that nobody waits for them; a wait speaks every 30 s.
const LEASE_SECONDS: u64 = 120;

/// How many runs one session may have had: a session that goes on after its end opens the next.
const RUNS: u8 = 20;

/// How long Chips is left alone where it does not say how long it wishes to be.
const REST: Duration = Duration::from_secs(5);

/// What is told to OpenCode.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The answers: the body of the reply.
    Answers(Value),
    /// The question is given up; OpenCode ends the turn.
    Dismiss,
}

/// What OpenCode says to a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// It goes on with it.
    Taken,
    /// The question is open no more.
    Gone,
    /// It takes no such answer.
    Refused(String),
}

/// The way to OpenCode.
pub trait Dialogs: Clone + Send + Sync + 'static {
    /// Replies to a question. An error says that it is not known whether the reply arrived; it is sent again.
    fn reply(&self, pending: &Pending, reply: &Reply) -> impl Future<Output = anyhow::Result<Delivered>> + Send;

    /// What the session is called, where that is known.
    fn title(&self, pending: &Pending) -> impl Future<Output = Option<String>> + Send;

    /// The machine that OpenCode runs on, where it is not this one.
    fn host(&self) -> Option<String>;
}

/// How a question has come to its end in OpenCode.
#[derive(Debug, Clone, PartialEq)]
enum End {
    Answered(Value),
    Gone,
}

/// The questions that are open in OpenCode, by their id.
pub struct Carrier<D> {
    client: Client,
    dialogs: D,
    options: Options,
    carried: HashMap<String, Carried>,
    tasks: JoinSet<()>,
    runs: Runs,
}

/// A question that is carried, or was given back to its own dialog: it is remembered until OpenCode closes it, so that
/// it is asked once however often it is heard of.
struct Carried {
    pending: Pending,
    end: oneshot::Sender<End>,
}

/// The runs that were opened here.
type Runs = Arc<Mutex<BTreeSet<RunId>>>;

impl<D: Dialogs> Carrier<D> {
    /// Carries questions to the server of `client` and answers to `dialogs`.
    pub fn new(client: Client, dialogs: D, options: Options) -> Self {
        Self { client, dialogs, options, carried: HashMap::new(), tasks: JoinSet::new(), runs: Runs::default() }
    }

    /// Takes an event in. `away` says whether questions go to Chips now.
    pub fn hear(&mut self, heard: Heard, away: bool) {
        while self.tasks.try_join_next().is_some() {}
        match heard {
            Heard::Asked(pending) => self.asked(pending, away),
            Heard::Answered { id, given } => self.closed(&id, End::Answered(given)),
            Heard::Dismissed { id } => self.closed(&id, End::Gone),
            Heard::SessionGone { id } => {
                let asked: Vec<_> = self.ids(|pending| pending.session == id);
                asked.iter().for_each(|question| self.closed(question, End::Gone));
                // Runs that were opened before a restart are found by their session too.
                let client = self.client.retry_for(Some(REACH));
                self.tasks.spawn(async move {
                    for nth in 0..RUNS {
                        match client.run(run_id(&id, nth)).await {
                            Ok(run) if run.state == RunState::Live => drop(client.end_run(run.run_id).await),
                            Ok(_) => {}
                            Err(_) => return,
                        }
                    }
                });
            }
        }
    }

    /// Takes in which questions are open now, in these directories (all there are, where none is named). What is open no
    /// more has ended without a word: it is withdrawn.
    pub fn sync(&mut self, dialog: Dialog, directories: &HashSet<String>, open: Vec<Pending>, away: bool) {
        let listed: HashSet<String> = open.iter().map(|pending| pending.id.clone()).collect();
        let gone = self.ids(|pending| {
            let looked = pending.directory.as_ref().is_none_or(|directory| directories.contains(directory));
            pending.dialog == dialog && looked && !listed.contains(&pending.id)
        });
        gone.iter().for_each(|id| self.closed(id, End::Gone));
        open.into_iter().for_each(|pending| self.asked(pending, away));
    }

    /// The directories of the questions that are carried.
    pub fn directories(&self) -> HashSet<String> {
        self.carried.values().filter_map(|carried| carried.pending.directory.clone()).collect()
    }

    fn ids(&self, of: impl Fn(&Pending) -> bool) -> Vec<String> {
        self.carried.iter().filter(|(_, carried)| of(&carried.pending)).map(|(id, _)| id.clone()).collect()
    }

    fn asked(&mut self, pending: Pending, away: bool) {
        if !away || self.carried.contains_key(&pending.id) {
            return;
        }
        let (end, ended) = oneshot::channel();
        let task = Task {
            client: self.client.retry_for(None),
            dialogs: self.dialogs.clone(),
            options: self.options.clone(),
            pending: pending.clone(),
            runs: self.runs.clone(),
        };
        self.tasks.spawn(async move {
            if let Err(why) = task.carry(ended).await {
                let said = output::one_line(&format!("{why:#}"));
                output::note(format_args!(
                    "chips: {said}; question {} is left to OpenCode's own dialog",
                    task.pending.id
                ));
            }
        });
        self.carried.insert(pending.id.clone(), Carried { pending, end });
    }

    fn closed(&mut self, id: &str, end: End) {
        if let Some(carried) = self.carried.remove(id) {
            // Whoever hears nothing has ended already.
            let _ = carried.end.send(end);
        }
    }

    /// OpenCode has ended: takes back what is open, and ends the runs. Gives up after a few seconds.
    pub async fn finish(mut self) {
        for id in self.ids(|_| true) {
            self.closed(&id, End::Gone);
        }
        let finishing = async { while self.tasks.join_next().await.is_some() {} };
        // What Chips could not be told in time, the end of the run or the lapse of its lease will say.
        let _ = tokio::time::timeout(REACH, finishing).await;
        let runs = std::mem::take(&mut *self.runs.lock().unwrap_or_else(PoisonError::into_inner));
        let client = self.client.retry_for(Some(REACH));
        for run in runs {
            if client.end_run(run).await.is_err() {
                break;
            }
        }
    }
}

/// One question on its way.
struct Task<D> {
    client: Client,
    dialogs: D,
    options: Options,
    pending: Pending,
    runs: Runs,
}

impl<D: Dialogs> Task<D> {
    /// From the question to its end.
    ///
    /// # Errors
    /// Why Chips can't carry it; it stays in OpenCode's own dialog.
    async fn carry(&self, mut ended: oneshot::Receiver<End>) -> anyhow::Result<()> {
        let fields = self.pending.fields(self.options.default_first).map_err(anyhow::Error::msg)?;
        let parts: Vec<&[Field]> = fields.chunks(limits::QUESTIONS_MAX).collect();
        let asking = self.ask(&parts);
        tokio::pin!(asking);
        let asked = tokio::select! {
            asked = &mut asking => asked?,
            end = &mut ended => {
                let Ok(end) = end else { return Ok(()) };
                // Whether an ask has arrived is known only when the call is through.
                let _ = tokio::time::timeout(REACH, &mut asking).await;
                return self.close(&parts, &fields, &end).await;
            }
        };
        output::note(format_args!("chips: asked as {}/asks/{}", self.client.address(), asked[0]));
        let closed = tokio::select! {
            closed = try_join_all(asked.iter().map(|ask_id| self.client.wait(*ask_id))) => closed?,
            end = &mut ended => {
                let Ok(end) = end else { return Ok(()) };
                return self.close(&parts, &fields, &end).await;
            }
        };
        let Some(reply) = outcome(&self.pending, &fields, &closed) else {
            anyhow::bail!("it was withdrawn in Chips");
        };
        if self.deliver(&reply, ended).await? {
            for ask_id in asked {
                // Nothing depends on it.
                let _ = self.client.retry_for(Some(REACH)).acknowledge(ask_id).await;
            }
        }
        Ok(())
    }

    /// Asks every part, or takes up the asks that are there already.
    async fn ask(&self, parts: &[&[Field]]) -> anyhow::Result<Vec<AskId>> {
        let mut backoff = Backoff::new(Pauses::default());
        loop {
            match self.ask_once(parts).await {
                Ok(asked) => return Ok(asked),
                Err(error) => match error.downcast_ref::<Error>().and_then(passing) {
                    Some(wish) => tokio::time::sleep(backoff.next(Some(wish), fraction())).await,
                    None => {
                        // A part that was asked before must not stay without the others.
                        self.close_all(parts, |_| Vec::new()).await;
                        return Err(error);
                    }
                },
            }
        }
    }

    async fn ask_once(&self, parts: &[&[Field]]) -> anyhow::Result<Vec<AskId>> {
        let ids: Vec<AskId> = (0..parts.len()).map(|part| self.ask_id(part)).collect();
        let mut run = match self.found(ids[0]).await? {
            Some(run) => run,
            None => self.open_run().await?,
        };
        let mut prepared = Vec::new();
        for (ask_id, part) in ids.iter().zip(parts) {
            if let Some(of) = self.found(*ask_id).await? {
                run = of;
                continue;
            }
            let questions: Vec<Question> = part.iter().map(|field| field.question.clone()).collect();
            let mut spec = AskSpec::new(run, questions).ask_id(*ask_id);
            if let Some(timeout) = self.options.timeout {
                spec = spec.timeout_seconds(timeout.as_secs().max(1));
                if let Some(policy) = self.options.on_no_answer {
                    spec = spec.on_no_answer(policy);
                }
            }
            let ask = self.client.prepare(spec).await?;
            // All are looked at before any is sent: one that Chips refuses leaves the others in the dialog too.
            if let Err(faults) = validate::draft(&serde_json::from_slice(ask.body())?) {
                let fault = faults.first().map(|fault| format!("{} ({})", fault.message, fault.pointer));
                anyhow::bail!(fault.unwrap_or_default());
            }
            prepared.push(ask);
        }
        for ask in prepared {
            self.client.send(&ask).await?;
        }
        Ok(ids)
    }

    fn ask_id(&self, part: usize) -> AskId {
        ask_id(&self.pending.session, &self.pending.id, part)
    }

    /// The run of an ask, where there is such an ask.
    async fn found(&self, ask_id: AskId) -> Result<Option<RunId>, Error> {
        match self.client.ask_state(ask_id).await {
            Ok(ask) => Ok(Some(ask.ask.envelope.run_id)),
            Err(error) if error.code() == Some(ProblemCode::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn open_run(&self) -> Result<RunId, Error> {
        let mut new = self.new_run().await;
        for nth in 0..RUNS {
            new.run_id = Some(run_id(&self.pending.session, nth));
            let run = self.client.open_run(new.clone()).await?;
            if run.state == RunState::Live {
                return Ok(self.opened(run.run_id));
            }
        }
        new.run_id = None;
        self.client.open_run(new).await.map(|run| self.opened(run.run_id))
    }

    fn opened(&self, run: RunId) -> RunId {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(run);
        run
    }

    async fn new_run(&self) -> NewRun {
        let mut place = match &self.pending.directory {
            Some(directory) => Workplace::of(Path::new(directory)),
            None => Workplace::default(),
        };
        if let Some(host) = self.dialogs.host() {
            // A folder of this machine says nothing of that one's.
            place.branch = None;
            place.host = Some(host);
        }
        let mut run = place.run();
        let named = self.dialogs.title(&self.pending).await.filter(|title| !wire::is_placeholder(title));
        if let Some(title) = named {
            let title: String = title.chars().filter(|c| !c.is_control()).take(limits::RUN_TITLE).collect();
            run.title = Some(match run.title {
                Some(place) if title.chars().count() + place.chars().count() + 3 <= limits::RUN_TITLE => {
                    format!("{title} · {place}")
                }
                _ => title,
            });
            run.title = run.title.filter(|text| !text.chars().any(chips_protocol::text::is_bidi_control));
        }
        NewRun { lease_seconds: Some(LEASE_SECONDS.into()), ..run }
    }

    /// The question has ended in OpenCode: its asks are settled with what was answered there, or withdrawn.
    async fn close(&self, parts: &[&[Field]], fields: &[Field], end: &End) -> anyhow::Result<()> {
        let answers = match end {
            End::Answered(given) => wire::answered(fields, given),
            End::Gone => Vec::new(),
        };
        self.close_all(parts, |part| {
            let of = |id: &str| part.iter().any(|field| field.question.question_id == id);
            answers.iter().filter(|answer| of(&answer.question_id)).cloned().collect()
        })
        .await;
        Ok(())
    }

    async fn close_all(&self, parts: &[&[Field]], answers: impl Fn(&[Field]) -> Vec<chips_protocol::Answer>) {
        for (at, part) in parts.iter().enumerate() {
            let ask_id = self.ask_id(at);
            let settled = match self.client.settle(ask_id, answers(part)).await {
                // An answer that the contract has no room for is still an end of the question.
                Err(error) if error.code() == Some(ProblemCode::InvalidEvent) => self.client.withdraw(ask_id).await,
                settled => settled,
            };
            let silent = [ProblemCode::AlreadyClosed, ProblemCode::NotFound, ProblemCode::RunEnded];
            match settled {
                Err(error) if !error.code().is_some_and(|code| silent.contains(&code)) => {
                    let said = output::one_line(&error.to_string());
                    output::note(format_args!("chips: {ask_id} can't be closed: {said}"));
                }
                _ => {}
            }
        }
    }

    /// Brings the answer to OpenCode, for as long as the question is open there. Says whether it was taken.
    async fn deliver(&self, reply: &Reply, ended: oneshot::Receiver<End>) -> anyhow::Result<bool> {
        let delivering = async {
            let mut backoff = Backoff::new(Pauses::default());
            loop {
                match self.dialogs.reply(&self.pending, reply).await {
                    Ok(delivered) => return delivered,
                    Err(_) => tokio::time::sleep(backoff.next(None, fraction())).await,
                }
            }
        };
        tokio::pin!(delivering);
        let delivered = tokio::select! {
            delivered = &mut delivering => delivered,
            // Often it is this reply that ended it, and OpenCode's word for that is still on its way.
            _ = ended => tokio::time::timeout(REACH, delivering).await.unwrap_or(Delivered::Gone),
        };
        match delivered {
            Delivered::Taken => Ok(true),
            Delivered::Gone => {
                output::note(format_args!("chips: question {} was closed in OpenCode first", self.pending.id));
                Ok(false)
            }
            Delivered::Refused(why) => anyhow::bail!("OpenCode takes no such answer: {why}"),
        }
    }
}

/// How long to wait before asking again, where what stands in the way may pass.
fn passing(error: &Error) -> Option<Duration> {
    match error {
        Error::Unreachable { .. } | Error::NotChips { .. } => Some(REST),
        Error::Refused { problem, retry_after } => {
            let passes = [ProblemCode::OverBudget, ProblemCode::RateLimited, ProblemCode::Unavailable];
            passes.contains(&problem.code).then(|| retry_after.unwrap_or(REST))
        }
        _ => None,
    }
}

/// What closed asks say to OpenCode; nothing where one was withdrawn: the dialog stays.
fn outcome(pending: &Pending, fields: &[Field], closed: &[Ask]) -> Option<Reply> {
    let (mut answers, mut given_up) = (Vec::new(), false);
    for ask in closed {
        let given = ask.answer.as_ref()?.as_answered()?;
        match ask.state {
            AskState::Open | AskState::Withdrawn => return None,
            AskState::TimedOut if given.answers.is_empty() => {
                given_up |= ask.ask.as_ask()?.on_no_answer() == OnNoAnswer::Cancel;
            }
            AskState::TimedOut | AskState::Answered | AskState::Settled => answers.extend(given.answers.clone()),
        }
    }
    Some(if given_up { Reply::Dismiss } else { Reply::Answers(pending.reply(fields, &answers)) })
}
