//! A disk that is full, a database that is held, a job that fails, a commit of which nobody knows.

use std::time::Duration;

use chips_core::Refusal;
use chips_protocol::api::AskState;
use chips_protocol::{AskId, Draft};
use chips_store::{EventsQuery, Store, WriteError};
use futures::future::join_all;
use rusqlite::Connection;

use crate::in_folder::world_in_folder;
use crate::support::*;

fn beside(dir: &tempfile::TempDir) -> Connection {
    Connection::open(dir.path().join("chips.db")).unwrap()
}

/// Queues these writes so that they share a group: nothing is written while another process holds the database.
async fn in_one_group<T>(dir: &tempfile::TempDir, world: &World, writes: impl Future<Output = T>) -> T {
    let holder = beside(dir);
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The writer takes the first job, waits for the database with it, and finds all others when it comes back.
    let first = world.store.open_run(world.harness.sender, Default::default());
    let release = async {
        tokio::task::yield_now().await;
        holder.execute_batch("COMMIT").unwrap();
    };
    let (first, written, ()) = tokio::join!(first, writes, release);
    first.unwrap();
    written
}

/// Makes the database refuse this ask, after its event and key were written.
fn sabotage(dir: &tempfile::TempDir, ask: AskId, how: &str) {
    let id: String = ask.to_bytes().iter().map(|byte| format!("{byte:02X}")).collect();
    beside(dir)
        .execute_batch(&format!(
            "CREATE TRIGGER sabotage BEFORE INSERT ON asks WHEN NEW.ask_id = X'{id}'
             BEGIN SELECT RAISE({how}, 'sabotaged'); END"
        ))
        .unwrap();
}

async fn one_bad_job_among_its_neighbours(how: &str) {
    let (dir, world) = world_in_folder().await;
    let run = world.run().await;
    let drafts: Vec<_> = (0..9).map(|_| world.ask(run)).collect();
    let bad = &drafts[4];
    sabotage(&dir, ask_id(bad), how);
    let before = world.store.stats().await.unwrap().commits;
    let results = in_one_group(&dir, &world, join_all(drafts.iter().map(|draft| world.submit(draft)))).await;
    let commits = world.store.stats().await.unwrap().commits - before;
    assert!(commits < 9 || how == "ROLLBACK", "{commits} commits: the jobs did not share a group");

    let mut seqs = Vec::new();
    for (draft, result) in drafts.iter().zip(results) {
        if draft.id == bad.id {
            assert!(matches!(result, Err(WriteError::Unavailable { .. })), "{result:?}");
        } else {
            seqs.push(appended(result).seq);
        }
    }
    assert_eq!(seqs, (1..=8).collect::<Vec<_>>());
    assert_eq!(world.log(&world.harness).await.iter().map(|record| record.seq).collect::<Vec<_>>(), seqs);
    let budget = world.store.me(&world.harness).await.unwrap().budget.unwrap();
    assert_eq!((budget.open, budget.hour), (8, 8));
    assert_eq!(world.store.replay_by_key(world.harness.sender, &bad.idempotency_key).await.unwrap(), None);
    // Neither its key nor its id is used up.
    beside(&dir).execute_batch("DROP TRIGGER sabotage").unwrap();
    assert_eq!(world.append(bad).await.seq, 9);
}

#[tokio::test]
async fn a_job_that_fails_leaves_its_neighbours() {
    one_bad_job_among_its_neighbours("ABORT").await;
}

#[tokio::test]
async fn a_job_that_takes_the_whole_transaction_down_leaves_its_neighbours() {
    one_bad_job_among_its_neighbours("ROLLBACK").await;
}

#[tokio::test]
async fn on_a_full_disk_writes_are_refused_reading_goes_on_and_writes_come_back_by_themselves() {
    let (_dir, world) = world_in_folder().await;
    let run = world.run().await;
    let first = world.asked(run).await;
    world.store.rehearsal().full(true);
    let refused_draft = fill(&world, run).await;
    let written = world.head();

    assert!(
        matches!(world.store.ready().await, Err(WriteError::Unavailable { retry_after_s, .. }) if retry_after_s > 0)
    );
    assert!(!world.store.stats().await.unwrap().writable);
    // What commits without a new event, such as looking for messages to plan, takes nothing of that back.
    let commits = world.store.stats().await.unwrap().commits;
    world.store.claim_notices(1).await.unwrap();
    let stats = world.store.stats().await.unwrap();
    assert!(stats.commits > commits && !stats.writable);
    assert_eq!(world.shown(first).await.state, AskState::Open);
    assert_eq!(world.log(&world.person).await.len() as u64, written);

    world.store.rehearsal().full(false);
    assert_eq!(world.append(&refused_draft).await.seq, written + 1);
    world.store.ready().await.unwrap();
    assert!(world.store.stats().await.unwrap().writable);
    let budget = world.store.me(&world.harness).await.unwrap().budget.unwrap();
    assert_eq!(budget.open, world.head());
}

/// Asks big questions until there is no more room, and gives the one that was refused.
async fn fill(world: &World, run: chips_protocol::RunId) -> Draft {
    for _ in 0..50 {
        let mut draft = world.ask(run);
        asking(&mut draft).questions[0].prompt = "x".repeat(50_000);
        match world.submit(&draft).await {
            Ok(_) => {}
            Err(WriteError::Unavailable { reason, .. }) => {
                assert_eq!(reason, "the disk is full");
                return draft;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the disk never filled");
}

#[tokio::test]
async fn on_a_full_disk_a_small_write_gets_through_where_a_big_one_does_not() {
    let (dir, world) = world_in_folder().await;
    let run = world.run().await;
    let ask = world.asked(run).await;
    world.store.rehearsal().full(true);
    let mut big = world.ask(run);
    asking(&mut big).questions[0].prompt = "x".repeat(100_000);
    let small = world.answer(run, ask, "a");
    let writes = async { tokio::join!(world.submit(&big), world.submit(&small)) };
    let (big, small) = in_one_group(&dir, &world, writes).await;
    assert!(matches!(big, Err(WriteError::Unavailable { .. })), "{big:?}");
    appended(small);
    // That a small one got through promises nobody room.
    assert!(!world.store.stats().await.unwrap().writable);
    world.store.rehearsal().full(false);
    world.asked(run).await;
    assert!(world.store.stats().await.unwrap().writable);
}

#[tokio::test]
async fn a_commit_that_found_the_disk_full_is_tried_again_job_by_job() {
    let (dir, world) = world_in_folder().await;
    let run = world.run().await;
    let drafts: Vec<_> = (0..6).map(|_| world.ask(run)).collect();
    world.store.rehearsal().full_at_commit(2);
    let results = in_one_group(&dir, &world, join_all(drafts.iter().map(|draft| world.submit(draft)))).await;
    let seqs: Vec<_> = results.into_iter().map(|result| appended(result).seq).collect();
    assert_eq!(seqs, (1..=6).collect::<Vec<_>>());
    let log = world.log(&world.harness).await;
    assert_eq!(log.iter().map(|record| record.seq).collect::<Vec<_>>(), seqs);
    for draft in &drafts {
        replayed(world.submit(draft).await);
    }
    let budget = world.store.me(&world.harness).await.unwrap().budget.unwrap();
    assert_eq!((budget.open, budget.hour), (6, 6));
}

#[tokio::test]
async fn a_database_that_stays_held_refuses_writes_and_ends_nothing() {
    let (dir, world) = world_in_folder().await;
    let run = world.run().await;
    let draft = world.ask(run);
    let holder = beside(&dir);
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = world.submit(&draft).await;
    assert!(matches!(refused, Err(WriteError::Unavailable { .. })), "{refused:?}");
    assert!(world.log(&world.harness).await.is_empty());
    holder.execute_batch("COMMIT").unwrap();
    world.append(&draft).await;
}

#[tokio::test]
async fn after_an_fsync_that_failed_nothing_is_written_any_more() {
    let (dir, world) = world_in_folder().await;
    let run = world.run().await;
    let before = world.ask(run);
    world.append(&before).await;
    let mut failed = Box::pin(world.store.failed());
    assert!(tokio::time::timeout(Duration::ZERO, &mut failed).await.is_err());

    world.store.rehearsal().fsync_fails();
    let unknown = world.ask(run);
    assert!(matches!(world.submit(&unknown).await, Err(WriteError::Failed)));
    assert!(failed.await.0.contains("rehearsed"));
    assert!(matches!(world.submit(&before).await, Err(WriteError::Failed)));
    assert!(matches!(world.store.ready().await, Err(WriteError::Failed)));
    // It is told to whoever asks later, too, and what is safe can still be read.
    world.store.failed().await;
    assert!(!world.store.stats().await.unwrap().writable);
    let batch = world.store.events(&world.harness, &EventsQuery { limit: 10, ..EventsQuery::default() }).await.unwrap();
    assert_eq!((batch.records.len(), batch.head), (1, 1));
    world.store.clone().close().await;

    let world = World { store: open(dir.path()), ..world };
    replayed(world.submit(&before).await);
    // This one did not happen; had it happened, it would be a replay now. Never two of it.
    world.submit(&unknown).await.unwrap();
    assert_eq!(world.head(), 2);
}

#[tokio::test]
async fn refusals_that_close_an_ask_are_committed_with_their_neighbours() {
    let (dir, world) = world_in_folder().await;
    let run = world.run().await;
    let draft = {
        let mut draft = with_default(world.ask(run), 1);
        asking(&mut draft).timeout_seconds = serde_json::Number::from_f64(0.001);
        draft
    };
    let deadline = world.append(&draft).await.event.envelope.ts.plus_ms(1);
    eventually("the deadline passes", async || (world.store.clock().now() >= deadline).then_some(())).await;
    let (late, other) = (world.answer(run, ask_id(&draft), "b"), world.ask(run));
    let writes = async { tokio::join!(world.submit(&late), world.submit(&other), world.submit(&late)) };
    let (one, two, three) = in_one_group(&dir, &world, writes).await;
    for refusal in [refused(one), refused(three)] {
        assert!(matches!(refusal, Refusal::AlreadyClosed(winner) if winner.envelope.seq == Some(2)));
    }
    assert_eq!(appended(two).seq, 3);
    let shown = world.shown(ask_id(&draft)).await;
    assert_eq!((shown.state, shown.late_answers.len()), (AskState::TimedOut, 1));
}

#[tokio::test]
async fn a_folder_on_which_nothing_was_acknowledged_is_whole_after_a_failure() {
    let (dir, world) = world_in_folder().await;
    world.store.rehearsal().fsync_fails();
    assert!(matches!(world.store.open_run(world.harness.sender, Default::default()).await, Err(WriteError::Failed)));
    world.store.clone().close().await;
    let store = Store::open(dir.path(), Default::default()).unwrap();
    assert!(store.open_run(world.harness.sender, Default::default()).await.unwrap().1);
}
