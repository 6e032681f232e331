//! Copies of the store: made while it is written, checked, restored into a new history; and the one that is kept before an
//! older file is brought to this version's layout.

use std::path::Path;

use chips_core::notify::{Channel, Kind};
use chips_protocol::api::AskState;
use chips_store::admin::{self, Admin, Keep, back_up, restore};
use chips_store::{Device, NewEndpoint, OpenError, Proof, SignInState, SignedIn, Store, secret};

use crate::in_folder::world_in_folder;
use crate::support::*;

const ALL: Keep = Keep { sessions: true };

async fn sign_in(world: &World, admin: &mut Admin) -> SignedIn {
    let link = admin.link_person(world.person_id()).unwrap();
    world.store.sign_in(Proof::Link(secret::sha256(&link.secret)), Device::default()).await.unwrap()
}

#[tokio::test]
async fn a_backup_under_load_holds_a_whole_prefix_of_the_log_and_what_was_acknowledged_before_it() {
    let (dir, world) = world_in_folder().await;
    let run = world.run().await;
    Admin::open(dir.path()).unwrap().set_budget(world.harness_id(), Some(None), Some(None)).unwrap();
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move {
                for _ in 0..200 {
                    let ask = world.asked(run).await;
                    world.append(&world.answer(run, ask, "a")).await;
                }
            })
        })
        .collect();
    let mut copies = Vec::new();
    for number in 0..5 {
        eventually("more events", async || (world.head() > number * 150).then_some(())).await;
        let before = world.head();
        let file = dir.path().join(format!("copy-{number}"));
        let (source, target) = (dir.path().to_owned(), file.clone());
        let made = tokio::task::spawn_blocking(move || back_up(&source, &target)).await.unwrap().unwrap();
        assert!(made.events >= before, "{} events of {before}", made.events);
        copies.push((file, made));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let whole = world.log(&world.person).await;
    for (file, made) in copies {
        let target = tempfile::tempdir().unwrap();
        let folder = target.path().join("data");
        assert_eq!(restore(&file, &folder, ALL).unwrap(), made);
        let store = open(&folder);
        let copy = World { store: store.clone(), ..world.clone() };
        let log = copy.log(&world.person).await;
        assert_eq!(log.len() as u64, made.events);
        assert!(log.iter().zip(&whole).all(|(copied, event)| copied.json == event.json));
        assert_ne!(store.log_id(), world.store.log_id());
        assert_eq!(made.log, world.store.log_id());
        store.close().await;
    }
}

#[tokio::test]
async fn a_restored_folder_goes_on_where_the_backup_was_and_old_links_are_void() {
    let (dir, world) = world_in_folder().await;
    let run = world.run().await;
    let (open_ask, closed) = (world.asked(run).await, world.asked(run).await);
    world.append(&world.answer(run, closed, "a")).await;
    let mut admin = Admin::open(dir.path()).unwrap();
    let SignedIn::Yes(cookie, _) = sign_in(&world, &mut admin).await else { panic!() };
    let unused = admin.link_person(world.person_id()).unwrap();
    let file = dir.path().join("copy");
    back_up(dir.path(), &file).unwrap();
    world.store.clone().close().await;

    for sessions in [true, false] {
        let target = tempfile::tempdir().unwrap();
        let folder = target.path().join("data");
        restore(&file, &folder, Keep { sessions }).unwrap();
        let world = World { store: open(&folder), ..world.clone() };
        assert_eq!(world.shown(closed).await.state, AskState::Answered);
        assert_eq!(world.store.session(secret::sha256(&cookie)).await.unwrap().is_some(), sessions);
        let link = world.store.sign_in_state(secret::sha256(&unused.secret)).await.unwrap();
        assert_eq!(link, SignInState::Unknown);
        world.append(&world.answer(run, open_ask, "b")).await;
        assert_eq!(world.head(), 4);
        world.store.close().await;
    }
}

#[tokio::test]
async fn what_was_closed_is_not_told_again_and_what_is_open_is() {
    let (dir, world) = world_in_folder().await;
    let run = world.run().await;
    let endpoint = NewEndpoint {
        channel: Channel::Webhook,
        address: "https://example.com/".into(),
        secret: "{}".into(),
        name: "Hook".into(),
        session_id: None,
    };
    world.store.add_endpoint(&world.person, endpoint).await.unwrap().unwrap();
    let (open_ask, closed) = (world.asked(run).await, world.asked(run).await);
    world.store.plan_notices(&[].into()).await.unwrap();
    world.append(&world.answer(run, closed, "a")).await;
    let file = dir.path().join("copy");
    back_up(dir.path(), &file).unwrap();

    let target = tempfile::tempdir().unwrap();
    let folder = target.path().join("data");
    restore(&file, &folder, ALL).unwrap();
    let store = open(&folder);
    store.plan_notices(&[].into()).await.unwrap();
    let told = store.claim_notices(10).await.unwrap();
    let told: Vec<_> = told.iter().map(|notice| (notice.ask.ask_id, notice.kind)).collect();
    assert_eq!(told, [(open_ask, Kind::Asked)]);
}

#[tokio::test]
async fn an_answer_that_was_not_gone_through_is_not_told_to_its_harness_by_a_restored_folder() {
    let (dir, world) = world_in_folder().await;
    let run = world.run().await;
    let mut admin = Admin::open(dir.path()).unwrap();
    let webhook = admin.add_webhook(world.harness_id(), "https://example.com/hook", "{}").unwrap();
    let (open_ask, closed) = (world.asked(run).await, world.asked(run).await);
    // The server dies before it goes through this.
    world.append(&world.answer(run, closed, "a")).await;
    let file = dir.path().join("copy");
    back_up(dir.path(), &file).unwrap();

    let target = tempfile::tempdir().unwrap();
    let folder = target.path().join("data");
    restore(&file, &folder, ALL).unwrap();
    let restored = World { store: open(&folder), ..world.clone() };
    restored.store.plan_notices(&[].into()).await.unwrap();
    assert_eq!(restored.store.claim_notices(10).await.unwrap(), []);
    // What is answered from now on is told, and what was can be sent again by hand.
    restored.append(&restored.answer(run, open_ask, "b")).await;
    restored.store.plan_notices(&[].into()).await.unwrap();
    let told = restored.store.claim_notices(10).await.unwrap();
    assert_eq!(
        told.iter().map(|notice| (notice.ask.ask_id, notice.kind)).collect::<Vec<_>>(),
        [(open_ask, Kind::Answered)]
    );
    restored.store.record_attempt(&told[0], chips_core::notify::Outcome::Accepted, 0.0).await.unwrap();
    Admin::open(&folder).unwrap().resend_webhook(webhook, closed).unwrap();
    let told = restored.store.claim_notices(10).await.unwrap();
    assert_eq!(
        told.iter().map(|notice| (notice.ask.ask_id, notice.kind)).collect::<Vec<_>>(),
        [(closed, Kind::Answered)]
    );

    // The folder itself tells it: nothing was lost there.
    world.store.plan_notices(&[].into()).await.unwrap();
    let told = world.store.claim_notices(10).await.unwrap();
    assert_eq!(
        told.iter().map(|notice| (notice.ask.ask_id, notice.kind)).collect::<Vec<_>>(),
        [(closed, Kind::Answered)]
    );
}

#[tokio::test]
async fn nothing_is_overwritten_and_what_is_no_backup_is_refused_in_words() {
    let (dir, world) = world_in_folder().await;
    let file = dir.path().join("copy");
    back_up(dir.path(), &file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let refused = back_up(dir.path(), &file).unwrap_err().to_string();
    assert!(refused.contains("already") && std::fs::read(&file).unwrap() == bytes, "{refused}");
    assert!(matches!(restore(&file, dir.path(), ALL), Err(OpenError::Held { .. })));
    world.store.close().await;
    assert!(matches!(restore(&file, dir.path(), ALL), Err(OpenError::NotEmpty(_))));

    let target = tempfile::tempdir().unwrap();
    let folder = target.path().join("data");
    let with = |name: &str, bytes: &[u8]| {
        let path = target.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        restore(&path, &folder, ALL).unwrap_err().to_string()
    };
    let text = with("text", b"no database at all, and long enough to be told from an empty one");
    assert!(text.contains("no database of Chips"), "{text}");
    assert!(with("empty", b"").contains("no backup of Chips"));
    let cut = with("cut", &bytes[..bytes.len() / 2]);
    assert!(cut.contains("damaged") || cut.contains("malformed") || cut.contains("not whole"), "{cut}");
    for short in [1, 100, 4_095] {
        let cut = with("short", &bytes[..bytes.len() - short]);
        assert!(cut.contains("not whole"), "{cut}");
    }
    // A server has more beside this file than stands in it.
    let alone = with("alone", &std::fs::read(dir.path().join("chips.db")).unwrap());
    assert!(alone.contains("chips backup"), "{alone}");
    // One that lacks something, or does something by itself, is not put in anybody's place.
    for (change, says) in [
        ("DROP TABLE probe", "the table probe is missing"),
        ("DROP INDEX asks_by_run", "the index asks_by_run is missing"),
        ("ALTER TABLE asks DROP COLUMN acknowledged_at", "the column asks.acknowledged_at is missing"),
        ("CREATE TRIGGER odd AFTER INSERT ON events BEGIN DELETE FROM events; END", "the trigger odd in it"),
        ("CREATE VIEW odd AS SELECT 1", "the view odd in it"),
    ] {
        let path = target.path().join("changed");
        std::fs::write(&path, &bytes).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch(change).unwrap();
        let said = restore(&path, &folder, ALL).unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
    }
    assert!(!folder.exists());
    let mut broken = bytes.clone();
    let middle = broken.len() / 2;
    broken[middle..middle + 4096].fill(0xff);
    let broken = with("broken", &broken);
    assert!(broken.contains("damaged") || broken.contains("malformed"), "{broken}");
    assert!(restore(&target.path().join("none"), &folder, ALL).is_err());
    let directory = restore(target.path(), &folder, ALL).unwrap_err().to_string();
    assert!(directory.contains("this is a folder"), "{directory}");
    let nowhere = target.path().join("nowhere").join("copy");
    let missing = back_up(dir.path(), &nowhere).unwrap_err().to_string();
    assert!(missing.starts_with(&format!("{}: ", nowhere.display())), "{missing}");
    assert!(!folder.join("chips.db").exists());
    // A database of somebody else is called what it is.
    let foreign = target.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("chips.db"), [b'x'; 4096]).unwrap();
    assert!(matches!(restore(&file, &foreign, ALL), Err(OpenError::Foreign { .. })));
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{left:?}");
}

#[tokio::test]
async fn what_a_backup_began_that_did_not_live_to_finish_is_cleared_away_by_the_next_and_by_an_erasure() {
    let (dir, world) = world_in_folder().await;
    let gone =
        std::process::Command::new("true").spawn().and_then(|mut child| child.wait().map(|_| child.id())).unwrap();
    let backups = tempfile::tempdir().unwrap();
    let left = |folder: &Path| {
        ["part", "part-journal"].map(|end| {
            let path = folder.join(format!("old.db.{gone}.{end}"));
            // The first page comes last.
            std::fs::write(&path, [0; 8192]).unwrap();
            path
        })
    };
    let (there, here) = (left(backups.path()), left(dir.path()));
    let running = backups.path().join(format!("now.db.{}.part", std::process::id()));
    std::fs::write(&running, b"").unwrap();
    // One that was written a moment ago may be another machine's, which works in the same folder.
    back_up(dir.path(), &backups.path().join("newer.db")).unwrap();
    assert!(there.iter().all(|path| path.exists()));
    for path in &there {
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        std::fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }
    back_up(dir.path(), &backups.path().join("new.db")).unwrap();
    assert!(there.iter().all(|path| !path.exists()) && running.exists());
    let copies = chips_store::admin::copies(dir.path()).unwrap();
    assert_eq!((copies.own, copies.others, copies.strange), (here.to_vec(), vec![], vec![]));
    drop(world);
}

/// The first layout, as the first version made it.
const FIRST: &str = include_str!("../../src/sqlite/migrations/0001_start.sql");

#[tokio::test]
async fn an_older_file_is_brought_up_and_kept_beside_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let made = admin::init(dir.path()).unwrap();
    let world = World::enter(&open(dir.path()), &made).await;
    let run = world.run().await;
    let ask = world.asked(run).await;
    world.store.clone().close().await;

    // The same content in the layout of the first version.
    let path = dir.path().join("chips.db");
    let old = dir.path().join("old.db");
    let raw = rusqlite::Connection::open(&old).unwrap();
    raw.execute_batch(FIRST).unwrap();
    raw.execute("ATTACH ?1 AS new", [path.to_str().unwrap()]).unwrap();
    let tables: Vec<String> = raw
        .prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for table in tables {
        let columns: Vec<String> = raw
            .prepare(&format!("SELECT name FROM pragma_table_info('{table}', 'main')"))
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let columns = columns.join(", ");
        raw.execute(&format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}"), []).unwrap();
    }
    raw.execute_batch("DETACH new; PRAGMA user_version = 1; PRAGMA application_id = 1130916208;").unwrap();
    raw.close().unwrap();
    for name in ["chips.db-wal", "chips.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    std::fs::rename(&old, &path).unwrap();

    let world = World { store: Store::open(dir.path(), Default::default()).unwrap(), ..world };
    assert_eq!(world.shown(ask).await.state, AskState::Open);
    assert!(world.shown(ask).await.reachable);
    world.append(&world.answer(run, ask, "a")).await;
    let kept = rusqlite::Connection::open(dir.path().join("chips.db.layout-1")).unwrap();
    let (version, events): (i64, i64) = kept
        .query_row("SELECT user_version, (SELECT count(*) FROM events) FROM pragma_user_version", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!((version, events), (1, 1));
}
