//! `schemas/`: the JSON Schema of each event type, as `chips_protocol` generates it, and the description of the endpoints,
//! as `chips_server` does.

use std::path::Path;

use chips_protocol::{EventType, schema};
use chips_server::api::openapi;

use crate::Generated;

/// One file for each event type, and `openapi.json`.
pub fn files() -> Vec<Generated> {
    let schemas = Path::new("schemas");
    let mut files: Vec<Generated> = EventType::ALL
        .map(|event_type| (schemas.join(schema::file_name(event_type)), format!("{:#}\n", schema::of(event_type))))
        .into();
    files.push((schemas.join("openapi.json"), openapi::text().to_owned()));
    files
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_checked_in_is_what_the_types_say() {
        for (path, text) in super::files() {
            assert_eq!(
                crate::checked_in(&path),
                text,
                "{} is old; run `cargo run -p xtask -- schemas`",
                path.display()
            );
        }
    }
}
