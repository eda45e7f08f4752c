use super::{DeliveryFailure, kafka};

/// Where records go (`outboxd.sink.type`).
#[derive(Debug, Clone)]
pub enum SinkOptions {
    /// To Kafka, or anything that speaks its protocol.
    Kafka(KafkaOptions),
    /// As readable lines to standard output, for trying things out.
    Stdout,
    /// Nowhere, acknowledged at once, for measuring everything before the sink.
    Null,
}

/// What the Kafka client is given besides the settings the delivery rules fix.
#[derive(Clone)]
pub struct KafkaOptions {
    /// `bootstrap.servers`, comma-separated `host:port`.
    pub bootstrap_servers: String,
    /// Further properties under librdkafka's names, passed on as they are. May hold secrets.
    pub properties: Vec<(String, String)>,
}

impl SinkOptions {
    /// Learns from a refusal: where a batch was too large for its topic, batches are kept below
    /// what the topic takes from the next opening on. The topic and that size in bytes, if that
    /// changes anything. Asks the brokers, for a few seconds at most.
    pub async fn fit_batches(&mut self, failure: &DeliveryFailure) -> Option<(String, usize)> {
        match self {
            Self::Kafka(options) => kafka::fit_batches(options, failure).await,
            Self::Stdout | Self::Null => None,
        }
    }
}

/// Shows property names only: values can be secrets.
impl std::fmt::Debug for KafkaOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self
            .properties
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        f.debug_struct("KafkaOptions")
            .field("bootstrap_servers", &self.bootstrap_servers)
            .field("properties", &names)
            .finish()
    }
}
