//! Where a harness works: what tells one run from another in the inbox.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chips_protocol::api::NewRun;

/// Most characters of a label's value (see [`NewRun::labels`]).
const VALUE: usize = 255;

/// A working folder, its branch and the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workplace {
    /// The working folder.
    pub folder: PathBuf,
    /// The branch that is checked out there, where it is in a git repository and on a branch.
    pub branch: Option<String>,
    /// The machine's name, where it has one.
    pub host: Option<String>,
}

impl Workplace {
    /// What is known of a folder on this machine. Reads a file or two of git's and runs nothing.
    pub fn of(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), branch: branch(folder), host: host() }
    }

    /// What people call work in this place: `shop · fix/importer`.
    pub fn title(&self) -> Option<String> {
        let name = self.folder.file_name()?.to_string_lossy();
        Some(match &self.branch {
            Some(branch) => format!("{name} · {branch}"),
            None => name.into_owned(),
        })
    }

    /// A run with this place's title, and folder, branch and host as its labels. What the contract would refuse
    /// (control characters) is left out, what is too long is cut: a label is no reason not to ask.
    pub fn run(&self) -> NewRun {
        let folder = self.folder.to_string_lossy();
        let labels: BTreeMap<String, String> = [
            ("folder", Some(tail(&folder, VALUE))),
            ("branch", self.branch.as_deref().map(|text| tail(text, VALUE))),
            ("host", self.host.as_deref().map(|text| tail(text, VALUE))),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value.filter(|text| is_label(text))?)))
        .collect();
        NewRun {
            title: self.title().map(|title| title.chars().take(300).collect()).filter(|text: &String| is_label(text)),
            labels: Some(labels).filter(|labels| !labels.is_empty()),
            ..NewRun::default()
        }
    }
}

fn is_label(text: &str) -> bool {
    use chips_protocol::text::{is_bidi_control, is_blank};
    !is_blank(text) && !text.chars().any(|c| c.is_control() || is_bidi_control(c))
}

/// The end of a text: of a long path, the end says more.
fn tail(text: &str, most: usize) -> String {
    text.chars().skip(text.chars().count().saturating_sub(most)).collect()
}

fn branch(folder: &Path) -> Option<String> {
    let dot_git = folder.ancestors().map(|place| place.join(".git")).find(|place| place.exists())?;
    let head = if dot_git.is_dir() {
        dot_git.join("HEAD")
    } else {
        // A worktree or a submodule: the file says where the rest is (gitrepository-layout).
        let link = std::fs::read_to_string(&dot_git).ok()?;
        let to = link.strip_prefix("gitdir:")?.trim();
        dot_git.parent()?.join(to).join("HEAD")
    };
    let head = std::fs::read_to_string(head).ok()?;
    Some(head.trim_end().strip_prefix("ref: refs/heads/")?.to_owned())
}

fn host() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = name.split('.').next().unwrap_or_default().to_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_run_says_folder_branch_and_host() {
        let home = tempfile::tempdir().unwrap();
        let shop = home.path().join("shop");
        std::fs::create_dir_all(shop.join(".git")).unwrap();
        std::fs::create_dir_all(shop.join("src")).unwrap();
        std::fs::write(shop.join(".git/HEAD"), "ref: refs/heads/fix/importer\n").unwrap();

        let place = Workplace::of(&shop);
        assert_eq!(place.title().as_deref(), Some("shop · fix/importer"));
        assert_eq!(Workplace::of(&shop.join("src")).branch.as_deref(), Some("fix/importer"), "found from below");
        let labels = place.run().labels.unwrap();
        assert_eq!(labels["branch"], "fix/importer");
        assert_eq!(labels["folder"], shop.to_string_lossy());
        assert!(labels.contains_key("host"));
    }

    #[test]
    fn a_worktree_has_the_branch_of_its_own() {
        let home = tempfile::tempdir().unwrap();
        let (tree, inner) = (home.path().join("tree"), home.path().join("repo/.git/worktrees/tree"));
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", inner.display())).unwrap();
        std::fs::write(inner.join("HEAD"), "ref: refs/heads/side\n").unwrap();
        assert_eq!(Workplace::of(&tree).branch.as_deref(), Some("side"));
    }

    #[test]
    fn a_detached_head_or_no_repository_has_no_branch() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Workplace::of(home.path()).branch, None);
        std::fs::create_dir(home.path().join(".git")).unwrap();
        std::fs::write(home.path().join(".git/HEAD"), "0123456789012345678901234567890123456789\n").unwrap();
        assert_eq!(Workplace::of(home.path()).branch, None);
    }

    #[test]
    fn a_folder_that_can_t_be_a_label_is_left_out() {
        let place = Workplace { folder: PathBuf::from("/srv/a\u{7}b"), branch: None, host: None };
        let run = place.run();
        assert_eq!((run.title, run.labels), (None, None));
    }
}
