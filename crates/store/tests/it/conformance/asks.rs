//! Asking and answering.

use chips_core::Refusal;
use chips_protocol::api::{AskState, NewRun, RunState};
use chips_protocol::{
    AgentId, Content, Draft, DraftContent, EventId, FaultCode, Participant, ParticipantId, ParticipantKind,
};
use chips_store::{AskFilter, AsksQuery, EventsQuery, Identity, Submitted};
use futures::future::join_all;

use super::Cast;
use crate::support::*;

pub async fn a_question_is_asked_answered_and_acted_on(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let run = world.run().await;
    let mut head = store.head(world.workspace_id);
    let draft = world.ask(run);
    let id = ask_id(&draft);
    let closing = store.closing(world.workspace_id, id);

    let asked = world.append(&draft).await;
    assert_eq!(asked.seq, 1);
    assert_eq!(*head.wait_for(|seq| *seq == 1).await.unwrap(), 1);
    assert_eq!(asked.event.envelope.seq, Some(1));
    assert_eq!(asked.event.envelope.idempotency_key.as_ref(), Some(&draft.idempotency_key));
    let from_json: chips_protocol::Event = serde_json::from_slice(&asked.json).unwrap();
    assert_eq!(from_json, *asked.event);
    assert!(!asked.json.contains(&b'\n'));

    let shown = world.shown(id).await;
    assert_eq!((shown.state, shown.reachable, shown.asker_gone), (AskState::Open, true, false));
    assert_eq!(shown.asker.name, world.harness.name);
    assert_eq!(shown.option_labels["q1"]["b"], "Take b");
    let open = AsksQuery { filter: AskFilter::Open, limit: 10, ..AsksQuery::default() };
    let page = store.asks(&world.person, &open).await.unwrap();
    assert_eq!(page.asks, [shown]);
    assert_eq!((page.head, page.next), (1, None));

    let answered = world.append(&world.answer(run, id, "b")).await;
    assert_eq!(answered.seq, 2);
    closing.await.unwrap();
    let second = refused(world.submit(&world.answer(run, id, "a")).await);
    assert!(matches!(second, Refusal::AlreadyClosed(winner) if *winner == *answered.event));

    let batch = store.events(&world.harness, &EventsQuery { limit: 10, ..EventsQuery::default() }).await.unwrap();
    assert_eq!(batch.records, [asked, answered.clone()]);
    assert_eq!((batch.through, batch.head), (2, 2));

    let acted = store.acknowledge(world.harness.sender, id).await.unwrap();
    assert_eq!(acted.state, AskState::Answered);
    assert_eq!(acted.answerer.as_ref().unwrap().name, world.person.name);
    assert_eq!(acted.answer.as_ref(), Some(&*answered.event));
    assert!(acted.acknowledged_at.is_some());

    let ended = store.end_run(world.harness.sender, run).await.unwrap();
    assert_eq!(ended.state, RunState::Ended);
    assert_eq!(world.head(), 2);
}

pub async fn the_same_ask_twice_is_one_event(cast: &Cast) {
    let world = &cast.world;
    let draft = world.ask(world.run().await);
    let first = world.append(&draft).await;
    let (again, differs) = replayed(world.submit(&draft).await);
    assert_eq!((&*again, differs), (&*first, false));

    // By its content alone: a new key and a new event id, `false` said where it was left out.
    let mut other = Draft { id: EventId::from_parts(2, unique()), idempotency_key: "other".into(), ..draft };
    asking(&mut other).questions[0].multi_select = Some(false);
    let (again, differs) = replayed(world.submit(&other).await);
    assert_eq!((&*again, differs), (&*first, false));
    assert_eq!(world.head(), 1);
}

pub async fn fifty_copies_at_once_are_one_event(cast: &Cast) {
    let world = &cast.world;
    let draft = world.ask(world.run().await);
    let results = join_all((0..50).map(|_| world.submit(&draft))).await;
    let mut records = Vec::new();
    let mut appends = 0;
    for result in results {
        match result.unwrap() {
            Submitted::Appended(record) => {
                appends += 1;
                records.push(record);
            }
            Submitted::Replayed { record, differs } => {
                assert!(!differs);
                records.push(record);
            }
        }
    }
    assert_eq!(appends, 1);
    assert!(records.iter().all(|record| *record == records[0]));
    assert_eq!(world.head(), 1);
}

pub async fn another_question_under_a_known_ask_id_is_refused(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let draft = world.ask(run);
    world.append(&draft).await;
    let mut swapped = Draft { id: EventId::from_parts(2, unique()), idempotency_key: "other".into(), ..draft.clone() };
    asking(&mut swapped).questions[0].options.reverse();
    assert_eq!(refused(world.submit(&swapped).await), Refusal::AskIdConflict);

    // Another harness's ask id is as taken, and nothing of it is shown.
    let store = &world.store;
    let foreign_run = store.open_run(cast.second.sender, NewRun::default()).await.unwrap().0.run_id;
    let mut theirs = ask_by(&cast.second, foreign_run);
    asking(&mut theirs).ask_id = ask_id(&draft);
    assert_eq!(refused(store.submit(cast.second.sender, theirs).await), Refusal::AskIdConflict);
    let mut theirs = ask_by(&cast.second, run);
    theirs.run_id = run;
    let refusal = refused(store.submit(cast.second.sender, theirs).await);
    assert!(matches!(refusal, Refusal::Invalid(faults) if faults[0].code == FaultCode::UnknownRun));
    assert_eq!(world.head(), 1);
}

pub async fn a_known_event_id_for_something_else_is_refused(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let draft = world.ask(run);
    world.append(&draft).await;
    let other = Draft { id: draft.id, ..world.ask(run) };
    assert_eq!(refused(world.submit(&other).await), Refusal::EventIdConflict);
    let answer = Draft { id: draft.id, ..world.answer(run, ask_id(&draft), "a") };
    assert_eq!(refused(world.submit(&answer).await), Refusal::EventIdConflict);
}

pub async fn a_key_replays_whatever_the_body_says(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let draft = world.ask(run);
    let first = world.append(&draft).await;
    let other = Draft { idempotency_key: draft.idempotency_key.clone(), ..world.ask(run) };
    let (record, differs) = replayed(world.submit(&other).await);
    assert_eq!((&*record, differs), (&*first, true));
    let store = &world.store;
    let sender = world.harness.sender;
    let found = store.replay_by_key(sender, &draft.idempotency_key).await.unwrap();
    assert_eq!(found.as_deref(), Some(&*first));
    assert_eq!(store.replay_by_key(sender, &draft.idempotency_key.to_uppercase()).await.unwrap(), None);
    assert_eq!(store.replay_by_key(world.person.sender, &draft.idempotency_key).await.unwrap(), None);
    assert_eq!(store.replay_by_key(cast.second.sender, &draft.idempotency_key).await.unwrap(), None);
}

pub async fn a_key_is_its_senders_own(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let keyed = |draft: Draft| Draft { idempotency_key: "the key".into(), ..draft };
    let run = world.run().await;
    let draft = keyed(world.ask(run));
    world.append(&draft).await;

    // A person, another harness and another workspace have the same key for themselves; an agent shares its harness's.
    world.append(&keyed(world.answer(run, ask_id(&draft), "a"))).await;
    let run_2 = store.open_run(cast.second.sender, NewRun::default()).await.unwrap().0.run_id;
    appended(store.submit(cast.second.sender, keyed(ask_by(&cast.second, run_2))).await);
    let there = &cast.elsewhere;
    there.append(&keyed(there.ask(there.run().await))).await;
    let agent = Participant::Agent(AgentId::from_parts(1, unique()), None);
    let (record, _) = replayed(world.submit(&Draft { actor: agent, ..draft.clone() }).await);
    assert_eq!(record.event.content.ask_id(), ask_id(&draft));
}

pub async fn a_refusal_uses_no_key_up(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let good = world.ask(run);
    let bad = Draft { run_id: chips_protocol::RunId::from_parts(9, unique()), ..good.clone() };
    assert!(matches!(refused(world.submit(&bad).await), Refusal::Invalid(_)));
    assert_eq!(world.head(), 0);
    world.append(&good).await;
}

pub async fn an_answer_that_won_is_replayed(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let ask = world.asked(run).await;
    let answer = world.answer(run, ask, "a");
    let first = world.append(&answer).await;
    let (again, differs) = replayed(world.submit(&answer).await);
    assert_eq!((&*again, differs), (&*first, false));
    let keyless = Draft { idempotency_key: "another".into(), ..answer };
    assert_eq!(&*replayed(world.submit(&keyless).await).0, &*first);
}

pub async fn an_answer_before_its_ask_counts_once_the_ask_is_there(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let draft = world.ask(run);
    let answer = world.answer(run, ask_id(&draft), "a");
    assert!(matches!(refused(world.submit(&answer).await), Refusal::NotFound(_)));
    world.append(&draft).await;
    world.append(&answer).await;
}

pub async fn of_many_answers_at_once_one_wins(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let ask = world.asked(run).await;
    let mut drafts: Vec<Draft> =
        (0..20).map(|nth| world.answer(run, ask, if nth % 2 == 0 { "a" } else { "b" })).collect();
    drafts.push(answer_by(&world.harness, run, ask, Vec::new()));
    let results = join_all(drafts.iter().map(|draft| world.submit(draft))).await;
    let winner = world.shown(ask).await.answer.unwrap();
    let mut won = 0;
    for result in results {
        match result {
            Ok(Submitted::Appended(record)) => {
                won += 1;
                assert_eq!(*record.event, winner);
            }
            other => assert!(matches!(refused(other), Refusal::AlreadyClosed(event) if *event == winner)),
        }
    }
    assert_eq!((won, world.head()), (1, 2));
}

pub async fn one_answer_of_three_closes_the_ask(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let mut draft = world.ask(run);
    asking(&mut draft).questions = vec![question("q1"), question("q2"), question("q3")];
    world.append(&draft).await;
    let answer = answer_by(&world.person, run, ask_id(&draft), vec![chosen("q2", &["b"])]);
    let record = world.append(&answer).await;
    assert_eq!(record.event.as_answered().unwrap().answers, [chosen("q2", &["b"])]);
    assert_eq!(world.shown(ask_id(&draft)).await.state, AskState::Answered);
}

pub async fn several_choices_and_text_are_kept(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let mut draft = world.ask(run);
    asking(&mut draft).questions[0].multi_select = Some(true);
    asking(&mut draft).questions[0].allow_free_text = Some(true);
    world.append(&draft).await;
    let mut both = chosen("q1", &["a", "b"]);
    both.free_text = Some("  and \u{202e}mine\u{2028} too ".into());
    let answer = answer_by(&world.person, run, ask_id(&draft), vec![both.clone()]);
    world.append(&answer).await;
    let kept = world.shown(ask_id(&draft)).await.answer.unwrap();
    assert_eq!(kept.as_answered().unwrap().answers, [both]);
}

pub async fn an_answer_that_does_not_fit_leaves_the_ask_open(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let ask = world.asked(run).await;
    let mut text = chosen("q1", &[]);
    text.free_text = Some("typed".into());
    for answers in
        [Vec::new(), vec![chosen("q1", &[])], vec![text], vec![chosen("q1", &["c"])], vec![chosen("q9", &["a"])]]
    {
        let refusal = refused(world.submit(&answer_by(&world.person, run, ask, answers)).await);
        assert!(matches!(refusal, Refusal::Invalid(_)));
    }
    assert_eq!((world.shown(ask).await.state, world.head()), (AskState::Open, 1));
}

pub async fn another_harness_finds_no_ask(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let run = world.run().await;
    let ask = world.asked(run).await;
    for stranger in [&cast.second, &cast.elsewhere.harness, &cast.elsewhere.person] {
        let known =
            refused(store.submit(stranger.sender, answer_by(stranger, run, ask, vec![chosen("q1", &["a"])])).await);
        let nowhere = chips_protocol::AskId::from_parts(9, unique());
        let unknown = answer_by(stranger, run, nowhere, vec![chosen("q1", &["a"])]);
        assert_eq!(known, refused(store.submit(stranger.sender, unknown).await));
        assert!(matches!(known, Refusal::NotFound(_)));
        assert_eq!(store.ask(stranger, ask).await.unwrap(), None);
        assert_eq!(store.run(stranger, run).await.unwrap(), None);
        assert!(matches!(refused(store.acknowledge(stranger.sender, ask).await), Refusal::NotFound(_)));
        assert!(matches!(refused(store.end_run(stranger.sender, run).await), Refusal::NotFound(_)));
        assert!(world.log(stranger).await.is_empty());
    }
}

fn by_agent(agent: AgentId, identity: &Identity, run: chips_protocol::RunId) -> Draft {
    Draft { actor: Participant::Agent(agent, None), ..ask_by(identity, run) }
}

pub async fn an_agent_belongs_to_the_first_harness_that_names_it(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let run = world.run().await;
    let agent = AgentId::from_parts(1, unique());

    // A write that is refused registers nobody.
    let nowhere = by_agent(agent, &cast.second, run);
    assert!(matches!(refused(store.submit(cast.second.sender, nowhere).await), Refusal::Invalid(_)));

    let asked = world.append(&by_agent(agent, &world.harness, run)).await;
    assert_eq!(asked.event.envelope.actor.harness_id, Some(world.harness_id()));
    let shown = world.shown(asked.event.content.ask_id()).await;
    assert_eq!((shown.asker.kind, shown.asker.name), (ParticipantKind::Agent, world.harness.name.clone()));

    let run_2 = store.open_run(cast.second.sender, NewRun::default()).await.unwrap().0.run_id;
    let stolen = by_agent(agent, &cast.second, run_2);
    assert_eq!(refused(store.submit(cast.second.sender, stolen).await), Refusal::ActorMismatch);
    let there = &cast.elsewhere;
    there.append(&by_agent(agent, &there.harness, there.run().await)).await;
}

pub async fn agents_spend_their_harnesss_budget(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    for _ in 0..100 {
        world.append(&by_agent(AgentId::from_parts(1, unique()), &world.harness, run)).await;
    }
    let one_more = by_agent(AgentId::from_parts(1, unique()), &world.harness, run);
    let refusal = refused(world.submit(&one_more).await);
    assert!(matches!(&refusal, Refusal::OverBudget(over) if over.limit == 100 && !over.hourly));
    assert_eq!(refusal.retry_after_s(), Some(5));

    // What frees a place: a close, by whomever.
    let open = world.log(&world.harness).await[0].event.content.ask_id();
    world.append(&answer_by(&world.harness, run, open, Vec::new())).await;
    world.append(&one_more).await;
    assert!(matches!(refused(world.submit(&world.ask(run)).await), Refusal::OverBudget(_)));
}

/// Waits until the deadline of an ask has passed by the store's clock.
async fn overdue(cast: &Cast, ask: chips_protocol::AskId) {
    let deadline = cast.world.shown(ask).await.deadline.unwrap();
    eventually("the deadline passes", async || (cast.world.store.clock().now() >= deadline).then_some(())).await;
}

/// A question with the default `a` whose deadline is almost now.
fn short(cast: &Cast, run: chips_protocol::RunId) -> Draft {
    let mut draft = with_default(cast.world.ask(run), 1);
    asking(&mut draft).timeout_seconds = serde_json::Number::from_f64(0.002);
    draft
}

pub async fn after_the_deadline_the_default_stands_and_the_answer_is_kept_beside(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let draft = short(cast, run);
    let asked = world.append(&draft).await;
    let ask = ask_id(&draft);
    overdue(cast, ask).await;
    // Reading closes nothing.
    assert_eq!((world.shown(ask).await.state, world.head()), (AskState::Open, 1));

    let late = world.answer(run, ask, "b");
    let Refusal::AlreadyClosed(winner) = refused(world.submit(&late).await) else { panic!("the deadline decides") };
    assert_eq!(winner.envelope.seq, Some(2));
    assert_eq!(winner.envelope.actor.id, ParticipantId::System);
    let Content::QuestionAnswered(taken) = &winner.content else { panic!("an answer closes") };
    assert_eq!((taken.answered_by, taken.timed_out()), (ParticipantId::System, true));
    assert_eq!(taken.answers, [chosen("q1", &["a"])]);
    assert!(taken.answered_at >= asked.event.envelope.ts.plus_ms(2));

    let shown = world.shown(ask).await;
    assert_eq!((shown.state, shown.answerer.unwrap().name.as_str()), (AskState::TimedOut, "Chips"));
    assert_eq!(shown.answer.as_ref(), Some(&*winner));
    let kept = &shown.late_answers[0];
    assert_eq!((kept.by, &kept.answers[..]), (ParticipantId::Person(world.person_id()), &[chosen("q1", &["b"])][..]));
    assert_eq!(world.head(), 2);
    // The key of the late answer is not used up, and neither is it a replay.
    assert!(matches!(refused(world.submit(&late).await), Refusal::AlreadyClosed(_)));
    assert_eq!(world.shown(ask).await.late_answers.len(), 1);
}

pub async fn late_answers_are_kept_once_and_ten_at_most(cast: &Cast) {
    let world = &cast.world;
    let run = world.run().await;
    let mut draft = world.ask(run);
    asking(&mut draft).questions[0].allow_free_text = Some(true);
    world.append(&draft).await;
    let ask = ask_id(&draft);
    world.append(&answer_by(&world.harness, run, ask, Vec::new())).await;
    let typed = |text: String| {
        let mut answer = chosen("q1", &[]);
        answer.free_text = Some(text);
        answer_by(&world.person, run, ask, vec![answer])
    };
    for nth in 0..12 {
        for _ in 0..2 {
            assert!(matches!(refused(world.submit(&typed(format!("text {nth}"))).await), Refusal::AlreadyClosed(_)));
        }
    }
    // One that would not fit is told so by the same refusal, and is not kept.
    let odd = answer_by(&world.person, run, ask, vec![chosen("q1", &["nothing"])]);
    assert!(matches!(refused(world.submit(&odd).await), Refusal::AlreadyClosed(_)));
    let kept: Vec<_> =
        world.shown(ask).await.late_answers.into_iter().filter_map(|late| late.answers[0].free_text.clone()).collect();
    assert_eq!(kept, (2..12).map(|nth| format!("text {nth}")).collect::<Vec<_>>());
    assert_eq!(world.head(), 2);
}

pub async fn the_deadline_closes_once(cast: &Cast) {
    let world = &cast.world;
    let store = &world.store;
    let run = world.run().await;
    let open = world.asked(run).await;
    assert!(!store.expire(world.workspace_id, open).await.unwrap());
    let draft = short(cast, run);
    world.append(&draft).await;
    let ask = ask_id(&draft);
    overdue(cast, ask).await;
    let closed = join_all((0..8).map(|_| store.expire(world.workspace_id, ask))).await;
    assert_eq!(closed.into_iter().filter(|closed| *closed.as_ref().unwrap()).count(), 1);
    assert!(!store.expire(cast.elsewhere.workspace_id, ask).await.unwrap());
    assert_eq!(world.head(), 3);
}

pub async fn identifiers_are_unique_within_a_workspace_only(cast: &Cast) {
    let (here, there) = (&cast.world, &cast.elsewhere);
    let draft = here.ask(here.run().await);
    here.append(&draft).await;
    let run = there.run().await;
    let DraftContent::QuestionAsk(content) = draft.content.clone() else { panic!("an ask") };
    let mut theirs = there.ask(run);
    theirs.id = draft.id;
    *asking(&mut theirs) = content;
    let record = there.append(&theirs).await;
    assert_eq!(record.seq, 1);
    assert_eq!(there.shown(ask_id(&draft)).await.ask.envelope.workspace_id, there.workspace_id);
    assert_eq!(here.shown(ask_id(&draft)).await.ask.envelope.workspace_id, here.workspace_id);
}
