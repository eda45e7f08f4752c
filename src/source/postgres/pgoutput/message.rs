//! What the server says in one message of the `pgoutput` plugin at protocol version 1
//! (PostgreSQL documentation, "Logical Replication Message Formats"). Plain data: rows, names
//! and contents borrow from the receive buffer.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::model::{Lsn, Relation, RelationId, Row, TypeOid};

/// Microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL's time begins.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

/// A transaction's 32-bit number. It wraps around, so it names a transaction only together
/// with a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Xid(pub u32);

/// A moment as the server writes it: microseconds since 2000-01-01 00:00 UTC, by its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The same moment in microseconds since 1970-01-01 00:00 UTC.
    pub const fn unix_micros(self) -> i64 {
        self.0.saturating_add(POSTGRES_EPOCH_MICROS)
    }
}

/// A moment by the local clock, to the microsecond; what lies outside the range is cut to it.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let unix_micros = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => micros(after),
            Err(before) => -micros(before.duration()),
        };
        Self(unix_micros.saturating_sub(POSTGRES_EPOCH_MICROS))
    }
}

/// The start of a transaction. The three fields together name it: a server that sends it
/// again sends the same ones (rule R4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Begin {
    /// Where its commit record begins; the matching [`Commit::commit_lsn`].
    pub final_lsn: Lsn,
    /// When it committed.
    pub commit_time: Timestamp,
    /// Its number.
    pub xid: Xid,
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Where the commit record begins.
    pub commit_lsn: Lsn,
    /// The first byte after it: the one position of a transaction that may be confirmed (R2).
    pub end_lsn: Lsn,
    /// When it committed.
    pub commit_time: Timestamp,
}

/// What `pg_logical_emit_message` wrote. Sent only when asked for with the `messages` option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LogicalMessage<'a> {
    /// Whether it belongs to the transaction around it; if not, it can come anywhere, also
    /// between a BEGIN and a COMMIT that it has nothing to do with.
    pub transactional: bool,
    /// Where it stands in the log. Not a position to confirm.
    pub lsn: Lsn,
    /// Whom it is for, as the writer named it.
    pub prefix: &'a str,
    /// Its content, in whatever encoding the writer chose.
    pub content: &'a [u8],
}

/// What is known of a row before it was updated or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OldRow<'a> {
    /// Only the columns of the replica identity; the others are [`Value::Null`](crate::model::Value::Null).
    Key(Row<'a>),
    /// All columns: the table has `REPLICA IDENTITY FULL`.
    Full(Row<'a>),
}

/// One message of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// A transaction starts.
    Begin(Begin),
    /// The transaction is complete.
    Commit(Commit),
    /// An application's own message.
    Logical(LogicalMessage<'a>),
    /// The transaction was first committed on another server.
    Origin {
        /// Its commit position there.
        commit_lsn: Lsn,
        /// The name of the replication origin.
        name: &'a str,
    },
    /// A table's shape, before its first row and whenever the shape changed.
    Relation {
        /// The shape.
        relation: Relation,
        /// `pg_class.relreplident`: `d` default, `n` nothing, `f` full, `i` index.
        replica_identity: u8,
    },
    /// A data type that is not built in, before a [`Message::Relation`] that uses it.
    Type {
        /// Its object identifier.
        oid: TypeOid,
        /// Its schema.
        schema: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// A row was inserted.
    Insert {
        /// Into which table.
        relation: RelationId,
        /// The row, one value a column of the table's last [`Message::Relation`].
        row: Row<'a>,
    },
    /// A row was updated.
    Update {
        /// In which table.
        relation: RelationId,
        /// The row before, sent when the key changed or the replica identity is full.
        old: Option<Box<OldRow<'a>>>,
        /// The row after.
        new: Row<'a>,
    },
    /// A row was deleted.
    Delete {
        /// From which table.
        relation: RelationId,
        /// The row before.
        old: OldRow<'a>,
    },
    /// Tables were emptied by one TRUNCATE.
    Truncate {
        /// Which tables.
        relations: Vec<RelationId>,
        /// Whether it said `CASCADE`.
        cascade: bool,
        /// Whether it said `RESTART IDENTITY`.
        restart_identity: bool,
    },
}

/// Shows the content's length, never the content: payloads must not reach a log.
impl fmt::Debug for LogicalMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogicalMessage")
            .field("transactional", &self.transactional)
            .field("lsn", &self.lsn)
            .field("prefix", &self.prefix)
            .field("content_bytes", &self.content.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_begins_in_the_year_2000() {
        // 2024-07-11 01:02:03.123456 UTC.
        let unix = Duration::from_micros(1_720_659_723_123_456);
        let timestamp = Timestamp::from(UNIX_EPOCH + unix);
        assert_eq!(timestamp, Timestamp(773_974_923_123_456));
        assert_eq!(timestamp.unix_micros(), 1_720_659_723_123_456);
        assert_eq!(
            Timestamp::from(UNIX_EPOCH - Duration::from_secs(1)).unix_micros(),
            -1_000_000
        );
    }

    #[test]
    fn debug_output_hides_content() {
        let message = LogicalMessage {
            transactional: true,
            lsn: Lsn::ZERO,
            prefix: "app",
            content: b"secret",
        };
        let shown = format!("{message:?}");
        assert!(
            shown.contains("app") && shown.contains("content_bytes: 6"),
            "{shown}"
        );
        assert!(!shown.contains("secret"), "{shown}");
    }
}
