//! The only file with metric names. docs/metrics.md says the same for people; a test compares
//! the two, and the alert rules, with what a running process shows.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram, with_local_recorder,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

use crate::model::{ErrorClass, SlotView, WalStatus};

const EVENTS_DELIVERED: &str = "outboxd_events_delivered_total";
const ERRORS: &str = "outboxd_errors_total";
const POISON_EVENTS: &str = "outboxd_poison_events_total";
const DEAD_LETTERS: &str = "outboxd_dead_letters_total";
const SKIPPED_EVENTS: &str = "outboxd_skipped_events_total";
const SKIPPED_DUPLICATES: &str = "outboxd_skipped_duplicates_total";
const RECONNECTS: &str = "outboxd_reconnects_total";
const IN_FLIGHT_EVENTS: &str = "outboxd_in_flight_events";
const IN_FLIGHT_BYTES: &str = "outboxd_in_flight_bytes";
const OLDEST_UNACKNOWLEDGED: &str = "outboxd_oldest_unacknowledged_age_seconds";
const COMMIT_TO_ACKNOWLEDGED: &str = "outboxd_commit_to_acknowledged_seconds";
const LAST_PROGRESS: &str = "outboxd_last_progress_timestamp_seconds";
const STREAMING: &str = "outboxd_streaming";
const READY: &str = "outboxd_ready";
const SLOT_RETAINED_WAL: &str = "outboxd_slot_retained_wal_bytes";
const SLOT_CONFIRMED_LAG: &str = "outboxd_slot_confirmed_lag_bytes";
const SLOT_SAFE_WAL: &str = "outboxd_slot_safe_wal_size_bytes";
const SLOT_WAL_STATUS: &str = "outboxd_slot_wal_status";
const SLOT_ACTIVE: &str = "outboxd_slot_active";
const SLOT_MISSING: &str = "outboxd_slot_missing";
const SLOT_OBSERVED: &str = "outboxd_slot_observed_timestamp_seconds";

/// Upper bounds in seconds: from what a broker next door takes to what is a case for an alert.
const LATENCY_BUCKETS: [f64; 15] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
];

/// Topics come from the data. Beyond this many, further ones are counted together, so that
/// neither we nor Prometheus grow without end.
const MAX_TOPICS: usize = 1000;
const FURTHER_TOPICS: &str = "(further topics)";

/// All metrics of the process. No global state: tests can have many.
pub(super) struct Metrics {
    recorder: PrometheusRecorder,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(
                Matcher::Full(COMMIT_TO_ACKNOWLEDGED.to_owned()),
                &LATENCY_BUCKETS,
            )
            .expect("there are buckets")
            .build_recorder();
        with_local_recorder(&recorder, describe);
        Self { recorder }
    }

    /// The handles of the connector `name`.
    pub(super) fn connector(&self, name: &str) -> ConnectorMetrics {
        with_local_recorder(&self.recorder, || ConnectorMetrics::register(name))
    }

    /// The counter of a topic's events.
    fn topic(&self, connector: &str, topic: &str) -> Counter {
        let (connector, topic) = (connector.to_owned(), topic.to_owned());
        with_local_recorder(
            &self.recorder,
            || counter!(EVENTS_DELIVERED, "connector" => connector, "topic" => topic),
        )
    }

    /// Prometheus's text format.
    pub(super) fn render(&self) -> String {
        self.recorder.handle().render()
    }

    /// Sums the histograms' samples up. Without it they would be kept until somebody asks.
    pub(super) fn upkeep(&self) {
        self.recorder.handle().run_upkeep();
    }
}

fn describe() {
    describe_counter!(
        EVENTS_DELIVERED,
        "Events that the broker acknowledged, by topic"
    );
    describe_counter!(
        ERRORS,
        "Errors that interrupted delivery, by class: retry, rewind, poison, fatal"
    );
    describe_counter!(POISON_EVENTS, "Events that can never be sent as they are");
    describe_counter!(
        DEAD_LETTERS,
        "Events that went to the dead-letter topic instead of their own"
    );
    describe_counter!(
        SKIPPED_EVENTS,
        "Events that stopped the connector and were left out for good by outboxd skip"
    );
    describe_counter!(
        SKIPPED_DUPLICATES,
        "Events that the server sent again and that were not delivered twice"
    );
    describe_counter!(RECONNECTS, "Replication streams started after one was lost");
    describe_gauge!(
        IN_FLIGHT_EVENTS,
        Unit::Count,
        "Events handed to the broker client and not acknowledged yet"
    );
    describe_gauge!(IN_FLIGHT_BYTES, Unit::Bytes, "Their size");
    describe_gauge!(
        OLDEST_UNACKNOWLEDGED,
        Unit::Seconds,
        "How long the oldest of them has been waiting; 0 when there is none"
    );
    describe_histogram!(
        COMMIT_TO_ACKNOWLEDGED,
        Unit::Seconds,
        "Time from a transaction's commit, by the database's clock, to the acknowledgement of its events"
    );
    describe_gauge!(
        LAST_PROGRESS,
        Unit::Seconds,
        "When events were last acknowledged or the slot's position last moved"
    );
    describe_gauge!(
        STREAMING,
        "1 while the slot is being read, whether or not the broker takes events"
    );
    describe_gauge!(READY, "What /health/ready says");
    describe_gauge!(
        SLOT_RETAINED_WAL,
        Unit::Bytes,
        "Log that the server keeps for the slot (restart_lsn)"
    );
    describe_gauge!(
        SLOT_CONFIRMED_LAG,
        Unit::Bytes,
        "Log from the slot's confirmed position to the end"
    );
    describe_gauge!(
        SLOT_SAFE_WAL,
        Unit::Bytes,
        "Log that can be written before the slot is in danger; NaN without max_slot_wal_keep_size"
    );
    describe_gauge!(
        SLOT_WAL_STATUS,
        "1 for the slot's wal_status, 0 for the others"
    );
    describe_gauge!(SLOT_ACTIVE, "1 while a process reads the slot");
    describe_gauge!(SLOT_MISSING, "1 while the slot does not exist");
    describe_gauge!(
        SLOT_OBSERVED,
        Unit::Seconds,
        "When the slot was last looked at; what is said of it is of then"
    );
}

/// The handles of one connector, registered once, so that using one is an atomic or two.
pub(super) struct ConnectorMetrics {
    errors: [(ErrorClass, Counter); 4],
    poison_events: Counter,
    dead_letters: Counter,
    skipped_events: Counter,
    skipped_duplicates: Counter,
    reconnects: Counter,
    in_flight_events: Gauge,
    in_flight_bytes: Gauge,
    oldest_unacknowledged: Gauge,
    commit_to_acknowledged: Histogram,
    last_progress: Gauge,
    streaming: Gauge,
    ready: Gauge,
    slot: SlotMetrics,
    topics: Mutex<HashMap<String, Counter>>,
}

struct SlotMetrics {
    retained_wal: Gauge,
    confirmed_lag: Gauge,
    safe_wal: Gauge,
    wal_status: [(WalStatus, Gauge); 4],
    active: Gauge,
    missing: Gauge,
    observed: Gauge,
}

impl ConnectorMetrics {
    fn register(name: &str) -> Self {
        let plain = |metric: &'static str| gauge!(metric, "connector" => name.to_owned());
        let count = |metric: &'static str| counter!(metric, "connector" => name.to_owned());
        let classes = [
            ErrorClass::Retry,
            ErrorClass::Rewind,
            ErrorClass::Poison,
            ErrorClass::Fatal,
        ];
        Self {
            errors: classes.map(|class| {
                let word = class_word(class);
                let counter = counter!(ERRORS, "connector" => name.to_owned(), "class" => word);
                (class, counter)
            }),
            poison_events: count(POISON_EVENTS),
            dead_letters: count(DEAD_LETTERS),
            skipped_events: count(SKIPPED_EVENTS),
            skipped_duplicates: count(SKIPPED_DUPLICATES),
            reconnects: count(RECONNECTS),
            in_flight_events: plain(IN_FLIGHT_EVENTS),
            in_flight_bytes: plain(IN_FLIGHT_BYTES),
            oldest_unacknowledged: plain(OLDEST_UNACKNOWLEDGED),
            commit_to_acknowledged: histogram!(COMMIT_TO_ACKNOWLEDGED, "connector" => name.to_owned()),
            last_progress: plain(LAST_PROGRESS),
            streaming: plain(STREAMING),
            ready: plain(READY),
            slot: SlotMetrics::register(name),
            topics: Mutex::new(HashMap::new()),
        }
    }

    pub(super) fn delivered(&self, registry: &Metrics, connector: &str, topic: &str, events: u64) {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = topics.get(topic) {
            return counter.increment(events);
        }
        let topic = if topics.len() < MAX_TOPICS {
            topic
        } else {
            FURTHER_TOPICS
        };
        let counter = topics
            .entry(topic.to_owned())
            .or_insert_with(|| registry.topic(connector, topic));
        counter.increment(events);
    }

    pub(super) fn acknowledged(&self, latency: Duration) {
        self.commit_to_acknowledged.record(latency);
    }

    pub(super) fn progressed(&self, now: SystemTime) {
        self.last_progress.set(unix_seconds(now));
    }

    pub(super) fn in_flight(&self, events: usize, bytes: usize) {
        self.in_flight_events.set(float(events as u64));
        self.in_flight_bytes.set(float(bytes as u64));
    }

    pub(super) fn error(&self, class: ErrorClass) {
        let counter = self.errors.iter().find(|(known, _)| *known == class);
        if let Some((_, counter)) = counter {
            counter.increment(1);
        }
    }

    pub(super) fn poison(&self) {
        self.poison_events.increment(1);
    }

    pub(super) fn dead_letter(&self) {
        self.dead_letters.increment(1);
    }

    pub(super) fn passed_over(&self) {
        self.skipped_events.increment(1);
    }

    pub(super) fn skipped(&self, events: u64) {
        self.skipped_duplicates.increment(events);
    }

    pub(super) fn reconnected(&self) {
        self.reconnects.increment(1);
    }

    /// What is only known when somebody asks.
    pub(super) fn health(&self, streaming: bool, ready: bool, oldest: Option<Duration>) {
        self.streaming.set(flag(streaming));
        self.ready.set(flag(ready));
        self.oldest_unacknowledged
            .set(oldest.unwrap_or_default().as_secs_f64());
    }

    pub(super) fn slot(&self, view: Option<&SlotView>, now: SystemTime) {
        let slot = &self.slot;
        slot.observed.set(unix_seconds(now));
        slot.missing.set(flag(view.is_none()));
        let known = |value: Option<u64>| value.map_or(f64::NAN, float);
        slot.retained_wal
            .set(known(view.and_then(|view| view.retained_wal)));
        slot.confirmed_lag
            .set(known(view.and_then(|view| view.confirmed_lag)));
        let safe = view.and_then(|view| view.safe_wal_size);
        slot.safe_wal.set(safe.map_or(f64::NAN, |safe| {
            float(safe.unsigned_abs()).copysign(if safe < 0 { -1.0 } else { 1.0 })
        }));
        slot.active.set(flag(view.is_some_and(|view| view.active)));
        let status = view.and_then(|view| view.wal_status);
        for (word, gauge) in &slot.wal_status {
            gauge.set(flag(status == Some(*word)));
        }
    }
}

impl SlotMetrics {
    /// What is not known yet must not look like something: NaN is neither above nor below a
    /// limit.
    fn register(name: &str) -> Self {
        let unknown = |metric: &'static str| {
            let gauge = gauge!(metric, "connector" => name.to_owned());
            gauge.set(f64::NAN);
            gauge
        };
        Self {
            retained_wal: unknown(SLOT_RETAINED_WAL),
            confirmed_lag: unknown(SLOT_CONFIRMED_LAG),
            safe_wal: unknown(SLOT_SAFE_WAL),
            wal_status: WalStatus::ALL.map(|status| {
                let word = status.as_str();
                let gauge =
                    gauge!(SLOT_WAL_STATUS, "connector" => name.to_owned(), "status" => word);
                (status, gauge)
            }),
            active: unknown(SLOT_ACTIVE),
            missing: unknown(SLOT_MISSING),
            observed: unknown(SLOT_OBSERVED),
        }
    }
}

const fn class_word(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Retry => "retry",
        ErrorClass::Rewind => "rewind",
        ErrorClass::Poison => "poison",
        ErrorClass::Fatal => "fatal",
    }
}

const fn flag(on: bool) -> f64 {
    if on { 1.0 } else { 0.0 }
}

/// Exact up to 2^53; a metric is a double.
const fn float(value: u64) -> f64 {
    value as f64
}

fn unix_seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}
