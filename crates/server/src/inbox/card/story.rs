//! What has happened to a question, step by step.

use chips_protocol::Timestamp;
use chips_protocol::api::{Ask, AskState};
use chips_store::Sighting;

use super::Viewer;
use super::outcome::{is_viewer, late, sentence};
use crate::inbox::html::{self, Html, TimeAs};

/// A step of a question's story.
pub(super) struct Step {
    pub what: Html,
    pub when: Option<Html>,
    /// It has happened.
    pub done: bool,
    /// It went wrong.
    pub bad: bool,
    /// When, for the order.
    pub at: Option<Timestamp>,
}

impl Step {
    /// A step that went well, or will come.
    pub fn new(what: Html, at: Option<Timestamp>, done: bool, viewer: &Viewer<'_>) -> Self {
        let when = at.map(|moment| html::time(moment, viewer.now, TimeAs::At, "{t}"));
        Self { what, when, done, bad: false, at }
    }
}

/// Puts a step that has happened where it belongs in time.
pub(super) fn place(story: &mut Vec<Step>, step: Step) {
    let later = |other: &Step| !other.done || other.at > step.at;
    let place = story.iter().position(later).unwrap_or(story.len());
    story.insert(place, step);
}

/// Puts in who saw it, and when first.
pub(super) fn tell_seen(story: &mut Vec<Step>, seen: &[Sighting], viewer: &Viewer<'_>) {
    for Sighting { by, at } in seen {
        let what = match is_viewer(by.id, viewer) {
            true => Html::text(viewer.w.story_seen_yours),
            false => Html::phrase(viewer.w.story_seen, &[("who", Html::isolated(&by.name))]),
        };
        place(story, Step::new(what, Some(*at), true, viewer));
    }
}

/// What has happened to an ask and what is still to come, in this order.
pub(super) fn story(ask: &Ask, viewer: &Viewer<'_>) -> Vec<Step> {
    let w = viewer.w;
    let asker = || Html::isolated(&ask.asker.name);
    let who = |pattern| Html::phrase(pattern, &[("who", asker())]);
    let step = |what, at: Option<Timestamp>, done| Step::new(what, at, done, viewer);
    let mut steps = vec![step(who(w.story_asked), Some(ask.ask.envelope.ts), true)];
    let Some(answered) = ask.answer.as_ref().and_then(|event| event.as_answered()) else {
        if let Some(deadline) = ask.deadline {
            steps.push(step(Html::text(w.story_deadline), Some(deadline), false));
        }
        return steps;
    };
    steps.push(step(sentence(ask, viewer, usize::MAX, true), Some(answered.answered_at), true));
    // Who settles or withdraws its own question needs no word of it, and who has acted on an answer has it.
    if matches!(ask.state, AskState::Answered | AskState::TimedOut) {
        match (ask.delivered_at, ask.acknowledged_at) {
            (Some(moment), _) => steps.push(step(who(w.story_delivered), Some(moment), true)),
            (None, None) => steps.push(step(who(w.story_not_delivered), None, false)),
            (None, Some(_)) => {}
        }
    }
    if let Some(moment) = ask.acknowledged_at {
        steps.push(step(who(w.story_acted), Some(moment), true));
    }
    for (what, at) in late(ask, viewer) {
        place(&mut steps, Step { bad: true, ..step(what, Some(at), true) });
    }
    steps
}
