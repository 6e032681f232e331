//! What a data folder needs of its disk, and who keeps the server from it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;

use super::{DATA, Findings};
use crate::folder::shell_word;

/// Below this, the folder's disk is as good as full.
const LITTLE_ROOM: u64 = 64 << 20;
/// A write-ahead log that is longer than this is not moved into the database as it should be.
const LONG_WAL: u64 = 256 << 20;
/// The byte of `chips.db-shm` that whoever writes holds a lock on: the first of SQLite's locks, at its place in the file's head.
const WRITE_LOCK: u64 = 120;

/// Whether the folder's disk takes writes, has room, and the files in it are the server's to write.
pub(super) fn examine(path: &Path, folder: &Metadata, findings: &mut Findings) {
    files(path, folder, findings);
    let size = |name: &str| std::fs::metadata(path.join(name)).map(|found| found.len()).unwrap_or_default();
    let (database, wal) = (size("chips.db"), size("chips.db-wal"));
    if let Ok(disk) = rustix::fs::statvfs(path) {
        if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
            findings.wrong(
                DATA,
                "its file system is mounted for reading alone",
                "the system's log (`dmesg`) says why; mount it for writing again, then start the server anew",
            );
        }
        room(disk.f_bavail.saturating_mul(disk.f_frsize), database, findings);
    }
    if wal > LONG_WAL {
        findings.wrong(
            DATA,
            format!("its write-ahead log has {}; usual are 8 to 64 MiB", bytes(wal)),
            format!(
                "something reads an old state of it and does not let go: `fuser {}` names who has it open. A server that is \
                 started anew moves all of it into the database",
                shell_word(&path.join("chips.db").to_string_lossy())
            ),
        );
    }
}

/// Whether the files belong to whoever owns the folder: a command that was run as root once leaves some that the server can't write.
fn files(path: &Path, folder: &Metadata, findings: &mut Findings) {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let strange: Vec<String> = entries
        .filter(|entry| entry.metadata().is_ok_and(|found| found.uid() != folder.uid()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if !strange.is_empty() {
        let word = shell_word(&path.to_string_lossy());
        findings.wrong(
            DATA,
            format!("{} in it belong to another user than the folder", strange.join(", ")),
            format!("`chown -R {}:{} {word}`, and run Chips' commands as that user", folder.uid(), folder.gid()),
        );
    }
    for name in ["chips.db", "chips.db-wal", "chips.db-shm"] {
        let file = path.join(name);
        if std::fs::metadata(&file).is_ok_and(|found| found.mode() & 0o200 == 0) {
            let word = shell_word(&file.to_string_lossy());
            findings.wrong(
                DATA,
                format!("{name} in it may not be written by its owner"),
                format!("`chmod 600 {word}`"),
            );
        }
    }
}

fn room(free: u64, database: u64, findings: &mut Findings) {
    if free < LITTLE_ROOM {
        findings.wrong(
            DATA,
            format!("its disk has {} left; at least {} are needed", bytes(free), bytes(LITTLE_ROOM)),
            format!(
                "make room, best as much as the database has ({}), so that a copy fits too. {}, and go on by themselves once there is \
                 room",
                bytes(database),
                match free < chips_store::LEAST_ROOM {
                    true => "Until then writes are refused with 503",
                    false => "Writes are taken still; below 1 MiB they are refused with 503",
                }
            ),
        );
    } else if free < database {
        findings.note(
            DATA,
            format!("its disk has {} left, less than the database has ({})", bytes(free), bytes(database)),
            "no copy fits beside it: send backups elsewhere, and make room before the next upgrade",
        );
    }
}

/// Who has the database locked for writing, but for this process: its number and name. Nothing where the system does not tell.
pub(super) fn writer_besides(server: &str, path: &Path) -> Option<String> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let shm = std::fs::metadata(path.join("chips.db-shm")).ok()?;
    let database = std::fs::metadata(path.join("chips.db")).ok()?;
    let pid = locks.lines().filter_map(Lock::of).find_map(|lock| {
        let holds = lock.is_on(&shm) && (lock.first..=lock.last).contains(&WRITE_LOCK) || lock.is_on(&database);
        (holds && lock.pid != server).then_some(lock.pid)
    })?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(format!("{pid} ({})", if name.trim().is_empty() { "no name" } else { name.trim() }))
}

/// A lock for writing, as `/proc/locks` tells of it (proc_locks(5)).
struct Lock<'a> {
    pid: &'a str,
    device: (u32, u32),
    inode: u64,
    first: u64,
    last: u64,
}

impl<'a> Lock<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace().skip_while(|word| *word != "WRITE").skip(1);
        let (pid, file, first, last) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let mut parts = file.split(':');
        let hex = |part: Option<&str>| u32::from_str_radix(part?, 16).ok();
        let device = (hex(parts.next())?, hex(parts.next())?);
        // The lock on a database's head alone is one of its readers' or writers' only where it is for writing.
        let last = if last == "EOF" { u64::MAX } else { last.parse().ok()? };
        Some(Self { pid, device, inode: parts.next()?.parse().ok()?, first: first.parse().ok()?, last })
    }

    fn is_on(&self, file: &Metadata) -> bool {
        let device = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
        self.inode == file.ino() && self.device == device
    }
}

/// A size in the unit that people read it in.
fn bytes(size: u64) -> String {
    const KIB: u64 = 1 << 10;
    match size {
        0..KIB => format!("{size} bytes"),
        size if size < 1 << 20 => format!("{} KiB", size >> 10),
        size if size < 10 << 30 => format!("{} MiB", size >> 20),
        size => format!("{} GiB", size >> 30),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_lock_is_read_from_its_line() {
        let lock = Lock::of("3: POSIX  ADVISORY  WRITE 4242 08:1f:131 120 120").unwrap();
        assert_eq!((lock.pid, lock.device, lock.inode), ("4242", (8, 31), 131));
        assert_eq!((lock.first, lock.last), (120, 120));
        assert!(Lock::of("3: POSIX  ADVISORY  READ 4242 08:1f:131 123 123").is_none());
        assert_eq!(Lock::of("7: FLOCK  ADVISORY  WRITE 9 00:2e:7 0 EOF").unwrap().last, u64::MAX);
        assert!(Lock::of("").is_none());
    }

    #[test]
    fn little_room_is_wrong_and_none_for_a_copy_is_worth_knowing() {
        let said = |free, database| {
            let mut findings = Findings::default();
            room(free, database, &mut findings);
            findings.text(false, None)
        };
        assert!(said(3 << 20, 20 << 20).contains("wrong  its disk has 3 MiB left; at least 64 MiB are needed"));
        assert!(
            said(3 << 20, 20 << 20).contains("taken still") && said(1 << 19, 20 << 20).contains("Until then writes")
        );
        assert!(
            said(100 << 20, 200 << 20)
                .contains("note   its disk has 100 MiB left, less than the database has (200 MiB)")
        );
        assert_eq!(said(300 << 20, 200 << 20), "");
    }
}
