//! A network between Chips and PostgreSQL that breaks at a COMMIT.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What `COMMIT` is on the wire: a simple query of PostgreSQL's protocol, version 3.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// Where a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server never gets the COMMIT.
    Before,
    /// The server gets it, and its word on it is lost.
    After,
}

#[derive(Default)]
struct Plan {
    /// How many of the next COMMITs break their connection, and where.
    next: Option<(Cut, u32)>,
    cuts: usize,
}

/// The network. It lives as long as the process of the test.
#[derive(Clone)]
pub struct Wire {
    address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
}

impl Wire {
    /// A network that leads to this server.
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Self { address: listener.local_addr().unwrap(), plan: Arc::default() };
        let accepting = wire.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(server) else { continue };
                let (back, forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let wire = accepting.clone();
                thread::spawn(move || wire.send(client, server));
                thread::spawn(move || pass(back, forth));
            }
        });
        wire
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks the connections of the next COMMITs, of whoever they are.
    pub fn cut_next(&self, cut: Cut, commits: u32) {
        self.plan.lock().unwrap().next = Some((cut, commits));
    }

    /// How many connections were broken.
    pub fn cuts(&self) -> usize {
        self.plan.lock().unwrap().cuts
    }

    fn planned(&self) -> Option<Cut> {
        let mut plan = self.plan.lock().unwrap();
        let (cut, left) = plan.next?;
        plan.next = (left > 1).then_some((cut, left - 1));
        plan.cuts += 1;
        Some(cut)
    }

    /// Passes on what the client sends. It waits for each answer, so a COMMIT comes as one piece by itself.
    fn send(&self, mut client: TcpStream, mut server: TcpStream) {
        let mut piece = [0; 16 * 1024];
        while let Ok(length @ 1..) = client.read(&mut piece) {
            if piece[..length].ends_with(COMMIT) {
                match self.planned() {
                    Some(Cut::Before) => break,
                    Some(Cut::After) => {
                        // What comes back has nowhere to go any more.
                        let _ = client.shutdown(Shutdown::Both);
                        let _ = server.write_all(&piece[..length]);
                        // The server ends when it has done what it was told and there is no more to come.
                        let _ = server.shutdown(Shutdown::Write);
                        return;
                    }
                    None => {}
                }
            }
            if server.write_all(&piece[..length]).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut piece = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
