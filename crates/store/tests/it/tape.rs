//! The same tape of commands on both databases gives the same output, byte for byte, but for identifiers that Chips draws by lot.

use chips_protocol::Timestamp;
use chips_store::admin::{self, Admin};
use chips_store::{AskFilter, AsksQuery, EventsQuery};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::model::{Model, Stage, steps};
use crate::support::*;

/// Tapes of one test; there are five, so that they share the cores.
const TAPES: u64 = 100;

/// Everything that can be seen of a stage.
pub async fn seen(stage: &Stage) -> String {
    let (mut text, store) = (String::new(), &stage.store);
    let mut add = |what: String| text.extend([what.as_str(), "\n"]);
    for viewer in [&stage.person, &stage.harnesses[0], &stage.harnesses[1]] {
        let events = store.events(viewer, &EventsQuery { limit: 1_000, ..EventsQuery::default() }).await.unwrap();
        add(format!("{} {}", events.head, events.through));
        events.records.iter().for_each(|record| add(String::from_utf8(record.json.to_vec()).unwrap()));
        for filter in [AskFilter::All, AskFilter::Open, AskFilter::Closed] {
            let list = AsksQuery { filter, limit: 3, ..AsksQuery::default() };
            add(serde_json::to_string(&store.asks(viewer, &list).await.unwrap()).unwrap());
        }
        for ask in 0..6 {
            add(serde_json::to_string(&store.ask(viewer, Stage::ask_id(ask)).await.unwrap()).unwrap());
        }
        for run in stage.runs {
            add(serde_json::to_string(&store.run(viewer, run).await.unwrap()).unwrap());
        }
        add(serde_json::to_string(&store.me(viewer).await.unwrap()).unwrap());
    }
    text
}

/// A text with each identifier replaced by its kind and a number, by the order in which they turn up.
pub fn numbered(text: &str) -> String {
    const KINDS: [&str; 8] = ["ws_", "spc_", "usr_", "hrn_", "agt_", "run_", "evt_", "qst_"];
    let mut known: Vec<&str> = Vec::new();
    let parts = text.split('"').map(|part| {
        let kind = KINDS.into_iter().find(|kind| part.len() == kind.len() + 26 && part.starts_with(kind));
        let Some(kind) = kind else { return part.to_owned() };
        let number = known.iter().position(|other| *other == part).unwrap_or(known.len());
        if number == known.len() {
            known.push(part);
        }
        format!("{kind}{number}")
    });
    parts.collect::<Vec<_>>().join("\"")
}

/// Plays tapes, each on a folder of its own and in a workspace of its own of one schema.
async fn play(seed: u8) {
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]));
    let mut schema = Home::schema();
    admin::init(schema.path()).unwrap();
    let mut events = 0;
    for tape in 0..TAPES {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        // Each later than all before: what stands in the schema is never ahead of the clock.
        let wall = Timestamp::from_ms(1_790_000_000_000).plus_ms(i64::try_from(tape).unwrap() * 86_400_000);
        let folder = Home::folder();
        let made = admin::init(folder.path()).unwrap();
        let mut here = Stage::set(folder, &made, wall).await;
        let made = Admin::open(schema.path()).unwrap().add_workspace("Workspace").unwrap();
        let mut there = Stage::set(schema, &made, wall).await;
        let mut model = Model::default();
        for (nth, step) in steps.iter().enumerate() {
            let (one, other) = (here.step(step, &model).await, there.step(step, &model).await);
            assert_eq!(one, other, "tape {seed}/{tape}, step {nth}: {step:?}");
            model.step(step);
        }
        let (one, other) = (numbered(&seen(&here).await), numbered(&seen(&there).await));
        for (one, other) in one.lines().zip(other.lines()) {
            assert_eq!(one, other, "tape {seed}/{tape}: {steps:?}");
        }
        assert_eq!(one.lines().count(), other.lines().count());
        events += one.matches("\"seq\":").count();
        here.store.close().await;
        there.store.close().await;
        schema = there.dir;
    }
    assert!(events > 1_000, "the tapes leave too little behind: {events}");
}

#[tokio::test]
async fn a_hundred_tapes_leave_the_same_on_both() {
    play(1).await;
}

#[tokio::test]
async fn another_hundred_tapes_leave_the_same_on_both() {
    play(2).await;
}

#[tokio::test]
async fn a_third_hundred_tapes_leave_the_same_on_both() {
    play(3).await;
}

#[tokio::test]
async fn a_fourth_hundred_tapes_leave_the_same_on_both() {
    play(4).await;
}

#[tokio::test]
async fn a_fifth_hundred_tapes_leave_the_same_on_both() {
    play(5).await;
}
