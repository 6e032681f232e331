//! `schemas/`: the JSON Schema of each event type, as `chips_protocol` generates it.

use std::path::Path;

use chips_protocol::{EventType, schema};

use crate::Generated;

/// One file for each event type.
pub fn files() -> Vec<Generated> {
    EventType::ALL
        .map(|event_type| {
            let path = Path::new("schemas").join(schema::file_name(event_type));
            (path, format!("{:#}\n", schema::of(event_type)))
        })
        .into()
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
