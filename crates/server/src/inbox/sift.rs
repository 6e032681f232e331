//! Which questions are shown: those of a space, of a harness, on a shelf or in a state. It stands in the address, so it holds for
//! links, for reloads and for what the script fetches.

use std::collections::{BTreeMap, HashMap};

use askama::Template;
use askama::filters::HtmlSafe;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use chips_protocol::api::{Ask, AskState, Run, SpaceName};
use chips_protocol::text::shown;
use chips_protocol::{HarnessId, RunId, SpaceId};
use serde::Deserialize;

use super::card::Shelf;
use crate::words::Words;

/// What a list can be narrowed to beside a space and a harness.
pub(crate) trait Part: Copy + Eq + 'static {
    /// Every one that can be shown alone.
    const EVERY: &'static [Self];
    /// As it stands in an address.
    fn name(self) -> &'static str;
    /// What people call it.
    fn called(self, w: &'static Words) -> &'static str;
    /// What is said where none is chosen.
    fn any(w: &'static Words) -> &'static str;
}

impl Part for Shelf {
    const EVERY: &'static [Self] = &[Self::Waiting, Self::Going, Self::Gone];

    fn name(self) -> &'static str {
        Self::name(self)
    }

    fn called(self, w: &'static Words) -> &'static str {
        Self::called(self, w)
    }

    fn any(w: &'static Words) -> &'static str {
        w.any_shelf
    }
}

/// The states that a closed question can be in.
impl Part for AskState {
    const EVERY: &'static [Self] = &[Self::Answered, Self::TimedOut, Self::Settled, Self::Withdrawn];

    fn name(self) -> &'static str {
        self.as_str()
    }

    fn called(self, w: &'static Words) -> &'static str {
        w.state(self)
    }

    fn any(w: &'static Words) -> &'static str {
        w.all_states
    }
}

/// The fields of the form.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct SiftQuery {
    #[serde(default)]
    space: String,
    #[serde(default)]
    harness: String,
    #[serde(default)]
    state: String,
}

/// What is shown; everything where nothing is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sift<P = Shelf> {
    /// Of this space alone.
    pub space: Option<SpaceId>,
    /// Of this harness alone.
    pub harness: Option<HarnessId>,
    /// On this shelf, or in this state, alone.
    pub part: Option<P>,
    /// The address names a filter that can't be read: then nothing is shown, for nobody knows what was meant.
    pub unreadable: bool,
}

impl<P: Part> Sift<P> {
    /// Everything.
    const ALL: Self = Self { space: None, harness: None, part: None, unreadable: false };

    /// What an address says.
    pub fn of(query: &SiftQuery) -> Self {
        let space = query.space.parse().ok();
        let harness = query.harness.parse().ok();
        let part = P::EVERY.iter().copied().find(|part| part.name() == query.state);
        let lost = |text: &str, read: bool| !text.is_empty() && !read;
        let unreadable = lost(&query.space, space.is_some())
            || lost(&query.harness, harness.is_some())
            || lost(&query.state, part.is_some());
        Self { space, harness, part, unreadable }
    }

    /// What an address says whose query may not even be one.
    pub fn read(query: Result<Query<SiftQuery>, QueryRejection>) -> Self {
        query.map_or(Self { unreadable: true, ..Self::ALL }, |query| Self::of(&query.0))
    }

    /// Whether everything is shown.
    pub fn is_all(&self) -> bool {
        *self == Self::ALL
    }

    /// Whether a run's questions are shown.
    pub fn takes(&self, run: Option<&Run>) -> bool {
        let space =
            !self.unreadable && self.space.is_none_or(|space| run.is_some_and(|run| run.space_id == Some(space)));
        space && self.harness.is_none_or(|harness| run.is_some_and(|run| run.harness_id == harness))
    }

    /// Whether a shelf, or what is in a state, is shown.
    pub fn shows(&self, part: P) -> bool {
        self.part.is_none_or(|only| only == part)
    }

    /// As it stands in an address, with `&` before each field; empty where everything is shown.
    pub fn address(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let space = self.space.map(|id| id.to_string());
        let harness = self.harness.map(|id| id.to_string());
        let fields = [("space", space), ("harness", harness), ("state", self.part.map(|part| part.name().to_owned()))];
        for (name, value) in fields {
            if let Some(value) = value {
                query.append_pair(name, &value);
            }
        }
        match query.finish() {
            query if query.is_empty() => query,
            query => format!("&{query}"),
        }
    }
}

/// Those who ask these, with their names.
pub(crate) fn askers_of(asks: &[Ask], runs: &HashMap<RunId, Run>) -> Vec<(HarnessId, String)> {
    let mut askers: BTreeMap<HarnessId, &str> = BTreeMap::new();
    for ask in asks {
        if let Some(run) = runs.get(&ask.ask.envelope.run_id) {
            askers.entry(run.harness_id).or_insert(&ask.asker.name);
        }
    }
    let mut askers: Vec<_> = askers.into_iter().map(|(id, name)| (id, name.to_owned())).collect();
    askers.sort_by_cached_key(|(_, name)| name.to_lowercase());
    askers
}

/// The fields above a list, folded: they say what is chosen, and take a line until somebody opens them.
#[derive(Template)]
#[template(path = "sift.html")]
pub(crate) struct SiftForm {
    w: &'static Words,
    choices: Vec<Choice>,
    /// Where everything is shown again, unless it is.
    all: Option<&'static str>,
}

impl HtmlSafe for SiftForm {}

/// One of its fields.
struct Choice {
    name: &'static str,
    any: &'static str,
    options: Vec<Entry>,
}

struct Entry {
    value: String,
    label: String,
    chosen: bool,
}

impl SiftForm {
    /// The fields for these spaces and for those who ask. `all` is where everything is shown again.
    pub fn new<P: Part>(
        w: &'static Words,
        sift: Sift<P>,
        spaces: &[SpaceName],
        mut askers: Vec<(HarnessId, String)>,
        all: Option<&'static str>,
    ) -> Self {
        if let Some(harness) = sift.harness
            && askers.iter().all(|(id, _)| *id != harness)
        {
            askers.push((harness, harness.to_string()));
        }
        let spaces = spaces.iter().map(|space| Entry {
            value: space.id.to_string(),
            label: shown(&space.name),
            chosen: sift.space == Some(space.id),
        });
        let harnesses = askers.into_iter().map(|(id, name)| Entry {
            value: id.to_string(),
            label: shown(&name),
            chosen: sift.harness == Some(id),
        });
        let parts = P::EVERY.iter().map(|part| Entry {
            value: part.name().to_owned(),
            label: part.called(w).to_owned(),
            chosen: sift.part == Some(*part),
        });
        let mut choices = vec![
            Choice { name: "space", any: w.any_space, options: spaces.collect() },
            Choice { name: "harness", any: w.any_harness, options: harnesses.collect() },
            Choice { name: "state", any: P::any(w), options: parts.collect() },
        ];
        // A single space or harness tells nothing apart.
        choices.retain(|choice| choice.options.len() > 1 || choice.options.iter().any(|entry| entry.chosen));
        Self { w, choices, all }
    }

    /// What is chosen.
    fn chosen(&self) -> impl Iterator<Item = &str> {
        self.choices.iter().flat_map(|choice| &choice.options).filter(|entry| entry.chosen).map(|entry| &*entry.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_an_address_is_read_again() {
        let query = |space: &str, harness: &str, state: &str| {
            Sift::<Shelf>::of(&SiftQuery { space: space.into(), harness: harness.into(), state: state.into() })
        };
        let (space, harness) = ("spc_01K4ZQPX000000000000000001", "har_01K4ZQPX000000000000000002");
        assert!(query("", "", "").is_all());
        for odd in [query("x", "", ""), query("", "hrn_BAD", ""), query("", "", "closed"), query(harness, space, "%00")]
        {
            assert!(!odd.is_all() && odd.unreadable && !odd.takes(None), "{odd:?}");
        }
        let some = query("", "", "going");
        assert_eq!((some.part, some.address()), (Some(Shelf::Going), "&state=going".to_owned()));
        assert!(some.shows(Shelf::Going) && !some.shows(Shelf::Waiting));
        assert!(!some.is_all() && some.takes(None));
    }
}
