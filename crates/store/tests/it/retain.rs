//! Dropping what is older than is kept: random logs against a model, and what must survive it.

use std::collections::BTreeMap;

use chips_core::notify::Channel;
use chips_protocol::api::NewRun;
use chips_protocol::{AskId, Draft, Timestamp};
use chips_store::admin::{self, Admin};
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::{DropPlace, EventsQuery, NewEndpoint, Options, Store};
use proptest::prelude::*;

use crate::support::*;

const DAY: i64 = 86_400_000;

/// Drops everything that is older than this many days. Gives how many events that were.
async fn drop_older(world: &World, days: i64) -> u64 {
    let before = world.store.clock().now().plus_ms(-days * DAY);
    let (mut dropped, mut place) = (0, Some(DropPlace::default()));
    while let Some(at) = place {
        let (events, next) = world.store.drop_older(before, at).await.unwrap();
        dropped += events;
        place = next;
    }
    dropped
}

/// A world whose clock is moved by hand.
async fn world_by_hand() -> (Home, ManualTime, World) {
    let time = ManualTime::at(TimeSource::System.wall());
    let (dir, world) = world_with(options(&time)).await;
    Admin::open(dir.path()).unwrap().set_budget(world.harness_id(), Some(None), Some(None)).unwrap();
    (dir, time, world)
}

fn options(time: &ManualTime) -> Options {
    Options { time: TimeSource::Manual(time.clone()), readers: 1 }
}

async fn reopened(home: &Home, time: &ManualTime, world: World) -> World {
    world.store.clone().close().await;
    World { store: Store::open(home.path(), options(time)).unwrap(), ..world }
}

fn count(home: &Home, sql: &str) -> i64 {
    if crate::ON_POSTGRES {
        return home.sql(sql).parse().unwrap();
    }
    let file = rusqlite::Connection::open(home.beside().join("chips.db")).unwrap();
    file.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Ask,
    /// Answers the oldest open ask, or the newest.
    Answer(bool),
    Pass(i64),
    Drop(i64),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Ask),
        6 => any::<bool>().prop_map(Step::Answer),
        4 => (0..20_i64).prop_map(|tenths| Step::Pass(tenths * DAY / 10)),
        2 => (1..4_i64).prop_map(Step::Drop),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

/// An event of the model's log.
#[derive(Debug, Clone)]
struct Logged {
    ts: Timestamp,
    ask: usize,
    key: String,
}

#[derive(Debug, Default)]
struct Model {
    log: Vec<Logged>,
    /// Places in the log of the two events of each ask.
    asks: Vec<(usize, Option<usize>)>,
    drafts: Vec<Draft>,
    /// How many events were dropped.
    dropped: usize,
}

impl Model {
    /// The longest beginning in which nothing is young and nothing is of an open ask.
    fn cut(&self, before: Timestamp) -> usize {
        let stays = |event: &Logged| event.ts > before || self.asks[event.ask].1.is_none();
        self.log.iter().position(stays).unwrap_or(self.log.len()).max(self.dropped)
    }

    /// Whether an ask is still there: its last event is in the log.
    fn is_kept(&self, ask: usize) -> bool {
        self.asks[ask].1.is_none_or(|closed| closed >= self.dropped)
    }
}

async fn check(home: &Home, world: &World, model: &Model) {
    let kept_from = model.dropped as u64 + 1;
    assert_eq!((world.head(), world.store.kept_from(world.workspace_id)), (model.log.len() as u64, kept_from));
    for viewer in [&world.person, &world.harness] {
        let query = EventsQuery { after: kept_from - 1, limit: 1_000, ..EventsQuery::default() };
        let log = world.log_of(viewer, query).await;
        assert_eq!(
            log.iter().map(|record| record.seq).collect::<Vec<_>>(),
            (kept_from..=world.head()).collect::<Vec<_>>()
        );
        let batch = world.store.events(viewer, &EventsQuery { limit: 1, ..EventsQuery::default() }).await.unwrap();
        assert_eq!(batch.kept_from, kept_from);
        assert!(batch.records.iter().all(|record| record.seq >= kept_from));
    }
    for (ask, draft) in model.drafts.iter().enumerate() {
        let shown = world.store.ask(&world.person, ask_id(draft)).await.unwrap();
        assert_eq!(shown.is_some(), model.is_kept(ask));
        if let Some(shown) = shown {
            assert_eq!(shown.answer.is_some(), model.asks[ask].1.is_some());
        }
        // Its key holds as long as it is there.
        let by_key = world.store.replay_by_key(world.harness.sender, &draft.idempotency_key).await.unwrap();
        assert_eq!(by_key.map(|record| record.seq), model.is_kept(ask).then_some(model.asks[ask].0 as u64 + 1));
    }
    for (place, event) in model.log.iter().enumerate() {
        let by_key = world.store.replay_by_key(world.person.sender, &event.key).await.unwrap();
        let closes = model.asks[event.ask].1 == Some(place);
        assert_eq!(by_key.is_some(), closes && model.is_kept(event.ask));
    }
    let kept = model.asks.iter().enumerate().filter(|(ask, _)| model.is_kept(*ask));
    let events: usize = kept.map(|(_, (_, closed))| 1 + usize::from(closed.is_some())).sum();
    assert_eq!(count(home, "SELECT count(*) FROM events"), events as i64);
    assert_eq!(count(home, "SELECT count(*) FROM keys"), events as i64);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if crate::ON_POSTGRES { 6 } else { 24 }, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_log_loses_its_old_beginning_and_nothing_else(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (dir, time, mut world) = world_by_hand().await;
            let run = world.run().await;
            let mut model = Model::default();
            for step in steps {
                match step {
                    Step::Ask => {
                        let draft = world.ask(run);
                        let record = world.append(&draft).await;
                        assert_eq!(record.seq, model.log.len() as u64 + 1);
                        let (ts, ask) = (record.event.envelope.ts, model.asks.len());
                        assert!(model.log.last().is_none_or(|last| last.ts <= ts));
                        model.asks.push((model.log.len(), None));
                        model.log.push(Logged { ts, ask, key: draft.idempotency_key.clone() });
                        model.drafts.push(draft);
                    }
                    Step::Answer(oldest) => {
                        let mut open: Vec<_> = (0..model.asks.len()).filter(|ask| model.asks[*ask].1.is_none()).collect();
                        if oldest {
                            open.reverse();
                        }
                        let Some(ask) = open.pop() else { continue };
                        let draft = world.answer(run, ask_id(&model.drafts[ask]), "a");
                        let record = world.append(&draft).await;
                        model.asks[ask].1 = Some(model.log.len());
                        model.log.push(Logged { ts: record.event.envelope.ts, ask, key: draft.idempotency_key });
                    }
                    Step::Pass(ms) => time.pass_ms(ms),
                    Step::Drop(days) => {
                        let cut = model.cut(world.store.clock().now().plus_ms(-days * DAY));
                        let dropped = drop_older(&world, days).await;
                        assert_eq!(dropped, (cut - model.dropped) as u64);
                        model.dropped = cut;
                        assert_eq!(drop_older(&world, days).await, 0, "twice is once");
                        check(&dir, &world, &model).await;
                    }
                    Step::Restart => world = reopened(&dir, &time, world).await,
                }
            }
            check(&dir, &world, &model).await;
            let world = reopened(&dir, &time, world).await;
            check(&dir, &world, &model).await;
        });
    }
}

#[tokio::test]
async fn numbers_and_times_go_on_where_all_of_the_log_was_dropped() {
    let (dir, time, world) = world_by_hand().await;
    let run = world.run().await;
    let ask = world.asked(run).await;
    let last = world.append(&world.answer(run, ask, "a")).await.event.envelope.ts;
    time.pass_ms(3 * DAY);
    assert_eq!(drop_older(&world, 2).await, 2);
    assert_eq!(count(&dir, "SELECT count(*) FROM events"), 0);
    // The wall clock has been set back, before the start: what is written next must not be earlier.
    world.store.clone().close().await;
    let back = ManualTime::at(last.plus_ms(-9 * DAY));
    let world = World { store: Store::open(dir.path(), options(&back)).unwrap(), ..world };
    assert_eq!((world.head(), world.store.kept_from(world.workspace_id)), (2, 3));
    assert!(world.store.clock().now() >= last);
    let record = world.append(&world.ask(run)).await;
    assert_eq!(record.seq, 3);
    assert!(record.event.envelope.ts >= last);
    // An administrative act is not earlier than the log either.
    let (made, _) = Admin::open(dir.path()).unwrap().add_person(world.workspace_id, "Ada").unwrap();
    assert!(made.id.ulid().timestamp_ms() >= last.ms().unsigned_abs());
    // A dropped ask is not known any more: its id may be asked again.
    assert!(world.store.ask(&world.person, ask).await.unwrap().is_none());
    let mut again = world.ask(run);
    asking(&mut again).ask_id = ask;
    assert_eq!(world.append(&again).await.seq, 4);
}

#[tokio::test]
async fn what_was_not_gone_through_for_messages_stays_and_what_was_said_goes() {
    let (dir, time, world) = world_by_hand().await;
    let run = world.run().await;
    let endpoint = NewEndpoint {
        channel: Channel::Webhook,
        address: "https://example.com/".into(),
        secret: "{}".into(),
        name: "Hook".into(),
        session_id: None,
    };
    world.store.add_endpoint(&world.person, endpoint).await.unwrap().unwrap();
    let ask = world.asked(run).await;
    world.store.plan_notices(&[].into()).await.unwrap();
    for notice in world.store.claim_notices(10).await.unwrap() {
        world.store.record_attempt(&notice, chips_core::notify::Outcome::Accepted, 0.0).await.unwrap();
    }
    world.append(&world.answer(run, ask, "a")).await;
    time.pass_ms(3 * DAY);
    // The close was not gone through.
    assert_eq!(drop_older(&world, 1).await, 1);
    assert!(world.store.ask(&world.person, ask).await.unwrap().is_some());
    world.store.plan_notices(&[].into()).await.unwrap();
    assert_eq!(drop_older(&world, 1).await, 1);
    for table in ["outbox", "attempts", "asks", "events"] {
        assert_eq!(count(&dir, &format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    // A sender that comes back with an outcome finds nothing, and that is fine.
    assert!(world.store.claim_notices(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_run_goes_when_it_has_ended_and_nothing_of_it_is_left() {
    let (dir, time, world) = world_by_hand().await;
    let new = |title: &str| NewRun {
        title: Some(title.to_owned()),
        labels: Some(BTreeMap::from([("team".to_owned(), "billing".to_owned())])),
        ..NewRun::default()
    };
    let mut runs = Vec::new();
    for title in ["ended", "lives", "with an open ask", "ends later"] {
        runs.push(world.store.open_run(world.harness.sender, new(title)).await.unwrap().0.run_id);
    }
    let asks: Vec<AskId> = futures::future::join_all(runs.iter().map(|run| world.asked(*run))).await;
    for nth in [0, 1, 3] {
        world.append(&world.answer(runs[nth], asks[nth], "a")).await;
    }
    world.store.end_run(world.harness.sender, runs[0]).await.unwrap();
    time.pass_ms(3 * DAY);
    world.store.end_run(world.harness.sender, runs[3]).await.unwrap();
    let there = async |run| world.store.run(&world.person, run).await.unwrap().is_some();

    // The open ask is the third event, so the asks of the first two runs were not dropped with it but stand before it.
    drop_older(&world, 2).await;
    let first_open = world.shown(asks[2]).await.ask.envelope.seq.unwrap();
    assert!(world.store.kept_from(world.workspace_id) <= first_open);
    world.append(&world.answer(runs[2], asks[2], "a")).await;
    time.pass_ms(DAY);
    drop_older(&world, 2).await;
    assert!(!there(runs[0]).await, "it had ended long before");
    assert!(there(runs[1]).await, "it lives");
    assert!(there(runs[2]).await && there(runs[3]).await);
    time.pass_ms(3 * DAY);
    drop_older(&world, 2).await;
    assert!(there(runs[1]).await && there(runs[2]).await);
    assert!(!there(runs[3]).await);
    assert_eq!(count(&dir, "SELECT count(*) FROM events"), 0);
    assert_eq!(count(&dir, "SELECT count(*) FROM run_labels"), 2);
    // The harness goes on in a run that lives.
    world.asked(runs[1]).await;
}

#[tokio::test]
async fn a_workspace_loses_nothing_with_another_and_writes_go_on_meanwhile() {
    let (dir, time, world) = world_by_hand().await;
    let made = Admin::open(dir.path()).unwrap().add_workspace("Second").unwrap();
    let second = World::enter(&world.store, &made).await;
    let (run, theirs) = (world.run().await, second.run().await);
    for _ in 0..300 {
        let ask = world.asked(run).await;
        world.append(&world.answer(run, ask, "a")).await;
    }
    time.pass_ms(3 * DAY);
    let kept = second.asked(theirs).await;
    let before = world.store.clock().now().plus_ms(-2 * DAY);
    let (mut place, mut steps) = (Some(DropPlace::default()), 0);
    while let Some(at) = place {
        let (_, next) = world.store.drop_older(before, at).await.unwrap();
        (place, steps) = (next, steps + 1);
        // Between any two steps the log is whole, and can be written.
        let query = EventsQuery {
            after: world.store.kept_from(world.workspace_id) - 1,
            limit: 1_000,
            ..EventsQuery::default()
        };
        let log = world.log_of(&world.person, query).await;
        assert_eq!(log.last().map_or(600, |record| record.seq), world.head());
        world.asked(run).await;
    }
    assert!(steps > 4, "in {steps} steps");
    assert_eq!(count(&dir, "SELECT count(*) FROM events"), steps + 1);
    assert_eq!(second.shown(kept).await.ask.envelope.seq, Some(1));
    assert_eq!(world.store.kept_from(second.workspace_id), 1);
    assert!(admin::is_initialised(dir.path()).unwrap());
}
