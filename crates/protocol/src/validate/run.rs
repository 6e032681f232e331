//! The checks of the body of `POST /v1/runs`.

use std::collections::BTreeMap;

use serde_json::Value;
use url::Url;

use super::checks::{Checks, Field, Place, TextRule};
use super::{Fault, FaultCode};
use crate::api::NewRun;
use crate::limits;

const FIELDS: [&str; 7] = ["run_id", "space_id", "title", "url", "labels", "parent_run_id", "lease_seconds"];
const TITLE: TextRule = TextRule::exact(limits::RUN_TITLE);
const URL: TextRule = TextRule::exact(limits::RUN_URL);
const LABEL_KEY: TextRule = TextRule::exact(limits::RUN_LABEL_KEY);
const LABEL_VALUE: TextRule = TextRule::exact(limits::RUN_LABEL_VALUE);

pub(super) fn new_run(value: &Value) -> Result<NewRun, Vec<Fault>> {
    let mut checks = Checks::default();
    let typed = fields(&mut checks, value);
    checks.finish(typed)
}

fn fields(checks: &mut Checks, value: &Value) -> Option<NewRun> {
    let document = Field { value, place: Place::ROOT };
    let object = checks.object(&document)?;
    let run_id = checks.optional(object, "run_id").and_then(|field| checks.id(field));
    let space_id = checks.optional(object, "space_id").and_then(|field| checks.id(field));
    let title = checks.optional(object, "title").and_then(|field| checks.text(field, &TITLE));
    let url = checks.optional(object, "url").and_then(|field| web_address(checks, field));
    let labels = checks.optional(object, "labels").and_then(|field| labels(checks, field));
    let parent_run_id = checks.optional(object, "parent_run_id").and_then(|field| {
        let parent = checks.id(field);
        if parent.is_some() && parent == run_id {
            checks.fault(&field.place, FaultCode::NotAllowed, "a run is no part of itself; name another run");
        }
        parent
    });
    let lease_seconds = checks.optional(object, "lease_seconds").and_then(|field| checks.seconds(field));
    checks.unknown_fields(object, &FIELDS);
    Some(NewRun {
        run_id,
        space_id,
        title: title.map(str::to_owned),
        url: url.map(str::to_owned),
        labels,
        parent_run_id,
        lease_seconds,
    })
}

/// An address that a person may be led to: http or https, with a host, and without a name or password in it (which
/// would show `bank.example` before the host that is really meant).
fn web_address<'v>(checks: &mut Checks, field: Field<'v, '_>) -> Option<&'v str> {
    let text = checks.text(field, &URL)?;
    // A reader of URLs passes over white space and takes `\` for `/`; what people are shown must be what is opened.
    let authority = ["http://", "https://"]
        .iter()
        .find_map(|scheme| {
            let start = text.get(..scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then(|| &text[scheme.len()..])
        })
        .map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let fault = match (authority, Url::parse(text)) {
        (None, _) | (_, Err(_)) => Some("`url` must be a whole http or https address"),
        (Some(authority), Ok(_)) if authority.contains('@') => {
            Some("`url` must have no name or password before the host")
        }
        _ if text.contains(|c: char| c.is_whitespace() || c == '\\') => {
            Some("`url` must have no white space and no backslash; escape them with %")
        }
        _ => None,
    };
    if let Some(message) = fault {
        checks.fault(&field.place, FaultCode::NotAllowed, message);
    }
    fault.is_none().then_some(text)
}

fn labels(checks: &mut Checks, field: Field<'_, '_>) -> Option<BTreeMap<String, String>> {
    let object = checks.object(&field)?;
    let count = object.map.len();
    if count > limits::RUN_LABELS {
        let message = format!("`labels` has {count} labels; at most {} are allowed", limits::RUN_LABELS);
        checks.fault(&field.place, FaultCode::TooMany, message);
    }
    let sorted: BTreeMap<&String, &Value> = object.map.iter().collect();
    let mut labels = BTreeMap::new();
    for (key, value) in sorted.into_iter().take(limits::RUN_LABELS) {
        let place = field.place.member(key);
        checks.text_rule(&place, key, &LABEL_KEY);
        if let Some(text) = checks.text(Field { value, place }, &LABEL_VALUE) {
            labels.insert(key.clone(), text.to_owned());
        }
    }
    Some(labels)
}
