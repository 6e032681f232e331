//! A network between a command and a server, which a test cuts and holds up.
#![allow(clippy::unwrap_used, dead_code)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// How the network is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    /// Connections end, new ones are ended at once.
    Cut,
    /// Nothing comes through, and nobody is told.
    Held,
}

struct State {
    way: Way,
    server: SocketAddr,
    open: Vec<TcpStream>,
}

/// The network. It lives as long as the process of the test.
#[derive(Clone)]
pub struct Network {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Network {
    /// A network that leads to this server.
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { way: Way::Open, server, open: Vec::new() };
        let network = Self { address, state: Arc::new((Mutex::new(state), Condvar::new())) };
        let accepting = network.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                accepting.carry(connection.unwrap());
            }
        });
        network
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Leads to another server from now on.
    pub fn lead_to(&self, server: SocketAddr) {
        self.state.0.lock().unwrap().server = server;
    }

    /// Ends all connections, and all that are tried.
    pub fn cut(&self) {
        let mut state = self.state.0.lock().unwrap();
        state.way = Way::Cut;
        for connection in state.open.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Lets nothing through, as a network that has gone away without a word.
    pub fn hold(&self) {
        self.state.0.lock().unwrap().way = Way::Held;
    }

    /// Lets everything through again.
    pub fn open(&self) {
        self.state.0.lock().unwrap().way = Way::Open;
        self.state.1.notify_all();
    }

    fn carry(&self, client: TcpStream) {
        let mut state = self.state.0.lock().unwrap();
        if state.way == Way::Cut {
            return;
        }
        let Ok(server) = TcpStream::connect(state.server) else { return };
        state.open.push(client.try_clone().unwrap());
        state.open.push(server.try_clone().unwrap());
        drop(state);
        for (from, to) in [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)] {
            let network = self.clone();
            std::thread::spawn(move || network.pass(from, to));
        }
    }

    /// Passes what comes from one side on to the other, until either ends.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut piece = [0; 16 * 1024];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            let state = self.state.1.wait_while(self.state.0.lock().unwrap(), |state| state.way == Way::Held).unwrap();
            drop(state);
            if to.write_all(&piece[..length]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
