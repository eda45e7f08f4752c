//! The Kafka producer. The only place that knows rdkafka.

mod errors;
mod inspect;
mod settings;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, ProducerContext, ThreadedProducer};

pub use errors::DeliveryFailure;
pub use inspect::{BrokerFacts, BrokerTrouble, BrokerTroubleKind, inspect};

use super::{KafkaOptions, Report, Reports, SinkError};
use crate::model::{OutgoingRecord, Sequence};

/// One producer generation. When a record fails for good the whole producer is dropped and
/// another takes its place, since what was queued behind the record must not overtake it
/// (rule R3).
pub struct KafkaSink {
    producer: ThreadedProducer<Deliveries>,
    reports: Arc<Reports>,
}

impl KafkaSink {
    pub(super) fn open(options: &KafkaOptions, reports: Arc<Reports>) -> Result<Self, SinkError> {
        let context = Deliveries {
            reports: Arc::clone(&reports),
            last_error: Mutex::new(None),
        };
        let producer =
            ThreadedProducer::from_config_and_context(&settings::client_config(options), context)
                .map_err(|error| SinkError::Settings(error.to_string()))?;
        Ok(Self { producer, reports })
    }

    pub(super) fn enqueue(
        &mut self,
        sequence: Sequence,
        record: &OutgoingRecord<'_>,
    ) -> Result<(), SinkError> {
        if self.reports.failed() {
            return Err(SinkError::Refused(DeliveryFailure::behind_a_failed_record(
                record.topic,
            )));
        }
        let mut headers = OwnedHeaders::new_with_capacity(record.headers.len());
        for header in record.headers {
            headers = headers.insert(Header {
                key: header.name,
                value: header.value,
            });
        }
        let outgoing = BaseRecord {
            topic: record.topic,
            partition: None,
            payload: record.value,
            key: record.key,
            // Set by the client when the record is handed over, as Debezium's `ts_ms`.
            timestamp: None,
            headers: Some(headers),
            delivery_opaque: to_opaque(sequence),
        };
        self.producer
            .send(outgoing)
            .map_err(|(error, _)| match error {
                KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) => SinkError::Full,
                other => SinkError::Refused(DeliveryFailure::new(&other, record.topic)),
            })
    }
}

/// The version of the bundled librdkafka, such as `2.12.1`.
pub fn client_library_version() -> String {
    rdkafka::util::get_rdkafka_version().1
}

/// Takes what the client's thread has to say: delivery reports and errors.
struct Deliveries {
    reports: Arc<Reports>,
    /// The last error logged, and when, so that a broker that is away for a week does not
    /// fill the log.
    last_error: Mutex<Option<(RDKafkaErrorCode, Instant)>>,
}

/// The same error is logged again after this long.
const REPEAT_ERROR_AFTER: Duration = Duration::from_secs(60);

impl ProducerContext for Deliveries {
    /// The sequence number itself, not a pointer to it: nothing to allocate or to free.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, opaque: usize) {
        let outcome = match result {
            Ok(_) => Ok(()),
            Err((error, message)) => Err(DeliveryFailure::new(error, message.topic())),
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

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error
            .rdkafka_error_code()
            .unwrap_or(RDKafkaErrorCode::Unknown);
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

#[cfg(not(target_pointer_width = "64"))]
compile_error!("a sequence number has to fit into the pointer that librdkafka hands back");

fn to_opaque(sequence: Sequence) -> usize {
    sequence.0 as usize
}

fn from_opaque(opaque: usize) -> Sequence {
    Sequence(opaque as u64)
}
