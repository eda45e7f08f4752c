use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::{FromClientConfig, FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::metadata::Metadata;
use rdkafka::producer::{Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext};

use super::settings;
use crate::sink::KafkaOptions;

/// Between two looks at what the client's thread has met so far.
const SLICE: Duration = Duration::from_millis(500);

/// What the brokers say of themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerFacts {
    /// The cluster's brokers as `host:port`, as they name themselves.
    pub brokers: Vec<String>,
    /// The topics we may see, with their number of partitions.
    pub topics: BTreeMap<String, usize>,
    /// Whether a missing topic is made when it is written to (`auto.create.topics.enable`);
    /// `None` when the broker does not tell.
    pub creates_topics: Option<bool>,
    /// What the client met on the way, although it got there: a bootstrap server that is down.
    pub troubles: Vec<String>,
}

/// The brokers could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reasons}")]
pub struct BrokerTrouble {
    /// Which part of the way it is about.
    pub kind: BrokerTroubleKind,
    /// The client's own words, without repetition.
    pub reasons: String,
}

/// Why brokers could not be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerTroubleKind {
    /// The client does not take the settings.
    Settings,
    /// A host name is unknown.
    Name,
    /// TLS did not come about.
    Tls,
    /// SASL did not let us in.
    Sasl,
    /// Nobody answers.
    Unreachable,
    /// They answer, and refuse.
    Refused,
}

/// Asks the brokers, for at most `patience` and a little. Makes and changes nothing.
///
/// # Errors
/// When no broker can be asked, with everything the client met.
pub async fn inspect(
    options: &KafkaOptions,
    patience: Duration,
) -> Result<BrokerFacts, BrokerTrouble> {
    let config = settings::client_config(options);
    let asking = config.clone();
    // The client's own calls block.
    let asked = tokio::task::spawn_blocking(move || metadata(&asking, patience)).await;
    let (metadata, troubles) = asked.map_err(|error| BrokerTrouble {
        kind: BrokerTroubleKind::Refused,
        reasons: error.to_string(),
    })??;
    let any = metadata.brokers().first().map(|broker| broker.id());
    let creates_topics = match any {
        Some(id) => creates_topics(&config, id, patience).await,
        None => None,
    };
    Ok(BrokerFacts {
        brokers: metadata
            .brokers()
            .iter()
            .map(|broker| format!("{}:{}", broker.host(), broker.port()))
            .collect(),
        topics: metadata
            .topics()
            .iter()
            .map(|topic| (topic.name().to_owned(), topic.partitions().len()))
            .collect(),
        creates_topics,
        troubles,
    })
}

pub(super) fn metadata(
    config: &ClientConfig,
    patience: Duration,
) -> Result<(Metadata, Vec<String>), BrokerTrouble> {
    let client = ThreadedProducer::from_config_and_context(config, Troubles::default()).map_err(
        |error| BrokerTrouble {
            kind: BrokerTroubleKind::Settings,
            reasons: error.to_string(),
        },
    )?;
    let deadline = Instant::now() + patience;
    loop {
        let error = match client.client().fetch_metadata(None, SLICE) {
            Ok(metadata) => return Ok((metadata, client.context().reasons())),
            Err(error) => error,
        };
        if client.context().is_hopeless() || Instant::now() >= deadline {
            let trouble = client.context().trouble(&error);
            return Err(with_authorities(trouble, config));
        }
    }
}

/// Where a broker's certificate was not taken, it has to be known what it was compared with.
fn with_authorities(mut trouble: BrokerTrouble, config: &ClientConfig) -> BrokerTrouble {
    if trouble.kind == BrokerTroubleKind::Tls {
        let trusted = match (config.get("ssl.ca.location"), config.get("ssl.ca.pem")) {
            (Some(location), _) => format!("those in {location}"),
            (None, Some(_)) => "those of ssl.ca.pem".to_owned(),
            (None, None) => "the system's".to_owned(),
        };
        trouble.reasons += &format!("; the authorities trusted are {trusted}");
    }
    trouble
}

/// `None` where the broker does not know the question (Event Hubs) or we may not ask it.
async fn creates_topics(config: &ClientConfig, broker: i32, patience: Duration) -> Option<bool> {
    let client = AdminClient::<DefaultClientContext>::from_config(config).ok()?;
    let options = AdminOptions::new().request_timeout(Some(patience));
    let described = client
        .describe_configs(&[ResourceSpecifier::Broker(broker)], &options)
        .await
        .ok()?;
    let of_broker = described.into_iter().next()?.ok()?;
    let entry = of_broker.get("auto.create.topics.enable")?;
    entry.value.as_ref()?.parse().ok()
}

/// What a topic takes at once (`max.message.bytes`); `None` where the brokers do not tell.
pub(super) async fn max_message_bytes(
    options: &KafkaOptions,
    topic: &str,
    patience: Duration,
) -> Option<usize> {
    let config = settings::client_config(options);
    let client = AdminClient::<DefaultClientContext>::from_config(&config).ok()?;
    let options = AdminOptions::new().request_timeout(Some(patience));
    let described = client
        .describe_configs(&[ResourceSpecifier::Topic(topic)], &options)
        .await
        .ok()?;
    let of_topic = described.into_iter().next()?.ok()?;
    let entry = of_topic.get("max.message.bytes")?;
    entry.value.as_ref()?.parse().ok()
}

/// Keeps what the client's thread complains of, each code once.
#[derive(Default)]
struct Troubles {
    met: Mutex<Vec<(RDKafkaErrorCode, String)>>,
}

impl Troubles {
    fn met(&self) -> Vec<(RDKafkaErrorCode, String)> {
        self.met
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn reasons(&self) -> Vec<String> {
        // That all of them are down is said once each of them has its own reason.
        self.met()
            .into_iter()
            .filter(|(code, _)| *code != RDKafkaErrorCode::AllBrokersDown)
            .map(|(_, reason)| reason)
            .collect()
    }

    /// Whether waiting on changes nothing within a person's patience.
    fn is_hopeless(&self) -> bool {
        self.met().iter().any(|(code, reason)| {
            *code == RDKafkaErrorCode::AllBrokersDown
                || matches!(
                    kind(*code, reason),
                    BrokerTroubleKind::Tls | BrokerTroubleKind::Sasl
                )
        })
    }

    fn trouble(&self, last: &KafkaError) -> BrokerTrouble {
        let reasons = self.reasons();
        // Of the reasons the one that lies farthest on the way.
        let farthest = self
            .met()
            .iter()
            .map(|(code, reason)| kind(*code, reason))
            .max_by_key(|kind| match kind {
                BrokerTroubleKind::Settings | BrokerTroubleKind::Unreachable => 0,
                BrokerTroubleKind::Name => 1,
                BrokerTroubleKind::Tls => 2,
                BrokerTroubleKind::Sasl => 3,
                BrokerTroubleKind::Refused => 4,
            });
        BrokerTrouble {
            kind: farthest.unwrap_or(BrokerTroubleKind::Unreachable),
            reasons: match reasons.as_slice() {
                [] => last.to_string(),
                reasons => reasons.join("; "),
            },
        }
    }
}

fn kind(code: RDKafkaErrorCode, reason: &str) -> BrokerTroubleKind {
    match code {
        // A peer that hangs up says no more; where it did so does (rd_kafka_broker_state_names).
        RDKafkaErrorCode::BrokerTransportFailure if reason.contains("in state SSL_HANDSHAKE") => {
            BrokerTroubleKind::Tls
        }
        RDKafkaErrorCode::BrokerTransportFailure if reason.contains("in state AUTH") => {
            BrokerTroubleKind::Sasl
        }
        RDKafkaErrorCode::Resolve => BrokerTroubleKind::Name,
        RDKafkaErrorCode::SSL => BrokerTroubleKind::Tls,
        RDKafkaErrorCode::Authentication
        | RDKafkaErrorCode::SaslAuthenticationFailed
        | RDKafkaErrorCode::UnsupportedSASLMechanism => BrokerTroubleKind::Sasl,
        RDKafkaErrorCode::BrokerTransportFailure
        | RDKafkaErrorCode::AllBrokersDown
        | RDKafkaErrorCode::OperationTimedOut => BrokerTroubleKind::Unreachable,
        _ => BrokerTroubleKind::Refused,
    }
}

impl ProducerContext for Troubles {
    type DeliveryOpaque = ();

    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}

impl ClientContext for Troubles {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, "Kafka client: {message}");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error
            .rdkafka_error_code()
            .unwrap_or(RDKafkaErrorCode::Unknown);
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        if met.iter().all(|(seen, _)| *seen != code) {
            met.push((code, reason.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(met: &[(RDKafkaErrorCode, &str)]) -> BrokerTrouble {
        let troubles = Troubles::default();
        for (code, reason) in met {
            troubles.error(KafkaError::Global(*code), reason);
        }
        troubles.trouble(&KafkaError::MetadataFetch(
            RDKafkaErrorCode::BrokerTransportFailure,
        ))
    }

    #[test]
    fn the_reason_farthest_on_the_way_counts_and_all_are_told() {
        use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure, Resolve, SSL};
        let mixed = trouble(&[
            (BrokerTransportFailure, "a: refused"),
            (SSL, "b: unknown authority"),
            (SSL, "b: unknown authority, again"),
            (AllBrokersDown, "2/2 brokers are down"),
        ]);
        assert_eq!(mixed.kind, BrokerTroubleKind::Tls);
        assert_eq!(mixed.to_string(), "a: refused; b: unknown authority");
        assert_eq!(trouble(&[(Resolve, "c")]).kind, BrokerTroubleKind::Name);
        let hung_up = "Disconnected (after 228ms in state SSL_HANDSHAKE)";
        let hung_up = trouble(&[(BrokerTransportFailure, hung_up)]);
        assert_eq!(hung_up.kind, BrokerTroubleKind::Tls);
        assert_eq!(trouble(&[]).kind, BrokerTroubleKind::Unreachable);
    }
}
