//! Every statement finds its rows by the workspace and a key beside it, whatever else is in the table: PostgreSQL itself tells the plan of
//! each statement that a day in the life of a store runs.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use chips_core::notify::{Channel, Outcome};
use chips_protocol::api::NewRun;
use chips_protocol::{AskId, RunId};
use chips_store::admin::{self, Admin};
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::{AskFilter, AsksQuery, Database, DropPlace, EventsQuery, LeaseOf, NewEndpoint, Options, Store};
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span;

use crate::support::*;

/// What belongs to the log of one workspace.
const OF_A_LOG: [&str; 10] =
    ["events", "asks", "keys", "runs", "run_labels", "agents", "seen", "outbox", "outbox_cursors", "attempts"];

/// What is looked for whatever its workspace: messages that are due, those for one address, how far each log was gone through, runs
/// that are over; and when a server starts, or is asked for its figures, all that is open.
const ACROSS: [&str; 6] =
    ["outbox_due", "outbox_by_endpoint", "outbox_cursors_pkey", "runs_by_no", "asks_open", "asks_open_of_harness"];
/// Clears away, once an hour, what was said long ago.
const SWEEP: &str = "DELETE FROM outbox WHERE state <> 0";

/// Takes in what PostgreSQL says of each statement, where its session warns of its plan; and counts how often the writer asked for
/// something and waited for the reply.
#[derive(Clone, Default)]
struct Plans(Arc<Mutex<Vec<Value>>>, Arc<AtomicU64>);

impl Plans {
    fn listen() -> Self {
        static LISTENING: OnceLock<Plans> = OnceLock::new();
        let listening = LISTENING.get_or_init(|| {
            let plans = Plans::default();
            tracing::subscriber::set_global_default(plans.clone()).unwrap();
            plans
        });
        listening.clone()
    }
}

struct Said<'a>(&'a Plans);

impl Visit for Said<'_> {
    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        if let (true, Some((_, plan))) = (field.name() == "said", value.split_once("plan:\n")) {
            self.0.0.lock().unwrap().push(serde_json::from_str(plan).unwrap());
        }
    }
}

impl tracing::Subscriber for Plans {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("chips_store::sql")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if *event.metadata().level() == tracing::Level::TRACE && std::thread::current().name() == Some("chips-writer") {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
        event.record(&mut Said(self));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// What is wrong with a node of a plan and those below it.
fn faults(node: &Value, relation: &str, found: &mut BTreeSet<String>) {
    let text = |name: &str| node[name].as_str().unwrap_or_default();
    let relation = if text("Relation Name").is_empty() { relation } else { text("Relation Name") };
    if OF_A_LOG.contains(&relation) {
        let index = text("Index Name");
        if text("Node Type") == "Seq Scan" {
            found.insert(format!("all of {relation} is read"));
        } else if !index.is_empty() && !text("Index Cond").contains("ws_no = ") && !ACROSS.contains(&index) {
            found.insert(format!("{index} is gone through by {:?}", text("Index Cond")));
        }
    }
    for below in node["Plans"].as_array().into_iter().flatten() {
        faults(below, relation, found);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_names_the_workspace_whose_rows_it_wants() {
    let plans = Plans::listen();
    let home = home();
    // Tables that are nearly empty are read as a whole unless that is said to cost much.
    let explained = "%20-csession_preload_libraries%3Dauto_explain%20-cauto_explain.log_min_duration%3D0\
                     %20-cauto_explain.log_format%3Djson%20-cauto_explain.log_level%3Dwarning%20-cenable_seqscan%3Doff\
                     %20-cenable_sort%3Doff";
    let location = Database::parse(&format!("{}{explained}", home.url())).unwrap();
    let made = admin::init(location.clone()).unwrap();
    let time = ManualTime::at(TimeSource::System.wall());
    let options = Options { time: TimeSource::Manual(time.clone()), ..Options::default() };
    let store = Store::open(location.clone(), options.clone()).unwrap();
    let world = World::enter(&store, &made).await;
    // The plan of administration is its own affair; from here on everything counts.
    plans.0.lock().unwrap().clear();

    let (run, ask) = live(&world, &time).await;
    store.close().await;
    // What is read now is not in memory.
    let store = Store::open(location.clone(), options).unwrap();
    let world = World { store: store.clone(), ..world };
    read(&world, run, ask).await;
    let mut export = Admin::open(location.clone()).unwrap();
    let mut exporting = export.export(world.workspace_id, None).unwrap();
    export.export_next(&mut exporting).unwrap();

    time.pass_ms(60_000);
    let before = store.clock().now();
    let mut place = Some(DropPlace::default());
    while let Some(at) = place {
        place = store.drop_older(before, at).await.unwrap().1;
    }
    store.close().await;

    let plans = plans.0.lock().unwrap();
    assert!(plans.len() > 200, "{} plans were told", plans.len());
    let mut wrong = BTreeSet::new();
    for plan in plans.iter().filter(|plan| !plan["Query Text"].as_str().unwrap().starts_with(SWEEP)) {
        let mut found = BTreeSet::new();
        faults(&plan["Plan"], "", &mut found);
        wrong.extend(found.into_iter().map(|fault| format!("{fault}: {}", plan["Query Text"])));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Everything that harnesses and people do, and that follows from it.
async fn live(world: &World, time: &ManualTime) -> (RunId, AskId) {
    let World { store, harness, person, .. } = world;
    for (who, channel) in [(person, Channel::Ntfy), (harness, Channel::HarnessWebhook)] {
        let (address, secret, name) = ("https://example.com/a".to_owned(), "{}".to_owned(), "Phone".to_owned());
        let endpoint = NewEndpoint { channel, address, secret, name, session_id: None };
        store.add_endpoint(who, endpoint).await.unwrap().unwrap();
    }
    let labels = Some([("team".to_owned(), "a".to_owned())].into());
    let new = NewRun { labels, lease_seconds: Some(60.into()), space_id: Some(world.space_id), ..NewRun::default() };
    let run = store.open_run(harness.sender, new).await.unwrap().0.run_id;
    let again = NewRun { run_id: Some(run), ..NewRun::default() };
    store.open_run(harness.sender, again).await.unwrap();

    let (first, second, third) = (world.ask(run), with_default(world.ask(run), 30), world.ask(run));
    for draft in [&first, &second, &third] {
        world.append(draft).await;
    }
    replayed(world.submit(&first).await);
    store.mark_seen(world.workspace_id, ask_id(&first), world.person_id());
    time.pass_ms(31_000);
    store.renew_lease(harness.sender, LeaseOf::Run(run));
    store.renew_lease(harness.sender, LeaseOf::Ask(ask_id(&third)));
    tell(world, &Outcome::Refused("no".to_owned())).await;
    tell(world, &Outcome::Accepted).await;
    let answer = world.answer(run, ask_id(&first), "a");
    world.append(&answer).await;
    store.expire(world.workspace_id, ask_id(&second)).await.unwrap();
    refused(world.submit(&world.answer(run, ask_id(&second), "b")).await);
    store.mark_delivered(world.workspace_id, ask_id(&first));
    store.acknowledge(harness.sender, ask_id(&first)).await.unwrap();
    tell(world, &Outcome::Accepted).await;
    store.end_run(harness.sender, run).await.unwrap();
    tell(world, &Outcome::Accepted).await;
    (run, ask_id(&first))
}

/// Everything that can be read.
async fn read(world: &World, run: RunId, ask: AskId) {
    let World { store, harness, person, .. } = world;
    for viewer in [person, harness] {
        let all = EventsQuery { limit: 100, ..EventsQuery::default() };
        for query in
            [all.clone(), EventsQuery { run_id: Some(run), ..all.clone() }, EventsQuery { ask_id: Some(ask), ..all }]
        {
            store.events(viewer, &query).await.unwrap();
        }
        let all = AsksQuery { limit: 1, filter: AskFilter::All, ..AsksQuery::default() };
        for query in [
            all.clone(),
            AsksQuery { filter: AskFilter::Open, ..all.clone() },
            AsksQuery { run_id: Some(run), ..all.clone() },
            AsksQuery { harness_id: Some(world.harness_id()), ..all.clone() },
            AsksQuery { label: Some(("team".to_owned(), "a".to_owned())), ..all.clone() },
            AsksQuery { text: Some("which".to_owned()), ..all },
        ] {
            store.asks(viewer, &query).await.unwrap();
        }
        store.ask(viewer, ask).await.unwrap().unwrap();
        store.run(viewer, run).await.unwrap().unwrap();
        store.me(viewer).await.unwrap();
        store.replay_by_key(viewer.sender, "key").await.unwrap();
    }
    store.attempts(person, ask).await.unwrap().unwrap();
    store.seen(person, ask).await.unwrap().unwrap();
    store.askers(person).await.unwrap();
    store.next_notice().await.unwrap();
    store.stats().await.unwrap();
}

/// Plans, and says the same of every message that is due.
async fn tell(world: &World, outcome: &Outcome) {
    world.store.plan_notices(&BTreeSet::new()).await.unwrap();
    for notice in world.store.claim_notices(100).await.unwrap() {
        world.store.record_attempt(&notice, outcome.clone(), 0.0).await.unwrap();
    }
}

#[tokio::test]
async fn a_group_of_asks_takes_as_many_round_trips_as_one_ask() {
    const OF_A_GROUP: u64 = 7; // begin, turn, look-up, budgets, rows, head, commit
    let trips = Plans::listen().1;
    let (home, world) = world().await;
    Admin::open(home.path()).unwrap().set_budget(world.harness_id(), Some(Some(1_000)), Some(Some(1_000))).unwrap();
    let run = world.run().await;
    // Statements are prepared once, which is a round trip as well.
    world.asked(run).await;
    let so_far = async || (trips.load(Ordering::SeqCst), world.store.stats().await.unwrap().commits);
    let before = so_far().await;
    world.asked(run).await;
    let one = so_far().await;
    assert_eq!((one.0 - before.0, one.1 - before.1), (OF_A_GROUP, 1));

    let drafts: Vec<_> = (0..64).map(|_| world.ask(run)).collect();
    futures::future::join_all(drafts.iter().map(|draft| world.append(draft))).await;
    let many = so_far().await;
    let groups = many.1 - one.1;
    assert_eq!(many.0 - one.0, OF_A_GROUP * groups);
    assert!(groups < 32, "{groups} groups of 64 asks at once");
}
