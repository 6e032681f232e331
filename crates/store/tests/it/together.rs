//! Several servers on one schema: here several stores in one process, each with connections of its own.

use std::collections::BTreeSet;

use chips_core::Refusal;
use chips_protocol::{AgentId, Draft, Participant};
use chips_store::admin::{self, Admin, Target};
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::{DropPlace, EventsQuery, OpenError, Options, Store, Submitted};

use crate::support::*;

/// Two servers, and the same people to act on either.
async fn two() -> (Home, World, World) {
    let (home, one) = world().await;
    let store = open(home.path());
    let other = World { store, ..one.clone() };
    (home, one, other)
}

#[tokio::test]
async fn what_one_server_appends_every_server_tells_in_the_same_order() {
    let (home, one, other) = two().await;
    Admin::open(home.path()).unwrap().set_budget(one.harness_id(), Some(None), Some(None)).unwrap();
    let run = one.run().await;
    let drafts: Vec<_> = (0..100).map(|_| one.ask(run)).collect();
    let writes = drafts.iter().enumerate().map(|(nth, draft)| {
        let world = if nth % 2 == 0 { &one } else { &other };
        async move { world.append(draft).await.seq }
    });
    let seqs: BTreeSet<u64> = futures::future::join_all(writes).await.into_iter().collect();
    assert_eq!(seqs, (1..=100).collect(), "no number is given twice, and none is left out");
    for world in [&one, &other] {
        let mut head = world.store.head(world.workspace_id);
        head.wait_for(|head| *head == 100).await.unwrap();
        let query = EventsQuery { limit: 1_000, ..EventsQuery::default() };
        let log = world.store.events(&world.person, &query).await.unwrap();
        assert_eq!(log.records.iter().map(|record| record.seq).collect::<Vec<_>>(), (1..=100).collect::<Vec<_>>());
        assert!(log.records.is_sorted_by_key(|record| record.event.envelope.ts));
    }
}

#[tokio::test]
async fn who_waits_at_one_server_hears_of_the_answer_at_another() {
    let (_home, one, other) = two().await;
    let run = one.run().await;
    let ask = one.asked(run).await;
    let closing = one.store.closing(one.workspace_id, ask);
    other.append(&other.answer(run, ask, "a")).await;
    tokio::time::timeout(std::time::Duration::from_secs(20), closing).await.unwrap().unwrap();
    assert!(one.shown(ask).await.answer.is_some());
}

#[tokio::test]
async fn of_answers_at_two_servers_one_wins_and_every_key_replays_at_either() {
    let (_home, one, other) = two().await;
    let run = one.run().await;
    for _ in 0..20 {
        let ask = one.asked(run).await;
        let (first, second) = (one.answer(run, ask, "a"), other.answer(run, ask, "b"));
        let (here, there) = tokio::join!(one.submit(&first), other.submit(&second));
        let (won, lost) = match (here, there) {
            (Ok(_), lost) => (&first, lost),
            (lost, Ok(_)) => (&second, lost),
            both => panic!("nobody won: {both:?}"),
        };
        assert!(matches!(refused(lost), Refusal::AlreadyClosed(_)));
        replayed(one.submit(won).await);
        replayed(other.submit(won).await);
    }
}

#[tokio::test]
async fn what_comes_at_once_is_judged_one_by_one() {
    let (home, world) = world().await;
    Admin::open(home.path()).unwrap().set_budget(world.harness_id(), Some(Some(5)), Some(None)).unwrap();
    let run = world.run().await;
    let agent = AgentId::from_parts(1, unique());
    let by_agent = || Draft { actor: Participant::Agent(agent, Some(world.harness_id())), ..world.ask(run) };
    let (first, second, third, fourth, fifth, sixth) =
        (by_agent(), by_agent(), world.ask(run), world.ask(run), world.ask(run), world.ask(run));
    let other = Draft { idempotency_key: first.idempotency_key.clone(), ..world.ask(run) };
    let again = Draft { idempotency_key: "another".to_owned(), ..second.clone() };
    let (answer, late) = (world.answer(run, ask_id(&third), "a"), world.answer(run, ask_id(&third), "b"));
    let all =
        [&first, &first, &other, &second, &again, &third, &answer, &late, &fourth, &fifth, &sixth, &world.ask(run)];
    let mut told = futures::future::join_all(all.map(|draft| world.submit(draft))).await.into_iter();
    let mut next = || told.next().unwrap();

    assert_eq!(appended(next()).seq, 1);
    let (record, differs) = replayed(next());
    assert_eq!((record.seq, differs), (1, false));
    let (record, differs) = replayed(next());
    assert_eq!((record.seq, differs), (1, true), "the key was given to another body");
    assert_eq!(appended(next()).seq, 2);
    assert!(!matches!(next(), Ok(Submitted::Appended(_))), "the same event under another key");
    assert_eq!(appended(next()).seq, 3);
    assert_eq!(appended(next()).seq, 4);
    assert!(matches!(refused(next()), Refusal::AlreadyClosed(winner) if winner.envelope.seq == Some(4)));
    assert_eq!([appended(next()).seq, appended(next()).seq, appended(next()).seq], [5, 6, 7]);
    assert!(matches!(refused(next()), Refusal::OverBudget(_)), "five are open");
    let log = world.log(&world.person).await;
    assert_eq!(log.iter().map(|record| record.seq).collect::<Vec<_>>(), (1..=7).collect::<Vec<_>>());
    assert_eq!(home.sql("SELECT count(*), count(DISTINCT pos) FROM keys"), "7|7");
    assert_eq!(home.sql("SELECT count(*) FROM agents"), "1");
}

#[tokio::test]
async fn what_is_erased_is_let_go_of_by_every_server_and_vacuumed() {
    let (home, one, other) = two().await;
    let run = one.run().await;
    let mut draft = one.ask(run);
    asking(&mut draft).questions[0].prompt = "What is the secret word?".to_owned();
    let ask = ask_id(&draft);
    one.append(&draft).await;
    one.append(&one.answer(run, ask, "a")).await;
    let said = async |world: &World| {
        let query = EventsQuery { limit: 10, ..EventsQuery::default() };
        let log = world.store.events(&world.person, &query).await.unwrap();
        log.records.iter().any(|record| String::from_utf8_lossy(&record.json).contains("the secret word"))
    };
    let mut head = other.store.head(other.workspace_id);
    head.wait_for(|head| *head == 2).await.unwrap();
    assert!(said(&one).await && said(&other).await, "both have it in memory");

    // A server that was killed says nothing any more, and one that is frozen says nothing for now: neither is waited for without end.
    home.sql("INSERT INTO nodes VALUES ('\\x00', (extract(epoch FROM now()) * 1000)::bigint - 21000, 0)");
    let mut admin = Admin::open(home.path()).unwrap();
    let erasing = admin.find_to_erase(Target::Ask(ask), None).unwrap();
    assert!(admin.erase(&erasing).unwrap().done);
    assert!(!said(&one).await && !said(&other).await, "neither tells it from its memory");
    assert!(!home.texts().iter().any(|text| text.contains("the secret word")));
    assert_eq!(home.sql("SELECT scrub FROM meta"), "0");
    eventually("each table that holds texts is vacuumed", async || {
        let left = home.sql(
            "SELECT string_agg(relname, ' ') FROM pg_stat_user_tables WHERE schemaname = current_schema() AND last_vacuum IS NULL
                 AND relname IN ('events', 'asks', 'runs', 'run_labels', 'persons', 'attempts', 'endpoints', 'sessions')",
        );
        left.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_one_server_drops_no_server_tells_any_more() {
    let time = ManualTime::at(TimeSource::System.wall());
    let options = Options { time: TimeSource::Manual(time.clone()), ..Options::default() };
    let (home, one) = world_with(options.clone()).await;
    let other = World { store: Store::open(home.path(), options).unwrap(), ..one.clone() };
    let run = one.run().await;
    let ask = one.asked(run).await;
    one.append(&one.answer(run, ask, "a")).await;
    let kept = other.asked(run).await;
    let before = one.store.clock().now();
    let mut place = Some(DropPlace::default());
    while let Some(at) = place {
        place = one.store.drop_older(before, at).await.unwrap().1;
    }
    eventually("the other server begins its log later as well", async || {
        (other.store.kept_from(other.workspace_id) == 3).then_some(())
    })
    .await;
    for world in [&one, &other] {
        let log =
            world.store.events(&world.person, &EventsQuery { limit: 10, ..EventsQuery::default() }).await.unwrap();
        assert_eq!(log.records.iter().map(|record| record.seq).collect::<Vec<_>>(), [3]);
        assert!(world.store.ask(&world.person, ask).await.unwrap().is_none());
        assert!(world.store.ask(&world.person, kept).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn each_deadline_closes_once_whichever_server_fires_it() {
    let (_home, one, other) = two().await;
    let run = one.run().await;
    let asks: Vec<_> = (0..20).map(|_| with_timeout(one.ask(run), 1)).collect();
    for ask in &asks {
        one.append(ask).await;
    }
    let due = one.store.clock().now().plus_ms(1_100);
    eventually("the deadlines have passed", async || (one.store.clock().now() > due).then_some(())).await;
    let mut closed = 0;
    for ask in &asks {
        let (here, there) = tokio::join!(
            one.store.expire(one.workspace_id, ask_id(ask)),
            other.store.expire(one.workspace_id, ask_id(ask))
        );
        closed += usize::from(here.unwrap()) + usize::from(there.unwrap());
    }
    assert_eq!((closed, one.head()), (20, 40));
}

#[tokio::test]
async fn a_workspace_is_made_once_where_several_make_it() {
    let home = home();
    let made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| admin::init(home.path()))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1, "{made:?}");
    assert!(made.iter().all(|made| matches!(made, Ok(_) | Err(OpenError::NotEmpty(_)))), "{made:?}");
    assert_eq!(Admin::open(home.path()).unwrap().workspaces().unwrap().len(), 1);
}

#[tokio::test]
async fn a_schema_of_a_newer_version_is_refused_in_one_line_unless_it_says_that_this_one_may_go_on() {
    let (home, world) = world().await;
    world.store.close().await;
    home.sql("UPDATE meta SET layout = layout + 1");
    open(home.path()).close().await;
    home.sql("UPDATE meta SET runs_from = layout");
    let told = Store::open(home.path(), Options::default()).err().unwrap().to_string();
    assert!(told.contains("a newer version of Chips works on this (layout ") && !told.contains('\n'), "{told}");
    assert!(Admin::open(home.path()).is_err());
}

#[tokio::test]
async fn the_clock_is_the_databases_and_never_ahead_of_it() {
    let (home, world) = world().await;
    for _ in 0..20 {
        let here = world.store.clock().now().ms();
        let there: i64 = home.sql("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)").parse().unwrap();
        assert!(here <= there, "{here} is ahead of {there}");
    }
    assert!(!world.store.clock().is_manual() && TimeSource::System.wall().ms() > 0);
}
