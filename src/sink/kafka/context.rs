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
    /// The last error logged, and when, so that a broker that is away for a week does not
    /// fill the log.
    last_error: Mutex<Option<(RDKafkaErrorCode, Instant)>>,
    /// The first topic a record was delivered to.
    topic: OnceLock<String>,
}

/// The same error is logged again after this long.
const REPEAT_ERROR_AFTER: Duration = Duration::from_secs(60);

impl Deliveries {
    pub(super) fn new(reports: Arc<Reports>) -> Self {
        Self {
            reports,
            last_error: Mutex::new(None),
            topic: OnceLock::new(),
        }
    }

    /// A topic that is known to be there.
    pub(super) fn topic(&self) -> Option<&str> {
        self.topic.get().map(String::as_str)
    }
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
    fn error(&self, error: KafkaError, reason: &str) {
        let code = error
            .rdkafka_error_code()
            .unwrap_or(RDKafkaErrorCode::Unknown);
        if matches!(
            code,
            RDKafkaErrorCode::Authentication
                | RDKafkaErrorCode::SaslAuthenticationFailed
                | RDKafkaErrorCode::SSL
                | RDKafkaErrorCode::Resolve
                | RDKafkaErrorCode::AllBrokersDown
        ) {
            self.reports.set_trouble(reason.to_owned());
        }
        self.reports.suspect();
        let mut last = self
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let repeated =
            last.is_some_and(|(seen, at)| seen == code && at.elapsed() < REPEAT_ERROR_AFTER);
        if !repeated {
            *last = Some((code, Instant::now()));
            tracing::warn!(error = %code, "The Kafka client has trouble: {reason}. It keeps trying.");
        }
    }
}
