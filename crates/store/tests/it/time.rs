//! Chips' clock, deadlines, leases and the hourly budget, by clocks that are moved by hand.

use std::collections::BTreeMap;

use chips_core::Refusal;
use chips_protocol::api::{AskState, NewRun};
use chips_protocol::{AskId, Timestamp, WorkspaceId};
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::{DeadlineChange, LeaseOf, Options, Store};
use futures::future::join_all;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::support::*;

/// A world whose clocks a test moves, beginning at the real time.
async fn by_hand() -> (Home, World, ManualTime) {
    let time = ManualTime::at(TimeSource::System.wall());
    let (dir, world) = world_with(at(&time)).await;
    (dir, world, time)
}

fn at(time: &ManualTime) -> Options {
    Options { time: TimeSource::Manual(time.clone()), ..Options::default() }
}

fn wall(time: &ManualTime) -> Timestamp {
    TimeSource::Manual(time.clone()).wall()
}

const HOUR: i64 = 3_600_000;

#[tokio::test]
async fn a_wall_clock_that_jumps_moves_no_deadline_and_no_ts_back() {
    let (_dir, world, time) = by_hand().await;
    let start = wall(&time);
    let run = world.run().await;
    let draft = with_timeout(world.ask(run), 60);
    let asked = world.append(&draft).await;
    assert_eq!(asked.event.envelope.ts, start);
    for jump in [-2 * HOUR, 4 * HOUR] {
        time.set_wall(wall(&time).plus_ms(jump));
        time.pass_ms(29_999);
        world.asked(run).await;
        assert!(!world.store.expire(world.workspace_id, ask_id(&draft)).await.unwrap());
    }
    time.pass_ms(2);
    assert!(world.store.expire(world.workspace_id, ask_id(&draft)).await.unwrap());
    let closed = world.shown(ask_id(&draft)).await.answer.unwrap();
    assert_eq!(closed.envelope.ts, start.plus_ms(60_000));
    let stamps: Vec<_> = world.log(&world.person).await.iter().map(|record| record.event.envelope.ts).collect();
    assert!(stamps.is_sorted(), "{stamps:?}");
}

#[tokio::test]
async fn after_a_restart_the_clock_is_not_behind_the_log() {
    let (dir, world, time) = by_hand().await;
    let start = wall(&time);
    let run = world.run().await;
    time.pass_ms(HOUR);
    world.asked(run).await;
    let token = chips_store::admin::Admin::open(dir.path()).unwrap().add_harness(world.workspace_id, "H").unwrap();
    world.store.clone().close().await;

    // The wall clock went an hour back while nothing ran.
    time.set_wall(start);
    let store = Store::open(dir.path(), at(&time)).unwrap();
    assert_eq!(store.clock().now(), start.plus_ms(HOUR));
    let harness = identity(&store, &token.token).await;
    let run = store.open_run(harness.sender, NewRun::default()).await.unwrap().0;
    assert_eq!(run.started_at, start.plus_ms(HOUR));
    let record = appended(store.submit(harness.sender, ask_by(&harness, run.run_id)).await);
    assert_eq!((record.seq, record.event.envelope.ts), (2, start.plus_ms(HOUR)));
}

#[tokio::test]
async fn one_second_after_the_deadline_the_answer_is_too_late() {
    let (_dir, world, time) = by_hand().await;
    let run = world.run().await;
    let draft = with_default(world.ask(run), 60);
    world.append(&draft).await;
    time.pass_ms(59_999);
    assert!(!world.store.expire(world.workspace_id, ask_id(&draft)).await.unwrap());
    time.pass_ms(1_001);
    let late = refused(world.submit(&world.answer(run, ask_id(&draft), "b")).await);
    let Refusal::AlreadyClosed(winner) = late else { panic!("the deadline decides") };
    assert_eq!(winner.as_answered().unwrap().answers, [chosen("q1", &["a"])]);
    assert_eq!(world.shown(ask_id(&draft)).await.late_answers.len(), 1);
}

#[tokio::test]
async fn the_end_of_a_run_finds_what_is_overdue_timed_out() {
    let (_dir, world, time) = by_hand().await;
    let run = world.run().await;
    let (overdue, open) = (with_default(world.ask(run), 60), with_default(world.ask(run), 61));
    world.append(&overdue).await;
    world.append(&open).await;
    time.pass_ms(60_000);
    world.store.end_run(world.harness.sender, run).await.unwrap();
    assert_eq!(world.shown(ask_id(&overdue)).await.state, AskState::TimedOut);
    assert_eq!(world.shown(ask_id(&open)).await.state, AskState::Withdrawn);
}

/// The deadlines that are pending after every change that was told so far.
#[derive(Default)]
struct Pending(BTreeMap<(Timestamp, AskId), WorkspaceId>);

impl Pending {
    fn follow(&mut self, changes: &mut UnboundedReceiver<DeadlineChange>) {
        while let Ok(change) = changes.try_recv() {
            match change {
                DeadlineChange::Opened(at, workspace, ask) => {
                    assert_eq!(self.0.insert((at, ask), workspace), None, "told twice");
                }
                DeadlineChange::Closed(at, workspace, ask) => {
                    assert_eq!(self.0.remove(&(at, ask)), Some(workspace), "closed without having been opened");
                }
            }
        }
    }
}

#[tokio::test]
async fn thousands_of_deadlines_are_told_again_after_a_restart_and_close_once_each() {
    let (dir, world, time) = by_hand().await;
    let mut admin = chips_store::admin::Admin::open(dir.path()).unwrap();
    admin.set_budget(world.harness_id(), Some(None), Some(None)).unwrap();
    let token = admin.rotate(chips_protocol::ParticipantId::Person(world.person_id()), None).unwrap().0.token;
    let run = world.run().await;
    let drafts: Vec<_> = (0..5_000).map(|nth| with_timeout(world.ask(run), 1 + nth % 50)).collect();
    join_all(drafts.iter().map(|draft| world.append(draft))).await;
    let waiting = world.asked(run).await;
    let mut changes = world.store.deadlines().unwrap();
    assert!(world.store.deadlines().is_none());
    let mut pending = Pending::default();
    pending.follow(&mut changes);
    assert_eq!(pending.0.len(), 5_000);
    world.append(&world.answer(run, ask_id(&drafts[0]), "a")).await;
    world.append(&world.answer(run, waiting, "a")).await;
    pending.follow(&mut changes);
    assert_eq!(pending.0.len(), 4_999);
    world.store.clone().close().await;

    // Half of them pass while nothing runs; none closes before its time, and no read closes one.
    time.pass_ms(25_000);
    let store = Store::open(dir.path(), at(&time)).unwrap();
    let person = identity(&store, &token).await;
    let mut changes = store.deadlines().unwrap();
    let mut again = Pending::default();
    again.follow(&mut changes);
    assert_eq!(again.0, pending.0);
    let now = store.clock().now();
    let results = join_all(
        again.0.iter().map(async |((at, ask), workspace)| (*at, store.expire(*workspace, *ask).await.unwrap())),
    )
    .await;
    assert!(results.iter().all(|(at, closed)| *closed == (*at <= now)));
    again.follow(&mut changes);
    assert_eq!(again.0.len(), 2_500);
    let closed = results.iter().filter(|(_, closed)| *closed).count() as u64;
    assert_eq!(*store.head(person.sender.workspace_id).borrow(), 5_000 + 1 + 2 + closed);
}

#[tokio::test]
async fn an_ask_leaves_the_hour_after_an_hour() {
    let (dir, world, time) = by_hand().await;
    let mut admin = chips_store::admin::Admin::open(dir.path()).unwrap();
    admin.set_budget(world.harness_id(), Some(None), Some(Some(3))).unwrap();
    let token = admin.rotate(chips_protocol::ParticipantId::Harness(world.harness_id()), None).unwrap().0.token;
    let run = world.run().await;
    for _ in 0..3 {
        world.asked(run).await;
        time.pass_ms(10_000);
    }
    let one_more = world.ask(run);
    let refusal = refused(world.submit(&one_more).await);
    assert!(matches!(&refusal, Refusal::OverBudget(over) if over.hourly && over.limit == 3));
    assert_eq!(refusal.retry_after_s(), Some(3_570));
    world.store.clone().close().await;

    // What was asked before the restart counts after it.
    let store = Store::open(dir.path(), at(&time)).unwrap();
    let harness = identity(&store, &token).await;
    assert_eq!(store.me(&harness).await.unwrap().budget.unwrap().hour, 3);
    refused(store.submit(harness.sender, one_more.clone()).await);
    time.pass_ms(3_570_000);
    appended(store.submit(harness.sender, one_more).await);
    let budget = store.me(&harness).await.unwrap().budget.unwrap();
    assert_eq!((budget.hour, budget.open), (3, 4));
}

#[tokio::test]
async fn a_lease_that_nobody_renews_lapses() {
    let (_dir, world, time) = by_hand().await;
    let store = &world.store;
    let leased = NewRun { lease_seconds: Some(60.into()), ..NewRun::default() };
    let run = store.open_run(world.harness.sender, leased).await.unwrap().0;
    let start = run.started_at;
    let ask = world.asked(run.run_id).await;
    let until = async || store.run(&world.harness, run.run_id).await.unwrap().unwrap().lease_until.unwrap();

    // Too soon to be worth a write: the next write takes the note along and changes nothing.
    time.pass_ms(15_000);
    store.renew_lease(world.harness.sender, LeaseOf::Run(run.run_id));
    world.asked(run.run_id).await;
    assert_eq!(until().await, start.plus_ms(60_000));

    time.pass_ms(30_000);
    store.renew_lease(world.person.sender, LeaseOf::Run(run.run_id));
    store.renew_lease(world.harness.sender, LeaseOf::Ask(ask));
    let renewed = start.plus_ms(45_000 + 60_000);
    eventually("the renewal is written by itself", async || (until().await == renewed).then_some(())).await;

    time.pass_ms(59_999);
    assert!(!world.shown(ask).await.asker_gone);
    time.pass_ms(1);
    assert!(world.shown(ask).await.asker_gone);
    // Still answerable, and closed nobody is missed any more.
    world.append(&world.answer(run.run_id, ask, "a")).await;
    assert!(!world.shown(ask).await.asker_gone);
}
