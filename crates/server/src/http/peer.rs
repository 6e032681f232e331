//! Who is at the other end of a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Weak;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

/// How long after one probe the next is sent to a peer that may have left, and how many there are after the first. Its system answers the
/// first by ending the connection, which the next one finds.
const PROBE_EVERY: Duration = Duration::from_secs(1);
const PROBES: u32 = 2;

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

/// Tells a stream when to write something for no other reason than to find out whether anybody reads it: a peer that has left and one
/// that has only nothing more to say look alike until then.
#[derive(Debug)]
pub(crate) struct Doubts {
    peer: Option<Peer>,
    /// How many probes are left, once the peer has ended its side.
    left: Option<u32>,
}

impl Doubts {
    /// None yet about this peer.
    pub(crate) fn about(peer: Option<Peer>) -> Self {
        Self { peer, left: None }
    }

    /// Waits until something should be written. It may be dropped and called again.
    pub(crate) async fn arise(&mut self) {
        match (self.left, &self.peer) {
            (None, Some(peer)) => peer.gone().await,
            (None, None) | (Some(0), _) => std::future::pending().await,
            (Some(_), _) => sleep(PROBE_EVERY).await,
        }
        self.left = Some(self.left.map_or(PROBES, |left| left - 1));
    }
}
