//! Which of the open questions are shown: those of a space, of a harness, on a shelf. It stands in the address, so it holds for
//! links, for reloads and for what the script fetches.

use std::collections::{BTreeMap, HashMap};

use askama::Template;
use askama::filters::HtmlSafe;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use chips_protocol::api::{Ask, Run, SpaceName};
use chips_protocol::text::shown;
use chips_protocol::{HarnessId, RunId, SpaceId};
use serde::Deserialize;

use super::card::Shelf;
use super::words::Words;

/// The shelves that can be shown alone.
const SHELVES: [Shelf; 3] = [Shelf::Waiting, Shelf::Going, Shelf::Gone];

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sift {
    /// Of this space alone.
    pub space: Option<SpaceId>,
    /// Of this harness alone.
    pub harness: Option<HarnessId>,
    /// On this shelf alone.
    pub shelf: Option<Shelf>,
    /// The address names a filter that can't be read: then nothing is shown, for nobody knows what was meant.
    pub unreadable: bool,
}

impl Sift {
    /// What an address says.
    pub fn of(query: &SiftQuery) -> Self {
        let space = query.space.parse().ok();
        let harness = query.harness.parse().ok();
        let shelf = SHELVES.into_iter().find(|shelf| shelf.name() == query.state);
        let lost = |text: &str, read: bool| !text.is_empty() && !read;
        let unreadable = lost(&query.space, space.is_some())
            || lost(&query.harness, harness.is_some())
            || lost(&query.state, shelf.is_some());
        Self { space, harness, shelf, unreadable }
    }

    /// What an address says whose query may not even be one.
    pub fn read(query: Result<Query<SiftQuery>, QueryRejection>) -> Self {
        query.map_or(Self { unreadable: true, ..Self::default() }, |query| Self::of(&query.0))
    }

    /// Whether everything is shown.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a run's questions are shown.
    pub fn takes(&self, run: Option<&Run>) -> bool {
        let space =
            !self.unreadable && self.space.is_none_or(|space| run.is_some_and(|run| run.space_id == Some(space)));
        space && self.harness.is_none_or(|harness| run.is_some_and(|run| run.harness_id == harness))
    }

    /// Whether a shelf is shown.
    pub fn shows(&self, shelf: Shelf) -> bool {
        self.shelf.is_none_or(|only| only == shelf)
    }

    /// As it stands in an address, with `&` before each part; empty where everything is shown.
    pub fn address(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let space = self.space.map(|id| id.to_string());
        let harness = self.harness.map(|id| id.to_string());
        let parts =
            [("space", space), ("harness", harness), ("state", self.shelf.map(|shelf| shelf.name().to_owned()))];
        for (name, value) in parts {
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

/// The form above the list.
#[derive(Template)]
#[template(path = "sift.html")]
pub(crate) struct SiftForm {
    w: &'static Words,
    choices: Vec<Choice>,
    sifted: bool,
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
    /// The form for these spaces and for those who ask; none where there is nothing to tell apart.
    pub fn new(
        w: &'static Words,
        sift: Sift,
        spaces: &[SpaceName],
        asks: &[Ask],
        runs: &HashMap<RunId, Run>,
    ) -> Option<Self> {
        let mut askers: BTreeMap<HarnessId, String> = BTreeMap::new();
        for ask in asks {
            if let Some(run) = runs.get(&ask.ask.envelope.run_id) {
                askers.entry(run.harness_id).or_insert_with(|| shown(&ask.asker.name));
            }
        }
        if let Some(harness) = sift.harness {
            askers.entry(harness).or_insert_with(|| harness.to_string());
        }
        if sift.is_all() && spaces.len() < 2 && askers.len() < 2 {
            return None;
        }
        let spaces = spaces.iter().map(|space| Entry {
            value: space.id.to_string(),
            label: shown(&space.name),
            chosen: sift.space == Some(space.id),
        });
        let mut harnesses: Vec<Entry> = askers
            .into_iter()
            .map(|(id, label)| Entry { value: id.to_string(), label, chosen: sift.harness == Some(id) })
            .collect();
        harnesses.sort_by_cached_key(|entry| entry.label.to_lowercase());
        let shelves = SHELVES.into_iter().map(|shelf| Entry {
            value: shelf.name().to_owned(),
            label: shelf.called(w).to_owned(),
            chosen: sift.shelf == Some(shelf),
        });
        let mut choices = vec![
            Choice { name: "space", any: w.any_space, options: spaces.collect() },
            Choice { name: "harness", any: w.any_harness, options: harnesses },
            Choice { name: "state", any: w.any_shelf, options: shelves.collect() },
        ];
        // A single space or harness tells nothing apart.
        choices.retain(|choice| choice.options.len() > 1 || choice.options.iter().any(|entry| entry.chosen));
        Some(Self { w, choices, sifted: !sift.is_all() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_an_address_is_read_again() {
        let query = |space: &str, harness: &str, state: &str| {
            Sift::of(&SiftQuery { space: space.into(), harness: harness.into(), state: state.into() })
        };
        let (space, harness) = ("spc_01K4ZQPX000000000000000001", "har_01K4ZQPX000000000000000002");
        assert!(query("", "", "").is_all());
        for odd in [query("x", "", ""), query("", "hrn_BAD", ""), query("", "", "closed"), query(harness, space, "%00")]
        {
            assert!(!odd.is_all() && odd.unreadable && !odd.takes(None), "{odd:?}");
        }
        let some = query("", "", "going");
        assert_eq!((some.shelf, some.address()), (Some(Shelf::Going), "&state=going".to_owned()));
        assert!(some.shows(Shelf::Going) && !some.shows(Shelf::Waiting));
        assert!(!some.is_all() && some.takes(None));
    }
}
