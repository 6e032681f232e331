//! The screen that people answer on: the alternate one of the terminal, drawn on standard error so that standard
//! output stays for results. However it ends (a return, a panic, a signal), the terminal is left as it was found.

use std::io::{self, IsTerminal, Stderr, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{QueueableCommand, execute};
use futures::StreamExt;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::style::Line;
use crate::exit;

/// How a terminal that is gone shows.
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::NVAL);

/// Whether the terminal is ours to put back.
static RAW: AtomicBool = AtomicBool::new(false);
static ALTERNATE: AtomicBool = AtomicBool::new(false);

/// Puts the terminal back as it was found. Does nothing where that has been done.
pub fn restore() {
    if ALTERNATE.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stderr(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    }
    if RAW.swap(false, Ordering::SeqCst) {
        let _ = disable_raw_mode();
    }
}

/// A panic's message would be lost on the alternate screen, and the shell after it unusable.
fn restore_on_panic() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

/// The terminal gives keys as they are pressed and shows none, until this is dropped. Where the terminal goes away
/// meanwhile, the process ends as by SIGHUP.
#[derive(Debug)]
pub struct RawMode {
    /// The watch ends when this is closed.
    _watched: UnixStream,
}

impl RawMode {
    /// Enters the mode.
    ///
    /// # Errors
    /// What the terminal says.
    pub fn enter() -> io::Result<Self> {
        restore_on_panic();
        let (watched, end) = UnixStream::pair()?;
        RAW.store(true, Ordering::SeqCst);
        enable_raw_mode().map_err(unless_gone)?;
        let raw = Self { _watched: watched };
        std::thread::Builder::new().name("terminal".into()).spawn(move || end_with_the_terminal(&end))?;
        Ok(raw)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore();
    }
}

/// What a terminal says that something could not be done on. One that is gone says it in many ways, and before the watch has
/// its turn: the process ends then.
pub(super) fn unless_gone(error: io::Error) -> io::Error {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
    let polled = poll(&mut watched, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }));
    let gone = polled.is_ok() && watched[0].revents().intersects(GONE);
    if gone || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) {
        hang_up();
    }
    error
}

/// Ends the process as SIGHUP does.
fn hang_up() -> ! {
    restore();
    std::process::exit(i32::from(exit::HUNG_UP.0));
}

/// Whoever reads keys from a terminal that is gone reads "nothing yet" for ever, and no signal gets a turn.
fn end_with_the_terminal(end: &UnixStream) {
    let stdin = io::stdin();
    loop {
        let mut watched = [PollFd::new(&stdin, PollFlags::empty()), PollFd::new(end, PollFlags::IN)];
        match poll(&mut watched, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !watched[1].revents().is_empty() => return,
            Ok(_) if watched[0].revents().intersects(GONE) => hang_up(),
            Ok(_) => {}
        }
    }
}

/// Whether people can be asked on this terminal: keys come from it, and it can be drawn on.
pub fn is_possible() -> bool {
    io::stdin().is_terminal()
        && io::stderr().is_terminal()
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// What is drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Always at the top.
    pub head: Vec<Line>,
    /// Between the two; scrolled where it is too long.
    pub body: Vec<Line>,
    /// The lines of the body that must be seen, unless people have scrolled away from them.
    pub focus: Range<usize>,
    /// People have scrolled: the body stays where it is.
    pub scrolled: bool,
    /// The line (of the body) and column of the text cursor.
    pub cursor: Option<(usize, usize)>,
    /// Always at the bottom.
    pub foot: Vec<Line>,
}

/// What the terminal, or somebody else, says.
#[derive(Debug)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// Draw again.
    Redraw,
    /// The process is to end, with this exit code: a signal, or a terminal that is gone.
    End(u8),
}

/// The screen.
pub struct Screen {
    keys: EventStream,
    terminate: Signal,
    hang_up: Signal,
    resumed: Signal,
    colours: bool,
    /// The first line of the body that is seen.
    top: usize,
    _raw: RawMode,
}

impl Screen {
    /// Takes the terminal over. Needs a runtime.
    ///
    /// # Errors
    /// What the terminal says.
    pub fn enter() -> anyhow::Result<Self> {
        let take = |kind| signal(kind).context("can't listen for signals");
        let raw = RawMode::enter().context("can't take the terminal over")?;
        open().map_err(unless_gone)?;
        Ok(Self {
            keys: EventStream::new(),
            terminate: take(SignalKind::terminate())?,
            hang_up: take(SignalKind::hangup())?,
            resumed: take(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
            colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            top: 0,
            _raw: raw,
        })
    }

    /// Columns and rows.
    pub fn size() -> (usize, usize) {
        // Of the terminal that is drawn on, whichever else the process has.
        let (columns, rows) = match rustix::termios::tcgetwinsize(io::stderr()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => (80, 24),
        };
        (usize::from(columns), usize::from(rows))
    }

    /// The next thing that happens. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Input {
        loop {
            let event = tokio::select! {
                event = self.keys.next() => event,
                _ = self.terminate.recv() => return Input::End(143),
                _ = self.hang_up.recv() => return Input::End(exit::HUNG_UP.0),
                _ = self.resumed.recv() => {
                    // Stopped from outside and brought back: the shell has had the terminal meanwhile.
                    let _ = enable_raw_mode().and_then(|()| open());
                    return Input::Redraw;
                }
            };
            match event {
                Some(Ok(Event::Key(key))) if key.kind == KeyEventKind::Release => {}
                Some(Ok(Event::Key(key))) if is_control(key, 'z') => {
                    self.suspend();
                    return Input::Redraw;
                }
                Some(Ok(Event::Key(key))) if is_control(key, 'l') => return Input::Redraw,
                Some(Ok(Event::Key(key))) if is_control(key, 'c') => return Input::End(130),
                Some(Ok(Event::Key(key))) => return Input::Key(key),
                Some(Ok(Event::Paste(text))) => return Input::Paste(text),
                Some(Ok(Event::Resize(..))) => return Input::Redraw,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Input::End(exit::HUNG_UP.0),
            }
        }
    }

    /// Ctrl-Z: gives the terminal back to the shell until it brings this process to the front again.
    fn suspend(&mut self) {
        restore();
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        RAW.store(true, Ordering::SeqCst);
        let _ = enable_raw_mode().and_then(|()| open());
    }

    /// Scrolls the body by pages, up where `pages` is less than 0. Takes effect where the next view is
    /// [`View::scrolled`].
    pub fn scroll(&mut self, pages: isize) {
        let (_, rows) = Self::size();
        let page = isize::try_from(rows.saturating_sub(6).max(1)).unwrap_or(1);
        self.top = self.top.saturating_add_signed(page.saturating_mul(pages));
    }

    /// Draws a view, and says whether its focus can be seen whole.
    ///
    /// # Errors
    /// What the terminal says.
    pub fn draw(&mut self, view: &View) -> anyhow::Result<bool> {
        let (columns, rows) = Self::size();
        let mut err = io::stderr().lock();
        let frame = self.frame(view, columns, rows);
        let mut bytes = Vec::new();
        bytes.queue(BeginSynchronizedUpdate)?.queue(Hide)?;
        for (row, line) in frame.lines.iter().enumerate() {
            bytes.queue(MoveTo(0, u16::try_from(row).unwrap_or(u16::MAX)))?;
            line.queue(&mut bytes, self.colours)?;
            if line.width() < columns {
                bytes.queue(Clear(ClearType::UntilNewLine))?;
            }
        }
        if let Some((row, column)) = frame.cursor {
            let at = |number| u16::try_from(number).unwrap_or(u16::MAX);
            bytes.queue(MoveTo(at(column), at(row)))?.queue(Show)?;
        }
        bytes.queue(EndSynchronizedUpdate)?;
        // A terminal that went away is perhaps seen here first, where something was to be drawn just then.
        err.write_all(&bytes).and_then(|()| err.flush()).map_err(unless_gone).context("can't draw on the terminal")?;
        Ok(frame.focus_seen)
    }

    fn frame(&mut self, view: &View, columns: usize, rows: usize) -> Frame {
        let (frame, top) = layout(view, self.top, columns, rows);
        self.top = top;
        frame
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn open() -> io::Result<()> {
    let mut err: Stderr = io::stderr();
    ALTERNATE.store(true, Ordering::SeqCst);
    execute!(err, EnterAlternateScreen, EnableBracketedPaste, Clear(ClearType::All))
}

/// Whether a key is a letter with Ctrl.
pub fn is_control(key: KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers.contains(KeyModifiers::CONTROL)
}

/// What fills the terminal.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    lines: Vec<Line>,
    cursor: Option<(usize, usize)>,
    focus_seen: bool,
}

/// Puts head, body and foot on a terminal of this size. The body is scrolled from `top` as little as its focus needs;
/// the new top is returned. Where even the head and the foot don't fit, the body gets what there is.
fn layout(view: &View, top: usize, columns: usize, rows: usize) -> (Frame, usize) {
    let crowded = view.head.len() + view.foot.len() + 3 > rows;
    let head: &[Line] = if crowded { &[] } else { &view.head };
    let foot: &[Line] = if crowded { &[] } else { &view.foot };
    let room = rows - head.len() - foot.len();
    let end = view.focus.end.min(view.body.len());
    let mut top = top.min(view.body.len().saturating_sub(room));
    if !view.scrolled {
        if end > top + room {
            top = end - room;
        }
        top = top.min(view.focus.start);
    }
    let seen = top..view.body.len().min(top + room);
    let focus_seen = seen.start <= view.focus.start && end <= seen.end;
    let mut lines: Vec<Line> = head.to_vec();
    lines.extend(view.body[seen.clone()].iter().cloned());
    lines.resize(head.len() + room, Line::new());
    // What can't be seen must not be thought to be missing.
    let more = |up: bool| Line::styled(super::style::Style::Dim, if up { "  ↑ more" } else { "  ↓ more" });
    if room > 2 {
        if seen.start > 0 && (view.focus.start > seen.start || !focus_seen) {
            lines[head.len()] = more(true);
        }
        if seen.end < view.body.len() && (end < seen.end || !focus_seen) {
            lines[head.len() + room - 1] = more(false);
        }
    }
    lines.extend(foot.iter().cloned());
    let lines = lines.into_iter().map(|line| line.cut(columns)).collect();
    let cursor = view
        .cursor
        .filter(|(line, _)| seen.contains(line))
        .map(|(line, column)| (head.len() + line - seen.start, column.min(columns - 1)));
    (Frame { lines, cursor, focus_seen }, top)
}

#[cfg(test)]
mod tests {
    use super::super::style::Style;
    use super::*;

    fn lines(from: usize, to: usize) -> Vec<Line> {
        (from..to).map(|n| Line::styled(Style::Plain, format!("line {n}"))).collect()
    }

    fn shown(frame: &Frame) -> Vec<String> {
        frame.lines.iter().map(Line::text).collect()
    }

    #[test]
    fn the_foot_stands_at_the_bottom_and_the_body_between() {
        let view = View { head: lines(90, 91), body: lines(0, 2), foot: lines(99, 100), ..View::default() };
        let (frame, top) = layout(&view, 0, 20, 6);
        assert_eq!(shown(&frame), ["line 90", "line 0", "line 1", "", "", "line 99"]);
        assert_eq!(top, 0);
    }

    #[test]
    fn a_long_body_is_scrolled_as_little_as_its_focus_needs() {
        let mut view = View { body: lines(0, 20), focus: 0..1, ..View::default() };
        let (frame, top) = layout(&view, 0, 20, 5);
        assert_eq!(
            (shown(&frame), top),
            (["line 0", "line 1", "line 2", "line 3", "  ↓ more"].map(String::from).to_vec(), 0)
        );
        view.focus = 6..8;
        let (frame, top) = layout(&view, top, 20, 5);
        assert_eq!((shown(&frame)[4].as_str(), shown(&frame)[0].as_str(), top), ("line 7", "  ↑ more", 3));
        view.focus = 5..6;
        assert_eq!(layout(&view, top, 20, 5).1, 3, "it stays where it is");
        view.focus = 1..2;
        assert_eq!(layout(&view, top, 20, 5).1, 1);
    }

    #[test]
    fn a_focus_that_is_taller_than_the_screen_is_seen_from_its_start() {
        let view = View { body: lines(0, 20), focus: 4..15, ..View::default() };
        assert_eq!(layout(&view, 0, 20, 5).1, 4);
    }

    #[test]
    fn people_can_scroll_away_from_the_focus_and_are_told_of_it() {
        let mut view = View { body: lines(0, 20), focus: 15..17, scrolled: true, ..View::default() };
        let (frame, top) = layout(&view, 0, 20, 5);
        assert_eq!((shown(&frame)[0].as_str(), frame.focus_seen, top), ("line 0", false, 0));
        assert_eq!(layout(&view, 999, 20, 5).1, 15, "no further than the end");
        view.scrolled = false;
        assert!(layout(&view, 0, 20, 5).0.focus_seen);
    }

    #[test]
    fn any_size_can_be_drawn() {
        let view = View {
            head: lines(0, 3),
            body: lines(0, 9),
            focus: 2..4,
            scrolled: false,
            cursor: Some((3, 70)),
            foot: lines(0, 2),
        };
        for rows in 1..20 {
            for columns in 1..12 {
                let (frame, _) = layout(&view, 7, columns, rows);
                assert_eq!(frame.lines.len(), rows);
                assert!(frame.lines.iter().all(|line| line.width() <= columns));
                assert!(frame.cursor.is_none_or(|(row, column)| row < rows && column < columns));
            }
        }
    }
}
