//! Administration on a folder, with and without a server on it.

use chips_core::Refusal;
use chips_protocol::{AgentId, HarnessId, ParticipantId, PersonId, SpaceId, WorkspaceId};
use chips_store::admin::{Admin, AdminError, Ownerless};
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::secret::{sha256, token_kind};
use chips_store::{Options, Store, secret};
use futures::future::join_all;

use crate::support::*;

async fn speaks(store: &Store, token: &str) -> bool {
    store.authenticate(sha256(token)).await.unwrap().is_some()
}

#[tokio::test]
async fn a_token_speaks_for_whom_it_was_issued_and_no_other_does() {
    let dir = home();
    let made = chips_store::admin::init(dir.path()).unwrap();
    let store = open(dir.path());
    assert_eq!(token_kind(&made.harness.token), Some(secret::TokenKind::Harness));
    assert_eq!(token_kind(&made.person.token), Some(secret::TokenKind::Person));
    let world = World::enter(&store, &made).await;
    assert_eq!((world.harness_id(), world.person_id()), (made.harness.id, made.person.id));
    assert!(world.person.owner && !world.harness.owner);
    for wrong in ["", "chips_hk_", &secret::new_token(secret::TokenKind::Harness)] {
        assert!(!speaks(&store, wrong).await);
    }
}

async fn rotated(whose: impl Fn(&World) -> ParticipantId) {
    let time = ManualTime::at(TimeSource::System.wall());
    let (dir, world) = world_with(Options { time: TimeSource::Manual(time.clone()), ..Options::default() }).await;
    let store = &world.store;
    let mut admin = Admin::open(dir.path()).unwrap();
    let id = whose(&world);
    let (first, sign_in) = admin.rotate(id, None).unwrap();
    assert_eq!((first.id, sign_in.is_some()), (id, matches!(id, ParticipantId::Person(_))));
    let (second, _) = admin.rotate(id, Some(60_000)).unwrap();
    let (third, _) = admin.rotate(id, Some(3_600_000)).unwrap();
    assert!(speaks(store, &first.token).await && speaks(store, &second.token).await);
    time.pass_ms(120_000);
    assert!(!speaks(store, &first.token).await, "a longer overlap later does not lengthen an earlier one");
    assert!(speaks(store, &second.token).await && speaks(store, &third.token).await);
    let (fourth, _) = admin.rotate(id, None).unwrap();
    assert!(!speaks(store, &second.token).await && !speaks(store, &third.token).await);
    assert!(speaks(store, &fourth.token).await);
}

#[tokio::test]
async fn a_rotated_token_ends_at_once_or_after_the_overlap() {
    rotated(|world| ParticipantId::Harness(world.harness_id())).await;
    rotated(|world| ParticipantId::Person(world.person_id())).await;
}

#[test]
fn only_persons_and_harnesses_have_tokens_to_rotate() {
    let dir = home();
    chips_store::admin::init(dir.path()).unwrap();
    let mut admin = Admin::open(dir.path()).unwrap();
    for id in [ParticipantId::System, ParticipantId::Agent(AgentId::from_parts(1, 1))] {
        assert!(matches!(admin.rotate(id, None), Err(AdminError::NotFound(_))));
        assert!(matches!(admin.disable(id), Err(AdminError::NotFound(_))));
    }
}

#[tokio::test]
async fn who_is_disabled_may_do_nothing_for_good() {
    let (dir, world) = world().await;
    let store = &world.store;
    let mut admin = Admin::open(dir.path()).unwrap();
    let run = world.run().await;
    let ask = world.asked(run).await;
    let (harness, person) = (ParticipantId::Harness(world.harness_id()), ParticipantId::Person(world.person_id()));
    let tokens =
        [admin.rotate(harness, Some(9_999)).unwrap().0.token, admin.rotate(person, Some(9_999)).unwrap().0.token];
    assert_eq!(admin.owned_by_them_alone(world.person_id()).unwrap(), Some(world.workspace_id));
    assert_eq!(admin.ownerless().unwrap(), []);
    for id in [harness, person, harness] {
        admin.disable(id).unwrap();
    }
    assert_eq!(admin.owned_by_them_alone(world.person_id()).unwrap(), None);
    let ownerless = |people| vec![Ownerless { workspace_id: world.workspace_id, people }];
    assert_eq!(admin.ownerless().unwrap(), ownerless(0));
    for token in tokens {
        assert!(!speaks(store, &token).await);
    }
    for id in [harness, person] {
        assert!(matches!(admin.rotate(id, None), Err(AdminError::Refused(_))));
    }
    assert!(matches!(admin.link_person(world.person_id()), Err(AdminError::Refused(_))));
    assert!(admin.persons(None).unwrap()[0].disabled && admin.harnesses(None).unwrap()[0].disabled);
    // The ask of a harness that is gone is still there, and somebody else may answer it; only now nobody can.
    assert!(!world.shown(ask).await.reachable);
    let (other, _) = admin.add_person(world.workspace_id, "Other").unwrap();
    assert!(world.shown(ask).await.reachable);
    assert_eq!(admin.owned_by_them_alone(other.id).unwrap(), None, "they are no owner");
    assert_eq!(admin.ownerless().unwrap(), ownerless(1));
    let other = identity(store, &other.token).await;
    appended(store.submit(other.sender, answer_by(&other, run, ask, vec![chosen("q1", &["a"])])).await);
    // A write that was let in just before it was disabled goes through.
    appended(store.submit(world.harness.sender, world.ask(run)).await);
}

#[tokio::test]
async fn limits_are_felt_by_the_next_ask() {
    let (dir, world) = world().await;
    let mut admin = Admin::open(dir.path()).unwrap();
    let run = world.run().await;
    let harness = world.harness_id();
    admin.set_budget(harness, Some(Some(1)), None).unwrap();
    world.asked(run).await;
    assert!(matches!(refused(world.submit(&world.ask(run)).await), Refusal::OverBudget(over) if over.limit == 1));
    admin.set_budget(harness, Some(None), Some(Some(2))).unwrap();
    world.asked(run).await;
    assert!(matches!(refused(world.submit(&world.ask(run)).await), Refusal::OverBudget(over) if over.hourly));
    assert_eq!(admin.harnesses(None).unwrap()[0].note, "open none, hour 2");
    admin.set_budget(harness, None, Some(Some(0))).unwrap();
    let refusal = refused(world.submit(&world.ask(run)).await);
    assert!(refusal.retry_after_s() > Some(0));
    admin.set_budget(harness, None, Some(None)).unwrap();
    world.asked(run).await;
    assert!(matches!(admin.set_budget(HarnessId::from_parts(9, 9), None, None), Err(AdminError::NotFound(_))));
}

#[test]
fn names_and_members_are_checked_and_nothing_is_changed() {
    let dir = home();
    let made = chips_store::admin::init(dir.path()).unwrap();
    let mut admin = Admin::open(dir.path()).unwrap();
    let workspace = made.workspace_id;
    for bad in ["", " \t", "\u{200b}", &"ä".repeat(101)] {
        assert!(matches!(admin.add_workspace(bad), Err(AdminError::Refused(_))));
        assert!(matches!(admin.add_person(workspace, bad), Err(AdminError::Refused(_))));
        assert!(matches!(admin.add_harness(workspace, bad), Err(AdminError::Refused(_))));
        assert!(matches!(admin.add_space(workspace, bad, &[]), Err(AdminError::Refused(_))));
    }
    let unknown = PersonId::from_parts(9, 9);
    assert!(matches!(admin.add_space(workspace, "S", &[made.person.id, unknown]), Err(AdminError::NotFound(_))));
    assert_eq!(admin.spaces(None).unwrap().len(), 1);
    assert!(matches!(admin.add_person(WorkspaceId::from_parts(9, 9), "P"), Err(AdminError::NotFound(_))));
    assert!(matches!(admin.set_member(made.space_id, made.person.id, true), Err(AdminError::Refused(_))));
    assert!(matches!(admin.set_member(SpaceId::from_parts(9, 9), made.person.id, true), Err(AdminError::NotFound(_))));
    assert!(matches!(admin.link_person(unknown), Err(AdminError::NotFound(_))));
    let long = "ä".repeat(100);
    assert_eq!(admin.add_space(workspace, &long, &[]).and_then(|_| admin.spaces(None)).unwrap()[1].name, long);
}

#[test]
fn several_workspaces_must_be_told_apart() {
    let dir = home();
    let first = chips_store::admin::init(dir.path()).unwrap();
    let mut admin = Admin::open(dir.path()).unwrap();
    assert_eq!(admin.workspace(None).unwrap(), first.workspace_id);
    let second = admin.add_workspace("Second").unwrap();
    let told = admin.workspace(None).unwrap_err();
    assert!(matches!(&told, AdminError::WhichWorkspace(_)));
    assert!(told.to_string().contains(&second.workspace_id.to_string()), "{told}");
    assert_eq!(admin.workspace(Some(second.workspace_id)).unwrap(), second.workspace_id);
    assert!(matches!(admin.workspace(Some(WorkspaceId::from_parts(9, 9))), Err(AdminError::NotFound(_))));

    let foreign = admin.add_space(first.workspace_id, "Mixed", &[second.person.id]);
    assert!(matches!(foreign, Err(AdminError::Refused(_))));
    let closed = admin.add_space(second.workspace_id, "Closed", &[second.person.id, second.person.id]).unwrap();
    assert!(matches!(admin.set_member(closed, first.person.id, true), Err(AdminError::Refused(_))));
    let notes = |listed: Vec<chips_store::admin::Listed>| listed.into_iter().map(|one| one.note).collect::<Vec<_>>();
    assert_eq!(notes(admin.spaces(Some(second.workspace_id)).unwrap()), ["open", "closed, 1 member"]);
    admin.set_member(closed, second.person.id, false).unwrap();
    assert_eq!(notes(admin.spaces(Some(second.workspace_id)).unwrap()), ["open", "closed, 0 members"]);
    assert_eq!(notes(admin.persons(None).unwrap()), ["owner", "owner"]);
    assert_eq!(notes(admin.harnesses(Some(first.workspace_id)).unwrap()), ["open 100, hour 600"]);
    assert_eq!(notes(admin.workspaces().unwrap()), ["1 person, 1 harness", "1 person, 1 harness"]);
    assert_eq!(admin.persons(Some(second.workspace_id)).unwrap()[0].id, second.person.id.to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn administration_gets_its_turn_beside_a_busy_writer_and_ends_nothing() {
    let (dir, world) = world().await;
    let path = dir.path().to_owned();
    let (harness, workspace) = (world.harness_id(), world.workspace_id);
    Admin::open(&path).unwrap().set_budget(harness, Some(None), Some(None)).unwrap();
    let run = world.run().await;
    let done = std::sync::atomic::AtomicBool::new(false);
    let acts = async {
        let acted = tokio::task::spawn_blocking(move || {
            let mut admin = Admin::open(&path).unwrap();
            (0..20)
                .map(|nth| admin.add_person(workspace, &format!("Person {nth}")).unwrap().0.token)
                .collect::<Vec<_>>()
        });
        let tokens = acted.await.unwrap();
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        tokens
    };
    let writers = join_all((0..64).map(async |_| {
        let mut written = 0_u64;
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            world.asked(run).await;
            written += 1;
        }
        written
    }));
    let (tokens, written) = tokio::join!(acts, writers);
    assert_eq!(world.head(), written.iter().sum::<u64>());
    for token in tokens {
        assert!(speaks(&world.store, &token).await);
    }
}

#[tokio::test]
async fn a_workspace_that_is_added_while_the_store_runs_works_at_once() {
    let (dir, world) = world().await;
    let made = Admin::open(dir.path()).unwrap().add_workspace("New").unwrap();
    let mut head = world.store.head(made.workspace_id);
    let new = World::enter(&world.store, &made).await;
    let run = new.run().await;
    let ask = new.asked(run).await;
    assert_eq!(*head.wait_for(|seq| *seq > 0).await.unwrap(), 1);
    new.append(&new.answer(run, ask, "a")).await;
    assert_eq!(new.log(&new.person).await.len(), 2);
    assert_eq!(world.head(), 0);
}
