//! Figures for the operator, in the text format of OpenMetrics.

use std::sync::atomic::AtomicU64;

use chips_store::Stats;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
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

/// What is counted and measured while the server runs.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    lateness: Histogram,
    streams: Gauge,
    waiters: Gauge,
    store: StoreGauges,
}

/// What the store counts itself, copied when somebody looks.
#[derive(Debug, Default)]
struct StoreGauges {
    open_asks: Gauge,
    commits: Gauge,
    jobs: Gauge,
    commit_seconds: Gauge<f64, AtomicU64>,
    database_bytes: Gauge,
    wal_bytes: Gauge,
    writable: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("chips");
        let requests = Family::default();
        registry.register("http_requests", "Requests, by method, route and status", requests.clone());
        let lateness = Histogram::new(LATENESS_S);
        registry.register("deadline_lateness_seconds", "From a deadline to the close it led to", lateness.clone());
        let streams = Gauge::default();
        registry.register("streams", "Open streams of events", streams.clone());
        let waiters = Gauge::default();
        registry.register("waiters", "Requests that wait for an ask to close", waiters.clone());
        let store = StoreGauges::default();
        registry.register("asks_open", "Open asks", store.open_asks.clone());
        registry.register("store_commits", "Commits since the start", store.commits.clone());
        registry.register("store_jobs", "Jobs in those commits", store.jobs.clone());
        registry.register("store_commit_seconds", "Time spent in those commits", store.commit_seconds.clone());
        registry.register("store_database_bytes", "Size of the database file", store.database_bytes.clone());
        registry.register("store_wal_bytes", "Size of the write-ahead log", store.wal_bytes.clone());
        registry.register("store_writable", "1 where the last write could be taken", store.writable.clone());
        Self { registry, requests, lateness, streams, waiters, store }
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

    /// Counts a stream until it is dropped.
    pub fn stream(&self) -> Counted {
        Counted::one_of(&self.streams)
    }

    /// Counts a waiting request until it is dropped.
    pub fn waiter(&self) -> Counted {
        Counted::one_of(&self.waiters)
    }

    /// All figures as text, with the store's as they are now.
    pub fn text(&self, stats: &Stats) -> String {
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.store.open_asks.set(whole(stats.open_asks));
        self.store.commits.set(whole(stats.commits));
        self.store.jobs.set(whole(stats.jobs));
        self.store.commit_seconds.set(stats.commit_seconds);
        self.store.database_bytes.set(whole(stats.database_bytes));
        self.store.wal_bytes.set(whole(stats.wal_bytes));
        self.store.writable.set(i64::from(stats.writable));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
