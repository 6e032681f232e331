//! Whether the person is away: whether questions go to Chips at all, or stay in the harness's own dialog.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;

/// How long a terminal may be untouched before its person counts as away.
pub const IDLE: Duration = Duration::from_secs(5 * 60);

/// What the person said of being away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Away {
    /// Questions go to Chips.
    #[default]
    On,
    /// Questions stay in the harness's own dialog.
    Off,
    /// Questions go to Chips once none of the person's terminals was touched for five minutes.
    Auto,
}

impl Away {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Auto => "auto",
        }
    }

    /// Whether questions go to Chips now.
    pub fn is_away(self) -> bool {
        match self {
            Self::On => true,
            Self::Off => false,
            // Where no terminal can be seen, nobody sits at one.
            Self::Auto => idle().is_none_or(|idle| idle >= IDLE),
        }
    }
}

impl FromStr for Away {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::On, Self::Off, Self::Auto].into_iter().find(|away| away.as_str() == text.trim()).ok_or(())
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("away")
}

/// What was said last, in the user's configuration folder; `on` where nothing was.
///
/// # Errors
/// The file can't be read, or says something else.
pub fn read(folder: &Path) -> anyhow::Result<Away> {
    let path = file(folder);
    match std::fs::read_to_string(&path) {
        Ok(text) => text.parse().map_err(|()| {
            anyhow::anyhow!("{} holds neither on, off nor auto; say it again with `chips away`", path.display())
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Away::default()),
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}

/// Whether questions go to Chips now. Where that can't be read they stay in the harness's own dialog, and a line says why.
pub fn now(folder: &Path) -> bool {
    match read(folder) {
        Ok(away) => away.is_away(),
        Err(error) => {
            crate::output::note(format_args!("chips: {}", crate::output::one_line(&format!("{error:#}"))));
            false
        }
    }
}

/// Keeps what was said.
///
/// # Errors
/// The file can't be written.
pub fn write(folder: &Path, away: Away) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    let path = file(folder);
    let mut file = std::fs::File::create(&path).with_context(|| format!("can't write {}", path.display()))?;
    writeln!(file, "{}", away.as_str()).with_context(|| format!("can't write {}", path.display()))
}

/// How long none of this user's terminals was typed into: a terminal's access time is that of the last key
/// (the same figure that `w` shows as idle).
fn idle() -> Option<Duration> {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::getuid().as_raw();
    let terminals = std::fs::read_dir("/dev/pts").ok()?;
    terminals
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .filter(|terminal| terminal.uid() == user)
        .filter_map(|terminal| terminal.accessed().ok())
        .filter_map(|touched| touched.elapsed().ok())
        .min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_was_said_is_kept_and_on_is_what_holds_before() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("chips");
        assert_eq!(read(&folder).unwrap(), Away::On);
        for away in [Away::Auto, Away::Off, Away::On] {
            write(&folder, away).unwrap();
            assert_eq!(read(&folder).unwrap(), away);
        }
        std::fs::write(folder.join("away"), "perhaps").unwrap();
        assert!(read(&folder).unwrap_err().to_string().contains("chips away"));
    }

    #[test]
    fn off_keeps_questions_in_the_terminal() {
        assert!(Away::On.is_away());
        assert!(!Away::Off.is_away());
    }
}
