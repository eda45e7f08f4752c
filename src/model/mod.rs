//! The words every other module shares. No I/O, no tokio, no rdkafka.

mod class;
mod java_pattern;
mod lsn;
mod name;
mod record;
mod row;
mod slot;
mod type_oid;

pub use class::ErrorClass;
pub use java_pattern::{
    Case, JavaPattern, JavaReplacement, MatchError, PatternError, ReplacementError,
};
pub use lsn::{ConfirmedLsn, Lsn, ParseLsnError};
pub use name::{
    InvalidName, MAX_IDENTIFIER_BYTES, MAX_TOPIC_BYTES, PublicationName, SlotName, TableName,
    TopicName,
};
pub use record::{Header, OutgoingRecord, Sequence};
pub use row::{Column, Relation, RelationId, Row, TypeOid, Value};
pub use slot::{SlotView, WalStatus};
