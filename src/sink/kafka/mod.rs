//! The Kafka producer. The only place that knows rdkafka.

mod context;
mod errors;
mod inspect;
mod probe;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, PurgeConfig, ThreadedProducer};

use context::Deliveries;
pub(super) use errors::Rank;
pub use errors::{DeliveryFailure, Pause};
pub use inspect::{BrokerFacts, BrokerTrouble, BrokerTroubleKind, inspect};
pub use probe::Probe;

use super::{KafkaOptions, Reports, SinkError};
use crate::model::{OutgoingRecord, Sequence};

/// One producer generation. When a record fails for good the whole producer is dropped and
/// another takes its place, since what was queued behind the record must not overtake it
/// (rule R3).
pub struct KafkaSink {
    producer: Arc<ThreadedProducer<Deliveries>>,
    reports: Arc<Reports>,
    config: ClientConfig,
}

impl KafkaSink {
    pub(super) fn open(options: &KafkaOptions, reports: Arc<Reports>) -> Result<Self, SinkError> {
        let context = Deliveries::new(Arc::clone(&reports));
        let config = settings::client_config(options);
        let producer = ThreadedProducer::from_config_and_context(&config, context)
            .map_err(|error| SinkError::Settings(error.to_string()))?;
        Ok(Self {
            producer: Arc::new(producer),
            reports,
            config,
        })
    }

    pub(super) fn enqueue(
        &mut self,
        sequence: Sequence,
        record: &OutgoingRecord<'_>,
    ) -> Result<(), SinkError> {
        if self.reports.is_finished() {
            return Err(SinkError::Full);
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
                // The latter: it gave up, and its error callback is on its way.
                KafkaError::MessageProduction(
                    RDKafkaErrorCode::QueueFull | RDKafkaErrorCode::Fatal,
                ) => SinkError::Full,
                other => SinkError::Refused(DeliveryFailure::of_record(&other, record.topic)),
            })
    }

    /// Why this producer is finished, once that is known.
    pub(super) fn verdict(&self) -> Option<DeliveryFailure> {
        if self.reports.take_suspicion()
            && let Some((code, reason)) = self.producer.client().fatal_error()
        {
            self.reports
                .lost(DeliveryFailure::of_producer(code, &reason));
        }
        self.reports.verdict()
    }

    pub(super) fn probe(&self) -> Probe {
        Probe::new(&self.producer, &self.reports, &self.config)
    }
}

impl Drop for KafkaSink {
    /// A probe under way can keep the client alive for a moment; what is queued must not be
    /// sent in it, for the next producer sends it again (rule R3).
    fn drop(&mut self) {
        self.producer
            .purge(PurgeConfig::default().queue().inflight());
    }
}

/// How long the brokers are asked for a topic's settings.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a batch was refused for its size, keeps batches below what its topic takes from the
/// next producer on; the topic and that size, if they could be larger until now.
pub(super) async fn fit_batches(
    options: &mut KafkaOptions,
    failure: &DeliveryFailure,
) -> Option<(String, usize)> {
    let topic = failure.too_large_for()?;
    let limit = inspect::max_message_bytes(options, topic, PATIENCE).await?;
    settings::keep_batches_below(options, limit).then(|| (topic.to_owned(), limit))
}

/// The version of the bundled librdkafka, such as `2.12.1`.
pub fn client_library_version() -> String {
    rdkafka::util::get_rdkafka_version().1
}

#[cfg(not(target_pointer_width = "64"))]
compile_error!("a sequence number has to fit into the pointer that librdkafka hands back");

fn to_opaque(sequence: Sequence) -> usize {
    sequence.0 as usize
}

fn from_opaque(opaque: usize) -> Sequence {
    Sequence(opaque as u64)
}
