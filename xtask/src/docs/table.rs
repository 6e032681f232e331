//! The table of an event's fields, out of its schema.

use serde_json::Value;

/// The head of a table of fields.
pub const HEAD: &str = "| field | stored | write | type | |\n| --- | --- | --- | --- | --- |";

/// What the words in the table mean.
pub const LEGEND: &str = "*stored*: whether the field must stand in the form that the log holds and readers get. \
*write*: whether it must stand in what a client sends; Chips *fills in* what it writes itself, whatever the client \
wrote there. A field of a list is needed in each of its items.";

/// What Chips writes itself, whatever the sender wrote.
const FILLED_IN: [&str; 4] = ["ts", "actor.harness_id", "answered_by", "answered_at"];

struct Row<'s> {
    path: String,
    required: bool,
    schema: &'s Value,
}

/// The rows of the table, in the order of the schema.
pub fn rows(schema: &Value) -> Vec<String> {
    walk(schema)
        .iter()
        .map(|row| {
            let description = row.schema["description"].as_str().unwrap_or_default();
            let limits = limits(row.schema);
            let stored = if row.required { "yes" } else { "no" };
            format!(
                "| `{}` | {stored} | {} | {} | {description}{limits} |",
                row.path,
                in_a_write(row),
                type_of(row.schema).replace('|', "\\|"),
            )
        })
        .collect()
}

/// The fields that a write must have, nested ones by their path.
#[cfg(test)]
pub fn needed_in_a_write(schema: &Value) -> Vec<String> {
    walk(schema).into_iter().filter(|row| in_a_write(row) == "yes").map(|row| row.path).collect()
}

fn in_a_write(row: &Row<'_>) -> &'static str {
    match row.path.as_str() {
        path if FILLED_IN.contains(&path) => "filled in",
        "seq" => "never",
        "idempotency_key" => "yes",
        _ if row.required => "yes",
        _ => "no",
    }
}

fn walk(schema: &Value) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    fields(schema, "", &mut rows);
    rows
}

fn fields<'s>(object: &'s Value, prefix: &str, rows: &mut Vec<Row<'s>>) {
    let required = object["required"].as_array();
    for (name, schema) in object["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}{name}");
        let needed = required.is_some_and(|required| required.iter().any(|other| other == name));
        rows.push(Row { path: path.clone(), required: needed, schema });
        match schema["type"].as_str() {
            Some("object") => fields(schema, &format!("{path}."), rows),
            Some("array") => fields(&schema["items"], &format!("{path}[]."), rows),
            _ => {}
        }
    }
}

fn type_of(schema: &Value) -> String {
    if let Some(word) = schema.get("const") {
        return format!("`{word}`");
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" | ");
    }
    match schema["type"].as_str().unwrap_or_default() {
        "array" => format!("{}[]", type_of(&schema["items"])),
        "integer" => "number".to_owned(),
        other => other.to_owned(),
    }
}

/// Limits in words, where the description alone does not say them.
fn limits(schema: &Value) -> String {
    let number = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    let mut said = String::new();
    if schema["pattern"].as_str().is_some_and(|pattern| !pattern.contains("_[0-7]"))
        && let Some(max) = number("maxLength")
    {
        said.push_str(&format!(" At most {} characters.", grouped(max)));
    }
    if let Some(max) = number("maxItems") {
        let min = number("minItems").unwrap_or(0);
        said.push_str(&format!(" {min} to {max} entries."));
    }
    said
}

/// A number with commas between its thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
