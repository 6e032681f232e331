//! What runs beside the requests.

pub mod deadlines;
