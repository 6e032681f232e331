//! Where in a text a JSON pointer (RFC 6901) leads.

/// Finds the value that a pointer leads to in a text that is valid JSON, as a byte offset. Where there is no such value
/// (it is missing, say), the innermost one on the way to it that is there.
pub fn find(text: &str, pointer: &str) -> usize {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    scanner.space();
    let mut found = scanner.at;
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let inside = match scanner.peek() {
            Some(b'{') => scanner.member(&segment),
            Some(b'[') => segment.parse().is_ok_and(|index| scanner.item(index)),
            _ => false,
        };
        if !inside {
            break;
        }
        found = scanner.at;
    }
    found
}

/// Line and column (in characters) of a byte offset, both from 1.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    (line, column)
}

/// Walks over a text that is known to be valid JSON.
struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Steps over a character that separates, and the space round it.
    fn step(&mut self) {
        self.space();
        self.at += 1;
        self.space();
    }

    /// From the start of an object to the value of this member; false where it has none.
    fn member(&mut self, name: &str) -> bool {
        self.step();
        while self.peek() == Some(b'"') {
            let from = self.at;
            self.string();
            let key: Option<String> = self.bytes.get(from..self.at).and_then(|key| serde_json::from_slice(key).ok());
            self.step();
            if key.as_deref() == Some(name) {
                return true;
            }
            self.value();
            self.step();
        }
        false
    }

    /// From the start of an array to this item; false where it has fewer.
    fn item(&mut self, index: usize) -> bool {
        self.step();
        for _ in 0..index {
            if matches!(self.peek(), None | Some(b']')) {
                return false;
            }
            self.value();
            self.space();
            if self.peek() != Some(b',') {
                return false;
            }
            self.step();
        }
        !matches!(self.peek(), None | Some(b']'))
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
    }

    /// Steps over a value, however deep.
    fn value(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                None => return,
                Some(b'"') => self.string(),
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') if depth == 0 => return,
                Some(b'}' | b']') => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',') if depth == 0 => return,
                Some(b',' | b':') => self.at += 1,
                Some(byte) if byte.is_ascii_whitespace() => self.at += 1,
                Some(_) => {
                    let rest = &self.bytes[self.at..];
                    let end = rest.iter().position(|byte| b",]} \t\r\n".contains(byte));
                    self.at += end.unwrap_or(rest.len());
                }
            }
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const TEXT: &str = r#" {
  "a": [1, {"b/c": "x, \"]}", "d~": null}, []],
  "é": { "f": -1.5e3 }
}"#;

    #[test]
    fn a_pointer_leads_to_the_value() {
        for (pointer, line, column, at) in [
            ("", 1, 2, "{"),
            ("/a", 2, 8, "[1"),
            ("/a/0", 2, 9, "1"),
            ("/a/1/b~1c", 2, 20, "\"x,"),
            ("/a/1/d~0", 2, 37, "null"),
            ("/a/2", 2, 44, "[]"),
            ("/é/f", 3, 15, "-1.5e3"),
        ] {
            let offset = find(TEXT, pointer);
            assert!(TEXT[offset..].starts_with(at), "{pointer}: {}", &TEXT[offset..]);
            assert_eq!(line_and_column(TEXT, offset), (line, column), "{pointer}");
        }
    }

    #[test]
    fn what_is_missing_is_placed_where_it_belongs() {
        for (pointer, at) in [("/b", "{"), ("/a/9", "[1"), ("/a/2/0", "[]"), ("/a/0/x", "1"), ("/é/g/h", "{ \"f\"")] {
            let offset = find(TEXT, pointer);
            assert!(TEXT[offset..].starts_with(at) || (at == "{" && offset == 1), "{pointer}: {}", &TEXT[offset..]);
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn pointers(value: &Value, prefix: &str, all: &mut Vec<String>) {
        all.push(prefix.to_owned());
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointers(item, &format!("{prefix}/{index}"), all);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    pointers(member, &format!("{prefix}/{}", name.replace('~', "~0").replace('/', "~1")), all);
                }
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn every_pointer_leads_to_its_value(value in json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let mut all = Vec::new();
            pointers(&value, "", &mut all);
            for pointer in all {
                let rest = &text[find(&text, &pointer)..];
                let found: Value = serde_json::Deserializer::from_str(rest).into_iter().next().unwrap().unwrap();
                prop_assert_eq!(Some(&found), value.pointer(&pointer), "{}", pointer);
            }
        }
    }
}
