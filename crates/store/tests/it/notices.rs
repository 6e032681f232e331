//! What is told outside the inbox: to whom, when, once, and never of an ask that is closed.

use std::collections::BTreeSet;

use chips_core::notify::{Channel, Kind, Outcome, Preferences};
use chips_protocol::api::{NewRun, Tier};
use chips_protocol::{AskId, PersonId, RunId, SpaceId};
use chips_store::admin::Admin;
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::{Device, Identity, NewEndpoint, Notice, Options, Proof, SignedIn, Store, secret};

use crate::support::*;

mod chats;
mod reminders;

const MINUTE: i64 = 60_000;

struct Scene {
    dir: Home,
    world: World,
    time: ManualTime,
    run: RunId,
}

fn options(time: &ManualTime) -> Options {
    Options { time: TimeSource::Manual(time.clone()), ..Options::default() }
}

impl Scene {
    async fn new() -> Self {
        let time = ManualTime::at(TimeSource::System.wall());
        let (dir, world) = world_with(options(&time)).await;
        let run = world.run().await;
        Self { dir, world, time, run }
    }

    fn store(&self) -> &Store {
        &self.world.store
    }

    fn admin<T>(&self, act: impl FnOnce(&mut Admin) -> T) -> T {
        act(&mut Admin::open(self.dir.path()).unwrap())
    }

    async fn plan(&self) {
        self.plan_with(&[]).await;
    }

    async fn plan_with(&self, in_sight: &[i64]) {
        self.store().plan_notices(&in_sight.iter().copied().collect::<BTreeSet<_>>()).await.unwrap();
    }

    /// What is due, each by its ask, its kind and its endpoint's address, and taken as accepted.
    async fn accept_all(&self) -> Vec<(AskId, Kind, String)> {
        let mut all = Vec::new();
        loop {
            let notices = self.store().claim_notices(100).await.unwrap();
            if notices.is_empty() {
                return all;
            }
            for notice in notices {
                self.record(&notice, Outcome::Accepted).await;
                all.push((notice.ask.ask_id, notice.kind, notice.endpoint.address));
            }
        }
    }

    async fn record(&self, notice: &Notice, outcome: Outcome) {
        self.store().record_attempt(notice, outcome, 0.0).await.unwrap();
    }

    async fn one(&self) -> Notice {
        let mut notices = self.store().claim_notices(100).await.unwrap();
        assert_eq!(notices.len(), 1, "{notices:?}");
        notices.remove(0)
    }

    async fn none_is_due(&self) {
        assert_eq!(self.store().claim_notices(100).await.unwrap(), []);
    }

    async fn answer(&self, ask_id: AskId) {
        self.world.append(&self.world.answer(self.run, ask_id, "a")).await;
    }
}

async fn reach(store: &Store, who: &Identity, channel: Channel, address: &str) -> i64 {
    let endpoint = NewEndpoint {
        channel,
        address: address.to_owned(),
        secret: "{}".to_owned(),
        name: "Phone".to_owned(),
        session_id: None,
    };
    store.add_endpoint(who, endpoint).await.unwrap().unwrap()
}

async fn sign_in(scene: &Scene, person: PersonId) -> i64 {
    let link = scene.admin(|admin| admin.link_person(person)).unwrap();
    let signed = scene.store().sign_in(Proof::Link(secret::sha256(&link.secret)), Device::default()).await.unwrap();
    let SignedIn::Yes(_, session) = signed else { unreachable!() };
    session.session_id
}

async fn another_person(scene: &Scene, name: &str) -> Identity {
    let (issued, _) = scene.admin(|admin| admin.add_person(scene.world.workspace_id, name)).unwrap();
    identity(scene.store(), &issued.token).await
}

/// Ada, who is told by ntfy and alone in a closed space, that space, and a run in it.
async fn a_closed_space(scene: &Scene) -> (Identity, SpaceId, RunId) {
    let world = &scene.world;
    let ada = another_person(scene, "Ada").await;
    reach(scene.store(), &ada, Channel::Ntfy, "ada").await;
    let closed = scene.admin(|admin| admin.add_space(world.workspace_id, "Payroll", &[person_id(&ada)])).unwrap();
    let run = NewRun { space_id: Some(closed), ..NewRun::default() };
    let run = scene.store().open_run(world.harness.sender, run).await.unwrap().0.run_id;
    (ada, closed, run)
}

fn person_id(identity: &Identity) -> PersonId {
    let chips_core::Who::Person(id) = identity.sender.who else { unreachable!() };
    id
}

#[tokio::test]
async fn a_question_is_told_once_and_taken_back_everywhere_when_it_closes() {
    let scene = Scene::new().await;
    for address in ["one", "two", "three"] {
        reach(scene.store(), &scene.world.person, Channel::Ntfy, address).await;
    }
    let first = scene.world.asked(scene.run).await;
    scene.plan().await;
    scene.plan().await;
    let told = scene.accept_all().await;
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().all(|(ask, kind, _)| (*ask, *kind) == (first, Kind::Asked)));
    scene.none_is_due().await;

    // The second opens while the first closes: only the first is taken back.
    let second = scene.world.asked(scene.run).await;
    scene.answer(first).await;
    scene.plan().await;
    let mut told = scene.accept_all().await;
    told.sort();
    let mut expected: Vec<_> = ["one", "two", "three"]
        .into_iter()
        .flat_map(|address| [(first, Kind::Closed, address.to_owned()), (second, Kind::Asked, address.to_owned())])
        .collect();
    expected.sort();
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_was_asked_before_an_address_was_added_is_not_told_to_it() {
    let scene = Scene::new().await;
    scene.world.asked(scene.run).await;
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "late").await;
    scene.plan().await;
    scene.none_is_due().await;
    let asked = scene.world.asked(scene.run).await;
    scene.plan().await;
    assert_eq!(scene.accept_all().await, [(asked, Kind::Asked, "late".to_owned())]);
}

#[tokio::test]
async fn with_a_page_in_sight_the_phone_waits_and_hears_nothing_of_what_was_answered_meanwhile() {
    let scene = Scene::new().await;
    let page = sign_in(&scene, scene.world.person_id()).await;
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "phone").await;
    let answered = scene.world.asked(scene.run).await;
    let left = scene.world.asked(scene.run).await;
    scene.plan_with(&[page]).await;
    scene.none_is_due().await;
    let due = scene.store().next_notice().await.unwrap().unwrap();
    assert_eq!(due, scene.store().clock().now().plus_ms(30_000));
    scene.answer(answered).await;
    scene.plan_with(&[page]).await;
    scene.time.pass_ms(30_000);
    assert_eq!(scene.accept_all().await, [(left, Kind::Asked, "phone".to_owned())]);
}

#[tokio::test]
async fn a_page_counts_no_more_once_its_session_has_ended_and_another_of_the_same_person_does() {
    let scene = Scene::new().await;
    let (kim, person) = (scene.world.person_id(), &scene.world.person);
    reach(scene.store(), person, Channel::Ntfy, "phone").await;
    let (desk, couch) = (sign_in(&scene, kim).await, sign_in(&scene, kim).await);
    scene.store().end_session(person, desk).await.unwrap();
    scene.world.asked(scene.run).await;
    scene.plan_with(&[desk, couch]).await;
    scene.none_is_due().await;
    scene.store().end_session(person, couch).await.unwrap();
    let asked = scene.world.asked(scene.run).await;
    scene.plan_with(&[desk, couch]).await;
    assert_eq!(scene.accept_all().await, [(asked, Kind::Asked, "phone".to_owned())]);
    // One that nobody has used for long has ended as well.
    let old = sign_in(&scene, kim).await;
    scene.time.pass_ms(chips_store::session::IDLE_MS);
    scene.accept_all().await;
    let asked = scene.world.asked(scene.run).await;
    scene.plan_with(&[old]).await;
    assert!(scene.accept_all().await.contains(&(asked, Kind::Asked, "phone".to_owned())));
}

#[tokio::test]
async fn an_answer_between_the_planning_and_the_sending_stops_the_message() {
    let scene = Scene::new().await;
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "phone").await;
    let ask = scene.world.asked(scene.run).await;
    scene.plan().await;
    scene.answer(ask).await;
    scene.none_is_due().await;
    scene.plan().await;
    scene.none_is_due().await;
}

#[tokio::test]
async fn a_message_that_was_under_way_when_its_ask_closed_is_taken_back() {
    for outcome in [Outcome::Accepted, Outcome::TimedOut] {
        let scene = Scene::new().await;
        reach(scene.store(), &scene.world.person, Channel::Ntfy, "phone").await;
        let ask = scene.world.asked(scene.run).await;
        scene.plan().await;
        let notice = scene.one().await;
        scene.answer(ask).await;
        scene.plan().await;
        scene.none_is_due().await;
        scene.record(&notice, outcome).await;
        assert_eq!(scene.accept_all().await, [(ask, Kind::Closed, "phone".to_owned())]);
    }
    let scene = Scene::new().await;
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "phone").await;
    let ask = scene.world.asked(scene.run).await;
    scene.plan().await;
    let notice = scene.one().await;
    scene.answer(ask).await;
    scene.plan().await;
    scene.record(&notice, Outcome::Failed("503".into())).await;
    scene.time.pass_ms(MINUTE);
    scene.none_is_due().await;
}

fn reopened(dir: chips_store::Location, time: &ManualTime) -> Store {
    Store::open(dir, options(time)).unwrap()
}

#[tokio::test]
async fn what_was_not_sent_when_the_server_died_is_sent_after_the_restart_and_what_was_is_not() {
    let mut scene = Scene::new().await;
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "one").await;
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "two").await;
    let ask = scene.world.asked(scene.run).await;
    scene.plan().await;
    let notices = scene.store().claim_notices(100).await.unwrap();
    let sent = notices[0].endpoint.address.clone();
    scene.record(&notices[0], Outcome::Accepted).await;
    // The other one is claimed and its sender dies.
    scene.world.store.clone().close().await;
    scene.world.store = reopened(scene.dir.path(), &scene.time);
    if crate::ON_POSTGRES {
        // Nobody knows there that it was this server that died: what it had claimed is free a minute after.
        scene.time.pass_ms(chips_store::notice::CLAIM_MS);
    }
    scene.plan().await;
    let other = if sent == "one" { "two" } else { "one" };
    assert_eq!(scene.accept_all().await, [(ask, Kind::Asked, other.to_owned())]);

    // Died before anything was planned.
    let ask = scene.world.asked(scene.run).await;
    scene.world.store.clone().close().await;
    scene.world.store = reopened(scene.dir.path(), &scene.time);
    scene.plan().await;
    assert_eq!(scene.accept_all().await.iter().map(|(told, ..)| *told).collect::<Vec<_>>(), [ask, ask]);
}

#[tokio::test]
async fn one_endpoint_gets_one_message_at_a_time_and_delays_no_other() {
    let scene = Scene::new().await;
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "slow").await;
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "quick").await;
    let (first, second) = (scene.world.asked(scene.run).await, scene.world.asked(scene.run).await);
    scene.plan().await;
    let claimed = scene.store().claim_notices(100).await.unwrap();
    assert_eq!(claimed.len(), 2);
    let quick = claimed.iter().find(|notice| notice.endpoint.address == "quick").unwrap();
    scene.record(quick, Outcome::Accepted).await;
    let next = scene.one().await;
    assert_eq!((next.endpoint.address.as_str(), next.ask.ask_id), ("quick", second));
    scene.record(&next, Outcome::Accepted).await;
    scene.none_is_due().await;
    // A claim that nobody made good is given to the next sender.
    scene.time.pass_ms(chips_store::notice::CLAIM_MS);
    let again = scene.one().await;
    assert_eq!((again.endpoint.address.as_str(), again.ask.ask_id), ("slow", first));
}

#[tokio::test]
async fn failures_are_tried_again_until_the_deadline_and_a_refusal_is_not() {
    let scene = Scene::new().await;
    let world = &scene.world;
    reach(scene.store(), &world.person, Channel::Ntfy, "phone").await;
    world.append(&with_timeout(world.ask(scene.run), 120)).await;
    scene.plan().await;
    for gap in [5_000, 15_000, 60_000] {
        let notice = scene.one().await;
        scene.record(&notice, Outcome::Failed("503".into())).await;
        scene.none_is_due().await;
        scene.time.pass_ms(gap);
    }
    let notice = scene.one().await;
    assert_eq!(notice.tries, 3);
    scene.record(&notice, Outcome::TimedOut).await;
    // The next try would come after the deadline.
    assert_eq!(scene.store().next_notice().await.unwrap(), None);
    assert_eq!(
        scene.store().endpoints(&world.person).await.unwrap()[0].trouble.as_deref(),
        Some("it did not answer in time")
    );

    let ask = world.asked(scene.run).await;
    scene.plan().await;
    let notice = scene.one().await;
    scene.record(&notice, Outcome::Refused("403 bad key".into())).await;
    assert_eq!(scene.store().next_notice().await.unwrap(), None);
    let attempts = scene.store().attempts(&world.person, ask).await.unwrap().unwrap();
    let seen: Vec<_> = attempts.iter().map(|attempt| (attempt.outcome.as_str(), attempt.detail.as_str())).collect();
    assert_eq!(seen, [("refused", "403 bad key")]);
    assert_eq!(attempts[0].person.as_ref().unwrap().name, "Owner");
}

#[tokio::test]
async fn the_ask_says_that_nobody_could_be_told() {
    let scene = Scene::new().await;
    let world = &scene.world;
    // Nobody set anything up: the inbox is the way. A harness's own webhook reaches nobody.
    reach(scene.store(), &world.harness, Channel::HarnessWebhook, "hook").await;
    let ask = world.asked(scene.run).await;
    scene.plan().await;
    assert!(world.shown(ask).await.reachable);

    reach(scene.store(), &world.person, Channel::Ntfy, "one").await;
    reach(scene.store(), &world.person, Channel::Email, "two").await;
    let ask = world.asked(scene.run).await;
    scene.plan().await;
    let notices = scene.store().claim_notices(100).await.unwrap();
    scene.record(&notices[0], Outcome::Refused("no".into())).await;
    assert!(world.shown(ask).await.reachable, "one may still be reached");
    scene.record(&notices[1], Outcome::Gone("no".into())).await;
    assert!(!world.shown(ask).await.reachable);

    // A way that fails is tried again, and reaches nobody until it does.
    let ask = world.asked(scene.run).await;
    scene.plan().await;
    let notices = scene.store().claim_notices(100).await.unwrap();
    scene.record(&notices[0], Outcome::Failed("500".into())).await;
    assert!(!world.shown(ask).await.reachable);
    scene.record(&notices[0], Outcome::Accepted).await;
    assert!(world.shown(ask).await.reachable);

    // What was gone is gone for good.
    let endpoints = scene.store().endpoints(&world.person).await.unwrap();
    assert_eq!(endpoints.iter().filter(|endpoint| endpoint.disabled).count(), 1);

    // All are muted: known at once.
    let muted = Preferences { not: [(Tier::TimeSensitive, Channel::PERSONAL.into())].into(), ..Preferences::default() };
    scene.store().set_preferences(world.person_id(), muted).await.unwrap();
    let ask = world.asked(scene.run).await;
    scene.plan().await;
    assert!(!world.shown(ask).await.reachable);
    // Until somebody sees it in the inbox.
    scene.store().mark_seen(world.workspace_id, ask, world.person_id());
    eventually("somebody has seen it", async || world.shown(ask).await.reachable.then_some(())).await;
    // But for those who look.
    let page = sign_in(&scene, world.person_id()).await;
    let ask = world.asked(scene.run).await;
    scene.plan_with(&[page]).await;
    assert!(world.shown(ask).await.reachable);
}

#[tokio::test]
async fn who_may_not_see_it_hears_nothing_and_an_owner_alone_hears_of_what_is_in_no_space() {
    let scene = Scene::new().await;
    let world = &scene.world;
    let (ada, ben) = (another_person(&scene, "Ada").await, another_person(&scene, "Ben").await);
    for (who, address) in [(&world.person, "owner"), (&ada, "ada"), (&ben, "ben")] {
        reach(scene.store(), who, Channel::Ntfy, address).await;
    }
    let closed = scene.admin(|admin| admin.add_space(world.workspace_id, "Payroll", &[person_id(&ada)])).unwrap();
    let secret_run = NewRun { space_id: Some(closed), ..NewRun::default() };
    let secret_run = scene.store().open_run(world.harness.sender, secret_run).await.unwrap().0.run_id;
    let addresses = async || {
        scene.plan().await;
        let mut told: Vec<_> = scene.accept_all().await.into_iter().map(|(.., address)| address).collect();
        told.sort();
        told
    };
    world.asked(secret_run).await;
    assert_eq!(addresses().await, ["ada"]);
    world.asked(scene.run).await;
    assert_eq!(addresses().await, ["ada", "ben", "owner"]);

    scene.admin(|admin| admin.set_owner(world.harness_id(), Some(person_id(&ben)))).unwrap();
    world.asked(scene.run).await;
    assert_eq!(addresses().await, ["ben"]);
    world.asked(secret_run).await;
    assert_eq!(addresses().await, ["ada"]);
    scene.admin(|admin| admin.set_owner(world.harness_id(), None)).unwrap();

    // Taken out between the planning and the sending.
    world.asked(secret_run).await;
    scene.plan().await;
    scene.admin(|admin| admin.set_member(closed, person_id(&ada), false)).unwrap();
    scene.none_is_due().await;
    world.asked(scene.run).await;
    scene.plan().await;
    scene.admin(|admin| admin.disable(chips_protocol::ParticipantId::Person(person_id(&ben)))).unwrap();
    assert_eq!(addresses().await, ["ada", "owner"]);
}

#[tokio::test]
async fn what_was_shown_to_somebody_who_may_not_see_it_any_more_is_taken_back_without_a_word_of_it() {
    let scene = Scene::new().await;
    let world = &scene.world;
    let (ada, closed, run) = a_closed_space(&scene).await;
    for taken_out in [false, true] {
        let ask = world.asked(run).await;
        scene.plan().await;
        let notice = scene.one().await;
        scene.record(&notice, Outcome::Accepted).await;
        if taken_out {
            scene.admin(|admin| admin.set_member(closed, person_id(&ada), false)).unwrap();
        }
        let settled = answer_by(&world.harness, run, ask, vec![chosen("q1", &["a"])]);
        appended(scene.store().submit(world.harness.sender, settled).await);
        scene.plan().await;
        let notice = scene.one().await;
        assert_eq!((notice.kind, notice.private), (Kind::Closed, taken_out));
        scene.record(&notice, Outcome::Accepted).await;
    }
}

#[tokio::test]
async fn a_private_space_says_so() {
    let scene = Scene::new().await;
    let world = &scene.world;
    reach(scene.store(), &world.person, Channel::Ntfy, "phone").await;
    let run = NewRun { space_id: Some(world.space_id), title: Some("Restock".into()), ..NewRun::default() };
    let run = scene.store().open_run(world.harness.sender, run).await.unwrap().0.run_id;
    for private in [false, true] {
        scene.admin(|admin| admin.set_private(world.space_id, private)).unwrap();
        world.asked(run).await;
        scene.plan().await;
        let notice = scene.one().await;
        assert_eq!((notice.private, notice.run_title.as_deref()), (private, Some("Restock")));
        scene.record(&notice, Outcome::Accepted).await;
    }
}

#[tokio::test]
async fn a_subscription_is_one_for_each_address_belongs_to_a_session_and_ends_with_it() {
    let scene = Scene::new().await;
    let world = &scene.world;
    let subscribe = async |who: &Identity, session_id: i64| {
        let endpoint = NewEndpoint {
            channel: Channel::WebPush,
            address: "https://push.example/1".into(),
            secret: "{}".into(),
            name: "Firefox".into(),
            session_id: Some(session_id),
        };
        scene.store().add_endpoint(who, endpoint).await.unwrap().unwrap()
    };
    let session = sign_in(&scene, world.person_id()).await;
    let first = subscribe(&world.person, session).await;
    assert_eq!(subscribe(&world.person, session).await, first);
    world.asked(scene.run).await;
    scene.plan().await;
    assert_eq!(scene.accept_all().await.len(), 1);

    // Somebody else signs in with the same browser.
    let ada = another_person(&scene, "Ada").await;
    let adas = sign_in(&scene, person_id(&ada)).await;
    subscribe(&ada, adas).await;
    assert_eq!(scene.store().endpoints(&world.person).await.unwrap(), []);
    assert_eq!(scene.store().endpoints(&ada).await.unwrap().len(), 1);

    // Signed out between the planning and the sending, and before the planning.
    world.asked(scene.run).await;
    scene.plan().await;
    scene.store().end_session(&ada, adas).await.unwrap();
    scene.none_is_due().await;
    world.asked(scene.run).await;
    scene.plan().await;
    scene.none_is_due().await;

    // A session that nobody used for long.
    subscribe(&world.person, session).await;
    scene.time.pass_ms(chips_store::session::IDLE_MS);
    world.asked(scene.run).await;
    scene.plan().await;
    scene.none_is_due().await;
    assert_eq!(scene.store().endpoints(&world.person).await.unwrap(), []);
}

#[tokio::test]
async fn a_harness_hears_of_its_own_answers_for_days_and_again_by_hand() {
    let scene = Scene::new().await;
    let world = &scene.world;
    let hook = reach(scene.store(), &world.harness, Channel::HarnessWebhook, "hook").await;
    let other = scene.admin(|admin| admin.add_harness(world.workspace_id, "Other")).unwrap();
    let other = identity(scene.store(), &other.token).await;
    let elsewhere = reach(scene.store(), &other, Channel::HarnessWebhook, "elsewhere").await;

    let ask = world.asked(scene.run).await;
    scene.plan().await;
    scene.none_is_due().await;
    scene.answer(ask).await;
    scene.plan().await;
    let mut notice = scene.one().await;
    let no = notice.no;
    for gap in [5, 300, 1_800] {
        assert_eq!((notice.kind, notice.endpoint.address.as_str(), notice.no), (Kind::Answered, "hook", no));
        scene.record(&notice, Outcome::Failed("500".into())).await;
        scene.none_is_due().await;
        scene.time.pass_ms(gap * 1_000);
        notice = scene.one().await;
    }
    scene.record(&notice, Outcome::Accepted).await;
    scene.none_is_due().await;

    for _ in 0..2 {
        scene.admin(|admin| admin.resend_webhook(hook, ask)).unwrap();
        assert_eq!(scene.accept_all().await, [(ask, Kind::Answered, "hook".to_owned())]);
    }
    let refused = |hook, ask| scene.admin(|admin| admin.resend_webhook(hook, ask)).unwrap_err().to_string();
    assert!(refused(elsewhere, ask).contains("has no ask"));
    assert!(refused(hook + 100, ask).contains("no webhook"));
    let open = world.asked(scene.run).await;
    assert!(refused(hook, open).contains("is open"));

    // 410: nothing is sent there any more, until it is registered anew.
    scene.answer(open).await;
    scene.plan().await;
    let notice = scene.one().await;
    scene.record(&notice, Outcome::Gone("410".into())).await;
    let ask = world.asked(scene.run).await;
    scene.answer(ask).await;
    scene.plan().await;
    scene.none_is_due().await;
    assert!(scene.store().endpoints(&world.harness).await.unwrap()[0].disabled);
    assert!(refused(hook, ask).contains("410"));
    reach(scene.store(), &world.harness, Channel::HarnessWebhook, "hook").await;
    assert!(!scene.store().endpoints(&world.harness).await.unwrap()[0].disabled);
}

#[tokio::test]
async fn nobody_removes_what_is_another_s_and_there_is_an_end_to_adding() {
    let scene = Scene::new().await;
    let ada = another_person(&scene, "Ada").await;
    let no = reach(scene.store(), &scene.world.person, Channel::Ntfy, "phone").await;
    scene.store().remove_endpoint(&ada, no).await.unwrap();
    assert_eq!(scene.store().endpoints(&scene.world.person).await.unwrap().len(), 1);
    assert_eq!(scene.store().endpoints(&ada).await.unwrap(), []);
    scene.store().remove_endpoint(&scene.world.person, no).await.unwrap();
    assert_eq!(scene.store().endpoints(&scene.world.person).await.unwrap(), []);
    for number in 0..chips_store::notice::ENDPOINTS_MOST {
        reach(scene.store(), &ada, Channel::Ntfy, &number.to_string()).await;
    }
    let one_more = NewEndpoint {
        channel: Channel::Ntfy,
        address: "more".into(),
        secret: "{}".into(),
        name: String::new(),
        session_id: None,
    };
    assert_eq!(scene.store().add_endpoint(&ada, one_more).await.unwrap(), None);
}

#[tokio::test]
async fn a_secret_is_made_once_and_kept() {
    let mut scene = Scene::new().await;
    assert_eq!(scene.store().keep_secret("vapid", vec![1]).await.unwrap(), [1]);
    assert_eq!(scene.store().keep_secret("vapid", vec![2]).await.unwrap(), [1]);
    scene.world.store.clone().close().await;
    scene.world.store = reopened(scene.dir.path(), &scene.time);
    assert_eq!(scene.store().keep_secret("vapid", vec![3]).await.unwrap(), [1]);
}
