//! Figures for the operator, in the text format of OpenMetrics.

use chips_core::notify::{Channel, Outcome};
use chips_store::Stats;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The media type of what [`Metrics::text`] returns.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Bounds of how late a deadline fires, in seconds.
const LATENESS_S: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 60.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToldLabels {
    channel: &'static str,
    outcome: &'static str,
}

/// What is counted and measured while the server runs.
#[derive(Debug)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    lateness: Histogram,
    streams: Gauge,
    waiters: Gauge,
    told: Family<ToldLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            lateness: Histogram::new(LATENESS_S),
            streams: Gauge::default(),
            waiters: Gauge::default(),
            told: Family::default(),
        }
    }
}

/// Counts one while it lives.
#[derive(Debug)]
pub struct Counted(Gauge);

impl Counted {
    fn one_of(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Counts an answered request. The route is the router's, never the path.
    pub fn request(&self, method: &'static str, route: &str, status: u16) {
        self.requests.get_or_create(&RequestLabels { method, route: route.to_owned(), status }).inc();
    }

    /// Notes how late a deadline fired, in milliseconds.
    pub fn fired(&self, late_ms: i64) {
        self.lateness.observe(late_ms.max(0) as f64 / 1000.0);
    }

    /// Counts a try to tell somebody something outside the inbox.
    pub fn told(&self, channel: Channel, outcome: &Outcome) {
        self.told.get_or_create(&ToldLabels { channel: channel.as_str(), outcome: outcome.as_str() }).inc();
    }

    /// Counts a stream until it is dropped.
    pub fn stream(&self) -> Counted {
        Counted::one_of(&self.streams)
    }

    /// Counts a waiting request until it is dropped.
    pub fn waiter(&self) -> Counted {
        Counted::one_of(&self.waiters)
    }

    /// Streams and waiting requests, as many as there are now.
    pub fn held(&self) -> u64 {
        u64::try_from(self.streams.get() + self.waiters.get()).unwrap_or(0)
    }

    /// All figures as text, with the store's as they are now.
    pub fn text(&self, stats: &Stats) -> String {
        let mut registry = Registry::with_prefix("chips");
        registry.register("http_requests", "Requests, by method, route and status", self.requests.clone());
        registry.register("deadline_lateness_seconds", "From a deadline to the close it led to", self.lateness.clone());
        registry.register("streams", "Open streams of events", self.streams.clone());
        registry.register("waiters", "Requests that wait for an ask to close", self.waiters.clone());

        let told = "Tries to tell somebody outside the inbox, by channel and by what the other side made of it";
        registry.register("outbox_attempts", told, self.told.clone());

        let count = |count: u64| ConstCounter::new(count);
        let gauge = |value: u64| ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        registry.register("asks_open", "Open asks", gauge(stats.open_asks));
        registry.register("asks_opened", "Asks since the start", count(stats.opened));
        let closed: Family<StateLabel, Counter> = Family::default();
        for (state, number) in &stats.closed {
            closed.get_or_create(&StateLabel { state: state.as_str() }).inc_by(*number);
        }
        registry.register("asks_closed", "Asks closed since the start, by the state they closed in", closed);
        registry.register("store_commits", "Commits since the start", count(stats.commits));
        registry.register("store_jobs", "Jobs in those commits", count(stats.jobs));
        let seconds = ConstCounter::new(stats.commit_seconds);
        registry.register("store_commit_seconds", "Time spent in those commits", seconds);
        registry.register("store_database_bytes", "Size of the database file", gauge(stats.database_bytes));
        registry.register("store_wal_bytes", "Size of the write-ahead log", gauge(stats.wal_bytes));
        registry.register("store_writable", "1 where the last write could be taken", gauge(stats.writable.into()));

        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }
}
