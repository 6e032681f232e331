//! Beside other servers: reads what they appended, as soon as one of them says so and every second anyway, for what is said
//! may be lost. It also looks for administrative changes, reads the clock, and says that this process runs.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::node;
use crate::clock::Stopwatch;
use crate::engine::pool::Idle;
use crate::engine::shared::Shared;
use crate::engine::watcher::{SWEEP, look};
use crate::engine::writer::Message;
use crate::sql::postgres::{Session, may_wait};
use crate::sql::{Connection, Error, Result};
use crate::sqlite::file::Purpose;
use crate::{Location, OpenError};

/// How long it waits for a word before it looks by itself.
const FLOOR: Duration = Duration::from_secs(1);
/// How often administrative changes are looked for, in nanoseconds.
const LOOK_NS: u64 = 900_000_000;
/// Looks between two times that this process says that it runs.
const BEAT: u32 = 3;
/// How long a database that can't be reached is left alone.
const AGAIN: Duration = Duration::from_millis(500);

/// The thread that reads.
pub(crate) struct Tail {
    stop: Option<Sender<()>>,
    thread: JoinHandle<()>,
}

impl Tail {
    /// Begins on a connection that is there.
    pub(crate) fn start(
        location: Location,
        connection: Connection,
        shared: Arc<Shared>,
        idle: Arc<Idle>,
        writer: Sender<Message>,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let mut reader = Reader { shared, idle, writer, looks: 0, looked: None };
        let read = move || {
            may_wait();
            let mut connection = Some(connection);
            let mut troubled = false;
            loop {
                let lost = match connection.take().map_or_else(|| connect(&location), Ok) {
                    Ok(fresh) => {
                        if troubled {
                            tracing::info!("the log is followed again");
                        }
                        troubled = false;
                        match reader.read(&fresh, &stopped) {
                            Ok(()) => return,
                            Err(error) => error.to_string(),
                        }
                    }
                    Err(error) => {
                        reader.idle.clear();
                        error.to_string()
                    }
                };
                if !troubled {
                    tracing::warn!(error = lost, "the log can't be followed; it is tried again until it can");
                }
                troubled = true;
                if stopped.recv_timeout(AGAIN) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("chips-tail".to_owned()).spawn(read)?;
        Ok(Self { stop: Some(stop), thread })
    }

    /// Tells the thread to end when it wakes next: by the word of the writer that ends, or by its own second.
    pub(crate) fn stop(mut self) -> Self {
        self.stop = None;
        self
    }

    /// Waits for the end of the thread.
    pub(crate) fn end(self) {
        let Self { thread, .. } = self;
        if thread.join().is_err() {
            tracing::warn!("the thread that follows the log panicked");
        }
    }
}

fn connect(location: &Location) -> std::result::Result<Connection, OpenError> {
    location.connect(Purpose::Serve)
}

struct Reader {
    shared: Arc<Shared>,
    idle: Arc<Idle>,
    writer: Sender<Message>,
    looks: u32,
    looked: Option<Stopwatch>,
}

impl Reader {
    /// Reads until it is told to end.
    fn read(&mut self, connection: &Connection, stopped: &Receiver<()>) -> Result<()> {
        let session = connection.postgres().ok_or_else(|| Error::Odd("a folder has one server".to_owned()))?;
        let Some(node) = &self.shared.node else { return Ok(()) };
        session.batch(&format!("LISTEN {}", node.channel))?;
        self.looked = None;
        if node::outgrown(connection, &self.shared)? {
            return Ok(());
        }
        node::look_for_name(connection, &self.shared)?;
        loop {
            node::follow_all(connection, &self.shared)?;
            if self.looked.is_none_or(|looked| looked.nanoseconds() >= LOOK_NS) {
                self.looked = Some(Stopwatch::start());
                if node::outgrown(connection, &self.shared)? {
                    return Ok(());
                }
                self.look(connection)?;
                self.idle.rest();
            }
            if stopped.try_recv() == Err(TryRecvError::Disconnected) {
                return Ok(());
            }
            self.wait(session)?;
        }
    }

    fn wait(&self, session: &Session) -> Result<()> {
        session.wait(FLOOR).map(drop)
    }

    fn look(&mut self, connection: &Connection) -> Result<()> {
        let shared = &self.shared;
        if shared.clock.follows() {
            shared.clock.read(node::read_clock(connection)?);
        }
        node::look_for_name(connection, shared)?;
        let (erasures, held) = look(connection, shared)?;
        if held {
            shared.let_go();
        }
        if let Some(node) = &shared.node
            && (held || self.looks.is_multiple_of(BEAT))
        {
            node.beat(connection, erasures)?;
        }
        self.looks = self.looks.wrapping_add(1);
        if shared.note(|lazy| lazy.sweep |= self.looks % SWEEP == 1) {
            // A writer that has ended has nothing to clear away.
            let _ = self.writer.send(Message::Notes);
        }
        Ok(())
    }
}
