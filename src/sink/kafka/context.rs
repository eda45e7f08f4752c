use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::ProducerContext;

use super::{DeliveryFailure, from_opaque};
use crate::sink::{Report, Reports};

/// Takes what the client's thread has to say: delivery reports and errors.
pub(super) struct Deliveries {
    reports: Arc<Reports>,
    complaints: Mutex<Complaints>,
    /// The first topic a record was delivered to.
    topic: OnceLock<String>,
}

/// What the client complained of.
#[derive(Default)]
struct Complaints {
    /// When an error with this code was last logged, so that a broker that is away for a week
    /// does not fill the log.
    logged: Vec<(RDKafkaErrorCode, Instant)>,
    /// What was last said of one broker.
    of_a_broker: Option<String>,
}

/// The same error is logged again after this long.
const REPEAT_ERROR_AFTER: Duration = Duration::from_secs(60);

impl Deliveries {
    pub(super) fn new(reports: Arc<Reports>) -> Self {
        Self {
            reports,
            complaints: Mutex::default(),
            topic: OnceLock::new(),
        }
    }

    /// A topic that is known to be there.
    pub(super) fn topic(&self) -> Option<&str> {
        self.topic.get().map(String::as_str)
    }
}

impl Complaints {
    /// Whether an error with this code is to be logged now.
    fn is_due(&mut self, code: RDKafkaErrorCode, now: Instant) -> bool {
        match self.logged.iter_mut().find(|(logged, _)| *logged == code) {
            Some((_, at)) if now.saturating_duration_since(*at) < REPEAT_ERROR_AFTER => false,
            Some((_, at)) => {
                *at = now;
                true
            }
            None => {
                self.logged.push((code, now));
                true
            }
        }
    }
}

/// The reason without what is different each time: how long the attempt took, and how many like
/// it were not reported (`rd_kafka_broker_set_error`).
fn stable(reason: &str) -> &str {
    reason
        .split_once(" (after ")
        .map_or(reason, |(stable, _)| stable)
}

impl ProducerContext for Deliveries {
    /// The sequence number itself, not a pointer to it: nothing to allocate or to free.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, opaque: usize) {
        let outcome = match result {
            Ok(message) => {
                self.topic.get_or_init(|| message.topic().to_owned());
                Ok(())
            }
            Err((error, message)) => Err(DeliveryFailure::of_record(error, message.topic())),
        };
        self.reports.put(Report {
            sequence: from_opaque(opaque),
            outcome,
        });
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        match level {
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error
            | RDKafkaLogLevel::Warning => {
                // Said by `error` too, there without repetition.
                tracing::debug!(facility, "Kafka client: {message}");
            }
            _ => tracing::trace!(facility, "Kafka client: {message}"),
        }
    }

    /// Errors are for information, the client goes on trying; all but the one by which it gives
    /// up (`rd_kafka_conf_set_error_cb`). Which one that is cannot be seen here: as an event it
    /// comes with the code of its cause.
    ///
    /// Logged as information, since one broker of several may be away without harm; where it does
    /// harm, the relay warns.
    fn error(&self, error: KafkaError, reason: &str) {
        let code = error
            .rdkafka_error_code()
            .unwrap_or(RDKafkaErrorCode::Unknown);
        let reason = stable(reason);
        let mut complaints = self
            .complaints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match code {
            // Why the last one is down says more than the number, which is often wrong besides
            // ("0/1 brokers are down").
            RDKafkaErrorCode::AllBrokersDown => {
                let why = complaints.of_a_broker.as_deref().unwrap_or(reason);
                self.reports.set_trouble(why.to_owned());
            }
            RDKafkaErrorCode::Authentication
            | RDKafkaErrorCode::SaslAuthenticationFailed
            | RDKafkaErrorCode::SSL
            | RDKafkaErrorCode::Resolve => {
                self.reports.set_trouble(reason.to_owned());
                complaints.of_a_broker = Some(reason.to_owned());
            }
            _ => complaints.of_a_broker = Some(reason.to_owned()),
        }
        self.reports.suspect();
        if code != RDKafkaErrorCode::AllBrokersDown && complaints.is_due(code, Instant::now()) {
            tracing::info!(error = %code, "The Kafka client has trouble: {reason}. It keeps trying.");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_is_logged_once_a_minute_however_they_alternate() {
        use RDKafkaErrorCode::{BrokerTransportFailure, Resolve};
        let start = Instant::now();
        let mut complaints = Complaints::default();
        let mut logged = 0;
        for second in 0..120 {
            for code in [BrokerTransportFailure, Resolve] {
                let now = start + Duration::from_secs(second);
                logged += usize::from(complaints.is_due(code, now));
            }
        }
        assert_eq!(logged, 4);
    }

    #[test]
    fn all_brokers_down_is_told_by_why_the_last_one_is() {
        let reports = Arc::new(Reports::default());
        let deliveries = Deliveries::new(Arc::clone(&reports));
        let say = |code, reason: &str| deliveries.error(KafkaError::Global(code), reason);
        for (took, number) in [(0, "1/1"), (3, "0/1")] {
            say(
                RDKafkaErrorCode::BrokerTransportFailure,
                &format!("a:1: Connection refused (after {took}ms in state CONNECT)"),
            );
            say(
                RDKafkaErrorCode::AllBrokersDown,
                &format!("{number} brokers are down"),
            );
            assert_eq!(
                reports.trouble().as_deref(),
                Some("a:1: Connection refused")
            );
        }
    }
}
