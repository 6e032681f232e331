//! A network that can be cut: a proxy for TCP in front of a server.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Listens on a port of its own and passes everything on to another, until the network is cut.
pub struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    target: Option<SocketAddr>,
    cut: bool,
    open: Vec<TcpStream>,
}

impl Proxy {
    /// Listens, for a server that is not there yet.
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address");
        let state = Mutex::new(State { target: None, cut: false, open: Vec::new() });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&accepting);
                thread::spawn(move || shared.carry(client));
            }
        });
        Self { addr, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Passes everything on to this address from now on.
    pub fn lead_to(&self, target: SocketAddr) {
        self.shared.state.lock().expect("the state").target = Some(target);
        self.shared.changed.notify_all();
    }

    /// Nothing passes any more, and nobody is told: connections stay open and silent, as when a cable is pulled.
    pub fn cut(&self) {
        self.shared.state.lock().expect("the state").cut = true;
    }

    /// The network is back. What was open before the cut is gone (reset), as after a long one.
    pub fn mend(&self) {
        let mut state = self.shared.state.lock().expect("the state");
        state.cut = false;
        for socket in state.open.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// Waits while the network is cut, and says where it leads then.
    fn passable(&self) -> SocketAddr {
        let mut state = self.state.lock().expect("the state");
        loop {
            match state.target {
                Some(target) if !state.cut => return target,
                _ => state = self.changed.wait(state).expect("the state"),
            }
        }
    }

    fn carry(self: &Arc<Self>, client: TcpStream) {
        let Ok(server) = TcpStream::connect(self.passable()) else { return };
        let pairs = (client.try_clone(), server.try_clone(), client.try_clone(), server.try_clone());
        let (Ok(client_in), Ok(server_in), Ok(client_kept), Ok(server_kept)) = pairs else { return };
        self.state.lock().expect("the state").open.extend([client_kept, server_kept]);
        let back = Arc::clone(self);
        thread::spawn(move || back.copy(server_in, client));
        self.copy(client_in, server);
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            self.passable();
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}
