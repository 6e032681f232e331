//! Figures for the operator, in the text format of OpenMetrics 1.0.
//!
//! What is counted here keeps its name: dashboards and alerts are built on it (`deploy/`), and docs/operating.md lists it.
//! Every label has few values, none of them anybody's text.

mod route;

use chips_core::notify::{Channel, Outcome};
use chips_protocol::Timestamp;
use chips_protocol::problem::ProblemCode;
use chips_store::{Distribution, Stats};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

pub use route::RouteClass;

/// The media type of what [`Metrics::text`] returns.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Bounds of how late a deadline fires, in seconds.
const LATENESS_S: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 60.0];
/// Bounds of how long a request takes, in seconds: from what memory answers to a wait of a minute.
const REQUEST_S: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 60.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

/// The label of each family that has only one.
macro_rules! one_label {
    ($($name:ident { $label:ident })*) => {
        $(
            #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
            struct $name {
                $label: &'static str,
            }
        )*
    };
}

one_label! {
    StateLabel { state }
    ClassLabel { class }
    CodeLabel { code }
    LimitLabel { limit }
    ChannelLabel { channel }
    ProofLabel { by }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToldLabels {
    channel: &'static str,
    outcome: &'static str,
}

/// Makes the histograms of requests.
#[derive(Debug, Clone)]
struct RequestTimes;

impl MetricConstructor<Histogram> for RequestTimes {
    fn new_metric(&self) -> Histogram {
        Histogram::new(REQUEST_S)
    }
}

/// What is counted and measured while the server runs.
#[derive(Debug)]
pub struct Metrics {
    started: Timestamp,
    requests: Family<RequestLabels, Counter>,
    durations: Family<ClassLabel, Histogram, RequestTimes>,
    problems: Family<CodeLabel, Counter>,
    sign_ins_failed: Family<ProofLabel, Counter>,
    lateness: Histogram,
    streams: Gauge,
    waiters: Gauge,
    told: Family<ToldLabels, Counter>,
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

/// What somebody tried to sign in with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriedWith {
    /// The address in a sign-in link.
    Link,
    /// The short code beside it.
    Code,
}

impl TriedWith {
    const ALL: [Self; 2] = [Self::Link, Self::Code];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Code => "code",
        }
    }
}

impl Metrics {
    /// Nothing counted yet, by a server that started at this time. What can be counted is there from the start, as 0: a first failure
    /// is a change that an alert sees.
    pub fn new(started: Timestamp) -> Self {
        let metrics = Self {
            started,
            requests: Family::default(),
            durations: Family::new_with_constructor(RequestTimes),
            problems: Family::default(),
            sign_ins_failed: Family::default(),
            lateness: Histogram::new(LATENESS_S),
            streams: Gauge::default(),
            waiters: Gauge::default(),
            told: Family::default(),
        };
        for class in RouteClass::ALL {
            drop(metrics.durations.get_or_create(&ClassLabel { class: class.as_str() }));
        }
        for code in ProblemCode::ALL {
            drop(metrics.problems.get_or_create(&CodeLabel { code: code.as_str() }));
        }
        for with in TriedWith::ALL {
            drop(metrics.sign_ins_failed.get_or_create(&ProofLabel { by: with.as_str() }));
        }
        let outcomes = [
            Outcome::Accepted,
            Outcome::Gone(String::new()),
            Outcome::Refused(String::new()),
            Outcome::Failed(String::new()),
            Outcome::TimedOut,
        ];
        for channel in Channel::ALL.map(Channel::as_str) {
            for outcome in &outcomes {
                drop(metrics.told.get_or_create(&ToldLabels { channel, outcome: outcome.as_str() }));
            }
        }
        metrics
    }

    /// Counts an answered request and how long it took until its answer began, in seconds. The route is the router's, never the path.
    pub fn request(&self, method: &'static str, route: &str, class: RouteClass, status: u16, seconds: f64) {
        self.requests.get_or_create(&RequestLabels { method, route: route.to_owned(), status }).inc();
        self.durations.get_or_create(&ClassLabel { class: class.as_str() }).observe(seconds);
    }

    /// Counts a problem that was answered.
    pub fn problem(&self, code: ProblemCode) {
        self.problems.get_or_create(&CodeLabel { code: code.as_str() }).inc();
    }

    /// Counts a sign-in that led nowhere.
    pub fn sign_in_failed(&self, with: TriedWith) {
        self.sign_ins_failed.get_or_create(&ProofLabel { by: with.as_str() }).inc();
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
        self.register_server(&mut registry);
        register_asks(&mut registry, stats);
        self.register_outbox(&mut registry, stats);
        register_store(&mut registry, stats);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }

    fn register_server(&self, registry: &mut Registry) {
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version that runs", build);
        let started = ConstGauge::new(self.started.ms() as f64 / 1000.0);
        registry.register_with_unit("start_time", "When the server started, since 1970", Unit::Seconds, started);
        registry.register("http_requests", "Requests, by method, route and status", self.requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "From a request's header to the beginning of its answer, by class of route",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register("http_problems", "Refusals and faults that were answered, by code", self.problems.clone());
        let failed = "Sign-ins that led nowhere, by what was tried";
        registry.register("sign_ins_failed", failed, self.sign_ins_failed.clone());
        registry.register("streams", "Open streams of events", self.streams.clone());
        registry.register("waiters", "Requests that wait for an ask to close", self.waiters.clone());
    }

    fn register_outbox(&self, registry: &mut Registry, stats: &Stats) {
        let told = "Tries to tell somebody outside the inbox, by channel and by what the other side made of it";
        registry.register("outbox_attempts", told, self.told.clone());
        let lateness = "From a deadline to the close it led to";
        registry.register_with_unit("deadline_lateness", lateness, Unit::Seconds, self.lateness.clone());
        if !stats.readable {
            return;
        }
        let waiting: Family<ChannelLabel, Gauge> = Family::default();
        for channel in Channel::ALL {
            let count = stats.outbox.get(&channel).copied().unwrap_or_default();
            waiting.get_or_create(&ChannelLabel { channel: channel.as_str() }).set(whole(count));
        }
        registry.register("outbox_messages", "Messages that wait to be sent, by channel", waiting);
        registry.register_with_unit(
            "outbox_overdue",
            "For how long the first message that is due and that nobody sends has been so",
            Unit::Seconds,
            ConstGauge::new(stats.outbox_overdue_seconds),
        );
    }
}

fn register_asks(registry: &mut Registry, stats: &Stats) {
    if stats.readable {
        registry.register("asks_open", "Open asks", gauge(stats.open_asks));
        registry.register_with_unit(
            "asks_oldest_open",
            "For how long the oldest open ask has been open",
            Unit::Seconds,
            ConstGauge::new(stats.oldest_open_seconds),
        );
    }
    registry.register("asks_opened", "Asks since the start", ConstCounter::new(stats.opened));
    let closed: Family<StateLabel, Counter> = Family::default();
    for (state, number) in &stats.closed {
        closed.get_or_create(&StateLabel { state: state.as_str() }).inc_by(*number);
    }
    registry.register("asks_closed", "Asks closed since the start, by the state they closed in", closed);
    let refused: Family<CodeLabel, Counter> = Family::default();
    for (&code, number) in &stats.refused {
        refused.get_or_create(&CodeLabel { code }).inc_by(*number);
    }
    let help = "Writes that the rules refused since the start, whichever way they came in, by code";
    registry.register("refused_writes", help, refused);
    let over: Family<LimitLabel, Counter> = Family::default();
    for (limit, number) in [("open", stats.over_budget.open), ("hour", stats.over_budget.hour)] {
        over.get_or_create(&LimitLabel { limit }).inc_by(number);
    }
    registry.register(
        "budget_refusals",
        "Asks refused for their harness's budget, by the limit that was reached",
        over,
    );
}

fn register_store(registry: &mut Registry, stats: &Stats) {
    registry.register("store_commits", "Commits since the start", ConstCounter::new(stats.commits));
    registry.register("store_jobs", "Jobs in those commits", ConstCounter::new(stats.jobs));
    let commit = "From the begin of a transaction to the end of its commit";
    let times = Observed(stats.commit_seconds.clone());
    registry.register_with_unit("store_commit_duration", commit, Unit::Seconds, times);
    let group = Observed(stats.group_jobs.clone());
    registry.register("store_group_jobs", "Jobs that shared a commit", group);
    registry.register("store_queue_jobs", "Jobs that wait for the writer", gauge(stats.queued));
    let size = ("store_database", "Size of the database", stats.database_bytes);
    let sizes = stats.readable.then_some(size).into_iter().chain([(
        "store_wal",
        "Size of the write-ahead log",
        stats.wal_bytes,
    )]);
    // A database server has the disk to itself.
    let free = stats.free_bytes.map(|bytes| ("store_free", "Room on the file system of the data folder", bytes));
    for (name, help, bytes) in sizes.chain(free) {
        registry.register_with_unit(name, help, Unit::Bytes, gauge(bytes));
    }
    registry.register("store_writable", "1 where the last write could be taken", gauge(stats.writable.into()));
}

fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn gauge(value: u64) -> ConstGauge<i64> {
    ConstGauge::new(whole(value))
}

/// A histogram that somebody else has counted.
#[derive(Debug)]
struct Observed(Distribution);

impl EncodeMetric for Observed {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Distribution { buckets, sum, count } = &self.0;
        encoder.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
