//! What was acknowledged is there, once, whatever happens around it.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use chips_protocol::{EventType, RunId};
use chips_store::{AskFilter, AsksQuery, EventsQuery, Identity, Store, Submitted};

use crate::support::*;

/// Polls a future once.
fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    let mut future = pin!(future);
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a_write_that_was_begun_is_carried_out_though_nobody_waits() {
    let (_dir, world) = world().await;
    let run = world.run().await;
    let drafts: Vec<_> = (0..20).map(|_| world.ask(run)).collect();
    for draft in &drafts {
        // The request is dropped here, half-way.
        drop(poll_once(world.submit(draft)));
    }
    for draft in &drafts {
        match world.submit(draft).await.unwrap() {
            Submitted::Replayed { .. } => {}
            Submitted::Appended(record) => panic!("{} was lost and is there only now", record.seq),
        }
    }
    assert_eq!(world.head(), 20);
}

#[tokio::test]
async fn one_that_was_never_begun_leaves_nothing() {
    let (_dir, world) = world().await;
    let run = world.run().await;
    let draft = world.ask(run);
    drop(world.submit(&draft));
    world.append(&draft).await;
}

#[tokio::test]
async fn keys_ids_and_the_order_hold_over_a_restart() {
    let (dir, world) = world().await;
    let run = world.run().await;
    let (draft, other) = (world.ask(run), world.ask(run));
    let first = world.append(&draft).await;
    world.append(&other).await;
    let answer = world.answer(run, ask_id(&other), "a");
    world.append(&answer).await;
    let log = world.store.log_id().to_owned();
    world.store.clone().close().await;

    let store = open(dir.path());
    assert_eq!(store.log_id(), log);
    let world = World { store, ..world };
    let (again, differs) = replayed(world.submit(&draft).await);
    assert_eq!((&*again, differs), (&*first, false));
    let mut changed = world.ask(run);
    changed.idempotency_key = answer.idempotency_key.clone();
    // The key is the person's: for the harness it is a new one.
    assert_eq!(world.append(&changed).await.seq, 4);
    replayed(world.submit(&answer).await);
    assert_eq!(
        refused(world.submit(&chips_protocol::Draft { id: draft.id, ..world.ask(run) }).await).code().as_str(),
        "event_id_conflict"
    );
    assert_eq!(world.asked(run).await, world.log(&world.harness).await[4].event.content.ask_id());
}

/// Everything that the viewer can be told by these queries.
async fn told(world: &World, viewer: &Identity, run: RunId) -> String {
    let mut all = String::new();
    let ask = world.log(viewer).await[3].event.content.ask_id();
    for (event_type, run_id, ask_id) in [
        (None, None, None),
        (Some(EventType::QuestionAsk), None, None),
        (Some(EventType::QuestionAnswered), None, None),
        (None, Some(run), None),
        (Some(EventType::QuestionAnswered), Some(run), None),
        (None, None, Some(ask)),
    ] {
        for (after, limit) in [(0, 3), (0, 1_000), (5, 1), (20, 2)] {
            let query = EventsQuery { after, limit, event_type, run_id, ask_id };
            let records = world.log_of(viewer, query).await;
            all += &format!("{records:?}\n");
        }
    }
    for filter in [AskFilter::All, AskFilter::Open, AskFilter::Closed] {
        let page = world.store.asks(viewer, &AsksQuery { filter, limit: 7, ..AsksQuery::default() }).await.unwrap();
        all += &format!("{page:?}\n");
    }
    all
}

#[tokio::test]
async fn what_is_read_from_the_file_is_what_was_read_from_memory() {
    let (_dir, world) = world().await;
    let (run, other) = (world.run().await, world.run().await);
    for nth in 0..30_u32 {
        let run = if nth % 3 == 0 { other } else { run };
        let ask = world.asked(run).await;
        if nth % 2 == 0 {
            world.append(&world.answer(run, ask, "b")).await;
        }
    }
    let mut before = Vec::new();
    for viewer in [&world.person, &world.harness] {
        before.push(told(&world, viewer, run).await);
    }
    world.store.clone().close().await;
    let world = World { store: open(_dir.path()), ..world };
    for (viewer, before) in [&world.person, &world.harness].into_iter().zip(before) {
        assert_eq!(told(&world, viewer, run).await, before);
    }
}

#[tokio::test]
async fn closing_finishes_what_was_queued_and_ends_every_wait() {
    let (dir, world) = world().await;
    let run = world.run().await;
    let open_ask = world.asked(run).await;
    let wait = world.store.closing(world.workspace_id, open_ask);
    let drafts: Vec<_> = (0..100).map(|_| world.ask(run)).collect();
    for draft in &drafts {
        drop(poll_once(world.submit(draft)));
    }
    world.store.clone().close().await;
    assert!(wait.await.is_err());
    assert!(world.store.closing(world.workspace_id, open_ask).await.is_err());
    assert!(matches!(world.submit(&drafts[0]).await, Err(chips_store::WriteError::Unavailable { .. })));
    assert!(world.store.ask(&world.person, open_ask).await.is_err());

    let world = World { store: open(dir.path()), ..world };
    // The 99 that the budget leaves room for.
    assert_eq!(world.head(), 100);
    for draft in &drafts[..99] {
        replayed(world.submit(draft).await);
    }
}

#[tokio::test]
async fn a_store_that_is_dropped_gives_its_folder_back() {
    let (dir, world) = world().await;
    let run = world.run().await;
    let draft = world.ask(run);
    world.append(&draft).await;
    let World { store, harness, .. } = world;
    drop(store);
    let store =
        eventually("the folder is free", async || Store::open(dir.path(), chips_store::Options::default()).ok()).await;
    replayed(store.submit(harness.sender, draft).await);
}
