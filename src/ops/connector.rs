use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use super::health::{Health, State};
use super::metrics::{ConnectorMetrics, Metrics};
use crate::model::{ErrorClass, SlotView};

/// What one connector tells about itself: its metrics and its health, by methods named after
/// what happened. Cheap to clone and to call; never blocks.
///
/// Reasons are shown to whoever may ask `/health/ready`, so they hold no secret and no payload.
#[derive(Clone)]
pub struct Connector {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    registry: Arc<Metrics>,
    metrics: ConnectorMetrics,
    health: Health,
}

/// How often a loop that only waits says that it is alive.
const TURN: Duration = Duration::from_secs(5);

impl Connector {
    pub(super) fn new(name: &str, registry: Arc<Metrics>, max_unacknowledged: Duration) -> Self {
        let shared = Shared {
            name: name.to_owned(),
            metrics: registry.connector(name),
            health: Health::new(max_unacknowledged, Instant::now()),
            registry,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    // === How it stands ===

    /// The relay's loop is alive. Called at least every 10 s; after 30 s without it, liveness
    /// goes red.
    pub fn turned(&self) {
        self.shared.health.turned(Instant::now());
    }

    /// Waits for `work`, whose duration is in other hands (a server's, a back-off), and counts
    /// as alive meanwhile.
    pub async fn alive_during<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            self.turned();
            tokio::select! {
                outcome = &mut work => return outcome,
                () = tokio::time::sleep(TURN) => {}
            }
        }
    }

    /// Not connected: `why` has to go away first. It is tried again.
    pub fn waiting(&self, why: &str) {
        self.become_state(State::Waiting(why.to_owned()));
    }

    /// Connected and reading the slot.
    pub fn streaming(&self) {
        self.become_state(State::Streaming);
    }

    /// Reading the slot, but unable to deliver because of `why`. Said of a connector that does
    /// not stream, it changes nothing.
    pub fn degraded(&self, why: &str) {
        self.shared.health.change(|state| match state {
            State::Streaming | State::Degraded(_) => Some(State::Degraded(why.to_owned())),
            State::Starting | State::Waiting(_) | State::Failed(_) => None,
        });
    }

    /// Able to deliver again, after [`degraded`](Self::degraded).
    pub fn delivering(&self) {
        self.shared.health.change(|state| match state {
            State::Degraded(_) => Some(State::Streaming),
            _ => None,
        });
    }

    /// Only a person can mend `why`.
    pub fn failed(&self, why: &str) {
        self.become_state(State::Failed(why.to_owned()));
    }

    fn become_state(&self, state: State) {
        self.shared.health.change(|_| Some(state));
    }

    // === What it did ===

    /// The broker acknowledged this many events of one topic.
    pub fn delivered(&self, topic: &str, events: u64) {
        let Shared {
            name,
            registry,
            metrics,
            ..
        } = &*self.shared;
        metrics.delivered(registry, name, topic, events);
    }

    /// Events of one transaction were acknowledged, this long after it committed. One
    /// observation for all that are acknowledged together.
    pub fn acknowledged(&self, latency: Duration) {
        self.shared.metrics.acknowledged(latency);
    }

    /// Events were acknowledged or the confirmed position moved.
    pub fn progressed(&self, now: SystemTime) {
        self.shared.metrics.progressed(now);
    }

    /// What the broker has not acknowledged: how many events, their bytes, and when the oldest
    /// was handed over.
    pub fn in_flight(&self, events: usize, bytes: usize, oldest: Option<Instant>) {
        self.shared.metrics.in_flight(events, bytes);
        self.shared.health.oldest_unacknowledged(oldest);
    }

    /// Something interrupted delivery.
    pub fn error(&self, class: ErrorClass) {
        self.shared.metrics.error(class);
    }

    /// An event can never be sent as it is.
    pub fn poisoned(&self) {
        self.shared.metrics.poison();
    }

    /// An event went to the dead-letter topic instead of its own.
    pub fn dead_letter(&self) {
        self.shared.metrics.dead_letter();
    }

    /// An event that could never be sent was left out for good (`outboxd skip`).
    pub fn passed_over(&self) {
        self.shared.metrics.passed_over();
    }

    /// A replication stream was started after one was lost.
    pub fn reconnected(&self) {
        self.shared.metrics.reconnected();
    }

    /// The server sent this many events again, which were not handed over a second time.
    pub fn skipped(&self, events: u64) {
        self.shared.metrics.skipped(events);
    }

    /// The slot was looked at; `None`: it does not exist.
    pub fn slot(&self, view: Option<&SlotView>) {
        self.shared.metrics.slot(view, SystemTime::now());
    }

    // === For whoever asks ===

    /// Brings the metrics up to date that change by standing still.
    pub(super) fn settle(&self, now: Instant) {
        let health = &self.shared.health;
        let streaming = matches!(health.state(), State::Streaming | State::Degraded(_));
        let ready = health.ready(now).is_ok();
        self.shared
            .metrics
            .health(streaming, ready, health.oldest_age(now));
    }

    pub(super) fn live(&self, now: Instant) -> Standing {
        self.standing(self.shared.health.live(now))
    }

    pub(super) fn ready(&self, now: Instant) -> Standing {
        self.standing(self.shared.health.ready(now))
    }

    fn standing(&self, judged: Result<(), String>) -> Standing {
        Standing {
            connector: self.shared.name.clone(),
            state: self.shared.health.state().name(),
            ok: judged.is_ok(),
            reason: judged.err(),
        }
    }
}

/// A connector's line in an answer about health.
#[derive(Debug, Serialize)]
pub(super) struct Standing {
    connector: String,
    state: &'static str,
    pub(super) ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}
