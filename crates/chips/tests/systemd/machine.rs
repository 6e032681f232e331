//! A machine of its own: systemd as the first process of new namespaces, over this machine's files, which it sees and can't
//! change where it matters, without its network and without its units.

use std::path::PathBuf;
use std::process::Command;

use crate::support::process::{Process, clean, output};
use crate::support::{Folder, LIMIT, until};

/// Enters a control group and namespaces of its own. systemd must be alone in its group.
const ENTER: &str = r#"
groups=/sys/fs/cgroup
[ -e $groups/cgroup.controllers ] || groups=$groups/unified
mkdir "$groups/$1"
echo $$ >"$groups/$1/cgroup.procs"
echo "control group: $groups/$1"
exec unshare --mount --net --pid --ipc --uts --cgroup --fork --kill-child --mount-proc sh -euc "$3" sh "$2"
"#;

/// Puts changes aside, clears what this machine would start, and becomes systemd. Units that every machine has are
/// empty here but for the journal.
const BOOT: &str = r#"
mount -t tmpfs changes "$1"
for part in etc var usr/local; do
    mkdir -p "$1/$part/new" "$1/$part/work"
    mount -t overlay overlay -o "lowerdir=/$part,upperdir=$1/$part/new,workdir=$1/$part/work" "/$part"
done
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs units /etc/systemd/system
cd /etc/systemd/system
for target in sysinit basic sockets timers network-online shutdown; do
    printf '[Unit]\nDefaultDependencies=no\n' >$target.target
done
printf '[Unit]\nDefaultDependencies=no\nWants=systemd-journald.service\n' >multi-user.target
cp /lib/systemd/system/systemd-journald.service /lib/systemd/system/systemd-journald*.socket .
exec env -i container=chips-test PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_UNIT_PATH=/etc/systemd/system \
    SYSTEMD_GENERATOR_PATH=/nowhere /lib/systemd/systemd --system --unit=multi-user.target --log-target=console --show-status=0
"#;

/// `sudo` as on any machine, for commands that are root's already.
const SUDO: &str = r#"
sudo() {
    if [ "$1" = -u ]; then
        user=$2
        shift 2
        runuser -u "$user" -- "$@"
    else
        "$@"
    fi
}
"#;

/// The machine. It is gone when this is dropped.
pub struct Machine {
    process: Process,
    /// The process id of its systemd.
    systemd: u32,
    group: PathBuf,
    folder: PathBuf,
}

impl Machine {
    /// Boots one whose commands run in this folder. Nothing where that is not allowed.
    pub fn boot(folder: &Folder) -> Option<Self> {
        let changes = folder.path().join("changes");
        std::fs::create_dir(&changes).unwrap();
        let sh = |script: &str, arguments: &[&str]| {
            let mut command = Command::new("sh");
            clean(&mut command, folder.path());
            command.args(["-euc", script, "sh"]).args(arguments);
            command
        };
        let allowed = "[ $(id -u) = 0 ] && exec unshare --mount --net --pid --cgroup --fork mount -t tmpfs t /run";
        if !output(sh(allowed, &[])).status.success() {
            return None;
        }
        let name = format!("chips-test-{}", std::process::id());
        let mut process = Process::spawn(sh(ENTER, &[&name, changes.to_str().unwrap(), BOOT]));
        let group = process.says("its control group", |line| line.strip_prefix("control group: ").map(PathBuf::from));
        // `sh` has become `unshare`, whose only child is the first process inside.
        let children = format!("/proc/{0}/task/{0}/children", process.id());
        let systemd = until(LIMIT, "a process inside", || std::fs::read_to_string(&children).ok()?.trim().parse().ok());
        let machine = Self { process, systemd, group, folder: folder.path().to_owned() };
        until(LIMIT, "systemd to be up", || {
            let (_, state, error) = machine.try_run("systemctl is-system-running");
            let log = || format!("{state}{error}{}{}", machine.process.stdout(), machine.process.stderr());
            assert_ne!(state, "degraded\n", "{}", log());
            (state == "running\n").then_some(())
        });
        Some(machine)
    }

    /// Runs a script on it to its end: whether it succeeded, what it printed, and what it complained about.
    pub fn try_run(&self, script: &str) -> (bool, String, String) {
        let mut command = Command::new("nsenter");
        clean(&mut command, &self.folder);
        command.env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("PAGER", "cat");
        command.arg("--target").arg(self.systemd.to_string()).args(["--mount", "--net", "--pid", "--ipc", "--uts"]);
        command.arg(format!("--wd={}", self.folder.display())).args(["bash", "-euo", "pipefail", "-c"]);
        command.arg(format!("{SUDO}\n{script}"));
        let output = output(command);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    }

    /// Runs a script that must succeed, and gives what it printed.
    #[track_caller]
    pub fn run(&self, script: &str) -> String {
        let (done, out, err) = self.try_run(script);
        let journal = || self.try_run("journalctl --no-pager --output cat | tail -n 40").1;
        assert!(done, "{script}\n{out}\n{err}\n{}", journal());
        out
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // With `unshare` its child ends, and with the first process all others of its namespace.
        self.process.signal(rustix::process::Signal::KILL);
        self.process.wait(LIMIT);
        remove_groups(&self.group);
    }
}

/// Removes a control group and those below it, as soon as their processes are gone.
fn remove_groups(group: &std::path::Path) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    let gone = || !group.exists() || std::fs::remove_dir(group).is_ok();
    until(LIMIT, "its control group to be empty", || gone().then_some(()));
}
