//! The data folder: whose it is, who may read it, who holds it.

use std::fs;
use std::path::Path;

use chips_store::admin::{self, Admin};
use chips_store::{OpenError, Options, Store};
use rusqlite::Connection;

use crate::in_folder::world_in_folder;
use crate::support::*;

fn database(dir: &Path) -> std::path::PathBuf {
    dir.join("chips.db")
}

fn refusal(dir: &Path) -> OpenError {
    match Store::open(dir, Options::default()) {
        Ok(_) => panic!("the folder was opened"),
        Err(error) => error,
    }
}

#[test]
fn the_bundled_sqlite_is_without_the_wal_reset_bug() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[test]
fn an_empty_folder_says_how_to_make_a_workspace() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("not/there")] {
        assert!(!admin::is_initialised(&path).unwrap());
        let told = refusal(&path);
        assert!(matches!(told, OpenError::Empty(_)));
        assert!(told.to_string().contains("chips init --data"), "{told}");
        assert!(matches!(Admin::open(&path), Err(OpenError::Empty(_))));
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "asking leaves nothing behind");
}

#[test]
fn a_folder_that_has_a_workspace_is_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er");
    let made = admin::init(&path).unwrap();
    assert!(admin::is_initialised(&path).unwrap());
    assert!(matches!(admin::init(&path), Err(OpenError::NotEmpty(_))));
    assert_eq!(Admin::open(&path).unwrap().workspace(None).unwrap(), made.workspace_id);
}

#[test]
fn of_two_that_make_the_same_folder_one_does() {
    for _ in 0..25 {
        let dir = tempfile::tempdir().unwrap();
        let made: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| admin::init(dir.path()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1, "{made:?}");
        assert!(made.iter().all(|made| matches!(made, Ok(_) | Err(OpenError::NotEmpty(_)))), "{made:?}");
        assert_eq!(Admin::open(dir.path()).unwrap().workspaces().unwrap().len(), 1);
        assert!(!dir.path().join("chips.db.layout-1").exists(), "a new file was taken for an older one");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_the_folder() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let made = admin::init(&path).unwrap();
    let store = open(&path);
    World::enter(&store, &made).await.run().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    let names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(names.len() >= 4, "{names:?}");
    for name in names {
        assert_eq!(mode(&name), 0o600, "{}", name.display());
    }
}

#[tokio::test]
async fn no_secret_stands_in_any_file() {
    let dir = tempfile::tempdir().unwrap();
    let made = admin::init(dir.path()).unwrap();
    let store = open(dir.path());
    let proof = chips_store::Proof::Link(chips_store::secret::sha256(&made.sign_in.secret));
    let signed_in = store.sign_in(proof, chips_store::Device::default()).await.unwrap();
    let chips_store::SignedIn::Yes(session, _) = signed_in else { panic!("{signed_in:?}") };
    let code = chips_store::secret::canonical_code(&made.sign_in.code);
    let secrets = [made.person.token, made.harness.token, made.sign_in.secret, made.sign_in.code, code, session];
    for entry in fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{} holds {secret}", path.display());
        }
    }
}

#[tokio::test]
async fn a_second_server_is_refused_and_told_who_holds_the_folder() {
    let (dir, world) = world_in_folder().await;
    let told = refusal(dir.path());
    assert!(matches!(&told, OpenError::Held { pid, .. } if *pid == std::process::id().to_string()), "{told}");
    assert!(told.to_string().contains(&std::process::id().to_string()));
    // Administration does not mind.
    Admin::open(dir.path()).unwrap().add_person(world.workspace_id, "Ada").unwrap();
    world.store.close().await;
    open(dir.path()).close().await;
}

#[test]
fn a_file_of_something_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(database(dir.path()), "just some text, long enough to be looked at by a database").unwrap();
    let foreign = |told: OpenError| {
        assert!(matches!(&told, OpenError::Foreign { .. }), "{told}");
        assert!(!told.to_string().contains('\n'));
    };
    foreign(refusal(dir.path()));
    foreign(admin::init(dir.path()).unwrap_err());
    foreign(admin::is_initialised(dir.path()).unwrap_err());
    assert!(fs::read_to_string(database(dir.path())).unwrap().starts_with("just some text"));

    let dir = tempfile::tempdir().unwrap();
    let other = Connection::open(database(dir.path())).unwrap();
    other.execute_batch("CREATE TABLE theirs (a)").unwrap();
    foreign(refusal(dir.path()));
    foreign(admin::init(dir.path()).unwrap_err());
    let tables: i64 = other.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);
}

#[test]
fn a_newer_versions_file_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    admin::init(dir.path()).unwrap();
    let raw = Connection::open(database(dir.path())).unwrap();
    raw.pragma_update(None, "user_version", 999).unwrap();
    for told in [refusal(dir.path()), Admin::open(dir.path()).err().unwrap(), admin::init(dir.path()).unwrap_err()] {
        assert!(matches!(&told, OpenError::Newer { found: 999, .. }), "{told}");
        assert!(told.to_string().contains("newer version") && !told.to_string().contains('\n'), "{told}");
    }
}

#[test]
fn a_folder_that_was_begun_and_not_finished_can_be_made() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(database(dir.path()), "").unwrap();
    assert!(!admin::is_initialised(dir.path()).unwrap());
    let begun = Connection::open(database(dir.path())).unwrap();
    begun.pragma_update(None, "journal_mode", "WAL").unwrap();
    drop(begun);
    assert!(matches!(refusal(dir.path()), OpenError::Empty(_)));
    admin::init(dir.path()).unwrap();
    assert!(admin::is_initialised(dir.path()).unwrap());
}

#[cfg(unix)]
#[test]
fn a_path_that_is_no_folder_is_told_as_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let told = admin::init(file.join("data")).unwrap_err();
    assert!(matches!(&told, OpenError::Io { .. }), "{told}");
}
