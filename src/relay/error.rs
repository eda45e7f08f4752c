use crate::convert::{ConvertError, UnsupportedType};
use crate::model::{ErrorClass, Lsn, TableName};
use crate::relay::ack::{AckError, ProtocolViolation};
use crate::relay::findings::Unfit;
use crate::relay::poison::Place;
use crate::relay::skip::SkipError;
use crate::router::{PlanError, RouteError};
use crate::sink::{DeliveryFailure, Pause, SinkError};
use crate::source::postgres::SourceError;

/// What ends an attempt to relay.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// Between us and PostgreSQL.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Between us and the broker.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// Server, role, slot, publication or tables are not as they have to be.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// A table's shape does not fit the configuration.
    #[error(transparent)]
    Table(#[from] Box<TableError>),
    /// The context headers cannot be written by the header converter.
    #[error(
        "the context headers cannot be converted: {0}; set extended.headers.enabled=false or another header.converter"
    )]
    ContextHeaders(#[source] ConvertError),
    /// One event cannot be routed or converted.
    #[error(transparent)]
    Event(#[from] Box<EventError>),
    /// An update of an outbox row, with `table.op.invalid.behavior=fatal`.
    #[error(
        "a row of the outbox table {table} was updated in the transaction that commits at {lsn}, and table.op.invalid.behavior=fatal; events are only ever inserted"
    )]
    Updated {
        /// The table.
        table: TableName,
        /// The transaction's commit position.
        lsn: Lsn,
    },
    /// The record in hand was refused, and nothing before it.
    #[error(transparent)]
    Unsendable(DeliveryFailure),
    /// The stream is no sequence of transactions.
    #[error(transparent)]
    Stream(#[from] ProtocolViolation),
    /// The broker client's reports make no sense.
    #[error(transparent)]
    Reports(#[from] AckError),
    /// The stream ended although nobody asked it to.
    #[error("PostgreSQL ended the replication stream")]
    StreamEnded,
    /// The server says nothing although it is asked.
    #[error("PostgreSQL has not answered for {seconds} s; the connection is taken for dead")]
    Silent {
        /// For how long.
        seconds: u64,
    },
    /// Existing rows would have to be sent first, which cannot be done yet.
    #[error(
        "replication slot {slot} does not exist and table {table} already holds {rows}; snapshot.mode=initial would have to send them first, which outboxd cannot do yet. To start with the rows written from now on, set snapshot.mode=no_data"
    )]
    NeedsSnapshot {
        /// The slot.
        slot: String,
        /// The table.
        table: TableName,
        /// How many rows, in words.
        rows: String,
    },
    /// There is no event to pass over where one was named.
    #[error("nothing was skipped: {0}")]
    Skip(#[from] SkipError),
    /// The database server is shutting down and was held up long enough.
    #[error(
        "PostgreSQL is shutting down, and what is in flight was not acknowledged in time; it is confirmed once the server is back"
    )]
    ServerGoing,
    /// The time for a clean end is over.
    #[error("the time for a clean stop is over")]
    Overdue,
}

/// A table that cannot be relayed as it is.
#[derive(Debug, thiserror::Error)]
#[error("the outbox table {table} cannot be relayed: {why}")]
pub struct TableError {
    /// The table.
    pub table: TableName,
    /// Why.
    pub why: TableProblem,
}

/// Why a table cannot be relayed.
#[derive(Debug, thiserror::Error)]
pub enum TableProblem {
    /// The router's options ask for something else.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Nothing is known of a column's type.
    #[error("its column {column}: {why}")]
    Type {
        /// The column.
        column: String,
        /// Why.
        why: UnsupportedType,
    },
    /// The converter cannot write a column's type.
    #[error("its column {column}: {why}")]
    Converter {
        /// The column.
        column: String,
        /// Why.
        why: ConvertError,
    },
    /// Its rows would be passed over.
    #[error(
        "it is the outbox table {known} under another name, which table.include.list does not match, and an event was written to it; add the name to table.include.list"
    )]
    Renamed {
        /// The name that is matched.
        known: TableName,
    },
    /// Debezium writes a constant default into the schema.
    #[error(
        "its column {column} has a constant default, which JsonConverter with schemas would carry and outboxd cannot write yet; drop the default, or set schemas.enable=false"
    )]
    ConstantDefault {
        /// The column.
        column: String,
    },
}

/// An event that cannot be sent as it is.
#[derive(Debug, thiserror::Error)]
#[error(
    "the event {event} of table {table}, in the transaction that commits at {lsn}, cannot be sent: {why}; mend that, or leave the event out with outboxd skip"
)]
pub struct EventError {
    /// The event's id as text.
    pub event: String,
    /// The table.
    pub table: TableName,
    /// The transaction's commit position.
    pub lsn: Lsn,
    /// Where it stands in the log, where that is known.
    pub(super) place: Option<Place>,
    /// Why.
    pub why: EventProblem,
}

/// Why an event cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum EventProblem {
    /// The router cannot place it.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A value cannot be written.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The broker, or its client, refused the record of this event alone.
    #[error(transparent)]
    Refused(DeliveryFailure),
}

impl RelayError {
    /// Whether it comes again whenever the stream comes to this place.
    pub(super) fn is_of_a_place(&self) -> bool {
        matches!(self, Self::Table(_) | Self::Event(_) | Self::Updated { .. })
    }

    /// Whether what is known of the producer's records is still good (rule R4): it is about the
    /// database only, or about a place in the stream before which everything is handed over.
    pub(super) fn spares_the_producer(&self) -> bool {
        if self.is_of_a_place() {
            return true;
        }
        matches!(
            self,
            Self::Source(_)
                | Self::Unfit(_)
                | Self::StreamEnded
                | Self::Silent { .. }
                | Self::ServerGoing
        )
    }

    /// What to do about it (rule R9).
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Source(error) => error.class(),
            // Of several in flight one is refused, and it takes another try to tell which.
            Self::Sink(_) if self.is_of_some_record() => ErrorClass::Rewind,
            Self::Sink(error) => error.class(),
            Self::Unfit(unfit) => unfit.class(),
            Self::Event(_) | Self::Unsendable(_) => ErrorClass::Poison,
            Self::Table(_)
            | Self::ContextHeaders(_)
            | Self::Updated { .. }
            | Self::NeedsSnapshot { .. }
            | Self::Skip(_) => ErrorClass::Fatal,
            // What was remembered is not to be trusted any more.
            Self::Stream(_) | Self::Reports(_) => ErrorClass::Rewind,
            Self::StreamEnded | Self::Silent { .. } | Self::ServerGoing | Self::Overdue => {
                ErrorClass::Retry
            }
        }
    }

    /// Whether one of the records in flight can never be sent.
    pub(super) fn is_of_some_record(&self) -> bool {
        matches!(self, Self::Sink(error) if error.class() == ErrorClass::Poison)
    }

    /// Whether the database refuses the login, or its certificate is refused.
    pub(super) fn is_login(&self) -> bool {
        matches!(self, Self::Source(error) if error.is_login())
    }

    /// How long to wait before trying again, where that is done.
    pub(super) fn pause(&self) -> Pause {
        match self {
            Self::Sink(error) if !self.is_of_some_record() => error.pause(),
            _ => Pause::Short,
        }
    }
}

/// Why a connector ended although nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It never streamed: something has to be set right first.
    #[error("cannot start")]
    Preflight(#[source] RelayError),
    /// It streamed, and then met something that only a person can mend. Nothing is lost: the
    /// slot keeps its position.
    #[error("stopped")]
    Stopped(#[source] RelayError),
}

/// An error with everything it was caused by, in one line.
pub(crate) struct Chain<'e>(pub(crate) &'e (dyn std::error::Error + 'e));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
