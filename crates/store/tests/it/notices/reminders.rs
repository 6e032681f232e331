//! What is said again while a question stays open: as often as the schedule has it, and never all at once.

use std::collections::BTreeSet;

use chips_core::notify::Quiet;
use chips_store::LeaseOf;

use super::*;

#[tokio::test]
async fn reminders_back_off_and_end_with_the_ask() {
    let scene = Scene::new().await;
    let world = &scene.world;
    reach(scene.store(), &world.person, Channel::Ntfy, "phone").await;
    let ask = world.asked(scene.run).await;
    scene.plan().await;
    assert_eq!(scene.accept_all().await.len(), 1);
    for minutes in [5, 10, 20] {
        scene.time.pass_ms(minutes * MINUTE - 1);
        scene.none_is_due().await;
        scene.time.pass_ms(1);
        assert_eq!(scene.accept_all().await, [(ask, Kind::Reminder, "phone".to_owned())]);
    }
    scene.answer(ask).await;
    scene.plan().await;
    assert_eq!(scene.accept_all().await, [(ask, Kind::Closed, "phone".to_owned())]);
    scene.time.pass_ms(24 * 60 * MINUTE);
    scene.none_is_due().await;
}

#[tokio::test]
async fn a_last_call_comes_before_a_default_is_taken() {
    let scene = Scene::new().await;
    let world = &scene.world;
    reach(scene.store(), &world.person, Channel::Ntfy, "phone").await;
    let preferences = Preferences { reminders: true, ..Preferences::default() };
    scene.store().set_preferences(world.person_id(), preferences).await.unwrap();
    let draft = with_default(world.ask(scene.run), 600);
    world.append(&draft).await;
    scene.plan().await;
    let notice = scene.one().await;
    assert_eq!((notice.kind, notice.ask.tier), (Kind::Asked, Tier::Active));
    scene.record(&notice, Outcome::Accepted).await;
    scene.time.pass_ms(9 * MINUTE);
    let told: Vec<_> = scene.accept_all().await.into_iter().map(|(_, kind, _)| kind).collect();
    // The reminder of the fifth minute was missed, and one of two that are late is enough.
    assert_eq!(told, [Kind::LastCall]);
    scene.time.pass_ms(MINUTE);
    scene.none_is_due().await;
}

#[tokio::test]
async fn a_last_call_that_is_about_to_come_takes_the_place_of_a_reminder() {
    let scene = Scene::new().await;
    let world = &scene.world;
    reach(scene.store(), &world.person, Channel::Ntfy, "phone").await;
    world.append(&with_default(world.ask(scene.run), 40 * 60)).await;
    scene.plan().await;
    scene.accept_all().await;
    let mut told = Vec::new();
    for minute in 1..=40 {
        scene.time.pass_ms(MINUTE);
        told.extend(scene.accept_all().await.into_iter().map(|(_, kind, _)| (minute, kind)));
    }
    // The reminder of the 35th minute would come a minute before the last call.
    assert_eq!(told, [(5, Kind::Reminder), (15, Kind::Reminder), (36, Kind::LastCall)]);
}

impl Scene {
    /// A run of whose harness something must be heard every 90 seconds.
    async fn leased_run(&self) -> RunId {
        let leased = NewRun { lease_seconds: Some(90.into()), ..NewRun::default() };
        self.store().open_run(self.world.harness.sender, leased).await.unwrap().0.run_id
    }

    /// The harness shows itself.
    async fn heard(&self, run: RunId) {
        let harness = &self.world.harness;
        self.store().renew_lease(harness.sender, LeaseOf::Run(run));
        let now = self.store().clock().now();
        eventually("its lease is renewed", async || {
            let run = self.store().run(harness, run).await.unwrap().unwrap();
            run.lease_until.filter(|until| *until > now.plus_ms(MINUTE)).map(drop)
        })
        .await;
    }

    async fn prefer(&self, preferences: &Preferences) {
        self.store().set_preferences(self.world.person_id(), preferences.clone()).await.unwrap();
    }

    /// The kinds of what is due, taken as accepted.
    async fn kinds(&self) -> Vec<Kind> {
        self.accept_all().await.into_iter().map(|(_, kind, _)| kind).collect()
    }

    /// Lets minutes pass one by one, and gives those at which something came.
    async fn minutes(&self, from: i64, to: i64) -> Vec<(i64, Kind)> {
        let mut came = Vec::new();
        for minute in from + 1..=to {
            self.time.pass_ms(MINUTE);
            came.extend(self.kinds().await.into_iter().map(|kind| (minute, kind)));
        }
        came
    }
}

#[tokio::test]
async fn while_a_lease_has_lapsed_nobody_is_reminded_and_once_it_is_renewed_the_schedule_goes_on() {
    let scene = Scene::new().await;
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "phone").await;
    let run = scene.leased_run().await;
    scene.world.asked(run).await;
    scene.plan().await;
    assert_eq!(scene.kinds().await, [Kind::Asked]);
    // Those of the 5th and the 15th minute are missed, and not made up for.
    assert_eq!(scene.minutes(0, 20).await, []);
    scene.heard(run).await;
    assert_eq!(scene.kinds().await, []);
    let mut came = Vec::new();
    for (from, to) in [(20, 34), (34, 50), (50, 74), (74, 76)] {
        came.extend(scene.minutes(from, to).await);
        scene.heard(run).await;
    }
    assert_eq!(came, [(35, Kind::Reminder), (75, Kind::Reminder)]);
}

#[tokio::test]
async fn a_last_call_that_met_a_lapsed_lease_comes_when_it_is_renewed_in_time() {
    let scene = Scene::new().await;
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "phone").await;
    let run = scene.leased_run().await;
    scene.world.append(&with_default(scene.world.ask(run), 6_000)).await;
    scene.plan().await;
    assert_eq!(scene.kinds().await, [Kind::Asked]);
    // Its moment is the 90th minute.
    assert_eq!(scene.minutes(0, 95).await, []);
    scene.heard(run).await;
    assert_eq!(scene.minutes(95, 96).await, [(96, Kind::LastCall)]);
    // Once is enough.
    scene.heard(run).await;
    assert_eq!(scene.minutes(96, 110).await, []);
}

#[tokio::test]
async fn what_is_silent_for_a_while_is_heard_of_again_without_what_was_missed() {
    let mute = |space: SpaceId| Preferences { muted: BTreeSet::from([space]), ..Preferences::default() };
    let channel = Preferences { not: [(Tier::TimeSensitive, [Channel::Ntfy].into())].into(), ..Preferences::default() };
    let none = Preferences { reminders: false, ..Preferences::default() };
    for silent in 0..3 {
        let scene = Scene::new().await;
        let world = &scene.world;
        reach(scene.store(), &world.person, Channel::Ntfy, "phone").await;
        let run = NewRun { space_id: Some(world.space_id), ..NewRun::default() };
        let run = scene.store().open_run(world.harness.sender, run).await.unwrap().0.run_id;
        let ask = world.asked(run).await;
        scene.plan().await;
        assert_eq!(scene.kinds().await, [Kind::Asked]);
        scene.prefer([&mute(world.space_id), &channel, &none][silent]).await;
        assert_eq!(scene.minutes(0, 16).await, [], "{silent}");
        scene.prefer(&Preferences::default()).await;
        assert_eq!(scene.minutes(16, 80).await, [(35, Kind::Reminder), (75, Kind::Reminder)], "{silent}");
        let settled = answer_by(&world.harness, run, ask, vec![chosen("q1", &["a"])]);
        appended(scene.store().submit(world.harness.sender, settled).await);
        scene.plan().await;
        assert_eq!(scene.kinds().await, [Kind::Closed]);
        assert_eq!(scene.minutes(80, 200).await, []);
    }
    // Reminders that are off from the beginning are reminders all the same once they are on.
    let scene = Scene::new().await;
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "phone").await;
    scene.prefer(&none).await;
    scene.world.append(&with_default(scene.world.ask(scene.run), 6_000)).await;
    scene.plan().await;
    assert_eq!(scene.kinds().await, [Kind::Asked]);
    assert_eq!(scene.minutes(0, 34).await, []);
    scene.prefer(&Preferences::default()).await;
    let came = scene.minutes(34, 110).await;
    assert_eq!(came, [(35, Kind::Reminder), (75, Kind::Reminder), (90, Kind::LastCall)]);
}

#[tokio::test]
async fn who_may_not_see_it_for_a_while_is_reminded_again_when_they_may() {
    let scene = Scene::new().await;
    let world = &scene.world;
    let (ada, closed, run) = a_closed_space(&scene).await;
    world.asked(run).await;
    scene.plan().await;
    assert_eq!(scene.kinds().await, [Kind::Asked]);
    scene.admin(|admin| admin.set_member(closed, person_id(&ada), false)).unwrap();
    assert_eq!(scene.minutes(0, 16).await, []);
    scene.admin(|admin| admin.set_member(closed, person_id(&ada), true)).unwrap();
    assert_eq!(scene.minutes(16, 40).await, [(35, Kind::Reminder)]);
}

#[tokio::test]
async fn quiet_hours_hold_what_was_planned_before_them_and_let_it_go_when_they_are_taken_back() {
    let (scene, zone) = (Scene::new().await, "UTC".to_owned());
    reach(scene.store(), &scene.world.person, Channel::Ntfy, "phone").await;
    // Eight hours that have just begun, whatever the time is.
    let now = scene.store().clock().now();
    let time = |ms: i64| now.plus_ms(ms).to_string()[11..16].parse().unwrap();
    let quiet = Quiet { from: time(0), to: time(8 * 60 * MINUTE), time_sensitive: true };
    let quiet = Preferences { zone, quiet: Some(quiet), ..Preferences::default() };

    let ask = scene.world.asked(scene.run).await;
    scene.plan().await;
    assert_eq!(scene.kinds().await, [Kind::Asked]);
    // The first reminder is planned, and then the hours are set.
    scene.prefer(&quiet).await;
    let asked = scene.world.asked(scene.run).await;
    scene.plan().await;
    assert_eq!(scene.minutes(0, 20).await, []);
    scene.prefer(&Preferences::default()).await;
    let mut came = scene.accept_all().await;
    let mut due = [(ask, Kind::Reminder, "phone".to_owned()), (asked, Kind::Asked, "phone".to_owned())];
    came.sort();
    due.sort();
    assert_eq!(came, due);
    // Where they stay, all comes once at their end.
    scene.prefer(&quiet).await;
    assert_eq!(scene.minutes(20, 479).await, []);
    assert_eq!(scene.minutes(479, 481).await.len(), 2);
}
