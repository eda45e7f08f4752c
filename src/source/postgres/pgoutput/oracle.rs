//! The decoder against the encoder of another project, `pg_walstream`, and against noise.

use pg_walstream::{ColumnData, ColumnInfo, LogicalReplicationMessage as Oracle, TupleData};
use proptest::prelude::*;

use super::*;
use crate::model::Lsn;

fn oracle_row() -> impl Strategy<Value = TupleData> {
    let value = prop_oneof![
        Just(ColumnData::null()),
        Just(ColumnData::unchanged()),
        any::<Vec<u8>>().prop_map(ColumnData::text),
    ];
    prop::collection::vec(value, 0..20).prop_map(TupleData::new)
}

fn oracle_column() -> impl Strategy<Value = ColumnInfo> {
    (0..2u8, "[^\0]{0,9}", any::<u32>(), any::<i32>())
        .prop_map(|(flags, name, oid, modifier)| ColumnInfo::new(flags, name, oid, modifier))
}

fn oracle_message() -> impl Strategy<Value = Oracle> {
    let name = || "[^\0]{0,9}";
    prop_oneof![
        any::<(u64, i64, u32)>().prop_map(|(final_lsn, timestamp, xid)| Oracle::Begin {
            final_lsn,
            timestamp,
            xid,
        }),
        any::<(u64, u64, i64)>().prop_map(|(commit_lsn, end_lsn, timestamp)| Oracle::Commit {
            flags: 0,
            commit_lsn,
            end_lsn,
            timestamp,
        }),
        (0..2u8, any::<u64>(), name(), any::<Vec<u8>>()).prop_map(
            |(flags, lsn, prefix, content)| {
                Oracle::Message {
                    flags,
                    lsn,
                    prefix,
                    content: content.into(),
                }
            }
        ),
        (any::<u64>(), name()).prop_map(|(origin_lsn, origin_name)| Oracle::Origin {
            origin_lsn,
            origin_name,
        }),
        (
            any::<u32>(),
            name(),
            name(),
            any::<u8>(),
            prop::collection::vec(oracle_column(), 0..20)
        )
            .prop_map(
                |(relation_id, namespace, relation_name, replica_identity, columns)| {
                    Oracle::Relation {
                        relation_id,
                        namespace: namespace.into(),
                        relation_name: relation_name.into(),
                        replica_identity,
                        columns,
                    }
                }
            ),
        (any::<u32>(), name(), name()).prop_map(|(type_id, namespace, type_name)| {
            Oracle::Type {
                type_id,
                namespace,
                type_name,
            }
        }),
        (any::<u32>(), oracle_row())
            .prop_map(|(relation_id, tuple)| Oracle::Insert { relation_id, tuple }),
        (
            any::<u32>(),
            prop::option::of((oracle_row(), prop::bool::ANY)),
            oracle_row()
        )
            .prop_map(|(relation_id, old, new_tuple)| {
                let (old_tuple, is_key) = old.unzip();
                Oracle::Update {
                    relation_id,
                    old_tuple,
                    new_tuple,
                    key_type: is_key.map(|is_key| if is_key { 'K' } else { 'O' }),
                }
            }),
        (
            any::<u32>(),
            oracle_row(),
            prop::sample::select(vec!['K', 'O'])
        )
            .prop_map(|(relation_id, old_tuple, key_type)| Oracle::Delete {
                relation_id,
                old_tuple,
                key_type,
            }),
        (any::<Vec<u32>>(), 0..4u8).prop_map(|(relation_ids, flags)| Oracle::Truncate {
            relation_ids,
            flags
        }),
    ]
}

fn row_of(tuple: &TupleData) -> Row<'_> {
    Row::new(tuple.columns.iter().map(|column| match column.data_type {
        b'n' => Value::Null,
        b'u' => Value::Unchanged,
        _ => Value::Text(column.as_bytes()),
    }))
}

fn old_row_of(tuple: &TupleData, key_type: char) -> OldRow<'_> {
    let row = row_of(tuple);
    if key_type == 'K' {
        OldRow::Key(row)
    } else {
        OldRow::Full(row)
    }
}

fn schema_of(namespace: &str) -> &str {
    if namespace.is_empty() {
        "pg_catalog"
    } else {
        namespace
    }
}

/// What the oracle's message is in our words.
fn expected(oracle: &Oracle) -> Message<'_> {
    match oracle {
        Oracle::Begin {
            final_lsn,
            timestamp,
            xid,
        } => Message::Begin(Begin {
            final_lsn: Lsn::new(*final_lsn),
            commit_time: Timestamp(*timestamp),
            xid: Xid(*xid),
        }),
        Oracle::Commit {
            commit_lsn,
            end_lsn,
            timestamp,
            ..
        } => Message::Commit(Commit {
            commit_lsn: Lsn::new(*commit_lsn),
            end_lsn: Lsn::new(*end_lsn),
            commit_time: Timestamp(*timestamp),
        }),
        Oracle::Message {
            flags,
            lsn,
            prefix,
            content,
        } => Message::Logical(LogicalMessage {
            transactional: *flags == 1,
            lsn: Lsn::new(*lsn),
            prefix,
            content,
        }),
        Oracle::Origin {
            origin_lsn,
            origin_name,
        } => Message::Origin {
            commit_lsn: Lsn::new(*origin_lsn),
            name: origin_name,
        },
        Oracle::Relation {
            relation_id,
            namespace,
            relation_name,
            replica_identity,
            columns,
        } => Message::Relation {
            relation: Relation {
                id: RelationId(*relation_id),
                table: TableName {
                    schema: schema_of(namespace).to_owned(),
                    name: relation_name.to_string(),
                },
                columns: columns
                    .iter()
                    .map(|column| Column {
                        name: column.name.to_string(),
                        type_oid: TypeOid(column.type_id),
                        type_modifier: column.type_modifier,
                        is_key: column.is_key(),
                    })
                    .collect(),
            },
            replica_identity: *replica_identity,
        },
        Oracle::Type {
            type_id,
            namespace,
            type_name,
        } => Message::Type {
            oid: TypeOid(*type_id),
            schema: schema_of(namespace),
            name: type_name,
        },
        Oracle::Insert { relation_id, tuple } => Message::Insert {
            relation: RelationId(*relation_id),
            row: row_of(tuple),
        },
        Oracle::Update {
            relation_id,
            old_tuple,
            new_tuple,
            key_type,
        } => Message::Update {
            relation: RelationId(*relation_id),
            old: old_tuple
                .as_ref()
                .zip(*key_type)
                .map(|(tuple, key_type)| Box::new(old_row_of(tuple, key_type))),
            new: row_of(new_tuple),
        },
        Oracle::Delete {
            relation_id,
            old_tuple,
            key_type,
        } => Message::Delete {
            relation: RelationId(*relation_id),
            old: old_row_of(old_tuple, *key_type),
        },
        Oracle::Truncate {
            relation_ids,
            flags,
        } => Message::Truncate {
            relations: relation_ids.iter().copied().map(RelationId).collect(),
            cascade: flags & 1 == 1,
            restart_identity: flags & 2 == 2,
        },
        other => panic!("not generated: {other:?}"),
    }
}

fn encoded(oracle: &Oracle) -> Vec<u8> {
    pg_walstream::encode_message_to_bytes(oracle, 1).to_vec()
}

proptest! {
    #[test]
    fn reads_back_what_another_encoder_wrote(oracle in oracle_message()) {
        let bytes = encoded(&oracle);
            prop_assert_eq!(decode(&bytes), Ok(expected(&oracle)));
    }

    #[test]
    fn a_cut_or_prolonged_message_is_refused(oracle in oracle_message(), cut: prop::sample::Index) {
        let mut bytes = encoded(&oracle);
        prop_assert!(decode(&bytes[..cut.index(bytes.len())]).is_err());
        bytes.push(0);
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(kind in prop::sample::select(b"BCMORYIUDTSEcAbPKrp?".to_vec()), rest: Vec<u8>) {
        // The kind byte is chosen so that each decoder sees many of the cases.
        let mut bytes = vec![kind];
        bytes.extend(rest);
        let _ = decode(&bytes);
    }

    #[test]
    fn a_damaged_message_never_panics(oracle in oracle_message(), at: prop::sample::Index, byte: u8) {
        let mut bytes = encoded(&oracle);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = decode(&bytes);
    }
}
