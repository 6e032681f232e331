//! A data folder with somebody in it, and drafts to write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chips_core::{Refusal, Who};
use chips_protocol::api::{Ask, NewRun};
use chips_protocol::{
    Answer, AnswerDraft, AskId, Draft, DraftContent, EventId, HarnessId, OnNoAnswer, Participant, PersonId, Question,
    QuestionAsk, QuestionOption, RunId, SpaceId, WorkspaceId,
};
use chips_store::admin::{self, Initialised};
use chips_store::{EventsQuery, Identity, Location, Options, Record, Store, Submitted, WriteError, secret};

#[path = "../../../../tests/postgres/home.rs"]
mod home;

pub use home::Home;

/// A number that no other call gets, for identifiers and keys.
pub fn unique() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) | (u128::from(std::process::id()) << 40)
}

/// A workspace in a store, with a harness and a person to act as.
#[derive(Clone)]
pub struct World {
    pub store: Store,
    pub workspace_id: WorkspaceId,
    pub space_id: SpaceId,
    pub harness: Identity,
    pub person: Identity,
}

impl World {
    /// The world that `admin::init` or `add_workspace` made.
    pub async fn enter(store: &Store, made: &Initialised) -> Self {
        let harness = identity(store, &made.harness.token).await;
        let person = identity(store, &made.person.token).await;
        Self { store: store.clone(), workspace_id: made.workspace_id, space_id: made.space_id, harness, person }
    }

    pub fn harness_id(&self) -> HarnessId {
        harness_id(&self.harness)
    }

    pub fn person_id(&self) -> PersonId {
        let Who::Person(id) = self.person.sender.who else { unreachable!() };
        id
    }

    /// Opens a run in no space.
    pub async fn run(&self) -> RunId {
        self.store.open_run(self.harness.sender, NewRun::default()).await.unwrap().0.run_id
    }

    /// A question with the options `a` and `b`, no default and no time-out.
    pub fn ask(&self, run_id: RunId) -> Draft {
        ask_by(&self.harness, run_id)
    }

    /// The person chooses `value` for the first question.
    pub fn answer(&self, run_id: RunId, ask_id: AskId, value: &str) -> Draft {
        answer_by(&self.person, run_id, ask_id, vec![chosen("q1", &[value])])
    }

    pub async fn submit(&self, draft: &Draft) -> Result<Submitted, WriteError> {
        let who = match draft.actor {
            Participant::Person(_) => self.person.sender,
            _ => self.harness.sender,
        };
        self.store.submit(who, draft.clone()).await
    }

    /// Submits what is certain to be appended.
    pub async fn append(&self, draft: &Draft) -> Arc<Record> {
        appended(self.submit(draft).await)
    }

    pub fn head(&self) -> u64 {
        *self.store.head(self.workspace_id).borrow()
    }

    /// Appends a question and returns its id.
    pub async fn asked(&self, run_id: RunId) -> AskId {
        let draft = self.ask(run_id);
        self.append(&draft).await;
        ask_id(&draft)
    }

    /// The ask as the person sees it.
    pub async fn shown(&self, ask_id: AskId) -> Ask {
        self.store.ask(&self.person, ask_id).await.unwrap().unwrap()
    }

    /// Every event that the viewer sees, read page by page.
    pub async fn log(&self, viewer: &Identity) -> Vec<Arc<Record>> {
        self.log_of(viewer, EventsQuery { limit: 100, ..EventsQuery::default() }).await
    }

    pub async fn log_of(&self, viewer: &Identity, mut query: EventsQuery) -> Vec<Arc<Record>> {
        let mut all = Vec::new();
        loop {
            let batch = self.store.events(viewer, &query).await.unwrap();
            assert!(batch.records.len() <= query.limit);
            all.extend(batch.records);
            if batch.through >= batch.head {
                return all;
            }
            assert!(batch.through > query.after, "a read must get on");
            query.after = batch.through;
        }
    }
}

pub async fn identity(store: &Store, token: &str) -> Identity {
    store.authenticate(secret::sha256(token)).await.unwrap().unwrap()
}

pub fn harness_id(identity: &Identity) -> HarnessId {
    let Who::Harness(id) = identity.sender.who else { unreachable!() };
    id
}

pub fn open(location: impl Into<Location>) -> Store {
    Store::open(location, Options::default()).unwrap()
}

/// A place for a store, of the kind that this run of the story is about.
pub fn home() -> Home {
    if crate::ON_POSTGRES { Home::schema() } else { Home::folder() }
}

/// A new store, opened.
pub async fn world() -> (Home, World) {
    world_with(Options::default()).await
}

pub async fn world_with(options: Options) -> (Home, World) {
    let home = home();
    let made = admin::init(home.path()).unwrap();
    let store = Store::open(home.path(), options).unwrap();
    let world = World::enter(&store, &made).await;
    (home, world)
}

fn draft(identity: &Identity, run_id: RunId, content: DraftContent) -> Draft {
    let actor = match identity.sender.who {
        Who::Person(id) => Participant::Person(id),
        Who::Harness(id) => Participant::Harness(id),
    };
    Draft {
        id: EventId::from_parts(1, unique()),
        workspace_id: identity.sender.workspace_id,
        space_id: None,
        run_id,
        idempotency_key: format!("key-{}", unique()),
        actor,
        content,
    }
}

pub fn option(value: &str) -> QuestionOption {
    QuestionOption { value: value.to_owned(), label: format!("Take {value}"), description: None }
}

pub fn question(id: &str) -> Question {
    Question {
        question_id: id.to_owned(),
        prompt: format!("Which one, {id}?"),
        options: vec![option("a"), option("b")],
        multi_select: None,
        allow_free_text: None,
        default_value: None,
    }
}

pub fn ask_by(identity: &Identity, run_id: RunId) -> Draft {
    let ask = QuestionAsk {
        ask_id: AskId::from_parts(1, unique()),
        questions: vec![question("q1")],
        timeout_seconds: None,
        on_no_answer: None,
    };
    draft(identity, run_id, DraftContent::QuestionAsk(ask))
}

pub fn chosen(question: &str, values: &[&str]) -> Answer {
    Answer {
        question_id: question.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        free_text: None,
    }
}

pub fn answer_by(identity: &Identity, run_id: RunId, ask_id: AskId, answers: Vec<Answer>) -> Draft {
    let answer = AnswerDraft { ask_id, answers, timed_out: false };
    draft(identity, run_id, DraftContent::QuestionAnswered(answer))
}

/// Lets a test change the question of a draft.
pub fn asking(draft: &mut Draft) -> &mut QuestionAsk {
    match &mut draft.content {
        DraftContent::QuestionAsk(ask) => ask,
        DraftContent::QuestionAnswered(_) => panic!("the draft asks nothing"),
    }
}

/// Gives the first question the default `a`, and the ask a time-out.
pub fn with_default(mut draft: Draft, seconds: u64) -> Draft {
    let ask = asking(&mut draft);
    ask.questions[0].default_value = Some("a".to_owned());
    ask.timeout_seconds = Some(seconds.into());
    ask.on_no_answer = Some(OnNoAnswer::UseDefault);
    draft
}

pub fn with_timeout(mut draft: Draft, seconds: u64) -> Draft {
    asking(&mut draft).timeout_seconds = Some(seconds.into());
    draft
}

pub fn ask_id(draft: &Draft) -> AskId {
    draft.content.ask_id()
}

pub fn appended(result: Result<Submitted, WriteError>) -> Arc<Record> {
    match result {
        Ok(Submitted::Appended(record)) => record,
        other => panic!("expected an append, got {other:?}"),
    }
}

pub fn replayed(result: Result<Submitted, WriteError>) -> (Arc<Record>, bool) {
    match result {
        Ok(Submitted::Replayed { record, differs }) => (record, differs),
        other => panic!("expected a replay, got {other:?}"),
    }
}

pub fn refused<T: std::fmt::Debug>(result: Result<T, WriteError>) -> Refusal {
    match result {
        Err(WriteError::Refused(refusal)) => *refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// Looks again and again, for at most twenty seconds, until something is there.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let found = tokio::time::timeout(Duration::from_secs(20), async {
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        loop {
            tick.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("in 20 s: {what}"))
}
