//! Who is at the other end of a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Weak;

use tokio::net::TcpStream;

/// The other end of the connection that a request came in on; an extension of every request.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its address. What a proxy in between claims is not looked at here.
    pub address: SocketAddr,
    /// The address of this server that it reached.
    pub local: SocketAddr,
    /// The address that failures are counted by: its own, or whom a trusted proxy had the request from.
    pub client: IpAddr,
    stream: Weak<TcpStream>,
}

impl Peer {
    /// The peer of this connection.
    pub(crate) fn new(address: SocketAddr, local: SocketAddr, stream: Weak<TcpStream>) -> Self {
        Self { address, local, client: address.ip(), stream }
    }

    /// Ends the connection as a network that breaks does: what would still be written does not go out.
    pub(crate) fn cut_off(&self) {
        if let Some(stream) = self.stream.upgrade() {
            // A connection that is gone already is what is wanted.
            let _ = rustix::net::shutdown(&*stream, rustix::net::Shutdown::Both);
        }
    }

    /// Waits until the peer has hung up, or sends nothing more. For ever where it has sent another request already: it
    /// waits for that one's answer too, and is there.
    pub async fn gone(&self) {
        let Some(stream) = self.stream.upgrade() else { return };
        match stream.peek(&mut [0]).await {
            Ok(0) | Err(_) => {}
            Ok(_) => std::future::pending().await,
        }
    }
}
