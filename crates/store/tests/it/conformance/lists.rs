//! Reading: lists of asks, the log, and who the viewer is.

use std::collections::BTreeMap;

use chips_protocol::api::{AskState, NewRun, Tier};
use chips_protocol::{AskId, Draft, EventType, HarnessId, ParticipantId, RunId, SpaceId};
use chips_store::{AskFilter, AsksQuery, EventsQuery, Identity};

use super::Cast;
use crate::support::*;

/// Every ask of a list, read in pages of `limit`.
async fn pages(cast: &Cast, viewer: &Identity, mut query: AsksQuery, limit: usize) -> Vec<AskId> {
    query.limit = limit;
    let mut all = Vec::new();
    loop {
        let page = cast.world.store.asks(viewer, &query).await.unwrap();
        assert!(page.asks.len() <= limit);
        all.extend(page.asks.iter().map(|ask| ask.ask_id));
        match page.next {
            Some(next) => query.before = Some(next.parse().unwrap()),
            None => return all,
        }
    }
}

async fn list(cast: &Cast, query: AsksQuery) -> Vec<AskId> {
    pages(cast, &cast.world.person, query, 100).await
}

fn filter(filter: AskFilter) -> AsksQuery {
    AsksQuery { filter, ..AsksQuery::default() }
}

pub async fn what_is_urgent_comes_first_page_by_page(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let mut ids = Vec::new();
    for draft in [
        with_default(world.ask(run), 50),
        world.ask(run),
        with_timeout(world.ask(run), 900),
        with_default(world.ask(run), 40),
        with_timeout(world.ask(run), 300),
        world.ask(run),
    ] {
        world.append(&draft).await;
        ids.push(ask_id(&draft));
    }
    // Without a default first, by deadline, none last; then what has a default, by deadline.
    let urgent: Vec<_> = [4, 2, 1, 5, 3, 0].into_iter().map(|nth| ids[nth]).collect();
    for limit in [1, 2, 3, 6, 100] {
        assert_eq!(pages(cast, &world.person, filter(AskFilter::Open), limit).await, urgent, "{limit} a page");
        assert_eq!(pages(cast, &world.harness, filter(AskFilter::State(AskState::Open)), limit).await, urgent);
    }
    assert_eq!(world.shown(ids[0]).await.tier, Tier::Active);
    assert_eq!(world.shown(ids[1]).await.tier, Tier::TimeSensitive);

    // A page that was begun stays in order while what it showed is answered.
    let first = world.store.asks(&world.person, &AsksQuery { limit: 2, ..filter(AskFilter::Open) }).await.unwrap();
    world.append(&world.answer(run, ids[4], "a")).await;
    let rest = AsksQuery { before: Some(first.next.unwrap().parse().unwrap()), ..filter(AskFilter::Open) };
    assert_eq!(pages(cast, &world.person, rest, 100).await, urgent[2..]);
}

pub async fn closed_asks_come_newest_first_page_by_page(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let mut ids = Vec::new();
    for _ in 0..7 {
        ids.push(world.asked(run).await);
    }
    world.append(&world.answer(run, ids[5], "a")).await;
    world.append(&answer_by(&world.harness, run, ids[0], Vec::new())).await;
    world.append(&answer_by(&world.harness, run, ids[3], vec![chosen("q1", &["b"])])).await;
    let newest: Vec<_> = ids.iter().rev().copied().collect();
    for limit in [1, 2, 7, 100] {
        assert_eq!(pages(cast, &world.person, filter(AskFilter::All), limit).await, newest);
        assert_eq!(pages(cast, &world.harness, filter(AskFilter::All), limit).await, newest);
        assert_eq!(pages(cast, &world.person, filter(AskFilter::Closed), limit).await, [ids[5], ids[3], ids[0]]);
    }
    for (state, expected) in [
        (AskState::Answered, vec![ids[5]]),
        (AskState::Settled, vec![ids[3]]),
        (AskState::Withdrawn, vec![ids[0]]),
        (AskState::TimedOut, vec![]),
    ] {
        assert_eq!(list(cast, filter(AskFilter::State(state))).await, expected, "{state:?}");
    }
}

pub async fn filters_narrow_and_foreign_ones_find_nothing(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let labelled = NewRun {
        space_id: Some(world.space_id),
        labels: Some(BTreeMap::from([("a:b".into(), "c\"d".into()), ("team".into(), "blue".into())])),
        ..NewRun::default()
    };
    let in_space = store.open_run(world.harness.sender, labelled).await.unwrap().0.run_id;
    let plain = world.run().await;
    let theirs = store.open_run(cast.second.sender, NewRun::default()).await.unwrap().0.run_id;
    let (first, second) = (world.asked(in_space).await, world.asked(plain).await);
    let draft = ask_by(&cast.second, theirs);
    appended(store.submit(cast.second.sender, draft.clone()).await);
    let third = ask_id(&draft);

    let all = AsksQuery::default;
    let label = |key: &str, value: &str| AsksQuery { label: Some((key.into(), value.into())), ..all() };
    let cases = [
        (all(), vec![third, second, first]),
        (AsksQuery { space_id: Some(world.space_id), ..all() }, vec![first]),
        (AsksQuery { run_id: Some(plain), ..all() }, vec![second]),
        (AsksQuery { harness_id: Some(harness_id(&cast.second)), ..all() }, vec![third]),
        (AsksQuery { harness_id: Some(world.harness_id()), run_id: Some(theirs), ..all() }, vec![]),
        (label("a:b", "c\"d"), vec![first]),
        (label("team", "red"), vec![]),
        (AsksQuery { space_id: Some(cast.elsewhere.space_id), ..all() }, vec![]),
        (AsksQuery { space_id: Some(SpaceId::from_parts(9, unique())), ..all() }, vec![]),
        (AsksQuery { run_id: Some(RunId::from_parts(9, unique())), ..all() }, vec![]),
        (AsksQuery { harness_id: Some(HarnessId::from_parts(9, unique())), ..all() }, vec![]),
        (AsksQuery { harness_id: Some(harness_id(&cast.elsewhere.harness)), ..all() }, vec![]),
    ];
    for (query, expected) in cases {
        assert_eq!(list(cast, query.clone()).await, expected, "{query:?}");
        let open = AsksQuery { filter: AskFilter::Open, ..query };
        let (mut found, mut expected) = (list(cast, open).await, expected);
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
    // Another harness's run or harness is as foreign to a harness.
    let foreign = AsksQuery { harness_id: Some(harness_id(&cast.second)), ..all() };
    assert!(pages(cast, &world.harness, foreign, 100).await.is_empty());
    let foreign = AsksQuery { run_id: Some(theirs), ..all() };
    assert!(pages(cast, &world.harness, foreign, 100).await.is_empty());
    assert_eq!(pages(cast, &world.harness, all(), 100).await, [second, first]);
}

pub async fn text_is_found_whatever_its_case(cast: &Cast) {
    let world = &cast.world;
    let titled = NewRun { title: Some("Fähre nach HELGOLAND".into()), ..NewRun::default() };
    let sea = world.store.open_run(world.harness.sender, titled).await.unwrap().0.run_id;
    let land = world.run().await;
    let by_title = world.asked(sea).await;
    let mut draft = world.ask(land);
    asking(&mut draft).questions[0].prompt = "ÄRGER mit 100% der \"Züge\"?".into();
    asking(&mut draft).questions[0].allow_free_text = Some(true);
    world.append(&draft).await;
    let by_prompt = ask_id(&draft);
    let mut draft = world.ask(land);
    asking(&mut draft).questions[0].options[1].label = "Straße_2".into();
    world.append(&draft).await;
    let by_label = ask_id(&draft);
    let mut typed = chosen("q1", &[]);
    typed.free_text = Some("Nimm den Οδυσσεύς".into());
    world.append(&answer_by(&world.person, land, by_prompt, vec![typed])).await;

    for (text, expected) in [
        ("helgoland", vec![by_title]),
        ("FÄHRE", vec![by_title]),
        ("ärger", vec![by_prompt]),
        ("100%", vec![by_prompt]),
        ("\"züge\"", vec![by_prompt]),
        ("ΟΔΥ", vec![by_prompt]),
        ("straße_", vec![by_label]),
        ("e_", vec![by_label]),
        ("which", vec![by_label, by_title]),
        ("", vec![by_label, by_prompt, by_title]),
        ("nowhere", vec![]),
    ] {
        let query = AsksQuery { text: Some(text.into()), ..AsksQuery::default() };
        assert_eq!(list(cast, query).await, expected, "{text}");
    }
}

pub async fn a_log_is_read_the_same_in_one_go_and_in_steps(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    for nth in 0..20 {
        let ask = world.asked(run).await;
        if nth % 3 == 0 {
            world.append(&world.answer(run, ask, "a")).await;
        }
    }
    let whole = world.log(&world.person).await;
    let seqs: Vec<_> = whole.iter().map(|record| record.seq).collect();
    assert_eq!(seqs, (1..=27).collect::<Vec<_>>());
    for limit in [1, 2, 26, 27] {
        let query = EventsQuery { limit, ..EventsQuery::default() };
        assert_eq!(world.log_of(&world.person, query.clone()).await, whole);
        assert_eq!(world.log_of(&world.harness, query).await, whole);
    }
    let store = &world.store;
    for after in [26, 27] {
        let query = EventsQuery { after, limit: 100, ..EventsQuery::default() };
        let batch = store.events(&world.person, &query).await.unwrap();
        assert_eq!((batch.records.len() as u64, batch.through, batch.head), (27 - after, 27, 27));
    }
    let ahead = EventsQuery { after: 28, limit: 100, ..EventsQuery::default() };
    let batch = store.events(&world.person, &ahead).await.unwrap();
    assert_eq!((batch.records.len(), batch.head), (0, 27));
}

pub async fn events_are_filtered_by_type_run_and_ask(cast: &Cast) {
    let world = &cast.world;
    let (run, other) = (world.run().await, world.run().await);
    let (first, second) = (world.asked(run).await, world.asked(other).await);
    world.append(&world.answer(other, second, "a")).await;
    world.append(&world.answer(run, first, "a")).await;
    let all = || EventsQuery { limit: 10, ..EventsQuery::default() };
    let cases = [
        (EventsQuery { event_type: Some(EventType::QuestionAsk), ..all() }, vec![1, 2]),
        (EventsQuery { event_type: Some(EventType::QuestionAnswered), ..all() }, vec![3, 4]),
        (EventsQuery { run_id: Some(run), ..all() }, vec![1, 4]),
        (EventsQuery { ask_id: Some(second), ..all() }, vec![2, 3]),
        (EventsQuery { ask_id: Some(second), run_id: Some(run), ..all() }, vec![]),
        (EventsQuery { run_id: Some(other), event_type: Some(EventType::QuestionAnswered), ..all() }, vec![3]),
        (EventsQuery { run_id: Some(run), after: 1, ..all() }, vec![4]),
        (EventsQuery { run_id: Some(run), limit: 1, ..all() }, vec![1, 4]),
        (EventsQuery { run_id: Some(RunId::from_parts(9, unique())), ..all() }, vec![]),
        (EventsQuery { ask_id: Some(AskId::from_parts(9, unique())), ..all() }, vec![]),
    ];
    for (query, expected) in cases {
        for viewer in [&world.person, &world.harness] {
            let seqs: Vec<_> = world.log_of(viewer, query.clone()).await.iter().map(|record| record.seq).collect();
            assert_eq!(seqs, expected, "{query:?}");
        }
        assert!(world.log_of(&cast.second, query).await.is_empty());
    }
}

pub async fn a_harness_sees_its_own_and_a_person_all_of_their_spaces(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let mine = world.asked(world.run().await).await;
    let theirs = store.open_run(cast.second.sender, NewRun::default()).await.unwrap().0.run_id;
    let draft: Draft = ask_by(&cast.second, theirs);
    appended(store.submit(cast.second.sender, draft.clone()).await);
    let seen = async |viewer: &Identity| -> Vec<AskId> {
        world.log(viewer).await.iter().map(|record| record.event.content.ask_id()).collect()
    };
    assert_eq!(seen(&world.harness).await, [mine]);
    assert_eq!(seen(&cast.second).await, [ask_id(&draft)]);
    assert_eq!(seen(&world.person).await, [mine, ask_id(&draft)]);
    assert!(seen(&cast.elsewhere.person).await.is_empty());
}

pub async fn me_is_the_viewer_with_spaces_and_budget(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let ask = world.asked(run).await;
    world.asked(run).await;
    world.append(&world.answer(run, ask, "a")).await;
    let me = world.store.me(&world.harness).await.unwrap();
    assert_eq!(me.participant.id, ParticipantId::Harness(world.harness_id()));
    assert_eq!(me.spaces.iter().map(|space| space.id).collect::<Vec<_>>(), [world.space_id]);
    let budget = me.budget.unwrap();
    assert_eq!((budget.open, budget.open_limit, budget.hour, budget.hour_limit), (1, Some(100), 2, Some(600)));
    let me = world.store.me(&world.person).await.unwrap();
    assert_eq!((me.workspace_id, me.participant.id), (world.workspace_id, ParticipantId::Person(world.person_id())));
    assert_eq!((me.participant.name, me.budget), (world.person.name.clone(), None));
}
