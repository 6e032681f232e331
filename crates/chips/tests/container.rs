//! `deploy/Containerfile`, without a container engine: its steps are carried out in plain folders, with the binary that the tests run
//! in the place of the one that it would build, and what comes out of it is run as it says, on a root that can't be written.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "container/image.rs"]
mod image;
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use image::{Image, instructions};
use rustix::process::Signal;
use support::process::{Process, clean, output};
use support::{Folder, LIMIT, until};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn containerfile() -> String {
    std::fs::read_to_string(root().join("deploy/Containerfile")).unwrap()
}

#[test]
fn what_is_copied_into_the_build_is_all_that_the_build_reads() {
    let folder = Folder::empty();
    let copied = folder.path().join("src");
    image::copy_context(&root(), &copied);
    for left_out in [".git", "target", "docs"] {
        assert!(!copied.join(left_out).exists(), "{left_out} is copied");
    }
    // Cargo wrote down which files it read for the binary.
    let read = std::fs::read_to_string(format!("{}.d", env!("CARGO_BIN_EXE_chips"))).unwrap();
    let mut count = 0;
    for file in read.split_once(':').unwrap().1.split_whitespace() {
        // What another worktree of the same files has built stands with that one's folder.
        let Some(at) = ["/crates/", "/xtask/"].iter().find_map(|part| file.find(part)) else { continue };
        let file = &file[at + 1..];
        assert!(copied.join(file).is_file(), "{file} is read by the build, and not copied into it");
        count += 1;
    }
    assert!(count > 150, "only {count} files: {read}");
    // The workspace is whole: cargo finds each package of it, and the lock file fits.
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]).current_dir(&copied);
    let metadata = output(cargo);
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
}

#[test]
fn the_image_runs_as_nobody_in_particular_and_says_so_in_numbers() {
    let instructions = instructions(&containerfile());
    let last = |name: &str| instructions.iter().rev().find(|one| one.name == name).map(|one| one.rest.clone());
    let user = last("USER").unwrap();
    let (uid, gid) = user.split_once(':').unwrap();
    assert!(uid.parse::<u32>().unwrap() >= 1000 && gid.parse::<u32>().unwrap() >= 1000, "{user}");
    assert_eq!(last("VOLUME").as_deref(), Some("/data"));
    for label in ["title", "description", "licenses"] {
        let labels = last("LABEL").unwrap();
        assert!(labels.contains(&format!("org.opencontainers.image.{label}=")), "{labels}");
    }
    for instruction in &instructions {
        // Without a shell there is nothing but the form of JSON.
        if ["ENTRYPOINT", "CMD"].contains(&&*instruction.name) {
            let words: Vec<String> = serde_json::from_str(&instruction.rest).unwrap();
            assert!(!words.is_empty());
        }
    }
}

/// Runs a command on the root of the image as its user with its environment, in namespaces of its own: the root can't be written,
/// there is no network but loopback, and no capability is left. Stays the process that it is called as.
const RUN: &str = r#"
root=$1 volume=$2 user=$3
shift 3
mount --rbind "$root" "$root"
for part in usr/lib usr/lib64 usr/bin; do
    [ ! -d "/$part" ] || mount --bind "/$part" "$root/$part"
done
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -o remount,bind,ro "$root"
mount --bind "$volume" "$root/data"
mount --bind "$volume-backups" "$root/backups"
python3 -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))'
exec setpriv --no-new-privs --bounding-set=-all,+setuid,+setgid,+sys_chroot chroot --userspec="$user" --groups= "$root" "$@"
"#;

fn run_in(folder: &Folder, image: &Image, volume: &Path, environment: &[(&str, &str)], command: &[String]) -> Command {
    let mut run = Command::new("unshare");
    clean(&mut run, folder.path());
    run.args(["--mount", "--net", "--ipc", "--uts", "sh", "-euc", RUN, "sh"]);
    run.arg(&image.root).arg(volume).arg(&image.user).args(["/usr/bin/env", "-i"]);
    run.args(image.environment.iter().map(|(name, value)| format!("{name}={value}")));
    run.args(environment.iter().map(|(name, value)| format!("{name}={value}"))).args(command);
    run
}

#[test]
fn the_image_starts_on_a_root_that_can_not_be_written_and_becomes_healthy() {
    let folder = Folder::empty();
    let may = "[ $(id -u) = 0 ] && exec unshare --mount --net mount -t tmpfs t /mnt";
    let mut allowed = Command::new("sh");
    clean(&mut allowed, folder.path());
    allowed.args(["-euc", may]);
    if !output(allowed).status.success() {
        println!("SKIPPED: no namespaces in which a root could be mounted: that needs root");
        return;
    }
    let image = Image::build(&containerfile(), &root(), folder.path(), Path::new(env!("CARGO_BIN_EXE_chips")));
    // A new volume is as the image's folder is.
    let volume = folder.path().join("volume");
    image::copy(&image.root.join("data"), &volume);
    image::copy(&image.root.join("backups"), &folder.path().join("volume-backups"));
    let start = [image.entrypoint.as_slice(), &image.command].concat();

    // Nobody serves plain http to the world by accident.
    let refused = output(run_in(&folder, &image, &volume, &[], &start));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("public"), "{said}");

    // Where nobody serves, nobody is healthy.
    let sick = output(run_in(&folder, &image, &volume, &[], &image.health));
    assert_eq!(sick.status.code(), Some(1), "{}", String::from_utf8_lossy(&sick.stdout));

    let told = [("CHIPS_PUBLIC_URL", "https://chips.example.com")];
    let mut process = Process::spawn(run_in(&folder, &image, &volume, &told, &start));
    let id = process.id().to_string();
    let into = |command: &[String], environment: bool| {
        let mut enter = Command::new("nsenter");
        clean(&mut enter, folder.path());
        let (uid, gid) = image.user.split_once(':').unwrap();
        enter.args(["--target", &id, "--mount", "--net", "--root", "--wd"]);
        enter.args(["--setuid", uid, "--setgid", gid, "/usr/bin/env", "-i"]);
        if environment {
            enter.args(image.environment.iter().map(|(name, value)| format!("{name}={value}")));
        }
        enter.args(command);
        output(enter)
    };
    until(LIMIT, "the health check to pass", || into(&image.health, true).status.success().then_some(()));
    process.says("where it listens", |line| line.contains("listening on http://0.0.0.0:7070").then_some(()));

    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let uid = image.user.split(':').next().unwrap();
    assert!(
        status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(1) == Some(uid)),
        "{status}"
    );
    for line in ["CapEff:", "NoNewPrivs:"] {
        let value = status.lines().find_map(|status| status.strip_prefix(line)).unwrap().trim();
        assert_eq!(value.trim_start_matches('0'), if line == "CapEff:" { "" } else { "1" }, "{status}");
    }
    assert!(!into(&words("/usr/bin/touch /usr/local/bin/x"), false).status.success(), "the root can be written");

    // Administered as the manual of installation says, by the binary's name alone.
    let people = into(&words("chips person list"), true);
    assert!(String::from_utf8_lossy(&people.stdout).contains("Owner"), "{}", String::from_utf8_lossy(&people.stderr));
    let backup = into(&words("chips backup /backups/copy.db"), true);
    assert!(backup.status.success(), "{}", String::from_utf8_lossy(&backup.stderr));

    process.signal(Signal::TERM);
    assert!(process.wait(LIMIT).success(), "{}", process.stderr());
}
