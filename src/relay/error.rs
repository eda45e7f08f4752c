use crate::convert::{ConvertError, UnsupportedType};
use crate::model::{ErrorClass, Lsn, TableName};
use crate::relay::ack::{AckError, ProtocolViolation};
use crate::router::{PlanError, RouteError};
use crate::sink::SinkError;
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
    /// A table's shape does not fit the router's options.
    #[error("the outbox table {table} cannot be routed: {source}")]
    Plan {
        /// The table.
        table: TableName,
        /// Why.
        source: PlanError,
    },
    /// A column's type does not fit the converter that has to write it.
    #[error("column {column} of table {table} cannot be converted: {source}")]
    Column {
        /// The table.
        table: TableName,
        /// The column.
        column: String,
        /// Why.
        source: ColumnProblem,
    },
    /// The context headers cannot be written by the header converter.
    #[error(
        "the context headers cannot be converted: {0}; set extended.headers.enabled=false or another header.converter"
    )]
    ContextHeaders(#[source] ConvertError),
    /// One event cannot be routed or converted.
    #[error(
        "the event {event} of table {table}, in the transaction that commits at {lsn}, cannot be sent: {why}"
    )]
    Event {
        /// The event's id as text.
        event: String,
        /// The table.
        table: TableName,
        /// The transaction's commit position.
        lsn: Lsn,
        /// Why.
        why: EventProblem,
    },
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
    /// The stream is no sequence of transactions.
    #[error(transparent)]
    Stream(#[from] ProtocolViolation),
    /// The broker client's reports make no sense.
    #[error(transparent)]
    Reports(#[from] AckError),
    /// The stream ended although nobody asked it to.
    #[error("PostgreSQL ended the replication stream")]
    StreamEnded,
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
    /// The time for a clean end is over.
    #[error("the time for a clean stop is over")]
    Overdue,
}

/// Why a column's values cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ColumnProblem {
    /// Nothing is known of its type.
    #[error(transparent)]
    Type(#[from] UnsupportedType),
    /// The converter cannot write the type.
    #[error(transparent)]
    Converter(#[from] ConvertError),
    /// Debezium writes a constant default into the schema.
    #[error(
        "it has a constant default, which JsonConverter with schemas would carry and outboxd cannot write yet; drop the default, or set schemas.enable=false"
    )]
    ConstantDefault,
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
}

impl RelayError {
    /// What to do about it (rule R9).
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Source(error) => error.class(),
            Self::Sink(error) => error.class(),
            Self::Event { .. } => ErrorClass::Poison,
            Self::Plan { .. }
            | Self::Column { .. }
            | Self::ContextHeaders(_)
            | Self::Updated { .. }
            | Self::NeedsSnapshot { .. } => ErrorClass::Fatal,
            // What was remembered is not to be trusted any more.
            Self::Stream(_) | Self::Reports(_) => ErrorClass::Rewind,
            Self::StreamEnded | Self::Overdue => ErrorClass::Retry,
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
