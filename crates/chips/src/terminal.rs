//! What people see in a terminal: text that is safe and wraps, times, and a screen to answer on.

pub mod editor;
pub mod screen;
pub mod secret;
pub mod style;
pub mod text;
pub mod time;
