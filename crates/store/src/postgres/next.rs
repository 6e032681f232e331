//! The next version, as far as the database goes: for tests of upgrades.

use super::Step;

/// The steps of the next version, where this process plays it: in a debug build, `CHIPS_TEST_NEXT_STEP` names a file with one more step
/// than this version has. Servers of this version may go on working on what it leads to, unless the file begins with `-- alone`.
/// In any other build there is none.
#[cfg(debug_assertions)]
pub(super) fn steps() -> Option<&'static [Step]> {
    use std::sync::OnceLock;
    static NEXT: OnceLock<Option<Vec<Step>>> = OnceLock::new();
    let next = NEXT.get_or_init(|| {
        let file = std::env::var_os("CHIPS_TEST_NEXT_STEP")?;
        // A file that can't be read is a step that fails and says so.
        let sql = std::fs::read_to_string(file).unwrap_or_else(|error| format!("no step: {error}"));
        let known = super::STEPS.last()?.layout;
        let runs_from = if sql.starts_with("-- alone") { known + 1 } else { known };
        let next = Step { layout: known + 1, runs_from, sql: String::leak(sql) };
        Some(super::STEPS.iter().cloned().chain([next]).collect())
    });
    next.as_deref()
}

/// None.
#[cfg(not(debug_assertions))]
pub(super) fn steps() -> Option<&'static [Step]> {
    None
}
