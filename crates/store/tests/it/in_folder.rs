//! A store in a folder, for what only a file has.

use chips_store::{Options, Store, admin};

use crate::support::World;

/// A new store in a folder, opened: for what only a file has.
pub async fn world_in_folder() -> (tempfile::TempDir, World) {
    world_in_folder_with(Options::default()).await
}

pub async fn world_in_folder_with(options: Options) -> (tempfile::TempDir, World) {
    let dir = tempfile::tempdir().unwrap();
    let made = admin::init(dir.path()).unwrap();
    let store = Store::open(dir.path(), options).unwrap();
    let world = World::enter(&store, &made).await;
    (dir, world)
}
