//! What a server is told at its start.

use std::net::SocketAddr;

use url::Url;

/// What a server is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address that people and harnesses use, where it is not the listen address. Without path, query and fragment.
    pub public_url: Option<Url>,
    /// Further host names that requests may name.
    pub allow_hosts: Vec<String>,
    /// Serve plain http on an address that is not loopback.
    pub insecure: bool,
    /// Serve `/metrics` to other peers than loopback.
    pub public_metrics: bool,
}

impl Config {
    /// Serves on this address, to it alone.
    pub fn on(listen: SocketAddr) -> Self {
        Self { listen, public_url: None, allow_hosts: Vec::new(), insecure: false, public_metrics: false }
    }
}
