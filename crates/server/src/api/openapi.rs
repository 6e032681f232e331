//! The description of the endpoints (OpenAPI 3.1), built from one table and the schemas of the protocol's types.
//!
//! `schemas/openapi.json` is this text, checked in; a test holds the two together, and another holds the table against
//! the router.

use std::sync::LazyLock;

use chips_protocol::api::{Ask, AsksPage, EventsPage, Me, NewRun, Run};
use chips_protocol::problem::{Problem, ProblemCode};
use chips_protocol::schema::AnyEvent;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::describe::{Body, Endpoint, In, OPERATIONS, Parameter, Reply};

/// The document as text, indented, with a line feed at its end.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", document()));
    &TEXT
}

/// The path and the methods of every endpoint that the document describes.
pub fn described() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut paths: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
    for endpoint in OPERATIONS {
        match paths.iter_mut().find(|(path, _)| *path == endpoint.path) {
            Some((_, methods)) => methods.push(endpoint.method),
            None => paths.push((endpoint.path, vec![endpoint.method])),
        }
    }
    paths
}

fn document() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for endpoint in OPERATIONS {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method.to_ascii_lowercase()] = operation(endpoint, &mut generator);
    }
    generator.subschema_for::<Problem>();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Chips",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Where AI agents ask people.",
            "description": "A harness asks with a `question.ask`, a person taps, the harness goes on with the \
                `question.answered`. Clients ignore fields that they don't know.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The server that serves this document." }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`chips_hk_…` speaks for a harness, `chips_uk_…` for a person.",
                },
            },
            "responses": {
                "Problem": {
                    "description": "A refusal; `code` says which, and the page at `type` what to do.",
                    "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
                },
            },
            "schemas": schemas,
        },
    })
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": endpoint.id,
        "summary": endpoint.summary,
        "description": endpoint.description,
    });
    if endpoint.public {
        operation["security"] = json!([]);
    }
    if !endpoint.parameters.is_empty() {
        operation["parameters"] = endpoint.parameters.iter().map(parameter).collect();
    }
    if let Some(body) = endpoint.body {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema(body, generator) } } });
    }
    let mut responses = Map::new();
    for Reply { status, description, media_type, body } in endpoint.replies {
        let mut response = json!({ "description": description });
        if *status != 204 {
            response["content"] = json!({ *media_type: { "schema": schema(*body, generator) } });
        }
        responses.insert(status.to_string(), response);
    }
    for (status, codes) in problems(endpoint) {
        let codes: Vec<String> = codes.iter().map(|code| format!("`{}`", code.as_str())).collect();
        responses.insert(
            status.to_string(),
            json!({
                "description": codes.join(", "),
                "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
            }),
        );
    }
    operation["responses"] = responses.into();
    operation
}

/// The problems of an endpoint by status, those that every endpoint can answer with included.
fn problems(endpoint: &Endpoint) -> Vec<(u16, Vec<ProblemCode>)> {
    let mut codes = vec![ProblemCode::Misdirected, ProblemCode::TokenInQuery];
    if !endpoint.public {
        codes.extend([ProblemCode::Unauthenticated, ProblemCode::RateLimited, ProblemCode::BadQuery]);
    }
    if endpoint.body.is_some() {
        codes.extend([
            ProblemCode::UnsupportedMediaType,
            ProblemCode::TooLarge,
            ProblemCode::MalformedJson,
            ProblemCode::DuplicateKey,
            ProblemCode::TooDeep,
        ]);
    }
    codes.extend(endpoint.problems);
    codes.sort_by_key(|code| ProblemCode::ALL.iter().position(|known| known == code));
    codes.dedup();
    let mut by_status: Vec<(u16, Vec<ProblemCode>)> = Vec::new();
    for code in codes {
        match by_status.iter_mut().find(|(status, _)| *status == code.status()) {
            Some((_, codes)) => codes.push(code),
            None => by_status.push((code.status(), vec![code])),
        }
    }
    by_status.sort_by_key(|(status, _)| *status);
    by_status
}

fn parameter(Parameter { name, place, description, schema }: &Parameter) -> Value {
    let schema: Value = serde_json::from_str(schema).unwrap_or(Value::Bool(true));
    let mut parameter = json!({
        "name": name,
        "in": match place { In::Path => "path", In::Query => "query", In::Header => "header" },
        "description": description,
        "schema": schema,
    });
    if matches!(place, In::Path) {
        parameter["required"] = true.into();
    }
    parameter
}

fn schema(body: Body, generator: &mut SchemaGenerator) -> Value {
    fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
        generator.subschema_for::<T>().to_value()
    }
    match body {
        Body::Event => of::<AnyEvent>(generator),
        Body::EventsPage => of::<EventsPage>(generator),
        Body::Ask => of::<Ask>(generator),
        Body::AsksPage => of::<AsksPage>(generator),
        Body::NewRun => of::<NewRun>(generator),
        Body::Run => of::<Run>(generator),
        Body::Me => of::<Me>(generator),
        Body::Write => json!({
            "description": "An event as its sender writes it: the stored form, with an `idempotency_key`, and without \
                what Chips writes itself (`ts`, `seq`, `actor.harness_id`, `answered_by`, `answered_at`).",
            "type": "object",
            "required": ["v", "type", "id", "workspace_id", "run_id", "idempotency_key", "actor", "ask_id"],
        }),
        Body::Text => json!({ "type": "string" }),
        Body::Object => json!({ "type": "object" }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_checked_in_is_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/openapi.json");
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        assert!(checked_in == text(), "schemas/openapi.json is old; run `cargo run -p xtask -- schemas`");
    }

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let mut routed: Vec<&str> = super::super::routes().into_iter().map(|(path, _)| path).collect();
        let mut described: Vec<&str> = described().into_iter().map(|(path, _)| path).collect();
        routed.sort_unstable();
        described.sort_unstable();
        assert_eq!(routed, described);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
            match value {
                Value::Object(members) => {
                    for (name, member) in members {
                        match member {
                            Value::String(target) if name == "$ref" => found.push(target),
                            member => references(member, found),
                        }
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let document: Value = serde_json::from_str(text()).unwrap();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 10);
        for target in found {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{target}");
        }
    }

    #[test]
    fn every_parameter_of_a_path_is_described() {
        for endpoint in OPERATIONS {
            let named: Vec<&str> =
                endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            let described: Vec<&str> = endpoint
                .parameters
                .iter()
                .filter(|parameter| matches!(parameter.place, In::Path))
                .map(|parameter| parameter.name)
                .collect();
            assert_eq!(named, described, "{}", endpoint.path);
            for parameter in endpoint.parameters {
                assert!(serde_json::from_str::<Value>(parameter.schema).unwrap().is_object(), "{}", parameter.name);
            }
        }
    }
}
