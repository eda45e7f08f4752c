//! Where records go. Later sinks stand beside `kafka`.
//!
//! The seam: a sink takes records in order and reports deliveries, each by the sequence number
//! its record was given.

mod kafka;
mod options;
mod reports;
mod stdout;

use std::sync::Arc;

pub use kafka::{
    BrokerFacts, BrokerTrouble, BrokerTroubleKind, DeliveryFailure, Pause, Probe,
    client_library_version, inspect as inspect_kafka,
};
pub use options::{KafkaOptions, SinkOptions};
pub use reports::{Report, Reports};

use crate::model::{ErrorClass, OutgoingRecord, Sequence};

/// The sink in force.
pub enum Sink {
    /// Kafka, or anything that speaks its protocol.
    Kafka(kafka::KafkaSink),
    /// Readable lines on standard output.
    Stdout(stdout::StdoutSink),
    /// Nothing; everything is acknowledged at once.
    Null(Arc<Reports>),
}

/// Why a record was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// Not taken now, for want of room or because a record before it failed; what to do next is
    /// known once deliveries were reported. The record was not lost.
    #[error("the producer's queue is full")]
    Full,
    /// The sink cannot be opened with these settings.
    #[error(
        "the Kafka client cannot be set up: {0}; check bootstrap.servers and the producer settings"
    )]
    Settings(String),
    /// The broker or its client refused the record.
    #[error(transparent)]
    Refused(#[from] DeliveryFailure),
    /// Standard output cannot be written to.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] std::io::Error),
}

impl SinkError {
    /// What to do about it (rule R9).
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Full => ErrorClass::Retry,
            Self::Settings(_) | Self::Output(_) => ErrorClass::Fatal,
            Self::Refused(failure) => failure.class(),
        }
    }

    /// How long to wait before trying again.
    pub fn pause(&self) -> Pause {
        match self {
            Self::Refused(failure) => failure.pause(),
            Self::Full | Self::Settings(_) | Self::Output(_) => Pause::Short,
        }
    }
}

impl Sink {
    /// Opens the sink. Delivery reports go to `reports`.
    ///
    /// # Errors
    /// When the settings cannot be used. A broker that is away is no error: it is waited for.
    pub fn open(options: &SinkOptions, reports: Arc<Reports>) -> Result<Self, SinkError> {
        Ok(match options {
            SinkOptions::Kafka(options) => Self::Kafka(kafka::KafkaSink::open(options, reports)?),
            SinkOptions::Stdout => Self::Stdout(stdout::StdoutSink::new(reports)),
            SinkOptions::Null => Self::Null(reports),
        })
    }

    /// Hands a record over, in order. Never blocks.
    ///
    /// # Errors
    /// [`SinkError::Full`] when it has to be handed over again later; any other error means
    /// that nothing after this record may be handed over to this sink any more (rule R3).
    pub fn enqueue(
        &mut self,
        sequence: Sequence,
        record: &OutgoingRecord<'_>,
    ) -> Result<(), SinkError> {
        match self {
            Self::Kafka(sink) => sink.enqueue(sequence, record),
            Self::Stdout(sink) => sink.enqueue(sequence, record),
            Self::Null(reports) => {
                reports.put(Report::delivered(sequence));
                Ok(())
            }
        }
    }

    /// Why this sink is finished, if it is and once that is known (rule R3).
    pub fn verdict(&self) -> Option<DeliveryFailure> {
        match self {
            Self::Kafka(sink) => sink.verdict(),
            Self::Stdout(_) | Self::Null(_) => None,
        }
    }

    /// What asks whether the brokers answer; `None` where there are none.
    pub fn probe(&self) -> Option<Probe> {
        match self {
            Self::Kafka(sink) => Some(sink.probe()),
            Self::Stdout(_) | Self::Null(_) => None,
        }
    }

    /// Closes the sink, throwing away what it has not delivered. May block for a while.
    pub fn close(self) {
        drop(self);
    }
}
