use std::sync::{Arc, Weak};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{Producer, ThreadedProducer};

use super::context::Deliveries;
use super::{DeliveryFailure, inspect};
use crate::sink::Reports;

/// Asks whether the brokers answer, while a producer is in use elsewhere. Without records to
/// send, a client notices neither a broker that hangs nor a connection whose other end is gone.
///
/// Does not keep the producer alive.
#[derive(Clone)]
pub struct Probe {
    producer: Weak<ThreadedProducer<Deliveries>>,
    reports: Arc<Reports>,
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
            config: config.clone(),
        }
    }

    /// Asks one of the brokers for metadata. Blocks for `timeout` at most.
    ///
    /// The metadata asked for is that of a topic a record was delivered to, and before the
    /// first delivery that of all topics: the client offers nothing less.
    ///
    /// # Errors
    /// Why no broker answered, in words; also when the producer was closed meanwhile.
    pub fn reachable(&self, timeout: Duration) -> Result<(), String> {
        let Some(producer) = self.producer.upgrade() else {
            return Err("the producer was closed".to_owned());
        };
        let client = producer.client();
        match client.fetch_metadata(client.context().topic(), timeout) {
            Ok(_) => {
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
                Err(format!("no broker answered within {timeout:?}: {because}"))
            }
        }
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
