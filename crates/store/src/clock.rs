//! Chips' clock.
//!
//! It is the larger of the wall clock and the log's last `ts` at the start; from then on it runs by the monotonic
//! clock and ignores jumps of the wall clock until the next start.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chips_protocol::Timestamp;
use tokio::sync::watch;

/// Where time comes from.
#[derive(Debug, Clone, Default)]
pub enum TimeSource {
    /// The system's wall clock and monotonic clock.
    #[default]
    System,
    /// Clocks that a test or a rehearsal moves by hand.
    Manual(ManualTime),
    /// The system's clocks, ahead by as much as a simulation has moved them.
    Ahead(TimeAhead),
}

/// How far a simulation has moved the system's clocks: forward alone, on top of the time that passes by itself. Clones
/// are the same clocks.
#[derive(Debug, Clone, Default)]
pub struct TimeAhead {
    ms: watch::Sender<i64>,
}

impl TimeAhead {
    /// How far the clocks can be moved in all: a thousand years. A time stays one that RFC 3339 can write.
    pub const FARTHEST: Duration = Duration::from_secs(1_000 * 365 * 86_400);

    /// Lets this much time pass at once (whole milliseconds, up to [`TimeAhead::FARTHEST`] in all), and returns how far
    /// ahead the clocks are then, in milliseconds.
    pub fn advance(&self, by: Duration) -> i64 {
        let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let mut ahead = 0;
        self.ms.send_modify(|moved| {
            *moved = moved.saturating_add(ms(by)).min(ms(Self::FARTHEST));
            ahead = *moved;
        });
        ahead
    }

    /// How far ahead the clocks are, in milliseconds.
    pub fn ms(&self) -> i64 {
        *self.ms.borrow()
    }
}

/// A wall clock and a monotonic clock that are moved by hand.
#[derive(Debug, Clone, Default)]
pub struct ManualTime {
    wall_ms: Arc<AtomicI64>,
    monotonic_ms: Arc<AtomicI64>,
}

impl ManualTime {
    /// Clocks whose wall shows this time.
    pub fn at(wall: Timestamp) -> Self {
        let time = Self::default();
        time.set_wall(wall);
        time
    }

    /// Sets the wall clock alone: a jump.
    pub fn set_wall(&self, wall: Timestamp) {
        self.wall_ms.store(wall.ms(), Ordering::SeqCst);
    }

    /// Lets time pass on both clocks.
    pub fn pass_ms(&self, ms: i64) {
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.monotonic_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl TimeSource {
    /// The wall clock. The one home of `SystemTime::now`.
    pub fn wall(&self) -> Timestamp {
        match self {
            Self::System => system_wall(),
            Self::Ahead(time) => system_wall().plus_ms(time.ms()),
            Self::Manual(time) => Timestamp::from_ms(time.wall_ms.load(Ordering::SeqCst)),
        }
    }
}

#[allow(clippy::disallowed_methods)]
fn system_wall() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[allow(clippy::disallowed_methods)]
fn system_monotonic() -> std::time::Instant {
    std::time::Instant::now()
}

/// Chips' clock; clones show the same time.
#[derive(Debug, Clone)]
pub struct Clock {
    base: Timestamp,
    started: Started,
}

#[derive(Debug, Clone)]
enum Started {
    System(std::time::Instant),
    Manual(ManualTime, i64),
    Ahead(std::time::Instant, TimeAhead, i64),
    Database(Arc<Followed>),
}

/// A clock that follows another one, which is read now and then. It never goes back, and as what was read is older than the
/// moment at which it came, it is never ahead either.
#[derive(Debug)]
struct Followed {
    started: std::time::Instant,
    /// What is to be added to the time since the start.
    offset_ms: AtomicI64,
    /// What was shown last.
    shown_ms: AtomicI64,
}

impl Clock {
    /// Starts the clock at the larger of the wall clock and the log's last `ts`.
    pub fn start(source: &TimeSource, last_ts: Timestamp) -> Self {
        let started = match source {
            TimeSource::System => Started::System(system_monotonic()),
            TimeSource::Ahead(time) => Started::Ahead(system_monotonic(), time.clone(), time.ms()),
            TimeSource::Manual(time) => Started::Manual(time.clone(), time.monotonic_ms.load(Ordering::SeqCst)),
        };
        Self { base: source.wall().max(last_ts), started }
    }

    /// Starts a clock that follows a database's, as it was just read; never behind the log's last `ts`. Clocks that are moved
    /// by hand stay that.
    pub(crate) fn follow(source: &TimeSource, read: Timestamp, last_ts: Timestamp) -> Self {
        match source {
            TimeSource::System => {
                let base = read.max(last_ts);
                let followed = Followed {
                    started: system_monotonic(),
                    offset_ms: AtomicI64::new(read.ms()),
                    shown_ms: AtomicI64::new(base.ms()),
                };
                Self { base, started: Started::Database(Arc::new(followed)) }
            }
            TimeSource::Ahead(_) | TimeSource::Manual(_) => Self::start(source, last_ts),
        }
    }

    /// The clock that this one follows was read just now.
    pub(crate) fn read(&self, read: Timestamp) {
        if let Started::Database(followed) = &self.started {
            let since = i64::try_from(followed.started.elapsed().as_millis()).unwrap_or(i64::MAX);
            followed.offset_ms.store(read.ms().saturating_sub(since), Ordering::SeqCst);
        }
    }

    /// Whether it follows another clock.
    pub(crate) fn follows(&self) -> bool {
        matches!(self.started, Started::Database(_))
    }

    /// Whether it is moved by hand: then nobody can say how long to sleep until it shows a time.
    pub fn is_manual(&self) -> bool {
        matches!(self.started, Started::Manual(..))
    }

    /// In a simulation: changes whenever the clock was moved, and holds how far ahead it is then, in milliseconds.
    pub fn moves(&self) -> Option<watch::Receiver<i64>> {
        match &self.started {
            Started::Ahead(_, time, _) => Some(time.ms.subscribe()),
            Started::System(_) | Started::Manual(..) | Started::Database(_) => None,
        }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        let since = |instant: &std::time::Instant| i64::try_from(instant.elapsed().as_millis()).unwrap_or(i64::MAX);
        let passed = match &self.started {
            Started::System(instant) => since(instant),
            Started::Ahead(instant, time, from) => since(instant).saturating_add(time.ms() - from),
            Started::Manual(time, from) => time.monotonic_ms.load(Ordering::SeqCst) - from,
            Started::Database(followed) => {
                let now = since(&followed.started).saturating_add(followed.offset_ms.load(Ordering::SeqCst));
                let shown = followed.shown_ms.fetch_max(now, Ordering::SeqCst);
                return Timestamp::from_ms(now.max(shown));
            }
        };
        self.base.plus_ms(passed)
    }
}

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn nanoseconds(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_moved_goes_on_by_itself_and_never_back() {
        let time = TimeAhead::default();
        let source = TimeSource::Ahead(time.clone());
        let clock = Clock::start(&source, Timestamp::from_ms(0));
        let before = clock.now();
        assert_eq!(time.advance(Duration::from_secs(3_600)), 3_600_000);
        let after = clock.now();
        assert!(after >= before.plus_ms(3_600_000));
        assert!(clock.clone().now() >= after);
        // What starts later, as after a restart, is as far ahead.
        assert!(Clock::start(&source, after).now() >= after);
        assert!(source.wall() >= TimeSource::System.wall().plus_ms(3_599_000));
        assert!(!clock.is_manual(), "it can be said how long to sleep until it shows a time");
    }

    #[test]
    fn a_move_is_told_and_has_an_end() {
        let time = TimeAhead::default();
        let clock = Clock::start(&TimeSource::Ahead(time.clone()), Timestamp::from_ms(0));
        let moves = clock.moves();
        time.advance(Duration::MAX);
        let moved = moves.map(|moves| (moves.has_changed().unwrap_or(false), *moves.borrow()));
        let farthest = i64::try_from(TimeAhead::FARTHEST.as_millis()).unwrap_or(i64::MAX);
        assert_eq!(moved, Some((true, farthest)));
        assert_eq!(time.advance(Duration::from_secs(1)), farthest);
        assert!(Clock::start(&TimeSource::System, Timestamp::from_ms(0)).moves().is_none());
    }
}
