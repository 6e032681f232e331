//! The words and the fields of outcomes.
