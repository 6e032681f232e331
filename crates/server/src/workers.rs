//! What runs beside the requests.

pub mod deadlines;
pub mod notify;
pub mod retain;
pub mod telegram;
