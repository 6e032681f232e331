//! A release made of the binary that the tests run.
// Each test binary uses its own part of this module.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::process::{Process, clean};
use crate::support::{LIMIT, until};

/// An archive in a folder, and its checksum beside it.
pub struct Release {
    /// The name of the folder in it: `chips-VERSION-PLATFORM`.
    pub name: String,
    pub archive: PathBuf,
    pub sums: PathBuf,
}

impl Release {
    /// Makes one in this folder, as `cargo run -p xtask -- dist` does.
    pub fn in_folder(folder: &Path) -> Self {
        let xtask = Path::new(env!("CARGO_BIN_EXE_chips")).with_file_name("xtask");
        assert!(
            xtask.is_file(),
            "{} is not built: `cargo build --workspace --all-targets` builds it, and so does ./test",
            xtask.display()
        );
        let mut dist = Command::new(xtask);
        clean(&mut dist, folder);
        // Cargo finds its packages, and rustup its toolchain, in the home of whoever runs the tests.
        for kept in ["HOME", "CARGO", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
            if let Some(value) = std::env::var_os(kept) {
                dist.env(kept, value);
            }
        }
        dist.env("SOURCE_DATE_EPOCH", "1767225600").args(["dist", "--binary", env!("CARGO_BIN_EXE_chips"), "--out"]);
        dist.arg(folder);
        let mut process = Process::spawn(dist);
        until(LIMIT * 4, "the archive", || process.ended());
        let made = process.finish(LIMIT);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let paths: Vec<_> = String::from_utf8(made.stdout).unwrap().lines().map(PathBuf::from).collect();
        let [sums, archive] = &paths[..] else { panic!("{paths:?}") };
        let name = archive.file_name().unwrap().to_str().unwrap().strip_suffix(".tar.gz").unwrap();
        Self { name: name.to_owned(), archive: archive.clone(), sums: sums.clone() }
    }
}
