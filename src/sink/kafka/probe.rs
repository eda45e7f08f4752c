use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::metadata::Metadata;
use rdkafka::producer::{Producer, ThreadedProducer};

use super::context::Deliveries;
use super::{DeliveryFailure, inspect};
use crate::sink::Reports;

/// A cluster with more topics and partitions than this is not asked for all of them again and
/// again: its answer has more than 50 KB or so.
const LARGE: usize = 1000;

/// Asks whether the brokers answer, while a producer is in use elsewhere. Without records to
/// send, a client notices neither a broker that hangs nor a connection whose other end is gone.
///
/// Does not keep the producer alive.
#[derive(Clone)]
pub struct Probe {
    producer: Weak<ThreadedProducer<Deliveries>>,
    reports: Arc<Reports>,
    /// Whether the cluster is [`LARGE`], as far as is known.
    is_large: Arc<AtomicBool>,
    config: ClientConfig,
}

impl Probe {
    pub(super) fn new(
        producer: &Arc<ThreadedProducer<Deliveries>>,
        reports: &Arc<Reports>,
        config: &ClientConfig,
    ) -> Self {
        Self {
            producer: Arc::downgrade(producer),
            reports: Arc::clone(reports),
            is_large: Arc::default(),
            config: config.clone(),
        }
    }

    /// Whether a broker answers: one that took a record since the last time did, and otherwise
    /// one is asked. Blocks for `timeout` at most.
    ///
    /// # Errors
    /// Why no broker answered, in words; also when the producer was closed meanwhile.
    pub fn reachable(&self, timeout: Duration) -> Result<(), String> {
        let Some(producer) = self.producer.upgrade() else {
            return Err("the producer was closed".to_owned());
        };
        if self.reports.take_delivered() {
            return Ok(());
        }
        match self.ask(&producer, timeout) {
            Ok(()) => {
                tracing::debug!("A broker answers.");
                self.reports.clear_trouble();
                Ok(())
            }
            Err(error) => {
                let because = match self.reports.trouble() {
                    Some(trouble) => trouble,
                    None => error
                        .rdkafka_error_code()
                        .map_or_else(|| error.to_string(), |code| code.to_string()),
                };
                tracing::debug!("No broker answers: {because}.");
                Err(format!("no broker answered within {timeout:?}: {because}"))
            }
        }
    }

    /// Asks one of the brokers, over the producer's own connections, for metadata: the only
    /// question the client offers that any broker answers, whatever our rights are, and that
    /// takes no connection down when the answer is late.
    ///
    /// Asking for one topic makes it, where brokers make topics: one that was deleted would be
    /// back at once. Asking for all topics makes none, and costs little where they are few. For
    /// a large cluster it is the other way round, so there a topic is asked for that a record
    /// was delivered to.
    fn ask(
        &self,
        producer: &ThreadedProducer<Deliveries>,
        timeout: Duration,
    ) -> Result<(), rdkafka::error::KafkaError> {
        let client = producer.client();
        let topic = match self.is_large.load(Ordering::Relaxed) {
            true => client.context().topic(),
            false => None,
        };
        let answer = client.fetch_metadata(topic, timeout)?;
        if topic.is_none() {
            self.is_large
                .store(size(&answer) > LARGE, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether the next question is one for all topics of a large cluster.
    pub fn is_costly(&self) -> bool {
        self.is_large.load(Ordering::Relaxed)
            && self
                .producer
                .upgrade()
                .is_some_and(|producer| producer.client().context().topic().is_none())
    }

    /// Asks the brokers by a client of its own, which knows no more than bootstrap.servers.
    /// Blocks for `timeout` and a little at most, and not at all when the producer was closed:
    /// whoever stops waits for this.
    pub fn reachable_anew(&self, timeout: Duration) -> bool {
        self.producer.strong_count() > 0
            && inspect::metadata(&self.config, timeout)
                .is_ok_and(|(metadata, _)| !metadata.brokers().is_empty())
    }

    /// The brokers are there, and the producer does not find them: another has to take its place.
    pub fn give_up(&self) {
        self.reports.lost(DeliveryFailure::of_producer(
            RDKafkaErrorCode::AllBrokersDown,
            "it does not find the brokers any more, and a new client does",
        ));
        self.reports.suspect();
    }
}

/// How many topics and partitions the answer names.
fn size(metadata: &Metadata) -> usize {
    let topics = metadata.topics().iter();
    topics.map(|topic| 1 + topic.partitions().len()).sum()
}
