//! A data folder moved into a schema: the same history goes on there, whatever cut the move short, and the folder stays as it was.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use chips_core::notify::{Channel, Kind, Outcome};
use chips_protocol::api::AskState;
use chips_protocol::{AskId, Draft, RunId, Timestamp};
use chips_store::admin::{self, Admin, AdminError, Batch, How, Moved, Phase, Target};
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::{
    Database, Device, DropPlace, EventsQuery, Location, NewEndpoint, OpenError, Options, Proof, SignInState, SignedIn,
    Store, secret,
};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::model::{Model, Stage, steps};
use crate::support::*;
use crate::tape::{numbered, seen};

const DAY: i64 = 86_400_000;
const SMALL: Batch = Batch { rows: 3, bytes: 1 << 20 };

fn database(schema: &Home) -> Database {
    Database::parse(schema.url()).unwrap()
}

fn folder_of(home: &Home) -> std::path::PathBuf {
    home.path().folder().unwrap().to_owned()
}

fn migrate(folder: &Path, schema: &Home) -> Result<Moved, AdminError> {
    admin::migrate(folder, &database(schema), Batch::default(), &mut |_| ControlFlow::Continue(()))
}

/// Moves a few rows at a time until this says that it is cut short there.
fn migrate_until(
    folder: &Path,
    schema: &Home,
    mut enough: impl FnMut(admin::Progress<'_>) -> bool + Send,
) -> Result<Moved, AdminError> {
    let mut tell = |progress: admin::Progress<'_>| {
        let cut = progress.phase == Phase::Copying && enough(progress);
        if cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    admin::migrate(folder, &database(schema), SMALL, &mut tell)
}

/// What was refused, in words.
fn refusal(folder: &Path, schema: &Home) -> String {
    migrate(folder, schema).unwrap_err().to_string()
}

/// Every file of a folder but the index of the write-ahead log, which lives in memory.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    named.filter(|(name, _)| !name.ends_with("-shm")).map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
}

/// A folder with something in every table, and what is known of it.
struct Full {
    folder: Home,
    time: ManualTime,
    world: World,
    /// A write that was accepted, an ask that is open until its deadline, and one that was answered.
    draft: Draft,
    due: AskId,
    answered: AskId,
    cookie: String,
    /// A way to sign in that was not used yet.
    link: String,
    run: RunId,
}

fn options(time: &ManualTime) -> Options {
    Options { time: TimeSource::Manual(time.clone()), readers: 2 }
}

impl Full {
    async fn new() -> Self {
        let folder = Home::folder();
        let made = admin::init(folder.path()).unwrap();
        // Chips' clock in the folder is ahead of the database's own.
        let time = ManualTime::at(TimeSource::System.wall().plus_ms(40 * DAY));
        let store = Store::open(folder.path(), options(&time)).unwrap();
        let world = World::enter(&store, &made).await;
        let mut admin = Admin::open(folder.path()).unwrap();
        let run = world.run().await;
        // What is dropped, what is erased, and a second workspace.
        for _ in 0..3 {
            let ask = world.asked(run).await;
            world.append(&world.answer(run, ask, "a")).await;
        }
        time.pass_ms(3 * DAY);
        let (second, _) = admin.add_person(world.workspace_id, "Second").unwrap();
        admin.add_space(world.workspace_id, "Closed", &[world.person_id(), second.id]).unwrap();
        let erased = world.asked(run).await;
        world.append(&world.answer(run, erased, "a")).await;
        let before = store.clock().now().plus_ms(-DAY);
        let mut place = Some(DropPlace::default());
        while let Some(at) = place {
            place = store.drop_older(before, at).await.unwrap().1;
        }
        let found = admin.find_to_erase(Target::Ask(erased), None).unwrap();
        admin = tokio::task::spawn_blocking(move || admin.erase(&found).map(|_| admin)).await.unwrap().unwrap();
        let made = admin.add_workspace("Beside").unwrap();
        let beside = World::enter(&store, &made).await;
        let beside_run = beside.run().await;
        beside.asked(beside_run).await;

        // Somebody who is signed in, one whose session ended, and a way in that was not used.
        let sign_in = async |admin: &mut Admin| {
            let link = admin.link_person(world.person_id()).unwrap();
            let proof = Proof::Link(secret::sha256(&link.secret));
            match store.sign_in(proof, Device { name: "Browser".to_owned() }).await.unwrap() {
                SignedIn::Yes(cookie, session) => (cookie, session),
                other => panic!("{other:?}"),
            }
        };
        let (cookie, session) = sign_in(&mut admin).await;
        let (_, ended) = sign_in(&mut admin).await;
        store.end_session(&world.person, ended.session_id).await.unwrap();
        let link = admin.link_person(world.person_id()).unwrap().secret;

        // Told: accepted, to be tried again, and not gone through yet.
        let reach = async |channel, address: &str, session_id| {
            let (address, secret, name) = (address.to_owned(), "{\"key\":\"k\"}".to_owned(), "Phone\0".to_owned());
            let endpoint = NewEndpoint { channel, address, secret, name, session_id };
            store.add_endpoint(&world.person, endpoint).await.unwrap().unwrap()
        };
        reach(Channel::Ntfy, "ntfy", None).await;
        reach(Channel::WebPush, "push", Some(session.session_id)).await;
        admin.add_webhook(world.harness_id(), "https://example.com/hook", "{}").unwrap();
        let mut preferences = store.preferences(world.person_id()).await.unwrap();
        preferences.reminders = !preferences.reminders;
        store.set_preferences(world.person_id(), preferences).await.unwrap();
        store.keep_secret("vapid", vec![7; 32]).await.unwrap();
        let answered = world.asked(run).await;
        store.plan_notices(&[].into()).await.unwrap();
        for (nth, notice) in store.claim_notices(100).await.unwrap().into_iter().enumerate() {
            let outcome = if nth == 0 { Outcome::Failed("no route\0".to_owned()) } else { Outcome::Accepted };
            store.record_attempt(&notice, outcome, 0.0).await.unwrap();
        }
        store.mark_seen(world.workspace_id, answered, world.person_id());
        eventually("that it was seen", async || {
            store.seen(&world.person, answered).await.unwrap().filter(|seen| !seen.is_empty())
        })
        .await;
        world.append(&world.answer(run, answered, "b")).await;
        let draft = with_default(world.ask(run), 3_600);
        world.append(&draft).await;
        let due = ask_id(&draft);
        Self { folder, time, world: world.clone(), draft, due, answered, cookie, link, run }
    }

    fn dir(&self) -> std::path::PathBuf {
        folder_of(&self.folder)
    }

    async fn close(&self) {
        self.world.store.clone().close().await;
    }

    /// The same world, by the store in another place.
    fn at(&self, location: Location) -> World {
        World { store: Store::open(location, options(&self.time)).unwrap(), ..self.world.clone() }
    }

    /// Everything that can be seen.
    async fn told(&self, world: &World) -> String {
        let (store, person) = (&world.store, &world.person);
        let mut text = format!("{} {}\n", store.log_id(), store.kept_from(world.workspace_id));
        for viewer in [person, &world.harness] {
            let query =
                EventsQuery { after: store.kept_from(world.workspace_id) - 1, limit: 1_000, ..EventsQuery::default() };
            for record in store.events(viewer, &query).await.unwrap().records {
                text.push_str(&format!("{} {}\n", record.seq, String::from_utf8_lossy(&record.json)));
            }
            text.push_str(&format!(
                "{:?}\n",
                store.asks(viewer, &chips_store::AsksQuery { limit: 100, ..Default::default() }).await.unwrap()
            ));
            text.push_str(&format!("{:?}\n", store.me(viewer).await.unwrap()));
        }
        text.push_str(&format!("{:?}\n", store.attempts(person, self.answered).await.unwrap()));
        text.push_str(&format!("{:?}\n", store.seen(person, self.answered).await.unwrap()));
        text.push_str(&format!("{:?}\n", store.sessions(person).await.unwrap()));
        text.push_str(&format!("{:?}\n", store.preferences(world.person_id()).await.unwrap()));
        text.push_str(&format!("{:?}\n", store.endpoints(person).await.unwrap()));
        text.push_str(&format!("{:?}\n", store.sign_in_state(secret::sha256(&self.link)).await.unwrap()));
        text.push_str(&format!("{:?}\n", store.keep_secret("vapid", vec![1]).await.unwrap()));
        text.push_str(&format!("{:?}\n", store.run(person, self.run).await.unwrap()));
        text
    }
}

/// The same people on another store that holds the same, with a clock that shows the same.
fn again_on(stage: &Stage, dir: Home) -> Stage {
    let time = ManualTime::at(TimeSource::Manual(stage.time.clone()).wall());
    let store = Stage::open(&dir, &time);
    Stage { dir, time, store, harnesses: stage.harnesses.clone(), person: stage.person.clone(), runs: stage.runs }
}

/// What is due to be said: of which ask, what, and where to.
async fn due_of(world: &World) -> Vec<(AskId, Kind, String)> {
    world.store.plan_notices(&[].into()).await.unwrap();
    let notices = world.store.claim_notices(100).await.unwrap();
    notices.into_iter().map(|notice| (notice.ask.ask_id, notice.kind, notice.endpoint.address)).collect()
}

#[tokio::test]
async fn tapes_that_begin_in_a_folder_go_on_in_the_database_as_if_nothing_had_been() {
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[6; 32]));
    for _ in 0..4 {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        let (first, second) = steps.split_at(steps.len() / 2);
        let folder = Home::folder();
        let made = admin::init(folder.path()).unwrap();
        let mut here = Stage::set(folder, &made, Timestamp::from_ms(1_790_000_000_000)).await;
        let mut model = Model::default();
        for step in first {
            here.step(step, &model).await;
            model.step(step);
        }
        let before = seen(&here).await;
        here.store.clone().close().await;

        let schema = Home::schema();
        let moved = migrate(&folder_of(&here.dir), &schema).unwrap();
        assert_eq!(moved.how, How::AtOnce);
        let mut there = again_on(&here, schema);
        assert_eq!(seen(&there).await, before, "{first:?}");
        let folder = std::mem::replace(&mut here.dir, Home::folder());
        let mut here = again_on(&here, folder);
        for step in second {
            let (one, other) = (here.step(step, &model).await, there.step(step, &model).await);
            assert_eq!(one, other, "{step:?} of {steps:?}");
            model.step(step);
        }
        assert_eq!(numbered(&seen(&here).await), numbered(&seen(&there).await), "{steps:?}");
        there.store.close().await;
    }
}

#[tokio::test]
async fn everything_comes_along_and_goes_on_and_the_folder_is_left_as_it_was() {
    let full = Full::new().await;
    let before = full.told(&full.world).await;
    full.close().await;
    let (was, schema) = (files(&full.dir()), Home::schema());

    let moved = migrate(&full.dir(), &schema).unwrap();
    assert_eq!(moved.how, How::AtOnce);
    assert_eq!(files(&full.dir()), was, "byte for byte");
    let empty: Vec<_> = moved.tables.iter().filter(|table| table.rows == 0).map(|table| table.name.as_str()).collect();
    assert_eq!(empty, ["agents", "run_labels"], "the folder has something in every other table");
    let world = full.at(schema.path());
    assert_eq!(moved.log, world.store.log_id());
    // A peer's word with U+0000 in it is the one thing that PostgreSQL can't hold.
    assert_eq!(full.told(&world).await, before.replace("\\0", "\u{FFFD}"));
    assert_eq!(moved.logs.iter().map(|log| log.head).collect::<Vec<_>>(), [world.head(), 1]);

    // What was said is not said again, and what was not is said once.
    let due = due_of(&world).await;
    let told = |kind| due.iter().filter(|(ask, of, _)| *ask == full.answered && *of == kind).count();
    assert_eq!((told(Kind::Asked), told(Kind::Answered)), (0, 1), "{due:?}");
    assert!(due.iter().any(|(ask, kind, _)| *ask == full.due && *kind == Kind::Asked), "{due:?}");

    // Who was signed in is, and a new session has a number that no session had.
    let session = world.store.session(secret::sha256(&full.cookie)).await.unwrap().unwrap();
    assert!(matches!(world.store.sign_in_state(secret::sha256(&full.link)).await.unwrap(), SignInState::Good { .. }));
    let proof = Proof::Link(secret::sha256(&full.link));
    let SignedIn::Yes(_, fresh) = world.store.sign_in(proof, Device::default()).await.unwrap() else { panic!() };
    assert_eq!(fresh.session_id, session.session_id + 2, "the one between was ended in the folder");

    // The same write is the same write, and the next one comes after it.
    let head = world.head();
    let (again, differs) = replayed(world.submit(&full.draft).await);
    assert_eq!((again.seq, differs), (head, false));
    let key = &full.draft.idempotency_key;
    assert_eq!(world.store.replay_by_key(world.harness.sender, key).await.unwrap().unwrap().seq, head);
    assert_eq!(world.append(&world.ask(full.run)).await.seq, head + 1);

    // Once more is no harm. The folder still is what it was, until somebody goes on with it.
    assert_eq!(migrate(&full.dir(), &schema).unwrap().how, How::Before);
    assert_eq!(files(&full.dir()), was);
    let here = full.at(full.folder.path());
    assert_eq!(full.told(&here).await, before);
    assert_eq!(due_of(&here).await, due, "what the folder would say");
    here.append(&here.ask(full.run)).await;
    here.store.close().await;
    let refused = refusal(&full.dir(), &schema);
    assert!(refused.contains("the folder has gone on since by itself"), "{refused}");

    // A deadline that runs fires once.
    full.time.pass_ms(3_700_000);
    assert!(world.store.expire(world.workspace_id, full.due).await.unwrap());
    assert!(!world.store.expire(world.workspace_id, full.due).await.unwrap());
    assert_eq!(world.shown(full.due).await.state, AskState::TimedOut);

    // Whoever is added there gets numbers of their own.
    let mut admin = Admin::open(schema.path()).unwrap();
    admin.add_workspace("Later").unwrap();
    assert_eq!(admin.erasures().unwrap().len(), 1);
    world.store.close().await;
}

#[tokio::test]
async fn a_move_that_is_cut_short_again_and_again_ends_right_and_nobody_works_on_half_of_it() {
    let full = Full::new().await;
    let before = full.told(&full.world).await;
    full.close().await;
    let (was, schema) = (files(&full.dir()), Home::schema());
    let mut cuts = 0;
    let moved = loop {
        match migrate_until(&full.dir(), &schema, |progress| progress.rows > 4 * cuts) {
            Ok(moved) => break moved,
            Err(AdminError::Refused(why)) => assert!(why.contains("it goes on where it was"), "{why}"),
            Err(other) => panic!("{other}"),
        }
        cuts += 1;
        if cuts % 8 == 1 {
            for refused in [
                Store::open(schema.path(), Options::default()).err().unwrap(),
                Admin::open(schema.path()).err().unwrap(),
                admin::init(schema.path()).err().unwrap(),
            ] {
                assert!(refused.to_string().contains("a data folder is being moved here"), "{refused}");
            }
        }
    };
    assert!(cuts > 10, "{cuts}");
    assert_eq!(moved.how, How::GoneOn);
    assert_eq!(files(&full.dir()), was);
    let world = full.at(schema.path());
    assert_eq!(full.told(&world).await, before.replace("\\0", "\u{FFFD}"));
    world.store.close().await;
}

#[tokio::test]
async fn a_folder_that_went_on_after_a_move_was_cut_short_is_moved_anew_and_another_one_is_not_mixed_in() {
    let full = Full::new().await;
    full.close().await;
    let schema = Home::schema();
    migrate_until(&full.dir(), &schema, |progress| progress.table == "keys").unwrap_err();
    let other = Home::folder();
    admin::init(other.path()).unwrap();
    let refused = refusal(&folder_of(&other), &schema);
    assert!(refused.contains("another data folder") && refused.contains("search_path"), "{refused}");

    let world = full.at(full.folder.path());
    world.append(&world.answer(full.run, full.due, "b")).await;
    let before = full.told(&world).await;
    world.store.close().await;
    assert_eq!(migrate(&full.dir(), &schema).unwrap().how, How::Anew);
    let world = full.at(schema.path());
    assert_eq!(full.told(&world).await, before.replace("\\0", "\u{FFFD}"));
    world.store.close().await;
}

#[tokio::test]
async fn what_a_killed_server_left_in_the_write_ahead_log_is_moved_and_stays_there() {
    let full = Full::new().await;
    let before = full.told(&full.world).await;
    // As a kill leaves it: the database and its log, in the middle of everything.
    let (killed, schema) = (tempfile::tempdir().unwrap(), Home::schema());
    for (name, bytes) in files(&full.dir()) {
        std::fs::write(killed.path().join(name), bytes).unwrap();
    }
    full.close().await;
    let was = files(killed.path());
    assert!(was["chips.db-wal"].iter().any(|byte| *byte != 0));
    migrate(killed.path(), &schema).unwrap();
    assert_eq!(files(killed.path()), was);
    let world = full.at(schema.path());
    assert_eq!(full.told(&world).await, before.replace("\\0", "\u{FFFD}"));
    world.store.close().await;
}

#[tokio::test]
async fn what_was_written_is_compared_and_a_difference_keeps_everybody_out_until_it_is_moved_anew() {
    let full = Full::new().await;
    full.close().await;
    let schema = Home::schema();
    // Somebody lays a hand on it in the middle.
    migrate_until(&full.dir(), &schema, |progress| progress.table == "asks").unwrap_err();
    schema.sql("UPDATE events SET body = replace(body, 'Which', 'What') WHERE pos = (SELECT max(pos) FROM events)");
    let refused = refusal(&full.dir(), &schema);
    assert!(refused.contains("differs from the folder: events (") && refused.contains("begins anew"), "{refused}");
    assert!(Store::open(schema.path(), Options::default()).is_err());
    assert_eq!(migrate(&full.dir(), &schema).unwrap().how, How::Anew);
    full.at(schema.path()).store.close().await;
}

#[tokio::test]
async fn what_can_not_be_moved_is_refused_in_words_and_nothing_is_changed() {
    let (folder, taken) = (Home::folder(), Home::schema());
    let made = admin::init(folder.path()).unwrap();
    let dir = folder_of(&folder);
    let empty = Home::schema();

    // The folder: served, administered into something else, not there, of an older version.
    let store = open(folder.path());
    assert!(matches!(migrate(&dir, &empty), Err(AdminError::Open(OpenError::Held { .. }))));
    World::enter(&store, &made).await.asked(store_run(&store, &made).await).await;
    store.close().await;
    let was = files(&dir);
    let nowhere = dir.join("nowhere");
    let refused = refusal(&nowhere, &empty);
    assert!(refused.contains("nothing to move") && !nowhere.exists(), "{refused}");
    let older = tempfile::tempdir().unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/0.1.0/layout-3.db");
    std::fs::copy(golden, older.path().join("chips.db")).unwrap();
    std::fs::write(older.path().join("lock"), "1\n").unwrap();
    let kept = files(older.path());
    let refused = refusal(older.path(), &empty);
    assert!(refused.contains("older version") && refused.contains("chips workspace list --data"), "{refused}");
    assert_eq!(files(older.path()), kept);

    // The database: somebody's workspace, somebody's table, a newer version's, another encoding, a column from nowhere.
    admin::init(taken.path()).unwrap();
    let refused = refusal(&dir, &taken);
    assert!(refused.contains("holds a workspace already") && refused.contains("search_path"), "{refused}");
    taken.sql("UPDATE meta SET layout = 99, runs_from = 99");
    let refused = refusal(&dir, &taken);
    assert!(refused.contains("a newer version of Chips works on this"), "{refused}");
    let foreign = Home::schema();
    foreign.sql(&format!("CREATE SCHEMA {0}; CREATE TABLE {0}.meta (a TEXT)", foreign.name()));
    let refused = refusal(&dir, &foreign);
    assert!(refused.contains("a table meta stands here that is not Chips' own"), "{refused}");
    foreign.sql("ALTER TABLE meta RENAME TO invoices");
    let refused = refusal(&dir, &foreign);
    assert!(refused.contains("holds something else already (a table invoices)"), "{refused}");
    let latin = format!("{}_latin", foreign.name());
    foreign.sql(&format!("CREATE DATABASE {latin} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"));
    let url = foreign.url().replace("/postgres?", &format!("/{latin}?"));
    let refused = admin::migrate(&dir, &Database::parse(&url).unwrap(), SMALL, &mut |_| ControlFlow::Continue(()));
    foreign.sql(&format!("DROP DATABASE {latin}"));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("the encoding LATIN1") && refused.contains("createdb"), "{refused}");
    migrate_until(&dir, &empty, |progress| progress.table == "asks").unwrap_err();
    empty.sql("ALTER TABLE asks ADD COLUMN colour BIGINT");
    let refused = refusal(&dir, &empty);
    assert!(refused.contains("does not know how to carry a column asks.colour of the database"), "{refused}");
    assert_eq!(files(&dir), was);

    // And with that gone, it goes.
    empty.sql("ALTER TABLE asks DROP COLUMN colour");
    assert_eq!(migrate(&dir, &empty).unwrap().how, How::GoneOn);
}

async fn store_run(store: &Store, made: &admin::Initialised) -> RunId {
    World::enter(store, made).await.run().await
}
