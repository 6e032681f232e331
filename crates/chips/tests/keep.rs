//! Keeping and forgetting, upgrades and backups, by the real binary on real folders.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod support;

#[path = "keep/backup.rs"]
mod backup;
#[path = "keep/erase.rs"]
mod erase;
#[path = "keep/export.rs"]
mod export;
#[path = "keep/retain.rs"]
mod retain;
#[path = "keep/upgrade.rs"]
mod upgrade;

/// Runs a command up to the `number`th point at which it can be stopped, and kills it there: where that was. Nothing where
/// it ends well before.
#[cfg(debug_assertions)]
fn killed_at(mut command: std::process::Command, number: usize) -> Option<String> {
    use support::process::Process;
    command.env("CHIPS_TEST_STOP_AT", number.to_string());
    let mut process = Process::spawn(command);
    let stopped = support::until(support::LIMIT, "it to stop or to end", || {
        let ended = process.ended();
        let said = process.stderr();
        let stopped = said.lines().find_map(|line| line.strip_prefix(&format!("stopped at {number}: ")));
        match (stopped, ended) {
            (Some(at), _) => Some(Some(at.to_owned())),
            (None, Some(status)) => {
                assert!(status.success(), "{status}: {said}");
                Some(None)
            }
            (None, None) => None,
        }
    });
    if stopped.is_some() {
        process.signal(rustix::process::Signal::KILL);
        process.wait(support::LIMIT);
    }
    stopped
}
