//! Events to send, with identifiers of their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// Another identifier with this prefix (`"qst"`), different from all others: the time, the process, and a count.
pub fn new_id(prefix: &str) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let ms = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_millis();
    let mut value = (ms << 80) | (u128::from(std::process::id()) << 40) | u128::from(count);
    let mut ulid = [b'0'; 26];
    for place in ulid.iter_mut().rev() {
        *place = ALPHABET[(value & 31) as usize];
        value >>= 5;
    }
    format!("{prefix}_{}", std::str::from_utf8(&ulid).expect("ASCII"))
}

/// A question with two options, `paint` and `leave`.
pub fn question(question_id: &str) -> Value {
    json!({
        "question_id": question_id,
        "prompt": "The fence is dry. Paint it today?",
        "options": [
            {"value": "paint", "label": "Paint it"},
            {"value": "leave", "label": "Leave it", "description": "It looks like rain on Friday."}
        ]
    })
}

/// The fields of a `question.ask` that are not the envelope's.
pub fn ask_with(questions: &[Value]) -> Value {
    json!({"type": "question.ask", "ask_id": new_id("qst"), "questions": questions})
}

/// One entry of `answers`: chosen values.
pub fn chosen(question_id: &str, values: &[&str]) -> Value {
    json!({"question_id": question_id, "values": values})
}

/// One entry of `answers`: typed text.
pub fn typed(question_id: &str, text: &str) -> Value {
    json!({"question_id": question_id, "values": [], "free_text": text})
}
