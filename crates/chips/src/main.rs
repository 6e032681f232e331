//! Chips.
fn main() {}
