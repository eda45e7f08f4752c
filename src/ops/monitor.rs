use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Connector;
use super::connector::Standing;
use super::metrics::Metrics;

/// All connectors of the process, and what is said of them together.
#[derive(Clone)]
pub struct Monitor {
    metrics: Arc<Metrics>,
    connectors: Arc<Mutex<Vec<Connector>>>,
}

/// An answer about health: every connector's part, and whether all of them are well.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// Whether all are.
    pub ok: bool,
    connectors: Vec<Standing>,
}

impl Monitor {
    /// Watches nothing yet.
    pub fn empty() -> Self {
        Self {
            metrics: Arc::new(Metrics::new()),
            connectors: Arc::default(),
        }
    }

    /// Another connector, by its name. Not ready when an event waits longer than
    /// `max_unacknowledged` for its acknowledgement.
    pub fn connector(&self, name: &str, max_unacknowledged: Duration) -> Connector {
        let connector = Connector::new(name, Arc::clone(&self.metrics), max_unacknowledged);
        self.connectors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connector.clone());
        connector
    }

    /// Everything measured, in Prometheus's text format.
    pub fn metrics(&self) -> String {
        let now = Instant::now();
        for connector in self.connectors() {
            connector.settle(now);
        }
        self.metrics.render()
    }

    /// Whether every relay's loop turns; where not, a restart of the process may help.
    pub fn live(&self) -> Answer {
        let now = Instant::now();
        self.answer(|connector| connector.live(now))
    }

    /// Whether every connector streams and delivers.
    pub fn ready(&self) -> Answer {
        let now = Instant::now();
        self.answer(|connector| connector.ready(now))
    }

    /// Keeps what is measured from piling up while nobody asks for it. Runs until dropped.
    pub async fn upkeep(self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.metrics.upkeep();
        }
    }

    fn answer(&self, ask: impl Fn(&Connector) -> Standing) -> Answer {
        let connectors: Vec<Standing> = self.connectors().iter().map(ask).collect();
        Answer {
            ok: connectors.iter().all(|standing| standing.ok),
            connectors,
        }
    }

    fn connectors(&self) -> Vec<Connector> {
        self.connectors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ErrorClass, SlotView, WalStatus};

    const PATIENCE: Duration = Duration::from_secs(10);

    /// The value of a series, with its labels as Prometheus writes them.
    fn value(monitor: &Monitor, series: &str) -> Option<String> {
        let text = monitor.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(series))?;
        Some(line.trim().to_owned())
    }

    #[test]
    fn what_happened_shows_with_the_connector_as_label() {
        let monitor = Monitor::empty();
        let connector = monitor.connector("claims", PATIENCE);
        connector.streaming();
        connector.delivered("claim.events", 3);
        connector.delivered("claim.events", 4);
        connector.acknowledged(Duration::from_millis(3));
        connector.error(ErrorClass::Rewind);
        connector.in_flight(2, 300, Some(Instant::now()));
        for (series, expected) in [
            (
                r#"outboxd_events_delivered_total{connector="claims",topic="claim.events"}"#,
                "7",
            ),
            (
                r#"outboxd_errors_total{connector="claims",class="rewind"}"#,
                "1",
            ),
            (
                r#"outboxd_errors_total{connector="claims",class="fatal"}"#,
                "0",
            ),
            (r#"outboxd_in_flight_bytes{connector="claims"}"#, "300"),
            (r#"outboxd_ready{connector="claims"}"#, "1"),
            (
                r#"outboxd_commit_to_acknowledged_seconds_bucket{connector="claims",le="0.002"}"#,
                "0",
            ),
            (
                r#"outboxd_commit_to_acknowledged_seconds_bucket{connector="claims",le="0.005"}"#,
                "1",
            ),
            (
                r#"outboxd_commit_to_acknowledged_seconds_bucket{connector="claims",le="60"}"#,
                "1",
            ),
        ] {
            assert_eq!(
                value(&monitor, series).as_deref(),
                Some(expected),
                "{series}"
            );
        }
    }

    #[test]
    fn a_slot_shows_what_is_known_of_it_and_nan_for_the_rest() {
        let monitor = Monitor::empty();
        let connector = monitor.connector("claims", PATIENCE);
        let of = |metric: &str| value(&monitor, &format!(r#"{metric}{{connector="claims"}}"#));
        let status = |word: &str| {
            let series =
                format!(r#"outboxd_slot_wal_status{{connector="claims",status="{word}"}}"#);
            value(&monitor, &series)
        };
        // Nothing that a rule could take for a zero.
        assert_eq!(of("outboxd_slot_active").as_deref(), Some("NaN"));
        connector.slot(Some(&SlotView {
            retained_wal: Some(500),
            safe_wal_size: Some(-7),
            wal_status: Some(WalStatus::Unreserved),
            active: true,
            ..SlotView::default()
        }));
        assert_eq!(
            of("outboxd_slot_retained_wal_bytes").as_deref(),
            Some("500")
        );
        assert_eq!(
            of("outboxd_slot_safe_wal_size_bytes").as_deref(),
            Some("-7")
        );
        assert_eq!(
            of("outboxd_slot_confirmed_lag_bytes").as_deref(),
            Some("NaN")
        );
        assert_eq!(of("outboxd_slot_active").as_deref(), Some("1"));
        assert_eq!(status("unreserved").as_deref(), Some("1"));
        assert_eq!(status("lost").as_deref(), Some("0"));
        connector.slot(None);
        assert_eq!(of("outboxd_slot_missing").as_deref(), Some("1"));
        assert_eq!(of("outboxd_slot_active").as_deref(), Some("0"));
        assert_eq!(status("unreserved").as_deref(), Some("0"));
    }

    #[test]
    fn topics_without_end_are_counted_together() {
        let monitor = Monitor::empty();
        let connector = monitor.connector("claims", PATIENCE);
        for number in 0..3000 {
            connector.delivered(&format!("topic-{number}"), 1);
        }
        let text = monitor.metrics();
        let series = text
            .lines()
            .filter(|line| line.starts_with("outboxd_events_delivered_total{"));
        assert_eq!(series.count(), 1001);
        let further =
            r#"outboxd_events_delivered_total{connector="claims",topic="(further topics)"}"#;
        assert_eq!(value(&monitor, further).as_deref(), Some("2000"));
    }

    #[test]
    fn all_must_be_well_and_each_says_why_it_is_not() {
        let monitor = Monitor::empty();
        let claims = monitor.connector("claims", PATIENCE);
        let orders = monitor.connector("orders", PATIENCE);
        claims.streaming();
        // Not connected, so there is nothing to be degraded.
        orders.degraded("the broker is away");
        assert!(!monitor.ready().ok && monitor.live().ok);
        orders.waiting("no route to host");
        let said = serde_json::to_string(&monitor.ready()).expect("JSON");
        assert_eq!(
            said,
            r#"{"ok":false,"connectors":[{"connector":"claims","state":"streaming","ok":true},{"connector":"orders","state":"waiting","ok":false,"reason":"no route to host"}]}"#
        );
        orders.streaming();
        assert!(monitor.ready().ok);
        orders.degraded("the broker is away");
        assert!(!monitor.ready().ok);
        orders.delivering();
        assert!(monitor.ready().ok);
    }
}
