//! Who sees what, how fast a change is felt, and how a person signs in.

use std::time::Duration;

use chips_core::{Access, Refusal};
use chips_protocol::api::NewRun;
use chips_protocol::{ParticipantId, PersonId, RunId, SpaceId};
use chips_store::admin::{Admin, SignIn};
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::session::{IDLE_MS, LONGEST_MS, SIGN_IN_MS};
use chips_store::{AsksQuery, Device, Identity, Options, Proof, Session, SignInState, SignedIn, Store, secret};
use tokio::sync::watch;

use crate::support::*;

/// A run in a closed space whose only member is the world's person, and a person who is not in it.
async fn closed_space(dir: &Home, world: &World) -> (SpaceId, RunId, PersonId, Identity) {
    let mut admin = Admin::open(dir.path()).unwrap();
    let space = admin.add_space(world.workspace_id, "Closed", &[world.person_id()]).unwrap();
    let (outsider, _) = admin.add_person(world.workspace_id, "Outsider").unwrap();
    let new = NewRun { space_id: Some(space), ..NewRun::default() };
    let run = world.store.open_run(world.harness.sender, new).await.unwrap().0.run_id;
    (space, run, outsider.id, identity(&world.store, &outsider.token).await)
}

fn sees(identity: &Identity, space: SpaceId) -> bool {
    matches!(&identity.access, Access::Person(_, spaces) if spaces.contains(&space))
}

#[tokio::test]
async fn a_closed_space_is_for_its_members_alone() {
    let (dir, world) = world().await;
    let store = &world.store;
    let (space, run, _, outsider) = closed_space(&dir, &world).await;
    let member = Admin::open(dir.path()).unwrap().rotate(ParticipantId::Person(world.person_id()), None).unwrap();
    let member = identity(store, &member.0.token).await;
    assert!(sees(&member, space) && !sees(&outsider, space));
    assert!(sees(&member, world.space_id) && sees(&outsider, world.space_id));
    let draft = world.ask(run);
    let asked = world.append(&draft).await;
    assert_eq!(asked.event.envelope.space_id, Some(space), "Chips fills in the run's space");
    let ask = ask_id(&draft);

    assert_eq!(store.ask(&outsider, ask).await.unwrap(), None);
    assert_eq!(store.run(&outsider, run).await.unwrap(), None);
    assert!(store.asks(&outsider, &AsksQuery { limit: 9, ..AsksQuery::default() }).await.unwrap().asks.is_empty());
    assert!(world.log(&outsider).await.is_empty());
    assert!(store.askers(&outsider).await.unwrap().is_empty(), "who asks there is their members' business");
    assert_eq!(store.askers(&member).await.unwrap(), [(world.harness_id(), world.harness.name.clone())]);
    let answer = answer_by(&outsider, run, ask, vec![chosen("q1", &["a"])]);
    assert!(matches!(refused(store.submit(outsider.sender, answer).await), Refusal::NotFound(_)));
    assert_eq!(store.me(&outsider).await.unwrap().spaces.len(), 1);
    assert_eq!(store.me(&world.harness).await.unwrap().spaces.len(), 2);

    assert!(store.ask(&member, ask).await.unwrap().unwrap().reachable);
    assert_eq!(world.log(&member).await.len(), 1);
    appended(store.submit(member.sender, answer_by(&member, run, ask, vec![chosen("q1", &["a"])])).await);
}

#[tokio::test]
async fn who_is_taken_out_of_a_space_can_answer_there_no_more() {
    let (dir, world) = world().await;
    let store = &world.store;
    let (space, run, outsider_id, outsider) = closed_space(&dir, &world).await;
    let ask = world.asked(run).await;
    let mut admin = Admin::open(dir.path()).unwrap();
    admin.set_member(space, outsider_id, true).unwrap();
    // What a page showed a moment ago does not count: the write is judged by who is in the space now.
    let answer = answer_by(&outsider, run, ask, vec![chosen("q1", &["a"])]);
    admin.set_member(space, outsider_id, false).unwrap();
    assert!(matches!(refused(store.submit(outsider.sender, answer.clone()).await), Refusal::NotFound(_)));
    admin.set_member(space, world.person_id(), false).unwrap();
    assert!(!store.ask(&world.harness, ask).await.unwrap().unwrap().reachable);
    admin.set_member(space, outsider_id, true).unwrap();
    assert!(store.ask(&world.harness, ask).await.unwrap().unwrap().reachable);
    appended(store.submit(outsider.sender, answer).await);
}

async fn changed(access: &mut watch::Receiver<u64>) {
    tokio::time::timeout(Duration::from_secs(20), access.changed()).await.unwrap().unwrap();
}

#[tokio::test]
async fn whoever_holds_a_stream_open_is_told_of_every_change() {
    let (dir, world) = world().await;
    let mut access = world.store.access_changes();
    access.mark_unchanged();
    let mut admin = Admin::open(dir.path()).unwrap();
    let (person, sign_in) = admin.add_person(world.workspace_id, "New").unwrap();
    changed(&mut access).await;
    admin.rotate(ParticipantId::Harness(world.harness_id()), None).unwrap();
    changed(&mut access).await;
    admin.disable(ParticipantId::Person(world.person_id())).unwrap();
    changed(&mut access).await;

    // The end of a session is told at once, to the same receivers.
    let person = identity(&world.store, &person.token).await;
    let (_, session) = signed_in(&world.store, &sign_in).await;
    let before = *access.borrow_and_update();
    world.store.end_session(&person, session.session_id).await.unwrap();
    assert!(*access.borrow_and_update() > before);
    world.store.end_session(&person, session.session_id).await.unwrap();
    assert!(!access.has_changed().unwrap());
}

fn link(sign_in: &SignIn) -> Proof {
    Proof::Link(secret::sha256(&sign_in.secret))
}

fn code(sign_in: &SignIn) -> Proof {
    Proof::Code(secret::sha256(&secret::canonical_code(&sign_in.code.to_lowercase())))
}

pub async fn signed_in(store: &Store, sign_in: &SignIn) -> (String, Session) {
    match store.sign_in(link(sign_in), Device { name: "Firefox on Linux".into() }).await.unwrap() {
        SignedIn::Yes(secret, session) => (secret, *session),
        SignedIn::No(state) => panic!("{state:?}"),
    }
}

#[tokio::test]
async fn a_link_or_its_code_signs_in_once() {
    let (dir, world) = world().await;
    let store = &world.store;
    let mut admin = Admin::open(dir.path()).unwrap();
    for by_code in [false, true] {
        let sign_in = admin.link_person(world.person_id()).unwrap();
        let state = async || store.sign_in_state(secret::sha256(&sign_in.secret)).await.unwrap();
        // Looking uses nothing up.
        for _ in 0..3 {
            assert_eq!(state().await, SignInState::Good { name: world.person.name.clone() });
        }
        let proof = if by_code { code(&sign_in) } else { link(&sign_in) };
        let SignedIn::Yes(secret, session) = store.sign_in(proof, Device::default()).await.unwrap() else {
            panic!("it is good")
        };
        assert_eq!(session.identity, world.person);
        assert_eq!(store.session(secret::sha256(&secret)).await.unwrap(), Some(*session));
        for proof in [link(&sign_in), code(&sign_in)] {
            assert_eq!(store.sign_in(proof, Device::default()).await.unwrap(), SignedIn::No(SignInState::Used));
        }
        assert_eq!(state().await, SignInState::Used);
    }
    let nobodys = secret::sha256(&secret::new_secret());
    assert_eq!(store.sign_in_state(nobodys).await.unwrap(), SignInState::Unknown);
    let unknown = store.sign_in(Proof::Code(nobodys), Device::default()).await.unwrap();
    assert_eq!(unknown, SignedIn::No(SignInState::Unknown));
    assert_eq!(store.session(nobodys).await.unwrap(), None);
}

#[tokio::test]
async fn of_two_who_use_a_link_at_the_same_time_one_signs_in() {
    let (dir, world) = world().await;
    let sign_in = Admin::open(dir.path()).unwrap().link_person(world.person_id()).unwrap();
    let attempts = [link(&sign_in), code(&sign_in), link(&sign_in), code(&sign_in)];
    let results = futures::future::join_all(attempts.map(|proof| world.store.sign_in(proof, Device::default()))).await;
    let won = results.iter().filter(|result| matches!(result, Ok(SignedIn::Yes(..)))).count();
    let late = results.iter().filter(|result| matches!(result, Ok(SignedIn::No(SignInState::Used)))).count();
    assert_eq!((won, late), (1, 3));
    assert_eq!(world.store.sessions(&world.person).await.unwrap().len(), 1);
}

#[tokio::test]
async fn links_and_sessions_end_by_time() {
    let time = ManualTime::at(TimeSource::System.wall());
    let (dir, world) = world_with(Options { time: TimeSource::Manual(time.clone()), ..Options::default() }).await;
    let store = &world.store;
    let mut admin = Admin::open(dir.path()).unwrap();
    let (old, good) = (admin.link_person(world.person_id()).unwrap(), admin.link_person(world.person_id()).unwrap());
    let (first, session) = signed_in(store, &good).await;
    let first = secret::sha256(&first);
    time.pass_ms(SIGN_IN_MS + 60_000);
    assert_eq!(store.sign_in_state(secret::sha256(&old.secret)).await.unwrap(), SignInState::Expired);
    let expired = store.sign_in(code(&old), Device::default()).await.unwrap();
    assert_eq!(expired, SignedIn::No(SignInState::Expired));

    // Used every ten days it lasts, but thirty days at most; that it was used is noted by and by.
    for _ in 0..2 {
        time.pass_ms(10 * 24 * 3_600_000);
        assert!(store.session(first).await.unwrap().is_some());
        let now = store.clock().now();
        eventually("the use is noted", async || {
            (store.session(first).await.unwrap().unwrap().last_used == now).then_some(())
        })
        .await;
    }
    assert_eq!(store.session(first).await.unwrap().unwrap().began, session.began);
    time.pass_ms(LONGEST_MS - 20 * 24 * 3_600_000);
    assert_eq!(store.session(first).await.unwrap(), None);
    assert!(store.sessions(&world.person).await.unwrap().is_empty());

    let time = ManualTime::at(TimeSource::System.wall());
    let (dir, world) = world_with(Options { time: TimeSource::Manual(time.clone()), ..Options::default() }).await;
    let sign_in = Admin::open(dir.path()).unwrap().link_person(world.person_id()).unwrap();
    let (idle, _) = signed_in(&world.store, &sign_in).await;
    let idle = secret::sha256(&idle);
    time.pass_ms(IDLE_MS - 1);
    assert_eq!(world.store.sessions(&world.person).await.unwrap().len(), 1);
    time.pass_ms(1);
    assert_eq!(world.store.session(idle).await.unwrap(), None);
}

#[tokio::test]
async fn sessions_are_listed_and_ended_by_their_person_alone() {
    let (dir, world) = world().await;
    let store = &world.store;
    let mut admin = Admin::open(dir.path()).unwrap();
    let (other, other_link) = admin.add_person(world.workspace_id, "Other").unwrap();
    let other = identity(store, &other.token).await;
    let (mine, session) = signed_in(store, &admin.link_person(world.person_id()).unwrap()).await;
    let (theirs, foreign) = signed_in(store, &other_link).await;
    assert_eq!(session.device.name, "Firefox on Linux");
    let listed = store.sessions(&world.person).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&session));
    assert!(store.sessions(&world.harness).await.unwrap().is_empty());

    // Somebody else's stays; rotating the token leaves sessions alone.
    store.end_session(&world.person, foreign.session_id).await.unwrap();
    admin.rotate(ParticipantId::Person(world.person_id()), None).unwrap();
    assert!(store.session(secret::sha256(&theirs)).await.unwrap().is_some());
    assert!(store.session(secret::sha256(&mine)).await.unwrap().is_some());
    store.end_session(&world.person, session.session_id).await.unwrap();
    assert_eq!(store.session(secret::sha256(&mine)).await.unwrap(), None);

    // Disabling ends sessions and links.
    let Identity { sender, .. } = other;
    let chips_core::Who::Person(other_id) = sender.who else { panic!("a person") };
    let unused = admin.link_person(other_id).unwrap();
    admin.disable(ParticipantId::Person(other_id)).unwrap();
    assert_eq!(store.session(secret::sha256(&theirs)).await.unwrap(), None);
    let gone = store.sign_in(link(&unused), Device::default()).await.unwrap();
    assert_eq!(gone, SignedIn::No(SignInState::Unknown));
}
