//! The HTTP side of Chips: the API, the streams, the inbox and the workers behind them. The only crate that knows
//! serving HTTP.

pub mod api;
pub mod app;
pub mod auth;
pub mod channels;
pub mod config;
pub mod http;
pub mod inbox;
pub mod mcp;
pub mod metrics;
pub mod outbound;
mod preferences;
pub mod presence;
pub mod request_id;
pub mod simulation;
pub mod state;
pub mod stream;
mod taps;
mod words;
pub mod workers;

pub use app::{Ended, Server, bind};
pub use config::Config;
pub use simulation::Simulation;
pub use state::{AppState, StartError};
