//! What the disk can do by itself.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Bare groups, written one after the other.
pub struct Bare {
    /// All of them.
    pub took: Duration,
    /// Two at a time, as a question needs them: one for its ask and one for its answer.
    pub pairs: Vec<Duration>,
}

/// Writes this many groups of this many bytes to a new file in the folder, an fdatasync after each.
///
/// # Errors
/// The folder can't be written.
pub fn groups(folder: &Path, count: u64, bytes: u64) -> Result<Bare> {
    let path = folder.join("bare");
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).open(&path).context("a file to write")?;
    let group = vec![b'x'; usize::try_from(bytes).context("the size of a group")?.max(1)];
    let mut times = Vec::new();
    let began = Instant::now();
    let mut last = began;
    for _ in 0..count {
        file.write_all(&group)?;
        file.sync_data()?;
        let now = Instant::now();
        times.push(now - last);
        last = now;
    }
    let took = began.elapsed();
    drop(file);
    std::fs::remove_file(path)?;
    let pairs = times.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
    Ok(Bare { took, pairs })
}
