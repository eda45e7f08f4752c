use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::model::ErrorClass;

/// A record the broker or its client refused for good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a record for topic {topic} was not delivered: {reason}{advice}")]
pub struct DeliveryFailure {
    topic: String,
    reason: String,
    advice: &'static str,
    class: ErrorClass,
}

impl DeliveryFailure {
    pub(super) fn new(error: &KafkaError, topic: &str) -> Self {
        let code = error.rdkafka_error_code();
        let (class, advice) = code.map_or((ErrorClass::Rewind, ""), judge);
        Self {
            topic: topic.to_owned(),
            reason: code.map_or_else(|| error.to_string(), |code| code.to_string()),
            advice,
            class,
        }
    }

    /// The record was not even tried, because one before it failed.
    pub(super) fn behind_a_failed_record(topic: &str) -> Self {
        Self {
            topic: topic.to_owned(),
            reason: "a record before it failed, and nothing may overtake it".to_owned(),
            advice: "",
            class: ErrorClass::Rewind,
        }
    }

    /// What to do about it (rule R9).
    pub fn class(&self) -> ErrorClass {
        self.class
    }
}

/// Class of a librdkafka code, and what a person can do. Codes not listed: go back to the
/// confirmed position with a new producer, which loses nothing.
fn judge(code: RDKafkaErrorCode) -> (ErrorClass, &'static str) {
    use RDKafkaErrorCode::{
        ClusterAuthorizationFailed, InvalidMessageSize, InvalidTopic, MessageSizeTooLarge,
        TopicAuthorizationFailed, UnknownTopic, UnknownTopicOrPartition,
    };
    match code {
        MessageSizeTooLarge | InvalidMessageSize => (
            ErrorClass::Poison,
            "; raise message.max.bytes of the producer and max.message.bytes of the topic, or make the event smaller",
        ),
        InvalidTopic => (ErrorClass::Poison, "; the broker refuses the topic's name"),
        UnknownTopic | UnknownTopicOrPartition => (
            ErrorClass::Rewind,
            "; create the topic, or let the broker create it (auto.create.topics.enable); it is tried again",
        ),
        TopicAuthorizationFailed | ClusterAuthorizationFailed => (
            ErrorClass::Rewind,
            "; grant the client Write and IdempotentWrite; it is tried again",
        ),
        _ => (ErrorClass::Rewind, "; it is tried again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: RDKafkaErrorCode) -> DeliveryFailure {
        DeliveryFailure::new(&KafkaError::MessageProduction(code), "t")
    }

    #[test]
    fn an_unlisted_code_goes_back_and_tries_again() {
        let failure = failure(RDKafkaErrorCode::OutOfOrderSequenceNumber);
        assert_eq!(failure.class(), ErrorClass::Rewind);
    }

    #[test]
    fn a_record_too_large_is_poison_and_says_what_to_raise() {
        let failure = failure(RDKafkaErrorCode::MessageSizeTooLarge);
        assert_eq!(failure.class(), ErrorClass::Poison);
        assert!(
            failure.to_string().contains("max.message.bytes"),
            "{failure}"
        );
    }
}
