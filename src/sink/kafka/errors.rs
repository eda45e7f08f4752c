use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::model::ErrorClass;

/// Why a producer is finished: a record was refused for good, or the client itself gave up.
///
/// The class is never [`ErrorClass::Retry`]: whatever failed, what was queued behind it must
/// not be sent by the same producer (rule R3). What only has to be waited for is rewound with
/// a long [`Pause`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {reason}{advice}")]
pub struct DeliveryFailure {
    what: String,
    reason: String,
    advice: &'static str,
    class: ErrorClass,
    pause: Pause,
    rank: Rank,
    too_large_for: Option<String>,
}

/// How long to wait before the next producer tries again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// As after a cut connection.
    Short,
    /// It will take the cluster, or a person, a while to mend; seconds at least.
    Long,
}

/// How much a failure explains; of several, the one that explains most is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sink) enum Rank {
    /// That something else failed first.
    Consequence,
    /// That the client gave up; often because of a record, whose own report says more.
    Producer,
    /// What is wrong with a record or its topic.
    Cause,
}

impl DeliveryFailure {
    /// A record was refused.
    pub(super) fn of_record(error: &KafkaError, topic: &str) -> Self {
        let what = format!("a record for topic {topic} was not delivered");
        let (code, reason) = match error.rdkafka_error_code() {
            Some(code) => (code, code.to_string()),
            None => (RDKafkaErrorCode::Unknown, error.to_string()),
        };
        let is_too_large = code == RDKafkaErrorCode::MessageSizeTooLarge;
        Self {
            too_large_for: is_too_large.then(|| topic.to_owned()),
            ..Self::judged(code, what, reason)
        }
    }

    /// The client gave up, whatever records it holds (`rd_kafka_fatal_error`).
    pub(super) fn of_producer(code: RDKafkaErrorCode, reason: &str) -> Self {
        let what = "the Kafka producer cannot go on".to_owned();
        Self {
            // It is not about one event, and a new producer is what helps.
            class: ErrorClass::Rewind,
            rank: Rank::Producer,
            ..Self::judged(code, what, reason.to_owned())
        }
    }

    fn judged(code: RDKafkaErrorCode, what: String, reason: String) -> Self {
        let Judgement {
            class,
            pause,
            advice,
        } = judge(code);
        Self {
            what,
            reason,
            advice,
            class,
            pause,
            rank: rank(code),
            too_large_for: None,
        }
    }

    /// The topic that takes no batch as large as the record's was.
    pub(super) fn too_large_for(&self) -> Option<&str> {
        self.too_large_for.as_deref()
    }

    /// What to do about it (rule R9).
    pub fn class(&self) -> ErrorClass {
        self.class
    }

    /// How long to wait before trying again.
    pub fn pause(&self) -> Pause {
        self.pause
    }

    pub(in crate::sink) fn rank(&self) -> Rank {
        self.rank
    }
}

struct Judgement {
    class: ErrorClass,
    pause: Pause,
    advice: &'static str,
}

/// Class of a code, and what a person can do. A code that is not listed means: go back to the
/// confirmed position with a new producer, which loses nothing.
///
/// The codes are those of `rd_kafka_resp_err_t` (librdkafka's rdkafka.h); which of them end a
/// record's life is decided by `rd_kafka_handle_Produce_error` there. Many of those listed are
/// retried by librdkafka itself and come here only by way of an older broker or a proxy.
fn judge(code: RDKafkaErrorCode) -> Judgement {
    use RDKafkaErrorCode::*;
    let wait = |advice| Judgement {
        class: ErrorClass::Rewind,
        pause: Pause::Long,
        advice,
    };
    let poison = |advice| Judgement {
        class: ErrorClass::Poison,
        pause: Pause::Long,
        advice,
    };
    match code {
        // Poison: the event as it is.
        MessageSizeTooLarge | InvalidMessageSize => poison(
            "; raise message.max.bytes of the producer and max.message.bytes of the topic, or make the event smaller",
        ),
        InvalidTopic => poison("; the broker refuses the topic's name"),
        InvalidRecord => poison(
            "; the broker refuses the record: a compacted topic (cleanup.policy) needs a key in every event",
        ),
        InvalidTimestamp => poison(
            "; the event's time is outside the topic's message.timestamp.before.max.ms and message.timestamp.after.max.ms",
        ),

        // Poison as long as the topic is as it is. The client has looked for the topic for a
        // while by then (topic.metadata.propagation.max.ms).
        UnknownTopic | UnknownTopicOrPartition | UnknownPartition | UnknownTopicId => {
            poison("; create the topic, or let the broker create it (auto.create.topics.enable)")
        }
        TopicAuthorizationFailed => poison("; grant the client Write and Describe on the topic"),

        // Fatal: the configuration.
        UnsupportedCompressionType => Judgement {
            class: ErrorClass::Fatal,
            pause: Pause::Long,
            advice: "; the broker does not take this compression.type, choose another",
        },

        // Waiting for a person.
        ClusterAuthorizationFailed
        | TransactionalIdAuthorizationFailed
        | DelegationTokenAuthorizationFailed => wait(
            "; grant the client IdempotentWrite on the cluster, which brokers older than Kafka 2.8 ask for; it is tried again",
        ),
        Authentication
        | SaslAuthenticationFailed
        | UnsupportedSASLMechanism
        | IllegalSASLState
        | SecurityDisabled
        | UnacceptableCredential
        | PrincipalDeserializationFailure
        | DelegationTokenAuthDisabled
        | DelegationTokenNotFound
        | DelegationTokenOwnerMismatch
        | DelegationTokenRequestNotAllowed
        | DelegationTokenExpired => {
            wait("; check security.protocol, sasl.mechanism and the credentials; it is tried again")
        }
        SSL => wait("; check security.protocol and ssl.ca.location; it is tried again"),
        UnsupportedFeature | UnsupportedVersion | UnsupportedForMessageFormat => wait(
            "; idempotent producing with headers needs brokers of Kafka 0.11 or newer, and topics with message.format.version 0.11 or newer; it is tried again",
        ),
        MessageBatchTooLarge => wait(
            "; raise segment.bytes of the topic, or lower batch.size of the producer; it is tried again",
        ),

        // Waiting for the cluster: throttled.
        PolicyViolation | ThrottlingQuotaExceeded => wait(
            "; the broker throttles this client or its policy refuses the request; it is tried again",
        ),

        // Waiting for the cluster: leaders and replicas.
        LeaderNotAvailable
        | NotLeaderForPartition
        | FencedLeaderEpoch
        | UnknownLeaderEpoch
        | PreferredLeaderNotAvailable
        | EligibleLeadersNotAvailable
        | BrokerNotAvailable
        | ReplicaNotAvailable
        | NotController
        | StaleControllerEpoch
        | StaleBrokerEpoch
        | ReassignmentInProgress
        | RebootstrapRequired => {
            wait("; the partition has no leader at the moment; it is tried again")
        }
        NotEnoughReplicas | NotEnoughReplicasAfterAppend | ISRInsufficient => wait(
            "; fewer replicas are in sync than the topic's min.insync.replicas; it is tried again",
        ),
        KafkaStorageError | LogDirNotFound => {
            wait("; the broker cannot use its disk; it is tried again")
        }

        // Waiting for the network.
        BrokerTransportFailure
        | Resolve
        | AllBrokersDown
        | UnknownBroker
        | DestroyBroker
        | NetworkException
        | OperationTimedOut
        | RequestTimedOut
        | MessageTimedOut
        | TimedOutQueue
        | WaitingForCoordinator
        | CoordinatorLoadInProgress
        | CoordinatorNotAvailable
        | NotCoordinator => {
            wait("; check bootstrap.servers and the network to the brokers; it is tried again")
        }

        // Our own machine is short of something.
        CriticalSystemResource | FileSystem => {
            wait("; this machine is out of memory, threads or file descriptors; it is tried again")
        }

        _ => Judgement {
            class: ErrorClass::Rewind,
            pause: Pause::Short,
            advice: "; it is tried again",
        },
    }
}

fn rank(code: RDKafkaErrorCode) -> Rank {
    use RDKafkaErrorCode::{InvalidDifferentRecord, PurgeInflight, PurgeQueue};
    match code {
        // What the client held when it gave up.
        PurgeQueue | PurgeInflight => Rank::Consequence,
        // Another record of the same batch was refused (KIP-467).
        InvalidDifferentRecord => Rank::Consequence,
        _ => Rank::Cause,
    }
}

#[cfg(test)]
mod tests;
