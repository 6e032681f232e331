//! A process that is killed while it writes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use chips_store::admin::{self, Admin};
use chips_store::{EventsQuery, Options, Store};

use crate::support::*;

/// Says in the killed process where it is to write, and as whom.
const FOLDER: &str = "CHIPS_TEST_CRASH_FOLDER";
const TOKEN: &str = "CHIPS_TEST_CRASH_TOKEN";

/// Writes as fast as it can and prints `SEQ KEY` for each write once it is acknowledged, until it is killed.
async fn write_until_killed(dir: &Path, token: &str) {
    let store = Store::open(dir, Options::default()).unwrap();
    let harness = identity(&store, token).await;
    let run = store.open_run(harness.sender, Default::default()).await.unwrap().0.run_id;
    let writers = (0..16).map(async |_| {
        loop {
            let draft = ask_by(&harness, run);
            let key = draft.idempotency_key.clone();
            let record = appended(store.submit(harness.sender, draft).await);
            let mut out = std::io::stdout().lock();
            // Whoever reads ends this process in the end.
            if writeln!(out, "ack {} {key}", record.seq).and_then(|()| out.flush()).is_err() {
                return;
            }
        }
    });
    futures::future::join_all(writers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_event_survives_a_kill_and_no_number_is_missing() {
    if let (Ok(dir), Ok(token)) = (std::env::var(FOLDER), std::env::var(TOKEN)) {
        return write_until_killed(Path::new(&dir), &token).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let made = admin::init(dir.path()).unwrap();
    Admin::open(dir.path()).unwrap().set_budget(made.harness.id, Some(None), Some(None)).unwrap();
    let mut acknowledged = BTreeMap::new();
    for round in 1..=3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "crash::every_acknowledged_event_survives_a_kill_and_no_number_is_missing",
                "--nocapture",
            ])
            .env(FOLDER, dir.path())
            .env(TOKEN, &made.harness.token)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut seen = 0;
        for line in out.lines() {
            let line = line.unwrap();
            let Some((seq, key)) = line.strip_prefix("ack ").and_then(|line| line.split_once(' ')) else { continue };
            assert_eq!(acknowledged.insert(seq.parse::<u64>().unwrap(), key.to_owned()), None, "{seq} was given twice");
            seen += 1;
            if seen == 200 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= 200, "round {round}: {seen}");

        let store = open(dir.path());
        let world = World::enter(&store, &made).await;
        let log = world.log_of(&world.harness, EventsQuery { limit: 1_000, ..EventsQuery::default() }).await;
        assert_eq!(log.iter().map(|record| record.seq).collect::<Vec<_>>(), (1..=world.head()).collect::<Vec<_>>());
        for (seq, key) in &acknowledged {
            let record = &log[usize::try_from(*seq).unwrap() - 1];
            assert_eq!(record.event.envelope.idempotency_key.as_ref(), Some(key));
        }
        let budget = store.me(&world.harness).await.unwrap().budget.unwrap();
        assert_eq!((budget.open, budget.hour), (world.head(), world.head()));
        let known = store.replay_by_key(world.harness.sender, &acknowledged[&1]).await.unwrap();
        assert_eq!(known.map(|record| record.seq), Some(1));
        store.close().await;
    }
}
