//! Adapters: how harnesses that ask in their own words ask through Chips.
//!
//! Each one translates and nothing more: the rules are Chips', the dialog stays the harness's. An adapter never
//! invents a default, waits for as long as it takes unless it was told otherwise, and where it can't carry a question
//! leaves it to the harness's own dialog.

pub mod away;
pub mod claude_code;
pub mod mcp;
pub mod opencode;
