//! One message of the output plugin, as `pgoutput::decode` reads it. What it accepts is held
//! against another project, `pg_walstream`: its decoder reads the same, and what its encoder
//! writes of it is read back the same, in as many bytes.

use outboxd::model::{Row, Value};
use outboxd::source::postgres::pgoutput::{DecodeError, Message, OldRow, decode};
use pg_walstream::{
    ColumnData, ColumnInfo, LogicalReplicationMessage as Oracle, LogicalReplicationParser,
    TupleData, encode_message_to_bytes,
};

/// The schema that the server abbreviates to an empty name.
const PG_CATALOG: &str = "pg_catalog";

/// See the module.
pub fn target(input: &[u8]) {
    let message = match decode(input) {
        Ok(message) => message,
        Err(error) => return refused(input, error),
    };
    borrows_from(input, &message);
    let oracle = in_the_oracles_words(&message);

    let theirs = LogicalReplicationParser::with_protocol_version(1)
        .parse_wal_message(input)
        .unwrap_or_else(|error| panic!("the oracle refuses what was read as {message:?}: {error}"));
    assert_eq!(normal(theirs.message), oracle);

    let again = encode_message_to_bytes(&oracle, 1);
    let reread = decode(&again).expect("what the oracle writes");
    assert_eq!(in_the_oracles_words(&reread), oracle);
    let shortened = match &oracle {
        Oracle::Relation { namespace, .. } => abbreviated(input, 5, namespace),
        Oracle::Type { namespace, .. } => abbreviated(input, 5, namespace),
        _ => 0,
    };
    assert_eq!(again.len(), input.len() + shortened);

    let (_, cut) = input.split_last().expect("a message has a kind byte");
    assert!(decode(cut).is_err(), "a cut message is accepted");
    assert!(decode(&[input, &[0]].concat()).is_err(), "a prolonged one");
}

fn refused(input: &[u8], error: DecodeError) {
    let first = input.first().copied();
    let (found, at) = match error {
        DecodeError::Empty => (None, 0),
        DecodeError::UnknownKind { kind } | DecodeError::NeedsProtocol { kind, .. } => {
            (Some(kind), 0)
        }
        DecodeError::BinaryValue { kind, offset } | DecodeError::Malformed { kind, offset, .. } => {
            (Some(kind), offset)
        }
    };
    assert_eq!(found, first, "{error}");
    assert!(at <= input.len(), "{error}");
}

/// How many bytes an empty schema at `offset` lacks.
fn abbreviated(input: &[u8], offset: usize, schema: &str) -> usize {
    if schema == PG_CATALOG && input.get(offset) == Some(&0) {
        PG_CATALOG.len()
    } else {
        0
    }
}

/// Everything that is borrowed lies within the input.
fn borrows_from(input: &[u8], message: &Message<'_>) {
    let within = |part: &[u8]| {
        let (outer, inner) = (input.as_ptr_range(), part.as_ptr_range());
        assert!(outer.start <= inner.start && inner.end <= outer.end);
    };
    let row_within = |row: &Row<'_>| {
        for value in values(row) {
            if let Value::Text(text) = value {
                within(text);
            }
        }
    };
    let old_within = |old: &OldRow<'_>| row_within(old_row(old).1);
    match message {
        Message::Logical(logical) => {
            within(logical.prefix.as_bytes());
            within(logical.content);
        }
        Message::Origin { name, .. } | Message::Type { name, .. } => within(name.as_bytes()),
        Message::Insert { row, .. } => row_within(row),
        Message::Update { old, new, .. } => {
            old.as_deref().into_iter().for_each(old_within);
            row_within(new);
        }
        Message::Delete { old, .. } => old_within(old),
        Message::Begin(_)
        | Message::Commit(_)
        | Message::Relation { .. }
        | Message::Truncate { .. } => {}
    }
}

fn values<'a>(row: &Row<'a>) -> impl Iterator<Item = Value<'a>> {
    assert!(row.get(row.len()).is_none());
    (0..row.len()).map(|index| row.get(index).expect("a value below the row's length"))
}

fn old_row<'m, 'a>(old: &'m OldRow<'a>) -> (char, &'m Row<'a>) {
    match old {
        OldRow::Key(row) => ('K', row),
        OldRow::Full(row) => ('O', row),
    }
}

// === Our message as the oracle's ===

fn in_the_oracles_words(message: &Message<'_>) -> Oracle {
    match message {
        Message::Begin(begin) => Oracle::Begin {
            final_lsn: begin.final_lsn.offset(),
            timestamp: begin.commit_time.0,
            xid: begin.xid.0,
        },
        Message::Commit(commit) => Oracle::Commit {
            flags: 0,
            commit_lsn: commit.commit_lsn.offset(),
            end_lsn: commit.end_lsn.offset(),
            timestamp: commit.commit_time.0,
        },
        Message::Logical(logical) => Oracle::Message {
            flags: logical.transactional.into(),
            lsn: logical.lsn.offset(),
            prefix: logical.prefix.to_owned(),
            content: logical.content.to_vec().into(),
        },
        Message::Origin { commit_lsn, name } => Oracle::Origin {
            origin_lsn: commit_lsn.offset(),
            origin_name: (*name).to_owned(),
        },
        Message::Relation {
            relation,
            replica_identity,
        } => Oracle::Relation {
            relation_id: relation.id.0,
            namespace: relation.table.schema.as_str().into(),
            relation_name: relation.table.name.as_str().into(),
            replica_identity: *replica_identity,
            columns: relation
                .columns
                .iter()
                .map(|column| {
                    ColumnInfo::new(
                        column.is_key.into(),
                        column.name.clone(),
                        column.type_oid.0,
                        column.type_modifier,
                    )
                })
                .collect(),
        },
        Message::Type { oid, schema, name } => Oracle::Type {
            type_id: oid.0,
            namespace: (*schema).to_owned(),
            type_name: (*name).to_owned(),
        },
        Message::Insert { relation, row } => Oracle::Insert {
            relation_id: relation.0,
            tuple: tuple(row),
        },
        Message::Update { relation, old, new } => {
            let old = old.as_deref().map(old_row);
            Oracle::Update {
                relation_id: relation.0,
                old_tuple: old.map(|(_, row)| tuple(row)),
                new_tuple: tuple(new),
                key_type: old.map(|(key_type, _)| key_type),
            }
        }
        Message::Delete { relation, old } => {
            let (key_type, row) = old_row(old);
            Oracle::Delete {
                relation_id: relation.0,
                old_tuple: tuple(row),
                key_type,
            }
        }
        Message::Truncate {
            relations,
            cascade,
            restart_identity,
        } => Oracle::Truncate {
            relation_ids: relations.iter().map(|relation| relation.0).collect(),
            flags: u8::from(*cascade) | u8::from(*restart_identity) << 1,
        },
    }
}

fn tuple(row: &Row<'_>) -> TupleData {
    let column = |value| match value {
        Value::Null => ColumnData::null(),
        Value::Unchanged => ColumnData::unchanged(),
        Value::Text(text) => ColumnData::text(text.to_vec()),
    };
    TupleData::new(values(row).map(column).collect())
}

/// Without what the oracle keeps and we do not: flags that nobody defined, and whether
/// `pg_catalog` was abbreviated.
fn normal(mut message: Oracle) -> Oracle {
    match &mut message {
        Oracle::Message { flags, .. } => *flags &= 1,
        Oracle::Truncate { flags, .. } => *flags &= 3,
        Oracle::Type { namespace, .. } if namespace.is_empty() => {
            PG_CATALOG.clone_into(namespace);
        }
        Oracle::Relation {
            namespace, columns, ..
        } => {
            if namespace.is_empty() {
                *namespace = PG_CATALOG.into();
            }
            columns.iter_mut().for_each(|column| column.flags &= 1);
        }
        _ => {}
    }
    message
}
