//! Which sessions have a hook that waits, in files of this machine: hooks that run after every tool look here first, and
//! speak to Chips only where something may have to be closed.

use std::path::{Path, PathBuf};

/// The hooks that wait, each with a file in a folder.
#[derive(Debug, Clone)]
pub struct Waiting {
    folder: PathBuf,
    session: String,
}

/// A hook that waits; its file goes when this is dropped.
#[derive(Debug)]
pub struct Mark(PathBuf);

impl Waiting {
    /// Those of a session, below this program's cache folder.
    pub fn new(cache: &Path, session_id: &str) -> Self {
        Self { folder: cache.join("waiting"), session: format!("{:020x}", super::digest(&["waiting", session_id])) }
    }

    /// Says that this process waits.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn mark(&self) -> std::io::Result<Mark> {
        std::fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(format!("{}-{}", self.session, std::process::id()));
        std::fs::write(&path, "")?;
        Ok(Mark(path))
    }

    /// Whether a hook of the session may wait: one does, one was killed while it did, or nothing can be noted down here.
    pub fn is_any(&self) -> bool {
        std::fs::create_dir_all(&self.folder).is_err() || !self.files().is_empty()
    }

    /// Forgets those of the session: it is over.
    pub fn clear(&self) {
        for file in self.files() {
            // What can't be removed costs a look at Chips that finds nothing.
            let _ = std::fs::remove_file(file);
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let ours = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(|name| name.split_once('-')).is_some_and(|(session, _)| session == self.session)
        };
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(ours).collect()
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_mark_stands_as_long_as_its_hook_waits_and_for_its_session_alone() {
        let cache = tempfile::tempdir().unwrap();
        let (one, other) = (Waiting::new(cache.path(), "one"), Waiting::new(cache.path(), "other"));
        assert!(!one.is_any());
        let mark = one.mark().unwrap();
        assert!(one.is_any() && !other.is_any());
        drop(mark);
        assert!(!one.is_any());
    }

    #[test]
    fn where_nothing_can_be_noted_down_one_may_always_wait() {
        let cache = tempfile::tempdir().unwrap();
        std::fs::write(cache.path().join("waiting"), "no folder").unwrap();
        let one = Waiting::new(cache.path(), "one");
        assert!(one.mark().is_err());
        assert!(one.is_any());
    }

    #[test]
    fn what_a_killed_hook_leaves_goes_with_its_session() {
        let cache = tempfile::tempdir().unwrap();
        let (one, other) = (Waiting::new(cache.path(), "one"), Waiting::new(cache.path(), "other"));
        std::mem::forget((one.mark().unwrap(), other.mark().unwrap()));
        one.clear();
        assert!(!one.is_any() && other.is_any());
    }
}
