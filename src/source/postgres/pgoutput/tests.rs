//! Each kind of message as literal bytes, and what is refused.

use super::*;
use crate::model::Lsn;

/// Joins the fields of a golden message.
fn wire(fields: &[&[u8]]) -> Vec<u8> {
    fields.concat()
}

#[test]
fn begin() {
    let bytes = wire(&[
        b"B",
        b"\0\0\0\x16\xb3\x74\xd8\x48",
        b"\0\0\0\0\0\0\x03\xe8",
        b"\0\0\x02\xe4",
    ]);
    let begin = Begin {
        final_lsn: Lsn::new(0x16_b374_d848),
        commit_time: Timestamp(1000),
        xid: Xid(740),
    };
    assert_eq!(decode(&bytes), Ok(Message::Begin(begin)));
}

#[test]
fn commit() {
    let positions: &[u8] = b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x09";
    let bytes = wire(&[b"C\0", positions, b"\xff\xff\xff\xff\xff\xff\xff\xff"]);
    let commit = Commit {
        commit_lsn: Lsn::new(5),
        end_lsn: Lsn::new(9),
        commit_time: Timestamp(-1),
    };
    assert_eq!(decode(&bytes), Ok(Message::Commit(commit)));
}

#[test]
fn logical_message() {
    let bytes = wire(&[
        b"M\x01",
        b"\0\0\0\0\0\0\0\x07",
        b"outbox\0",
        b"\0\0\0\x03",
        b"a\0\xff",
    ]);
    let message = LogicalMessage {
        transactional: true,
        lsn: Lsn::new(7),
        prefix: "outbox",
        content: b"a\0\xff",
    };
    assert_eq!(decode(&bytes), Ok(Message::Logical(message)));
}

#[test]
fn origin() {
    let origin = Message::Origin {
        commit_lsn: Lsn::new(1),
        name: "pg_1",
    };
    assert_eq!(decode(b"O\0\0\0\0\0\0\0\x01pg_1\0"), Ok(origin));
}

#[test]
fn relation() {
    let bytes = wire(&[
        b"R\0\0\x40\0",
        b"public\0outbox\0d\0\x02",
        b"\x01id\0\0\0\x0b\x86\xff\xff\xff\xff",
        b"\0type\0\0\0\x04\x13\0\0\x01\x03",
    ]);
    let relation = Relation {
        id: RelationId(16384),
        table: TableName {
            schema: "public".to_owned(),
            name: "outbox".to_owned(),
        },
        columns: vec![
            Column {
                name: "id".to_owned(),
                type_oid: TypeOid(2950),
                type_modifier: -1,
                is_key: true,
            },
            Column {
                name: "type".to_owned(),
                type_oid: TypeOid(1043),
                type_modifier: 259,
                is_key: false,
            },
        ],
    };
    let expected = Message::Relation {
        relation,
        replica_identity: b'd',
    };
    assert_eq!(decode(&bytes), Ok(expected));
}

#[test]
fn an_empty_schema_is_pg_catalog() {
    let expected = Message::Type {
        oid: TypeOid(16390),
        schema: "pg_catalog",
        name: "mood",
    };
    assert_eq!(decode(b"Y\0\0\x40\x06\0mood\0"), Ok(expected));
}

#[test]
fn insert_with_every_kind_of_value() {
    let bytes = b"I\0\0\0\x01N\0\x04t\0\0\0\x02hinut\0\0\0\0";
    let row = Row::new([
        Value::Text(b"hi"),
        Value::Null,
        Value::Unchanged,
        Value::Text(b""),
    ]);
    let expected = Message::Insert {
        relation: RelationId(1),
        row,
    };
    assert_eq!(decode(bytes), Ok(expected));
}

#[test]
fn update_with_and_without_the_old_row() {
    let update = |old| {
        Ok(Message::Update {
            relation: RelationId(1),
            old,
            new: Row::new([Value::Text(b"b")]),
        })
    };
    let key = Box::new(OldRow::Key(Row::new([Value::Text(b"a")])));
    let full = Box::new(OldRow::Full(Row::new([Value::Null])));
    assert_eq!(decode(b"U\0\0\0\x01N\0\x01t\0\0\0\x01b"), update(None));
    assert_eq!(
        decode(b"U\0\0\0\x01K\0\x01t\0\0\0\x01aN\0\x01t\0\0\0\x01b"),
        update(Some(key))
    );
    assert_eq!(
        decode(b"U\0\0\0\x01O\0\x01nN\0\x01t\0\0\0\x01b"),
        update(Some(full))
    );
}

#[test]
fn delete() {
    let delete = |old| {
        Ok(Message::Delete {
            relation: RelationId(1),
            old,
        })
    };
    let row = || Row::new([Value::Text(b"a")]);
    assert_eq!(
        decode(b"D\0\0\0\x01K\0\x01t\0\0\0\x01a"),
        delete(OldRow::Key(row()))
    );
    assert_eq!(
        decode(b"D\0\0\0\x01O\0\x01t\0\0\0\x01a"),
        delete(OldRow::Full(row()))
    );
}

#[test]
fn truncate() {
    let expected = Message::Truncate {
        relations: vec![RelationId(1), RelationId(2)],
        cascade: false,
        restart_identity: true,
    };
    assert_eq!(decode(b"T\0\0\0\x02\x02\0\0\0\x01\0\0\0\x02"), Ok(expected));
}

#[test]
fn kinds_of_higher_versions_are_named() {
    for (kind, version) in [
        (b'S', 2),
        (b'E', 2),
        (b'c', 2),
        (b'A', 2),
        (b'b', 3),
        (b'P', 3),
        (b'K', 3),
        (b'r', 3),
        (b'p', 3),
    ] {
        let error = decode(&[kind, 0, 0]).expect_err("needs a higher version");
        assert!(
            error
                .to_string()
                .contains(&format!("needs proto_version {version}")),
            "{error}"
        );
    }
}

#[test]
fn refuses_what_is_malformed_and_says_where() {
    let malformed = |kind, expected, offset| {
        Err(DecodeError::Malformed {
            kind,
            expected,
            offset,
        })
    };
    assert_eq!(decode(b""), Err(DecodeError::Empty));
    assert_eq!(
        decode(b"\xff"),
        Err(DecodeError::UnknownKind { kind: 0xff })
    );
    assert_eq!(
        decode(b"T\0\0\0\0\0!"),
        malformed(b'T', "end of the message", 6)
    );
    assert_eq!(
        decode(b"Y\0\0\0\x01\0m\xff\0"),
        malformed(b'Y', "type name", 6)
    );
    assert_eq!(
        decode(b"Y\0\0\0\x01\0mood"),
        malformed(b'Y', "type name", 6)
    );
    assert_eq!(
        decode(b"C\x01"),
        malformed(b'C', "commit flags of value 0", 1)
    );
    assert_eq!(decode(b"I\0\0\0\x01K\0\0"), malformed(b'I', "row tag N", 5));
    assert_eq!(
        decode(b"I\0\0\0\x01N\0\x01x"),
        malformed(b'I', "value tag n, u or t", 8)
    );
    assert_eq!(
        decode(b"D\0\0\0\x01N\0\0"),
        malformed(b'D', "row tag K or O", 5)
    );
    let binary = DecodeError::BinaryValue {
        kind: b'I',
        offset: 8,
    };
    assert_eq!(decode(b"I\0\0\0\x01N\0\x01b\0\0\0\x01x"), Err(binary));
}

#[test]
fn counts_that_no_bytes_back_are_refused() {
    for message in [
        &b"I\0\0\0\x01N\xff\xffn"[..],
        b"I\0\0\0\x01N\0\x01t\xff\xff\xff\xffx",
        b"R\0\0\0\x01\0t\0d\xff\xff",
        b"T\xff\xff\xff\xff\0",
        b"M\0\0\0\0\0\0\0\0\0p\0\x7f\xff\xff\xff",
    ] {
        let error = decode(message).expect_err("the bytes are missing");
        assert!(
            matches!(error, DecodeError::Malformed { offset, .. } if offset == message.len() || message.ends_with(b"x")),
            "{error}"
        );
    }
}
