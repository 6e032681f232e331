//! A terminal that a test types on and looks at, with the real binary on it.
#![allow(clippy::unwrap_used, dead_code)]

use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex, mpsc};

use portable_pty::{CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

use crate::serving::{LIMIT, Machine, until};

/// What keys send.
pub const UP: &str = "\x1b[A";
pub const DOWN: &str = "\x1b[B";
pub const LEFT: &str = "\x1b[D";
pub const ENTER: &str = "\r";
pub const ESC: &str = "\x1b";
pub const CTRL_C: &str = "\x03";

type Shown = Arc<(Mutex<State>, Condvar)>;

struct State {
    parser: vt100::Parser,
    raw: Vec<u8>,
    ended: bool,
}

/// A process on a terminal of its own. It is ended when this is dropped.
pub struct Tty {
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    killer: Box<dyn portable_pty::ChildKiller + Send + Sync>,
    pid: u32,
    ended: mpsc::Receiver<ExitStatus>,
    shown: Shown,
}

impl Tty {
    /// Starts a command on a terminal of this size.
    pub fn start(machine: &Machine, size: (u16, u16), variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        Self::run(&machine.command(arguments), size, variables)
    }

    /// Starts a command of any program's.
    pub fn run(clean: &std::process::Command, size: (u16, u16), variables: &[(&str, &str)]) -> Self {
        let (columns, rows) = size;
        let pair =
            native_pty_system().openpty(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).unwrap();
        let mut command = CommandBuilder::new(clean.get_program());
        command.args(clean.get_args());
        for (name, value) in clean.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            }
        }
        for (name, value) in variables {
            command.env(name, value);
        }
        if let Some(folder) = clean.get_current_dir() {
            command.cwd(folder);
        }
        let mut child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let shown: Shown = Arc::new((
            Mutex::new(State {
                parser: vt100::Parser::new(at_least_one(rows), at_least_one(columns), 0),
                raw: Vec::new(),
                ended: false,
            }),
            Condvar::new(),
        ));
        let mut reader = pair.master.try_clone_reader().unwrap();
        std::thread::spawn({
            let shown = shown.clone();
            move || {
                let mut piece = [0; 4096];
                while let Ok(length @ 1..) = reader.read(&mut piece) {
                    let mut state = shown.0.lock().unwrap();
                    state.parser.process(&piece[..length]);
                    state.raw.extend_from_slice(&piece[..length]);
                    shown.1.notify_all();
                }
                shown.0.lock().unwrap().ended = true;
                shown.1.notify_all();
            }
        });
        let (killer, pid) = (child.clone_killer(), child.process_id().unwrap());
        let (tell, ended) = mpsc::channel();
        std::thread::spawn(move || tell.send(child.wait().unwrap()));
        let keys = pair.master.take_writer().unwrap();
        Self { master: pair.master, keys, killer, pid, ended, shown }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Presses keys now and then until the screen has this on it.
    pub fn press_until(&mut self, keys: &str, text: &str) {
        let mut looks = 0;
        until(text, || {
            if self.screen().contains(text) {
                return Some(());
            }
            if looks % 50 == 0 {
                // A process that has just ended reads none.
                let _ = self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush());
            }
            looks += 1;
            None
        });
    }

    /// The screen as it is, without spaces at the ends of lines.
    pub fn screen(&self) -> String {
        screen(&self.shown.0.lock().unwrap())
    }

    /// Everything that was written to the terminal.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.shown.0.lock().unwrap().raw).into_owned()
    }

    /// Whether the process has the alternate screen.
    pub fn is_alternate(&self) -> bool {
        self.shown.0.lock().unwrap().parser.screen().alternate_screen()
    }

    /// Whether the cursor is hidden.
    pub fn hides_cursor(&self) -> bool {
        self.shown.0.lock().unwrap().parser.screen().hide_cursor()
    }

    /// Waits until the screen has this on it.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Waits until this holds for the screen.
    pub fn wait_until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let (state, changed) = &*self.shown;
        let (state, _) = changed
            .wait_timeout_while(state.lock().unwrap(), LIMIT, |state| !holds(&screen(state)) && !state.ended)
            .unwrap();
        let shown = screen(&state);
        assert!(holds(&shown), "{what:?} was not shown, but:\n{shown}");
        shown
    }

    /// Makes the terminal another size.
    pub fn resize(&self, columns: u16, rows: u16) {
        self.shown.0.lock().unwrap().parser.screen_mut().set_size(at_least_one(rows), at_least_one(columns));
        self.master.resize(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).unwrap();
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until the process has ended, and gives its exit code.
    pub fn code(&self) -> u32 {
        let status = self.ended.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("it goes on:\n{}", self.screen()));
        let (state, changed) = &*self.shown;
        drop(changed.wait_timeout_while(state.lock().unwrap(), LIMIT, |state| !state.ended).unwrap());
        status.exit_code()
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        if self.ended.try_recv().is_err() {
            let _ = self.killer.kill();
        }
    }
}

fn at_least_one(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

fn screen(state: &State) -> String {
    let contents = state.parser.screen().contents();
    contents.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
