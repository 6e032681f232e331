//! `docs/protocol/`: the two events in prose and tables, from the types, the schemas and the test vectors; and
//! `docs/problems/`, the pages that the protocol's crate carries.

mod rules;
mod table;

use std::fmt::Write;
use std::path::Path;

use anyhow::Context;
use chips_protocol::problem::{FAULTS_PAGE, ProblemCode, page};
use chips_protocol::{EventType, schema};
use serde_json::Value;

use crate::{Generated, root};
use rules::Rule;

/// One page for each event type, one for what they share, and one for each problem.
pub fn files() -> anyhow::Result<Vec<Generated>> {
    let protocol = Path::new("docs/protocol");
    let mut files = vec![(protocol.join("README.md"), overview()?)];
    for event_type in EventType::ALL {
        files.push((protocol.join(format!("{}.md", event_type.as_str())), event_page(event_type)?));
    }
    let problems = Path::new("docs/problems");
    for &code in ProblemCode::ALL {
        files.push((problems.join(format!("{}.md", code.as_str())), page(code).to_owned()));
    }
    files.push((problems.join("faults.md"), FAULTS_PAGE.to_owned()));
    Ok(files)
}

fn event_page(event_type: EventType) -> anyhow::Result<String> {
    let name = event_type.as_str();
    let about = rules::about(event_type);
    let mut page = String::new();
    writeln!(page, "# {name}\n\n{}\n", schema::summary(event_type))?;
    writeln!(page, "- Direction: {}\n- Sent by: {}", about.direction, about.sent_by)?;
    writeln!(page, "- Belongs to a run: yes")?;
    writeln!(page, "- Schema of the stored form: [{0}](../../schemas/{0})\n", schema::file_name(event_type))?;

    writeln!(page, "## Fields\n\n{}", table::HEAD)?;
    for row in table::rows(&schema::of(event_type)) {
        writeln!(page, "{row}")?;
    }
    writeln!(page, "\n{}\n", table::LEGEND)?;

    writeln!(page, "## Rules\n\nEach rule names its fault and a [test vector](../../vectors/) that breaks it.\n")?;
    rule_list(&mut page, about.rules)?;
    writeln!(page, "\nWhat only the ask, the run and the log can tell:\n")?;
    for rule in about.beyond_one_event {
        writeln!(page, "- {rule}")?;
    }

    writeln!(page, "\n## Example\n\nAs it is written:\n\n```json\n{:#}\n```\n", vector_input(about.write_vector)?)?;
    writeln!(page, "As it is stored:\n\n```json\n{}\n```", schema::example(event_type).trim_end())?;
    Ok(page)
}

fn overview() -> anyhow::Result<String> {
    let mut page = String::new();
    writeln!(page, "{}\n", rules::OVERVIEW.trim_end())?;
    writeln!(page, "## Events\n")?;
    for event_type in EventType::ALL {
        writeln!(page, "- [{0}]({0}.md): {1}", event_type.as_str(), schema::summary(event_type))?;
    }
    writeln!(page, "\n## Identifiers\n\n| prefix | of |\n| --- | --- |")?;
    for (prefix, of) in rules::prefixes() {
        writeln!(page, "| `{prefix}` | {of} |")?;
    }
    writeln!(page, "\n{}\n", rules::IDENTIFIERS)?;
    writeln!(page, "## Rules that both events share\n")?;
    rule_list(&mut page, rules::SHARED)?;
    writeln!(page, "\n## Limits\n\n| what | limit |\n| --- | --- |")?;
    for (what, limit) in rules::limits() {
        writeln!(page, "| {what} | {limit} |")?;
    }
    Ok(page)
}

fn rule_list(page: &mut String, rules: &[Rule]) -> anyhow::Result<()> {
    for Rule { text, code, vector } in rules {
        writeln!(page, "- {text} ([`{code}`](../../vectors/invalid/{vector}.json))")?;
    }
    Ok(())
}

/// The document of a valid test vector.
fn vector_input(name: &str) -> anyhow::Result<Value> {
    let path = root().join("vectors/valid").join(name).with_extension("json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
    let mut vector: Value = serde_json::from_str(&text)?;
    Ok(vector["input"].take())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use chips_protocol::validate;

    #[test]
    fn what_is_checked_in_is_what_the_types_say() {
        for (path, text) in files().unwrap() {
            let old = format!("{} is old; run `cargo run -p xtask -- docs`", path.display());
            assert_eq!(crate::checked_in(&path), text, "{old}");
        }
    }

    #[test]
    fn no_page_is_left_behind() {
        let written: Vec<_> = files().unwrap().into_iter().map(|(path, _)| path).collect();
        for folder in ["docs/protocol", "docs/problems"] {
            for entry in std::fs::read_dir(root().join(folder)).unwrap() {
                let path = Path::new(folder).join(entry.unwrap().file_name());
                assert!(written.contains(&path), "{} is not generated any more", path.display());
            }
        }
    }

    #[test]
    fn each_rule_is_broken_by_its_vector() {
        let every =
            EventType::ALL.into_iter().flat_map(|event_type| rules::about(event_type).rules).chain(rules::SHARED);
        for Rule { code, vector, text } in every {
            let path = root().join("vectors/invalid").join(vector).with_extension("json");
            let file = std::fs::read_to_string(path).unwrap_or_else(|_| panic!("{vector} is no vector: {text}"));
            assert!(file.contains(&format!("\"{code}\"")), "{vector} does not show {code}: {text}");
        }
    }

    #[test]
    fn the_examples_are_events() {
        for event_type in EventType::ALL {
            let write = vector_input(rules::about(event_type).write_vector).unwrap();
            assert_eq!(validate::draft(&write).unwrap().content.event_type(), event_type);
            let stored = serde_json::from_str(schema::example(event_type)).unwrap();
            assert_eq!(validate::stored(&stored).unwrap().content.event_type(), event_type);
        }
    }

    #[test]
    fn the_tables_say_what_the_validator_asks_of_a_write() {
        for event_type in EventType::ALL {
            let needed: Vec<String> = table::needed_in_a_write(&schema::of(event_type));
            let bare = serde_json::json!({ "type": event_type.as_str(), "actor": {} });
            let missing: Vec<String> = validate::draft(&bare)
                .unwrap_err()
                .into_iter()
                .map(|fault| fault.pointer.trim_start_matches('/').replace('/', "."))
                .collect();
            for field in &missing {
                assert!(needed.contains(field), "{field} is needed in a write");
            }
            let top: Vec<_> = needed.iter().filter(|name| !name.contains("[]")).collect();
            // Beside what is missing there are the two that stand in the bare event.
            assert_eq!(top.len(), missing.len() + 2, "{needed:?} {missing:?}");
        }
    }
}
