//! Every try to tell somebody of a question, as a step of its story.

use chips_core::Who;
use chips_core::notify::{Channel, Kind, Outcome};
use chips_protocol::ParticipantId;
use chips_store::Attempt;
use url::Url;

use super::Viewer;
use super::story::{Step, place as put};
use crate::inbox::html::{self, Html};
use crate::inbox::settings::push::device_name;
use crate::inbox::settings::told::called;
use crate::words::Words;

/// Puts the tries where they belong in time.
pub(super) fn tell(story: &mut Vec<Step>, attempts: &[Attempt], viewer: &Viewer<'_>) {
    for attempt in attempts {
        put(story, step(attempt, viewer));
    }
}

fn step(attempt: &Attempt, viewer: &Viewer<'_>) -> Step {
    let w = viewer.w;
    let (place, own) = place(attempt, viewer);
    let pattern = match attempt.outcome.as_str() {
        "accepted" => w.told_accepted,
        "gone" => w.told_gone,
        "refused" => w.told_refused,
        "timed_out" => w.told_timed_out,
        _ => w.told_failed,
    };
    let mut what = Html::phrase(pattern, &[("where", place), ("what", Html::text(kind(attempt.kind, w)))]);
    let bad = attempt.outcome != Outcome::Accepted.as_str();
    // What the other side calls a message that it took says nothing to people.
    if own && bad && !attempt.detail.is_empty() {
        what = Html::joined([what, Html::isolated(&html::short(&attempt.detail, 160))], ": ");
    }
    Step { bad, ..Step::new(what, Some(attempt.at), true, viewer) }
}

/// Where to, and whether everybody may know all of it. What people call their own endpoints and what those answer is theirs:
/// the name of a topic is as good as a key to it. So is the path of a harness's webhook, which is called by its address: of that the
/// host is said, and `chips harness webhook list` says the rest to whoever runs the server.
fn place(attempt: &Attempt, viewer: &Viewer<'_>) -> (Html, bool) {
    let channel = Html::text(called(attempt.channel, viewer.w));
    let (name, own) = match &attempt.person {
        Some(person) => match (person.id, viewer.identity.sender.who) {
            (ParticipantId::Person(theirs), Who::Person(own)) if theirs == own => (&attempt.name, true),
            _ => (&person.name, false),
        },
        None => (&attempt.name, false),
    };
    let name = match attempt.channel {
        Channel::HarnessWebhook => Html::isolated(&host_of(name)),
        Channel::WebPush if own => device_name(name, viewer.w),
        _ => Html::isolated(name),
    };
    (Html::phrase("{name} ({channel})", &[("name", name), ("channel", channel)]), own)
}

fn host_of(address: &str) -> String {
    Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

const fn kind(kind: Kind, w: &Words) -> &'static str {
    match kind {
        Kind::Asked => w.told_asked,
        Kind::Reminder => w.told_reminder,
        Kind::LastCall => w.told_last_call,
        Kind::Closed => w.told_closed,
        Kind::Answered => w.told_answered,
    }
}
