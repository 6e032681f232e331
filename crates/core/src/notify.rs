//! Where and when people are told of an ask: as loudly as silence would cost, and never of one that is closed.

mod quiet;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use chips_protocol::api::Tier;
use chips_protocol::{SpaceId, Timestamp};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

pub use quiet::{Quiet, TimeOfDay};

/// A way to reach somebody outside the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// A browser's push service (RFC 8030).
    WebPush,
    /// A topic on an ntfy server.
    Ntfy,
    /// A mail address.
    Email,
    /// A private chat with the operator's bot on Telegram.
    Telegram,
    /// A signed POST to an address of the person's own.
    Webhook,
    /// A signed POST to an address that a harness registered; it carries `question.answered`.
    HarnessWebhook,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Self; 6] =
        [Self::WebPush, Self::Ntfy, Self::Email, Self::Telegram, Self::Webhook, Self::HarnessWebhook];
    /// The channels that reach a person.
    pub const PERSONAL: [Self; 5] = [Self::WebPush, Self::Ntfy, Self::Email, Self::Telegram, Self::Webhook];

    /// The word for it in files and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WebPush => "web_push",
            Self::Ntfy => "ntfy",
            Self::Email => "email",
            Self::Telegram => "telegram",
            Self::Webhook => "webhook",
            Self::HarnessWebhook => "harness_webhook",
        }
    }

    /// Whether the outcome of a question takes the place of what was sent before, or is heard as well. What is only heard stands for
    /// nothing of its own in the hands of whoever brought it about: they are not told.
    pub const fn replaces(self) -> bool {
        !matches!(self, Self::Email)
    }

    /// Whether an address is in one person's hands alone, as a browser's subscription and a private chat are: whoever brings it
    /// last has it, and whoever had it before is told there no more.
    pub const fn is_one_persons(self) -> bool {
        matches!(self, Self::WebPush | Self::Telegram)
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Channel {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|channel| channel.as_str() == text).ok_or(())
    }
}

/// Why somebody is told something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// There is a question.
    Asked,
    /// It is still open.
    Reminder,
    /// Its default is taken soon.
    LastCall,
    /// It is closed: what was shown of it is taken back.
    Closed,
    /// A harness's question is answered.
    Answered,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Asked, Self::Reminder, Self::LastCall, Self::Closed, Self::Answered];

    /// The word for it in lists and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Reminder => "reminder",
            Self::LastCall => "last_call",
            Self::Closed => "closed",
            Self::Answered => "answered",
        }
    }
}

/// How a person wants to be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preferences {
    /// The time zone of the quiet hours, by its name in the IANA database.
    pub zone: String,
    /// Hours in which they are left alone.
    pub quiet: Option<Quiet>,
    /// For each tier the channels that are not used for it.
    pub not: BTreeMap<Tier, BTreeSet<Channel>>,
    /// Spaces that they are told nothing of.
    pub muted: BTreeSet<SpaceId>,
    /// How many seconds the phone waits while a page of theirs is in sight.
    pub grace_seconds: u32,
    /// Whether they are reminded.
    pub reminders: bool,
}

impl Default for Preferences {
    fn default() -> Self {
        Self {
            zone: "UTC".to_owned(),
            quiet: None,
            not: BTreeMap::new(),
            muted: BTreeSet::new(),
            grace_seconds: 30,
            reminders: true,
        }
    }
}

/// The longest grace, in seconds.
pub const GRACE_LIMIT: u32 = 600;
/// The gap before the first reminder; each further one is twice as long, up to [`REMINDER_LONGEST_MS`].
const REMINDER_FIRST_MS: i64 = 5 * 60 * 1000;
/// The longest gap between two reminders.
const REMINDER_LONGEST_MS: i64 = 24 * 3600 * 1000;
/// A last call comes this much before the default is taken, or at nine tenths of the time where that is later.
const LAST_CALL_MS: i64 = 10 * 60 * 1000;
/// The shortest time-out that is worth a last call.
const LAST_CALL_LEAST_MS: i64 = 5 * 60 * 1000;

/// How long a last call waits that can't be sent when it is due: it is worth little later.
const LAST_CALL_AGAIN_MS: i64 = 30_000;

/// The parts of an ask that decide when somebody is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// How loudly.
    pub tier: Tier,
    /// Where it was asked.
    pub space_id: Option<SpaceId>,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When Chips closes it by itself.
    pub deadline: Option<Timestamp>,
    /// Whether a default is taken then.
    pub takes_default: bool,
}

impl Facts {
    /// The moment of the reminder `round` (from 1), for whoever was told last at `told`: after 5, 10, 20 … minutes. Nothing
    /// where the ask is over by then.
    pub fn reminder(&self, told: Timestamp, round: u32) -> Option<Timestamp> {
        self.before_deadline(told.plus_ms(reminder_gap(round)))
    }

    /// When a message is looked at again that could not be sent when it was due, because nobody wanted to hear it then or
    /// its run's lease had lapsed: at the next moment at which a reminder would be due, with that one's number. What was
    /// missed in between is never made up for. Nothing where the ask is over by then.
    pub fn passed_over(&self, due: Timestamp, round: u32, now: Timestamp) -> Option<(Timestamp, u32)> {
        let (mut due, mut round) = (due, round);
        while due <= now {
            round = round.saturating_add(1);
            due = due.plus_ms(reminder_gap(round));
        }
        self.before_deadline(due).map(|due| (due, round))
    }

    /// When people are told for the last time that a default is about to be taken.
    pub fn last_call(&self) -> Option<Timestamp> {
        let deadline = self.deadline.filter(|_| self.takes_default)?;
        let whole = deadline.ms().saturating_sub(self.asked_at.ms());
        (whole >= LAST_CALL_LEAST_MS).then(|| deadline.plus_ms(-LAST_CALL_MS.min(whole / 10)))
    }

    /// When a last call is looked at again that could not be sent when it was due. Nothing where the ask is over by then.
    pub fn last_call_again(&self, now: Timestamp) -> Option<Timestamp> {
        self.before_deadline(now.plus_ms(LAST_CALL_AGAIN_MS))
    }

    /// The moment, unless the ask is over by then.
    pub fn before_deadline(&self, at: Timestamp) -> Option<Timestamp> {
        self.deadline.is_none_or(|deadline| at < deadline).then_some(at)
    }
}

/// The gap before the reminder `round`, in milliseconds.
fn reminder_gap(round: u32) -> i64 {
    let factor = 1_i64.checked_shl(round.saturating_sub(1)).filter(|factor| *factor > 0).unwrap_or(i64::MAX);
    REMINDER_FIRST_MS.saturating_mul(factor).min(REMINDER_LONGEST_MS)
}

impl Preferences {
    /// What is wrong with them, in words for the person.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), String> {
        if TimeZone::get(&self.zone).is_err() {
            return Err(format!("{:?} is no time zone; write it like Europe/Berlin", self.zone));
        }
        if self.grace_seconds > GRACE_LIMIT {
            return Err(format!("the phone may wait {GRACE_LIMIT} seconds at most"));
        }
        match self.quiet {
            Some(quiet) if quiet.from == quiet.to => {
                Err("the quiet hours begin when they end; give two times".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Whether they are told of such an ask on this channel.
    pub fn wants(&self, channel: Channel, facts: &Facts) -> bool {
        facts.tier != Tier::Passive
            && !facts.space_id.is_some_and(|space| self.muted.contains(&space))
            && !self.not.get(&facts.tier).is_some_and(|not| not.contains(&channel))
    }

    /// Whether they want a message of this kind at all.
    pub const fn wants_kind(&self, kind: Kind) -> bool {
        self.reminders || !matches!(kind, Kind::Reminder | Kind::LastCall)
    }

    /// When they are told first: now, or after the grace where a page of theirs is in sight. Quiet hours are looked at
    /// when it is due ([`Preferences::after_quiet`]): until then they may have others. Nothing where the ask is over by then.
    pub fn first(&self, facts: &Facts, now: Timestamp, in_sight: bool) -> Option<Timestamp> {
        let grace = if in_sight { i64::from(self.grace_seconds) * 1000 } else { 0 };
        facts.before_deadline(facts.asked_at.plus_ms(grace).max(now))
    }

    /// The first moment from `at` on at which they may be told.
    ///
    /// The hours are those of the clock on their wall. Where it is put forward over their beginning or their end, that is
    /// the moment at which it is put forward; where it shows one twice, that is the first time.
    pub fn after_quiet(&self, tier: Tier, at: Timestamp) -> Timestamp {
        let Some(quiet) = self.quiet.filter(|quiet| tier != Tier::TimeSensitive || quiet.time_sensitive) else {
            return at;
        };
        let zone = TimeZone::get(&self.zone).unwrap_or(TimeZone::UTC);
        let mut after = at;
        // Where the clock leaves out the minutes between them, two nights become one.
        for _ in 0..3 {
            match quiet.ends(&zone, after) {
                Some(end) => after = end,
                None => break,
            }
        }
        after
    }
}

/// The day and the time of a moment on the wall of somebody in this zone: `2026-11-30`, `14:05`.
pub fn on_the_wall(zone: &str, at: Timestamp) -> (String, String) {
    let zone = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    let there = zone.to_datetime(jiff::Timestamp::from_millisecond(at.ms()).unwrap_or_default());
    (there.date().to_string(), format!("{:02}:{:02}", there.hour(), there.minute()))
}

/// What the other side made of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It took the message. That says nothing of the person.
    Accepted,
    /// The same, and it gave the message a name by which it can be changed later.
    AcceptedAs(String),
    /// It knows this address no more.
    Gone(String),
    /// It refuses, and would again.
    Refused(String),
    /// It could not take it now.
    Failed(String),
    /// It could not take it now, and asks to be left alone for so many seconds.
    Later(String, u32),
    /// It did not answer in time.
    TimedOut,
}

impl Outcome {
    /// The word for it in lists and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Accepted | Self::AcceptedAs(_) => "accepted",
            Self::Gone(_) => "gone",
            Self::Refused(_) => "refused",
            Self::Failed(_) | Self::Later(..) => "failed",
            Self::TimedOut => "timed_out",
        }
    }

    /// Whether it took the message.
    pub const fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted | Self::AcceptedAs(_))
    }

    /// What the other side said; of a message that it took, its name for it.
    pub fn detail(&self) -> &str {
        match self {
            Self::Accepted | Self::TimedOut => "",
            Self::AcceptedAs(detail)
            | Self::Gone(detail)
            | Self::Refused(detail)
            | Self::Failed(detail)
            | Self::Later(detail, _) => detail,
        }
    }

    /// Whether trying again may help.
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Later(..) | Self::TimedOut)
    }

    /// How long, in milliseconds, it asks to be left alone; a day at most.
    pub fn rest_ms(&self) -> i64 {
        match self {
            Self::Later(_, seconds) => (i64::from(*seconds) * 1000).min(REST_LONGEST_MS),
            _ => 0,
        }
    }
}

/// The longest that the other side is left alone because it asks for it.
const REST_LONGEST_MS: i64 = 24 * 3600 * 1000;
/// The gaps, in seconds, between tries of a message to a person: it is worth little when it is late.
const PERSON_GAPS: [i64; 7] = [5, 15, 60, 300, 900, 1_800, 3_600];
/// The gaps between tries of a harness's webhook, over some three days (Standard Webhooks, "Deliverability and reliability").
const HARNESS_GAPS: [i64; 10] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400, 86_400];

/// How long to wait, in milliseconds, before a message is tried again that failed `tries` times; nothing where it is given up.
/// `jitter` is from 0 to 1 and lengthens the gap by up to a fifth.
pub fn retry_after(kind: Kind, tries: u32, jitter: f64) -> Option<i64> {
    let gaps: &[i64] = if kind == Kind::Answered { &HARNESS_GAPS } else { &PERSON_GAPS };
    let gap = gaps.get(usize::try_from(tries.checked_sub(1)?).ok()?)?;
    Some((*gap as f64 * 1000.0 * (1.0 + jitter.clamp(0.0, 1.0) / 5.0)) as i64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn facts(tier: Tier) -> Facts {
        Facts { tier, space_id: None, asked_at: at("2026-11-30T12:00:00Z"), deadline: None, takes_default: false }
    }

    fn quiet(from: &str, to: &str, time_sensitive: bool) -> Preferences {
        let quiet = Quiet { from: from.parse().unwrap(), to: to.parse().unwrap(), time_sensitive };
        Preferences { zone: "Europe/Berlin".to_owned(), quiet: Some(quiet), ..Preferences::default() }
    }

    #[test]
    fn a_page_in_sight_gives_the_phone_a_grace_and_nobody_else_waits() {
        let (facts, preferences) = (facts(Tier::TimeSensitive), Preferences::default());
        let now = facts.asked_at.plus_ms(20);
        assert_eq!(preferences.first(&facts, now, false), Some(now));
        assert_eq!(preferences.first(&facts, now, true), Some(facts.asked_at.plus_ms(30_000)));
        let late = facts.asked_at.plus_ms(60_000);
        assert_eq!(preferences.first(&facts, late, true), Some(late));
    }

    #[test]
    fn a_moment_is_told_by_the_clock_on_their_wall() {
        let told = |zone: &str, when: &str| on_the_wall(zone, at(when));
        let of = |day: &str, time: &str| (day.to_owned(), time.to_owned());
        assert_eq!(told("UTC", "2026-12-01T18:40:59.999Z"), of("2026-12-01", "18:40"));
        assert_eq!(told("Asia/Kolkata", "2026-12-01T18:40:00Z"), of("2026-12-02", "00:10"));
        assert_eq!(told("Europe/Berlin", "2026-07-01T12:00:00Z"), of("2026-07-01", "14:00"));
        assert_eq!(told("Nowhere/Else", "2026-07-01T12:00:00Z"), of("2026-07-01", "12:00"));
    }

    #[test]
    fn reminders_back_off_and_never_come_after_the_deadline() {
        let mut facts = facts(Tier::TimeSensitive);
        let told = facts.asked_at;
        let minutes = |round| facts.reminder(told, round).map(|at| (at.ms() - told.ms()) / 60_000);
        assert_eq!([minutes(1), minutes(2), minutes(3), minutes(4)], [Some(5), Some(10), Some(20), Some(40)]);
        assert_eq!([minutes(12), minutes(64), minutes(u32::MAX)], [Some(1440), Some(1440), Some(1440)]);
        facts.deadline = Some(told.plus_ms(10 * 60_000));
        assert_eq!(facts.reminder(told, 1), Some(told.plus_ms(5 * 60_000)));
        assert_eq!(facts.reminder(told, 2), None);
        let quiet = Preferences { reminders: false, ..Preferences::default() };
        assert_eq!(Kind::ALL.map(|kind| quiet.wants_kind(kind)), [true, false, false, true, true]);
    }

    #[test]
    fn what_is_passed_over_waits_for_its_place_in_the_schedule_and_what_was_missed_is_not_made_up_for() {
        let mut facts = facts(Tier::TimeSensitive);
        let at = |minutes: i64| facts.asked_at.plus_ms(minutes * 60_000);
        // Told at 0, so due at 5, 15, 35, 75 …
        for (due, round, now, again) in [
            (5, 1, 5, Some((15, 2))),
            (5, 1, 14, Some((15, 2))),
            (5, 1, 15, Some((35, 3))),
            (15, 2, 70, Some((75, 4))),
            (5, 1, 4, Some((5, 1))),
            (0, 0, 1, Some((5, 1))),
        ] {
            let found = facts.passed_over(at(due), round, at(now));
            assert_eq!(found, again.map(|(due, round)| (at(due), round)), "{due} {round} {now}");
        }
        let year = facts.asked_at.plus_ms(365 * 86_400_000);
        let (later, _) = facts.passed_over(at(5), 1, year).unwrap();
        assert!(later > year && later.ms() - year.ms() <= 86_400_000);
        facts.deadline = Some(facts.asked_at.plus_ms(16 * 60_000));
        assert_eq!(facts.passed_over(facts.asked_at, 2, facts.asked_at.plus_ms(15 * 60_000)), None);
    }

    #[test]
    fn a_last_call_comes_before_a_default_is_taken_and_only_then() {
        let mut facts = facts(Tier::Active);
        let hour = facts.asked_at.plus_ms(3_600_000);
        facts.deadline = Some(hour);
        assert_eq!(facts.last_call(), None);
        facts.takes_default = true;
        assert_eq!(facts.last_call(), Some(hour.plus_ms(-6 * 60_000)));
        assert_eq!(facts.last_call_again(hour.plus_ms(-60_000)), Some(hour.plus_ms(-30_000)));
        assert_eq!(facts.last_call_again(hour.plus_ms(-30_000)), None);
        facts.deadline = Some(facts.asked_at.plus_ms(86_400_000));
        assert_eq!(facts.last_call(), Some(facts.asked_at.plus_ms(86_400_000 - 600_000)));
        facts.deadline = Some(facts.asked_at.plus_ms(60_000));
        assert_eq!(facts.last_call(), None);
    }

    #[test]
    fn tiers_spaces_and_channels_can_be_left_out_and_passive_is_for_the_inbox_alone() {
        let space = SpaceId::from_parts(1, 1);
        let mut preferences = Preferences { muted: [space].into(), ..Preferences::default() };
        preferences.not.insert(Tier::Active, [Channel::Email].into());
        assert!(preferences.wants(Channel::Email, &facts(Tier::TimeSensitive)));
        assert!(preferences.wants(Channel::Ntfy, &facts(Tier::Active)));
        assert!(!preferences.wants(Channel::Email, &facts(Tier::Active)));
        assert!(!preferences.wants(Channel::Ntfy, &facts(Tier::Passive)));
        assert!(!preferences.wants(Channel::Ntfy, &Facts { space_id: Some(space), ..facts(Tier::TimeSensitive) }));
    }

    #[test]
    fn preferences_survive_being_stored_and_faults_are_named() {
        let mut preferences = quiet("22:00", "07:00", true);
        preferences.not.insert(Tier::Active, [Channel::Email].into());
        let stored = serde_json::to_string(&preferences).unwrap();
        assert_eq!(serde_json::from_str::<Preferences>(&stored).unwrap(), preferences);
        assert_eq!(serde_json::from_str::<Preferences>("{}").unwrap(), Preferences::default());
        assert_eq!(preferences.check(), Ok(()));
        assert!(
            Preferences { zone: "Mars/Olympus".into(), ..preferences.clone() }.check().unwrap_err().contains("Mars")
        );
        assert!(quiet("22:00", "22:00", true).check().is_err());
        assert!(Preferences { grace_seconds: 601, ..preferences }.check().is_err());
    }

    #[test]
    fn tries_are_given_up_after_hours_for_people_and_days_for_harnesses() {
        let whole = |kind| (1..).map_while(|tries| retry_after(kind, tries, 0.0)).sum::<i64>() / 1000;
        assert_eq!(whole(Kind::Asked), 6_680);
        assert!((3 * 86_400..5 * 86_400).contains(&whole(Kind::Answered)), "{}", whole(Kind::Answered));
        assert_eq!(retry_after(Kind::Asked, 1, 1.0), Some(6_000));
        assert_eq!(retry_after(Kind::Asked, 0, 0.0), None);
    }
}
