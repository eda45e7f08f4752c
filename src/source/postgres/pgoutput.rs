//! Decodes what the `pgoutput` plugin writes at protocol version 1: one message from the
//! data of one XLogData (PostgreSQL documentation, "Logical Replication Message Formats";
//! server source `replication/logical/proto.c`).
//!
//! Pure: bytes in, a message that borrows from them out. No count or length on the wire
//! makes it allocate more than the bytes that are really there.

pub(super) mod cursor;
mod message;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

pub use cursor::DecodeError;
pub use message::{Begin, Commit, LogicalMessage, Message, OldRow, Timestamp, Xid};

use cursor::Cursor;

use crate::model::{Column, Relation, RelationId, Row, TableName, TypeOid, Value};

/// The schema that the server abbreviates to an empty name (`logicalrep_write_namespace`).
const PG_CATALOG: &str = "pg_catalog";

/// Decodes one message: the data of one XLogData.
///
/// # Errors
/// When the bytes are not exactly one message of protocol version 1 with values as text.
pub fn decode(message: &[u8]) -> Result<Message<'_>, DecodeError> {
    let (kind, mut cursor) = Cursor::new(message)?;
    let needs_protocol = |version, name| {
        Err(DecodeError::NeedsProtocol {
            kind,
            name,
            version,
        })
    };
    let message = match kind {
        b'B' => begin(&mut cursor),
        b'C' => commit(&mut cursor),
        b'M' => logical_message(&mut cursor),
        b'O' => origin(&mut cursor),
        b'R' => relation(&mut cursor),
        b'Y' => data_type(&mut cursor),
        b'I' => insert(&mut cursor),
        b'U' => update(&mut cursor),
        b'D' => delete(&mut cursor),
        b'T' => truncate(&mut cursor),
        b'S' => needs_protocol(2, "Stream Start"),
        b'E' => needs_protocol(2, "Stream Stop"),
        b'c' => needs_protocol(2, "Stream Commit"),
        b'A' => needs_protocol(2, "Stream Abort"),
        b'b' => needs_protocol(3, "Begin Prepare"),
        b'P' => needs_protocol(3, "Prepare"),
        b'K' => needs_protocol(3, "Commit Prepared"),
        b'r' => needs_protocol(3, "Rollback Prepared"),
        b'p' => needs_protocol(3, "Stream Prepare"),
        _ => Err(DecodeError::UnknownKind { kind }),
    }?;
    cursor.end()?;
    Ok(message)
}

// === The kinds, field by field in wire order ===

fn begin<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, DecodeError> {
    Ok(Message::Begin(Begin {
        final_lsn: cursor.lsn()?,
        commit_time: cursor.timestamp()?,
        xid: Xid(cursor.u32("transaction id")?),
    }))
}

fn commit<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, DecodeError> {
    // No flag is defined; one that is could change what a commit means, so it is refused
    // as the server's own reader does (`logicalrep_read_commit`).
    cursor.byte(0, "commit flags of value 0")?;
    Ok(Message::Commit(Commit {
        commit_lsn: cursor.lsn()?,
        end_lsn: cursor.lsn()?,
        commit_time: cursor.timestamp()?,
    }))
}

fn logical_message<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, DecodeError> {
    Ok(Message::Logical(LogicalMessage {
        transactional: cursor.u8("message flags")? & 1 != 0,
        lsn: cursor.lsn()?,
        prefix: cursor.string("message prefix")?,
        content: cursor.counted_bytes("message content")?,
    }))
}

fn origin<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, DecodeError> {
    Ok(Message::Origin {
        commit_lsn: cursor.lsn()?,
        name: cursor.string("origin name")?,
    })
}

fn relation<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, DecodeError> {
    let id = relation_id(cursor)?;
    let table = TableName {
        schema: schema(cursor)?.to_owned(),
        name: cursor.string("table name")?.to_owned(),
    };
    let replica_identity = cursor.u8("replica identity")?;
    let columns = (0..cursor.u16("column count")?)
        .map(|_| column(cursor))
        .collect::<Result<_, _>>()?;
    Ok(Message::Relation {
        relation: Relation { id, table, columns },
        replica_identity,
    })
}

fn column(cursor: &mut Cursor<'_>) -> Result<Column, DecodeError> {
    let is_key = cursor.u8("column flags")? & 1 != 0;
    Ok(Column {
        name: cursor.string("column name")?.to_owned(),
        type_oid: type_oid(cursor)?,
        type_modifier: cursor.i32("type modifier")?,
        is_key,
    })
}

fn data_type<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, DecodeError> {
    Ok(Message::Type {
        oid: type_oid(cursor)?,
        schema: schema(cursor)?,
        name: cursor.string("type name")?,
    })
}

fn insert<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, DecodeError> {
    let relation = relation_id(cursor)?;
    cursor.byte(b'N', "row tag N")?;
    let row = row(cursor)?;
    Ok(Message::Insert { relation, row })
}

fn update<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, DecodeError> {
    let relation = relation_id(cursor)?;
    let old = match cursor.u8("row tag")? {
        b'N' => None,
        b'K' => Some(Box::new(OldRow::Key(row(cursor)?))),
        b'O' => Some(Box::new(OldRow::Full(row(cursor)?))),
        _ => return Err(cursor.unexpected("row tag K, O or N")),
    };
    if old.is_some() {
        cursor.byte(b'N', "row tag N")?;
    }
    let new = row(cursor)?;
    Ok(Message::Update { relation, old, new })
}

fn delete<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, DecodeError> {
    let relation = relation_id(cursor)?;
    let old = match cursor.u8("row tag")? {
        b'K' => OldRow::Key(row(cursor)?),
        b'O' => OldRow::Full(row(cursor)?),
        _ => return Err(cursor.unexpected("row tag K or O")),
    };
    Ok(Message::Delete { relation, old })
}

fn truncate<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, DecodeError> {
    let count = cursor.u32("relation count")?;
    let flags = cursor.u8("truncate flags")?;
    let relations = (0..count)
        .map(|_| relation_id(cursor))
        .collect::<Result<_, _>>()?;
    Ok(Message::Truncate {
        relations,
        cascade: flags & 1 != 0,
        restart_identity: flags & 2 != 0,
    })
}

/// TupleData.
fn row<'a>(cursor: &mut Cursor<'a>) -> Result<Row<'a>, DecodeError> {
    let count = cursor.u16("column count")?;
    let mut failure = None;
    let row = Row::new((0..count).map_while(|_| match value(cursor) {
        Ok(value) => Some(value),
        Err(error) => {
            failure = Some(error);
            None
        }
    }));
    failure.map_or(Ok(row), Err)
}

fn value<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, DecodeError> {
    match cursor.u8("value tag")? {
        b'n' => Ok(Value::Null),
        b'u' => Ok(Value::Unchanged),
        b't' => Ok(Value::Text(cursor.counted_bytes("column value")?)),
        b'b' => Err(cursor.binary_value()),
        _ => Err(cursor.unexpected("value tag n, u or t")),
    }
}

fn relation_id(cursor: &mut Cursor<'_>) -> Result<RelationId, DecodeError> {
    cursor.u32("relation id").map(RelationId)
}

fn type_oid(cursor: &mut Cursor<'_>) -> Result<TypeOid, DecodeError> {
    cursor.u32("type id").map(TypeOid)
}

fn schema<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, DecodeError> {
    let schema = cursor.string("schema name")?;
    Ok(if schema.is_empty() {
        PG_CATALOG
    } else {
        schema
    })
}
