//! Runs, acknowledgements and leases.

use std::collections::BTreeMap;

use chips_core::Refusal;
use chips_protocol::api::{AskState, NewRun, RunState};
use chips_protocol::{FaultCode, ParticipantId, RunId, SpaceId};

use super::Cast;
use crate::support::*;

fn full(cast: &Cast) -> NewRun {
    NewRun {
        run_id: Some(RunId::from_parts(1, unique())),
        space_id: Some(cast.world.space_id),
        title: Some("Ship it".into()),
        url: Some("https://example.org/1".into()),
        labels: Some(BTreeMap::from([("repo".into(), "chips".into()), ("a:b".into(), "c\"d".into())])),
        parent_run_id: None,
        lease_seconds: Some(60.into()),
    }
}

pub async fn a_run_is_opened_once(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let new = full(cast);
    let (run, opened) = store.open_run(world.harness.sender, new.clone()).await.unwrap();
    assert!(opened);
    let changed = NewRun { title: Some("Other".into()), space_id: None, labels: None, ..new.clone() };
    assert_eq!(store.open_run(world.harness.sender, changed).await.unwrap(), (run, false));
    assert_eq!(refused(store.open_run(cast.second.sender, new.clone()).await), Refusal::RunIdConflict);
    assert!(matches!(refused(store.open_run(world.person.sender, new.clone()).await), Refusal::WrongSender(_)));
    let there = NewRun { space_id: None, ..new };
    assert!(store.open_run(cast.elsewhere.harness.sender, there).await.unwrap().1);
}

pub async fn a_run_keeps_what_it_was_opened_with(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let new = full(cast);
    let (run, _) = store.open_run(world.harness.sender, new.clone()).await.unwrap();
    assert_eq!((run.run_id, run.harness_id, run.space_id), (new.run_id.unwrap(), world.harness_id(), new.space_id));
    assert_eq!((&run.title, &run.url), (&new.title, &new.url));
    assert_eq!((Some(&run.labels), &run.lease_seconds), (new.labels.as_ref(), &new.lease_seconds));
    assert_eq!(run.lease_until, Some(run.started_at.plus_ms(60_000)));
    assert_eq!((run.state, run.ended_at, run.parent_run_id), (RunState::Live, None, None));
    assert_eq!(store.run(&world.harness, run.run_id).await.unwrap().as_ref(), Some(&run));
    assert_eq!(store.run(&world.person, run.run_id).await.unwrap().as_ref(), Some(&run));

    let child = NewRun { parent_run_id: Some(run.run_id), ..NewRun::default() };
    let (child, _) = store.open_run(world.harness.sender, child).await.unwrap();
    assert_eq!(child.parent_run_id, Some(run.run_id));
    assert_ne!(child.run_id, run.run_id);
    assert_eq!((child.lease_until, child.labels.len(), child.space_id), (None, 0, None));
}

pub async fn a_run_takes_no_foreign_space_or_parent(cast: &Cast) {
    let world = &cast.world;
    let parent = world.run().await;
    let strange = NewRun {
        space_id: Some(cast.elsewhere.space_id),
        parent_run_id: Some(cast.elsewhere.run().await),
        ..NewRun::default()
    };
    let Refusal::Invalid(faults) = refused(world.store.open_run(world.harness.sender, strange).await) else {
        panic!("both are foreign")
    };
    let told: Vec<_> = faults.iter().map(|fault| (fault.pointer.as_str(), fault.code)).collect();
    assert_eq!(told, [("/space_id", FaultCode::UnknownSpace), ("/parent_run_id", FaultCode::UnknownRun)]);
    let theirs = NewRun { parent_run_id: Some(parent), ..NewRun::default() };
    assert!(matches!(refused(world.store.open_run(cast.second.sender, theirs).await), Refusal::Invalid(_)));

    // A draft that names another space than the run's, or none that exists, is as wrong.
    for (space, code) in
        [(world.space_id, FaultCode::Mismatch), (SpaceId::from_parts(9, unique()), FaultCode::UnknownSpace)]
    {
        let mut draft = world.ask(parent);
        draft.space_id = Some(space);
        let refusal = refused(world.submit(&draft).await);
        assert!(matches!(refusal, Refusal::Invalid(faults) if faults[0].code == code));
    }
}

pub async fn ending_a_run_withdraws_what_is_open(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let run = world.run().await;
    let other = world.asked(world.run().await).await;
    let answered = world.asked(run).await;
    world.append(&world.answer(run, answered, "a")).await;
    let open = [world.asked(run).await, world.asked(run).await];
    let waits: Vec<_> = open.iter().map(|ask| store.closing(world.workspace_id, *ask)).collect();
    let before = world.head();

    let ended = store.end_run(world.harness.sender, run).await.unwrap();
    assert_eq!(ended.state, RunState::Ended);
    for wait in waits {
        wait.await.unwrap();
    }
    assert_eq!(world.head(), before + 2);
    for ask in open {
        let shown = world.shown(ask).await;
        assert_eq!(shown.state, AskState::Withdrawn);
        assert_eq!(shown.answerer.unwrap().id, ParticipantId::Harness(world.harness_id()));
        let answer = shown.answer.unwrap();
        assert_eq!(answer.envelope.actor.id, ParticipantId::System);
        assert_eq!(
            (answer.as_answered().unwrap().answers.len(), answer.as_answered().unwrap().timed_out()),
            (0, false)
        );
    }
    assert_eq!(world.shown(answered).await.state, AskState::Answered);
    assert_eq!(world.shown(other).await.state, AskState::Open);
    assert_eq!(store.end_run(world.harness.sender, run).await.unwrap(), ended);
    assert_eq!(world.head(), before + 2);
}

pub async fn a_run_that_ended_takes_no_asks_but_replays(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let draft = world.ask(run);
    world.append(&draft).await;
    world.store.end_run(world.harness.sender, run).await.unwrap();
    assert_eq!(refused(world.submit(&world.ask(run)).await), Refusal::RunEnded);
    replayed(world.submit(&draft).await);
}

pub async fn only_the_harness_ends_its_run(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    assert!(matches!(refused(world.store.end_run(world.person.sender, run).await), Refusal::WrongSender(_)));
    let nowhere = RunId::from_parts(9, unique());
    for who in [&world.person, &world.harness] {
        assert!(matches!(refused(world.store.end_run(who.sender, nowhere).await), Refusal::NotFound(_)));
    }
}

pub async fn only_the_harness_acknowledges_and_the_first_time_stands(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let run = world.run().await;
    let ask = world.asked(run).await;
    let open = store.acknowledge(world.harness.sender, ask).await.unwrap();
    assert_eq!((open.state, open.acknowledged_at), (AskState::Open, None));
    world.append(&world.answer(run, ask, "a")).await;
    assert!(matches!(refused(store.acknowledge(world.person.sender, ask).await), Refusal::WrongSender(_)));
    let first = store.acknowledge(world.harness.sender, ask).await.unwrap();
    assert!(first.acknowledged_at.is_some());
    eventually("the clock ticks", async || (Some(store.clock().now()) > first.acknowledged_at).then_some(())).await;
    assert_eq!(store.acknowledge(world.harness.sender, ask).await.unwrap(), first);
    assert_eq!(world.shown(ask).await.acknowledged_at, first.acknowledged_at);
}

pub async fn what_went_out_is_marked_once(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let run = world.run().await;
    let (ask, open) = (world.asked(run).await, world.asked(run).await);
    world.append(&world.answer(run, ask, "a")).await;
    store.mark_delivered(world.workspace_id, ask);
    store.mark_delivered(world.workspace_id, open);
    let first = eventually("the mark is written", async || world.shown(ask).await.delivered_at).await;
    eventually("the clock ticks", async || (store.clock().now() > first).then_some(())).await;
    store.mark_delivered(world.workspace_id, ask);
    // Any write takes the notes that wait along.
    world.asked(run).await;
    assert_eq!(world.shown(ask).await.delivered_at, Some(first));
    assert_eq!(world.shown(open).await.delivered_at, None);
}
