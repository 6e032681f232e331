//! The database file in a data folder: who holds it, how it comes to this version's layout, and what keeps it small and clean.

pub(crate) mod checkpoint;
pub(crate) mod file;
pub(crate) mod folder;
pub(crate) mod scrub;
