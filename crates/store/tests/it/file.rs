//! What the file shows that a database server keeps to itself: how long logs are read, the write-ahead log, what is cleared away.

use chips_protocol::ParticipantId;
use chips_store::admin::Admin;
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::session::LONGEST_MS;
use chips_store::{AskFilter, AsksQuery, EventsQuery, Options, Store};

use crate::access::signed_in;
use crate::in_folder::{world_in_folder, world_in_folder_with};
use crate::support::*;

#[tokio::test]
async fn a_long_log_is_looked_through_in_bounded_steps() {
    let (dir, world) = world_in_folder().await;
    let mut admin = Admin::open(dir.path()).unwrap();
    let (outsider, _) = admin.add_person(world.workspace_id, "Outsider").unwrap();
    let closed = admin.add_space(world.workspace_id, "Closed", &[world.person_id()]).unwrap();
    let new = chips_protocol::api::NewRun { space_id: Some(closed), ..Default::default() };
    let hidden = world.store.open_run(world.harness.sender, new).await.unwrap().0.run_id;
    let seen = world.run().await;
    world.asked(hidden).await;
    let outsider = identity(&world.store, &outsider.token).await;
    world.store.clone().close().await;

    // What the outsider does not see is long: the one hidden ask, twenty-five thousand times over.
    let raw = rusqlite::Connection::open(dir.path().join("chips.db")).unwrap();
    raw.execute_batch(
        "CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000) SELECT i FROM n;
         BEGIN;
         INSERT INTO events SELECT pos + i, ws_no, randomblob(16), harness_no, space_no, type, ts, body FROM events, n;
         INSERT INTO asks SELECT pos + i, ws_no, randomblob(16), run_no, harness_no, space_no, state, tier, asked_at,
                                 deadline, closed_pos, delivered_at, acknowledged_at, late, told FROM asks, n;
         COMMIT;",
    )
    .unwrap();
    Admin::open(dir.path()).unwrap().set_budget(world.harness_id(), Some(None), Some(None)).unwrap();
    let world = World { store: open(dir.path()), ..world };
    let needle = world.asked(seen).await;
    let head = world.head();
    assert_eq!(head, 25_002);
    world.store.clone().close().await;

    let world = World { store: open(dir.path()), ..world };
    let first = world.store.events(&outsider, &EventsQuery { limit: 10, ..EventsQuery::default() }).await.unwrap();
    assert_eq!((first.records.len(), first.head), (0, head));
    assert!((1..head).contains(&first.through), "{}", first.through);
    let found = world.log(&outsider).await;
    assert_eq!(found.iter().map(|record| record.seq).collect::<Vec<_>>(), [head]);
    let list = AsksQuery { limit: 10, filter: AskFilter::Open, ..AsksQuery::default() };
    let asks = world.store.asks(&outsider, &list).await.unwrap();
    assert_eq!(asks.asks.iter().map(|ask| ask.ask_id).collect::<Vec<_>>(), [needle]);
    let text = AsksQuery { text: Some("which".into()), filter: AskFilter::All, ..list };
    assert_eq!(world.store.asks(&outsider, &text).await.unwrap().asks.len(), 1);
}

#[tokio::test]
async fn the_write_ahead_log_is_moved_into_the_database_while_the_store_runs() {
    let (_dir, world) = world_in_folder().await;
    let run = world.run().await;
    let start = world.store.stats().await.unwrap();
    let mut draft = world.ask(run);
    asking(&mut draft).questions[0].prompt = "x".repeat(200_000);
    for nth in 0..90 {
        draft.id = chips_protocol::EventId::from_parts(3, unique());
        draft.idempotency_key = format!("big {nth}");
        asking(&mut draft).ask_id = chips_protocol::AskId::from_parts(3, unique());
        world.append(&draft).await;
    }
    let moved = eventually("the database has grown", async || {
        let stats = world.store.stats().await.unwrap();
        (stats.database_bytes > start.database_bytes + 8_000_000).then_some(stats)
    })
    .await;
    assert!(moved.wal_bytes < 64 << 20, "{moved:?}");
    assert!(moved.commits > start.commits && moved.jobs >= 90 && moved.writable && moved.commit_seconds.sum > 0.0);
    assert_eq!(moved.open_asks, 90);
    assert_eq!(world.log(&world.person).await.len(), 90);
}

#[tokio::test]
async fn what_has_ended_long_ago_is_cleared_away() {
    let time = ManualTime::at(TimeSource::System.wall());
    let by_hand = || Options { time: TimeSource::Manual(time.clone()), ..Options::default() };
    let (dir, world) = world_in_folder_with(by_hand()).await;
    let mut admin = Admin::open(dir.path()).unwrap();
    signed_in(&world.store, &admin.link_person(world.person_id()).unwrap()).await;
    admin.rotate(ParticipantId::Harness(world.harness_id()), Some(60_000)).unwrap();
    world.store.close().await;
    let raw = rusqlite::Connection::open(dir.path().join("chips.db")).unwrap();
    let kept = || -> (i64, i64, i64) {
        let count =
            "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM grants), (SELECT count(*) FROM tokens)";
        raw.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap()
    };
    assert_eq!(kept(), (1, 2, 3));

    // A link that was used yesterday is still told apart from one that never was.
    time.pass_ms(24 * 3_600_000);
    let store = Store::open(dir.path(), by_hand()).unwrap();
    eventually("the token is gone, the rest is not", async || (kept() == (1, 2, 2)).then_some(())).await;
    store.close().await;
    time.pass_ms(LONGEST_MS);
    let _store = Store::open(dir.path(), by_hand()).unwrap();
    eventually("all is gone but the tokens that are good", async || (kept() == (0, 0, 2)).then_some(())).await;
}
